//! The suite of the port, for every backend.

use std::sync::Arc;

use fleet_core::isolation::{EnforcementLevel, IsolationPolicy, Item};
use fleet_core::launch::DescriptorRequest;
use fleet_core::port::{IsolationBackend, PlanError, ProbeEvidence};
use fleet_core::test_support::contract::isolation::isolation_contract;
use fleet_sandbox::{LandlockIsolation, NoIsolation};
use rstest::rstest;

use crate::golden::argv::{backend, command, host, policy};
use crate::golden::podman;
use crate::support::{TestExec, evidence, podman_evidence};

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

#[test]
fn podman_keeps_the_contract() {
    isolation_contract(&podman::backend(host()), &podman_evidence(), &policy(), &command());
}

type Subject = (Box<dyn IsolationBackend>, ProbeEvidence);

fn bubblewrap() -> Subject {
    (Box::new(backend()), evidence("/usr/bin/bwrap".into(), true))
}

fn of_podman() -> Subject {
    (Box::new(podman::backend(host())), podman_evidence())
}

#[rstest]
#[case::bubblewrap(bubblewrap())]
#[case::podman(of_podman())]
fn a_sandbox_asks_about_what_it_promises(#[case] (backend, found): Subject) {
    let plan = backend.plan(&policy(), &found, &command()).expect("a plan");
    let asked = plan.attestation().expect("questions");
    for row in plan.promise.iter().filter(|row| row.level == EnforcementLevel::Enforced) {
        // That it ends with its launcher can be seen from outside only, but for bubblewrap's signal.
        if row.item != Item::Lifetime {
            assert!(asked.count(row.item) > 0, "nothing is asked about {:?}", row.item);
        }
    }
}

#[rstest]
#[case::bubblewrap(bubblewrap())]
#[case::podman(of_podman())]
fn a_source_that_was_not_there_is_an_error_and_every_other_is_looked_at_again(
    #[case] (backend, found): Subject,
) {
    let policy = policy();
    let plan = backend.plan(&policy, &found, &command()).expect("a plan");
    for mount in policy.mounts.iter().filter(|mount| mount.identity.is_some()) {
        let by_path = plan.checks.iter().any(|check| {
            check.path == mount.source.as_path() && Some(check.identity) == mount.identity
        });
        let by_descriptor = plan.descriptors.iter().any(|request| match request {
            DescriptorRequest::Source { path, identity, .. } => {
                path == mount.source.as_path() && Some(*identity) == mount.identity
            }
            _ => false,
        });
        assert!(by_path || by_descriptor, "{}", mount.source);
    }
    let missing = IsolationPolicy { ephemeral_dirs: Vec::new(), ..policy };
    let refused = backend.plan(&missing, &found, &command());
    assert!(matches!(refused, Err(PlanError::MissingSource { .. })), "{refused:?}");
}
