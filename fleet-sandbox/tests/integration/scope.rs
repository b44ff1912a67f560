//! Caps by a scope of a real user manager, which `scripts/with-user-manager.sh` starts for them.

use fleet_core::isolation::{EnforcementLevel, Item, MemoryBytes, Resources};
use fleet_core::limits::{Attempt, Cap, GroupPrefix, LimitFacts, Means, UserManager, attempts};
use fleet_core::port::ResourceLimits as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::caps::{
    ALL, MIB, block_on, capped, group_of, need_manager, prefix, row, with_manager,
};
use crate::support::{Launch, need_bwrap, probe_program, processes_with, running};

/// What a manager of root is known to hold on the machines of the tests.
const HELD: Resources =
    Resources { cpu: None, memory: Some(MemoryBytes(64 * MIB)), pids: Some(40) };

fn facts() -> LimitFacts {
    block_on(with_manager().facts())
}

fn holds(facts: &LimitFacts, cap: Cap) -> bool {
    facts.of(Means::Scope, cap).is_some_and(|fact| fact.usable.is_ok())
}

/// Held by a scope, or not started.
fn scoped(resources: Resources) -> Launch {
    let list = attempts(&facts(), resources);
    assert_eq!(list[0].means, Means::Scope, "{list:?}");
    assert_eq!(list[0].rlimits, []);
    capped(resources, list[..1].to_vec())
}

/// What the manager says of a unit.
fn show(unit: &str) -> String {
    let mut command = std::process::Command::new("systemctl");
    command.args(["--user", "show", "--property=LoadState,ActiveState,Slice", unit]);
    let output = command.output().expect("systemctl");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The manager has never heard of it.
fn unknown(unit: &str) -> bool {
    show(unit).contains("LoadState=not-found")
}

fn unit_of(launch: &Launch) -> String {
    format!("{}.scope", group_of(launch))
}

fn trials() -> String {
    let mut command = std::process::Command::new("systemctl");
    command.args(["--user", "list-units", "--all", "--plain", "--no-legend", "ours-fleet-*.scope"]);
    String::from_utf8(command.output().expect("systemctl").stdout).expect("UTF-8")
}

#[test]
fn a_scope_is_read_back_and_goes_with_the_launch_as_root() {
    need_bwrap!();
    need_manager!();
    let launch = scoped(HELD);
    let (name, unit) = (group_of(&launch), unit_of(&launch));
    let argv = ["/bin/sh", "-c", "cat /proc/self/cgroup; exit 3"];
    let outcome = launch.run(&launch.policy(), &argv);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    for (item, number) in [(Item::Memory, "67108864"), (Item::Pids, "40")] {
        let (level, evidence) = row(&outcome, item);
        assert_eq!(level, EnforcementLevel::Enforced, "{item:?}: {evidence}");
        assert!(evidence.contains(number) && evidence.ends_with("read back"), "{evidence}");
    }
    assert!(outcome.stdout.contains(":/\n") && !outcome.stdout.contains(&name), "{outcome:?}");
    assert_eq!(outcome.record().out_of_memory, None);
    assert!(unknown(&unit), "{}", show(&unit));
    assert!(!launch.control.join("groups.json").exists());
    // The control: without a sandbox its place is seen.
    let launch = scoped(HELD);
    let argv = ["/bin/cat", "/proc/self/cgroup"];
    let outcome = launch.run_plan(launch.bare_plan(&argv), &argv);
    let below = format!("/ours.slice/ours-fleet.slice/{}/inner\n", unit_of(&launch));
    for tree in [":memory:", ":pids:", "0::"] {
        let line = outcome.stdout.lines().find(|line| line.contains(tree)).expect("a tree");
        assert!(format!("{line}\n").ends_with(&below), "{line}");
    }
}

#[test]
fn a_memory_bomb_in_a_scope_is_killed_and_told_as_root() {
    need_bwrap!();
    need_manager!();
    let bomb = [probe_program().as_str(), "eat", "300"];
    let memory = Resources { pids: None, ..HELD };
    let launch = scoped(memory);
    let outcome = launch.run(&launch.policy(), &bomb);
    let record = outcome.record();
    assert_eq!((outcome.code, record.signal), (Some(137), Some(9)), "{}", outcome.stderr);
    let oom = record.out_of_memory.unwrap_or_else(|| panic!("untold: {:?}", outcome.rows()));
    assert!(oom.kills >= 1 && oom.cap == 64 * MIB, "{oom:?}");
    assert_eq!(row(&outcome, Item::Memory).0, EnforcementLevel::Enforced);
    assert!(unknown(&unit_of(&launch)));
    // The control: the same bomb without a cap, and a small one under it.
    let free = Launch::new();
    let outcome = free.run(&free.policy(), &bomb);
    assert_eq!((outcome.code, outcome.record().out_of_memory), (Some(0), None));
    let launch = scoped(memory);
    let outcome = launch.run(&launch.policy(), &[probe_program().as_str(), "eat", "8"]);
    assert_eq!((outcome.code, outcome.record().out_of_memory), (Some(0), None));
}

/// What the kernel kills does not end the rest of the launch: it is for the agent to go on.
#[test]
fn what_is_killed_in_a_scope_does_not_end_the_rest_as_root() {
    need_bwrap!();
    need_manager!();
    let launch = scoped(Resources { pids: None, ..HELD });
    let script = format!("{} eat 300; echo \"then $?\"; exit 4", probe_program());
    let outcome = launch.run(&launch.policy(), &["/bin/sh", "-c", &script]);
    assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("then 137"), "{}", outcome.stdout);
    let oom = outcome.record().out_of_memory;
    assert!(oom.is_some_and(|oom| oom.kills == 1), "{oom:?}: {:?}", outcome.rows());
}

#[test]
fn a_fork_bomb_in_a_scope_stops_at_its_cap_as_root() {
    need_bwrap!();
    need_manager!();
    let launch = scoped(Resources { memory: None, ..HELD });
    let bomb: &[&[&str]] = &[&["forks", "60"]];
    let answer = launch.attempts(&launch.policy(), bomb).remove(0);
    let count = answer.strip_prefix("error 11 at ").unwrap_or_else(|| panic!("{answer}"));
    assert!((30..40).contains(&count.parse::<u32>().expect("a number")), "{answer}");
    let free = Launch::new();
    assert_eq!(free.attempts(&free.policy(), bomb), ["ok 60"], "the control");
}

/// A manager takes every property; what its scope does not hold is said.
#[test]
fn a_cap_that_its_scope_does_not_hold_is_said_as_root() {
    need_bwrap!();
    need_manager!();
    let facts = facts();
    assert_eq!(facts.manager, UserManager::Answers);
    let (caps, rlimits) = Cap::ALL.into_iter().partition(|cap| holds(&facts, *cap));
    let launch = capped(ALL, vec![Attempt { means: Means::Scope, caps, rlimits }]);
    let outcome = launch.run(&launch.policy(), &["/bin/sh", "-c", "sleep 0.2; exit 3"]);
    assert_eq!(outcome.code, Some(3), "a missing cap never costs the sandbox: {}", outcome.stderr);
    for cap in Cap::ALL {
        let (level, evidence) = row(&outcome, cap.item());
        let expected =
            if holds(&facts, cap) { EnforcementLevel::Enforced } else { EnforcementLevel::Missing };
        assert_eq!(level, expected, "{cap:?}: {evidence}");
    }
    assert!(!holds(&facts, Cap::Cpu), "the recipe of the script holds no share of a processor");
    // One that must hold leads to the next means, or refuses; the scope is gone either way.
    let all = Attempt { means: Means::Scope, caps: Cap::ALL.to_vec(), rlimits: Vec::new() };
    let launch = capped(ALL, vec![all]);
    let outcome = launch.run(&launch.policy(), &["/bin/true"]);
    let error = outcome.record().error.clone().expect("a reason");
    assert!(
        !outcome.record().started && error.contains("systemd scope: cpu is missing"),
        "{error}"
    );
    assert!(unknown(&unit_of(&launch)));
}

#[test]
fn the_scope_of_a_killed_launcher_ends_with_it_as_root() {
    need_bwrap!();
    need_manager!();
    let launch = scoped(HELD);
    let unit = unit_of(&launch);
    let argv = ["/usr/bin/sleep", "1000"];
    let mut launcher = launch.launcher(launch.plan(&launch.policy(), &argv), &argv);
    let mut launcher = launcher.spawn().expect("launcher");
    assert!(running(|| launch.control.join("observed.json").exists()));
    let said = show(&unit);
    assert!(
        said.contains("ActiveState=active") && said.contains("Slice=ours-fleet.slice"),
        "{said}"
    );
    let pid = Pid::from_raw(i32::try_from(launcher.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("killed");
    launcher.wait().expect("launcher");
    // Nobody sweeps: what kept it ended with the launcher, the agent with its sandbox.
    assert!(running(|| unknown(&unit)), "{}", show(&unit));
    let record = launch.control.join("groups.json");
    assert!(record.exists());
    assert_eq!(block_on(with_manager().sweep(&record, &prefix(&launch))), Ok(Vec::new()));
    assert!(!record.exists());
}

#[test]
fn what_outlives_a_killed_launcher_is_swept_with_its_scope_as_root() {
    need_manager!();
    let launch = scoped(HELD);
    let (unit, record) = (unit_of(&launch), launch.control.join("groups.json"));
    let mark = format!("{}", 900 + std::process::id());
    let argv = ["/usr/bin/sleep", mark.as_str()];
    let mut launcher = launch.launcher(launch.bare_plan(&argv), &argv);
    let mut launcher = launcher.spawn().expect("launcher");
    assert!(running(|| launch.control.join("observed.json").exists()));
    let pid = Pid::from_raw(i32::try_from(launcher.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("killed");
    launcher.wait().expect("launcher");
    let alive = || !processes_with(&argv).is_empty();
    assert!(alive() && !unknown(&unit), "the control: nobody has ended it");
    for (role, root) in [("Other", launch.base.clone()), ("Me", launch.base.join("x"))] {
        let copy = launch.control.join("copy.json");
        std::fs::copy(&record, &copy).expect("a record");
        let other = GroupPrefix::new(&role.parse().expect("a name"), &root);
        assert_eq!(block_on(with_manager().sweep(&copy, &other)), Ok(Vec::new()));
        assert!(alive() && !unknown(&unit));
    }
    let swept = block_on(with_manager().sweep(&record, &prefix(&launch)));
    assert_eq!(swept, Ok(vec![unit.clone()]));
    assert!(!alive() && running(|| unknown(&unit)) && !record.exists());
}

#[test]
fn nothing_of_a_scope_reaches_its_command_as_root() {
    need_bwrap!();
    need_manager!();
    let mut launch = scoped(HELD);
    launch.host_env.push(("DBUS_SESSION_BUS_ADDRESS".to_owned(), "unix:path=/run/x".to_owned()));
    let answers = launch.attempts(&launch.policy(), &[&["fds"], &["env-names"]]);
    assert_eq!(answers, ["ok ", "ok API_TOKEN HOME PATH PWD"]);
    let bare = scoped(HELD);
    assert_eq!(bare.bare_attempts(&[&["fds"], &["env-names"]]), ["ok ", "ok API_TOKEN HOME PATH"]);
}

#[test]
fn a_trial_leaves_no_scope_as_root() {
    need_manager!();
    let own = format!("ours-fleet-trial-{}-", std::process::id());
    assert_eq!(facts().manager, UserManager::Answers);
    assert!(running(|| !trials().contains(&own)), "{}", trials());
}

/// The manager of a plain user on a machine that hands nothing on: its scopes start, and hold nothing.
#[test]
fn a_scope_that_holds_nothing_gives_way_to_limits_of_a_process_as_user() {
    need_bwrap!();
    need_manager!();
    let facts = facts();
    assert_eq!(facts.manager, UserManager::Answers);
    for cap in Cap::ALL {
        let why = facts.of(Means::Scope, cap).expect("tried").usable.clone().expect_err("held");
        assert!(why.starts_with("a scope starts, but"), "{why}");
    }
    let pids = Resources { cpu: None, memory: None, pids: Some(40) };
    let list = attempts(&facts, pids);
    assert!(list.iter().all(|attempt| attempt.means != Means::Scope), "{list:?}");

    // The control: a scope that needs to hold nothing does start, and holds nothing.
    let loose = Attempt { means: Means::Scope, caps: Vec::new(), rlimits: Vec::new() };
    let launch = capped(pids, vec![loose.clone()]);
    let bomb: &[&[&str]] = &[&["forks", "60"]];
    assert_eq!(launch.attempts(&launch.policy(), bomb), ["ok 60"]);
    let launch = capped(pids, vec![loose]);
    let argv = ["/bin/cat", "/proc/self/cgroup"];
    let outcome = launch.run_plan(launch.bare_plan(&argv), &argv);
    assert!(outcome.stdout.contains(&format!("/{}/inner\n", unit_of(&launch))), "{outcome:?}");
    assert_eq!(row(&outcome, Item::Pids).0, EnforcementLevel::Missing);

    // Believed to hold, it is found out.
    let next = Attempt { means: Means::Rlimits, caps: Vec::new(), rlimits: vec![Cap::Pids] };
    let believed = Attempt { means: Means::Scope, caps: vec![Cap::Pids], rlimits: Vec::new() };
    let launch = capped(pids, vec![believed.clone(), next.clone()]);
    let answers = launch.attempts(&launch.policy(), bomb);
    assert!(answers[0].starts_with("error 11 at "), "{answers:?}");
    let launch = capped(pids, vec![believed, next]);
    let outcome = launch.run(&launch.policy(), &["/bin/sh", "-c", "sleep 0.2"]);
    let (level, evidence) = row(&outcome, Item::Pids);
    assert_eq!(level, EnforcementLevel::Degraded, "{evidence}");
    assert!(evidence.starts_with("RLIMIT_NPROC"), "{evidence}");
    assert!(evidence.contains("systemd scope: pids is missing"), "{evidence}");
    assert!(unknown(&unit_of(&launch)));
}
