//! A working directory whose repository lies elsewhere: linked worktrees and submodules (08 A8).
//!
//! The `.git` file in the working directory may be the agent's own writing, so it grants nothing by
//! itself: the repository must say of its own accord that this is one of its working directories, and
//! what says so is read-only in the sandbox. Then a linked worktree gets its own administrative
//! directory and what a commit writes of the common one; everything else of that is read-only. A
//! submodule gets its git directory, without hooks and configuration.

use camino::Utf8PathBuf;

use super::Work;
use super::destinations::Cover;
use super::git_links::{existing_directory, follow, linked_directories, named_worktree, text};
use super::git_tree::GitTree;
use super::overlays::Wanted;
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::forbidden::Side;
use crate::isolation::policy::{Mount, MountMode, MountOrigin};
use crate::path::LexicalPath;
use crate::port::{FileKind, Resolved};

/// Enough for the configuration of a repository; a larger one is not understood.
pub(super) const CONFIG_LIMIT: usize = 64 * 1024;
/// Configuration of one working directory, obeyed where `extensions.worktreeConfig` is set.
pub(super) const WORKTREE_CONFIG: &str = "config.worktree";
/// What git writes of the common directory when it commits; `true` if it must be there. The rest of
/// the directory is read-only: deleting or packing refs, changing configuration and adding worktrees
/// is for the operator.
const WRITTEN: &[(&str, bool)] =
    &[("objects", true), ("refs", true), ("reftable", false), ("rr-cache", false), ("lfs", false)];
/// The same, made for the launch where it is missing.
const LOGS: &str = "logs";
/// What decides whose hooks and configuration git obeys: read-only in what a role may write.
const DECIDING: &[&str] = &["commondir", "gitdir", WORKTREE_CONFIG, "modules"];

/// The repository of a working directory with a `.git` file.
#[derive(Debug)]
pub(super) struct Linked {
    /// The working directory, as a path of the host.
    cwd: LexicalPath,
    /// What belongs to this working directory alone.
    admin: LexicalPath,
    /// Objects, refs, hooks and configuration; the same as `admin` for a submodule.
    common: LexicalPath,
    /// Whether fleet shows it of its own accord, as opposed to a mount that the role asks for.
    own: bool,
    /// Whether the working directory can be written.
    writable: bool,
    /// Directories to make for the launch.
    made: Vec<Utf8PathBuf>,
}

impl Work<'_> {
    /// Finds the repository of a working directory that does not hold it, and mounts it unless a
    /// declared mount shows it anyway. Asks for all declared mounts to be there.
    pub(super) fn linked_repository(&mut self, cwd: &LexicalPath) -> Option<Linked> {
        let base = self.drafts.iter().find(|draft| draft.mount.destination == *cwd)?;
        let writable = base.mount.mode == MountMode::ReadWrite;
        let cwd = base.mount.source.clone();
        let (admin, common) = linked_directories(self.probe, &cwd)?;
        let around = self.drafts.iter().map(|draft| &draft.mount);
        let around = around.filter(|mount| common.is_within(&mount.destination));
        let around = around.max_by_key(|mount| mount.destination.depth()).map(|mount| mount.mode);
        let own = around.is_none_or(|mode| writable && mode == MountMode::ReadOnly);
        let mut linked = Linked { cwd, admin, common, own, writable, made: Vec::new() };
        if own {
            if let Err(reason) = self.belongs(&linked) {
                self.problems.push(unshown(&linked, &reason));
                return None;
            }
            self.show(&mut linked);
        }
        Some(linked)
    }

    /// Whether the repository itself says that this working directory is its own, and is laid out as
    /// git does it. The reason why not is part of a sentence.
    fn belongs(&self, linked: &Linked) -> Result<(), String> {
        let Linked { cwd, admin, common, .. } = linked;
        let file = cwd.child(".git").ok();
        let plain = file.as_ref().and_then(|file| self.probe.resolve(file).ok());
        if plain.map(|seen| seen.path) != file {
            return Err("to which its `.git` leads by a symbolic link".to_owned());
        }
        for directory in [admin, common] {
            let owner = self.probe.resolve(directory).ok().and_then(|seen| seen.object);
            if owner.is_none_or(|object| object.uid != self.context.uid) {
                return Err(format!("where `{directory}` does not belong to the fleet user"));
            }
        }
        if cwd.is_within(common) {
            return Err("in which it lies, with whatever else lies there".to_owned());
        }
        for (name, needed) in WRITTEN {
            let Ok(part) = common.child(name) else { continue };
            let seen = self.probe.resolve(&part).ok();
            let fits = seen.is_some_and(|seen| {
                let kind = seen.object.map(|object| object.kind);
                seen.path == part && kind.map_or(!needed, |kind| kind == FileKind::Directory)
            });
            if !fits {
                return Err(format!("whose `{name}` is not a directory of its own"));
            }
        }
        let names = if admin == common {
            self.submodule(admin)
        } else {
            named_worktree(self.probe, admin, common)
        };
        match names {
            Some(place) if place == *cwd => Ok(()),
            Some(place) => Err(format!("which says that its working directory is `{place}`")),
            None => Err("which does not say that it is one of its working directories".to_owned()),
        }
    }

    /// The working directory that the git directory of a submodule names.
    fn submodule(&self, admin: &LexicalPath) -> Option<LexicalPath> {
        let text = text(self.probe, &admin.child("config").ok()?, CONFIG_LIMIT)?;
        let named = core_worktree(&text)?;
        existing_directory(self.probe, &follow(admin, &named)?)
    }

    /// Mounts what git needs.
    fn show(&mut self, linked: &mut Linked) {
        let (admin, common) = (linked.admin.clone(), linked.common.clone());
        let mode = if linked.writable { MountMode::ReadWrite } else { MountMode::ReadOnly };
        if admin == common {
            self.part("git directory", &common, mode);
            return;
        }
        self.part("common directory", &common, MountMode::ReadOnly);
        if !linked.writable {
            return;
        }
        self.part("administrative directory", &admin, mode);
        for (name, _) in WRITTEN {
            let Ok(part) = common.child(name) else { continue };
            if existing_directory(self.probe, &part).is_some() {
                self.part(name, &part, mode);
            }
        }
        let Ok(logs) = common.child(LOGS) else { return };
        match self.probe.resolve(&logs) {
            Ok(seen) if seen.path == logs && seen.object.is_none() => {
                linked.made.push(logs.as_path().to_owned());
                self.made(&logs, seen);
            }
            _ => self.part(LOGS, &logs, mode),
        }
    }

    fn part(&mut self, name: &str, path: &LexicalPath, mode: MountMode) {
        let origin = MountOrigin::Repository { part: name.to_owned() };
        let Some(resolved) = self.look(path.as_str(), path, &origin) else { return };
        let directory = resolved.object.is_some_and(|it| it.kind == FileKind::Directory);
        if resolved.path != *path || !directory {
            let problem =
                Diagnostic::error(Code::FileTrust, format!("`{path}` is not a directory"));
            self.problems.push(problem.path("cwd").hint("a repository of git has one there"));
            return;
        }
        if self.judge(Side::Source, path.as_str(), &resolved, mode, &origin) {
            self.push(path.as_str(), resolved, path.clone(), mode, origin);
        }
    }

    /// A directory that the launcher makes.
    fn made(&mut self, path: &LexicalPath, resolved: Resolved) {
        let origin = MountOrigin::Repository { part: LOGS.to_owned() };
        let mode = MountMode::ReadWrite;
        if self.judge(Side::Source, path.as_str(), &resolved, mode, &origin) {
            self.push(path.as_str(), resolved, path.clone(), mode, origin);
            if let Some(draft) = self.drafts.last_mut() {
                draft.mount = Mount { kind: Some(FileKind::Directory), ..draft.mount.clone() };
            }
        }
    }

    /// Keeps what decides about hooks and configuration out of the agent's hands. Returns the
    /// directories that the launch has to make.
    pub(super) fn linked_overlays(
        &mut self,
        cover: &mut Cover,
        linked: Linked,
        default: bool,
    ) -> Vec<Utf8PathBuf> {
        let Linked { cwd, admin, common, own, writable, made } = linked;
        let mut ephemeral = made;
        if !writable || !(own || default) {
            return ephemeral;
        }
        for below in ["hooks", "config"] {
            let wanted = Wanted { source: &common, destination: &common, below, key: None };
            ephemeral.extend(self.overlay(cover, &wanted));
        }
        if !own || admin == common {
            self.redirection(&common);
        }
        let deciding = DECIDING.iter().map(|below| (&admin, *below));
        for (source, below) in [(&cwd, ".git")].into_iter().chain(deciding) {
            if self.exists(source, below) {
                let wanted = Wanted { source, destination: source, below, key: None };
                self.overlay(cover, &wanted);
            }
        }
        if own && admin != common && !self.exists(&admin, WORKTREE_CONFIG) {
            self.worktree_config(&admin, &common);
        }
        let mut search = GitTree::new(&cwd);
        self.git_tree(cover, &mut search, &common, &cwd);
        ephemeral.append(&mut search.made);
        ephemeral
    }

    /// The configuration of one working directory can only be covered where it is. Where it is not,
    /// an agent can make it, and git obeys it if the repository says so.
    pub(super) fn worktree_config(&mut self, admin: &LexicalPath, common: &LexicalPath) {
        if !self.exists(common, "config") {
            return;
        }
        let config = common.child("config").ok();
        let text = config.and_then(|config| text(self.probe, &config, CONFIG_LIMIT));
        // Found anywhere in it is enough: a comment too many only asks for an empty file.
        let obeyed = text.is_none_or(|text| text.to_ascii_lowercase().contains("worktreeconfig"));
        if !obeyed {
            return;
        }
        let file = format!("{admin}/{WORKTREE_CONFIG}");
        let message = format!(
            "`{common}` obeys a configuration for each worktree, and the one of this worktree, \
             `{file}`, does not exist: the agent could create it"
        );
        let problem = Diagnostic::error(Code::FileTrust, message).path("cwd");
        self.problems.push(problem.hint(format!("create it empty: `touch {file}`")));
    }

    fn exists(&self, directory: &LexicalPath, below: &str) -> bool {
        let there = directory.join(below).ok().and_then(|it| self.probe.resolve(&it).ok());
        there.is_some_and(|seen| seen.object.is_some())
    }
}

fn unshown(linked: &Linked, reason: &str) -> Diagnostic {
    let Linked { cwd, common, writable, .. } = linked;
    let message = format!(
        "`{cwd}` is a linked worktree or submodule of the repository `{common}`, {reason}: the \
         sandbox does not {} it, and git would fail in it",
        if *writable { "let it write" } else { "show" }
    );
    // The agent may have written what leads there: no advice here may widen what it is shown.
    let hint = format!(
        "if you moved it yourself, run `git worktree repair` in the repository that you made it from; \
         else `{cwd}/.git` was changed, perhaps by an agent: run no git there before you looked at it, \
         and grant nothing that it names"
    );
    Diagnostic::error(Code::Conflict, message).path("cwd").hint(hint)
}

/// `core.worktree` of a git configuration, as git itself writes it.
pub(super) fn core_worktree(text: &str) -> Option<String> {
    let mut core = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            core = line.eq_ignore_ascii_case("[core]");
        } else if core
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("worktree")
        {
            let value = value.trim();
            let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            found = Some(bare.unwrap_or(value).to_owned());
        }
    }
    found.filter(|path| !path.contains(['\\', '"', '#', ';']))
}
