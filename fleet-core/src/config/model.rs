//! The typed fleet. Public types hold no spans: where a value came from is in [`Provenance`].

use camino::Utf8PathBuf;
use indexmap::IndexMap;
use serde::Serialize;

pub use super::provenance::{Layer, Provenance};
use crate::diagnostic::Place;
use crate::id::{HarnessId, IdentityName, RoleName};
use crate::isolation::IsolationBlock;
use crate::path::LexicalPath;
pub use crate::permissions::Permissions;
use crate::policy::require::Require;
use crate::redact::Redacted;

/// Everything the fleet files say, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// Files read, base first; the base is listed also when it is absent but was expected.
    pub source_files: Vec<Utf8PathBuf>,
    /// Minimum spacing of launches host-wide, in milliseconds.
    pub start_stagger_ms: u64,
    /// `policy:`.
    pub policy: FleetPolicy,
    /// Roles in file order, base first.
    pub roles: IndexMap<RoleName, Role>,
    /// Written top-level keys that this build cannot serve and that name no role.
    pub unavailable: Vec<Unavailable>,
    /// Where each value came from.
    pub provenance: Provenance,
}

impl Fleet {
    /// A fleet without roles.
    pub fn empty(source_files: Vec<Utf8PathBuf>) -> Self {
        Self {
            source_files,
            start_stagger_ms: 0,
            policy: FleetPolicy::default(),
            roles: IndexMap::new(),
            unavailable: Vec::new(),
            provenance: Provenance::default(),
        }
    }
}

/// `policy:`, which every role must meet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetPolicy {
    /// Added to the forbidden paths of every role.
    pub forbid_paths: Vec<LexicalPath>,
    /// What every role must have.
    pub require: Require,
}

/// A key that was written, or a default that promises protection, and that this build cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unavailable {
    /// Dotted path below the role, or of the top level.
    pub path: String,
    /// What is missing, a lower-case fragment.
    pub reason: String,
    /// What to write instead, as a full hint.
    pub instead: String,
    /// Whether `up` refuses the role for it; otherwise it is a note in the plan.
    pub refuses: bool,
    /// Where it was written; `None` for a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// How the agent is owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Session {
    /// A program in a tmux console.
    Tmux,
    /// The Agent Client Protocol (later).
    Acp,
}

/// A duration as written in a fleet file, in milliseconds (01 §1.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Duration(pub u64);

/// An entry of `oversee`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Oversee {
    /// The ward.
    pub role: RoleName,
    /// How often to look.
    pub interval: Duration,
}

/// `monitor` (01 §1.10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Monitor {
    /// `fleet` (`true`) or `native`.
    pub fleet: bool,
    /// Event types that wake the agent.
    pub wake_sources: Vec<String>,
    /// Batching window in milliseconds.
    pub batch_ms: u64,
    /// `true`, `false` or `after_tool`, as written.
    pub interrupt: String,
    /// Failed turns in a row that count as failing.
    pub turn_fail_threshold: u32,
}

impl Default for Monitor {
    fn default() -> Self {
        Self {
            fleet: true,
            wake_sources: [
                "message_received",
                "file_received",
                "local_contact_request",
                "pending_message",
            ]
            .map(str::to_owned)
            .to_vec(),
            batch_ms: 2000,
            interrupt: "false".to_owned(),
            turn_fail_threshold: 3,
        }
    }
}

/// `worklog` (01 §1.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Worklog {
    /// Size over which the log is rotated, in KiB.
    pub max_kb: u64,
    /// What stays in the live file, in KiB.
    pub keep_tail_kb: u64,
    /// Archives kept beside it.
    pub max_archives: u32,
}

impl Default for Worklog {
    fn default() -> Self {
        Self { max_kb: 1024, keep_tail_kb: 256, max_archives: 12 }
    }
}

/// One role, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// Its name.
    pub name: RoleName,
    /// The file that declares it.
    pub source_file: Utf8PathBuf,
    /// Its messaging name.
    pub identity: IdentityName,
    /// Its harness.
    pub harness: HarnessId,
    /// How it is owned.
    pub session: Session,
    /// `session_options.tmux.boot_grace_ms`.
    pub boot_grace_ms: Option<u64>,
    /// Neutral permissions.
    pub permissions: Permissions,
    /// Whether `permissions` was written on the role or in the defaults.
    pub permissions_declared: bool,
    /// Declared working directory; STATE if absent.
    pub cwd: Option<LexicalPath>,
    /// Who it reports to.
    pub coordinator: Option<String>,
    /// What it is for.
    pub mission: Option<String>,
    /// Who it is.
    pub persona: Option<String>,
    /// Its public card.
    pub bio: Option<String>,
    /// A text that replaces the curated part of the briefing.
    pub briefing_file: Option<LexicalPath>,
    /// Model.
    pub model: Option<String>,
    /// Models to fall back to.
    pub model_chain: Vec<String>,
    /// Context budget.
    pub max_tokens: Option<u64>,
    /// When the harness compacts its context, in percent.
    pub autocompact_pct: Option<u32>,
    /// Environment of the agent, defaults merged.
    pub env: IndexMap<String, Redacted<String>>,
    /// Names taken from fleet's own environment.
    pub env_pass: Vec<String>,
    /// Wards.
    pub oversee: Vec<Oversee>,
    /// Options of the harness, validated by it at load. May hold secrets.
    pub harness_options: Redacted<serde_json::Map<String, serde_json::Value>>,
    /// What the harness was told there to write in as well.
    pub write_dirs: Vec<LexicalPath>,
    /// Isolation; `None` means not sandboxed.
    pub isolation: Option<IsolationBlock>,
    /// Mail monitor.
    pub monitor: Monitor,
    /// Log rotation; `None` is off.
    pub worklog: Option<Worklog>,
    /// Written keys, or protective defaults, that this build cannot serve for this role.
    pub unavailable: Vec<Unavailable>,
}
