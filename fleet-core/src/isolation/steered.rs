//! Where a path leads by the choice of an agent: through a link that lies in a directory which some
//! agent of the fleet may write.

use std::fmt;

use super::forbidden::{AgentDirectory, ForbiddenList};
use super::policy::Mount;
use crate::path::LexicalPath;
use crate::port::{FollowedLink, PathProbe, Resolved};

/// What to do about such a link.
pub(crate) const REMEDY: &str = "if you made this link, write the path that it leads to; if you did \
                                 not, an agent did: look at it first";

/// A link that an agent can change, on the way to something outside of the directory that it lies in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Steered {
    target: LexicalPath,
    link: LexicalPath,
    directory: LexicalPath,
}

impl fmt::Display for Steered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "leads to `{}` through the link `{}`, which lies in `{}`, where an agent may write",
            self.target, self.link, self.directory
        )
    }
}

impl From<&Mount> for AgentDirectory {
    fn from(mount: &Mount) -> Self {
        Self { path: mount.source.clone(), identity: mount.identity }
    }
}

/// The first link on the way that lies in a directory of `own` or of any agent of the fleet and leads
/// out of it.
pub(crate) fn steering(
    resolved: &Resolved,
    own: &[AgentDirectory],
    forbidden: &ForbiddenList,
    probe: &dyn PathProbe,
) -> Option<Steered> {
    if resolved.links.is_empty() {
        return None;
    }
    let directories = || own.iter().chain(forbidden.agent_directories(probe));
    resolved.links.iter().find_map(|link| {
        let directory = directories().find(|it| steers(it, link, resolved))?;
        Some(Steered {
            target: resolved.path.clone(),
            link: link.at.clone(),
            directory: directory.path.clone(),
        })
    })
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
