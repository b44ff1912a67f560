//! What is kept from the tools of a role where no boundary hides it: the paths, and what each harness
//! makes of them.

use std::collections::BTreeMap;

use fleet_core::harness::LaunchDirs;
use fleet_core::id::RoleName;
use fleet_core::permissions::{Approval, DeniedRead, Filesystem, Outer, Supported};
use fleet_core::plan::{DeniedReads, DeniedReadsRequest, denied_reads};
use fleet_core::test_support::scene::{SPEC, Scene, path};
use serde_json::Value;

use crate::claude::{around, whole};
use crate::codex::{Case, OUTERS, config};

/// What is denied to role `A`, which works in `cwd`.
pub(crate) fn denied_to(scene: &Scene, cwd: &str) -> DeniedReads {
    let trees = scene.trees();
    let dirs = LaunchDirs {
        state: trees.state.clone(),
        cwd: cwd.into(),
        git: Vec::new(),
        harness_home: trees.harness.join("command"),
        handout: trees.handout.clone(),
        briefing: trees.briefing(),
        aliases: BTreeMap::new(),
    };
    let roles: Vec<RoleName> = ["A", "B", "Later"].map(|it| it.parse().expect("a name")).to_vec();
    let request = DeniedReadsRequest {
        forbidden: &scene.forbidden(),
        trees: &trees,
        dirs: &dirs,
        roles: &roles.iter().collect::<Vec<_>>(),
        operator: Some((&path("/home/u/.claude"), &SPEC)),
    };
    denied_reads(&request, &scene.tree)
}

fn closed(denied: &DeniedReads, text: &str) -> bool {
    denied.paths.iter().any(|it| path(text).is_within(&it.path))
}

const ROOT: &str = "/home/u/.ours-fleet";

#[test]
fn keys_logins_and_every_other_role_are_denied_and_the_own_trees_are_not() {
    let mut scene = Scene::new();
    scene.operator_home();
    scene.tree.dir(&format!("{ROOT}/agents/Gone")).file("/home/u/.bash_history", "secret");
    let denied = denied_to(&scene, "/home/u/work");
    for shut in [
        "/home/u/.ssh/id_ed25519",
        "/home/u/.aws",
        "/home/u/.bash_history",
        "/home/u/fleet.yaml",
        "/home/u/.codex/auth.json",
        "/home/u/.claude/history.jsonl",
        "/home/u/.claude/projects/p/s.jsonl",
        // The login is shared with the program, which reads it itself.
        "/home/u/.claude/.credentials.json",
        "/home/u/.ours-fleet/control/A",
        "/home/u/.ours-fleet/control/B",
        "/home/u/.ours-fleet/agents/B",
        "/home/u/.ours-fleet/harness/B",
        "/home/u/.ours-fleet/handout/B",
        "/home/u/.ours-fleet/agents/Gone",
        "/home/u/.ours-fleet/handout/Later",
    ] {
        assert!(closed(&denied, shut), "{shut}: {denied:#?}");
    }
    for open in [
        "/home/u/.ours-fleet/agents/A",
        "/home/u/.ours-fleet/harness/A",
        "/home/u/.ours-fleet/handout/A",
        "/home/u/work",
        "/home/u/.gitconfig",
        "/home/u/.claude/CLAUDE.md",
        "/home/u/.claude/plugins/p",
        "/home/u/.claude/rules/a.rules",
        "/usr/bin/bash",
    ] {
        assert!(!closed(&denied, open), "{open}: {denied:#?}");
    }
    assert_eq!(denied.open, []);
    let there =
        |text: &str| denied.paths.iter().find(|it| it.path == path(text)).map(|it| it.exists);
    assert_eq!((there("/home/u/.ssh"), there("/home/u/.aws")), (Some(true), Some(false)));
}

#[test]
fn links_are_followed_and_what_holds_the_own_directories_is_named_instead() {
    let mut scene = Scene::new();
    scene.tree.dir("/data/keys").link("/home/u/.aws", "/data/keys");
    scene.forbid_paths = vec![path("/data/vault"), path("/opt/tools")];
    scene.tree.dir("/data/vault/project");
    let denied = denied_to(&scene, "/data/vault/project");
    assert!(closed(&denied, "/data/keys/x") && closed(&denied, "/opt/tools"));
    assert!(!closed(&denied, "/data/vault/project"));
    assert_eq!(denied.open, [path("/data/vault")]);
}

#[test]
fn in_a_working_directory_around_them_keys_are_still_denied() {
    let denied = denied_to(&Scene::new(), "/home/u");
    assert!(closed(&denied, "/home/u/.ssh") && closed(&denied, "/home/u/.config/gh"));
    assert_eq!(denied.open, []);
}

fn sample() -> Vec<DeniedRead> {
    vec![
        DeniedRead { path: path("/home/op/.ssh"), exists: true },
        DeniedRead { path: path("/srv/project/.aws"), exists: false },
        DeniedRead { path: path("/srv/vault"), exists: false },
    ]
}

fn named(supported: &Supported) -> Option<Vec<String>> {
    let list = supported.native.get(fleet_core::permissions::DENIED_READS_KEY)?;
    Some(serde_json::from_str(list).expect("a list"))
}

#[test]
fn claude_denies_them_in_every_row_but_two_and_never_inside_the_isolation() {
    for approval in [Approval::Ask, Approval::Auto, Approval::Allow] {
        for filesystem in [Filesystem::ReadOnly, Filesystem::Workspace, Filesystem::Unrestricted] {
            for outer in OUTERS {
                let mut it = around("cwd: /srv/project").outer(outer);
                let words = it.role.permissions;
                it.role.permissions =
                    fleet_core::permissions::Permissions { approval, filesystem, ..words };
                let plain: Value =
                    serde_json::from_str(&whole(&it.launch(), "settings-overlay.json"))
                        .expect("JSON");
                it.denied_reads = sample();
                let with: Value =
                    serde_json::from_str(&whole(&it.launch(), "settings-overlay.json"))
                        .expect("JSON");
                let rules = |overlay: &Value| -> Vec<String> {
                    serde_json::from_value(overlay["permissions"]["deny"].clone()).expect("rules")
                };
                let more: Vec<String> =
                    rules(&with).into_iter().filter(|rule| !rules(&plain).contains(rule)).collect();
                let open = filesystem == Filesystem::Unrestricted && approval != Approval::Ask;
                let said = it.translated();
                let listed = named(&said).expect("a list");
                if open || outer.is_on() {
                    assert_eq!((more, listed), (Vec::new(), Vec::new()));
                } else {
                    let all = ["/home/op/.ssh", "/srv/project/.aws", "/srv/vault"];
                    assert_eq!(more, all.map(|path| format!("Read(/{path})")));
                    assert_eq!(listed, all);
                }
                let (mut plain, mut with) = (plain, with);
                plain["permissions"]["deny"] = Value::Null;
                with["permissions"]["deny"] = Value::Null;
                assert_eq!(plain, with, "nothing else changes");
                let note = if open { "can read all" } else { "are denied to its tools" };
                let found = said.notes.iter().any(|it| it.contains(note));
                assert_eq!(found, !outer.is_on(), "{approval:?} {filesystem:?} {outer:?}");
            }
        }
    }
}

/// A rule with a pattern in it would close something else.
#[test]
fn claude_refuses_a_path_that_its_rules_cannot_name() {
    for strange in ["/srv/a[b]", "/srv/a*", "/srv/a "] {
        let mut it = around("cwd: /srv/project");
        it.denied_reads = vec![DeniedRead { path: path(strange), exists: true }];
        let refusals = it.translated().refusals;
        assert!(
            refusals.iter().any(|it| it.contains(strange.trim_end())),
            "{strange}: {refusals:?}"
        );
        assert_eq!(it.outer(Outer::On).translated().refusals, Vec::<String>::new());
    }
}

#[test]
fn codex_denies_them_wherever_it_has_a_bound() {
    for mut case in Case::all() {
        let plain = config(&case.launch());
        let mut sample = sample();
        sample[1].path = path(&format!("{}/.aws", case.dirs.cwd));
        case.denied_reads = sample;
        let with = config(&case.launch());
        let Some(permissions) = with.get("permissions") else {
            assert_eq!(plain, with);
            assert_eq!(named(&case.translate()), None);
            continue;
        };
        let mut table = permissions["fleet"]["filesystem"].as_table().expect("a table").clone();
        let mut denied: Vec<String> = Vec::new();
        table.retain(|path, value| {
            let deny = value.as_str() == Some("deny");
            denied.extend(deny.then(|| path.to_owned()));
            !deny
        });
        assert_eq!(Some(&table), plain["permissions"]["fleet"]["filesystem"].as_table());
        // What is absent costs time in every command, and where Codex lets be written it stops it.
        assert_eq!(denied, ["/home/op/.ssh"], "{case:?}");
        assert_eq!(named(&case.translate()).map(|it| it.len()), Some(1));
    }
}

/// What the operator opens by an option of the program is open.
#[test]
fn an_added_directory_of_codex_is_not_denied() {
    let mut case = Case::workspace().options(r#"{"add_dirs": ["/home/op/.ssh"]}"#);
    case.denied_reads = sample();
    case.denied_reads.push(DeniedRead { path: path("/srv/safe"), exists: true });
    let config = config(&case.launch());
    let table = &config["permissions"]["fleet"]["filesystem"];
    assert_eq!(table["/home/op/.ssh"].as_str(), Some("write"));
    assert_eq!(table["/srv/safe"].as_str(), Some("deny"));
}
