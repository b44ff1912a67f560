//! What a harness answers to neutral permissions, and inside which boundary it was asked.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::model::{Approval, Permissions};
use crate::harness::{LaunchDirs, Options};
use crate::path::LexicalPath;

/// The boundary around a harness (01 §3.2): with one in force the harness's own sandbox is off, unless
/// the role asks for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outer {
    /// None; the harness's own sandbox works on this host.
    Off,
    /// None, and the harness's own sandbox cannot be used on this host either.
    OffUnsandboxed,
    /// The role's isolation is in force.
    On,
    /// The same, and the harness's own sandbox is inside (`nested_sandbox`).
    Nested,
}

impl Outer {
    /// Whether the role's isolation is in force.
    pub fn is_on(self) -> bool {
        matches!(self, Self::On | Self::Nested)
    }

    /// Whether the isolation stands in for the harness's own sandbox.
    pub fn replaces_native(self) -> bool {
        self == Self::On
    }
}

/// A path that the tools of a role must not read, links followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeniedRead {
    /// The path, with all that is in it.
    pub path: LexicalPath,
    /// Whether something is there.
    pub exists: bool,
}

/// What a translation is asked for.
#[derive(Debug, Clone, Copy)]
pub struct TranslationRequest<'a> {
    /// The neutral words.
    pub permissions: Permissions,
    /// Options of the role, for the overrides.
    pub options: &'a Options,
    /// The boundary.
    pub outer: Outer,
    /// The role's directories.
    pub dirs: &'a LaunchDirs,
    /// Version of the installed program, where it is known.
    pub version: Option<&'a str>,
    /// Whether the program runs as uid 0, as far as it can tell.
    pub root: bool,
    /// The operator's own settings that reach the role, as in
    /// [`LaunchContext::operator_files`](crate::harness::LaunchContext::operator_files).
    pub operator_files: &'a BTreeMap<&'static str, String>,
    /// What the tools must not read where no boundary hides it and the filesystem is bounded.
    pub denied_reads: &'a [DeniedRead],
}

/// What an agent must be able to do unattended (01 §3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Read briefing, ROUTINES.md, WORKLOG.md.
    ReadState,
    /// Append to WORKLOG.md and its own state files.
    WriteState,
    /// Send and receive mail.
    Messaging,
    /// Observe its own mail.
    Monitor,
    /// Edit and test in the working directory.
    WorkspaceEdit,
    /// Run the inspection commands that the briefing prescribes.
    StatusCommands,
}

impl Capability {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 6] = [
        Self::ReadState,
        Self::WriteState,
        Self::Messaging,
        Self::Monitor,
        Self::WorkspaceEdit,
        Self::StatusCommands,
    ];

    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadState => "read-state",
            Self::WriteState => "write-state",
            Self::Messaging => "messaging",
            Self::Monitor => "monitor",
            Self::WorkspaceEdit => "workspace-edit",
            Self::StatusCommands => "status-commands",
        }
    }
}

/// In [`Supported::native`]: the paths that are denied to the tools, as a JSON list. The settings
/// themselves spell each path in the way of the harness.
pub const DENIED_READS_KEY: &str = "denied_reads";

/// What is said where the settings of a harness deny reading.
pub(crate) const READS_DENIED: &str = "keys, logins and what is the fleet's or another role's are \
     denied to its tools, not to its MCP servers and hooks";
/// What is said where nothing does.
pub(crate) const READS_ALL: &str = "its tools can read all that this account can, keys and what is \
     another role's included";

/// Native settings for neutral permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Supported {
    /// Native settings, for people and programs: name to value.
    pub native: BTreeMap<String, String>,
    /// Whether the composed effect is exactly what the neutral words mean.
    pub exact: bool,
    /// Whether this cell was measured on the real program in this combination (01 §3, marks).
    pub measured: bool,
    /// Facts worth knowing that do not make it inexact.
    pub notes: Vec<String>,
    /// Why it is not exact. Empty if it is.
    pub warnings: Vec<String>,
    /// Why a launch is refused: the effect is wider than asked, and nothing confines the role.
    pub refusals: Vec<String>,
    /// What works without a person.
    pub granted: BTreeSet<Capability>,
    /// The neutral approval that the effect amounts to.
    pub mode: Approval,
    /// Whether `mode` holds for what the options override. If not, a table covers only a part of it,
    /// and more than `mode` may happen without a question.
    pub covered: bool,
}

/// The answer of a harness to neutral permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Translation {
    /// The harness has settings for it.
    Supported(Supported),
    /// The harness has no permissions of its own: only the isolation bounds it.
    Unsupported {
        /// Why.
        reason: String,
    },
}

/// A native option that differs from what the neutral permissions translate to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// The native key.
    pub key: String,
    /// The value written in the options, which wins.
    pub native: String,
    /// The value that the neutral permissions translate to; `None` if they set no such key.
    pub neutral: Option<String>,
}

/// The conflicts of a role (01 §3.5). A role that declared no permissions has none.
pub fn conflicts(
    declared: bool,
    overrides: &BTreeMap<String, String>,
    translated: &Translation,
) -> Vec<Conflict> {
    let Translation::Supported(translated) = translated else { return Vec::new() };
    if !declared {
        return Vec::new();
    }
    overrides
        .iter()
        .filter(|(key, value)| translated.native.get(*key) != Some(*value))
        .map(|(key, value)| Conflict {
            key: key.clone(),
            native: value.clone(),
            neutral: translated.native.get(key).cloned(),
        })
        .collect()
}
