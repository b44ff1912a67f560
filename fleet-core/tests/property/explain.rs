//! `explain` says what the policy does: simulated overlays, tier A, places, the environment builder.

use std::collections::BTreeMap;

use fleet_core::environment::{EnvironmentInputs, child_environment};
use fleet_core::isolation::forbidden::Tier;
use fleet_core::isolation::{IsolationPolicy, MountMode};
use fleet_core::path::LexicalPath;
use fleet_core::policy::explain::Verdict;
use fleet_core::port::PathProbe;
use fleet_core::test_support::scene::{Scene, path};
use fleet_core::test_support::strategies;
use proptest::prelude::*;
use serde_json::json;

use super::{check, fleets, holds};
use crate::explain::{FILE, Judged, judged, judged_in};

/// The fleet file of a scene.
fn file(scene: &Scene) -> String {
    let paths = |list: &[fleet_core::isolation::FsPath]| -> Vec<String> {
        list.iter().map(|it| it.path.to_string()).collect()
    };
    let secrets: Vec<_> = scene
        .block
        .secrets
        .iter()
        .map(|it| json!({ "from": it.from.as_str(), "to": it.to.as_str() }))
        .collect();
    let mut role = json!({
        "harness": "command",
        "harness_options": { "argv": ["bash"] },
        "isolation": {
            "network": "deny",
            "fs": { "read": paths(&scene.block.fs_read), "write": paths(&scene.block.fs_write) },
            "secrets": secrets,
        },
    });
    if let Some(cwd) = &scene.cwd {
        role["cwd"] = json!(cwd.as_str());
    }
    if scene.cwd_mode == MountMode::ReadOnly {
        role["permissions"] = json!({ "filesystem": "read-only" });
    }
    if let Some(protect) = &scene.block.protect {
        role["isolation"]["protect"] = json!(protect);
    }
    let forbidden: Vec<&str> = scene.forbid_paths.iter().map(LexicalPath::as_str).collect();
    let fleet = json!({ "policy": { "forbid_paths": forbidden }, "roles": { "A": role } });
    serde_json::to_string_pretty(&fleet).expect("JSON")
}

fn of_scene(scene: Scene) -> Judged {
    let text = file(&scene);
    judged(scene, &text)
}

/// What mounting in the given order leaves at a name: the last mount that covers it.
fn last<'p>(
    policy: &'p IsolationPolicy,
    at: &LexicalPath,
) -> Option<&'p fleet_core::isolation::Mount> {
    policy.mounts.iter().rev().find(|mount| at.is_within(&mount.destination))
}

/// The widest mode under which the object at a path of the host can be had: for each mount that shows
/// a directory above it, by name or as the same object, the name that it gets there, if nothing was
/// mounted over it later.
fn simulated(judged: &Judged, at: &LexicalPath) -> Option<MountMode> {
    let policy = judged.assessment.policy.as_ref().expect("a policy");
    let target = judged.scene.tree.resolve(at).map_or(at.clone(), |found| found.path);
    let mut modes: Vec<MountMode> =
        last(policy, &target).map(|mount| mount.mode).into_iter().collect();
    for mount in &policy.mounts {
        for above in target.self_and_ancestors().map(path) {
            let seen = judged.scene.tree.resolve(&above).ok();
            let same = seen.is_some_and(|it| {
                it.path == above
                    && it.object.is_some_and(|object| Some(object.identity) == mount.identity)
            });
            if !same && above != mount.source {
                continue;
            }
            let rest = target.below(&above).expect("above it");
            let name = match rest {
                "" => mount.destination.clone(),
                rest => mount.destination.join(rest).expect("plain"),
            };
            if last(policy, &name).is_some_and(|it| std::ptr::eq(it, mount)) {
                modes.push(mount.mode);
            }
        }
    }
    if modes.contains(&MountMode::ReadWrite) {
        return Some(MountMode::ReadWrite);
    }
    modes.first().copied()
}

fn asked_of(judged: &Judged, more: &[LexicalPath]) -> Vec<LexicalPath> {
    let policy = judged.assessment.policy.as_ref().expect("a policy");
    let around = policy.mounts.iter().flat_map(|mount| {
        let probe = |at: &LexicalPath| at.child("probe").ok();
        [
            Some(mount.destination.clone()),
            Some(mount.source.clone()),
            probe(&mount.destination),
            probe(&mount.source),
            mount.destination.parent(),
        ]
    });
    around.flatten().chain(more.iter().cloned()).collect()
}

#[test]
fn explain_agrees_with_the_simulated_overlay() {
    let more = prop::collection::vec(
        prop_oneof![strategies::asked_path(), strategies::harmful_path()],
        0..6,
    );
    let (mut shown, mut hidden) = (0, 0);
    let counts = std::cell::RefCell::new((&mut shown, &mut hidden));
    holds(check(&(strategies::scene(), more), |(scene, more)| {
        let judged = of_scene(scene);
        if judged.assessment.policy.is_none() {
            return Ok(());
        }
        for at in asked_of(&judged, &more) {
            let answer = judged.path(&at);
            let said = match answer.verdict {
                Verdict::ReadWrite => Some(MountMode::ReadWrite),
                Verdict::ReadOnly if answer.rule.id.starts_with("mount.") => {
                    Some(MountMode::ReadOnly)
                }
                _ => None,
            };
            prop_assert_eq!(said, simulated(&judged, &at), "{}: {:?}", at, answer);
            let mut counts = counts.borrow_mut();
            if said.is_some() { *counts.0 += 1 } else { *counts.1 += 1 }
        }
        Ok(())
    }));
    assert!(shown > 1000 && hidden > 500, "{shown} {hidden}: the generator gives too little");
}

#[test]
fn explain_never_calls_a_tier_a_path_reachable() {
    holds(check(&(strategies::scene(), strategies::harmful_path()), |(scene, harmful)| {
        let judged = of_scene(scene);
        let own = judged.scene.trees();
        let own = [&own.state, &own.harness, &own.handout].map(|dir| path(dir.as_str()));
        let entries = judged.forbidden.entries().iter();
        let entries = entries.filter(|entry| entry.tier == Tier::NoExposure);
        let listed = entries.map(|entry| &entry.path).cloned();
        let below = listed.clone().filter_map(|at| at.child("x").ok());
        // A name in other letters is another name, where case counts.
        let other = |it: &LexicalPath| {
            it.as_str().contains(char::is_uppercase) && !judged.scene.tree.ignores_case(it)
        };
        for at in listed.chain(below).chain([harmful].into_iter().filter(|it| !other(it))) {
            if own.iter().any(|own| at.is_within(own)) {
                continue;
            }
            let verdict = judged.path(&at).verdict;
            let reachable = matches!(verdict, Verdict::ReadWrite | Verdict::Account);
            prop_assert!(!reachable, "{} is {:?}", at, verdict);
            let of_the_system = at.is_within(&path("/usr")) || at.is_within(&path("/etc"));
            prop_assert!(verdict != Verdict::ReadOnly || of_the_system, "{} is read", at);
        }
        Ok(())
    }));
}

#[test]
fn explain_names_a_line_of_the_file_for_every_mount() {
    holds(check(&strategies::scene(), |scene| {
        let judged = of_scene(scene);
        let Some(policy) = &judged.assessment.policy else { return Ok(()) };
        for mount in &policy.mounts {
            let place = judged.request().mount_place(&mount.origin);
            let place = place.ok_or_else(|| TestCaseError::fail(format!("{:?}", mount.origin)))?;
            prop_assert_eq!(place.file.as_str(), FILE);
            let line = usize::try_from(place.line).ok().and_then(|line| line.checked_sub(1));
            let line = line.and_then(|line| judged.text.lines().nth(line)).unwrap_or_default();
            let key = mount.origin.key();
            // What is written is named exactly; what is not, by the block that it belongs to.
            let expected = match key.as_str() {
                "cwd" => "\"cwd\"".to_owned(),
                "isolation.protect" if judged.text.contains("\"protect\"") => {
                    "\"protect\"".to_owned()
                }
                "isolation" | "isolation.protect" => "\"isolation\"".to_owned(),
                key if key.starts_with("isolation.secrets") => "{".to_owned(),
                _ => format!("\"{}", mount_text(&judged, &key)),
            };
            prop_assert!(line.contains(&expected), "{} names `{}`", key, line);
        }
        Ok(())
    }));
}

/// The text of an entry of `fs` in the file.
fn mount_text(judged: &Judged, key: &str) -> String {
    let block = judged.request().role.isolation.as_ref().expect("a block");
    let number: usize =
        key[key.find('[').expect("an index") + 1..key.len() - 1].parse().expect("a number");
    let list = if key.contains("read") { &block.fs_read } else { &block.fs_write };
    list[number].path.to_string()
}

#[test]
fn explain_agrees_with_the_environment_builder() {
    let own = prop::collection::btree_map(
        prop::sample::select(vec![
            "A",
            "B",
            "LANG",
            "LC_ALL",
            "TMPDIR",
            "XDG_RUNTIME_DIR",
            "GH_TOKEN",
            "PATH",
            "P",
            "Q",
        ]),
        "[a-z]{0,3}",
        0..8,
    );
    let names = prop::collection::vec(
        prop::sample::select(vec![
            "A",
            "B",
            "C",
            "P",
            "Q",
            "LANG",
            "LC_ALL",
            "TMPDIR",
            "GH_TOKEN",
            "OURS_AUTOSTART",
            "OURS_FLEET_ROLE",
            "OURS_FLEET_X",
            "HOME",
            "NO_COLOR",
        ]),
        1..8,
    );
    let input = (own, fleets::env(), any::<bool>(), names);
    holds(check(&input, |(own, env, isolated, names)| {
        let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, &**value)).collect();
        let backend = if isolated { "auto" } else { "none" };
        let mut isolation = json!({ "backend": backend });
        if isolated {
            isolation["network"] = json!("deny");
        }
        let text = json!({ "roles": { "A": {
            "harness": "command",
            "harness_options": { "argv": ["bash"] },
            "env": env,
            "env_pass": ["P", "Q"],
            "isolation": isolation,
        }}});
        let judged = judged_in(Scene::new(), &text.to_string(), &own);
        let no_more = BTreeMap::new();
        let harness = &judged.assessment.harness_env;
        prop_assert!(*harness != no_more);
        let built = child_environment(&EnvironmentInputs {
            own: &judged.world.env,
            home: "/home/u",
            path: "/usr/bin",
            term: "x",
            harness,
            harness_home: None,
            role: judged.request().role,
            isolated,
        });
        for name in names {
            let answer = judged.env(name);
            let there = built.0.contains_key(name);
            prop_assert_eq!(answer.verdict == Verdict::Set, there, "{}: {:?}", name, answer);
            prop_assert_eq!(answer.verdict == Verdict::Withheld, !there);
        }
        Ok(())
    }));
}
