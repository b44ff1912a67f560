//! 08 A12: a sandbox that answers `--version` and cannot work is found out before a launch.

use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::NetworkMode;
use fleet_core::port::{IsolationBackend as _, ProbeEvidence, ProbeFailure};

use crate::support::{Host, Launch, need_bwrap};

fn shim(launch: &Launch, script: &str) -> Vec<Utf8PathBuf> {
    let directory = launch.base.join("shim");
    std::fs::create_dir_all(&directory).expect("mkdir");
    let path = directory.join("bwrap");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("write");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    vec![directory]
}

fn probe(
    launch: &Launch,
    directories: &[Utf8PathBuf],
    mode: NetworkMode,
) -> Result<ProbeEvidence, ProbeFailure> {
    let backend = Host::backend_with(directories);
    let policy = launch.policy().network(mode).policy;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    runtime.block_on(backend.probe(&policy))
}

fn real() -> Utf8PathBuf {
    Host::bwrap().expect("checked by the caller")
}

#[test]
fn a12_the_real_one_passes_and_shows_its_features() {
    need_bwrap!();
    let launch = Launch::new();
    for mode in [NetworkMode::Deny, NetworkMode::Allow] {
        let evidence = probe(&launch, &Host::path_directories(), mode).expect("usable");
        assert!(evidence.version.starts_with("bubblewrap"), "{evidence:?}");
        assert_eq!(Utf8Path::new(&evidence.program), real());
    }
}

#[test]
fn a12_one_that_only_tells_its_version_fails_the_trial() {
    need_bwrap!();
    let launch = Launch::new();
    let real = real();
    let script = format!(
        "case $1 in --version|--help) exec {real} \"$1\";; esac\n\
         echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1"
    );
    let failure =
        probe(&launch, &shim(&launch, &script), NetworkMode::Allow).expect_err("unusable");
    let ProbeFailure::Trial { detail, hint } = failure else { panic!("{failure:?}") };
    assert!(detail.contains("uid map") && hint.contains("AppArmor"), "{detail} / {hint}");
}

#[test]
fn a12_one_that_works_only_with_the_hosts_network_fails_for_deny_alone() {
    need_bwrap!();
    let launch = Launch::new();
    let real = real();
    let script = format!(
        "for word; do [ \"$word\" = --unshare-net ] && {{ echo 'bwrap: loopback: Failed \
         RTM_NEWADDR: Operation not permitted' >&2; exit 1; }}; done\nexec {real} \"$@\""
    );
    let directories = shim(&launch, &script);
    probe(&launch, &directories, NetworkMode::Allow).expect("usable without");
    let failure = probe(&launch, &directories, NetworkMode::Deny).expect_err("unusable with");
    assert!(
        matches!(&failure, ProbeFailure::Trial { detail, .. } if detail.contains("RTM_NEWADDR"))
    );
}

#[test]
fn a12_none_at_all_is_missing_and_an_old_one_is_named_old() {
    need_bwrap!();
    let launch = Launch::new();
    let empty = vec![launch.base.join("home")];
    let failure = probe(&launch, &empty, NetworkMode::Allow).expect_err("missing");
    assert!(matches!(failure, ProbeFailure::Missing { .. }), "{failure:?}");
    let script = format!(
        "[ \"$1\" = --help ] && {{ {} --help | grep -v -- --disable-userns; exit 0; }}",
        real()
    );
    let failure = probe(&launch, &shim(&launch, &script), NetworkMode::Allow).expect_err("old");
    assert!(failure.to_string().contains("--disable-userns"), "{failure}");
}

#[test]
fn a12_the_trial_of_a_served_network_is_made_in_one_of_its_own() {
    need_bwrap!();
    let launch = Launch::new();
    // One that works, but not with a network of its own.
    let script = format!(
        "case \"$*\" in *--unshare-net*) echo 'no network namespace' >&2; exit 1;; esac; exec {} \"$@\"",
        real()
    );
    for mode in [NetworkMode::Broker, NetworkMode::Allowlist, NetworkMode::Deny] {
        let failure = probe(&launch, &shim(&launch, &script), mode).expect_err("no namespace");
        assert!(failure.to_string().contains("no network namespace"), "{failure}");
    }
    probe(&launch, &shim(&launch, &script), NetworkMode::Allow).expect("needs none");
}

#[test]
fn a12_a_trial_inside_a_closed_sandbox_fails_for_real() {
    need_bwrap!();
    let launch = Launch::new();
    // No user namespace can be made below this one: a genuine ENOSPC.
    let script = format!(
        "exec {real} --unshare-user --disable-userns --dev-bind / / {real} \"$@\"",
        real = real()
    );
    let failure = probe(&launch, &shim(&launch, &script), NetworkMode::Deny).expect_err("closed");
    assert!(failure.to_string().contains("max_user_namespaces"), "{failure}");
}
