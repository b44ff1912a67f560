//! Modes of the fleet's own directories and files, put back where their owner was locked out or others
//! were let in.
//!
//! Under Landlock an agent can change the mode of everything that belongs to the user. Without this one
//! `chmod` would keep fleet from stopping it, and every other role.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::error_chain::chain;
use fleet_core::port::EntryKind;

use super::Runtime;

/// Where `HOME` and `TMPDIR` of a role under Landlock are, in its state.
const PRIVATE: &str = ".sandbox";

/// Gives the state tree its modes back as far as fleet needs it to find, stop and start roles: its
/// directories, those of each role, and the files and sockets of each control directory. One line for
/// each that was changed or could not be.
///
/// # Security
/// Only gives the rights that fleet gives, only to directories, regular files and sockets of the fleet
/// user, and follows no link.
pub fn mend(runtime: &Runtime) -> Vec<String> {
    let layout = &runtime.world.layout;
    let mut work = Work { runtime, said: Vec::new() };
    // From the top down: what lies in a closed directory cannot be looked at.
    work.mend(layout.root());
    for name in ["control", "agents", "handout", "harness", "locks"] {
        work.mend(&layout.root().join(name));
    }
    for (name, _) in work.entries(&layout.control_root(), EntryKind::Directory) {
        let Ok(role) = name.parse() else { continue };
        let trees = runtime.trees(&role);
        for tree in trees.all() {
            work.mend(tree);
        }
        for kind in [EntryKind::File, EntryKind::Other] {
            for (_, file) in work.entries(&trees.control, kind) {
                work.mend(&file);
            }
        }
        // What the role itself needs of its own.
        let private = trees.state.join(PRIVATE);
        for own in [&trees.worklog(), &private] {
            work.mend(own);
        }
        for (_, directory) in work.entries(&private, EntryKind::Directory) {
            work.mend(&directory);
        }
    }
    work.said
}

struct Work<'a> {
    runtime: &'a Runtime,
    said: Vec<String>,
}

impl Work<'_> {
    fn entries(&self, directory: &Utf8Path, kind: EntryKind) -> Vec<(String, Utf8PathBuf)> {
        let entries = self.runtime.ports.store.list(directory).ok().flatten().unwrap_or_default();
        let fitting = entries.into_iter().filter(|entry| entry.kind == kind);
        fitting.map(|entry| (entry.name.clone(), directory.join(entry.name))).collect()
    }

    fn mend(&mut self, path: &Utf8Path) {
        match self.runtime.ports.store.mend(path) {
            Ok(None) => {}
            Ok(Some(before)) if before & 0o600 == 0o600 => self.said.push(format!(
                "{path} had been opened to others (mode {before:04o}) and is closed again: an agent under \
                 `backend: landlock` can do that"
            )),
            Ok(Some(before)) => self.said.push(format!(
                "the rights to {path} had been taken from its owner (mode {before:04o}) and are given \
                 back: an agent under `backend: landlock` can do that"
            )),
            Err(error) => self.said.push(chain(&error)),
        }
    }
}
