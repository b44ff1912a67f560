//! Whole plans and reports of Landlock, for a host that is described by hand.

use std::fmt::Write as _;
use std::sync::Arc;

use fleet_core::isolation::{IsolationPolicy, MountMode, MountOrigin, NetworkMode, SystemView};
use fleet_core::launch::LaunchPlan;
use fleet_core::port::{IsolationBackend as _, PlanError};
use fleet_sandbox::LandlockIsolation;

use super::argv::{command, host, mount, path, policy, shown};
use crate::support::{TestExec, evidence, skip};

/// As on a kernel with at most this version.
fn backend(abi: u32) -> LandlockIsolation {
    LandlockIsolation::new("/opt/ours-fleet".into(), host(), Arc::new(TestExec))
        .with_abi_at_most(abi)
}

fn plan(policy: &IsolationPolicy) -> Result<LaunchPlan, PlanError> {
    backend(7).plan(policy, &evidence("".into(), true), &command())
}

#[test]
fn landlock_deny_curated() {
    if backend(7).abi() < 7 {
        skip!("the kernel's Landlock is older than the one that the plan is written for");
    }
    insta::assert_snapshot!(shown(&plan(&policy()).expect("a plan")));
}

#[test]
fn landlock_allow_full() {
    if backend(7).abi() < 7 {
        skip!("the kernel's Landlock is older than the one that the plan is written for");
    }
    let policy =
        IsolationPolicy { network: NetworkMode::Allow, system: SystemView::Full, ..policy() };
    insta::assert_snapshot!(shown(&plan(&policy).expect("a plan")));
}

#[test]
fn landlock_promises() {
    if backend(7).abi() < 7 {
        skip!("the kernel's Landlock is older than the one that the report is written for");
    }
    let mut text = String::new();
    for abi in [7, 1] {
        for row in backend(abi).promise(&policy()) {
            let level = row.level.as_str();
            writeln!(text, "{abi} {} {level} ({}): {}", row.item.as_str(), row.asked, row.evidence)
                .expect("a text takes all");
        }
    }
    insta::assert_snapshot!(text);
}

type Change = fn(&mut IsolationPolicy);

#[test]
fn what_it_cannot_do_is_refused_in_words() {
    let table: [(Change, &str); 5] = [
        (|it| it.network = NetworkMode::Broker, "tells ports apart, not hosts"),
        (|it| it.network = NetworkMode::Allowlist, "tells ports apart, not hosts"),
        (|it| it.nested_sandbox = true, "`nested_sandbox`"),
        (
            |it| {
                let origin = MountOrigin::Secret { index: 0 };
                let mut secret = mount("/srv/key", 20, MountMode::ReadOnly, origin);
                secret.destination = path("/run/secrets/key");
                it.mounts.push(secret);
            },
            "`/run/secrets/key` at another place (`isolation.secrets[0]`)",
        ),
        (
            |it| {
                let origin = MountOrigin::FsRead { index: 2 };
                it.mounts.push(mount("/srv/work/vendor", 21, MountMode::ReadOnly, origin));
            },
            "`/srv/work/vendor` read-only (`isolation.fs.read[2]`)",
        ),
    ];
    assert!(plan(&policy()).is_ok());
    for (change, words) in table {
        let mut policy = policy();
        change(&mut policy);
        let refusal = plan(&policy).expect_err("refused").to_string();
        assert!(refusal.starts_with("`landlock` cannot enforce "), "{refusal}");
        assert!(refusal.contains(words), "{refusal}");
    }
}

#[test]
fn guards_of_the_project_are_taken_and_said_not_to_hold() {
    let short = backend(7).shortfalls(&policy());
    assert!(short.iter().any(|what| what.contains("/srv/work/.git/hooks")), "{short:?}");
    let mut open = policy();
    open.mounts.retain(|mount| mount.mode == MountMode::ReadWrite);
    let short = backend(7).shortfalls(&open);
    assert!(!short.iter().any(|what| what.contains("isolation.protect")), "{short:?}");
    // A read-only mount of its own is held.
    open.mounts.push(mount("/data", 22, MountMode::ReadOnly, MountOrigin::FsRead { index: 0 }));
    assert_eq!(backend(7).shortfalls(&open), short);
    assert!(plan(&open).is_ok());
}
