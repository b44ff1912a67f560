//! What is said when a runner does not answer, and when a harness does not listen.

use std::process::Command;

use crate::support::{TestEnvironment, needs, wait_for};

const ONE: &str = "\
roles:
  A:
    harness: command
    harness_options: { argv: [sleep, '1000'] }
";

/// A program that reads nothing is sent a text: the receipt comes at once and nothing is restarted.
#[test]
fn fault65_a_program_that_does_not_read_makes_no_sender_wait() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(ONE);
    env.run(["up"]).expect(0);
    let pids = env.pids("A");
    for _ in 0..3 {
        assert_eq!(env.run(["send", "A", "a text"]).expect(0).stdout, "typed\n");
    }
    assert_eq!(env.pids("A"), pids);
    assert_eq!(env.status("A")["state"], "running");
}

/// Only a console that is gone is "not running"; everything else says what it proves.
#[test]
fn fault66_each_control_failure_has_its_own_words() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(ONE);
    env.run(["up"]).expect(0);
    let (runner, _) = env.pids("A");
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &runner.to_string()]).status();
        assert!(status.expect("kill").success());
    };
    signal("-STOP");
    let out = env.run(["send", "A", "--timeout", "1", "hi"]);
    signal("-CONT");
    let out = out.expect(2);
    assert!(!out.stderr.contains("not running"), "{}", out.stderr);
    assert!(out.stderr.contains("may have arrived"), "{}", out.stderr);

    let socket = env.path(".ours-fleet/control/A/control.sock");
    let aside = env.path(".ours-fleet/control/A/aside");
    std::fs::rename(&socket, &aside).expect("renamed");
    let out = env.run(["send", "A", "hi"]).expect(2);
    assert!(!out.stderr.contains("not running"), "{}", out.stderr);
    std::fs::rename(&aside, &socket).expect("renamed");

    let out = env.run(["send", "A", "bad\u{1b}[2J"]).expect(1);
    assert!(!out.stderr.contains("not running"), "{}", out.stderr);
    env.run(["send", "A", "hi"]).expect(0);
    env.run(["down", "A"]).expect(0);
    let out = env.run(["send", "A", "hi"]).expect(1);
    assert!(out.stderr.contains("role `A` is not running (stopped)"), "{}", out.stderr);
}

/// A stop that cannot be proved is a failure in the supervisor's own words, never "stopped".
#[test]
fn fault25_fault17_a_stop_that_fails_is_told() {
    let env = TestEnvironment::with_fleet(ONE);
    env.run(["init"]).expect(0);
    let control = env.path(".ours-fleet/control/A");
    std::fs::create_dir_all(&control).expect("directories");
    // Somebody holds the role, and nothing says who.
    let lock = env.write(".ours-fleet/control/A/runner.lock", "");
    env.write(".ours-fleet/control/A/supervisor-run.json", "garbage");
    let held = std::fs::File::options().read(true).write(true).open(lock).expect("a file");
    held.lock().expect("locked");
    assert_eq!(env.status("A")["state"], "unknown");
    let out = env.run(["down", "A"]).expect(1);
    assert!(out.stderr.contains("cannot be read"), "{}", out.stderr);
    assert!(!out.stdout.contains("stopped"), "{}", out.stdout);
    drop(held);
    wait_for("it is free", || (env.status("A")["state"] == "stopped").then_some(()));
    env.run(["down", "A"]).expect(0);
}
