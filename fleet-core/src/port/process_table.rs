use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Names one process for good: a pid alone is reused, a start time restarts with the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start_time: u64,
    /// The kernel's boot id.
    pub boot_id: String,
}

/// A process below another one, with what it knows itself by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descendant {
    /// The process as the host knows it.
    pub process: ProcessIdentity,
    /// Its pid in its own, innermost pid namespace.
    pub inner_pid: u32,
    /// The inode of that namespace, if it could be read.
    pub pid_namespace: Option<u64>,
}

/// Signals that fleet sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ask to end.
    Term,
    /// End at once.
    Kill,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// Delivered to exactly the named process.
    Delivered,
    /// That process is gone, or is a zombie; nothing was signalled.
    Gone,
}

/// Why the process table gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("failed to {action} process {pid}")]
pub struct ProcessError {
    /// What was tried.
    pub action: &'static str,
    /// The process asked about.
    pub pid: u32,
    /// The system's reason.
    #[source]
    pub source: std::io::Error,
}

/// Looks at processes and signals them without ever meeting a reused pid.
#[async_trait]
pub trait ProcessTable: Send + Sync + Debug {
    /// The identity of the calling process.
    fn own(&self) -> Result<ProcessIdentity, ProcessError>;

    /// The identity of the process that has this pid now; `None` if there is none or it is a zombie.
    fn identity(&self, pid: u32) -> Result<Option<ProcessIdentity>, ProcessError>;

    /// Whether exactly this process still runs. A zombie is dead.
    fn is_alive(&self, process: &ProcessIdentity) -> Result<bool, ProcessError> {
        Ok(self.identity(process.pid)?.as_ref() == Some(process))
    }

    /// The living processes below this one, itself included. Empty if it is gone. One that lost its
    /// parent is not found.
    fn descendants(&self, ancestor: &ProcessIdentity) -> Result<Vec<Descendant>, ProcessError>;

    /// Signals exactly this process, through a handle that cannot mean another one.
    fn signal(&self, process: &ProcessIdentity, signal: Signal) -> Result<Signalled, ProcessError>;

    /// Kills what is left of the session that a process led and that has just ended; tells how many
    /// processes that were. One that made a session of its own is not found.
    ///
    /// # Security
    /// Call it right after the end of the leader was seen: while a member lives, the number of the
    /// session cannot be given to another one. Processes older than the leader are left alone.
    fn kill_session(&self, leader: &ProcessIdentity) -> Result<usize, ProcessError>;

    /// Returns when exactly this process has ended; at once if it is already gone. Event driven.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and has no other effect.
    async fn wait_exit(&self, process: &ProcessIdentity) -> Result<(), ProcessError>;
}
