//! A home of its own for each test, and what is needed to look into it.

pub(crate) mod agents;
mod environment;
pub(crate) mod harnesses;
mod process;
mod provider;
pub(crate) mod repository;

pub(crate) use environment::TestEnvironment;
pub(crate) use harnesses::needs_harness;
pub(crate) use process::wait_for;
pub(crate) use provider::{Outage, Provider, Reply, said};

/// Skips the test unless these programs are on `PATH`.
macro_rules! needs {
    ($($program:literal),+) => {
        $(if !$crate::support::has_program($program) {
            skip!(concat!($program, " is not installed"));
        })+
    };
}

pub(crate) use needs;

/// Whether a program is on `PATH`.
pub(crate) fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}
