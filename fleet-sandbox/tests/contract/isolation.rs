//! The suite of the port, for every backend.

use std::sync::Arc;

use fleet_core::test_support::contract::isolation::isolation_contract;
use fleet_sandbox::{LandlockIsolation, NoIsolation};

use crate::golden::argv::{backend, command, host, policy};
use crate::support::{TestExec, evidence};

#[test]
fn bubblewrap_keeps_the_contract() {
    let evidence = evidence("/usr/bin/bwrap".into(), true);
    isolation_contract(&backend(), &evidence, &policy(), &command());
}

#[test]
fn landlock_keeps_the_contract() {
    let backend = LandlockIsolation::new("/opt/ours-fleet".into(), host(), Arc::new(TestExec));
    isolation_contract(&backend, &evidence("".into(), true), &policy(), &command());
}

#[test]
fn no_isolation_keeps_the_contract() {
    isolation_contract(&NoIsolation, &evidence("".into(), true), &policy(), &command());
}
