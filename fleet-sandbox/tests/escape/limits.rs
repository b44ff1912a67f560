//! Bombs under a cap, each with the control that it goes off without one.

use fleet_core::isolation::{EnforcementLevel, Item, MemoryBytes, Resources};

use crate::support::caps::{ALL, MIB, capped, impossible, need_groups, row, usual};
use crate::support::{Launch, need_bwrap, need_landlock, probe_program};

#[test]
fn a_memory_bomb_is_killed_and_told_as_root() {
    need_bwrap!();
    need_groups!();
    let bomb = [probe_program().as_str(), "eat", "300"];
    let memory = Resources { memory: Some(MemoryBytes(64 * MIB)), ..Resources::default() };
    for isolated in [true, false] {
        let run = |launch: &Launch| {
            if isolated {
                launch.run(&launch.policy(), &bomb)
            } else {
                launch.run_plan(launch.bare_plan(&bomb), &bomb)
            }
        };
        let outcome = run(&usual(memory));
        let record = outcome.record();
        assert_eq!((outcome.code, record.signal), (Some(137), Some(9)), "{}", outcome.stderr);
        let oom = record.out_of_memory.expect("told");
        assert!(oom.kills >= 1 && oom.cap == 64 * MIB, "{oom:?}");
        // Without a sandbox the command could leave its group.
        let (level, evidence) = row(&outcome, Item::Memory);
        let expected =
            if isolated { EnforcementLevel::Enforced } else { EnforcementLevel::Degraded };
        assert_eq!(level, expected, "{evidence}");
        // The control: the same bomb without a cap, and a small one under it.
        let outcome = run(&Launch::new());
        assert_eq!((outcome.code, outcome.record().out_of_memory), (Some(0), None));
    }
    let launch = usual(memory);
    let small = [probe_program().as_str(), "eat", "8"];
    let outcome = launch.run(&launch.policy(), &small);
    assert_eq!((outcome.code, outcome.record().out_of_memory), (Some(0), None));
}

#[test]
fn a_fork_bomb_stops_at_its_cap_as_root() {
    need_bwrap!();
    need_groups!();
    let launch = usual(Resources { pids: Some(40), ..Resources::default() });
    let bomb: &[&[&str]] = &[&["forks", "60"]];
    let answer = launch.attempts(&launch.policy(), bomb).remove(0);
    // EAGAIN; the sandbox's own processes count as well.
    let count = answer.strip_prefix("error 11 at ").unwrap_or_else(|| panic!("{answer}"));
    assert!((30..40).contains(&count.parse::<u32>().expect("a number")), "{answer}");
    let free = Launch::new();
    assert_eq!(free.attempts(&free.policy(), bomb), ["ok 60"], "the control");
}

/// Landlock takes no root, and a plain user mostly has no control group: limits of each process stand in,
/// and the report says that they are less.
#[test]
fn bombs_stop_at_the_limits_of_each_process_under_landlock_as_user() {
    need_landlock!();
    let resources = Resources { memory: Some(MemoryBytes(1 << 30)), ..ALL };
    let bombs: &[&[&str]] = &[&["eat", "1500"], &["forks", "60"]];
    let launch = capped(resources, impossible());
    let answers = launch.confined_attempts(&launch.policy(), bombs);
    assert_eq!(answers[0], "error ENOMEM");
    assert!(answers[1].starts_with("error 11 at "), "{answers:?}");
    let free = Launch::new();
    let answers = free.confined_attempts(&free.policy(), bombs);
    assert!(answers.iter().all(|it| it.starts_with("ok ")), "the control: {answers:?}");

    let launch = capped(resources, impossible());
    let argv = ["/bin/sh", "-c", "sleep 0.2"];
    let outcome = launch.run_plan(launch.confined_plan(&launch.policy(), &argv), &argv);
    for item in [Item::Memory, Item::Pids] {
        let (level, evidence) = row(&outcome, item);
        assert_eq!(level, EnforcementLevel::Degraded, "{evidence}");
    }
}
