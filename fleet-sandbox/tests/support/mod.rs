//! Throw-away trees, hand-made policies, and a launcher to run them.

mod build;
pub(crate) mod caps;
mod run;

pub(crate) use build::{Host, PolicyBuilder, TestExec, evidence, lexical, podman_evidence};
pub(crate) use run::{
    By, Launch, Outcome, probe_program, processes_with, records, running, within,
};

/// Skips a test with a reason; with `REQUIRE_ALL=1` a skip is a failure.
macro_rules! skip {
    ($reason:expr) => {{
        assert!(
            std::env::var("REQUIRE_ALL").map_or(true, |value| value != "1"),
            "skipped although REQUIRE_ALL=1: {}",
            $reason
        );
        eprintln!("skipped: {}", $reason);
        return;
    }};
}
pub(crate) use skip;

/// Leaves the test unless bubblewrap is installed.
macro_rules! need_bwrap {
    () => {
        if crate::support::Host::bwrap().is_none() {
            crate::support::skip!("bubblewrap is not installed");
        }
    };
}
pub(crate) use need_bwrap;

/// The podman backend; leaves the test unless podman is installed and this user may run it.
macro_rules! need_podman {
    () => {{
        let Some(backend) = crate::support::Host::podman() else {
            crate::support::skip!("podman or what it needs is not installed, or not for this user");
        };
        backend
    }};
}
pub(crate) use need_podman;

/// Leaves the test unless it runs as root: then the control would not leak.
macro_rules! need_root {
    () => {
        if !crate::support::Host::is_root() {
            crate::support::skip!("only root can show the leak without the sandbox");
        }
    };
}
pub(crate) use need_root;

/// Leaves the test unless Landlock can be used.
macro_rules! need_landlock {
    () => {
        if let Some(reason) = crate::support::Host::no_landlock() {
            crate::support::skip!(reason);
        }
    };
}
pub(crate) use need_landlock;

/// Leaves the test unless a backend can be used.
macro_rules! need {
    ($by:expr) => {
        if let Some(reason) = $by.lack() {
            crate::support::skip!(reason);
        }
    };
}
pub(crate) use need;
