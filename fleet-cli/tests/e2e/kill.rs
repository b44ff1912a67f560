//! Whatever is killed with -9: no other role's processes change, the role comes back or says why not,
//! and `down` leaves no process behind.

use std::process::Command;

use rstest::rstest;

use crate::support::{TestEnvironment, has_program, needs, wait_for};

/// Three roles that say on their screen whether they begin or go on.
fn three(isolation: &str) -> TestEnvironment {
    let role = |name: &str| {
        format!(
            "  {name}:\n    harness: command\n    harness_options:\n      argv: [sh, -c, 'echo began; exec cat']\n      resume_argv: [sh, -c, 'echo went on; exec cat']\n{isolation}"
        )
    };
    TestEnvironment::with_fleet(&format!("roles:\n{}{}{}", role("A"), role("B"), role("C")))
}

const CONTAINER: &str = "    isolation: { backend: podman, network: deny }\n";

fn kill(signal: &str, pid: u64) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill");
    assert!(status.success(), "kill {signal} {pid}");
}

/// The tmux server of a role.
fn server(env: &TestEnvironment, role: &str) -> u64 {
    let output = Command::new("tmux")
        .arg("-S")
        .arg(env.path(&format!(".ours-fleet/control/{role}/tmux.sock")))
        .args(["display-message", "-p", "#{pid}"])
        .output()
        .expect("tmux");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.trim().parse().unwrap_or_else(|_| panic!("no server of {role}: {text:?}"))
}

/// What the launcher started: the harness, or the sandbox around it.
fn child(launcher: u64) -> u64 {
    let children = std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children"));
    let children = children.expect("the launcher lives");
    children.split_whitespace().next().expect("a child").parse().expect("a pid")
}

/// Runner, tmux server, launcher and harness of a role.
fn everything(env: &TestEnvironment, role: &str) -> [u64; 4] {
    let (runner, launcher) = env.pids(role);
    [runner, server(env, role), launcher, child(launcher)]
}

fn shows(env: &TestEnvironment, role: &str, text: &str) {
    wait_for(&format!("{text:?} on the console of {role}"), || {
        let out = env.run(["peek", role]);
        (out.code == 0 && out.stdout.contains(text)).then_some(())
    });
}

#[test]
fn three_roles_have_three_servers_and_down_of_one_changes_no_other() {
    needs!("tmux");
    let env = three("");
    env.run(["up"]).expect(0);
    let before = ["A", "B", "C"].map(|role| everything(&env, role));
    let mut all = before.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 12, "nothing is shared: {before:?}");
    env.run(["down", "A"]).expect(0);
    assert_eq!(["B", "C"].map(|role| everything(&env, role)), before[1..]);
    for pid in before[0] {
        let pid = u32::try_from(pid).expect("a pid");
        wait_for("A is gone", || (!env.processes().contains(&pid)).then_some(()));
    }
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

/// Nobody restarts a runner under `none`: the loss is told, `up` ends the orphan and goes on with the
/// conversation, and the loss is counted once.
#[test]
fn kill_9_of_a_runner_is_told_and_up_goes_on() {
    needs!("tmux");
    let env = three("");
    env.run(["up"]).expect(0);
    let others = ["B", "C"].map(|role| everything(&env, role));
    let [runner, _, launcher, harness] = everything(&env, "A");
    let session = env.status("A")["status"]["sessionId"].clone();
    kill("-KILL", runner);
    wait_for("the loss is seen", || (env.status("A")["state"] == "unknown").then_some(()));
    let text = env.run(["status", "A"]).expect(0).stdout;
    assert!(text.contains("runner gone, console running"), "{text}");
    env.run(["up"]).expect(0);
    shows(&env, "A", "went on");
    let status = env.status("A");
    assert_eq!(status["status"]["sessionId"], session, "the same conversation");
    assert_eq!(status["status"]["abruptTerminations"], 1);
    for pid in [runner, launcher, harness] {
        let pid = u32::try_from(pid).expect("a pid");
        assert!(!env.processes().contains(&pid), "the orphan is gone");
    }
    env.run(["restart", "A"]).expect(0);
    assert_eq!(env.status("A")["status"]["abruptTerminations"], 1, "counted once");
    assert_eq!(["B", "C"].map(|role| everything(&env, role)), others);
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

#[test]
fn kill_9_of_a_runner_and_down_leaves_no_process() {
    needs!("tmux");
    let env = three("");
    env.run(["up"]).expect(0);
    let others = ["B", "C"].map(|role| everything(&env, role));
    kill("-KILL", env.pids("A").0);
    wait_for("the loss is seen", || (env.status("A")["state"] == "unknown").then_some(()));
    env.run(["down", "A"]).expect(0);
    assert_eq!(env.status("A")["state"], "stopped");
    assert_eq!(["B", "C"].map(|role| everything(&env, role)), others);
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

/// The runner starts the role again by itself, with its conversation.
#[rstest]
#[case::harness("harness")]
#[case::launcher("launcher")]
#[case::server("server")]
fn kill_9_of_what_a_runner_watches_comes_back(
    #[case] what: &str,
    #[values("", "    isolation: { network: deny }\n", CONTAINER)] isolation: &str,
) {
    needs!("tmux");
    if isolation == CONTAINER {
        needs!("podman", "runc", "catatonit", "newuidmap");
    } else if !isolation.is_empty() && !has_program("bwrap") {
        skip!("bwrap is not installed");
    }
    let env = three(isolation);
    env.run(["up"]).expect(0);
    let others = ["B", "C"].map(|role| everything(&env, role));
    let [runner, server, launcher, harness] = everything(&env, "A");
    let session = env.status("A")["status"]["sessionId"].clone();
    kill(
        "-KILL",
        match what {
            "harness" => harness,
            "launcher" => launcher,
            _ => server,
        },
    );
    shows(&env, "A", "went on");
    let status = wait_for("it runs", || {
        let status = env.status("A");
        (status["state"] == "running").then_some(status)
    });
    assert_eq!(status["status"]["sessionId"], session, "the same conversation");
    assert_eq!(status["status"]["runner"]["pid"], runner, "the same runner");
    let class = status["status"]["lastTermination"]["class"].as_str().expect("a word");
    let honest: &[&str] = match what {
        "harness" => &["signal"],
        // A launcher that is killed leaves no word, and its console may still be there for a moment.
        "launcher" => &["session-destroyed", "unknown"],
        _ => &["session-destroyed"],
    };
    assert!(honest.contains(&class), "{class}");
    for pid in [server, launcher, harness] {
        let pid = u32::try_from(pid).expect("a pid");
        wait_for("the old console is gone", || (!env.processes().contains(&pid)).then_some(()));
    }
    assert_eq!(["B", "C"].map(|role| everything(&env, role)), others);
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

#[test]
fn sigterm_of_a_runner_is_an_orderly_stop() {
    needs!("tmux");
    let env = three("");
    env.run(["up", "A"]).expect(0);
    let marker = ".ours-fleet/control/A/supervisor-run.json";
    assert!(env.read(marker).is_some());
    kill("-TERM", env.pids("A").0);
    env.expect_no_process();
    assert!(env.read(marker).is_none(), "an orderly stop leaves no marker");
    assert_eq!(env.status("A")["state"], "stopped");
    env.run(["up", "A"]).expect(0);
    assert_eq!(env.status("A")["status"]["abruptTerminations"], 0);
    shows(&env, "A", "went on");
}

#[test]
fn after_down_the_next_start_is_fresh_and_after_a_restart_it_is_not() {
    needs!("tmux");
    let env = three("");
    env.run(["up", "A"]).expect(0);
    let session = env.status("A")["status"]["sessionId"].clone();
    env.run(["restart", "A"]).expect(0);
    assert_eq!(env.status("A")["status"]["sessionId"], session);
    shows(&env, "A", "went on");
    env.run(["down", "A"]).expect(0);
    env.run(["up", "A"]).expect(0);
    assert_ne!(env.status("A")["status"]["sessionId"], session);
    shows(&env, "A", "began");
}

/// A program without a sandbox that ignores the end of its terminal: with its launcher gone, nothing
/// but the runner can end it.
#[test]
fn a_stubborn_program_does_not_outlive_its_killed_launcher() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options:\n      argv: [sh, -c, 'trap \"\" HUP TERM INT; echo began; while :; do sleep 1; done']\n",
    );
    env.run(["up", "A"]).expect(0);
    shows(&env, "A", "began");
    let (_, launcher) = env.pids("A");
    let program = child(launcher);
    kill("-9", launcher);
    let program = u32::try_from(program).expect("a pid");
    wait_for("the program is gone", || (!env.processes().contains(&program)).then_some(()));
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

/// What no keeper and no launcher is left for.
fn containers(env: &TestEnvironment, role: &str) -> usize {
    let boxes = env.path(&format!(".ours-fleet/control/{role}/boxes"));
    std::fs::read_dir(boxes).map_or(0, Iterator::count)
}

/// Kills a launcher and the keeper of its container so that neither can notice the other's end.
fn kill_launcher_and_keeper(launcher: u64) {
    let keeper = child(launcher);
    kill("-STOP", keeper);
    kill("-KILL", launcher);
    kill("-KILL", keeper);
}

/// Runner, launcher and keeper killed: nobody is left who would end the container but `down`.
#[test]
fn down_ends_a_container_that_nobody_keeps_any_more() {
    needs!("tmux", "podman", "runc", "catatonit", "newuidmap");
    let env = three(CONTAINER);
    env.run(["up", "A"]).expect(0);
    let (runner, launcher) = env.pids("A");
    kill("-KILL", runner);
    kill_launcher_and_keeper(launcher);
    wait_for("it is seen", || {
        env.run(["status", "A"]).expect(0).stdout.contains("sandbox running").then_some(())
    });
    // The control: podman alone lets it live on.
    assert_eq!(containers(&env, "A"), 1);
    assert!(!env.processes().is_empty(), "the container goes on");
    env.run(["down", "A"]).expect(0);
    assert_eq!(env.status("A")["state"], "stopped");
    env.expect_no_process();
    assert_eq!(containers(&env, "A"), 0);
}

/// The same with a runner: it ends the container before it starts another one.
#[test]
fn a_runner_ends_a_container_that_nobody_keeps_any_more() {
    needs!("tmux", "podman", "runc", "catatonit", "newuidmap");
    let env = three(CONTAINER);
    env.run(["up", "A"]).expect(0);
    let (_, launcher) = env.pids("A");
    let before = env.processes();
    kill_launcher_and_keeper(launcher);
    shows(&env, "A", "went on");
    let (runner, _) = env.pids("A");
    for pid in before.into_iter().filter(|pid| u64::from(*pid) != runner) {
        wait_for("the old container is gone", || (!env.processes().contains(&pid)).then_some(()));
    }
    assert_eq!(containers(&env, "A"), 1);
    env.run(["down"]).expect(0);
    env.expect_no_process();
    assert_eq!(containers(&env, "A"), 0);
}
