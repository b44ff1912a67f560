//! Caps on real control groups and real limits of a process.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{EnforcementLevel, Item, MemoryBytes, Resources};
use fleet_core::limits::{GroupPrefix, GroupRecord, hierarchies};
use fleet_core::port::ResourceLimits as _;
use fleet_sandbox::HostLimits;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::caps::{
    ALL, block_on, capped, facts, group_of, groups_named, impossible, need_groups, prefix, row,
    usual,
};
use crate::support::{Launch, need_bwrap, running, skip};

#[test]
fn caps_are_read_back_and_their_groups_go_with_the_launch_as_root() {
    need_bwrap!();
    need_groups!();
    let launch = usual(ALL);
    let name = group_of(&launch);
    let argv = ["/bin/sh", "-c", "cat /proc/self/cgroup; exit 3"];
    let outcome = launch.run(&launch.policy(), &argv);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    for (item, number) in [(Item::Memory, "67108864"), (Item::Pids, "40"), (Item::Cpu, "500")] {
        let (level, evidence) = row(&outcome, item);
        assert_eq!(level, EnforcementLevel::Enforced, "{item:?}: {evidence}");
        assert!(evidence.contains(number) && evidence.ends_with("read back"), "{evidence}");
    }
    // Inside, its own group is the root of every tree: no limit stands in what it could mount.
    assert!(outcome.stdout.contains(":/\n") && !outcome.stdout.contains(&name), "{outcome:?}");
    assert_eq!(groups_named(&name), [] as [Utf8PathBuf; 0]);
    assert!(!launch.control.join("groups.json").exists());
    assert_eq!(outcome.record().out_of_memory, None);
}

#[test]
fn what_a_killed_launcher_leaves_is_swept_by_name_as_root() {
    need_bwrap!();
    need_groups!();
    let launch = usual(ALL);
    let (name, record) = (group_of(&launch), launch.control.join("groups.json"));
    let argv = ["/usr/bin/sleep", "1000"];
    let mut launcher = launch.launcher(launch.plan(&launch.policy(), &argv), &argv);
    let mut launcher = launcher.spawn().expect("launcher");
    assert!(running(|| launch.control.join("observed.json").exists()));
    let made = groups_named(&name);
    assert!(made.len() >= 2 || made.iter().any(|it| it.as_str().contains("unified")), "{made:?}");
    let pid = Pid::from_raw(i32::try_from(launcher.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("killed");
    launcher.wait().expect("launcher");
    assert_eq!(groups_named(&name), made, "the control: nobody has removed them");
    // Another role of the fleet, and another fleet, touch nothing.
    for (role, root) in [("Other", launch.base.clone()), ("Me", launch.base.join("x"))] {
        let copy = launch.control.join("copy.json");
        std::fs::copy(&record, &copy).expect("a record");
        let other = GroupPrefix::new(&role.parse().expect("a name"), &root);
        assert_eq!(block_on(HostLimits::default().sweep(&copy, &other)), Ok(Vec::new()));
        assert_eq!(groups_named(&name), made);
    }
    assert_eq!(
        block_on(HostLimits::default().sweep(&record, &prefix(&launch))),
        Ok(vec![name.clone()])
    );
    assert_eq!(groups_named(&name), [] as [Utf8PathBuf; 0]);
    assert!(!record.exists());
}

#[test]
fn a_record_that_names_other_directories_removes_nothing() {
    let launch = Launch::new();
    let record = launch.control.join("groups.json");
    let trap = launch.base.join(prefix(&launch).launch(&"x1".parse().expect("an id")).as_str());
    std::fs::create_dir(&trap).expect("mkdir");
    let text = GroupRecord { parents: vec![launch.base.clone()], scope: None, group: None };
    std::fs::write(&record, serde_json::to_vec(&text).expect("JSON")).expect("write");
    assert_eq!(block_on(HostLimits::default().sweep(&record, &prefix(&launch))), Ok(Vec::new()));
    assert!(trap.exists(), "it is no control group");
    for garbage in ["", "[]", "{\"parents\": 1}"] {
        std::fs::write(&record, garbage).expect("write");
        assert_eq!(
            block_on(HostLimits::default().sweep(&record, &prefix(&launch))),
            Ok(Vec::new())
        );
    }
}

#[test]
fn a_cap_that_does_not_hold_is_said_and_refuses_where_it_must_hold() {
    need_bwrap!();
    let mut launch = capped(ALL, impossible());
    let outcome = launch.run(&launch.policy(), &["/bin/sh", "-c", "sleep 0.2; exit 3"]);
    assert_eq!(outcome.code, Some(3), "a missing cap never costs the sandbox: {}", outcome.stderr);
    let (level, evidence) = row(&outcome, Item::Memory);
    assert_eq!(level, EnforcementLevel::Missing, "{evidence}");
    assert!(evidence.contains("below 1G is not set"), "{evidence}");
    assert_eq!(row(&outcome, Item::Cpu).0, EnforcementLevel::Missing);
    assert_eq!(row(&outcome, Item::Filesystem).0, EnforcementLevel::Enforced);

    let rule = "`on_unavailable: strict`".to_owned();
    launch = capped(ALL, impossible());
    launch.limits.as_mut().expect("caps").strict = Some(rule.clone());
    let marker = launch.cwd.join("ran");
    let argv = ["/usr/bin/touch", marker.as_str()];
    let outcome = launch.run(&launch.policy(), &argv);
    let error = outcome.record().error.clone().expect("a reason");
    assert!(!outcome.record().started && error.contains(&rule), "{error}");
    assert!(error.contains("memory is missing"), "{error}");
    assert!(!marker.exists(), "nothing ran");
    assert!(!launch.control.join("groups.json").exists());
}

#[test]
fn limits_of_a_process_stand_in_for_a_group_as_user() {
    need_bwrap!();
    if crate::support::Host::is_root() {
        skip!("RLIMIT_NPROC does not hold for root");
    }
    let resources = Resources { memory: Some(MemoryBytes(1 << 30)), ..ALL };
    let launch = capped(resources, impossible());
    let bombs: &[&[&str]] = &[&["eat", "1500"], &["forks", "60"]];
    let answers = launch.attempts(&launch.policy(), bombs);
    assert_eq!(answers[0], "error ENOMEM");
    assert!(answers[1].starts_with("error 11 at "), "{answers:?}");
    let free = Launch::new();
    assert_eq!(free.attempts(&free.policy(), &bombs[1..]), ["ok 60"], "the control");
    let free = free.attempts(&free.policy(), &bombs[..1]);
    assert!(free[0].starts_with("ok "), "the control: {free:?}");

    let launch = capped(resources, impossible());
    let outcome = launch.run(&launch.policy(), &["/bin/sh", "-c", "sleep 0.2"]);
    for item in [Item::Memory, Item::Pids] {
        let (level, evidence) = row(&outcome, item);
        assert_eq!(level, EnforcementLevel::Degraded, "{evidence}");
        assert!(evidence.starts_with("RLIMIT_"), "{evidence}");
    }
}

#[test]
fn the_command_gets_no_descriptor_and_no_variable_of_what_set_its_caps() {
    need_bwrap!();
    let launch = capped(ALL, impossible());
    let answers = launch.attempts(&launch.policy(), &[&["fds"], &["env-names"]]);
    assert_eq!(answers, ["ok ", "ok API_TOKEN HOME PATH PWD"]);
    let bare = capped(ALL, impossible());
    assert_eq!(bare.bare_attempts(&[&["fds"], &["env-names"]]), ["ok ", "ok API_TOKEN HOME PATH"]);
}

#[test]
fn a_command_that_does_not_exist_is_said_under_caps_as_well() {
    let launch = capped(ALL, impossible());
    let argv = ["/nonexistent/harness"];
    let outcome = launch.run_plan(launch.bare_plan(&argv), &argv);
    let record = outcome.record();
    assert!(!record.started, "{record:?}");
    assert!(record.error.as_deref().is_some_and(|it| it.contains(argv[0])), "{record:?}");
}

#[test]
fn what_a_trial_makes_is_gone_again() {
    let _facts = facts();
    let own = format!("ours-fleet-trial-{}-", std::process::id());
    let text = |path: &str| std::fs::read_to_string(path).expect("of this process");
    for tree in hierarchies(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup")) {
        let Ok(entries) = Utf8Path::new(&tree.group).read_dir_utf8() else { continue };
        assert!(!entries.flatten().any(|entry| entry.file_name().starts_with(&own)), "{tree:?}");
    }
}
