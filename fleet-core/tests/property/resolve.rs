//! P8–P11, P16, P18 and P19: order, effective modes, selection and secrets.

use fleet_core::isolation::select::{Fallback, fallback};
use fleet_core::isolation::{
    BackendName, IsolationBlock, IsolationPolicy, MountMode, MountOrigin, NetworkMode,
    OnUnavailable, Resources,
};
use fleet_core::path::LexicalPath;
use fleet_core::permissions::{Approval, Filesystem, Permissions};
use fleet_core::port::ProbeFailure;
use fleet_core::test_support::scene::{HOME, Scene, path};
use fleet_core::test_support::strategies;
use proptest::prelude::*;

use super::forbidden::resolve;
use super::{Resolver, check, holds};

/// What mounting in the given order leaves at a path: the last mount that covers it.
fn simulated(policy: &IsolationPolicy, at: &LexicalPath) -> Option<MountMode> {
    let last = policy.mounts.iter().rev().find(|mount| at.is_within(&mount.destination));
    last.map(|mount| mount.mode)
}

/// P8: a mount comes before every mount inside it.
pub(crate) fn p8(resolve: Resolver) -> Result<(), String> {
    check(&strategies::scene(), |scene| {
        let Ok(policy) = resolve(&scene) else { return Ok(()) };
        for (number, later) in policy.mounts.iter().enumerate() {
            for earlier in &policy.mounts[..number] {
                prop_assert!(
                    !earlier.destination.is_within(&later.destination),
                    "{} comes before {}",
                    earlier.destination,
                    later.destination
                );
            }
        }
        Ok(())
    })
}

/// P9: the mode at any path is that of the deepest mount around it.
pub(crate) fn p9(resolve: Resolver) -> Result<(), String> {
    check(&strategies::scene(), |scene| {
        let Ok(policy) = resolve(&scene) else { return Ok(()) };
        for mount in &policy.mounts {
            for at in [Some(mount.destination.clone()), mount.destination.child("probe").ok()] {
                let Some(at) = at else { continue };
                let deepest = policy.covering(&at).map(|mount| mount.mode);
                prop_assert_eq!(simulated(&policy, &at), deepest, "{}", at);
            }
        }
        Ok(())
    })
}

/// P10: STATE can always be written, and the working directory if it was not asked to be read-only.
pub(crate) fn p10(resolve: Resolver) -> Result<(), String> {
    check(&strategies::scene(), |scene| {
        let Ok(policy) = resolve(&scene) else { return Ok(()) };
        let state = path(scene.trees().state.as_str());
        prop_assert_eq!(simulated(&policy, &state), Some(MountMode::ReadWrite), "STATE");
        if scene.cwd_mode == MountMode::ReadWrite {
            let cwd = simulated(&policy, &policy.cwd);
            prop_assert_eq!(cwd, Some(MountMode::ReadWrite), "cwd {}", policy.cwd);
        }
        Ok(())
    })
}

/// P11: the handout and shared items can never be written, nor anything in them, nor where they lie.
pub(crate) fn p11(resolve: Resolver) -> Result<(), String> {
    let read_only = |scene: Scene| {
        let Ok(policy) = resolve(&scene) else { return Ok(()) };
        let handout = path(scene.trees().handout.as_str());
        for mount in &policy.mounts {
            let inside = mount.destination.is_within(&handout);
            prop_assert!(
                !inside || mount.mode == MountMode::ReadOnly,
                "{} is writable",
                mount.destination
            );
        }
        let inner = handout.child("briefing.md").expect("a name");
        prop_assert_eq!(simulated(&policy, &inner), Some(MountMode::ReadOnly));
        let home = path("/home/u/.claude");
        for mount in &policy.mounts {
            let item = matches!(mount.origin, MountOrigin::SharedItem { .. });
            let inside = mount.source.is_within(&home);
            prop_assert!(item || !inside, "{} is of the operator's harness home", mount.source);
            if item {
                for at in [Some(mount.destination.clone()), mount.destination.child("x").ok()] {
                    let mode = at.and_then(|at| simulated(&policy, &at));
                    prop_assert_eq!(mode, Some(MountMode::ReadOnly), "{}", mount.destination);
                }
                let other = policy.mounts.iter().find(|other| {
                    other.mode == MountMode::ReadWrite && mount.source.is_within(&other.source)
                });
                prop_assert!(other.is_none(), "{} can be written elsewhere", mount.source);
            }
        }
        Ok(())
    };
    check(&strategies::scene(), read_only)?;
    check(&strategies::shared_scene(), read_only)
}

#[test]
fn p8_ancestors_are_mounted_first() {
    holds(p8(resolve));
}

#[test]
fn p9_the_deepest_mount_decides() {
    holds(p9(resolve));
}

#[test]
fn p10_state_and_cwd_can_be_written() {
    holds(p10(resolve));
}

#[test]
fn p11_the_handout_and_shared_items_are_read_only() {
    holds(p11(resolve));
}

/// P16: strict never starts un-isolated, whatever else is written.
#[test]
fn p16_strict_refuses_and_a_starting_policy_starts() {
    let networks = prop::sample::select(vec![
        None,
        Some(NetworkMode::Broker),
        Some(NetworkMode::Deny),
        Some(NetworkMode::Allow),
        Some(NetworkMode::Allowlist),
    ]);
    let words =
        prop::sample::select(vec![None, Some(OnUnavailable::Warn), Some(OnUnavailable::Strict)]);
    let permissions = (
        prop::sample::select(vec![Approval::Ask, Approval::Auto, Approval::Allow]),
        prop::sample::select(vec![Filesystem::Workspace, Filesystem::Unrestricted]),
    );
    let strategy = (strategies::scene(), networks, words, permissions, any::<bool>());
    holds(check(&strategy, |(scene, network, on_unavailable, permissions, root)| {
        let resources = Resources { pids: Some(64), ..Resources::default() };
        let block = IsolationBlock { network, on_unavailable, resources, ..scene.block };
        let (approval, filesystem) = permissions;
        let permissions = Permissions { approval, filesystem, ..Permissions::default() };
        let failure = ProbeFailure::Missing { program: "bwrap".to_owned(), hint: "install it" };
        let failures = [(BackendName::Bubblewrap, failure)];
        let answer = fallback(&block, permissions, if root { 0 } else { 1000 }, None, &failures);
        let refused = matches!(answer, Fallback::Refuse { .. });
        let open = matches!(block.network(), NetworkMode::Broker | NetworkMode::Allowlist);
        let unbounded = approval == Approval::Allow && filesystem == Filesystem::Unrestricted;
        let at_stake = !block.secrets.is_empty()
            || !block.fs_write.is_empty()
            || network == Some(NetworkMode::Deny)
            || approval == Approval::Allow;
        let expected = open
            || on_unavailable == Some(OnUnavailable::Strict)
            || (on_unavailable.is_none() && at_stake)
            || (root && unbounded);
        prop_assert_eq!(refused, expected, "{:?}", answer);
        Ok(())
    }));
}

/// P18: exactly one read-only mount per secret.
#[test]
fn p18_one_read_only_mount_per_secret() {
    holds(check(&strategies::scene(), |scene| {
        let Ok(policy) = scene.resolve() else { return Ok(()) };
        for entry in &scene.block.secrets {
            let there: Vec<_> =
                policy.mounts.iter().filter(|mount| mount.destination == entry.to).collect();
            prop_assert_eq!(there.len(), 1, "{}", &entry.to);
            prop_assert_eq!(there[0].mode, MountMode::ReadOnly);
        }
        let secrets =
            policy.mounts.iter().filter(|m| matches!(m.origin, MountOrigin::Secret { .. }));
        prop_assert!(secrets.count() <= scene.block.secrets.len());
        Ok(())
    }));
}

/// P19: any text gives a plain absolute path or an error.
#[test]
fn p19_any_text_is_an_absolute_path_or_an_error() {
    let parts =
        prop::sample::select(vec!["/", "~", "..", ".", "a", "\0", "\n", "é", ":", " ", "//"]);
    let text = prop_oneof![
        prop::collection::vec(parts, 0..7).prop_map(|parts| parts.concat()),
        any::<String>()
    ];
    holds(check(&text, |text| {
        let Ok(parsed) = LexicalPath::parse(&text, &path(HOME)) else { return Ok(()) };
        let text = parsed.as_str();
        prop_assert!(text.starts_with('/') && !text.chars().any(char::is_control));
        if text != "/" {
            let odd = text[1..].split('/').find(|part| matches!(*part, "" | "." | ".."));
            prop_assert_eq!(odd, None, "{}", text);
        }
        // And it is judged, not passed through.
        let mut scene = Scene::new();
        scene.read(text);
        let shown = scene.resolve();
        prop_assert!(text != "/" || shown.is_err());
        Ok(())
    }));
}
