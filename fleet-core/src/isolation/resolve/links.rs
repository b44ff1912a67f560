//! Links on the way to a source that an agent can change: at the next launch it would decide what is
//! mounted.

use super::{Linked, Work};
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::forbidden::AgentDirectory;
use crate::isolation::policy::{MountMode, MountOrigin};
use crate::isolation::steered::{REMEDY, steering};
use crate::port::Resolved;

impl Work<'_> {
    /// Remembers a source that was reached through links, whatever becomes of its mount.
    pub(super) fn note_links(&mut self, written: &str, origin: &MountOrigin, resolved: &Resolved) {
        if !resolved.links.is_empty() {
            let (written, origin, resolved) =
                (written.to_owned(), origin.clone(), resolved.clone());
            self.linked.push(Linked { written, origin, resolved });
        }
    }

    /// Refuses each source that is reached through a link in a directory which some agent may write,
    /// unless the link leads to something in that very directory.
    pub(super) fn links_are_out_of_reach(&mut self) {
        if self.linked.is_empty() {
            return;
        }
        let own = self.drafts.iter().filter(|draft| draft.mount.mode == MountMode::ReadWrite);
        let own: Vec<AgentDirectory> = own.map(|draft| (&draft.mount).into()).collect();
        for Linked { written, origin, resolved } in &self.linked {
            let Some(steered) = steering(resolved, &own, self.context.forbidden, self.probe) else {
                continue;
            };
            let message = format!("{steered}: it would choose what is mounted");
            self.problems.push(
                Diagnostic::error(Code::Conflict, message)
                    .path(origin.key())
                    .found(written)
                    .hint(REMEDY),
            );
        }
    }
}
