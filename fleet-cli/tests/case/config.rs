//! F12, F13, F18, F22: what `config` and `doctor` show and hide.

use crate::support::{TestEnvironment, needs};

const SECRETS: &str = "\
roles:
  B:
    harness: command
    env: { ZED: CANARY-1, ALPHA: CANARY-2 }
    env_pass: [PASSED]
    mission: |

      Looks after things.
      More.
    harness_options:
      argv: [sh, -c, 'exec cat', --token=CANARY-3, --api-key, CANARY-4, 'https://u:CANARY-5@h/']
  A:
    harness: command
    harness_options: { argv: [cat] }
    isolation: { network: deny }
";

#[test]
fn f12_the_plan_is_stable_sorted_and_free_of_secrets() {
    let mut env = TestEnvironment::with_fleet(SECRETS);
    env.set("PASSED", "CANARY-6");
    let first = env.run(["config", "--json"]).expect(0);
    assert_eq!(first.stdout, env.run(["config", "--json"]).expect(0).stdout);
    assert!(!first.all().contains("CANARY"), "{}", first.all());
    let plan = first.json();
    let names: Vec<&str> = plan["roles"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|r| r["name"].as_str())
        .collect();
    assert_eq!(names, ["A", "B"]);
    assert_eq!(
        plan["roles"][1]["env"],
        serde_json::json!({
            "redacted": true,
            "keys": ["ALPHA", "ZED"],
            "values": { "ALPHA": "<redacted>", "ZED": "<redacted>" },
        })
    );
    for absent in ["ownerChannel", "authProxy", "model", "coordinator"] {
        assert!(plan["roles"][0].as_object().expect("a map").contains_key(absent), "{absent}");
    }
    let promise = &plan["roles"][0]["isolation"]["promise"];
    assert_eq!(promise["backend"], "bubblewrap");
    assert!(promise["mounts"].as_array().is_some_and(|mounts| !mounts.is_empty()));
    assert!(promise["enforcement"].as_array().is_some_and(|rows| !rows.is_empty()));
}

#[test]
fn f13_secrets_are_hidden_in_the_text_as_well() {
    let mut env = TestEnvironment::with_fleet(SECRETS);
    env.set("PASSED", "CANARY-6");
    let out = env.run(["config"]).expect(0);
    assert!(!out.all().contains("CANARY"), "{}", out.all());
    for shown in ["ALPHA=<redacted>", "PASSED (passed on)", "Looks after things.", "fleet.yaml:2:3"]
    {
        assert!(out.stdout.contains(shown), "{shown} in {}", out.stdout);
    }
    // A secret where it may not stand is refused without being repeated.
    env.write(
        "fleet.yaml",
        "roles:\n  A:\n    harness: command\n    harness_options:\n      argv: [cat]\n      mcp_servers: { x: { env: { TOKEN: CANARY-7 } } }\n",
    );
    for args in [&["config"][..], &["config", "--json"], &["doctor"], &["up"]] {
        let out = env.run(args).expect(1);
        assert!(out.all().contains("mcp_servers"), "{}", out.all());
        assert!(!out.all().contains("CANARY"), "{}", out.all());
    }
}

#[test]
fn notes_are_about_what_was_written() {
    let role = "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n";
    let env = TestEnvironment::with_fleet(role);
    let out = env.run(["config"]).expect(0);
    assert!(!out.all().contains("note"), "{}", out.all());
    let listed = env.run(["config", "--json"]).expect(0).json()["unavailable"].clone();
    assert!(listed.to_string().contains("monitor"), "{listed}");
    env.write("fleet.yaml", &format!("tasks: {{}}\n{role}"));
    let out = env.run(["config"]).expect(0);
    let note = out.stdout.lines().find(|line| line.starts_with("note: "));
    assert!(note.is_some_and(|note| note.contains("`tasks`")), "{}", out.all());
}

#[test]
fn f18_a_missing_briefing_file_is_found_before_any_start() {
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    briefing_file: /nowhere/briefing.md\n    harness_options: { argv: [cat] }\n",
    );
    for verb in ["config", "up"] {
        let out = env.run([verb]).expect(1);
        assert!(out.stderr.contains("fleet.yaml:4:"), "{}", out.stderr);
        assert!(out.stderr.contains("role 'A'"), "{}", out.stderr);
        assert!(out.stderr.contains("/nowhere/briefing.md does not exist"), "{}", out.stderr);
    }
    assert!(!env.path(".ours-fleet").exists(), "nothing was touched");
}

#[test]
fn w33_a_fleet_file_that_others_can_change_is_not_trusted_with_isolation() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnvironment::with_fleet(SECRETS);
    let file = env.path("fleet.yaml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("mode");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("can be changed by others (mode 0666)"), "{}", out.stderr);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("mode");
    env.run(["config"]).expect(0);
    let directory = env.path("fleet.d");
    std::fs::create_dir(&directory).expect("directory");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).expect("mode");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("fleet.d: can be changed by others (mode 0777)"), "{}", out.stderr);
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).expect("mode");
    env.run(["config"]).expect(0);
    std::fs::rename(&file, env.path("real.yaml")).expect("rename");
    std::os::unix::fs::symlink(env.path("real.yaml"), &file).expect("link");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("is a symbolic link to"), "{}", out.stderr);
}

#[test]
fn f22_doctor_names_a_remedy_for_everything_that_is_missing() {
    needs!("sh");
    let mut env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    cwd: /nowhere/at/all\n    harness_options: { argv: [sh] }\n  B:\n    harness: command\n    harness_options: { argv: [no-such-program] }\n",
    );
    std::fs::create_dir(env.path("bin")).expect("directory");
    std::os::unix::fs::symlink("/bin/sh", env.path("bin/sh")).expect("link");
    env.set("PATH", env.path("bin").to_str().expect("UTF-8").to_owned().as_str());
    let out = env.run(["doctor", "--json"]).expect(1);
    let report = out.json();
    assert_eq!(report["ok"], false);
    let checks = report["checks"].as_array().expect("a list");
    for check in checks {
        let passed = check["level"] == "pass";
        assert!(passed || check["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{check}");
    }
    let level = |name: &str| {
        let found = checks.iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("no row {name}"))["level"].clone()
    };
    assert_eq!(level("tmux"), "fail");
    assert_eq!(level("cwd: A"), "fail");
    assert_eq!(level("start: B"), "fail");
    assert_eq!(level("isolation: bubblewrap"), "warn", "no role is isolated");
    let text = env.run(["doctor"]).expect(1).stdout;
    assert!(text.contains("apt install tmux"), "{text}");
    assert!(text.contains("no-such-program"), "{text}");
}

#[test]
fn doctor_checks_the_host_also_when_the_fleet_does_not_load() {
    let env = TestEnvironment::with_fleet("rolez: {}\n");
    let report = env.run(["doctor", "--json"]).expect(1).json();
    let checks = report["checks"].as_array().expect("a list");
    let row = |id: &str| checks.iter().find(|check| check["id"] == id).expect("a row");
    assert!(row("tmux")["detail"].as_str().is_some_and(|text| text.starts_with("tmux")));
    assert!(row("roles")["detail"].as_str().is_some_and(|text| text.contains("unknown")));
    // The same words as the loader's own.
    let config = env.run(["config"]).expect(1).stderr;
    let detail = row("config")["detail"].as_str().expect("a text");
    assert!(config.contains(detail), "{detail} in {config}");
}

#[test]
fn w34_roles_that_share_a_directory_are_named() {
    let env = TestEnvironment::new();
    std::fs::create_dir(env.path("project")).expect("a directory");
    let role = "harness: command, cwd: ~/project, harness_options: { argv: [cat] }";
    env.write("fleet.yaml", &format!("roles:\n  A: {{ {role} }}\n  B: {{ {role} }}\n"));
    let report = env.run(["doctor", "--json"]).json();
    let checks = report["checks"].as_array().expect("a list");
    let row = checks.iter().find(|check| check["name"] == "cwd: A").expect("a row");
    assert!(row["detail"].as_str().is_some_and(|text| text.contains("shared with B")), "{row}");
}
