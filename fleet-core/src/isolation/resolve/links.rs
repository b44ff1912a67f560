//! Links on the way to a source that an agent can change: at the next launch it would decide what is
//! mounted.

use super::{Linked, Work};
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::forbidden::AgentDirectory;
use crate::isolation::policy::{MountMode, MountOrigin};
use crate::port::{FollowedLink, Resolved};

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
        let own = own.map(|draft| AgentDirectory {
            path: draft.mount.source.clone(),
            identity: draft.mount.identity,
        });
        let mut directories: Vec<AgentDirectory> = own.collect();
        directories.extend_from_slice(self.context.forbidden.agent_directories(self.probe));
        for Linked { written, origin, resolved } in &self.linked {
            let steered = resolved.links.iter().find_map(|link| {
                let directory = directories.iter().find(|it| steers(it, link, resolved))?;
                Some((link, directory))
            });
            let Some((link, directory)) = steered else { continue };
            let message = format!(
                "leads to `{}` through the link `{}`, which lies in `{}`, where an agent may write: \
                 it would choose what is mounted",
                resolved.path, link.at, directory.path
            );
            self.problems.push(
                Diagnostic::error(Code::Conflict, message).path(origin.key()).found(written).hint(
                    "if you made this link, write the path that it leads to; if you did not, an \
                         agent did: look at it first",
                ),
            );
        }
    }
}

fn steers(directory: &AgentDirectory, link: &FollowedLink, resolved: &Resolved) -> bool {
    let is_it = |identity| directory.identity == Some(identity);
    let holds_link = link.above.iter().copied().any(is_it)
        || (link.at != directory.path && link.at.is_within(&directory.path));
    let holds_target = resolved.ancestors.iter().copied().any(is_it)
        || resolved.object.is_some_and(|object| is_it(object.identity))
        || resolved.path.is_within(&directory.path);
    holds_link && !holds_target
}
