//! A launch as data: what the launcher is asked to make real.
//!
//! A [`LaunchPlan`] holds requests, never open descriptors. The launcher fulfils them, checks every
//! source again, and refuses when one changed.

mod totals;

use core::net::IpAddr;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::attest::AttestRequest;
use crate::id::{LaunchId, RoleName, Timestamp};
use crate::isolation::network::{HostRule, Listener, Target};
use crate::isolation::{BackendName, EnforcementRow};
use crate::limits::{LimitRequest, OutOfMemory};
use crate::port::{FileIdentity, FileKind, ProcessIdentity};

pub use self::totals::{ConnectionFiles, ConnectionTotals, Counts, Dropped, RuleTotals};

/// Environment values. Prints names only.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, String>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// The harness command, before any sandbox is put around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchCommand {
    /// Program and arguments; never holds a secret.
    pub argv: Vec<String>,
    /// Where it starts.
    pub cwd: Utf8PathBuf,
}

/// One word of the launcher's command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanWord {
    /// A fixed text.
    Text(Cow<'static, str>),
    /// The number of the descriptor that fulfils the request at this index.
    Descriptor(usize),
    /// The path below `/proc/self/fd` of the descriptor that fulfils the request at this index: a
    /// program that can be executed without being mounted anywhere.
    DescriptorPath(usize),
    /// The launch's own directory, which [`Preparation::Scratch`] fills, within a text.
    #[serde(rename_all = "camelCase")]
    Scratch {
        /// What comes before its path.
        before: Cow<'static, str>,
        /// What comes after it.
        after: Cow<'static, str>,
    },
    /// `--tty=true` where the launcher has a console, else `--tty=false`.
    Tty,
}

impl PlanWord {
    /// A fixed text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Cow::Owned(text.into()))
    }

    /// A text of the program itself, such as a flag.
    pub const fn literal(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// The path of the launch's own directory within a text.
    pub fn scratch(before: &'static str, after: impl Into<Cow<'static, str>>) -> Self {
        Self::Scratch { before: Cow::Borrowed(before), after: after.into() }
    }
}

/// A descriptor that the launcher makes and hands to the sandbox program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum DescriptorRequest {
    /// A sealed in-memory file with this content, for example a generated `/etc/passwd`.
    Data {
        /// What it is for, for error texts.
        label: String,
        /// Its content; not secret.
        content: String,
    },
    /// The seccomp filter, compiled by the launcher.
    SeccompFilter {
        /// Which of the backend's filters.
        profile: String,
    },
    /// An open path (`O_PATH`) to a mount source, refused unless it still is what was resolved.
    Source {
        /// The resolved path, free of links.
        path: Utf8PathBuf,
        /// Device and inode at resolution.
        identity: FileIdentity,
        /// What it is.
        file: FileKind,
    },
    /// An open path (`O_PATH`) to the directory that [`LaunchPlan::prepare`] at this index made.
    Prepared {
        /// Index into [`LaunchPlan::prepare`].
        index: usize,
    },
    /// The write end of a pipe on which the sandbox program reports its status.
    StatusPipe,
    /// The read end of a pipe on which the sandbox program waits before it starts the command: until
    /// [`LaunchPlan::network`] is served.
    ReleasePipe,
    /// The launcher's own program, to be executed inside.
    OwnProgram,
    /// What the sandbox is to be asked about itself, as a sealed in-memory file.
    AttestRequest {
        /// The questions, as far as the plan knows them.
        request: AttestRequest,
    },
    /// The write end of a pipe on which the answers arrive. The command never gets it.
    AttestPipe,
    /// The environment of the launch, as a sealed in-memory file: for a sandbox program that must not
    /// see it itself.
    Environment,
    /// The read end of a pipe that says nothing and ends when the launcher does.
    LifeLine,
}

/// Something to make on the host before any source is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Preparation {
    /// A directory that a mount of the plan needs and that did not exist at resolution. Its parent
    /// must be a real directory reached without links; what exists there by now must be a directory
    /// of the fleet user.
    MakeDir {
        /// The directory.
        path: Utf8PathBuf,
    },
    /// An entry of the launch's own directory, which lies beside the exit record, is made new for each
    /// launch, is nobody else's, and is removed with all that is in it when the launch has ended.
    Scratch {
        /// Where, relative to that directory.
        path: Utf8PathBuf,
        /// What.
        entry: ScratchEntry,
    },
}

/// An entry of a launch's own directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum ScratchEntry {
    /// A directory, with those above it.
    Directory {
        /// Its mode.
        mode: u32,
    },
    /// A file that everybody may read, with the directories above it.
    File {
        /// Its content; not secret.
        content: String,
    },
    /// A symbolic link.
    Link {
        /// Its text.
        target: String,
    },
}

/// A mount source whose path, not descriptor, goes to the sandbox program; checked right before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCheck {
    /// The resolved path, free of links.
    pub path: Utf8PathBuf,
    /// Device and inode at resolution.
    pub identity: FileIdentity,
    /// What it is.
    pub file: FileKind,
}

/// Something to undo after the harness has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Cleanup {
    /// Remove a directory that was made for the launch, if it is still empty.
    RemoveEmptyDir {
        /// The directory.
        path: Utf8PathBuf,
    },
}

/// How to start one role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchPlan {
    /// Which backend made it.
    pub backend: BackendName,
    /// The command line; its tail is the harness argv unchanged.
    pub argv: Vec<PlanWord>,
    /// Descriptors that words of `argv` refer to.
    pub descriptors: Vec<DescriptorRequest>,
    /// Sources to check again that have no descriptor.
    pub checks: Vec<SourceCheck>,
    /// What to make before the sources are looked at.
    #[serde(default)]
    pub prepare: Vec<Preparation>,
    /// What to undo afterwards.
    pub cleanup: Vec<Cleanup>,
    /// What is reachable although the sandbox has a network of its own; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPlan>,
    /// What this plan promises.
    pub promise: Vec<EnforcementRow>,
}

impl LaunchPlan {
    /// What the sandbox is to be asked about itself, if its backend has it asked.
    pub fn attestation(&self) -> Option<&AttestRequest> {
        self.descriptors.iter().find_map(|descriptor| match descriptor {
            DescriptorRequest::AttestRequest { request } => Some(request),
            _ => None,
        })
    }

    /// The same, to add to it.
    pub fn attestation_mut(&mut self) -> Option<&mut AttestRequest> {
        self.descriptors.iter_mut().find_map(|descriptor| match descriptor {
            DescriptorRequest::AttestRequest { request } => Some(request),
            _ => None,
        })
    }
}

/// What the launcher serves to a sandbox with a network of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPlan {
    /// What is allowed; judged for every connection.
    pub rules: Vec<HostRule>,
    /// Where it is offered inside.
    pub listeners: Vec<Listener>,
}

/// The launch file (02 §3.5): everything `_pane` needs. Mode 0600, in control, unlinked after reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaunchFile {
    /// Always 1.
    pub version: u32,
    /// Id of this launch.
    pub launch_id: LaunchId,
    /// The role.
    pub role: RoleName,
    /// The harness command.
    pub command: LaunchCommand,
    /// The exact environment of the harness.
    pub env: Environment,
    /// The plan.
    pub plan: LaunchPlan,
    /// Where the exit record goes.
    pub exit_record: Utf8PathBuf,
    /// Where the observed enforcement rows go.
    pub observed: Utf8PathBuf,
    /// Where the launcher records the first process of the sandbox, see [`SandboxProcess`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_process: Option<Utf8PathBuf>,
    /// Where connections are recorded; needed where the plan has a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Utf8PathBuf>,
    /// What the launch is held to from outside; `None` without caps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitRequest>,
}

impl LaunchFile {
    /// The version written and accepted.
    pub const VERSION: u32 = 1;
    /// No launch file is larger.
    pub const MAX_BYTES: u64 = 4 * 1024 * 1024;
}

/// The first process of a sandbox with a pid namespace of its own, as the host knows it: when it ends,
/// everything in there does. The launcher writes it before the command starts, and removes it when
/// nothing of the launch is left.
///
/// A program inside can undo what ties that process to its launcher. Should launcher and runner then be
/// killed, this record is what finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxProcess {
    /// Always 1.
    pub version: u32,
    /// The launch it belongs to.
    pub launch_id: LaunchId,
    /// The process.
    pub process: ProcessIdentity,
}

impl SandboxProcess {
    /// No record is larger.
    pub const MAX_BYTES: u64 = 4 * 1024;
}

/// How a launch ended, written by the launcher outside the sandbox (02 §3.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitRecord {
    /// Always 1.
    pub version: u32,
    /// Always `tmux` for now.
    pub backend: String,
    /// The launch it belongs to.
    pub launch_id: LaunchId,
    /// Whether the harness really ran.
    pub started: bool,
    /// Exit code, if it returned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Signal, if one killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether the launcher itself got SIGHUP: the console was closed.
    #[serde(default)]
    pub hangup: bool,
    /// Whether the launcher got SIGTERM and ended the harness on request.
    #[serde(default)]
    pub stopped: bool,
    /// When the launcher started it.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the kernel killed any of it for want of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<OutOfMemory>,
    /// Processes that the command started and that would not end, even killed, as they were when the
    /// launcher gave up; empty if none of them could be named. `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Vec<ProcessIdentity>>,
}

/// What became of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionDecision {
    /// It was served.
    Allowed,
    /// No rule allows it.
    Refused,
    /// It is allowed, but the other side could not be reached.
    Failed,
}

/// One connection of a sandbox. Recorded when it ends; one that is allowed also when it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionRecord {
    /// Always 1.
    pub version: u32,
    /// The launch it belongs to.
    pub launch_id: LaunchId,
    /// Its number within the launch.
    pub connection: u64,
    /// When this was recorded.
    pub at: Timestamp,
    /// Whether it goes on.
    pub open: bool,
    /// What was asked for; `None` where that could not be read.
    pub target: Option<Target>,
    /// What became of it.
    pub decision: ConnectionDecision,
    /// Where it led.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Bytes from the sandbox.
    pub sent: u64,
    /// Bytes to the sandbox.
    pub received: u64,
    /// Why it was refused, failed or broke off; empty if it ended in order.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How many requests this stands for: more than one only where refusals were merged.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// Of merged ones the time of the first; `at` is that of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

impl ConnectionRecord {
    /// The version written and accepted.
    pub const VERSION: u32 = 1;
}

/// What the launcher saw of a started sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// Always 1.
    pub version: u32,
    /// The launch it belongs to.
    pub launch_id: LaunchId,
    /// When it was made.
    pub at: Timestamp,
    /// The backend.
    pub backend: BackendName,
    /// The rows, same items as the promise.
    pub rows: Vec<EnforcementRow>,
}

impl Observation {
    /// Whether the command was there when it was made. Of one that never ran, or ended at once, there
    /// is an observation all the same.
    pub fn saw_the_command(&self) -> bool {
        self.rows.iter().all(|row| row.evidence != EnforcementRow::ENDED_EARLY)
    }
}
