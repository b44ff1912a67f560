use std::fmt::{self, Debug};

use async_trait::async_trait;
use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::id::RoleName;

/// What keeps runners alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SupervisorKind {
    /// systemd user units.
    Systemd,
    /// launchd agents.
    Launchd,
    /// Our own detached runner.
    None,
}

impl fmt::Display for SupervisorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
            Self::None => "none",
        })
    }
}

/// Whether something runs. Unknown is not stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It runs.
    Running,
    /// It definitely does not.
    Stopped,
    /// No proof either way.
    Unknown,
}

/// The supervisor's word about one runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Liveness {
    /// Whether the runner runs.
    pub state: RunState,
    /// What was seen.
    pub detail: String,
    /// The runner's pid, where known.
    pub pid: Option<u32>,
}

/// The runner of one role as a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The role.
    pub role: RoleName,
    /// The configuration it was started with; `None` means the default one.
    pub config: Option<Utf8PathBuf>,
}

/// What was made ready for runners.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prepared {
    /// What was changed, one line each.
    pub done: Vec<String>,
    /// What does not hold although it was asked for, and what to do, one line each.
    pub warnings: Vec<String>,
}

/// Something that [`Supervisor::prepare`] would change or warn of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortcoming {
    /// What is so.
    pub what: String,
    /// What to do.
    pub fix: String,
}

/// Why a supervisor did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// This supervisor cannot be used here.
    #[error("supervisor `{kind}` is not available: {reason}")]
    Unavailable {
        /// Which one.
        kind: SupervisorKind,
        /// Why, and what to do.
        reason: String,
    },
    /// The action was tried and failed; partial work of this call was undone.
    #[error("failed to {action} the runner of `{role}`: {detail}")]
    Failed {
        /// What was tried.
        action: &'static str,
        /// The role.
        role: RoleName,
        /// The supervisor's own words.
        detail: String,
    },
}

/// Keeps the runner process of each role alive, and nothing else.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait Supervisor: Send + Sync + Debug {
    /// Which kind this is.
    fn kind(&self) -> SupervisorKind;

    /// Whether it restarts a runner that was killed, and starts roles after a reboot.
    fn survives_reboot(&self) -> bool;

    /// Makes this machine ready for runners; with `boot` also for roles that start with it. Repeating
    /// it changes nothing. Where nothing is to be made ready, as by default, it does nothing.
    ///
    /// # Errors
    /// This supervisor cannot be used here.
    ///
    /// # Cancel safety
    /// Repeat after a drop.
    async fn prepare(&self, boot: bool) -> Result<Prepared, SupervisorError> {
        let _ = boot;
        Ok(Prepared::default())
    }

    /// What on this machine is not as [`Supervisor::prepare`] would have it. Changes nothing.
    ///
    /// # Cancel safety
    /// Reads only.
    async fn inspect(&self) -> Vec<Shortcoming> {
        Vec::new()
    }

    /// Registers and starts the runner. On `Ok` the runner process was seen running. Starting one
    /// that runs already changes nothing.
    ///
    /// # Cancel safety
    /// Not cancel safe: the runner may have started. Ask [`Supervisor::liveness`].
    async fn start(&self, service: &Service) -> Result<(), SupervisorError>;

    /// Stops the runner and keeps it from being started by a reboot. On `Ok` the process is gone; a
    /// stopped one is `Ok` too. First asks it to end, then, after 15 s, kills it.
    ///
    /// # Cancel safety
    /// Repeat after a drop.
    async fn stop(&self, service: &Service) -> Result<(), SupervisorError>;

    /// Whether the runner runs. Never fails and never guesses.
    ///
    /// # Cancel safety
    /// Reads only.
    async fn liveness(&self, service: &Service) -> Liveness;
}
