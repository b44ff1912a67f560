//! A1 and A4: one role's console is nobody else's.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::{TestEnvironment, needs, wait_for};

const TWO: &str = "\
roles:
  Rev:
    harness: command
    harness_options: { argv: [sh, -c, 'echo ready; exec cat'] }
  Reviewer:
    harness: command
    harness_options: { argv: [sh, -c, 'echo ready; exec cat'] }
";

#[test]
fn a1_a_name_that_begins_another_name_hits_only_itself() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(TWO);
    env.run(["up"]).expect(0);
    let reviewer = env.pids("Reviewer");
    env.kill_console("Rev");
    wait_for("Rev is seen to be down", || (env.status("Rev")["state"] != "running").then_some(()));
    // Its runner will start it again in two seconds; until then every verb tells the truth.
    for args in [&["peek", "Rev"][..], &["send", "Rev", "hi"], &["attach", "Rev"]] {
        let out = env.run(args).expect(1);
        assert!(out.stderr.contains("role `Rev` is not running"), "{args:?}: {}", out.stderr);
    }
    let list = env.run(["ls", "--all", "--json"]).expect(0).json();
    assert_eq!(list["roles"][0]["name"], "Rev");
    assert_ne!(list["roles"][0]["state"], "running");
    assert_eq!(list["roles"][1]["state"], "running");
    env.run(["down", "Rev"]).expect(0);
    assert_eq!(env.status("Rev")["state"], "stopped");
    for args in [&["peek", "Rev"][..], &["send", "Rev", "hi"]] {
        env.run(args).expect(1);
    }
    assert_eq!(env.pids("Reviewer"), reviewer, "the other role is untouched");
    let screen = env.run(["peek", "Reviewer"]).expect(0).stdout;
    assert_eq!(screen, "| ready\n", "no text meant for Rev arrived");
}

#[test]
fn a4_consoles_outlive_the_shell_that_started_them() {
    needs!("tmux", "sleep");
    let env = TestEnvironment::with_fleet(TWO);
    // A shell in a group of its own that runs `up` and stays.
    let bin = env!("CARGO_BIN_EXE_ours-fleet");
    let mut shell = Command::new("sh")
        .args(["-c", &format!("{bin} up && echo > \"$HOME/up-done\"; exec sleep 1000")])
        .env_clear()
        .env("HOME", env.home())
        .env("PATH", std::env::var("PATH").expect("PATH"))
        .current_dir(env.home())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .process_group(0)
        .spawn()
        .expect("sh");
    wait_for("up is done", || env.read("up-done").map(drop));
    let pids = (env.pids("Rev"), env.pids("Reviewer"));
    let group = format!("-{}", shell.id());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().expect("kill").success());
    shell.wait().expect("the shell ends");
    assert_eq!((env.pids("Rev"), env.pids("Reviewer")), pids);
    // One role's end is not the other's.
    env.run(["down", "Rev"]).expect(0);
    assert_eq!(env.pids("Reviewer"), pids.1);
    assert_eq!(env.run(["peek", "Reviewer"]).expect(0).stdout, "| ready\n");
}

#[test]
fn a_killed_runner_leaves_a_console_that_is_told_and_taken_over() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(TWO);
    env.run(["up"]).expect(0);
    let (runner, launcher) = env.pids("Rev");
    let reviewer = env.pids("Reviewer");
    assert!(
        Command::new("kill").args(["-KILL", &runner.to_string()]).status().expect("kill").success()
    );
    wait_for("the loss is seen", || (env.status("Rev")["state"] == "unknown").then_some(()));
    let text = env.run(["status", "Rev"]).expect(0).stdout;
    assert!(text.contains("runner gone, console running"), "{text}");
    let peek = env.run(["peek", "Rev"]).expect(0);
    assert_eq!(peek.stdout, "| ready\n");
    assert!(peek.stderr.contains("runner"), "{}", peek.stderr);
    assert_eq!(env.run(["peek", "Rev", "--json"]).expect(0).json()["lines"][0], "ready");
    env.run(["send", "Rev", "hi"]).expect(1);
    env.run(["up", "Rev"]).expect(0);
    let again = env.pids("Rev");
    assert!(again.0 != runner && again.1 != launcher, "a new runner and a new console");
    let orphan = u32::try_from(launcher).expect("a pid");
    assert!(!env.processes().contains(&orphan), "the orphan was ended");
    assert_eq!(env.pids("Reviewer"), reviewer, "the other role is untouched");
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

#[test]
fn what_the_shell_left_open_lives_on_nowhere() {
    needs!("tmux", "sh");
    let env = TestEnvironment::with_fleet(TWO);
    let marker = env.write("left-open", "");
    let script = format!("exec 7<\"$HOME/left-open\"; {} up", env!("CARGO_BIN_EXE_ours-fleet"));
    let status = Command::new("sh")
        .args(["-c", &script])
        .env_clear()
        .env("HOME", env.home())
        .env("PATH", std::env::var("PATH").expect("PATH"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .expect("sh");
    assert!(status.success());
    let processes = env.processes();
    assert!(processes.len() >= 6, "runner, console and program of two roles: {processes:?}");
    for pid in processes {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        for entry in open {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            assert_ne!(target, marker, "process {pid} holds it");
        }
    }
}

/// In a container that a shell was put into, the leader of its session is outside of the PID
/// namespace, and so has no number there.
#[test]
fn a4_a_fleet_starts_where_the_leader_of_the_session_is_outside_of_the_pid_namespace() {
    needs!("tmux", "unshare");
    let env = TestEnvironment::with_fleet(TWO);
    let binary = env.command();
    let mut args = vec!["--pid", "--fork", "--kill-child", "--mount-proc"];
    if !rustix::process::geteuid().is_root() {
        args.push("--map-root-user");
    }
    let script = "\"$1\" up && \"$1\" status Rev --json && \"$1\" down";
    let output = Command::new("unshare")
        .args(args)
        .args(["sh", "-c", script, "sh"])
        .arg(binary.get_program())
        .env_clear()
        .envs(binary.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(env.home())
        .output()
        .expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(said.contains("\"state\": \"running\""), "{said}\n{errors}");
}
