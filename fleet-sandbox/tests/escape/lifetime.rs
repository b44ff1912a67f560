//! Nothing outlives the launcher, however it or the command ends.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Launch, need_bwrap, probe_program, processes_with, running};

/// An argument of `sleep` that names one test run.
fn marker(digits: u32) -> String {
    format!("{digits}.{}", std::process::id())
}

#[test]
fn a_daemon_of_the_command_dies_with_it() {
    need_bwrap!();
    for (digits, isolated) in [(9001, true), (9002, false)] {
        let marker = marker(digits);
        let launch = Launch::new();
        let argv = [probe_program().as_str(), "daemon", &marker, "::", "sleep", "100"];
        let outcome = if isolated {
            launch.run(&launch.policy(), &argv)
        } else {
            launch.run_plan(launch.bare_plan(&argv), &argv)
        };
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(processes_with(&["/usr/bin/sleep", &marker]).is_empty(), "isolated: {isolated}");
    }
    // The control: without the launcher it lives on.
    let marker = marker(9003);
    let status = std::process::Command::new(probe_program())
        .args(["daemon", &marker])
        .stdout(Stdio::null())
        .status()
        .expect("probe");
    assert!(status.success());
    let left = || processes_with(&["/usr/bin/sleep", &marker]);
    assert!(running(|| left().len() == 1), "the probe proves nothing");
    signal(left()[0], Signal::KILL);
}

#[test]
fn a_killed_launcher_takes_the_sandbox_with_it() {
    need_bwrap!();
    let marker = marker(9004);
    let launch = Launch::new();
    let argv = ["/usr/bin/sleep", &marker];
    let mut launcher = launch.launcher(launch.plan(&launch.policy(), &argv), &argv);
    let mut launcher = launcher.spawn().expect("launcher");
    let inside = || processes_with(&["/usr/bin/sleep", &marker]).len();
    // Not earlier: if the launcher dies in the few milliseconds before bwrap's first process has asked
    // for its parent's death signal, that process stays. In a console the hang-up of the terminal
    // still reaches the command; here there is no terminal.
    assert!(running(|| launch.control.join("observed.json").exists()));
    assert!(inside() >= 1);
    signal(launcher.id(), Signal::KILL);
    launcher.wait().expect("launcher");
    assert!(running(|| inside() == 0), "still there: {}", inside());
    assert!(!launch.control.join("exit.json").exists());
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("pid")).expect("not zero");
    kill_process(pid, signal).expect("our own process");
}
