//! A container ends with its launcher, whoever is killed. podman alone lets it live on: that is seen
//! where keeper and launcher are killed in one moment.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::terminal::console;
use crate::integration::podman::{nothing_left, plan, processes_naming};
use crate::support::{Launch, need_podman, processes_with, within};

/// A word that only the command of this launch has.
fn mark(launch: &Launch) -> String {
    format!("mark-{}", launch.base.file_name().expect("a name"))
}

/// Starts a command that goes on for ever, and waits until it runs.
fn started(launch: &Launch) -> Child {
    let backend = crate::support::Host::podman().expect("checked by the caller");
    let mark = mark(launch);
    let script = "trap '' TERM HUP INT; while :; do sleep 0.2; done";
    let argv = ["/bin/sh", "-c", script, &*mark];
    let mut launcher = launch.launcher(plan(&backend, launch, &launch.policy(), &argv), &argv);
    launcher.stdout(Stdio::null()).stderr(Stdio::null());
    let child = launcher.spawn().expect("launcher");
    assert!(within(30, || launch.control.join("observed.json").exists()), "it never runs");
    assert!(!command(launch).is_empty());
    child
}

/// The command itself, as the host sees it.
fn command(launch: &Launch) -> Vec<u32> {
    let mut found = processes_with(&["trap '' TERM HUP INT; while :; do sleep 0.2; done"]);
    let marked = processes_with(&[&mark(launch)]);
    found.retain(|pid| marked.contains(pid));
    found
}

fn keeper(launch: &Launch) -> u32 {
    let scratch = launch.control.join("boxes/launch-1");
    let found = processes_with(&["_podman", scratch.as_str()]);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("killed");
}

fn gone(launch: &Launch) -> bool {
    within(30, || {
        command(launch).is_empty() && processes_naming(launch.control.as_str()).is_empty()
    })
}

#[test]
fn a_launcher_that_is_killed_takes_the_container_with_it() {
    drop(need_podman!());
    let launch = Launch::new();
    let mut launcher = started(&launch);
    launcher.kill().expect("killed");
    launcher.wait().expect("a child");
    assert!(gone(&launch), "{:?}", processes_naming(launch.control.as_str()));
    // The keeper also cleared away.
    assert!(within(30, || !launch.control.join("boxes/launch-1").exists()));
    nothing_left(&launch);
}

#[test]
fn a_keeper_that_is_killed_takes_the_container_with_it() {
    drop(need_podman!());
    let launch = Launch::new();
    let launcher = started(&launch);
    kill(keeper(&launch));
    let outcome = launch.outcome(launcher);
    assert_eq!(outcome.record().signal, Some(9), "{outcome:?}");
    assert!(gone(&launch), "{:?}", processes_naming(launch.control.as_str()));
    nothing_left(&launch);
}

#[test]
fn a_stop_ends_a_container_that_does_not_listen() {
    drop(need_podman!());
    let launch = Launch::new();
    let launcher = started(&launch);
    let pid = Pid::from_raw(i32::try_from(launcher.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::TERM).expect("sent");
    let outcome = launch.outcome(launcher);
    assert!(outcome.record().stopped && outcome.record().started, "{outcome:?}");
    assert!(gone(&launch));
    nothing_left(&launch);
}

#[test]
fn what_an_agent_leaves_running_ends_with_it() {
    let backend = need_podman!();
    let launch = Launch::new();
    let mark = mark(&launch);
    let script = "setsid sh -c \"$1\" \"$2\" >/dev/null 2>&1 & echo left";
    let loops = "trap '' TERM HUP INT; while :; do sleep 0.2; done";
    let argv = ["/bin/sh", "-c", script, "sh", loops, &*mark];
    let outcome = launch.run_plan(plan(&backend, &launch, &launch.policy(), &argv), &argv);
    assert_eq!(outcome.stdout, "left\n", "{outcome:?}");
    assert!(gone(&launch), "{:?}", command(&launch));
    // The control: without a sandbox, and without a launcher that kills what is left, it goes on.
    let mut bare = std::process::Command::new("/bin/sh");
    bare.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    assert!(bare.status().expect("a shell").success());
    assert!(within(10, || !command(&launch).is_empty()));
    command(&launch).into_iter().for_each(kill);
}

#[test]
fn what_is_left_when_both_are_killed_is_ended_by_the_next_launch() {
    let backend = need_podman!();
    let launch = Launch::new();
    let mut launcher = started(&launch);
    let keeper = keeper(&launch);
    // Stopped first, so that it cannot notice the launcher's end.
    let pid = Pid::from_raw(i32::try_from(keeper).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::STOP).expect("stopped");
    launcher.kill().expect("killed");
    launcher.wait().expect("a child");
    kill(keeper);
    assert!(!command(&launch).is_empty(), "the control: podman alone lets it live on");
    let argv = ["/bin/true"];
    let outcome = launch.run_plan(plan(&backend, &launch, &launch.policy(), &argv), &argv);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(gone(&launch), "{:?}", processes_naming(launch.control.as_str()));
    nothing_left(&launch);
}

#[test]
fn an_agent_in_a_console_gets_a_terminal_of_its_size() {
    let backend = need_podman!();
    let launch = Launch::new();
    let script = "tty >said; stty size >>said; trap 'stty size >>said; exit 3' WINCH; \
                  echo ready >>said; while :; do sleep 0.05; done";
    let argv = ["/bin/bash", "-c", script];
    let launcher = launch.launcher(plan(&backend, &launch, &launch.policy(), &argv), &argv);
    let console = console(&launcher);
    let said = || std::fs::read_to_string(launch.cwd.join("said")).unwrap_or_default();
    assert!(within(30, || said().ends_with("ready\n")), "{}", said());
    console.resize(33, 101);
    let ended = || launch.control.join("exit.json").exists();
    assert!(within(30, ended), "the new size does not arrive: {}", said());
    let lines = said();
    assert!(lines.starts_with("/dev/pts/") || lines.starts_with("/dev/console"), "{lines}");
    assert!(lines.ends_with("33 101\n"), "{lines}");
    drop(console);
    assert!(within(30, || processes_naming(launch.control.as_str()).is_empty()));
}
