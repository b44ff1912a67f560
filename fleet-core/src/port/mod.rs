//! The ports: what the core asks of the world, as object-safe traits.
//!
//! Each port is `Send + Sync + Debug`, takes `&self`, returns its own error enum and documents per
//! method the guarantee on `Ok`, idempotency and cancel safety. Adapters are named
//! `<Technology><Role>`; fakes and contract suites live in `test_support`.

mod clock;
mod exec;
mod ids;
mod isolation;
mod limits;
mod path_probe;
mod process_table;
mod store;
mod supervisor;
mod tmux;
mod watch;

pub use clock::{Clock, Monotonic};
#[cfg(feature = "mocks")]
pub use exec::MockExec;
pub use exec::{CommandSpec, Exec, ExecError, ExecOutput, Exit};
pub use ids::IdSource;
pub use isolation::{IsolationBackend, PlanError, ProbeEvidence, ProbeFailure};
pub use limits::{ResourceLimits, SweepError};
pub use path_probe::{
    FileFacts, FileIdentity, FileKind, FollowedLink, PathProbe, PathProbeError, PathProbes,
    Resolved,
};
pub use process_table::{
    Descendant, ProcessError, ProcessIdentity, ProcessTable, Signal, Signalled,
};
pub use store::{DirEntry, EntryKind, StateStore, StoreError, StoreLock};
#[cfg(feature = "mocks")]
pub use supervisor::MockSupervisor;
pub use supervisor::{
    Liveness, Prepared, RunState, Service, Shortcoming, Supervisor, SupervisorError, SupervisorKind,
};
#[cfg(feature = "mocks")]
pub use tmux::MockTmux;
pub use tmux::{
    Capture, ConsolePresence, ConsoleView, KeyName, NewConsole, Tmux, TmuxAddress, TmuxError,
    TmuxServers, check_paste, check_shown,
};
pub use watch::{DirectoryWatch, DirectoryWatches};
