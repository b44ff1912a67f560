//! Regressions of the predecessor's weaknesses (01 §2.12) in what a launch is made of, named after
//! them.

use std::collections::BTreeMap;

use fleet_core::environment::{EnvironmentInputs, child_environment};
use fleet_core::harness::claude_code::ClaudeCodeHarness;
use fleet_core::harness::codex::CodexHarness;
use fleet_core::harness::{Harness as _, Harnesses};
use fleet_core::isolation::select::{Fallback, fallback};
use fleet_core::isolation::{
    BackendName, IsolationBlock, MountMode, MountOrigin, NetworkMode, OnUnavailable, SystemView,
};
use fleet_core::launch::Environment;
use fleet_core::permissions::Permissions;
use fleet_core::port::ProbeFailure;
use fleet_core::test_support::fakes::MemoryTree;
use fleet_core::test_support::scene::{Scene, path};
use fleet_core::{ConfigSources, Judge, LoadOptions, World, load};
use serde_json::json;

use super::isolation::{accepted, no, refused};
use crate::fleet::{base, names};

fn missing() -> [(BackendName, ProbeFailure); 1] {
    let failure = ProbeFailure::Missing { program: "bwrap".to_owned(), hint: "install it" };
    [(BackendName::Bubblewrap, failure)]
}

#[test]
fn w08_what_is_not_enforced_is_refused_and_a_fallback_says_so() {
    let answer = |network, on_unavailable| {
        let block = IsolationBlock { network, on_unavailable, ..IsolationBlock::default() };
        fallback(&block, Permissions::default(), 1000, None, &missing())
    };
    for network in [None, Some(NetworkMode::Broker), Some(NetworkMode::Allowlist)] {
        for word in [None, Some(OnUnavailable::Warn), Some(OnUnavailable::Strict)] {
            assert!(
                matches!(answer(network, word), Fallback::Refuse { .. }),
                "{network:?} {word:?}"
            );
        }
    }
    let open = answer(Some(NetworkMode::Allow), Some(OnUnavailable::Warn));
    let Fallback::Unisolated { message } = open else { panic!("{open:?}") };
    names(&message, &["UN-ISOLATED", "bwrap"]);
    // The marker of such a start lies where no agent reaches: W19.
}

#[test]
fn w11_nothing_of_fleets_environment_is_inherited() {
    let own = ["SSH_AUTH_SOCK", "AWS_SECRET_ACCESS_KEY", "GH_TOKEN", "LD_PRELOAD", "TMUX"];
    let own = Environment(own.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect());
    let role = base("roles: {A: {harness: command, harness_options: {argv: [x]}}}").role("A");
    let env = child_environment(&EnvironmentInputs {
        own: &own,
        home: "/h",
        path: "/bin",
        term: "xterm",
        harness: &BTreeMap::new(),
        harness_home: None,
        role: &role,
        isolated: true,
    });
    let names: Vec<&str> = env.0.keys().map(String::as_str).collect();
    assert_eq!(names, ["COLORTERM", "HOME", "OURS_AUTOSTART", "PATH", "TERM"]);
}

#[test]
fn w15_etc_is_curated_and_no_role_gets_more_of_it() {
    assert_eq!(accepted(|_| {}).system, SystemView::Curated);
    refused(|s| no(s.read("/etc")), "isolation.fs.read[0]", &["part of the system"]);
    for (mounts, wanted) in [("read", "/etc/wireguard"), ("write", "/etc/cron.d")] {
        refused(
            |s| {
                s.tree.dir(wanted);
                if mounts == "read" { no(s.read(wanted)) } else { no(s.write(wanted)) }
            },
            &format!("isolation.fs.{mounts}[0]"),
            &["`/etc`"],
        );
    }
}

#[test]
fn w16_the_harness_home_has_one_name_and_must_be_there() {
    let home = "/home/u/.ours-fleet/harness/A/command";
    let policy = accepted(|_| {});
    let mount = policy.mounts.iter().find(|it| it.origin == MountOrigin::HarnessHome);
    let mount = mount.expect("the harness home");
    assert_eq!((mount.source.as_str(), mount.mode), (home, MountMode::ReadWrite));
    assert_eq!(mount.source, mount.destination);
    let trees = Scene::new().trees();
    for harness in ["claude-code", "codex", "command"] {
        let harnesses = Harnesses::built_in();
        let id = harnesses.get(harness).expect("built in").id().clone();
        assert_eq!(trees.harness_home(&id), trees.harness.join(harness));
    }
    // Without it nothing is resolved: it is no optional mount.
    let mut scene = Scene::new();
    scene.tree.remove(home);
    let granted = scene.resolve().is_ok_and(|policy| policy.missing_sources().next().is_none());
    assert!(!granted, "a launch without its home");
}

/// The verdict on the one role of a text, on a machine with a project and the trees of the role.
fn judged(keys: &serde_json::Value) -> Vec<String> {
    let world = World::of_account("op", 1000, "/home/op").expect("a plain home");
    let harnesses = Harnesses::built_in();
    let text = json!({"roles": {"A": keys}}).to_string();
    let sources = ConfigSources::base_only("/home/op/fleet.yaml", text);
    let home = world.home().expect("plain");
    let loaded = load(&sources, &LoadOptions::new(&home, &harnesses));
    let fleet = loaded.fleet.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
    let mut machine = MemoryTree::new();
    machine.dir("/usr/bin").file_mode("/usr/bin/cat", b"\x7fELF", 0o755).dir("/srv/project");
    let trees = world.layout.role(&"A".parse().expect("a name"));
    for dir in trees.all() {
        machine.dir_mode(dir.as_str(), 0o700);
    }
    machine.dir_mode(trees.harness_home(&fleet.roles["A"].harness).as_str(), 0o700);
    let judge = Judge::new(&fleet, &world, &harnesses, &machine);
    judge.role(&fleet.roles["A"]).expect("registered").refusals().collect()
}

#[test]
fn w17_a_missing_working_directory_is_refused_and_not_replaced() {
    let role = |cwd: &str| {
        json!({
            "harness": "command", "harness_options": {"argv": ["cat"]}, "cwd": cwd,
            "isolation": {"network": "deny"},
        })
    };
    assert_eq!(judged(&role("/srv/project")), Vec::<String>::new(), "the control");
    let refusals = judged(&role("/srv/gone"));
    assert!(refusals.iter().any(|line| line.contains("/srv/gone")), "{refusals:?}");
}

#[test]
fn w18_the_login_of_claude_on_linux_is_shared() {
    let harness = ClaudeCodeHarness::default();
    let spec = harness.home().expect("a home");
    let login = spec.shared.iter().find(|item| item.name == ".credentials.json");
    assert!(login.expect("the login file").login);
}

#[test]
fn w19_w20_control_is_never_shown_and_never_granted() {
    let control = "/home/u/.ours-fleet/control";
    for below in ["", "/A", "/A/role.json", "/A/token", "/A/operator.sock", "/.tmp/T"] {
        let wanted = format!("{control}{below}");
        for write in [false, true] {
            let problems = super::isolation::scene(|s| {
                if write { no(s.write(&wanted)) } else { no(s.read(&wanted)) }
            });
            assert!(problems.resolve().is_err(), "{wanted}");
        }
    }
    let policy = accepted(|s| no(s.cwd("/home/u/work").read("/home/u/lib")));
    for mount in &policy.mounts {
        assert!(!mount.source.is_within(&path(control)), "{}", mount.source);
        assert!(!path(control).is_within(&mount.source), "{}", mount.source);
    }
}

#[test]
fn w24_a_path_that_does_not_exist_is_not_skipped() {
    let policy = accepted(|s| no(s.read("/data/typo").write("/data/typpo")));
    let missing: Vec<String> = policy.missing_sources().map(|mount| mount.origin.key()).collect();
    assert_eq!(missing, ["isolation.fs.write[0]", "isolation.fs.read[0]"]);
}

#[test]
fn w25_no_mount_point_is_made_in_a_mount_of_the_host() {
    let granted = |to: &str| {
        let mut scene = Scene::new();
        scene.tree.file_mode("/data/key", "k", 0o600);
        scene.cwd("/home/u/work").secret("/data/key", to);
        scene.resolve().is_ok()
    };
    assert!(granted("/run/secrets/key"), "the control");
    for to in ["/home/u/work/key", "/home/u/work/sub/key", "/home/u/.ours-fleet/agents/A/key"] {
        assert!(!granted(to), "{to}");
    }
}

#[test]
fn w26_what_runs_later_outside_of_the_sandbox_is_read_only() {
    let policy = accepted(|s| {
        s.tree.dir("/home/u/work/.git/hooks").file("/home/u/work/.git/config", "");
        s.tree.dir("/home/u/work/.claude").dir("/home/u/work/.codex");
        s.tree.file("/home/u/work/.mcp.json", "{}");
        s.cwd("/home/u/work");
    });
    let mode = |at: &str| policy.covering(&path(at)).map(|mount| mount.mode);
    assert_eq!(mode("/home/u/work/x"), Some(MountMode::ReadWrite), "the control");
    for at in
        [".git/hooks/pre-commit", ".git/config", ".claude/settings.json", ".codex/x", ".mcp.json"]
    {
        assert_eq!(mode(&format!("/home/u/work/{at}")), Some(MountMode::ReadOnly), "{at}");
    }
}

#[test]
fn w27_memory_file_systems_are_bounded() {
    let policy = accepted(|_| {});
    for at in ["/tmp", "/dev/shm", "/home/u"] {
        let tmpfs = policy.tmpfs.iter().find(|it| it.destination == path(at));
        let size = tmpfs.unwrap_or_else(|| panic!("no tmpfs at {at}")).size;
        assert!(size > 0 && size <= 512 * 1024 * 1024, "{at}: {size}");
    }
    assert!(policy.tmpfs.iter().all(|it| it.size > 0), "{:?}", policy.tmpfs);
}

#[test]
fn w29_directories_of_codex_are_absolute() {
    let harness = CodexHarness::default();
    let problems = |dir: &str| {
        let options = json!({ "add_dirs": [dir] });
        harness.validate_options(options.as_object().expect("a map")).len()
    };
    assert_eq!(problems("/data/x"), 0, "the control");
    for dir in ["x", "../x", "./x", "/a/../b", "~other/x", ""] {
        assert!(problems(dir) > 0, "{dir}");
    }
}
