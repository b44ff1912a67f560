//! Project overlays (01 §2.3): read-only binds over files that would act outside the sandbox later.

use camino::Utf8PathBuf;

use super::destinations::Cover;
use super::git_links::existing_directory;
use super::git_tree::GitTree;
use super::repository::Linked;
use super::{Draft, Work};
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::policy::{IsolationBlock, Mount, MountMode, MountOrigin};
use crate::path::LexicalPath;
use crate::port::{FileKind, Resolved};

/// Protected where present, whatever else `protect` lists; only an empty list ends it.
pub const DEFAULT_PROTECT: &[&str] =
    &[".git/hooks", ".git/config", ".claude", ".codex", ".mcp.json"];
/// A directory that git needs not, so it can be made for the launch and removed after it.
const HOOKS: &str = ".git/hooks";
/// Redirects git to the configuration and the hooks of another directory.
const REDIRECTION: &str = "commondir";

/// What a block protects: the paths that it lists, each with its number, and the default ones. Nothing if
/// it says so with an empty list.
pub fn protected_paths(block: &IsolationBlock) -> Vec<(&str, Option<usize>)> {
    let written = block.protect.as_deref();
    if written.is_some_and(<[String]>::is_empty) {
        return Vec::new();
    }
    let numbered = written.unwrap_or_default().iter().enumerate();
    let mut all: Vec<(&str, Option<usize>)> = numbered
        .map(|(index, path)| (path.strip_suffix('/').unwrap_or(path), Some(index)))
        .collect();
    for path in DEFAULT_PROTECT {
        if !all.iter().any(|(other, _)| other == path) {
            all.push((path, None));
        }
    }
    // What lies around another comes before it, and makes an overlay of its own needless there.
    all.sort_by_key(|(path, _)| path.split('/').count());
    all
}

/// One overlay to make.
pub(super) struct Wanted<'a> {
    /// The mount it lies in, as a path of the host and of the sandbox.
    pub(super) source: &'a LexicalPath,
    pub(super) destination: &'a LexicalPath,
    /// The path below both.
    pub(super) below: &'a str,
    /// The key that asks for it, if one does: then it must be possible.
    pub(super) key: Option<String>,
}

impl Work<'_> {
    /// Adds overlays and the binds that hold their parents in place. Returns the directories that
    /// the launch has to make.
    pub(super) fn overlays(
        &mut self,
        cover: &mut Cover,
        cwd: &LexicalPath,
        linked: Option<Linked>,
    ) -> Vec<Utf8PathBuf> {
        let Some(base) = cover.at(cwd).and_then(|number| self.drafts.get(number)) else {
            return Vec::new();
        };
        let (source, destination) = (base.mount.source.clone(), base.mount.destination.clone());
        let writable = base.mount.mode == MountMode::ReadWrite;
        let mut ephemeral = Vec::new();
        let list = protected_paths(self.block);
        let protects = !list.is_empty();
        for (below, index) in list {
            let key = index.map(|index| format!("isolation.protect[{index}]"));
            if let (Some(key), Err(error)) = (&key, source.join(below)) {
                let problem = Diagnostic::error(Code::InvalidValue, "not a path below the cwd");
                let problem = problem.path(key).found(below);
                self.problems.push(problem.hint(format!("write it relative to the cwd ({error})")));
            } else if writable {
                let wanted = Wanted { source: &source, destination: &destination, below, key };
                ephemeral.extend(self.overlay(cover, &wanted));
            }
        }
        if writable && !protects {
            self.residual_risks.push(format!(
                "`isolation.protect: []` protects nothing in {source}, so the agent can write what \
                 tools outside the sandbox obey: {}",
                DEFAULT_PROTECT.join(", ")
            ));
        }
        if !self.absent.is_empty() {
            let absent = self.absent.join(", ");
            self.residual_risks.push(format!(
                "absent in {source}, so the agent can create it and tools outside the sandbox would \
                 obey it: {absent}"
            ));
        }
        if writable && protects {
            // A `.git` that is a file leads nowhere here, a link is named as a risk anyway.
            if let Ok(repository) = source.child(".git") {
                self.redirection(&repository);
                if existing_directory(self.probe, &repository).as_ref() == Some(&repository) {
                    let mut search = GitTree::new(&source);
                    self.git_tree(cover, &mut search, &repository, &source);
                    ephemeral.append(&mut search.made);
                }
            }
        }
        if let Some(linked) = linked {
            ephemeral.extend(self.linked_overlays(cover, linked, protects));
        }
        ephemeral
    }

    /// A file `commondir` makes git take configuration and hooks from the directory that it names. Git
    /// makes it only for linked worktrees; as long as it is absent nothing can be bound over it.
    pub(super) fn redirection(&mut self, repository: &LexicalPath) {
        if self.redirectable(repository) {
            self.residual_risks.push(format!(
                "`{repository}/{REDIRECTION}` does not exist: the agent can create it, and git outside \
                 the sandbox then obeys a configuration of the agent's"
            ));
        }
    }

    /// Whether that file could be made; a problem if it is there.
    pub(super) fn redirectable(&mut self, repository: &LexicalPath) -> bool {
        let Ok(file) = repository.child(REDIRECTION) else { return false };
        if !self.is_directory(&file) {
            return false;
        }
        let Ok(seen) = self.probe.resolve(&file) else { return false };
        if seen.object.is_none() && seen.path == file {
            return true;
        }
        let problem = Diagnostic::error(
            Code::FileTrust,
            format!(
                "`{file}` makes git outside the sandbox obey a configuration kept elsewhere, and git \
                 itself makes no such file in a repository of its own"
            ),
        );
        let hint = "look at what it names, run no git there before, and remove it";
        self.problems.push(problem.path("cwd").hint(hint));
        false
    }

    pub(super) fn overlay(
        &mut self,
        cover: &mut Cover,
        wanted: &Wanted<'_>,
    ) -> Option<Utf8PathBuf> {
        let source = wanted.source.join(wanted.below).ok()?;
        let place = wanted.destination.join(wanted.below).ok()?;
        let around = cover.deepest(&place).and_then(|number| self.drafts.get(number))?;
        if around.mount.mode == MountMode::ReadOnly {
            return None;
        }
        // A file where a directory is needed means that there is nothing to protect, as yet.
        let seen = self.probe.resolve(&source).ok();
        let link = seen.as_ref().is_some_and(|seen| seen.path != source);
        let object = seen.as_ref().and_then(|seen| seen.object);
        let kind = object.map(|object| object.kind);
        let fits = matches!(kind, Some(FileKind::File | FileKind::Directory));
        let named = source.file_name() == Some("hooks") && wanted.key.is_none();
        let hooks = wanted.below == HOOKS || named;
        let made = kind.is_none() && !link && hooks && self.is_directory(&source);
        if link || !(fits || made) {
            self.unprotected(wanted, &source, link, kind.is_some());
            return None;
        }
        self.hold_parents(cover, &place);
        let mount = Mount {
            source: source.clone(),
            identity: object.map(|object| object.identity),
            kind: kind.or(Some(FileKind::Directory)),
            destination: place,
            mode: MountMode::ReadOnly,
            origin: MountOrigin::Overlay { path: wanted.below.to_owned() },
        };
        let nothing = Resolved::nothing_at(source.clone());
        let resolved = seen.unwrap_or(nothing);
        self.add(Draft { mount, written: wanted.below.to_owned(), resolved }, cover);
        made.then(|| source.as_path().to_owned())
    }

    /// Whether the parent of `path` is a real directory, not a link to one.
    fn is_directory(&self, path: &LexicalPath) -> bool {
        let parent = path.parent();
        let seen = parent.as_ref().and_then(|parent| self.probe.resolve(parent).ok());
        seen.is_some_and(|seen| {
            Some(&seen.path) == parent.as_ref()
                && seen.object.is_some_and(|object| object.kind == FileKind::Directory)
        })
    }

    fn unprotected(&mut self, wanted: &Wanted<'_>, source: &LexicalPath, link: bool, odd: bool) {
        let what = match (link, odd) {
            (true, _) => "is, or lies behind, a symbolic link and cannot be bound over",
            (_, true) => "is neither a file nor a directory and cannot be bound over",
            _ => {
                self.absent.push(wanted.below.to_owned());
                return;
            }
        };
        match &wanted.key {
            Some(key) => {
                let problem = Diagnostic::error(Code::InvalidValue, format!("`{source}` {what}"));
                self.problems.push(problem.path(key).hint("protect what it leads to, or drop it"));
            }
            None => self.residual_risks.push(format!("`{source}` {what}")),
        }
    }

    /// Binds each directory between the covering mount and `place` onto itself: a mount point cannot
    /// be renamed, so the overlay cannot be moved out of the way together with its parent.
    fn hold_parents(&mut self, cover: &mut Cover, place: &LexicalPath) {
        let Some(around) = cover.deepest(place).and_then(|number| self.drafts.get(number)) else {
            return;
        };
        let (base, source) = (around.mount.destination.clone(), around.mount.source.clone());
        let mode = around.mount.mode;
        let Some(below) = place.below(&base) else { return };
        let (mut here, mut host) = (base.clone(), source);
        let Some((parents, _)) = below.rsplit_once('/') else { return };
        for component in parents.split('/') {
            let (Ok(next), Ok(next_host)) = (here.child(component), host.child(component)) else {
                return;
            };
            (here, host) = (next, next_host);
            let Ok(resolved) = self.probe.resolve(&host) else { return };
            let mount = Mount {
                source: host.clone(),
                identity: resolved.object.map(|object| object.identity),
                kind: resolved.object.map(|object| object.kind),
                destination: here.clone(),
                mode,
                origin: MountOrigin::SelfBind,
            };
            self.add(Draft { mount, written: here.to_string(), resolved }, cover);
        }
    }
}
