//! What the command has of the program that asked the sandbox about itself: nothing.

use fleet_core::launch::PlanWord;

use crate::support::{Launch, need_bwrap, probe_program};

#[test]
fn no_descriptor_of_the_questions_or_answers_is_left() {
    need_bwrap!();
    let launch = Launch::new();
    let attempts: &[&[&str]] = &[&["fds"]];
    assert_eq!(launch.attempts(&launch.policy(), attempts), ["ok "]);

    // The control: the command in the place of that program.
    let launch = Launch::new();
    let argv = [probe_program().as_str(), "fds"];
    let mut plan = launch.plan(&launch.policy(), &argv);
    let at = plan.argv.iter().position(|word| matches!(word, PlanWord::DescriptorPath(_)));
    let at = at.expect("there");
    plan.argv.drain(at..at + 4);
    let outcome = launch.run_plan(plan, &argv);
    assert!(outcome.stdout.contains("memfd:attest"), "the probe proves nothing: {outcome:?}");
    assert!(outcome.stdout.contains("pipe:"), "the probe proves nothing: {outcome:?}");
    // It had the pipe and wrote nothing into it: that is no answer.
    assert!(!outcome.record().started);
}

#[test]
fn no_process_and_no_mount_of_it_is_left() {
    need_bwrap!();
    let launch = Launch::new();
    let script = "ls /proc; cat /proc/self/mountinfo; grep -h '^Sig[BI]' /proc/self/status";
    let argv = ["/bin/sh", "-c", script];
    let sandboxed = launch.run(&launch.policy(), &argv).stdout;
    let pids: Vec<&str> = sandboxed.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    // bubblewrap's first process, the shell, and `ls`.
    assert_eq!(pids, ["1", "2", "3"], "{sandboxed}");
    // The test program is bound by the policy, once.
    assert_eq!(sandboxed.matches("/sandbox-probe ").count(), 2, "{sandboxed}");
    // No signal is blocked or ignored that the command does not expect to be.
    let launch = Launch::new();
    let bare = launch.run_plan(launch.bare_plan(&argv), &argv).stdout;
    let signals = |text: &str| {
        text.lines().filter(|line| line.starts_with("Sig")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(signals(&sandboxed).len(), 2);
    assert_eq!(signals(&sandboxed), signals(&bare));
}
