use std::fmt::Debug;

use async_trait::async_trait;
use camino::Utf8Path;

use crate::isolation::{BackendName, EnforcementRow, IsolationPolicy, NetworkMode};
use crate::launch::{LaunchCommand, LaunchPlan};

/// What a passed probe found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeEvidence {
    /// Version of the backend's program, as it prints it.
    pub version: String,
    /// The resolved program.
    pub program: String,
    /// Features that the plan may use, each named as the backend's help names it.
    pub features: Vec<String>,
}

/// Why a backend cannot be used for a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeFailure {
    /// Its program does not exist.
    #[error("`{program}` was not found on PATH ({hint})")]
    Missing {
        /// The program.
        program: String,
        /// How to install it.
        hint: &'static str,
    },
    /// A trial with the very flags of the role failed.
    #[error("a trial run with this role's flags failed: {detail} ({hint})")]
    Trial {
        /// What the program said.
        detail: String,
        /// What to do about it.
        hint: String,
    },
    /// It cannot enforce something that the policy asks for.
    #[error("`{backend}` cannot enforce {what} in this build")]
    CannotEnforce {
        /// The backend.
        backend: BackendName,
        /// What.
        what: String,
    },
}

/// Why a policy could not be turned into a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The policy asks for what this backend cannot do.
    #[error("`{backend}` cannot enforce {what}")]
    Unsupported {
        /// The backend.
        backend: BackendName,
        /// What.
        what: String,
    },
    /// A mount source did not exist when the policy was resolved.
    #[error("`{source_path}` does not exist ({origin})")]
    MissingSource {
        /// The source.
        source_path: String,
        /// Which part of the configuration asks for it.
        origin: String,
    },
}

/// Turns a policy into a sandbox.
#[async_trait]
pub trait IsolationBackend: Send + Sync + Debug {
    /// Its name in `isolation.backend`.
    fn name(&self) -> BackendName;

    /// Whether it can enforce this network mode at all.
    fn enforces_network(&self, mode: NetworkMode) -> bool;

    /// Runs the sandbox for real, with the very flags that the policy will use and a harmless
    /// program. A version text proves nothing.
    ///
    /// # Cancel safety
    /// Dropping the future ends the trial and leaves nothing behind.
    async fn probe(&self, policy: &IsolationPolicy) -> Result<ProbeEvidence, ProbeFailure>;

    /// The launch plan: pure, makes nothing, opens nothing.
    ///
    /// # Security
    /// The plan's arguments end with the command's argv unchanged, and hold no bind that is not in
    /// the policy: a backend adds no mount of its own beyond the fixed system view it documents.
    fn plan(
        &self,
        policy: &IsolationPolicy,
        evidence: &ProbeEvidence,
        command: &LaunchCommand,
    ) -> Result<LaunchPlan, PlanError>;

    /// What the plan promises to enforce, row by row, before any launch.
    fn promise(&self, policy: &IsolationPolicy) -> Vec<EnforcementRow>;

    /// What of this policy it cannot hold beyond what it is by nature, each as `what, and why`. A role
    /// that must not start with less than it asks for does not start with any.
    fn shortfalls(&self, _policy: &IsolationPolicy) -> Vec<String> {
        Vec::new()
    }

    /// Variables that its sandbox needs in the environment of the command. What the role sets itself
    /// stays.
    fn variables(&self, _policy: &IsolationPolicy) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Ends and removes what launches of one role left that were killed together with whatever would
    /// have done that. `control` is the control directory of the role. Tells whether there was
    /// anything; nothing is no error, and what belongs to a living launcher stays.
    ///
    /// # Cancel safety
    /// May be repeated at any time.
    async fn clear(&self, _control: &Utf8Path) -> bool {
        false
    }
}
