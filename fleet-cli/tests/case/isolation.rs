//! What issue 2 must show of isolation: each refusal in one clear line, and C12, C13, D1 with a real
//! sandbox.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{TestEnvironment, needs, wait_for};

const ROLE: &str =
    "roles:\n  A:\n    harness: command\n    harness_options: { argv: [sh, -c, 'exec cat'] }\n";

fn with(env: &TestEnvironment, isolation: &str) {
    env.write("fleet.yaml", &format!("{ROLE}    isolation: {isolation}\n"));
}

/// Exit 1, and exactly one line that says where and which key.
#[track_caller]
fn refused(env: &TestEnvironment, place: &str, key: &str, word: &str) {
    for verb in ["config", "up"] {
        let out = env.run([verb]).expect(1);
        let lines: Vec<&str> =
            out.stderr.lines().filter(|line| line.contains("fleet.yaml")).collect();
        assert_eq!(lines.len(), 1, "{verb}: {}", out.stderr);
        for part in [place, key, word] {
            assert!(lines[0].contains(part), "{part:?} in {}", lines[0]);
        }
        assert!(lines[0].starts_with("error: "), "{}", lines[0]);
        // Nothing else is an error but the count of them.
        let others = out.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert!(others <= 2, "{verb}: {}", out.stderr);
    }
    assert!(!env.path(".ours-fleet").exists(), "nothing was started");
}

#[test]
fn every_known_way_around_protection_is_refused_in_one_line() {
    let env = TestEnvironment::new();
    fs::create_dir(env.path(".ssh")).expect("directory");
    symlink(env.path(".ssh"), env.path("keys")).expect("link");
    symlink(env.path(".aws"), env.path("cloud")).expect("a dangling link");
    let home = env.home().display().to_string();

    with(&env, "{ network: deny, fs: { write: ['/'] } }");
    refused(&env, "fleet.yaml:5:", "isolation.fs.write[0]", "root directory");
    with(&env, "{ network: deny, fs: { read: '/x' } }");
    refused(&env, "fleet.yaml:5:", "isolation.fs.read", "must be a list");
    with(&env, "");
    refused(&env, "fleet.yaml:5:", "isolation", "is empty");
    env.write("fleet.yaml", &ROLE.replace("roles", "rolez"));
    refused(&env, "fleet.yaml:1:", "rolez", "did you mean `roles`?");
    with(&env, &format!("{{ network: deny, fs: {{ read: [{home}/keys] }} }}"));
    refused(&env, "fleet.yaml:5:", "isolation.fs.read[0]", "/.ssh`");
    with(&env, &format!("{{ network: deny, fs: {{ read: [{home}/cloud] }} }}"));
    refused(&env, "fleet.yaml:5:", "isolation.fs.read[0]", "/.aws`");
    // The fleet file in a directory that the role may write.
    env.write(
        "fleet.yaml",
        &format!("{ROLE}    cwd: {home}\n    isolation: {{ network: deny }}\n"),
    );
    refused(&env, "fleet.yaml:5:", "cwd", "would expose");

    // The control: the same role without any of it.
    with(&env, "{ network: deny }");
    env.run(["config"]).expect(0);
}

#[test]
fn a_role_that_does_not_meet_a_rule_of_the_fleet_is_refused_in_one_line() {
    let env = TestEnvironment::new();
    let write = |require: &str, isolation: &str| {
        let rules = format!("policy:\n  require: {{ {require} }}\n");
        env.write("fleet.yaml", &format!("{ROLE}    isolation: {isolation}\n{rules}"));
    };
    for (require, isolation, key, word) in [
        (
            "isolation: L1",
            "{ backend: none }",
            "isolation.backend",
            "`policy.require.isolation: L1`",
        ),
        ("network: [deny]", "{ network: allow }", "isolation.network", "write `network: deny`"),
        ("resources: [mem]", "{ network: deny }", "isolation.resources", "no cap on mem"),
        ("approval: auto", "{ network: deny }", "harness", "asks nothing by itself"),
    ] {
        write(require, isolation);
        refused(&env, "fleet.yaml:", key, word);
        let out = env.run(["up"]).expect(1);
        assert!(out.stderr.contains("see also ") && out.stderr.contains("fleet.yaml:7:14"));
    }
    assert!(env.run(["doctor"]).expect(1).all().contains("asks nothing by itself"));

    // The control: a role that meets the rules, and what is shown of them.
    write("isolation: L1, network: [deny]", "{ network: deny }");
    let out = env.run(["config"]).expect(0);
    for part in ["policy: require.isolation", "L1", "policy: require.network", "fleet.yaml:7:14"] {
        assert!(out.stdout.contains(part), "{part} in {}", out.stdout);
    }
    let policy = env.run(["config", "--json"]).expect(0).json()["policy"].clone();
    assert_eq!(policy["forbidPaths"], serde_json::json!([]));
    assert_eq!(policy["require"]["isolation"]["value"], "L1");
    assert_eq!(policy["require"]["isolation"]["source"]["line"], 7);
    assert_eq!(policy["require"]["network"]["value"], serde_json::json!(["deny"]));
    assert_eq!(policy["require"]["approval"], serde_json::Value::Null);
}

#[test]
fn a_fleet_file_in_a_writable_project_is_refused_and_named() {
    let env = TestEnvironment::new();
    let project = env.path("project").display().to_string();
    let text = format!("{ROLE}    cwd: {project}\n    isolation: {{ network: deny }}\n");
    env.write("project/fleet.yaml", &text);
    for verb in ["config", "up"] {
        let out = env.run([verb, "-c", "project/fleet.yaml"]).expect(1);
        let lines: Vec<&str> =
            out.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(lines.len(), 1, "{}", out.stderr);
        for part in ["fleet.yaml:5:", "cwd", "fleet configuration", "move them"] {
            assert!(lines[0].contains(part), "{part:?} in {}", lines[0]);
        }
    }
    // The control: the same file beside the project.
    env.write("elsewhere/fleet.yaml", &text);
    fs::remove_file(env.path("project/fleet.yaml")).expect("removed");
    env.run(["config", "-c", "elsewhere/fleet.yaml"]).expect(0);
}

/// A link that was checked and then points elsewhere: what runs keeps the checked directory, and the
/// next launch is refused.
#[test]
fn c12_a_link_repointed_before_a_launch_refuses_it() {
    needs!("tmux", "bwrap");
    let env = TestEnvironment::new();
    env.write(".ssh/id", "CANARY");
    env.write("data/id", "harmless");
    let link = env.path("link");
    symlink(env.path("data"), &link).expect("link");
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [sh, -c, 'cat \"$HOME/data/id\" \"$HOME/.ssh/id\" {link}/id > \"$OURS_FLEET_STATE/seen\" 2>&1; echo end >> \"$OURS_FLEET_STATE/seen\"; exec cat'] }}\n    isolation: {{ network: deny, fs: {{ read: [{link}] }} }}\n",
            link = link.display()
        ),
    );
    env.run(["up"]).expect(0);
    let seen =
        wait_for("it looked", || env.state_file("A", "seen").filter(|s| s.ends_with(b"end\n")));
    let seen = String::from_utf8_lossy(&seen).into_owned();
    assert!(seen.contains("harmless") && !seen.contains("CANARY"), "{seen}");

    fs::remove_file(&link).expect("removed");
    symlink(env.path(".ssh"), &link).expect("link");
    fs::remove_file(env.path(".ours-fleet/agents/A/seen")).expect("removed");
    let launcher = env.pids("A").1.to_string();
    assert!(Command::new("kill").args(["-KILL", &launcher]).status().expect("kill").success());
    let status = wait_for("the next launch is refused", || {
        let status = env.status("A");
        let class = &status["status"]["lastTermination"]["class"];
        (*class == "could-not-start").then_some(status)
    });
    let detail = status["status"]["lastTermination"]["detail"].as_str().expect("a text");
    assert!(detail.contains("isolation.fs.read[0]") && detail.contains("/.ssh"), "{detail}");
    assert!(env.state_file("A", "seen").is_none(), "the program did not run again");
    let out = env.run(["up"]).expect(1);
    assert!(out.stderr.contains("/.ssh"), "{}", out.stderr);
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

/// Nothing of another role, permanent or temporary, in any of the trees.
#[test]
fn c13_trees_of_other_and_of_temporary_roles_are_refused() {
    let env = TestEnvironment::new();
    let root = env.path(".ours-fleet").display().to_string();
    let mut wanted: Vec<String> = ["", "/agents", "/tmp/T", "/locks", "/messaging"]
        .iter()
        .map(|below| format!("{root}{below}"))
        .collect();
    for tree in ["agents", "harness", "handout", "control"] {
        for below in ["B", "B/x", ".tmp", ".tmp/T", ".tmp/A"] {
            wanted.push(format!("{root}/{tree}/{below}"));
        }
    }
    for path in wanted {
        for key in ["read", "write"] {
            with(&env, &format!("{{ network: deny, fs: {{ {key}: ['{path}'] }} }}"));
            for verb in ["config", "up"] {
                let out = env.run([verb]).expect(1);
                let named = format!("isolation.fs.{key}[0]");
                assert!(out.stderr.contains(&named), "{path}: {}", out.stderr);
                assert!(out.stderr.contains(".ours-fleet` (state of the fleet)"), "{}", out.stderr);
            }
        }
    }
    assert!(!env.path(".ours-fleet").exists(), "nothing was started");
}

/// `allow` is the host's network, every other mode one of the role's own, and each is called what it is.
#[test]
fn d1_a_network_is_what_it_is_called() {
    needs!("tmux", "bwrap");
    let env = TestEnvironment::new();
    let role = |name: &str, network: &str| {
        format!(
            "  {name}:\n    harness: command\n    harness_options: {{ argv: [sh, -c, 'readlink /proc/self/ns/net > \"$OURS_FLEET_STATE/net\"; exec cat'] }}\n    isolation: {{ network: {network} }}\n"
        )
    };
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n{}{}{}{}",
            role("Closed", "deny"),
            role("Broker", "broker"),
            role("Listed", "allowlist, allow_hosts: [a.example, '*.b.example']"),
            role("Open", "allow")
        ),
    );
    env.run(["up"]).expect(0);
    let host = fs::read_link("/proc/self/ns/net").expect("a namespace").display().to_string();
    for (name, same) in [("Closed", false), ("Broker", false), ("Listed", false), ("Open", true)] {
        let net = wait_for("its namespace", || {
            env.state_file(name, "net").filter(|net| net.ends_with(b"\n"))
        });
        let net = String::from_utf8_lossy(&net).trim().to_owned();
        assert!(net.starts_with("net:["), "{net}");
        assert_eq!(net == host, same, "{name}: {net} {host}");
        let rows = env.status(name)["enforcement"].to_string();
        assert!(rows.contains("network"), "{rows}");
    }
}
