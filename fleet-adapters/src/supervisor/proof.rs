//! Proof of life of a runner, whoever started it: its lock and its run marker together.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use fleet_core::error_chain::chain;
use fleet_core::id::RoleName;
use fleet_core::layout::{FleetLayout, RoleTrees};
use fleet_core::port::{Clock, ProcessIdentity, ProcessTable, StateStore};
use fleet_core::run_marker::{RUN_MARKER_LIMIT, RunMarker};

/// Between two looks.
pub(super) const POLL: Duration = Duration::from_millis(10);
/// A runner holds its lock for a moment before its marker is there, and after it is gone.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);
/// A larger log is not looked into for a message.
const MAX_LOG: u64 = 16 * 1024 * 1024;

/// What lock and marker say together.
#[derive(Debug)]
pub(super) enum Seen {
    /// The lock is held and the marker names a living process.
    Running(ProcessIdentity),
    /// Nobody holds the lock.
    Stopped,
    /// The lock is held, but by whom cannot be proved.
    Unclear(String),
}

/// Looks at the runners of a fleet.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    pub(super) store: Arc<dyn StateStore>,
    pub(super) processes: Arc<dyn ProcessTable>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) layout: FleetLayout,
}

impl Proof {
    pub(super) fn trees(&self, role: &RoleName) -> RoleTrees {
        self.layout.role(role)
    }

    pub(super) fn look(&self, role: &RoleName) -> Seen {
        let trees = self.trees(role);
        match self.store.is_locked(&trees.runner_lock()) {
            Ok(false) => Seen::Stopped,
            Ok(true) => match self.runner(&trees.run_marker()) {
                Ok(runner) => Seen::Running(runner),
                Err(why) => Seen::Unclear(format!("{} is held, but {why}", trees.runner_lock())),
            },
            Err(error) => Seen::Unclear(chain(&error)),
        }
    }

    /// The living process that the marker names.
    fn runner(&self, marker: &Utf8Path) -> Result<ProcessIdentity, String> {
        let content = self
            .store
            .read(marker, RUN_MARKER_LIMIT)
            .map_err(|error| chain(&error))?
            .ok_or_else(|| format!("{marker} does not exist"))?;
        let parsed = RunMarker::parse(&content).map_err(|error| format!("{marker}: {error}"))?;
        let named = parsed.runner();
        match self.processes.identity(named.pid).map_err(|error| chain(&error))? {
            Some(living) if living == *named => Ok(living),
            Some(_) => {
                Err(format!("{marker} names pid {}, which is now another process", named.pid))
            }
            None => Err(format!("{marker} names pid {}, which is gone", named.pid)),
        }
    }

    /// Looks until the answer is clear, or for as long as a runner may need to begin or to end.
    pub(super) async fn look_until_clear(&self, role: &RoleName) -> Seen {
        let start = self.clock.monotonic();
        loop {
            let seen = self.look(role);
            let waited = self.clock.monotonic().since(start);
            if !matches!(seen, Seen::Unclear(_)) || waited >= SETTLE_LIMIT {
                return seen;
            }
            self.clock.sleep(POLL).await;
        }
    }

    /// The last line of a runner's log, made fit for a message.
    pub(super) fn last_words(&self, log: &Utf8Path) -> Option<String> {
        const MOST: usize = 300;
        let content = self.store.read(log, MAX_LOG).ok()??;
        let text = String::from_utf8_lossy(&content);
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).take(MOST).collect())
    }
}
