//! Why a role does or does not start without isolation (01 §2.10), word by word.

use fleet_core::isolation::select::{Fallback, fallback};
use fleet_core::isolation::{
    Backend, BackendName, FsPath, IsolationBlock, NetworkMode, OnUnavailable, SecretEntry,
};
use fleet_core::permissions::{Approval, Filesystem, Permissions};
use fleet_core::port::ProbeFailure;

use super::*;

fn missing() -> Vec<(BackendName, ProbeFailure)> {
    let failure = ProbeFailure::Missing { program: "bwrap".to_owned(), hint: "install it" };
    vec![(BackendName::Bubblewrap, failure)]
}

fn message(answer: Fallback) -> String {
    match answer {
        Fallback::Refuse { message } => message,
        Fallback::Unisolated { message } => panic!("must be refused: {message}"),
    }
}

#[test]
fn what_is_at_stake_is_named_and_nothing_else() {
    type Change = fn(&mut IsolationBlock, &mut Permissions);
    let table: [(Change, &str); 5] = [
        (
            |block, _| {
                let to = path("/run/secrets/x");
                block.secrets.push(SecretEntry { from: path("/s"), to, map_form: false });
            },
            "`secrets`;",
        ),
        (
            |block, _| {
                block.fs_write.push(FsPath { written: "/w".to_owned(), path: path("/w") });
            },
            "`fs.write`;",
        ),
        (|block, _| block.network = Some(NetworkMode::Deny), "`network: deny`;"),
        (|_, permissions| permissions.approval = Approval::Allow, "`approval: allow`;"),
        (
            |block, permissions| {
                block.network = Some(NetworkMode::Deny);
                permissions.approval = Approval::Allow;
            },
            "`network: deny`, `approval: allow`;",
        ),
    ];
    for (change, words) in table {
        let mut block =
            IsolationBlock { network: Some(NetworkMode::Allow), ..IsolationBlock::default() };
        let mut permissions = Permissions::default();
        change(&mut block, &mut permissions);
        let said = message(fallback(&block, permissions, 1000, None, &missing()));
        assert!(said.contains(&format!("the role has {words}")), "{words} is not in: {said}");
    }
}

#[test]
fn each_rule_says_what_it_is() {
    let block = |network, on_unavailable| IsolationBlock {
        network: Some(network),
        on_unavailable: Some(on_unavailable),
        ..IsolationBlock::default()
    };
    let usual = Permissions::default();
    let ask = |block: &IsolationBlock, permissions, uid| {
        message(fallback(block, permissions, uid, None, &missing()))
    };
    let said = ask(&block(NetworkMode::Allow, OnUnavailable::Strict), usual, 1000);
    assert_eq!(
        said,
        "isolation backend `bubblewrap` is not usable: `bwrap` was not found on PATH (install it); \
         not started: `on_unavailable: strict`"
    );
    let said = ask(&block(NetworkMode::Broker, OnUnavailable::Warn), usual, 1000);
    assert!(
        said.ends_with("`network: broker` cannot be enforced, and is never left open"),
        "{said}"
    );
    let unbounded = Permissions {
        approval: Approval::Allow,
        filesystem: Filesystem::Unrestricted,
        ..Permissions::default()
    };
    let open = block(NetworkMode::Allow, OnUnavailable::Warn);
    let said = ask(&open, unbounded, 0);
    assert!(said.contains("as root, `approval: allow` with `filesystem: unrestricted`"), "{said}");
    // Each half of it alone is bounded.
    for bounded in [
        Permissions { filesystem: Filesystem::Workspace, ..unbounded },
        Permissions { approval: Approval::Ask, ..unbounded },
    ] {
        let answer = fallback(&open, bounded, 0, None, &missing());
        assert!(matches!(answer, Fallback::Unisolated { .. }), "{answer:?}");
    }
}

#[test]
fn a_backend_that_this_build_has_not_is_named() {
    let block = IsolationBlock {
        backend: Backend::Podman,
        on_unavailable: Some(OnUnavailable::Strict),
        ..IsolationBlock::default()
    };
    let said = message(fallback(&block, Permissions::default(), 1000, None, &[]));
    assert!(
        said.starts_with("isolation backend `podman` is not available in this build"),
        "{said}"
    );
}

#[test]
fn every_failure_is_named() {
    let mut failures = missing();
    failures.push((
        BackendName::Landlock,
        ProbeFailure::CannotEnforce {
            backend: BackendName::Landlock,
            what: "network: deny".to_owned(),
        },
    ));
    let said = |block: &IsolationBlock| {
        let (Fallback::Refuse { message: said } | Fallback::Unisolated { message: said }) =
            fallback(block, Permissions::default(), 1, None, &failures);
        assert!(said.contains("`bubblewrap` is not usable: "), "{said}");
        assert!(said.contains("; isolation backend `landlock` is not usable: "), "{said}");
        said
    };
    let asked = IsolationBlock { backend: Backend::Landlock, ..IsolationBlock::default() };
    let said_of_asked = said(&asked);
    assert!(said_of_asked.ends_with("what was asked for is never replaced by less"));
    // Where it is only tried because the other one is missing, it decides nothing.
    let auto = IsolationBlock { network: Some(NetworkMode::Allow), ..IsolationBlock::default() };
    assert!(said(&auto).ends_with("lets it start UN-ISOLATED"));
}
