//! Nothing outlives the launcher, however it or the command ends.

use std::process::Stdio;

use fleet_core::port::IsolationBackend as _;
use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    By, Host, Launch, evidence, need, need_bwrap, need_landlock, probe_program, processes_with,
    running,
};

/// An argument of `sleep` that names one test run.
fn marker(digits: u32) -> String {
    format!("{digits}.{}", std::process::id())
}

#[rstest]
#[case::bubblewrap(By::Bubblewrap, 9001)]
#[case::nothing(By::Nothing, 9002)]
#[case::landlock_as_user(By::Landlock, 9003)]
#[case::podman(By::Podman, 9005)]
fn a_daemon_of_the_command_dies_with_it(#[case] by: By, #[case] digits: u32) {
    need!(by);
    let unique = marker(digits);
    let launch = Launch::new();
    let argv = [probe_program().as_str(), "daemon", &unique, "::", "sleep", "100"];
    let outcome = launch.run_plan(by.plan(&launch, &launch.policy(), &argv), &argv);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(processes_with(&["/usr/bin/sleep", &unique]).is_empty());
    // The control: without the launcher it lives on.
    let marker = marker(digits + 100);
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

/// As its report says: everything ends with its launcher where signals have a scope. Before, the command
/// does and what has left its session does not; that is still confined.
#[test]
fn a_killed_launcher_takes_the_command_of_landlock_with_it_as_user() {
    /// Version of Landlock from which on signals have a scope, so that all can be ended at once.
    const SCOPES: u32 = 6;
    need_landlock!();
    let newest = Host::landlock().abi();
    // The control is the version before that one.
    for abi in [newest, newest.min(SCOPES - 1)] {
        let (command, daemon) = (marker(9007), marker(9008));
        let launch = Launch::new();
        let script =
            format!("/usr/bin/setsid -f /usr/bin/sleep {daemon}; exec /usr/bin/sleep {command}");
        let argv = ["/bin/sh", "-c", &script];
        let plan = Host::landlock()
            .with_abi_at_most(abi)
            .plan(&launch.policy().policy, &evidence("".into(), true), &launch.command(&argv))
            .expect("a plan");
        let mut launcher = launch.launcher(plan, &argv).spawn().expect("launcher");
        let lives = |marker: &str| processes_with(&["/usr/bin/sleep", marker]);
        assert!(running(|| lives(&command).len() == 1 && lives(&daemon).len() == 1));
        signal(launcher.id(), Signal::KILL);
        launcher.wait().expect("launcher");
        assert!(running(|| lives(&command).is_empty()), "the command goes on");
        if abi >= SCOPES {
            assert!(running(|| lives(&daemon).is_empty()), "what it started goes on");
            continue;
        }
        let left = lives(&daemon);
        assert_eq!(left.len(), 1, "it ends as well: the report could promise more");
        let status = std::fs::read_to_string(format!("/proc/{}/status", left[0])).expect("status");
        assert!(status.contains("Seccomp:\t2"), "{status}");
        signal(left[0], Signal::KILL);
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("pid")).expect("not zero");
    kill_process(pid, signal).expect("our own process");
}
