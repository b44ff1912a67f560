//! A9, A10 and A12: a sandbox that litters, a program that is not found, and a sandbox that is not
//! there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rstest::rstest;

use crate::support::{TestEnvironment, has_program, needs, wait_for};

/// Every name below a directory with its kind and mode.
fn tree(dir: &Path, found: &mut Vec<String>) {
    use std::os::unix::fs::MetadataExt;
    let mut entries: Vec<_> = fs::read_dir(dir).expect("a directory").flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let facts = entry.metadata().expect("facts");
        found.push(format!("{:o} {}", facts.mode(), entry.path().display()));
        if facts.is_dir() {
            tree(&entry.path(), found);
        }
    }
}

fn git(env: &TestEnvironment, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(env.path("work"))
        .env("HOME", env.path("nobody"))
        .output()
        .expect("git");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a9_the_sandbox_leaves_nothing_in_the_project() {
    needs!("tmux", "bwrap", "git");
    let env = TestEnvironment::new();
    fs::create_dir(env.path("work")).expect("directory");
    git(&env, &["init", "-q", "--template="]);
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n  A:\n    harness: command\n    cwd: {}\n    harness_options: {{ argv: [sh, -c, 'echo ready; exec cat'] }}\n    isolation: {{ network: deny }}\n",
            env.path("work").display()
        ),
    );
    let look = || {
        let mut found = Vec::new();
        tree(&env.path("work"), &mut found);
        (found, git(&env, &["status", "--porcelain", "--ignored"]))
    };
    let home_names = || {
        let mut names: Vec<_> = fs::read_dir(env.home())
            .expect("home")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        names.retain(|name| name != ".ours-fleet");
        names.sort();
        names
    };
    let before = (look(), home_names());
    env.run(["up"]).expect(0);
    for _ in 0..3 {
        let (_, launcher) = env.pids("A");
        assert!(
            Command::new("kill")
                .args(["-KILL", &launcher.to_string()])
                .status()
                .expect("kill")
                .success()
        );
        wait_for("the end is seen", || (env.status("A")["state"] != "running").then_some(()));
        env.run(["up"]).expect(0);
    }
    env.run(["down"]).expect(0);
    env.expect_no_process();
    assert_eq!((look(), home_names()), before);
}

#[test]
fn a10_a_harness_outside_the_system_is_found_by_the_path_of_up() {
    needs!("tmux");
    let mut env = TestEnvironment::new();
    env.script(".local/bin/my agent", "#!/bin/sh\necho \"found as $0\"\nexec cat\n");
    env.write(
        "fleet.yaml",
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: ['my agent'] }\n",
    );
    let out = env.run(["up"]).expect(1);
    assert!(out.stderr.contains("my agent"), "{}", out.stderr);
    assert!(!env.path(".ours-fleet/control/A").exists(), "nothing was started");
    let path =
        format!("{}:{}", env.path(".local/bin").display(), std::env::var("PATH").expect("PATH"));
    env.set("PATH", &path);
    env.run(["up"]).expect(0);
    wait_for("it runs", || env.run(["peek", "A"]).stdout.contains("found as").then_some(()));
}

/// A directory for `PATH` that holds what a role needs, and this `bwrap`.
fn path_with(env: &TestEnvironment, bwrap: Option<&str>) -> String {
    fs::create_dir(env.path("bin")).expect("directory");
    for program in ["sh", "cat", "tmux", "stty"] {
        let real = std::env::split_paths(&std::env::var_os("PATH").expect("PATH"))
            .map(|dir| dir.join(program))
            .find(|path| path.is_file())
            .expect("installed");
        symlink(real, env.path("bin").join(program)).expect("link");
    }
    if let Some(script) = bwrap {
        env.script("bin/bwrap", script);
    }
    env.path("bin").display().to_string()
}

const ONLY_VERSION: &str = "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'bubblewrap 0.8.0'; exit 0; }\necho 'No permissions to create a new namespace' >&2\nexit 1\n";

fn real_bwrap_without_network() -> String {
    "#!/bin/sh\nfor a; do [ \"$a\" = --unshare-net ] && { echo 'no network namespace' >&2; exit 1; }; done\nexec /usr/bin/bwrap \"$@\"\n"
        .to_owned()
}

/// A sandbox that cannot work is never reported as one that does.
#[rstest]
// No word about it: a role with something to lose is refused.
#[case("missing", "{ network: deny }", false)]
#[case("version", "{ network: deny }", false)]
#[case("no-net", "{ network: deny }", false)]
// Strict refuses.
#[case("missing", "{ network: allow, on_unavailable: strict }", false)]
#[case("version", "{ network: allow, on_unavailable: strict }", false)]
#[case("no-net", "{ network: deny, on_unavailable: strict }", false)]
#[case("no-net", "{ network: broker, on_unavailable: strict }", false)]
#[case("no-net", "{ network: allowlist, allow_hosts: [a.example] }", false)]
// Written `warn` starts it, and says so everywhere.
#[case("missing", "{ backend: bubblewrap, network: allow, on_unavailable: warn }", true)]
#[case("version", "{ backend: bubblewrap, network: allow, on_unavailable: warn }", true)]
#[case("version", "{ backend: bubblewrap, network: deny, on_unavailable: warn }", true)]
fn a12_a_sandbox_that_cannot_work(
    #[case] shim: &str,
    #[case] isolation: &str,
    #[case] starts: bool,
) {
    needs!("tmux", "stty");
    if shim == "no-net" && !Path::new("/usr/bin/bwrap").exists() {
        skip!("bwrap is not installed");
    }
    let mut env = TestEnvironment::with_fleet(&format!(
        "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [sh, -c, 'echo up > \"$OURS_FLEET_STATE/up\"; exec cat'] }}\n    isolation: {isolation}\n"
    ));
    let no_net = real_bwrap_without_network();
    let script = match shim {
        "version" => Some(ONLY_VERSION),
        "no-net" => Some(no_net.as_str()),
        _ => None,
    };
    let path = path_with(&env, script);
    env.set("PATH", &path);
    let doctor = env.run(["doctor", "--json"]);
    let report = doctor.json();
    let row = report["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|check| check["name"] == "isolation: A")
        .expect("a row")
        .clone();
    if !starts {
        assert_eq!(row["level"], "fail", "{row}");
        let out = env.run(["up"]).expect(1);
        assert!(out.stderr.contains("bubblewrap"), "{}", out.stderr);
        assert!(env.state_file("A", "up").is_none(), "the program must not have run");
        env.run(["down"]).expect(0);
        return;
    }
    assert_eq!(row["level"], "warn", "{row}");
    let out = env.run(["up"]).expect(0);
    assert!(out.all().contains("UN-ISOLATED"), "{}", out.all());
    for args in [&["status", "A"][..], &["ls"], &["logs", "A"], &["doctor"]] {
        let out = env.run(args);
        assert!(out.all().contains("UN-ISOLATED"), "{args:?}: {}", out.all());
    }
    assert!(env.status("A")["status"]["isolation"]["degraded"].is_string());
}

/// Where the choice is fleet's, a plain user still gets what the kernel alone can hold.
#[test]
fn a12_a_lesser_sandbox_comes_before_none_as_user() {
    needs!("tmux", "stty");
    let mut env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { network: deny, on_unavailable: warn }\n",
    );
    let path = path_with(&env, Some(ONLY_VERSION));
    env.set("PATH", &path);
    let out = env.run(["up"]).expect(0);
    assert!(!out.all().contains("UN-ISOLATED"), "{}", out.all());
    assert_eq!(env.status("A")["status"]["isolation"]["backend"], "landlock");
    env.run(["down"]).expect(0);
}

/// A fleet that requires isolation outranks the `warn` of a role, written or not.
#[rstest]
#[case("isolation: L1", "{ network: allow, on_unavailable: warn }", "policy.require.isolation: L1")]
#[case("isolation: L1", "{ network: allow }", "policy.require.isolation: L1")]
#[case("network: [deny]", "{ network: deny, on_unavailable: warn }", "policy.require.network")]
fn a12_a_required_isolation_refuses_a_degraded_start(
    #[case] require: &str,
    #[case] isolation: &str,
    #[case] rule: &str,
) {
    needs!("tmux", "stty");
    let mut env = TestEnvironment::with_fleet(&format!(
        "policy:\n  require: {{ {require} }}\nroles:\n  A:\n    harness: command\n    harness_options: {{ argv: [sh, -c, 'echo up > \"$OURS_FLEET_STATE/up\"; exec cat'] }}\n    isolation: {isolation}\n"
    ));
    let path = path_with(&env, Some(ONLY_VERSION));
    env.set("PATH", &path);
    let shown = env.run(["config"]).expect(0);
    assert!(shown.stdout.contains("no sandbox, no start, by `"), "{}", shown.stdout);
    let report = env.run(["doctor", "--json"]).expect(1).json();
    let checks = report["checks"].as_array().expect("a list");
    let row = checks.iter().find(|check| check["name"] == "isolation: A").expect("a row");
    assert_eq!(row["level"], "fail", "{row}");
    let detail = row["detail"].as_str().expect("a text");
    for part in [rule, "fleet.yaml:2:14", "forbids a start without isolation"] {
        assert!(detail.contains(part), "{part:?} in {detail}");
    }
    let out = env.run(["up"]).expect(1);
    assert!(out.stderr.contains(rule), "{}", out.stderr);
    assert!(out.stderr.contains("forbids a start without isolation"), "{}", out.stderr);
    assert!(!out.all().contains("UN-ISOLATED"), "{}", out.all());
    assert!(env.state_file("A", "up").is_none(), "the program must not have run");
    env.run(["down"]).expect(0);
}

/// The control of a12: with the real program the same roles are isolated.
#[test]
fn a12_control_with_the_real_sandbox() {
    needs!("tmux", "bwrap");
    assert!(has_program("sh"));
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { network: deny }\n",
    );
    let out = env.run(["up"]).expect(0);
    assert!(!out.all().contains("UN-ISOLATED"), "{}", out.all());
    let status = env.status("A");
    assert_eq!(status["status"]["isolation"]["backend"], "bubblewrap");
    let rows = status["enforcement"].as_array().expect("rows");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["level"] == "enforced"), "{status}");
}

/// The same in a container, from the file to what `status` shows.
#[test]
fn a12_control_with_a_real_container() {
    needs!("tmux", "podman", "runc", "catatonit", "newuidmap");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { backend: podman, network: deny }\n",
    );
    let plan = env.run(["config", "--json"]).expect(0).json();
    assert_eq!(plan["roles"][0]["isolation"]["promise"]["backend"], "podman", "{plan}");
    let out = env.run(["up"]).expect(0);
    assert!(!out.all().contains("UN-ISOLATED"), "{}", out.all());
    let status = env.status("A");
    assert_eq!(status["status"]["isolation"]["backend"], "podman", "{status}");
    let rows = status["enforcement"].as_array().expect("rows");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["level"] == "enforced"), "{status}");
    let doctor = env.run(["doctor", "--json"]).json();
    let checks = doctor["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == "isolation: podman").expect("a row");
    assert_ne!(check["level"], "fail", "{check}");
    env.run(["down"]).expect(0);
    let left = fs::read_dir(env.path(".ours-fleet/control/A/boxes")).expect("boxes").count();
    assert_eq!(left, 0);
}

/// A host list that names nothing is an error, never an open network.
#[rstest]
#[case("{ network: allowlist }")]
#[case("{ network: allowlist, allow_hosts: [] }")]
fn a12_a_list_of_no_hosts_is_refused(
    #[case] isolation: &str,
    #[values("", ", on_unavailable: warn")] wish: &str,
) {
    let isolation = format!("{}{wish} }}", isolation.trim_end_matches(" }"));
    let env = TestEnvironment::with_fleet(&format!(
        "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [cat] }}\n    isolation: {isolation}\n"
    ));
    let out = env.run(["up"]).expect(1);
    assert!(out.stderr.contains("network") || out.stderr.contains("allow_hosts"), "{}", out.stderr);
    assert!(!env.path(".ours-fleet/control/A").exists(), "nothing was started");
}

/// A role `A` in `work`, with its briefing below it, that runs this script.
fn attacker(env: &TestEnvironment, script: &str, more: &str) {
    fs::create_dir_all(env.path("work")).expect("directory");
    let work = env.path("work");
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n  A:\n    harness: command\n    cwd: {}\n    harness_options: {{ argv: [sh, -c, '{script}; echo done; exec cat'], ready: [done] }}\n    isolation: {{ network: deny }}\n{more}",
            work.display()
        ),
    );
}

#[test]
fn a_worklog_larger_than_memory_keeps_no_role_from_starting() {
    needs!("tmux", "bwrap", "truncate");
    let env = TestEnvironment::new();
    attacker(&env, "truncate -s 8T \"$OURS_FLEET_STATE/WORKLOG.md\"", "");
    env.run(["up"]).expect(0);
    let log = env.path(".ours-fleet/agents/A/WORKLOG.md");
    wait_for("the worklog grows", || (log.metadata().ok()?.len() > 1 << 40).then_some(()));
    env.run(["restart", "A"]).expect(0);
    assert_eq!(env.status("A")["state"], "running");
    assert_eq!(log.metadata().expect("facts").len(), 8 << 40, "it is left alone");
}

#[test]
fn a_link_that_the_agent_puts_into_the_way_of_its_briefing_hands_out_nothing() {
    needs!("tmux", "bwrap");
    let env = TestEnvironment::new();
    env.write(".kube/config", "CANARY");
    env.write("work/docs/config", "Be kind.");
    let briefing = format!("    briefing_file: {}\n", env.path("work/docs/config").display());
    attacker(&env, "mv docs old; ln -s ../.kube docs", &briefing);
    env.run(["up"]).expect(0);
    wait_for("the link", || env.path("work/docs").is_symlink().then_some(()));
    let out = env.run(["restart", "A"]).expect(1);
    assert!(out.stderr.contains("briefing_file"), "{}", out.stderr);
    assert!(out.stderr.contains("is the forbidden path"), "{}", out.stderr);
    let config = env.run(["config"]).expect(1);
    assert!(config.all().contains("is the forbidden path"), "{}", config.all());
    let handed = env.read(".ours-fleet/handout/A/briefing.md").expect("the briefing");
    assert!(!String::from_utf8(handed).expect("UTF-8").contains("CANARY"));
}

/// What one agent may write decides nothing of what fleet reads for another.
#[rstest]
#[case::a_key(".kube/config", "forbidden path")]
#[case::papers("papers/config", "where an agent may write")]
#[case::handout_of_a_role(".ours-fleet/handout/Other/config", "state of the fleet")]
fn a_link_of_one_agent_in_the_way_of_the_briefing_of_another_hands_out_nothing(
    #[case] secret: &str,
    #[case] why: &str,
) {
    needs!("tmux", "bwrap");
    let env = TestEnvironment::new();
    env.write(secret, "CANARY");
    env.write("grant/docs/config", "Be kind.");
    env.write("other/x", "");
    let target = Path::new(secret).parent().expect("in a directory");
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n  Att:\n    harness: command\n    cwd: {grant}\n    harness_options: {{ argv: [sh, -c, 'while ! test -e go; do sleep 0.1; done; mv docs old; ln -s {target} docs; exec cat'] }}\n    isolation: {{ network: deny }}\n  Brf:\n    harness: command\n    cwd: {other}\n    briefing_file: {grant}/docs/config\n    harness_options: {{ argv: [cat] }}\n    isolation: {{ network: deny }}\n",
            grant = env.path("grant").display(),
            other = env.path("other").display(),
            target = env.path(&target.display().to_string()).display(),
        ),
    );
    env.run(["up"]).expect(0);
    let handed = || {
        let bytes = env.read(".ours-fleet/handout/Brf/briefing.md").expect("the briefing");
        String::from_utf8(bytes).expect("UTF-8")
    };
    // The control: as long as there is no link, the file is read.
    assert!(handed().contains("Be kind."), "{}", handed());
    env.write("grant/go", "");
    wait_for("the link", || env.path("grant/docs").is_symlink().then_some(()));
    assert_eq!(fs::read(env.path("grant/docs/config")).expect("it leads there"), b"CANARY");
    let out = env.run(["restart", "Brf"]).expect(1);
    let config = env.run(["config"]).expect(1);
    let doctor = env.run(["doctor"]);
    for told in [out.all(), config.all(), doctor.all()] {
        assert!(told.contains("briefing_file") && told.contains(why), "{told}");
    }
    // What comes back by itself is judged again, and nothing else of the fleet is disturbed.
    env.kill_console("Brf");
    wait_for("the next start is refused", || {
        let state = env.status("Brf");
        (state["state"] != "running" && state.to_string().contains(why)).then_some(())
    });
    assert!(!handed().contains("CANARY"), "{}", handed());
    assert_eq!(env.status("Att")["state"], "running");
}

#[test]
fn a_key_is_no_briefing_whoever_names_it() {
    let env = TestEnvironment::new();
    env.write(".ssh/id_ed25519", "CANARY");
    env.write("brief.md", "Be kind.");
    let with = |file: &str, isolation: &str| {
        env.write(
            "fleet.yaml",
            &format!(
                "roles:\n  A:\n    harness: command\n    briefing_file: {file}\n    harness_options: {{ argv: [cat] }}\n{isolation}"
            ),
        );
    };
    for isolation in ["", "    isolation: { network: deny, on_unavailable: warn }\n"] {
        with("~/.ssh/id_ed25519", isolation);
        for line in [&["config"][..], &["check", "-c", "fleet.yaml"], &["up"]] {
            let told = env.run(line).expect(1).all();
            assert!(told.contains("briefing_file"), "{line:?}: {told}");
            assert!(told.contains("keys and credentials"), "{line:?}: {told}");
        }
        assert!(env.run(["doctor"]).all().contains("keys and credentials"));
        assert!(env.read(".ours-fleet/handout/A/briefing.md").is_none());
        with("~/brief.md", isolation);
        env.run(["check", "-c", "fleet.yaml"]).expect(0);
    }
}

/// What an agent puts in place of a directory that it was granted decides nothing at the next start.
#[test]
fn a_grant_that_an_agent_replaced_by_a_link_is_refused() {
    needs!("tmux", "bwrap");
    let env = TestEnvironment::new();
    env.write("repo/sub/file", "");
    env.write("papers/letter", "private");
    let agent = env.script(
        "tools/agent",
        "#!/bin/sh\nrm -r sub && ln -s ../papers sub && echo swapped > done\nexec cat\n",
    );
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n  A:\n    harness: command\n    cwd: {repo}\n    harness_options: {{ argv: [{agent}] }}\n    isolation: {{ network: deny, fs: {{ write: ['{repo}/sub'] }} }}\n",
            repo = env.path("repo").display(),
            agent = agent.display()
        ),
    );
    env.run(["up"]).expect(0);
    wait_for("the agent's work", || env.read("repo/done"));
    let out = env.run(["restart", "A"]);
    let told = out.all();
    for word in ["isolation.fs.write[0]", "papers", "where an agent may write"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let out = env.run(["config"]);
    assert!(out.all().contains("where an agent may write"), "{}", out.all());
    // Nothing was half done; by itself it does not come back either.
    assert_eq!(env.status("A")["state"], "running");
    env.kill_console("A");
    wait_for("the next start is refused", || {
        let state = env.status("A");
        let told = state.to_string().contains("where an agent may write");
        (state["state"] != "running" && told).then_some(())
    });
}

/// A `bwrap` that shows one directory more than it is told to.
fn bwrap_that_shows(path: &Path) -> String {
    let path = path.display();
    format!(
        r#"#!/bin/sh
left=$#
shown=
while [ "$left" -gt 0 ]; do
  word=$1; shift; left=$((left - 1))
  if [ -z "$shown" ] && [ "$word" = --remount-ro ]; then
    set -- "$@" --ro-bind {path} {path}
    shown=1
  fi
  set -- "$@" "$word"
done
exec /usr/bin/env -u PWD -u OLDPWD -u SHLVL -u _ /usr/bin/bwrap "$@"
"#
    )
}

/// What a sandbox shows against its plan is found from inside, by name, before anything can read it.
#[rstest]
#[case("{ network: deny }", false)]
#[case("{ network: allow, on_unavailable: strict }", false)]
#[case("{ network: deny, on_unavailable: warn }", true)]
fn a_sandbox_that_shows_a_key(#[case] isolation: &str, #[case] starts: bool) {
    needs!("tmux", "bwrap");
    let mut env = TestEnvironment::with_fleet(&format!(
        "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [/bin/sh, -c, 'echo up > \"$OURS_FLEET_STATE/up\"; exec /bin/cat'] }}\n    isolation: {isolation}\n"
    ));
    env.write(".ssh/id_ed25519", "key");
    let keys = env.path(".ssh");
    let path = path_with(&env, Some(&bwrap_that_shows(&keys)));
    env.set("PATH", &path);
    let complaint = format!("not true that {} is hidden: it can be opened", keys.display());
    if !starts {
        env.run(["up"]);
        wait_for("the refusal is logged", || {
            env.run(["logs", "A"]).all().contains(&complaint).then_some(())
        });
        env.run(["down"]).expect(0);
        assert!(env.state_file("A", "up").is_none(), "the program must not have run");
        return;
    }
    env.run(["up"]).expect(0);
    let row = wait_for("an observation", || {
        let rows = env.status("A")["enforcement"].as_array().cloned().unwrap_or_default();
        rows.into_iter().find(|row| row["item"] == "filesystem")
    });
    assert_eq!(row["level"], "missing", "{row}");
    assert!(row["evidence"].as_str().expect("text").contains(&complaint), "{row}");
    let report = env.run(["doctor", "--json"]).json();
    let checks = report["checks"].as_array().expect("a list");
    let observed = checks.iter().find(|check| check["name"] == "isolation: A observed");
    assert_eq!(observed.expect("a row")["level"], "fail", "{report}");
}

#[test]
fn doctor_says_what_a_sandbox_lets_through_and_what_was_observed_of_it() {
    needs!("tmux", "bwrap");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { network: allowlist, allow_hosts: [api.example:443] }\n",
    );
    let row = |name: &str| {
        let report = env.run(["doctor", "--json"]).json();
        let checks = report["checks"].as_array().expect("a list").clone();
        checks.into_iter().find(|check| check["name"] == name)
    };
    let network = row("isolation: A network").expect("a row");
    assert_eq!(network["detail"], "allowlist: api.example:443", "{network}");
    assert_eq!(row("isolation: terminal").expect("a row")["level"], "pass");
    assert!(row("isolation: A observed").is_none(), "it does not run");
    env.run(["up"]).expect(0);
    let observed = wait_for("an observation", || {
        row("isolation: A observed").filter(|check| check["level"] == "pass")
    });
    let detail = observed["detail"].as_str().expect("text");
    assert!(detail.contains("from outside and from inside"), "{detail}");
}
