//! The published status of a role (02 §7.2) and how a reader judges it.
//!
//! A runner rewrites `status.json` at each change. A reader believes it only with proof of life: the
//! runner named in it must be the living holder of the role.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::harness::StartMode;
use crate::id::{HarnessId, LaunchId, RoleName, SessionId, Timestamp};
use crate::isolation::BackendName;
use crate::lifecycle::LastAttempt;
use crate::port::{ProcessIdentity, RunState, SupervisorKind};

/// State words, used exactly so everywhere (02 §1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleState {
    /// The runner lives, the harness is not ready.
    Starting,
    /// The console lives and the harness is ready.
    Running,
    /// The last attempt ended; the next one is scheduled.
    BackingOff,
    /// Too many immediate failures; nothing is started.
    HeldDown,
    /// Definitely no runner and no console.
    Stopped,
    /// No proof either way.
    Unknown,
}

impl RoleState {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::BackingOff => "backing-off",
            Self::HeldDown => "held-down",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

/// The runner as it names itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerStatus {
    /// Its process.
    #[serde(flatten)]
    pub process: ProcessIdentity,
    /// The build that it runs.
    pub version: String,
    /// Hash of the resolved role that the running attempt was launched with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_fingerprint: Option<String>,
}

/// The console of the running attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleStatus {
    /// Socket of the role's own tmux server.
    pub tmux_socket: Utf8PathBuf,
    /// The launcher in the pane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<ProcessIdentity>,
}

/// The isolation of the running attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IsolationStatus {
    /// The backend in force.
    pub backend: BackendName,
    /// Why the role runs without the isolation it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
}

/// The streak of failures, if any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureStatus {
    /// Immediate failures in a row.
    pub count: u32,
    /// Why the last one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reason: Option<String>,
    /// When the next attempt starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Since when the role is held down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<Timestamp>,
}

/// `status.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Always 1.
    pub schema_version: u32,
    /// The role.
    pub role: RoleName,
    /// Where it is.
    pub state: RoleState,
    /// Since when.
    pub since: Timestamp,
    /// One line about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When this was written.
    pub at: Timestamp,
    /// The runner.
    pub runner: RunnerStatus,
    /// What keeps the runner alive.
    pub supervisor: SupervisorKind,
    /// The harness of the current attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<HarnessId>,
    /// Fresh or resume, of the current attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<StartMode>,
    /// Attempts of this runner so far.
    pub attempt: u32,
    /// The current launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_id: Option<LaunchId>,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The console.
    pub console: ConsoleStatus,
    /// The working directory of the current attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Utf8PathBuf>,
    /// The isolation of the current attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationStatus>,
    /// The streak of failures.
    pub failures: FailureStatus,
    /// The last finished attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_termination: Option<LastAttempt>,
    /// Runners that died without an orderly stop.
    pub abrupt_terminations: u32,
}

impl Status {
    /// The version written and accepted.
    pub const SCHEMA_VERSION: u32 = 1;
    /// No status file is larger.
    pub const MAX_BYTES: u64 = 256 * 1024;
}

/// What a reader may say of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedState {
    /// The state.
    pub state: RoleState,
    /// One line about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether the console runs without a runner.
    pub orphaned_console: bool,
}

/// Judges a published status by proof of life.
///
/// `runner` is what the supervisor says of the runner, `console_alive` whether the launcher named in
/// the status still runs.
pub fn judge(
    published: Option<&Status>,
    runner: RunState,
    runner_detail: &str,
    console_alive: bool,
) -> ObservedState {
    let plain = |state, detail: Option<&str>| ObservedState {
        state,
        detail: detail.map(str::to_owned),
        orphaned_console: false,
    };
    match (runner, published) {
        (RunState::Running, Some(status)) => plain(status.state, status.detail.as_deref()),
        (RunState::Running, None) => plain(RoleState::Starting, Some("nothing published yet")),
        (RunState::Stopped, _) if console_alive => ObservedState {
            state: RoleState::Unknown,
            detail: Some("runner gone, console running".to_owned()),
            orphaned_console: true,
        },
        (RunState::Stopped, _) => plain(RoleState::Stopped, None),
        (RunState::Unknown, _) => plain(RoleState::Unknown, Some(runner_detail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_not_stopped() {
        assert_eq!(judge(None, RunState::Unknown, "why", false).state, RoleState::Unknown);
        assert_eq!(judge(None, RunState::Stopped, "", false).state, RoleState::Stopped);
        let orphan = judge(None, RunState::Stopped, "", true);
        assert_eq!(orphan.state, RoleState::Unknown);
        assert!(orphan.orphaned_console);
        assert_eq!(orphan.detail.as_deref(), Some("runner gone, console running"));
        assert_eq!(judge(None, RunState::Running, "", false).state, RoleState::Starting);
    }
}
