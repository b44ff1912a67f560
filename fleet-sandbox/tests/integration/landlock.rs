//! The launcher with a plan of Landlock, from start to end.

use fleet_core::isolation::{EnforcementLevel, Item, MountMode, MountOrigin, NetworkMode};
use fleet_core::port::{IsolationBackend as _, ProbeFailure};

use crate::support::{Host, Launch, PolicyBuilder, need_landlock, need_root, probe_program};

const SLEEPER: &[&str] = &["/bin/sh", "-c", "sleep 0.4; exit 3"];

/// A key that nothing shows, a file that can be read, one that can be written.
fn furnish(launch: &Launch) -> PolicyBuilder {
    let shown = launch.base.join("shown");
    std::fs::create_dir(&shown).expect("mkdir");
    for file in ["home/.ssh/id", "shown/file", "work/file"] {
        std::fs::write(launch.base.join(file), "canary").expect("write");
    }
    launch.policy().read(&shown)
}

#[test]
fn contents_are_refused_and_granted_as_the_policy_says_as_user() {
    need_landlock!();
    let launch = Launch::new();
    let policy = furnish(&launch);
    let at = |path: &str| launch.base.join(path).to_string();
    let attempts: &[&[&str]] = &[
        &["read", &at("home/.ssh/id")],
        &["list", &at("home/.ssh")],
        &["read", &at("shown/file")],
        &["append", &at("shown/file")],
        &["truncate", &at("shown/file")],
        &["append", &at("work/file")],
        &["mkdir", &at("work/made")],
        &["rename", &at("work/file"), &at("work/made/file")],
        &["read", "/etc/machine-id"],
        &["list", "/tmp"],
        &["run", "/usr/bin/true"],
    ];
    let refused = "error 13 permission denied";
    let expected = [
        refused,
        refused,
        "ok canary",
        refused,
        refused,
        "ok ",
        "ok ",
        "ok ",
        refused,
        refused,
        "ok ",
    ];
    assert_eq!(launch.confined_attempts(&policy, attempts), expected);
    // The control: all of it works without the rules.
    let launch = Launch::new();
    furnish(&launch);
    let at = |path: &str| launch.base.join(path).to_string();
    let attempts: &[&[&str]] = &[
        &["read", &at("home/.ssh/id")],
        &["append", &at("shown/file")],
        &["truncate", &at("shown/file")],
        &["list", "/tmp"],
    ];
    let answers = launch.bare_attempts(attempts);
    assert!(answers.iter().all(|answer| answer.starts_with("ok ")), "{answers:?}");
}

#[test]
fn every_promised_row_is_seen_as_it_was_promised_as_user() {
    need_landlock!();
    for mode in [NetworkMode::Deny, NetworkMode::Allow] {
        let launch = Launch::new();
        let policy = launch.policy().network(mode);
        let plan = launch.confined_plan(&policy, SLEEPER);
        let promised = plan.promise.clone();
        let outcome = launch.run_plan(plan, SLEEPER);
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
        let rows = outcome.rows();
        assert_eq!(rows.len(), promised.len());
        for ((item, level, evidence), promise) in rows.into_iter().zip(promised) {
            assert_eq!((item, level), (promise.item, promise.level), "{evidence}");
            let asked = ![Item::Hostname, Item::Network].contains(&item);
            assert!(!asked || evidence.contains("from inside"), "{item:?}: {evidence}");
        }
    }
}

#[test]
fn the_record_tells_code_and_signal_as_user() {
    need_landlock!();
    for (script, code, signal, status) in [
        ("exit 0", Some(0), None, 0),
        ("exit 200", Some(200), None, 200),
        ("kill -TERM $$", None, Some(15), 143),
    ] {
        let argv = ["/bin/sh", "-c", script];
        let launch = Launch::new();
        let outcome = launch.run_plan(launch.confined_plan(&launch.policy(), &argv), &argv);
        let record = outcome.record();
        assert!(record.started, "{script}: {record:?}");
        assert_eq!((record.code, record.signal, outcome.code), (code, signal, Some(status)));
        assert!(record.error.is_none() && outcome.stderr.is_empty(), "{outcome:?}");
    }
}

#[test]
fn a_command_that_cannot_be_executed_never_started_as_user() {
    need_landlock!();
    let launch = Launch::new();
    let hidden = launch.base.join("hidden");
    std::fs::copy("/usr/bin/true", &hidden).expect("copy");
    for program in ["/nonexistent/harness", hidden.as_str()] {
        let launch = Launch::new();
        let argv = [program];
        let outcome = launch.run_plan(launch.confined_plan(&launch.policy(), &argv), &argv);
        let record = outcome.record();
        assert!(!record.started && record.code.is_none(), "{record:?}");
        let error = record.error.as_deref().expect("a reason");
        assert!(error.contains(program) && error.contains("could not be executed"), "{error}");
        assert_eq!(outcome.code, Some(125));
    }
}

#[test]
fn rules_that_the_kernel_cannot_keep_start_nothing_and_say_why_as_user() {
    use fleet_core::launch::DescriptorRequest;
    need_landlock!();
    for (from, to, word) in [
        ("\"abi\":", "\"abi\":9", "older than what was promised"),
        ("\"cwd\":\"", "\"cwd\":\"/nonexistent", "change to /nonexistent"),
        ("\"version\":1", "\"version\":2", "version 2"),
        ("\"network\":", "\"network\":\"x\",\"y\":", "its rules are none"),
    ] {
        let launch = Launch::new();
        let argv = ["/bin/sh", "-c", "touch ran"];
        let mut plan = launch.confined_plan(&launch.policy(), &argv);
        for request in &mut plan.descriptors {
            if let DescriptorRequest::Data { content, .. } = request {
                *content = content.replacen(from, to, 1);
            }
        }
        let outcome = launch.run_plan(plan, &argv);
        let error = outcome.record().error.clone().expect("a reason");
        assert!(error.contains("could not be made") && error.contains(word), "{error}");
        assert!(!outcome.record().started && !launch.cwd.join("ran").exists(), "{word}");
        for (item, level, evidence) in outcome.rows() {
            assert_ne!(level, EnforcementLevel::Enforced, "{item:?}: {evidence}");
        }
    }
}

#[test]
fn a_source_that_was_swapped_after_planning_is_refused_as_user() {
    need_landlock!();
    let launch = Launch::new();
    let policy = furnish(&launch);
    let argv = ["/usr/bin/true"];
    let plan = launch.confined_plan(&policy, &argv);
    let shown = launch.base.join("shown");
    std::fs::rename(&shown, launch.base.join("moved")).expect("rename");
    std::os::unix::fs::symlink(launch.base.join("home/.ssh"), &shown).expect("link");
    let outcome = launch.run_plan(plan, &argv);
    let error = outcome.record().error.clone().expect("a reason");
    assert!(!outcome.record().started && error.contains("is not what it was"), "{error}");
}

#[test]
fn the_private_directories_stand_for_home_and_tmp_as_user() {
    need_landlock!();
    let mut launch = Launch::new();
    let state = launch.base.join("agents/me");
    let policy = PolicyBuilder::new(&launch.cwd, &launch.home)
        .mount(&state, MountMode::ReadWrite, MountOrigin::State)
        .read(probe_program());
    let variables = Host::landlock().variables(&policy.policy);
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"]);
    launch.env.retain(|(name, _)| name != "HOME");
    launch.env.extend(variables.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let policy = policy.write(&launch.cwd);
    let script = "set -e; f=$(mktemp); echo x > \"$f\"; echo y > \"$HOME/y\"; echo \"$f\"";
    let argv = ["/bin/sh", "-c", script];
    let outcome = launch.run_plan(launch.confined_plan(&policy, &argv), &argv);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with(state.join(".sandbox/tmp/").as_str()), "{}", outcome.stdout);
    assert!(state.join(".sandbox/home/y").exists());
    // What an agent puts into the way of its next start leads nowhere.
    std::fs::remove_dir_all(state.join(".sandbox")).expect("remove");
    std::os::unix::fs::symlink(launch.base.join("home/.ssh"), state.join(".sandbox"))
        .expect("link");
    let launch = Launch { control: launch.base.join("agents/other"), ..launch };
    let outcome = launch.run_plan(launch.confined_plan(&policy, &argv), &argv);
    assert_ne!(outcome.code, Some(0));
    assert_eq!(std::fs::read_dir(launch.base.join("home/.ssh")).expect("keys").count(), 0);
}

#[tokio::test]
async fn the_trial_runs_with_the_rules_of_the_role_as_user() {
    need_landlock!();
    let launch = Launch::new();
    let policy = furnish(&launch);
    let found = Host::landlock().probe(&policy.policy).await.expect("usable");
    assert!(found.version.starts_with("landlock ") && found.program == probe_program().as_str());
    // The program of the trial is not a program that confines itself.
    let other = fleet_sandbox::LandlockIsolation::new(
        "/usr/bin/false".into(),
        fleet_sandbox::HostView::gather("fleet"),
        std::sync::Arc::new(crate::support::TestExec),
    );
    let failure = other.probe(&policy.policy).await.expect_err("not usable");
    assert!(matches!(failure, ProbeFailure::Trial { .. }), "{failure}");
}

#[tokio::test]
async fn root_is_refused_as_root() {
    need_root!();
    let launch = Launch::new();
    let failure = Host::landlock().probe(&launch.policy().policy).await.expect_err("refused");
    assert!(failure.to_string().contains("as root"), "{failure}");
}

#[test]
fn an_older_kernel_is_asked_for_no_more_than_it_has_as_user() {
    need_landlock!();
    for abi in 1..=Host::landlock().abi() {
        let launch = Launch::new();
        let policy = furnish(&launch);
        let backend = Host::landlock().with_abi_at_most(abi);
        let attempts =
            [probe_program().as_str(), "read", launch.base.join("home/.ssh/id").as_str()]
                .map(str::to_owned);
        let evidence = crate::support::evidence("".into(), true);
        let plan =
            backend.plan(&policy.policy, &evidence, &launch.command(&attempts)).expect("plan");
        let outcome = launch.run_plan(plan, &attempts);
        assert!(
            outcome.stdout.starts_with("error 13"),
            "{abi}: {}{}",
            outcome.stdout,
            outcome.stderr
        );
        let short = backend.shortfalls(&policy.policy);
        assert_eq!(short.iter().any(|what| what.contains("being emptied")), abi < 3, "{short:?}");
    }
}
