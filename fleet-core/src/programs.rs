//! Where fleet takes the programs from that it runs outside of every sandbox.
//!
//! Never from a directory that an agent of the fleet may write, nor from below one: what the agent of
//! one role leaves there would run with all rights of the user, by `doctor` or by the start of
//! another role.

use std::collections::HashSet;
use std::fmt;

use crate::config::{Fleet, Role};
use crate::isolation::forbidden::AgentDirectory;
use crate::layout::FleetLayout;
use crate::path::LexicalPath;
use crate::permissions::Filesystem;
use crate::port::{FileIdentity, PathProbe};

/// Where programs of the system are: all that counts while nobody knows what agents may write.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/opt", "/nix/store"];

/// Why a directory or a program is passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distrust {
    /// It lies in a directory that an agent of the fleet may write, or is reached through a link there.
    Agent(LexicalPath),
    /// The fleet does not load, so nobody knows what agents may write, and it is not of the system.
    FleetUnknown,
    /// It could not be looked at.
    Unreadable,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(directory) => write!(f, "an agent of the fleet may write `{directory}`"),
            Self::FleetUnknown => {
                f.write_str("the fleet does not load, and what agents may write is unknown")
            }
            Self::Unreadable => f.write_str("it cannot be looked at"),
        }
    }
}

/// A directory of fleet's own `PATH` in which no program is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The directory as the `PATH` names it.
    pub directory: LexicalPath,
    /// Why.
    pub why: Distrust,
}

/// What agents may write, looked at once: the one rule for every program that fleet runs itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramTrust {
    agent: Vec<AgentDirectory>,
    unknown: bool,
}

impl ProgramTrust {
    /// By what the roles of these fleets may write, and the state root. `complete` is false if some
    /// fleet file does not load.
    pub fn new<'a>(
        fleets: impl IntoIterator<Item = &'a Fleet>,
        complete: bool,
        layout: &FleetLayout,
        home: &LexicalPath,
        probe: &dyn PathProbe,
    ) -> Self {
        let mut paths: HashSet<LexicalPath> =
            LexicalPath::absolute(layout.root().as_str()).into_iter().collect();
        for role in fleets.into_iter().flat_map(|fleet| fleet.roles.values()) {
            // Around the home no role is isolated, and of the others nothing is promised: they
            // would take every program of the home away.
            let counts = |path: &&LexicalPath| !home.is_within(path);
            paths.extend(agent_dirs(role).filter(counts).cloned());
        }
        let look = |path: &LexicalPath| match probe.resolve(path) {
            Ok(it) => {
                AgentDirectory { path: it.path, identity: it.object.map(|object| object.identity) }
            }
            Err(_) => AgentDirectory { path: path.clone(), identity: None },
        };
        let mut agent: Vec<AgentDirectory> = paths.iter().map(look).collect();
        // Which of several is named must not change from run to run.
        agent.sort_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
        Self { agent, unknown: !complete }
    }

    /// Why nothing at this path is run; `None` if it may be.
    ///
    /// # Security
    /// By path and by identity, links followed, and each link on the way as well: whoever can change
    /// one decides what is run. The answer is about this moment.
    pub fn distrust(&self, path: &LexicalPath, probe: &dyn PathProbe) -> Option<Distrust> {
        let Ok(resolved) = probe.resolve(path) else { return Some(Distrust::Unreadable) };
        let object = resolved.object.map(|object| object.identity);
        let places = std::iter::once((&resolved.path, object, &resolved.ancestors))
            .chain(resolved.links.iter().map(|link| (&link.at, None, &link.above)));
        for (at, object, above) in places {
            if let Some(directory) = self.holder(at, object, above) {
                return Some(Distrust::Agent(directory.path.clone()));
            }
        }
        let mut system = SYSTEM.iter().filter_map(|path| LexicalPath::absolute(path).ok());
        (self.unknown && !system.any(|it| resolved.path.is_within(&it)))
            .then_some(Distrust::FleetUnknown)
    }

    fn holder(
        &self,
        at: &LexicalPath,
        object: Option<FileIdentity>,
        above: &[FileIdentity],
    ) -> Option<&AgentDirectory> {
        self.agent.iter().find(|directory| {
            let is_it = |identity: &FileIdentity| directory.identity == Some(*identity);
            at.is_within(&directory.path)
                || object.as_ref().is_some_and(is_it)
                || above.iter().any(is_it)
        })
    }

    /// Splits the directories of a `PATH`: those to search, in their order, and the others.
    pub fn split(
        &self,
        directories: Vec<LexicalPath>,
        probe: &dyn PathProbe,
    ) -> (Vec<LexicalPath>, Vec<PassedOver>) {
        let (mut search, mut passed) = (Vec::new(), Vec::new());
        for directory in directories {
            match self.distrust(&directory, probe) {
                None => search.push(directory),
                Some(why) => passed.push(PassedOver { directory, why }),
            }
        }
        (search, passed)
    }
}

/// What the agent of a role may write, as far as the fleet file says. Its own trees lie in the state
/// root, where no path of another role may lead.
pub(crate) fn agent_dirs(role: &Role) -> impl Iterator<Item = &LexicalPath> {
    let cwd = role.cwd.as_ref().filter(|_| role.permissions.filesystem != Filesystem::ReadOnly);
    let granted = role.isolation.iter().flat_map(|block| &block.fs_write).map(|it| &it.path);
    cwd.into_iter().chain(&role.write_dirs).chain(granted)
}
