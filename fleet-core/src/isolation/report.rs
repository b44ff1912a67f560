//! The enforcement report: what was asked, what holds, and how that is known.

use serde::{Deserialize, Serialize};

/// What a row of the report is about. The text form is stable: scripts and tests rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Item {
    /// The files that are visible, and how.
    Filesystem,
    /// Which network is reachable.
    Network,
    /// Other processes of the host are out of sight and reach.
    Processes,
    /// No System V or POSIX IPC with the host.
    Ipc,
    /// The host's name is hidden.
    Hostname,
    /// No capability is held.
    Capabilities,
    /// No privilege can be gained by executing a program.
    NoNewPrivileges,
    /// Dangerous system calls are refused, among them typing into the outer terminal.
    SystemCalls,
    /// No further user namespace can be made.
    NestedNamespaces,
    /// The environment is the built one.
    Environment,
    /// The sandbox ends with its launcher.
    Lifetime,
    /// The memory cap.
    Memory,
    /// The process count cap.
    Pids,
    /// The processor cap.
    Cpu,
}

impl Item {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filesystem => "filesystem",
            Self::Network => "network",
            Self::Processes => "processes",
            Self::Ipc => "ipc",
            Self::Hostname => "hostname",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::SystemCalls => "system-calls",
            Self::NestedNamespaces => "nested-namespaces",
            Self::Environment => "environment",
            Self::Lifetime => "lifetime",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

/// How far a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnforcementLevel {
    /// It holds.
    Enforced,
    /// It holds in part; the evidence says which.
    Degraded,
    /// It does not hold.
    Missing,
}

impl EnforcementLevel {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Degraded => "degraded",
            Self::Missing => "missing",
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnforcementRow {
    /// What it is about.
    pub item: Item,
    /// What the policy asks.
    pub asked: String,
    /// Whether it holds.
    pub level: EnforcementLevel,
    /// For a promise: by what means. For an observation: what was seen.
    pub evidence: String,
}

impl EnforcementRow {
    /// The evidence where there was nothing left to look at.
    pub const ENDED_EARLY: &str = "the command ended before it could be looked at";
}
