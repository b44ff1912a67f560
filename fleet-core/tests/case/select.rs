//! Selection and degraded starts (01 §2.10), D7–D9 and A12.

use fleet_core::isolation::select::{Fallback, candidates, fallback, is_lesser, strict};
use fleet_core::isolation::{
    Backend, BackendName, FsPath, IsolationBlock, NetworkMode, OnUnavailable, SecretEntry,
};
use fleet_core::permissions::{Approval, Filesystem, Permissions};
use fleet_core::port::ProbeFailure;
use fleet_core::test_support::scene::path;

fn missing() -> Vec<(BackendName, ProbeFailure)> {
    let failure = ProbeFailure::Missing { program: "bwrap".to_owned(), hint: "install it" };
    vec![(BackendName::Bubblewrap, failure)]
}

fn block(on_unavailable: Option<OnUnavailable>) -> IsolationBlock {
    IsolationBlock { network: Some(NetworkMode::Allow), on_unavailable, ..Default::default() }
}

fn starts(block: &IsolationBlock, permissions: Permissions, uid: u32) -> bool {
    match fallback(block, permissions, uid, None, &missing()) {
        Fallback::Unisolated { message } => {
            assert!(message.contains("UN-ISOLATED") && message.contains("bwrap"), "{message}");
            true
        }
        Fallback::Refuse { message } => {
            assert!(message.contains("not started") && message.contains("bwrap"), "{message}");
            false
        }
    }
}

#[test]
fn candidates_follow_the_backend_as_written() {
    for (backend, expected) in [
        (Backend::Auto, vec![BackendName::Bubblewrap, BackendName::Landlock]),
        (Backend::Bubblewrap, vec![BackendName::Bubblewrap]),
        (Backend::None, vec![BackendName::None]),
        (Backend::Landlock, vec![BackendName::Landlock]),
        (Backend::Podman, vec![BackendName::Podman]),
    ] {
        let block = IsolationBlock { backend, ..Default::default() };
        assert_eq!(candidates(&block), expected, "{backend}");
        for name in [BackendName::Bubblewrap, BackendName::Landlock, BackendName::None] {
            let lesser = backend == Backend::Auto && name == BackendName::Landlock;
            assert_eq!(is_lesser(&block, name), lesser, "{backend} {name}");
        }
    }
}

#[test]
fn p16_strict_refuses_whatever_the_role_has_and_written_warn_starts() {
    for stakes in stakes() {
        let mut one = block(Some(OnUnavailable::Strict));
        let mut permissions = Permissions::default();
        stakes(&mut one, &mut permissions);
        assert!(!starts(&one, permissions, 1000));
        one.on_unavailable = Some(OnUnavailable::Warn);
        assert!(starts(&one, permissions, 1000));
        one.on_unavailable = None;
        assert!(!starts(&one, permissions, 1000), "a default never gives up what is at stake");
    }
}

type Stake = fn(&mut IsolationBlock, &mut Permissions);

fn stakes() -> [Stake; 4] {
    [
        |block, _| {
            let to = path("/run/secrets/x");
            block.secrets.push(SecretEntry { from: path("/s"), to, map_form: false });
        },
        |block, _| block.fs_write.push(FsPath { written: "/w".to_owned(), path: path("/w") }),
        |block, _| block.network = Some(NetworkMode::Deny),
        |_, permissions| permissions.approval = Approval::Allow,
    ]
}

#[test]
fn what_forbids_a_start_with_less_is_what_forbids_one_with_nothing() {
    let forbids = |block: &IsolationBlock, permissions, uid, rule| {
        let answer = strict(block, permissions, uid, rule);
        let alone = matches!(
            fallback(block, permissions, uid, rule, &missing()),
            Fallback::Unisolated { .. }
        );
        assert_eq!(answer.is_none(), alone, "{block:?}: {answer:?}");
        answer
    };
    let (calm, warn) = (Permissions::default(), Some(OnUnavailable::Warn));
    assert_eq!(forbids(&block(None), calm, 1000, None), None);
    let written = forbids(&block(Some(OnUnavailable::Strict)), calm, 1000, None);
    assert_eq!(written.as_deref(), Some("`on_unavailable: strict`"));
    let rule = forbids(&block(warn), calm, 1000, Some("`the rule`"));
    assert_eq!(rule.as_deref(), Some("`the rule` forbids a start without isolation"));
    for stakes in stakes() {
        let (mut one, mut permissions) = (block(None), calm);
        stakes(&mut one, &mut permissions);
        assert!(forbids(&one, permissions, 1000, None).is_some(), "{one:?}");
    }
}

#[test]
fn p16_a_rule_of_the_fleet_outranks_every_warn() {
    for word in [None, Some(OnUnavailable::Warn), Some(OnUnavailable::Strict)] {
        let rule = Some("`the rule`");
        let answer = fallback(&block(word), Permissions::default(), 1000, rule, &missing());
        let Fallback::Refuse { message } = answer else { panic!("{word:?} starts") };
        assert!(message.contains("`the rule` forbids a start without isolation"), "{message}");
    }
}

#[test]
fn a_defaulted_warn_starts_a_role_with_nothing_at_stake() {
    assert!(starts(&block(None), Permissions::default(), 1000));
}

#[test]
fn p15_a_start_without_isolation_is_never_silent() {
    let Fallback::Unisolated { message } =
        fallback(&block(None), Permissions::default(), 1000, None, &missing())
    else {
        panic!("starts");
    };
    assert!(message.contains("`bwrap` was not found"), "{message}");
}

#[test]
fn a12_a_network_that_cannot_be_enforced_is_never_open() {
    let warn = Some(OnUnavailable::Warn);
    for network in [None, Some(NetworkMode::Broker), Some(NetworkMode::Allowlist)] {
        let one = IsolationBlock { network, ..block(warn) };
        assert!(!starts(&one, Permissions::default(), 1000), "{network:?}");
    }
    let cannot = ProbeFailure::CannotEnforce {
        backend: BackendName::Bubblewrap,
        what: "network: deny".to_owned(),
    };
    let one = IsolationBlock { network: Some(NetworkMode::Deny), ..block(warn) };
    let answer =
        fallback(&one, Permissions::default(), 1000, None, &[(BackendName::Bubblewrap, cannot)]);
    assert!(matches!(answer, Fallback::Refuse { .. }), "{answer:?}");
}

#[test]
fn as_root_unbounded_permissions_need_isolation() {
    let unbounded = Permissions {
        approval: Approval::Allow,
        filesystem: Filesystem::Unrestricted,
        ..Permissions::default()
    };
    let one = block(Some(OnUnavailable::Warn));
    assert!(!starts(&one, unbounded, 0));
    assert!(starts(&one, unbounded, 1000));
    assert!(starts(&one, Permissions { approval: Approval::Auto, ..unbounded }, 0));
}

#[test]
fn d7_without_bubblewrap_a_written_warn_runs_unisolated_and_a_defaulted_one_only_with_nothing_at_stake()
 {
    assert!(starts(&block(Some(OnUnavailable::Warn)), Permissions::default(), 1000));
    assert!(starts(&block(None), Permissions::default(), 1000));
    for stakes in stakes() {
        let (mut one, mut permissions) = (block(None), Permissions::default());
        stakes(&mut one, &mut permissions);
        assert!(!starts(&one, permissions, 1000));
    }
}

#[test]
fn d8_without_bubblewrap_strict_never_starts() {
    assert!(!starts(&block(Some(OnUnavailable::Strict)), Permissions::default(), 1000));
}

#[test]
fn d9_backend_none_is_asked_for_by_name_and_tries_nothing_else() {
    let one = IsolationBlock { backend: Backend::None, ..block(None) };
    assert_eq!(candidates(&one), [BackendName::None]);
    let auto = IsolationBlock { backend: Backend::Auto, ..block(None) };
    assert!(!candidates(&auto).contains(&BackendName::None), "never without a word");
}
