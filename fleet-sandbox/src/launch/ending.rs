//! Whatever a command started ends with it, sandboxed or not.

use std::os::fd::OwnedFd;
use std::time::Duration;

use fleet_core::port::ProcessIdentity;
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};
use tokio::signal::unix::Signal as Stream;
use tokio::time::{Instant, sleep};

use super::guard::kill;
use crate::procfs;

/// From the kill until we give up waiting for the kernel. With the time that a program has to end by
/// itself it must stay below what the runner waits for a launcher: one that is killed tells nothing.
const LAST: Duration = Duration::from_millis(2500);
/// How long what ends everything else is left to it before anything is looked for.
const AT_ONCE: Duration = Duration::from_millis(50);
/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(5);
/// Looks at the adopted processes alone, after each look at all of them.
const QUICK: u32 = 64;
/// Processes that are told.
const MOST_TOLD: usize = 32;

/// What ends the processes of a launch.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Held until they are to end.
    life: Vec<OwnedFd>,
    /// The process that ends all others of the sandbox, at once, when the life lines end. Not to be
    /// killed before it has: nothing else is certain to catch what forks all the time.
    sweeper: Option<u32>,
    /// A process of this launcher that outlives the command, until its caps are asked for the last time.
    keeper: Option<u32>,
}

impl Ending {
    pub(super) fn hold(&mut self, life: Vec<OwnedFd>) {
        self.life = life;
    }

    pub(super) fn sweeper(&mut self, pid: Option<u32>) {
        self.sweeper = pid;
    }

    /// Leaves this child alone.
    pub(super) fn spare(&mut self, keeper: Option<u32>) {
        self.keeper = keeper;
    }

    /// Takes note of a child that was taken in.
    pub(super) fn reaped(&mut self, pid: u32) {
        self.sweeper.take_if(|sweeper| *sweeper == pid);
        self.keeper.take_if(|keeper| *keeper == pid);
    }

    /// Kills whatever is there.
    pub(super) fn kill_all(&mut self) {
        self.life.clear();
        self.kill(procfs::descendants(std::process::id()));
    }

    fn kill(&self, pids: Vec<u32>) {
        for pid in
            pids.into_iter().filter(|pid| Some(*pid) != self.sweeper && !self.is_spared(*pid))
        {
            kill(pid);
        }
    }

    fn is_spared(&self, pid: u32) -> bool {
        self.keeper == Some(pid)
    }

    /// Kills until there is no child left. Orphans are adopted, so then there is nothing below either:
    /// no look at the processes says so, however empty, since what forks and ends may be missed by each.
    /// Otherwise returns what would not end, which may be none that could be named.
    pub(super) async fn leave_nothing_behind(
        &mut self,
        child: &mut Stream,
    ) -> Option<Vec<ProcessIdentity>> {
        let begun = Instant::now();
        let until = begun + LAST;
        self.life.clear();
        while self.has_children() {
            if self.sweeper.is_some() && Instant::now() < begun + AT_ONCE {
                pause(child).await;
                continue;
            }
            if Instant::now() >= until {
                let mut left = procfs::descendants(std::process::id());
                left.retain(|pid| !self.is_spared(*pid));
                return Some(
                    left.into_iter().filter_map(procfs::identity).take(MOST_TOLD).collect(),
                );
            }
            self.kill_all();
            // What forks and ends is adopted at once: it is found here sooner than among all.
            for _ in 0..QUICK {
                if !self.has_children() {
                    return None;
                }
                self.kill(procfs::children(std::process::id()));
            }
            // A sandbox needs a moment to be taken down; the end of its first process is reported.
            pause(child).await;
        }
        None
    }

    /// Whether there is a child, own or adopted, beside the one that is spared. Takes in those that have
    /// ended.
    fn has_children(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, _))) => self.reaped(pid.as_raw_nonzero().get().unsigned_abs()),
                Err(Errno::INTR) => {}
                Ok(None) if self.keeper.is_none() => return true,
                Ok(None) => {
                    let children = procfs::children(std::process::id());
                    return children.into_iter().any(|pid| !self.is_spared(pid));
                }
                Err(errno) => return errno != Errno::CHILD,
            }
        }
    }
}

/// Until a child ends, or a moment.
async fn pause(child: &mut Stream) {
    tokio::select! {
        _ = child.recv() => {}
        () = sleep(PAUSE) => {}
    }
}
