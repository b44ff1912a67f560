//! The role's own directories, which fleet mounts of its own accord.

use camino::Utf8Path;

use super::{Work, lexical};
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::forbidden::Side;
use crate::isolation::policy::{MountMode, MountOrigin};
use crate::path::LexicalPath;
use crate::port::{FileKind, Resolved};

/// Owner may do all, the group may look, others nothing.
const WIDEST_MODE: u32 = 0o750;

impl Work<'_> {
    /// Mounts STATE, the harness home and the handout at the paths that the agent is told.
    pub(super) fn own_directories(&mut self) {
        let trees = self.context.trees;
        let own: [(&Utf8Path, MountMode, MountOrigin); 3] = [
            (&trees.state, MountMode::ReadWrite, MountOrigin::State),
            (self.context.harness_home, MountMode::ReadWrite, MountOrigin::HarnessHome),
            (&trees.handout, MountMode::ReadOnly, MountOrigin::Handout),
        ];
        for (path, mode, origin) in own {
            let place = match lexical(path) {
                Ok(place) => place,
                Err(problem) => {
                    self.problems.push(*problem);
                    continue;
                }
            };
            let Some(resolved) = self.look(place.as_str(), &place, &origin) else { continue };
            if let Some(problem) = self.not_as_made(&place, &resolved) {
                self.problems.push(problem);
                continue;
            }
            if origin == MountOrigin::State {
                self.own.state = Some(resolved.path.clone());
            }
            self.own.fleet.push(resolved.path.clone());
            if self.judge(Side::Source, place.as_str(), &resolved, mode, &origin) {
                self.push(place.as_str(), resolved, place.clone(), mode, origin);
            }
        }
    }

    /// Mounts the shared items of the harness home. Each was judged when it was found, and is again:
    /// what is said of a policy holds for all of its mounts.
    pub(super) fn shared_items(&mut self) {
        self.context.shared.extend(&mut self.own);
        for item in &self.context.shared.items {
            let origin = MountOrigin::SharedItem { name: item.name.clone() };
            let written = item.target.as_str();
            let Some(resolved) = self.look(written, &item.target, &origin) else { continue };
            let mode = MountMode::ReadOnly;
            if resolved.path == item.target
                && self.judge(Side::Source, written, &resolved, mode, &origin)
            {
                self.push(written, resolved, item.destination.clone(), mode, origin);
            }
        }
    }

    /// What is wrong with an own directory: it must be where the layout says, free of links below
    /// the state root, and nobody else's. An agent can write in two of these trees, so anything else
    /// may be its doing.
    fn not_as_made(&self, place: &LexicalPath, resolved: &Resolved) -> Option<Diagnostic> {
        let problem =
            |message: String| Some(Diagnostic::error(Code::FileTrust, message).path("isolation"));
        if !self.is_nominal(place, resolved) {
            return problem(format!(
                "`{place}` leads to `{}`: a directory of the role must not be a link",
                resolved.path
            ));
        }
        let object = resolved.object?;
        if object.kind != FileKind::Directory {
            return problem(format!("`{place}` is not a directory"));
        }
        if object.uid != self.context.uid {
            return problem(format!(
                "`{place}` belongs to uid {}, not to the fleet user (uid {})",
                object.uid, self.context.uid
            ));
        }
        if object.mode & 0o777 & !WIDEST_MODE != 0 {
            let mode = object.mode & 0o777;
            return problem(format!("`{place}` has mode {mode:04o}, wider than {WIDEST_MODE:04o}"))
                .map(|problem| problem.hint(format!("chmod 0700 {place}")));
        }
        None
    }

    /// The state root itself may be reached through links, an operator's choice; nothing below it.
    fn is_nominal(&self, place: &LexicalPath, resolved: &Resolved) -> bool {
        let forbidden = self.context.forbidden;
        let root = forbidden.entries().iter().find(|entry| entry.state_root);
        let moved = root.and_then(|root| {
            let below = place.below(&root.path)?;
            root.resolved.join(below).ok()
        });
        moved.is_some_and(|moved| moved == resolved.path)
    }
}
