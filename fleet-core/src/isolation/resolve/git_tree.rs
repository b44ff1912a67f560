//! What git obeys inside a repository that a role may write: the parts of it with a configuration of
//! their own, and what those configurations name.
//!
//! Everything here may be the agent's work from an earlier launch. So what can't be looked through is
//! refused: it would hide a part that was protected before. What was protected once can't have been
//! removed, since mount points can't.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;

use super::Work;
use super::destinations::Cover;
use super::git_config::{Obeyed, obeyed, words};
use super::git_links::{existing_directory, follow, pointer, text};
use super::overlays::Wanted;
use super::repository::{CONFIG_LIMIT, WORKTREE_CONFIG, core_worktree};
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::policy::MountMode;
use crate::path::LexicalPath;
use crate::port::FileKind;

/// Directories looked at below one repository, and names in one of them.
const MOST: usize = 4096;
/// Levels of directories below one repository.
const DEEPEST: usize = 32;
/// Configuration files that include one another.
const MOST_INCLUDED: usize = 64;
/// What a git directory holds beside git directories.
const CONTENT: &[&str] = &[
    "objects",
    "refs",
    "logs",
    "hooks",
    "info",
    "branches",
    "lfs",
    "rr-cache",
    "annex",
    "svn",
    "reftable",
    "worktrees",
];

/// One search through a repository.
pub(super) struct GitTree<'a> {
    /// The working directory of the role.
    pub(super) cwd: &'a LexicalPath,
    /// Directories to make for the launch.
    pub(super) made: Vec<Utf8PathBuf>,
    /// Directories seen so far.
    seen: usize,
    /// Git directories that have no `commondir`.
    open: Vec<String>,
    /// What was said already.
    said: BTreeSet<String>,
}

impl<'a> GitTree<'a> {
    pub(super) fn new(cwd: &'a LexicalPath) -> Self {
        Self { cwd, made: Vec::new(), seen: 0, open: Vec::new(), said: BTreeSet::new() }
    }
}

impl Work<'_> {
    /// Protects the parts of a repository, a real directory, whose own configuration and hooks are
    /// covered already. `tree` is its working directory.
    pub(super) fn git_tree(
        &mut self,
        cover: &mut Cover,
        it: &mut GitTree<'_>,
        repository: &LexicalPath,
        tree: &LexicalPath,
    ) {
        if let Ok(config) = repository.child("config") {
            self.git_config(cover, it, &config, tree);
        }
        if !self.writable(cover, repository) {
            return;
        }
        self.worktrees(cover, it, repository);
        self.modules(cover, it, repository);
        if !it.open.is_empty() {
            let open = std::mem::take(&mut it.open).join(", ");
            self.residual_risks.push(format!(
                "a file `commondir` that the agent creates in one of these makes git outside the \
                 sandbox obey a configuration of the agent's: {open}"
            ));
        }
    }

    fn writable(&self, cover: &Cover, path: &LexicalPath) -> bool {
        let around = cover.deepest(path).and_then(|number| self.drafts.get(number));
        around.is_some_and(|draft| {
            draft.mount.mode == MountMode::ReadWrite
                && draft.mount.source == draft.mount.destination
        })
    }

    /// Makes what exists at a path read-only.
    fn shut(&mut self, cover: &mut Cover, it: &mut GitTree<'_>, path: &LexicalPath) {
        let made = match (path.below(it.cwd), path.parent(), path.file_name()) {
            (Some(below), ..) => {
                let wanted = Wanted { source: it.cwd, destination: it.cwd, below, key: None };
                self.overlay(cover, &wanted)
            }
            (None, Some(parent), Some(below)) => {
                let wanted = Wanted { source: &parent, destination: &parent, below, key: None };
                self.overlay(cover, &wanted)
            }
            _ => None,
        };
        it.made.extend(made);
    }

    fn shut_if_there(
        &mut self,
        cover: &mut Cover,
        it: &mut GitTree<'_>,
        path: &LexicalPath,
    ) -> bool {
        // What can't be looked at is there, as far as one can tell.
        let there = self
            .probe
            .resolve(path)
            .map_or(true, |seen| seen.object.is_some() || seen.path != *path);
        if there {
            self.shut(cover, it, path);
        }
        there
    }

    /// The real directories in one, or a problem if it can't be looked through.
    fn directories(&mut self, it: &mut GitTree<'_>, directory: &LexicalPath) -> Vec<LexicalPath> {
        let mut found = Vec::new();
        match self.probe.entries(directory, MOST) {
            Ok(names) if names.len() < MOST => {
                for child in names.iter().filter_map(|name| directory.child(name).ok()) {
                    match self.probe.resolve(&child) {
                        Ok(seen) if seen.path != child => self.say(it, behind_link(&child)),
                        Ok(seen) => {
                            let kind = seen.object.map(|object| object.kind);
                            if kind == Some(FileKind::Directory) {
                                found.push(child);
                            }
                        }
                        Err(_) => self.unsearchable(&child),
                    }
                }
            }
            _ => self.unsearchable(directory),
        }
        it.seen += found.len();
        if it.seen > MOST {
            self.unsearchable(directory);
            found.clear();
        }
        found
    }

    fn unsearchable(&mut self, directory: &LexicalPath) {
        let message = format!(
            "`{directory}` cannot be looked through, or holds more than a repository does: what git \
             outside the sandbox obeys in it would not be protected"
        );
        if self.problems.iter().any(|it| it.path == "cwd" && it.code == Code::FileTrust) {
            return;
        }
        let hint = "look at it, run no git there before, and remove what git did not make";
        self.problems.push(Diagnostic::error(Code::FileTrust, message).path("cwd").hint(hint));
    }

    fn say(&mut self, it: &mut GitTree<'_>, risk: String) {
        if it.said.insert(risk.clone()) {
            self.residual_risks.push(risk);
        }
    }

    /// What belongs to the other working directories of a repository, and to the main one beside them.
    fn worktrees(&mut self, cover: &mut Cover, it: &mut GitTree<'_>, repository: &LexicalPath) {
        let mut all = Vec::new();
        if let Some(worktrees) = self.part_of(it, repository, "worktrees") {
            all = self.directories(it, &worktrees);
        }
        for admin in &all {
            for name in ["commondir", "gitdir"] {
                if let Ok(file) = admin.child(name) {
                    self.shut_if_there(cover, it, &file);
                }
            }
            let back = admin.child("gitdir").ok();
            let back = back.and_then(|file| pointer(self.probe, &file, ""));
            if let Some(file) = back.and_then(|back| follow(admin, &back)) {
                self.shut_pointer(cover, it, &file);
            }
        }
        for directory in [repository].into_iter().chain(&all) {
            let Ok(file) = directory.child(WORKTREE_CONFIG) else { continue };
            if !self.shut_if_there(cover, it, &file) {
                self.worktree_config(directory, repository);
            }
        }
    }

    /// The `.git` file of a working directory, if the role could write it.
    fn shut_pointer(&mut self, cover: &mut Cover, it: &mut GitTree<'_>, file: &LexicalPath) {
        let Ok(seen) = self.probe.resolve(file) else { return };
        let plain = seen.object.is_some_and(|object| object.kind == FileKind::File);
        if plain && seen.path.file_name() == Some(".git") && self.writable(cover, &seen.path) {
            self.shut(cover, it, &seen.path);
        }
    }

    /// A directory of a repository, which git would also find behind a link.
    fn part_of(
        &mut self,
        it: &mut GitTree<'_>,
        repository: &LexicalPath,
        name: &str,
    ) -> Option<LexicalPath> {
        let part = repository.child(name).ok()?;
        match self.probe.resolve(&part) {
            Ok(seen) if seen.path != part => {
                self.say(it, behind_link(&part));
                None
            }
            Ok(seen) => {
                let kind = seen.object.map(|object| object.kind);
                (kind == Some(FileKind::Directory)).then_some(part)
            }
            Err(_) => {
                self.unsearchable(&part);
                None
            }
        }
    }

    /// The repositories of submodules, which may have names with `/` and submodules of their own. A
    /// directory is one if it has a `config`: git makes that for each, and it can't be removed as long
    /// as it is protected.
    fn modules(&mut self, cover: &mut Cover, it: &mut GitTree<'_>, repository: &LexicalPath) {
        let Some(root) = self.part_of(it, repository, "modules") else { return };
        let mut left = vec![(root, 0)];
        while let Some((directory, depth)) = left.pop() {
            if depth > DEEPEST {
                self.unsearchable(&directory);
                return;
            }
            let repository = self.has_config(&directory);
            if repository {
                self.submodule_directory(cover, it, &directory);
            }
            for child in self.directories(it, &directory) {
                let content = child.file_name().is_some_and(|name| CONTENT.contains(&name));
                if !(repository && content) || self.has_config(&child) {
                    left.push((child, depth + 1));
                }
            }
        }
    }

    fn has_config(&self, directory: &LexicalPath) -> bool {
        let config = directory.child("config").ok();
        let seen = config.and_then(|config| self.probe.resolve(&config).ok());
        seen.is_some_and(|seen| {
            seen.object.is_some_and(|object| object.kind != FileKind::Directory)
        })
    }

    fn submodule_directory(
        &mut self,
        cover: &mut Cover,
        it: &mut GitTree<'_>,
        directory: &LexicalPath,
    ) {
        let Ok(config) = directory.child("config") else { return };
        let tree = text(self.probe, &config, CONFIG_LIMIT).and_then(|text| core_worktree(&text));
        let tree = tree.and_then(|tree| existing_directory(self.probe, &follow(directory, &tree)?));
        if let Some(file) = tree.as_ref().and_then(|tree| tree.child(".git").ok()) {
            self.shut_pointer(cover, it, &file);
        }
        if !self.writable(cover, directory) {
            return;
        }
        self.shut(cover, it, &config);
        if let Ok(hooks) = directory.child("hooks") {
            self.shut(cover, it, &hooks);
        }
        self.worktrees(cover, it, directory);
        if self.redirectable(directory) {
            it.open.push(directory.to_string());
        }
        self.git_config(cover, it, &config, tree.as_ref().unwrap_or(directory));
    }

    /// What a configuration names beside itself: included files are protected, programs are named.
    fn git_config(
        &mut self,
        cover: &mut Cover,
        it: &mut GitTree<'_>,
        config: &LexicalPath,
        tree: &LexicalPath,
    ) {
        let mut left = vec![config.clone()];
        let mut read = BTreeSet::new();
        while let Some(file) = left.pop() {
            let Ok(seen) = self.probe.resolve(&file) else { continue };
            if seen.object.is_none() || !read.insert(seen.path.clone()) {
                continue;
            }
            let (found, whole) = match text(self.probe, &seen.path, CONFIG_LIMIT) {
                Some(text) if read.len() <= MOST_INCLUDED => obeyed(&text),
                _ => (Vec::new(), false),
            };
            if !whole {
                let risk = format!(
                    "`{file}` is not understood: what else git obeys or runs because of it is not protected"
                );
                self.say(it, risk);
            }
            for obeyed in found {
                match obeyed {
                    Obeyed::Include(path) => {
                        let from = seen.path.parent().unwrap_or_else(LexicalPath::root);
                        let Some(path) = self.named(&from, &path) else { continue };
                        self.included(cover, it, &file, &path);
                        left.push(path);
                    }
                    Obeyed::Hooks(path) => {
                        let Some(path) = self.named(tree, &path) else { continue };
                        if self.reachable(cover, &path) {
                            self.say(it, runs(&file, "core.hooksPath", &path));
                        }
                    }
                    Obeyed::Command(name, command) => {
                        for word in words(&command) {
                            if let Some(path) = self.program(tree, word)
                                && self.reachable(cover, &path)
                            {
                                self.say(it, runs(&file, &name, &path));
                            }
                        }
                    }
                }
            }
        }
    }

    /// A path of a configuration.
    fn named(&self, from: &LexicalPath, path: &str) -> Option<LexicalPath> {
        match path.strip_prefix("~/") {
            Some(below) => {
                follow(&LexicalPath::absolute(self.context.homes.os.as_str()).ok()?, below)
            }
            None => follow(from, path),
        }
    }

    /// A word of a command, if it is the name of a file that is there or could be made.
    fn program(&self, tree: &LexicalPath, word: &str) -> Option<LexicalPath> {
        let path = self.named(tree, word)?;
        let there =
            |path: &LexicalPath| self.probe.resolve(path).is_ok_and(|seen| seen.object.is_some());
        let clear = ["/", "./", "../", "~/"].iter().any(|start| word.starts_with(start));
        let fits = clear
            || there(&path)
            || (word.contains('/') && path.parent().is_some_and(|parent| there(&parent)));
        fits.then_some(path)
    }

    /// Whether the role could change what is found at a path: there, or behind a link.
    fn reachable(&self, cover: &Cover, path: &LexicalPath) -> bool {
        let behind = self.probe.resolve(path).ok().map(|seen| seen.path);
        self.writable(cover, path) || behind.is_some_and(|behind| self.writable(cover, &behind))
    }

    fn included(
        &mut self,
        cover: &mut Cover,
        it: &mut GitTree<'_>,
        by: &LexicalPath,
        path: &LexicalPath,
    ) {
        let seen = self.probe.resolve(path).ok();
        let there = seen.as_ref().is_some_and(|seen| seen.object.is_some());
        let behind = seen.map(|seen| seen.path).filter(|behind| behind != path);
        if there {
            for place in [Some(path.clone()), behind].into_iter().flatten() {
                if self.writable(cover, &place) {
                    self.shut(cover, it, &place);
                }
            }
        } else if self.reachable(cover, path) {
            self.say(it, format!("`{by}` includes `{path}`, which the agent can create"));
        }
    }
}

fn behind_link(path: &LexicalPath) -> String {
    format!("`{path}` is a symbolic link: what git obeys behind it is not protected")
}

fn runs(config: &LexicalPath, name: &str, path: &LexicalPath) -> String {
    format!(
        "`{config}` makes git outside the sandbox run `{path}` ({name}), which the agent can write; \
         `isolation.protect` can keep it from that"
    )
}
