//! The launcher from start to end: status, record, observation, refusals.

use fleet_core::isolation::{EnforcementLevel, Item};

use crate::support::{Launch, need_bwrap, probe_program};

const SLEEPER: &[&str] = &["/bin/sh", "-c", "sleep 0.4; exit 3"];

#[test]
fn every_promised_row_is_seen_to_hold() {
    need_bwrap!();
    for by_descriptor in [true, false] {
        let launch = Launch { by_descriptor, ..Launch::new() };
        let outcome = launch.run(&launch.policy(), SLEEPER);
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
        let rows = outcome.rows();
        assert!(rows.len() >= 11);
        for (item, level, evidence) in rows {
            assert_eq!(level, EnforcementLevel::Enforced, "{item:?}: {evidence}");
        }
    }
}

#[test]
fn the_record_tells_code_and_signal() {
    need_bwrap!();
    for (script, code, signal, status) in [
        ("exit 0", Some(0), None, 0),
        ("exit 7", Some(7), None, 7),
        ("kill -TERM $$", None, Some(15), 143),
        ("kill -KILL $$", None, Some(9), 137),
    ] {
        let argv = ["/bin/sh", "-c", script];
        for isolated in [true, false] {
            let launch = Launch::new();
            let outcome = if isolated {
                launch.run(&launch.policy(), &argv)
            } else {
                launch.run_plan(launch.bare_plan(&argv), &argv)
            };
            let record = outcome.record();
            assert!(record.started, "{script}: {record:?}");
            assert_eq!((record.code, record.signal), (code, signal), "{script}");
            assert_eq!(outcome.code, Some(status), "{script}");
            assert!(!record.stopped && !record.hangup && record.error.is_none(), "{record:?}");
            assert!(record.ended_at >= record.started_at);
        }
    }
}

#[test]
fn what_is_written_is_private_and_the_launch_file_is_gone() {
    use std::os::unix::fs::PermissionsExt as _;
    need_bwrap!();
    let launch = Launch::new();
    launch.run(&launch.policy(), &["/usr/bin/true"]);
    let mut names: Vec<String> = std::fs::read_dir(&launch.control)
        .expect("control")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("utf-8"))
        .collect();
    names.sort();
    assert_eq!(names, ["exit.json", "observed.json"]);
    for name in names {
        let mode =
            std::fs::metadata(launch.control.join(&name)).expect("file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{name}");
    }
}

#[test]
fn a_command_that_does_not_exist_inside_never_started_and_the_record_says_why() {
    need_bwrap!();
    let launch = Launch::new();
    let outcome = launch.run(&launch.policy(), &["/nonexistent/harness"]);
    let record = outcome.record();
    assert!(!record.started && record.code.is_none());
    let error = record.error.as_deref().expect("a reason");
    assert!(error.contains("/nonexistent/harness") && error.contains("could not be executed"));
    assert_eq!(outcome.code, Some(125));
    for (item, level, _) in outcome.rows() {
        assert_ne!(level, EnforcementLevel::Enforced, "{item:?}");
    }
}

#[test]
fn a_sandbox_that_cannot_be_made_is_named_in_the_words_of_its_program() {
    need_bwrap!();
    let launch = Launch::new();
    let mut plan = launch.plan(&launch.policy(), &["/usr/bin/true"]);
    let at = plan
        .argv
        .iter()
        .position(|word| *word == fleet_core::launch::PlanWord::text("--remount-ro"));
    let extra = ["--ro-bind", "/nonexistent/source", "/x"].map(fleet_core::launch::PlanWord::text);
    plan.argv.splice(at.expect("there")..at.expect("there"), extra);
    let outcome = launch.run_plan(plan, &["/usr/bin/true"]);
    let error = outcome.record().error.clone().expect("a reason");
    assert!(error.contains("/nonexistent/source"), "{error}");
    assert!(!outcome.record().started);
}

#[test]
fn the_command_gets_exactly_the_built_environment() {
    need_bwrap!();
    let mut launch = Launch::new();
    launch.host_env = vec![("HOST_SECRET".to_owned(), "canary".to_owned())];
    let answer = launch.attempts(&launch.policy(), &[&["env-names"], &["env", "API_TOKEN"]]);
    // PWD is bubblewrap's own, for --chdir.
    assert_eq!(answer, ["ok API_TOKEN HOME PATH PWD", "ok of-the-role"]);
    let bare = launch.bare_attempts(&[&["env-names"]]);
    assert_eq!(bare, ["ok API_TOKEN HOME PATH"]);
}

#[test]
fn loader_variables_are_refused_in_front_of_a_sandbox_program() {
    need_bwrap!();
    let mut launch = Launch::new();
    launch.env.push(("LD_PRELOAD".to_owned(), "/x.so".to_owned()));
    let outcome = launch.run(&launch.policy(), &["/usr/bin/true"]);
    let error = outcome.record().error.clone().expect("a reason");
    assert!(error.contains("LD_PRELOAD") && !error.contains("/x.so"), "{error}");
}

#[test]
fn without_isolation_the_observation_says_what_is_missing() {
    let launch = Launch::new();
    let outcome = launch.run_plan(launch.bare_plan(SLEEPER), SLEEPER);
    for (item, level, evidence) in outcome.rows() {
        let expected = match item {
            Item::Environment => EnforcementLevel::Enforced,
            Item::Lifetime => EnforcementLevel::Degraded,
            _ => EnforcementLevel::Missing,
        };
        assert_eq!(level, expected, "{item:?}: {evidence}");
    }
}

#[test]
fn a_bare_program_name_is_looked_up_in_the_built_path() {
    let launch = Launch::new();
    let argv = ["true"];
    let outcome = launch.run_plan(launch.bare_plan(&argv), &argv);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let argv = ["no-such-program-anywhere"];
    let launch = Launch::new();
    let outcome = launch.run_plan(launch.bare_plan(&argv), &argv);
    assert!(!outcome.record().started);
    assert!(outcome.record().error.as_deref().is_some_and(|error| error.contains(argv[0])));
}

#[test]
fn the_program_under_test_is_where_the_policy_says() {
    // Guards all other tests: without this bind no attempt would run at all.
    assert!(probe_program().is_absolute());
}
