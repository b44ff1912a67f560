//! The real machine behind the ports of `fleet-core`: processes, tmux, supervisors, state files.
//!
//! Adapters are named `<Technology><Role>`. None of them decides anything about a role; they report
//! what is, do what they are told, and say when they cannot. Their tests are the contract suites of
//! `fleet_core::test_support`, which the fakes pass too, and `tests/` of this crate.

mod clock;
mod exec;
mod ids;
mod process_table;
pub mod runner;
mod store;
pub mod supervisor;
mod tmux;
mod trusted_exec;
mod watch;

pub use clock::SystemClock;
pub use exec::{OUTPUT_LIMIT, ProcessExec};
pub use ids::RandomIds;
pub use process_table::ProcTable;
pub use store::FileStore;
pub use tmux::{CliTmux, CliTmuxServers, SOCKET_PATH_LIMIT, TmuxEnvironment};
pub use trusted_exec::TrustedExec;
pub use watch::InotifyWatches;
