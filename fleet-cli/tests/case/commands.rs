//! F1–F9, F14–F17, F21: what a command line leads to, without anything running.

use std::process::Stdio;

use rstest::rstest;

use crate::support::{TestEnvironment, needs};

const ONE: &str =
    "roles:\n  Zod:\n    harness: command\n    harness_options: { argv: [sleep, '1000'] }\n";

#[test]
fn f01_version_is_one_bare_line() {
    let out = TestEnvironment::new().run(["--version"]).expect(0);
    assert_eq!(out.stdout, format!("{}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(out.stderr, "");
}

#[test]
fn f02_no_arguments_is_help_on_stderr() {
    let none: [&str; 0] = [];
    let out = TestEnvironment::new().run(none).expect(64);
    assert_eq!(out.stdout, "");
    assert!(out.stderr.contains("Usage: ours-fleet"), "{}", out.stderr);
}

#[test]
fn f03_a_typo_suggests_the_command() {
    let out = TestEnvironment::new().run(["confg"]).expect(64);
    assert!(out.stderr.contains("'config'"), "{}", out.stderr);
    assert_eq!(out.stdout, "");
}

#[rstest]
#[case("up")]
#[case("down")]
#[case("restart")]
#[case("force-restart")]
#[case("status")]
#[case("peek")]
#[case("logs")]
#[case("attach")]
fn f04_an_unknown_role_names_the_files_and_the_nearest_name(#[case] verb: &str) {
    let env = TestEnvironment::with_fleet(ONE);
    let out = env.run([verb, "Zed"]).expect(1);
    assert!(out.stderr.contains("`Zed`"), "{}", out.stderr);
    assert!(out.stderr.contains("fleet.yaml"), "{}", out.stderr);
    assert!(out.stderr.contains("did you mean `Zod`?"), "{}", out.stderr);
    assert_eq!(out.stdout, "");
    assert!(!env.path(".ours-fleet").exists(), "nothing was touched");
}

#[rstest]
#[case(&["down", "../x"])]
#[case(&["status", "../../etc"])]
#[case(&["up", "Zod", "a.b"])]
#[case(&["peek", "-q"])]
#[case(&["up", "--nope"])]
#[case(&["status", "A", "B"])]
#[case(&["peek", "Zod", "0"])]
#[case(&["send", "Zod", "hi", "--wait", "eaten"])]
#[case(&["send", "Zod", "--key", "NoSuchKey"])]
#[case(&["config", "--yaml-mode", "loose"])]
#[case(&["completions", "tcsh"])]
#[case(&["version", "-c", "x.yaml"])]
fn f05_what_cannot_be_meant_is_wrong_usage(#[case] args: &[&str]) {
    let env = TestEnvironment::with_fleet(ONE);
    let out = env.run(args).expect(64);
    assert_eq!(out.stdout, "");
    assert!(out.stderr.starts_with("error:"), "{}", out.stderr);
    assert!(!env.path(".ours-fleet").exists(), "nothing was touched");
}

#[test]
fn f06_status_of_a_role_that_does_not_exist() {
    let env = TestEnvironment::with_fleet(ONE);
    let out = env.run(["status", "Nope"]).expect(1);
    assert!(out.stderr.contains("no role `Nope`"), "{}", out.stderr);
    let out = env.run(["status", "Nope", "--json"]).expect(1);
    assert_eq!(out.json()["error"]["kind"], "unknown-role");
}

#[rstest]
#[case(&["peek", "Zod"])]
#[case(&["send", "Zod", "hi"])]
#[case(&["attach", "Zod"])]
fn f07_f09_a_stopped_role_says_so_and_how_to_start_it(#[case] args: &[&str]) {
    let env = TestEnvironment::with_fleet(ONE);
    let out = env.run(args).expect(1);
    assert!(out.stderr.contains("role `Zod` is not running (stopped)"), "{}", out.stderr);
    assert!(out.stderr.contains("`ours-fleet up Zod`"), "{}", out.stderr);
}

#[test]
fn status_of_a_role_that_was_never_started_says_so() {
    let out = TestEnvironment::with_fleet(ONE).run(["status", "Zod"]).expect(0);
    assert!(out.stdout.contains("never started  `ours-fleet up Zod`"), "{}", out.stdout);
}

#[rstest]
#[case(&["send", "Zod"])]
#[case(&["send", "Zod", ""])]
#[case(&["send", "Zod", "--interrupt"])]
#[case(&["send", "Zod", "--"])]
fn f08_nothing_to_send(#[case] args: &[&str]) {
    let out = TestEnvironment::with_fleet(ONE).run(args).expect(64);
    assert!(out.stderr.contains("nothing to send"), "{}", out.stderr);
}

#[test]
fn f14_up_without_configuration_says_what_to_create() {
    let env = TestEnvironment::new();
    let out = env.run(["up"]).expect(0);
    assert!(out.stdout.contains("nothing to start"), "{}", out.stdout);
    assert!(out.stdout.contains("fleet.yaml"), "{}", out.stdout);
    assert!(!env.path(".ours-fleet").exists(), "nothing was touched");
}

#[rstest]
#[case("systemd", 1, "no systemd user manager listens at /no/such/directory/systemd/private")]
#[case("launchd", 1, "not in this build")]
#[case("upstart", 64, "allowed: auto, systemd, launchd, none")]
fn f15_a_supervisor_that_is_not_there(
    #[case] kind: &str,
    #[case] code: i32,
    #[case] words: &str,
    #[values("init", "up")] verb: &str,
) {
    let mut env = TestEnvironment::with_fleet(ONE);
    env.set("OURS_FLEET_SUPERVISOR", kind);
    env.set("XDG_RUNTIME_DIR", "/no/such/directory");
    let out = env.run([verb]).expect(code);
    assert!(out.stderr.contains(words), "{}", out.stderr);
    assert!(!env.path(".ours-fleet").exists(), "nothing was touched");
}

#[test]
fn f17_all_roles_are_checked_before_any_is_started() {
    let env = TestEnvironment::with_fleet(&format!("{ONE}  Bad:\n    harnes: command\n"));
    let out = env.run(["up"]).expect(1);
    assert!(out.stderr.contains("fleet.yaml:6:5"), "{}", out.stderr);
    assert!(out.stderr.contains("harnes"), "{}", out.stderr);
    assert!(!env.path(".ours-fleet").exists(), "nothing was touched");
}

#[rstest]
#[case("up")]
#[case("config")]
#[case("status")]
fn a_file_that_does_not_load_is_one_error_line_per_error(#[case] verb: &str) {
    let env = TestEnvironment::with_fleet(&format!("{ONE}    harnes: command\n"));
    let out = env.run([verb]).expect(1);
    let line = out.stderr.lines().next().expect("a line");
    assert!(line.starts_with("error: ") && line.contains("fleet.yaml:5:5"), "{line}");
    assert_eq!(out.stderr.matches("error").count(), 1, "{}", out.stderr);

    env.write("fleet.yaml", &format!("{ONE}    harnes: command\n    modl: x\n"));
    let out = env.run([verb]).expect(1);
    assert_eq!(out.stderr.matches("error: ").count(), 2, "{}", out.stderr);
    let summary = out.stderr.contains("\n2 errors; nothing was touched\n");
    assert_eq!(summary, verb != "status", "{}", out.stderr);
}

#[rstest]
#[case(&["logs", "Zod"])]
#[case(&["status", "Zod"])]
#[case(&["down", "Zod"])]
#[case(&["down"])]
fn a_file_that_does_not_load_is_not_a_fleet_without_roles(#[case] args: &[&str]) {
    let env = TestEnvironment::with_fleet(&format!("{ONE}    harnes: command\n"));
    let out = env.run(args).expect(1);
    assert!(out.stderr.contains("fleet.yaml:5:5"), "{}", out.stderr);
    assert!(!out.all().contains("no roles are configured"), "{}", out.all());
    let out = env.run(args.iter().copied().chain(["--json"])).expect(1);
    assert_eq!(out.json()["error"]["kind"], "config");
}

#[test]
fn f21_the_configuration_is_named_before_or_after_the_command() {
    let env = TestEnvironment::new();
    env.write("sub/other.yaml", ONE);
    std::os::unix::fs::symlink(env.path("sub/other.yaml"), env.path("link.yaml")).expect("link");
    for args in [
        &["-c", "sub/other.yaml", "config", "--json"][..],
        &["config", "-c", "sub/../sub/other.yaml", "--json"],
        &["config", "--json", "--configuration=link.yaml"],
    ] {
        let plan = env.run(args).expect(0).json();
        let file = env.path("sub/other.yaml");
        assert_eq!(plan["sourceFiles"][0], file.to_str().expect("UTF-8"), "{args:?}");
        assert_eq!(plan["roles"][0]["name"], "Zod");
    }
    let out = env.run(["config", "-c", "none.yaml"]).expect(1);
    assert!(out.stderr.contains("none.yaml does not exist"), "{}", out.stderr);
    let out = env.run(["config", "-c", "sub"]).expect(1);
    assert!(out.stderr.contains("is a directory"), "{}", out.stderr);
}

#[test]
fn a9_a_directory_in_place_of_the_fleet_file_is_named() {
    let env = TestEnvironment::new();
    std::fs::create_dir(env.path("fleet.yaml")).expect("directory");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("fleet.yaml is a directory"), "{}", out.stderr);
}

#[test]
fn a2_a_named_file_that_is_not_there() {
    let env = TestEnvironment::new();
    let out = env.run(["config", "-c", "missing.yaml"]).expect(1);
    let line = format!("{} does not exist", env.path("missing.yaml").display());
    assert!(out.stderr.contains(&line), "{}", out.stderr);
    assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
}

#[test]
fn a23_an_unknown_yaml_mode_names_those_that_exist() {
    let env = TestEnvironment::new();
    let out = env.run(["config", "--yaml-mode", "x"]).expect(64);
    assert!(out.stderr.contains("compat, strict"), "{}", out.stderr);
    // And the mode reaches the reader.
    env.write(
        "fleet.yaml",
        "roles:\n  A: &a\n    harness: command\n    harness_options: { argv: [sh] }\n",
    );
    let out = env.run(["config"]).expect(0);
    assert!(out.stderr.contains("fleet.yaml:3:5: "), "{}", out.stderr);
    let out = env.run(["config", "--yaml-mode", "strict"]).expect(1);
    assert!(out.stderr.contains("fleet.yaml:3:5: an anchor"), "{}", out.stderr);
}

#[test]
fn a17_what_is_no_drop_in_is_said_and_never_left_out() {
    let env = TestEnvironment::with_fleet("roles: {}\n");
    env.write("fleet.d", "roles: {}\n");
    let out = env.run(["config"]).expect(1);
    assert!(
        out.stderr.contains("fleet.d is a regular file, expected a directory"),
        "{}",
        out.stderr
    );
    std::fs::remove_file(env.path("fleet.d")).expect("removed");
    env.write("fleet.d/.hidden.yaml", "no yaml: [");
    env.write("fleet.d/notes.txt", "no yaml: [");
    env.run(["config"]).expect(0);
    std::fs::create_dir(env.path("fleet.d/a.yaml")).expect("directory");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("fleet.d/a.yaml is a directory"), "{}", out.stderr);
    std::fs::remove_dir(env.path("fleet.d/a.yaml")).expect("removed");
    std::os::unix::fs::symlink("/nowhere/at/all", env.path("fleet.d/b.yml")).expect("link");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("fleet.d/b.yml does not exist"), "{}", out.stderr);
    std::fs::remove_file(env.path("fleet.d/b.yml")).expect("removed");
    let socket = std::os::unix::net::UnixListener::bind(env.path("fleet.d/c.yaml"));
    let _socket = socket.expect("a socket");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("fleet.d/c.yaml is a socket"), "{}", out.stderr);
}

#[test]
fn init_is_idempotent_and_says_what_it_did() {
    let env = TestEnvironment::new();
    let first = env.run(["init"]).expect(0);
    assert!(first.stdout.contains("(created)"), "{}", first.stdout);
    assert!(first.stdout.contains("no reboot survival"), "{}", first.stdout);
    let second = env.run(["init", "--json"]).expect(0).json();
    assert_eq!(second["created"], false);
    assert_eq!(second["supervisor"]["kind"], "none");
}

#[test]
fn the_fleet_home_moves_configuration_and_state() {
    let mut env = TestEnvironment::new();
    env.write("elsewhere/fleet.yaml", ONE);
    env.set("OURS_FLEET_HOME", env.path("elsewhere").to_str().expect("UTF-8").to_owned().as_str());
    let plan = env.run(["config", "--json"]).expect(0).json();
    let cwd = env.path("elsewhere/.ours-fleet/agents/Zod");
    assert_eq!(plan["roles"][0]["cwd"], cwd.to_str().expect("UTF-8"));
    env.set("OURS_FLEET_HOME", "relative");
    let out = env.run(["config"]).expect(64);
    assert!(out.stderr.contains("OURS_FLEET_HOME"), "{}", out.stderr);
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let env = TestEnvironment::with_fleet(ONE);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = env.command().arg("config").stdout(writer).output().expect("runs");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_full_disk_is_an_error() {
    let env = TestEnvironment::with_fleet(ONE);
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let output =
        env.command().arg("config").stdout(full).stderr(Stdio::piped()).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("failed to write the output"), "{stderr}");
}

#[test]
fn ls_of_an_idle_fleet() {
    let env = TestEnvironment::with_fleet(ONE);
    assert_eq!(env.run(["ls"]).expect(0).stdout, "(none)\n");
    assert_eq!(env.run(["ls", "--json"]).expect(0).json()["roles"], serde_json::json!([]));
    let all = env.run(["ls", "--all", "--json"]).expect(0).json();
    assert_eq!(all["roles"][0]["state"], "stopped");
    assert_eq!(env.run(["down"]).expect(0).stdout, "Zod: not running\n");
}

#[test]
fn version_tells_the_build() {
    let env = TestEnvironment::new();
    let version = env.run(["version", "--json"]).expect(0).json();
    let build = version["buildId"].as_str().expect("a text");
    assert!(build.len() == 12 && build.bytes().all(|b| b.is_ascii_hexdigit()), "{build}");
    let text = env.run(["version"]).expect(0).stdout;
    assert!(text.starts_with(&format!("ours-fleet {}+{build}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn completion_lists_roles_and_is_quiet_about_trouble() {
    let env = TestEnvironment::with_fleet(ONE);
    assert_eq!(env.run(["_roles"]).expect(0).stdout, "Zod\n");
    env.write("fleet.yaml", "roles: [");
    let out = env.run(["_roles"]).expect(0);
    assert_eq!(out.all(), "");
}

#[test]
fn completion_scripts_are_valid_bash() {
    needs!("bash");
    let env = TestEnvironment::with_fleet(ONE);
    let script = env.run(["completions", "bash"]).expect(0).stdout;
    let file = env.write("completion.bash", &script);
    let bin = env!("CARGO_BIN_EXE_ours-fleet");
    let test = format!(
        "source {}; COMP_WORDS=({bin} up Z); COMP_CWORD=2; \
         _ours_fleet_with_roles {bin} Z up; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", &test])
        .env("HOME", env.home())
        .output()
        .expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Zod\n", "{output:?}");
}

#[test]
fn net_shows_connections_beside_any_number_of_refusals_and_what_is_missing() {
    let env = TestEnvironment::with_fleet(
        "roles:\n  A: { harness: command, harness_options: { argv: [cat] } }\n",
    );
    let control = env.path(".ours-fleet/control/A");
    std::fs::create_dir_all(&control).expect("mkdir");
    let record = |number: u64, decision: &str, target: &str, more: &str| {
        format!(
            r#"{{"version":1,"launchId":"l-1","connection":{number},"at":"2026-11-30T00:00:00.{number:03}Z","open":false,"target":"{target}","decision":"{decision}","sent":5,"received":7{more}}}"#
        ) + "\n"
    };
    let write = |name: &str, text: String| std::fs::write(control.join(name), text).expect("write");
    write("connections.jsonl", record(1, "allowed", "a.example:443", ""));
    let merged = r#","reason":"no","count":41,"since":"2026-11-30T00:00:00.001Z""#;
    let mut refusals: String =
        (2..302).map(|number| record(number, "refused", "x.evil:443", "")).collect();
    refusals.push_str(&record(302, "refused", "x.evil:443", merged));
    write("refusals.jsonl", refusals);
    write(
        "connection-totals.json",
        r#"{"version":1,"since":"2026-11-30T00:00:00.000Z","at":"2026-11-30T00:00:01.000Z",
            "rules":[{"rule":"a.example","served":9,"failed":0,"sent":45,"received":63}],
            "former":{"served":0,"failed":0,"sent":0,"received":0},
            "refused":341,"merged":41,"dropped":{"connections":16,"refusals":0}}"#
            .to_owned(),
    );
    let text = env.run(["net", "A"]).expect(0).stdout;
    for part in [
        "a.example:443  allowed",
        "41 more since 2026-11-30T00:00:00.001Z: no",
        "101 older records are not shown",
        "a.example  9 ",
        "refused: 341",
        "dropped to make room: 16 records of connections, 0 of refusals",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = env.run(["net", "A", "--json"]).expect(0).json();
    assert_eq!(json["connections"][0]["decision"], "allowed");
    assert_eq!(json["notShown"], 101);
    assert_eq!(json["totals"]["dropped"]["connections"], 16);
    assert_eq!(json["totals"]["rules"][0]["served"], 9);
}
