//! Requests to end: the command is asked first, and killed when it does not listen.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Launch, Outcome, need_bwrap, running};

/// Runs a script, sends signals to its launcher once it is ready, and waits for the end.
fn stopped(isolated: bool, script: &str, signals: &[Signal]) -> (Outcome, Duration) {
    let launch = Launch::new();
    let ready = launch.cwd.join("ready");
    let script = format!(
        "{script}; touch {ready}; i=0; while [ $i -lt 300 ]; do sleep 0.05; i=$((i+1)); done"
    );
    let argv = ["/bin/sh", "-c", &script];
    let plan =
        if isolated { launch.plan(&launch.policy(), &argv) } else { launch.bare_plan(&argv) };
    let mut launcher = launch.launcher(plan, &argv);
    let launcher = launcher.stderr(Stdio::piped()).spawn().expect("launcher");
    assert!(running(|| ready.exists()));
    let begin = Instant::now();
    let pid = Pid::from_raw(i32::try_from(launcher.id()).expect("pid")).expect("not zero");
    for signal in signals {
        kill_process(pid, *signal).expect("our own process");
    }
    (launch.outcome(launcher), begin.elapsed())
}

#[test]
fn a_command_that_listens_ends_in_its_own_way() {
    need_bwrap!();
    for isolated in [true, false] {
        for (signal, hangup) in [(Signal::TERM, false), (Signal::HUP, true)] {
            let (outcome, _) = stopped(isolated, "trap 'exit 7' TERM", &[signal]);
            let record = outcome.record();
            assert_eq!(record.code, Some(7), "{isolated} {signal:?} {record:?}");
            assert_eq!((record.stopped, record.hangup), (!hangup, hangup));
            assert!(record.started);
        }
    }
}

#[test]
fn a_command_that_does_not_listen_is_killed_after_five_seconds() {
    need_bwrap!();
    for isolated in [true, false] {
        let (outcome, took) = stopped(isolated, "trap '' TERM", &[Signal::TERM]);
        let record = outcome.record();
        assert_eq!(record.signal, Some(9), "{record:?}");
        assert!(record.stopped && took >= Duration::from_secs(5), "{took:?}");
    }
}

#[test]
fn what_a_terminal_sends_does_not_end_the_launcher() {
    need_bwrap!();
    let signals = [Signal::INT, Signal::QUIT, Signal::TSTP, Signal::TERM];
    let (outcome, _) = stopped(true, "trap 'exit 7' TERM", &signals);
    assert_eq!(outcome.record().code, Some(7));
}

#[test]
fn a_file_that_another_could_have_written_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let launch = Launch::new();
    let argv = ["/usr/bin/true"];
    let mut launcher = launch.launcher(launch.bare_plan(&argv), &argv);
    let file = launch.control.join("launch.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("chmod");
    let outcome = launch.outcome(launcher.stderr(Stdio::piped()).spawn().expect("launcher"));
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("0600") && outcome.record.is_none(), "{}", outcome.stderr);
}
