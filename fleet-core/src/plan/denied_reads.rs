//! What the tools of a role must not read where no boundary hides it from them: the paths that no
//! sandbox would show, for the settings of the harness itself.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use crate::harness::{HomeSpec, LaunchDirs};
use crate::id::RoleName;
use crate::isolation::forbidden::{Entry, ForbiddenList, Tier};
use crate::layout::RoleTrees;
use crate::path::LexicalPath;
use crate::permissions::{DeniedRead, Filesystem};
use crate::port::PathProbe;

/// Names looked at in one directory. A home with more of them is not a home.
const MOST_NAMES: usize = 1 << 16;

/// Whose reading it is about.
#[derive(Debug, Clone, Copy)]
pub struct DeniedReadsRequest<'a> {
    /// What no role may reach.
    pub forbidden: &'a ForbiddenList,
    /// The role's trees. Those of its siblings lie beside them.
    pub trees: &'a RoleTrees,
    /// The role's directories, which are never denied.
    pub dirs: &'a LaunchDirs,
    /// The roles of the fleet, whether they were ever started or not.
    pub roles: &'a [&'a RoleName],
    /// The operator's home of the role's own harness, and what of it every role sees.
    pub operator: Option<(&'a LexicalPath, &'a HomeSpec)>,
}

/// What is denied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeniedReads {
    /// The paths, links followed, none inside another, in their order.
    pub paths: Vec<DeniedRead>,
    /// Paths that should be and are not: the role's own directories lie inside.
    pub open: Vec<LexicalPath>,
}

/// Finds the paths: of the forbidden ones those that no role may see in any mode, with the trees of
/// every other role in place of the state root around all of them, and with the rest of the operator's
/// harness home in place of that home. Pure: nothing is made, the file system is asked through `probe`.
///
/// # Security
/// About the moment of the call. A role that comes later has its control closed from the start, its
/// other trees only from the next launch of this role on.
pub fn denied_reads(request: &DeniedReadsRequest<'_>, probe: &dyn PathProbe) -> DeniedReads {
    let mut found = Search { request, probe, found: Vec::new() };
    let operator = request.operator.map(|(home, spec)| (found.real(home).path, spec));
    if let Some((home, spec)) = &operator {
        found.operator(home, spec);
    }
    let home_itself =
        |entry: &&Entry| operator.as_ref().is_some_and(|(home, _)| entry.resolved == *home);
    let entries = request.forbidden.entries().iter();
    for entry in entries.filter(|it| it.tier == Tier::NoExposure && !home_itself(it)) {
        if entry.state_root {
            found.state_root(&entry.path);
        } else {
            found.add(&entry.path);
        }
    }
    for path in request.forbidden.names(Tier::NoExposure, probe) {
        found.add(&path);
    }
    found.finish()
}

struct Search<'a> {
    request: &'a DeniedReadsRequest<'a>,
    probe: &'a dyn PathProbe,
    found: Vec<DeniedRead>,
}

impl Search<'_> {
    /// Where a path leads. What cannot be looked at is taken as it is written.
    fn real(&self, path: &LexicalPath) -> DeniedRead {
        match self.probe.resolve(path) {
            Ok(resolved) => DeniedRead { path: resolved.path, exists: resolved.object.is_some() },
            Err(_) => DeniedRead { path: path.clone(), exists: false },
        }
    }

    fn real_own(&self, path: &Utf8Path) -> Option<LexicalPath> {
        LexicalPath::absolute(path.as_str()).ok().map(|path| self.real(&path).path)
    }

    fn add(&mut self, path: &LexicalPath) {
        let real = self.real(path);
        self.found.push(real);
    }

    fn names(&self, directory: &LexicalPath) -> Vec<String> {
        self.probe.entries(directory, MOST_NAMES).unwrap_or_default()
    }

    /// All of the operator's home but what a role sees of it. The login is read by the program and by
    /// no tool of it.
    fn operator(&mut self, home: &LexicalPath, spec: &HomeSpec) {
        let seen: Vec<&str> = spec
            .shared
            .iter()
            .filter(|item| !item.below_account && !item.login)
            .map(|item| item.name)
            .collect();
        let mut names = self.names(home);
        names.retain(|name| !seen.contains(&name.as_str()));
        names.extend(spec.shared.iter().filter(|it| it.login).map(|it| it.name.to_owned()));
        for name in names {
            if let Ok(path) = home.child(&name) {
                self.add(&path);
            }
        }
    }

    /// What lies in the state root, but for the role's own trees.
    fn state_root(&mut self, root: &LexicalPath) {
        let trees = self.request.trees;
        // All control, the role's own included: it commands the runner.
        let control = trees.control.parent().and_then(|it| LexicalPath::absolute(it.as_str()).ok());
        if let Some(control) = control {
            self.add(&control);
        }
        let mut shared: BTreeSet<String> = BTreeSet::new();
        for tree in [&trees.state, &trees.harness, &trees.handout] {
            let Some(all) = tree.parent().and_then(|it| LexicalPath::absolute(it.as_str()).ok())
            else {
                continue;
            };
            shared.extend(all.file_name().map(str::to_owned));
            let mut siblings: BTreeSet<String> =
                self.names(&self.real(&all).path).into_iter().collect();
            siblings.extend(self.request.roles.iter().map(|role| role.as_str().to_owned()));
            siblings.retain(|name| tree.file_name() != Some(name.as_str()));
            for name in siblings {
                if let Ok(path) = all.child(&name) {
                    self.add(&path);
                }
            }
        }
        for name in self.names(&self.real(root).path) {
            if let (false, Ok(path)) = (shared.contains(&name), root.child(&name)) {
                self.add(&path);
            }
        }
    }

    /// Without what holds the role's own directories, or lies in those that are all its own.
    fn finish(mut self) -> DeniedReads {
        let LaunchDirs { state, cwd, git, harness_home, handout, .. } = self.request.dirs;
        let real = |dirs: &[&Utf8PathBuf]| -> Vec<LexicalPath> {
            dirs.iter().filter_map(|dir| self.real_own(dir)).collect()
        };
        let all_its_own = real(&[state, harness_home, &self.request.trees.harness, handout]);
        let mut own = all_its_own.clone();
        own.extend(real(&[cwd]));
        own.extend(real(&git.iter().collect::<Vec<_>>()));
        let mut denied = DeniedReads::default();
        self.found.sort_by(|one, other| one.path.cmp(&other.path));
        for it in self.found {
            if own.iter().any(|dir| dir.is_within(&it.path)) {
                denied.open.push(it.path);
            } else if !all_its_own.iter().any(|dir| it.path.is_within(dir))
                // What lies in a directory follows it at once.
                && !denied.paths.last().is_some_and(|last| it.path.is_within(&last.path))
            {
                denied.paths.push(it);
            }
        }
        denied.open.dedup();
        denied
    }
}

/// What the launch record says of it.
pub(super) fn denied_notes(
    denied: &DeniedReads,
    dirs: &LaunchDirs,
    filesystem: Filesystem,
) -> Vec<String> {
    let bounded = filesystem != Filesystem::Unrestricted;
    let mut notes: Vec<String> = denied
        .open
        .iter()
        .filter(|_| bounded)
        .map(|path| {
            format!("its tools may read `{path}`: directories of the role's own lie inside")
        })
        .collect();
    // The path is denied, not the file: with a directory above it moved, the same file has another.
    let cwd = LexicalPath::absolute(dirs.real(&dirs.cwd).as_str()).ok();
    let inside = |it: &&DeniedRead| {
        let between = |cwd: &LexicalPath| {
            it.path.parent().is_some_and(|above| above != *cwd && above.is_within(cwd))
        };
        cwd.as_ref().is_some_and(between)
    };
    if let Some(first) = denied.paths.iter().filter(|it| it.exists).find(inside)
        && filesystem == Filesystem::Workspace
    {
        notes.push(format!(
            "`{}` is denied to its tools and lies in the working directory: what can be moved there \
             can then be read",
            first.path
        ));
    }
    notes
}
