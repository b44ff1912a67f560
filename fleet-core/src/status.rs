//! The published status of a role (02 §7.2) and how a reader judges it.
//!
//! A runner rewrites `status.json` at each change. A reader believes it only with proof of life: the
//! runner named in it must be the living holder of the role.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::harness::StartMode;
use crate::harness::screen::{AgentState, Readiness};
use crate::id::{HarnessId, LaunchId, RoleName, SessionId, Timestamp};
use crate::isolation::BackendName;
use crate::lifecycle::LastAttempt;
use crate::path::LexicalPath;
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
    /// Why it is a backend that holds less than the one that `backend: auto` means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lesser: Option<String>,
    /// What of the project it can write although the launch covered it: the entry was replaced outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<LexicalPath>,
}

impl IsolationStatus {
    /// Which paths are not covered any more, and the remedy; `None` if all are.
    pub fn uncovered_words(&self, role: &RoleName) -> Option<String> {
        /// More of them are a number.
        const SHOWN: usize = 3;
        let shown: Vec<String> =
            self.uncovered.iter().take(SHOWN).map(|path| format!("`{path}`")).collect();
        let more = self.uncovered.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!shown.is_empty()).then(|| {
            format!(
                "{}{more} replaced outside of the sandbox and not read-only inside since: \
                 `ours-fleet restart {role}`",
                shown.join(", ")
            )
        })
    }
}

/// The program of the running attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HarnessStatus {
    /// The harness.
    pub id: HarnessId,
    /// Version of the program, where it was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether that version was measured; absent where there is nothing to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualified: Option<bool>,
}

/// What was last seen of the agent. A hint: an agent can write everything that it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// What was seen.
    #[serde(flatten)]
    pub state: AgentState,
    /// Since when it is seen so.
    pub since: Timestamp,
    /// When somebody last looked.
    pub at: Timestamp,
    /// Whether changes are published as they happen; otherwise the state is as old as `at`.
    #[serde(default)]
    pub followed: bool,
}

impl AgentStatus {
    /// The state in words, for example `waiting (permission prompt)`.
    pub fn words(&self) -> String {
        let state = &self.state;
        let word = state.readiness.as_str();
        let of = match state.readiness {
            Readiness::Waiting => state.waiting_for.as_ref().or(state.dialog.as_ref()),
            Readiness::Dialog => state.dialog.as_ref().or(state.waiting_for.as_ref()),
            _ => None,
        };
        of.map_or_else(|| word.to_owned(), |of| format!("{word} ({of})"))
    }
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
    pub harness: Option<HarnessStatus>,
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
    /// What was last seen of the agent; absent for a program of which nothing can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentStatus>,
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
    /// Whether a sandbox runs without runner and console.
    pub orphaned_sandbox: bool,
}

impl ObservedState {
    /// Whether there is definitely no runner that could be asked.
    pub fn has_no_runner(&self) -> bool {
        self.state == RoleState::Stopped || self.orphaned_console || self.orphaned_sandbox
    }
}

/// What lives of a launch beside its runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remains {
    /// Whether the launcher named in the status still runs.
    pub console: RunState,
    /// Whether the first process of its sandbox, by the record of its launcher, still runs.
    pub sandbox: RunState,
}

/// Judges a published status by proof of life.
///
/// `runner` is what the supervisor says of the runner.
pub fn judge(
    published: Option<&Status>,
    runner: RunState,
    runner_detail: &str,
    Remains { console, sandbox }: Remains,
) -> ObservedState {
    let plain = |state, detail: Option<&str>| ObservedState {
        state,
        detail: detail.map(str::to_owned),
        orphaned_console: false,
        orphaned_sandbox: false,
    };
    match (runner, published) {
        // Written before the console went, by a runner that could not write again: the disk is full,
        // or it is stopped. For a moment also of one that is about to.
        (RunState::Running, Some(status))
            if status.state == RoleState::Running && console == RunState::Stopped =>
        {
            plain(RoleState::Unknown, Some("console gone, its runner has not said why"))
        }
        (RunState::Running, Some(status)) => plain(status.state, status.detail.as_deref()),
        (RunState::Running, None) => plain(RoleState::Starting, Some("nothing published yet")),
        (RunState::Stopped, _) if console == RunState::Running => ObservedState {
            orphaned_console: true,
            ..plain(RoleState::Unknown, Some("runner gone, console running"))
        },
        (RunState::Stopped, _) if sandbox == RunState::Running => ObservedState {
            orphaned_sandbox: true,
            ..plain(RoleState::Unknown, Some("runner and console gone, sandbox running"))
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
        let console = |console| Remains { console, sandbox: RunState::Stopped };
        let nothing = console(RunState::Unknown);
        assert_eq!(judge(None, RunState::Unknown, "why", nothing).state, RoleState::Unknown);
        assert_eq!(judge(None, RunState::Stopped, "", nothing).state, RoleState::Stopped);
        let orphan = judge(None, RunState::Stopped, "", console(RunState::Running));
        assert_eq!(orphan.state, RoleState::Unknown);
        assert!(orphan.orphaned_console);
        assert_eq!(orphan.detail.as_deref(), Some("runner gone, console running"));
        assert!(!orphan.orphaned_sandbox);
        assert_eq!(judge(None, RunState::Running, "", nothing).state, RoleState::Starting);
    }

    #[test]
    fn a_sandbox_without_runner_and_console_is_not_stopped() {
        let sandbox = |sandbox| Remains { console: RunState::Stopped, sandbox };
        let seen = |runner, left| judge(None, runner, "", sandbox(left));
        let orphan = seen(RunState::Stopped, RunState::Running);
        assert_eq!(orphan.state, RoleState::Unknown);
        assert!(orphan.orphaned_sandbox && !orphan.orphaned_console);
        assert_eq!(seen(RunState::Stopped, RunState::Stopped).state, RoleState::Stopped);
        assert_eq!(seen(RunState::Stopped, RunState::Unknown).state, RoleState::Stopped);
        assert!(!seen(RunState::Running, RunState::Running).orphaned_sandbox);
    }

    #[test]
    fn a_status_does_not_vouch_for_a_console_that_is_gone() {
        let status = |state| -> Status {
            serde_json::from_value(serde_json::json!({
                "schemaVersion": 1, "role": "A", "state": state, "since": Timestamp::default(),
                "at": Timestamp::default(), "supervisor": "none", "attempt": 1,
                "runner": {"pid": 7, "startTime": 1, "bootId": "b", "version": "0"},
                "console": {"tmuxSocket": "/s"}, "failures": {"count": 0}, "abruptTerminations": 0,
            }))
            .unwrap()
        };
        let running = status("running");
        let left = |console| Remains { console, sandbox: console };
        let seen = |console| judge(Some(&running), RunState::Running, "", left(console)).state;
        assert_eq!(seen(RunState::Stopped), RoleState::Unknown);
        assert_eq!(seen(RunState::Running), RoleState::Running);
        assert_eq!(seen(RunState::Unknown), RoleState::Running);
        let waiting = status("backing-off");
        let seen = judge(Some(&waiting), RunState::Running, "", left(RunState::Stopped));
        assert_eq!(seen.state, RoleState::BackingOff);
        assert!(!seen.orphaned_console);
    }
}
