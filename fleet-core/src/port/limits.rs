use std::fmt::Debug;

use async_trait::async_trait;
use camino::Utf8Path;

use crate::limits::{GroupPrefix, LimitFacts};

/// Why what a launch had made could not be taken away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to remove {group}: {reason}")]
pub struct SweepError {
    /// The group or scope.
    pub group: String,
    /// The system's words.
    pub reason: String,
}

/// Caps on a launch: what this machine can hold, and what launches left behind.
#[async_trait]
pub trait ResourceLimits: Send + Sync + Debug {
    /// Tries each means for each cap, for real. A failed trial is a fact, not an error.
    ///
    /// # Cancel safety
    /// A dropped trial leaves at most an empty group, which the next trial of this process removes.
    async fn facts(&self) -> LimitFacts;

    /// Ends and removes every group or scope of launches of one role that its record names; gone
    /// already is no error. Returns the names of those that were still there. The record goes with
    /// the last of them.
    ///
    /// # Security
    /// Kills what still runs in them. Only names of this role of this fleet, in directories that
    /// really are control groups, are touched, whatever the record says.
    ///
    /// # Cancel safety
    /// May be repeated at any time.
    async fn sweep(
        &self,
        record: &Utf8Path,
        prefix: &GroupPrefix,
    ) -> Result<Vec<String>, SweepError>;
}
