//! F16, F17, F19, F20 and what `up` promises: roles that really run.

use crate::support::{TestEnvironment, needs, wait_for};

const TWO: &str = "\
roles:
  A:
    harness: command
    harness_options: { argv: [sh, -c, 'echo ready-A; exec cat'] }
  B:
    harness: command
    harness_options: { argv: [sh, -c, 'echo ready-B; exec cat'] }
";

fn screen(env: &TestEnvironment, role: &str, text: &str) {
    wait_for(&format!("{text} on the console of {role}"), || {
        let out = env.run(["peek", role]);
        (out.code == 0 && out.stdout.contains(text)).then_some(())
    });
}

#[test]
fn f20_up_leaves_consoles_that_stay() {
    needs!("tmux");
    let mut env = TestEnvironment::with_fleet(TWO);
    env.set("OURS_FLEET_SUPERVISOR", "none");
    let out = env.run(["up"]).expect(0);
    assert_eq!(out.stdout, "A: running (fresh)\nB: running (fresh)\n");
    for role in ["A", "B"] {
        let note = format!("note: {role} has no `isolation`: it runs with all rights of user ");
        assert_eq!(out.stderr.matches(&note).count(), 1, "{}", out.stderr);
    }
    screen(&env, "A", "ready-A");
    screen(&env, "B", "ready-B");
    let pids = (env.pids("A"), env.pids("B"));
    // A second `up` changes nothing.
    let again = env.run(["up"]).expect(0);
    assert!(!again.stderr.contains("isolation"), "{}", again.stderr);
    assert_eq!((env.pids("A"), env.pids("B")), pids);
    let names = env.run(["ls", "--json"]).expect(0).json();
    assert_eq!(names["roles"].as_array().map(Vec::len), Some(2));

    env.run(["down", "A"]).expect(0);
    assert_eq!(env.pids("B"), pids.1, "the other role is untouched");
    env.run(["down"]).expect(0);
    env.expect_no_process();
    assert_eq!(env.run(["ls"]).expect(0).stdout, "(none)\n");
}

#[test]
fn f20_up_waits_for_the_truth_and_tells_it() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(&format!(
        "{TWO}  Broken:\n    harness: command\n    harness_options: {{ argv: [sh, -c, 'exit 3'], ready: [never] }}\n"
    ));
    let out = env.run(["up"]).expect(4);
    assert!(out.stdout.contains("A: running"), "{}", out.all());
    assert!(out.stderr.contains("Broken: backing-off"), "{}", out.all());
    let out = env.run(["up", "Broken", "--json"]).expect(1);
    assert_eq!(out.json()["roles"][0]["outcome"], "failed");
    let status = env.status("Broken");
    assert_ne!(status["state"], "running");
}

#[test]
fn f20_a_program_that_ends_at_once_is_never_called_running() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(&format!(
        "{TWO}  Zero:\n    harness: command\n    harness_options: {{ argv: ['true'] }}\n  One:\n    harness: command\n    harness_options: {{ argv: ['false'] }}\n"
    ));
    let out = env.run(["up"]).expect(4);
    assert!(out.stdout.contains("A: running"), "{}", out.all());
    for text in ["Zero: backing-off: ended normally: exit code 0", "One: backing-off: "] {
        assert!(out.stderr.contains(text), "{}", out.all());
    }
    env.run(["up", "Zero", "One"]).expect(1);
}

#[test]
fn a_role_before_its_start_slot_answers_and_can_be_stopped() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(&format!("start_stagger_ms: 600000\n{TWO}"));
    // The first takes its slot without waiting, the next one comes ten minutes later.
    env.run(["up", "A"]).expect(0);
    env.run(["_run", "B", "--detach"]).expect(0);
    wait_for("B waits for its slot", || {
        env.status("B")["detail"].as_str()?.contains("start slot").then_some(())
    });
    let out = env.run(["send", "B", "hi"]).expect(3);
    assert!(out.stderr.contains("it is starting"), "{}", out.stderr);
    env.run(["down", "B"]).expect(0);
    assert_eq!(env.status("B")["state"], "stopped");
}

#[test]
fn a_console_that_is_closed_is_no_normal_end_of_its_program() {
    needs!("tmux");
    // `cat` takes a console that goes away for the end of its input: exit code 0.
    let env = TestEnvironment::with_fleet(TWO);
    env.run(["up", "A"]).expect(0);
    screen(&env, "A", "ready-A");
    env.kill_console("A");
    let last = wait_for("its end is judged", || {
        let status = env.status("A");
        status["status"]["lastTermination"]["class"].as_str().map(str::to_owned)
    });
    assert_eq!(last, "session-destroyed");
}

#[test]
fn starts_in_the_same_moment_share_one_runner() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(TWO);
    let starts: Vec<_> = (0..4)
        .map(|_| env.command().arg("up").stdout(std::process::Stdio::null()).spawn())
        .collect();
    for start in starts {
        assert!(start.expect("it runs").wait().expect("it ends").success());
    }
    let (runner, _) = env.pids("A");
    env.run(["up"]).expect(0);
    assert_eq!(env.pids("A").0, runner);
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

#[test]
fn f17_refusals_come_first_and_the_others_start() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(&format!(
        "{TWO}  NoDir:\n    harness: command\n    cwd: /nowhere/at/all\n    harness_options: {{ argv: [cat] }}\n  NoProgram:\n    harness: command\n    harness_options: {{ argv: [no-such-program] }}\n"
    ));
    let plan = env.run(["up", "--dry-run", "--json"]).expect(4).json();
    let actions: Vec<&str> = plan["roles"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|role| role["action"].as_str())
        .collect();
    assert_eq!(actions, ["create", "create", "refused", "refused"]);
    assert!(!env.path(".ours-fleet").exists(), "a dry run touches nothing");

    let out = env.run(["up"]).expect(4);
    assert!(
        out.stderr.contains(
            "fleet.yaml:10:5: role 'NoDir': cwd: `/nowhere/at/all` does not exist; create"
        ),
        "{}",
        out.stderr
    );
    assert!(out.stderr.contains("no-such-program"), "{}", out.stderr);
    assert!(out.stdout.contains("A: running"), "{}", out.stdout);
    env.run(["up", "NoDir"]).expect(1);
}

#[test]
fn a_granted_path_that_is_missing_is_found_before_any_start() {
    needs!("tmux", "bwrap");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { network: deny, fs: { read: [/nowhere/data] } }\n",
    );
    let line = "fleet.yaml:5:46: role 'A': isolation.fs.read[0]: `/nowhere/data` does not exist; create it, or leave it out";
    for (verb, status) in [("config", 0), ("doctor", 1), ("up", 1)] {
        let out = env.run([verb]).expect(status);
        assert!(out.stdout.contains(line) || out.stderr.contains(line), "{verb}: {}", out.stderr);
    }
    assert!(!env.path(".ours-fleet").exists(), "nothing was started");
}

#[test]
fn f19_restart_works_without_a_service_manager() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(TWO);
    env.run(["up"]).expect(0);
    let (a, b) = (env.pids("A"), env.pids("B"));
    let out = env.run(["restart", "A"]).expect(0);
    assert!(out.stdout.starts_with("A: running"), "{}", out.stdout);
    assert_ne!(env.pids("A"), a);
    assert_eq!(env.pids("B"), b, "the other role is untouched");
    screen(&env, "A", "ready-A");
    let session = env.status("A")["status"]["sessionId"].clone();
    env.run(["force-restart", "A"]).expect(0);
    let status = env.status("A");
    assert_eq!(status["status"]["mode"], "fresh");
    assert_ne!(status["status"]["sessionId"], session);
}

#[test]
fn a_changed_role_is_left_alone_until_it_is_restarted() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(TWO);
    env.run(["up"]).expect(0);
    let pids = env.pids("A");
    env.write("fleet.yaml", &TWO.replace("ready-A", "ready-again"));
    let out = env.run(["up"]).expect(0);
    assert!(out.stdout.contains("ours-fleet restart A"), "{}", out.stdout);
    assert_eq!(env.pids("A"), pids);
    assert_eq!(env.status("A")["restartNeeded"], true);
    // A role that could not start again is not stopped.
    env.write(
        "fleet.yaml",
        &TWO.replace("argv: [sh, -c, 'echo ready-A", "argv: [nonesuch, -c, 'echo ready-A"),
    );
    let out = env.run(["restart", "A"]).expect(1);
    assert!(out.stderr.contains("left as it is"), "{}", out.stderr);
    assert_eq!(env.pids("A"), pids);
}

#[test]
fn what_runs_can_be_seen_and_stopped_with_a_broken_fleet_file() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(TWO);
    env.run(["up", "A"]).expect(0);
    env.write("fleet.yaml", "rolez: {}\n");
    let out = env.run(["ls"]).expect(1);
    assert!(out.stdout.contains("A  ") && out.stdout.contains("running"), "{}", out.stdout);
    assert!(out.stderr.contains("rolez"), "{}", out.stderr);
    env.run(["down", "A"]).expect(0);
    env.expect_no_process();
}

#[test]
fn logs_tell_what_the_runner_did() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(TWO);
    let out = env.run(["logs", "A"]).expect(0);
    assert!(out.stderr.contains("never started"), "{}", out.stderr);
    env.run(["up", "A"]).expect(0);
    let lines = env.run(["logs", "A", "--json"]).expect(0).json();
    let text = lines["lines"].to_string();
    assert!(text.contains("launched: mode fresh"), "{text}");
}

#[test]
fn a_key_is_pressed() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options:\n      argv: [sh, -c, 'trap \"echo got-INT\" INT; echo ready-A; while :; do sleep 0.1; done']\n",
    );
    env.run(["up"]).expect(0);
    screen(&env, "A", "ready-A");
    assert_eq!(env.run(["send", "A", "--key", "C-c"]).expect(0).stdout, "typed\n");
    screen(&env, "A", "got-INT");
}
