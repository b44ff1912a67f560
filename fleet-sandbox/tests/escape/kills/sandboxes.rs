//! The sandboxes whose processes are killed, and how each process is found.

use fleet_core::isolation::NetworkMode;

use super::look::{children, session};
use crate::support::{By, Launch};

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    /// The process of the console, which serves the network too.
    Launcher,
    /// The sandbox program outside: for a container, what keeps it.
    Outer,
    /// The launcher and the keeper, one right after the other.
    LauncherAndKeeper,
    /// What the keeper runs.
    Client,
    /// What holds the descriptors of a container.
    Monitor,
    /// The first process inside.
    Init,
    /// What the sandbox was made for.
    Agent,
}

/// A row of the table.
pub(super) struct Sandbox {
    pub(super) victims: &'static [Victim],
    pub(super) by: By,
    /// One that lets the agent reach the listed host.
    pub(super) network: NetworkMode,
    /// About what a start takes, in milliseconds: half of the kills happen within that.
    pub(super) start: u64,
    /// Seconds within which anything that is waited for must have happened.
    pub(super) limit: u64,
    /// Kills of an ordinary run.
    pub(super) kills: u64,
    /// Whether what has left the session of a killed launcher goes on. A report must say so.
    pub(super) outlives: bool,
    find: fn(Victim, u32, &Launch) -> Option<u32>,
}

pub(super) const BUBBLEWRAP: Sandbox = Sandbox {
    victims: &[Victim::Launcher, Victim::Outer, Victim::Init, Victim::Agent],
    by: By::Bubblewrap,
    network: NetworkMode::Broker,
    start: 60,
    limit: 10,
    kills: 40,
    outlives: false,
    find: |victim, launcher, _| {
        let outer = || child_in_sandbox(launcher);
        match victim {
            Victim::Outer => outer(),
            Victim::Init => child_in_sandbox(outer()?),
            _ => child_in_sandbox(child_in_sandbox(outer()?)?),
        }
    },
};

/// One process is all three: the one that confines itself, and then is the agent.
pub(super) const LANDLOCK: Sandbox = Sandbox {
    victims: &[Victim::Launcher, Victim::Agent],
    by: By::Landlock,
    network: NetworkMode::Allow,
    start: 60,
    limit: 10,
    kills: 40,
    outlives: true,
    find: |_, launcher, _| child_in_sandbox(launcher),
};

pub(super) const PODMAN: Sandbox = Sandbox {
    victims: &[
        Victim::Launcher,
        Victim::Outer,
        Victim::Client,
        Victim::Monitor,
        Victim::Init,
        Victim::Agent,
        Victim::LauncherAndKeeper,
    ],
    by: By::Podman,
    network: NetworkMode::Broker,
    start: 1500,
    limit: 40,
    kills: 14,
    outlives: false,
    find: |victim, launcher, launch| {
        let keeper = || child_with(launcher, "_podman");
        let init = || {
            let file = launch.control.join("boxes/launch-1/pid");
            std::fs::read_to_string(file).ok()?.trim().parse().ok()
        };
        match victim {
            Victim::Outer | Victim::LauncherAndKeeper => keeper(),
            Victim::Client => child_with(keeper()?, "--rootfs"),
            Victim::Monitor => child_with(keeper()?, "conmon"),
            Victim::Init => init(),
            _ => children(init()?).first().copied(),
        }
    },
};

impl Sandbox {
    /// Everybody to kill for this victim, now; empty while there is none yet.
    pub(super) fn find(&self, victim: Victim, launcher: u32, launch: &Launch) -> Vec<u32> {
        match victim {
            Victim::Launcher => vec![launcher],
            Victim::LauncherAndKeeper => {
                let keeper = (self.find)(victim, launcher, launch);
                keeper.into_iter().flat_map(|keeper| [launcher, keeper]).collect()
            }
            _ => (self.find)(victim, launcher, launch).into_iter().collect(),
        }
    }

    /// Whether there is somebody outside who ends everything when the launcher is gone. One that has no
    /// session of its own yet ends with that of the launcher.
    pub(super) fn has_keeper(&self, launcher: u32, launch: &Launch) -> bool {
        let keeper = || (self.find)(Victim::Outer, launcher, launch);
        self.victims.contains(&Victim::LauncherAndKeeper)
            && keeper().is_some_and(|keeper| session(keeper) == Some(keeper))
    }
}

/// The sandbox program: not the helper that makes the sockets, which has the launcher's program.
fn child_in_sandbox(pid: u32) -> Option<u32> {
    children(pid).into_iter().find(|child| {
        let line = line_of(*child);
        !line.is_empty() && !line.contains("_listen")
    })
}

fn child_with(pid: u32, word: &str) -> Option<u32> {
    children(pid).into_iter().find(|child| line_of(*child).contains(word))
}

fn line_of(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).into_owned()
}
