//! What an operator's stop is meant to do (02 §3.12).

use fleet_core::id::Timestamp;
use fleet_core::layout::RoleTrees;
use fleet_core::lifecycle::StopKind;
use fleet_core::port::{ProcessIdentity, StateStore};
use serde::{Deserialize, Serialize};

/// `stop-intent.json`. Honoured only by the runner that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StopIntent {
    /// Always 1.
    pub version: u32,
    /// What is meant.
    pub kind: StopKind,
    /// The runner meant: its pid.
    pub runner_pid: u32,
    /// The runner meant: its start time.
    pub runner_start_time: u64,
    /// When.
    pub requested_at: Timestamp,
}

impl StopIntent {
    /// An intent for one runner.
    pub fn new(kind: StopKind, runner: &ProcessIdentity, now: Timestamp) -> Self {
        Self {
            version: 1,
            kind,
            runner_pid: runner.pid,
            runner_start_time: runner.start_time,
            requested_at: now,
        }
    }

    /// Whether it names this runner.
    pub fn is_for(&self, runner: &ProcessIdentity) -> bool {
        self.version == 1
            && self.runner_pid == runner.pid
            && self.runner_start_time == runner.start_time
    }
}

/// The intent that is on file, if it can be read.
pub fn read_intent(store: &dyn StateStore, trees: &RoleTrees) -> Option<StopIntent> {
    const MAX: u64 = 4096;
    let bytes = store.read(&trees.stop_intent(), MAX).ok()??;
    serde_json::from_slice(&bytes).ok()
}
