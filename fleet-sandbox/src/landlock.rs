//! The landlock backend: rules of the kernel on the process itself, and filters; no namespaces, so that
//! it works where those are forbidden. It is less than bubblewrap and says in what (`promise`).
//!
//! `backend` ties the parts together, `plan` is the line, `rules` what a policy comes to, `promise` the
//! rows of the report, `refuse` what it does not do, `probe` the trial. Inside, `confine` is the first
//! program, which confines itself and becomes the command, and `apply` is what the kernel is told.
//! Tests: `golden/landlock.rs`, `contract/isolation.rs`, `integration/landlock.rs`, `escape/matrix/`.

mod apply;
mod backend;
mod confine;
mod plan;
mod probe;
mod promise;
mod refuse;
mod rules;
mod sweeper;

pub use backend::LandlockIsolation;
pub use confine::{COMMAND, inside};

/// The newest version of the kernel's interface that was tested. A newer kernel is asked for no more.
pub const TESTED_ABI: u32 = 7;

/// Versions of the kernel's interface from which on something holds.
pub(crate) mod since {
    /// Files can be moved between directories. Before, that is refused everywhere.
    pub(crate) const MOVES: u32 = 2;
    /// Emptying a file by its name is controlled.
    pub(crate) const TRUNCATE: u32 = 3;
    /// TCP ports are controlled.
    pub(crate) const TCP: u32 = 4;
    /// Requests to devices are controlled.
    pub(crate) const DEVICES: u32 = 5;
    /// Signals and abstract sockets are controlled.
    pub(crate) const SCOPES: u32 = 6;
}
