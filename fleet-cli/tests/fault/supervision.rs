//! Starts, restarts and what is said about them.

use std::process::Stdio;

use serde_json::json;

use crate::support::{TestEnvironment, needs, wait_for};

#[test]
fn fault14_a_held_down_role_says_since_when_why_and_how_to_release_it() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n",
    );
    env.run(["up"]).expect(0);
    env.run(["down"]).expect(0);
    // The breaker as five failures would have left it.
    let ledger = ".ours-fleet/control/A/restart-ledger.json";
    let open = json!({
        "version": 1,
        "circuit": "open",
        "consecutiveImmediateFailures": 5,
        "lastReason": "exit code 7",
        "openedAt": "2026-11-29T10:00:00.000Z",
        "updatedAt": "2026-11-29T10:00:00.000Z",
    });
    env.write(ledger, &open.to_string());
    let mut runner = env
        .command()
        .args(["_run", "A"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a runner");
    wait_for("it is held down", || (env.status("A")["state"] == "held-down").then_some(()));
    let text = env.run(["status", "A"]).expect(0).stdout;
    for word in ["held down", "since 20", "5 failures", "exit code 7", "`ours-fleet up A`"] {
        assert!(text.contains(word), "{word:?} in {text}");
    }
    let list = env.run(["ls"]).expect(0).stdout;
    assert!(list.contains("held-down"), "{list}");
    env.run(["up", "A"]).expect(0);
    assert_eq!(env.status("A")["state"], "running");
    assert_eq!(env.pids("A").0, u64::from(runner.id()), "released, not replaced");
    env.run(["down"]).expect(0);
    assert!(runner.wait().expect("it ends").success(), "an orderly stop is exit 0");
}

/// A fleet file given by a relative path and a link is found again by every later start.
#[test]
fn fault22_a_role_of_a_custom_file_survives_its_restart() {
    needs!("tmux");
    let env = TestEnvironment::new();
    env.write(
        "sub/real.yaml",
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [sh, -c, 'echo ready; exec cat'] }\n",
    );
    std::os::unix::fs::symlink(env.path("sub/real.yaml"), env.path("link.yaml")).expect("link");
    env.run(["up", "-c", "./sub/../link.yaml"]).expect(0);
    let recorded = env.read(".ours-fleet/control/A/config-path").expect("recorded");
    let recorded = String::from_utf8(recorded).expect("UTF-8");
    assert_eq!(recorded.trim(), env.path("sub/real.yaml").to_str().expect("UTF-8"));
    let (runner, launcher) = env.pids("A");
    env.kill_console("A");
    let again = wait_for("it runs again", || {
        let status = env.status("A");
        let pid = status["status"]["console"]["launcher"]["pid"].as_u64();
        (status["state"] == "running" && pid != Some(launcher)).then(|| env.pids("A"))
    });
    assert_eq!(again.0, runner);
    let out = env.run(["restart", "A", "-c", "link.yaml"]).expect(0);
    assert!(out.stdout.starts_with("A: running"), "{}", out.stdout);
}

/// A slow start is watched, not timed: the program lives and is `running` once its text is seen.
#[test]
fn fault33_a_cold_start_is_not_killed_by_a_timer() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options:\n      argv: [sh, -c, 'echo booting; until [ -e \"$OURS_FLEET_STATE/go\" ]; do sleep 0.1; done; echo at-your-service; exec cat']\n      ready: [at-your-service]\n",
    );
    let out = env.run(["up"]).expect(1);
    assert!(out.stderr.contains("not ready within 15 s"), "{}", out.stderr);
    let status = env.status("A");
    assert_eq!(status["state"], "starting");
    let pids = env.pids("A");
    let out = env.run(["send", "A", "--timeout", "1", "hi"]).expect(3);
    assert!(out.stderr.contains("starting") || out.stderr.contains("ready"), "{}", out.stderr);
    env.write(".ours-fleet/agents/A/go", "");
    wait_for("it is ready", || (env.status("A")["state"] == "running").then_some(()));
    assert_eq!(env.pids("A"), pids, "the same start");
}

/// Launches are apart host-wide, a lone one waits for nobody, and the slot outlives its runner.
#[test]
fn fault28_starts_are_spaced() {
    needs!("tmux");
    let role = "{ harness: command, harness_options: { argv: [sh, -c, 'date +%s%3N > \"$OURS_FLEET_STATE/at\"; exec cat'] } }";
    let env = TestEnvironment::with_fleet(&format!(
        "start_stagger_ms: 1500\nroles:\n  A: {role}\n  B: {role}\n  C: {role}\n"
    ));
    let out = env.run(["up"]);
    assert!(out.code == 0 || out.code == 5, "{out:?}");
    let mut at: Vec<i64> = ["A", "B", "C"]
        .iter()
        .map(|role| {
            let at = wait_for("its start", || {
                env.state_file(role, "at").filter(|at| at.ends_with(b"\n"))
            });
            String::from_utf8_lossy(&at).trim().parse().expect("a time")
        })
        .collect();
    at.sort_unstable();
    for pair in at.windows(2) {
        // A slow machine may delay the first of two by a little.
        assert!(pair[1] - pair[0] > 1_000, "{at:?}");
    }
}
