//! Real containers, by the real launcher.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;

use fleet_core::isolation::{EnforcementLevel, NetworkMode, SystemView};
use fleet_core::launch::{LaunchPlan, PlanWord};
use fleet_core::port::IsolationBackend as _;
use fleet_sandbox::PodmanIsolation;

use crate::support::{Launch, Outcome, PolicyBuilder, need_podman, podman_evidence, within};

pub(crate) fn plan(
    backend: &PodmanIsolation,
    launch: &Launch,
    policy: &PolicyBuilder,
    argv: &[&str],
) -> LaunchPlan {
    backend.plan(&policy.policy, &podman_evidence(), &launch.command(argv)).expect("a plan")
}

fn run(
    backend: &PodmanIsolation,
    launch: &Launch,
    policy: &PolicyBuilder,
    argv: &[&str],
) -> Outcome {
    launch.run_plan(plan(backend, launch, policy, argv), argv)
}

/// Ends when the test has made the file, which it does once the launcher has looked.
pub(crate) const WAIT: &str = "while [ ! -e go ]; do sleep 0.01; done";

/// Runs a script that ends in [`WAIT`] until it was observed, and then to its end.
pub(crate) fn observed(
    backend: &PodmanIsolation,
    launch: &Launch,
    policy: &PolicyBuilder,
    script: &str,
) -> Outcome {
    let script = format!("{script}; {WAIT}");
    watched(backend, launch, policy, &["/bin/sh", "-c", &*script])
}

/// The same for a whole command.
fn watched(
    backend: &PodmanIsolation,
    launch: &Launch,
    policy: &PolicyBuilder,
    argv: &[&str],
) -> Outcome {
    let mut launcher = launch.launcher(plan(backend, launch, policy, argv), argv);
    launcher.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = launcher.spawn().expect("launcher");
    let seen = || {
        launch.control.join("observed.json").exists()
            || child.try_wait().expect("a child").is_some()
    };
    assert!(within(30, seen), "it is never observed");
    std::fs::write(launch.cwd.join("go"), "").expect("write");
    launch.outcome(child)
}

pub(crate) fn all_hold(outcome: &Outcome) {
    let rows = outcome.rows();
    assert!(rows.len() >= 11, "{rows:?}");
    for (item, level, evidence) in &rows {
        assert_eq!(*level, EnforcementLevel::Enforced, "{item:?}: {evidence}");
    }
}

/// Nothing of podman's is left on the host: no directory, no short name, no process.
pub(crate) fn nothing_left(launch: &Launch) {
    let boxes = launch.control.join("boxes");
    let left: Vec<_> = std::fs::read_dir(&boxes).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(processes_naming(launch.control.as_str()), Vec::<String>::new());
    let short = std::fs::read_dir("/tmp").expect("/tmp").flatten().filter(|entry| {
        std::fs::read_link(entry.path().join("s"))
            .is_ok_and(|target| target.starts_with(&launch.control))
    });
    assert_eq!(short.count(), 0);
}

/// Command lines of living processes that name this text in their arguments or environment.
pub(crate) fn processes_naming(text: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let read = |path: std::path::PathBuf| {
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    };
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter(|entry| entry.file_name() != *own)
        .map(|entry| (read(entry.path().join("cmdline")), read(entry.path().join("environ"))))
        .filter(|(line, environment)| line.contains(text) || environment.contains(text))
        .map(|(line, _)| line.replace('\0', " "))
        .collect()
}

#[test]
fn a_container_runs_the_command_and_every_promise_is_seen_to_hold() {
    let backend = need_podman!();
    let launch = Launch::new();
    let script = "id -u; pwd; cat /etc/hostname; echo \"$API_TOKEN\"; echo made > made";
    let outcome = observed(&backend, &launch, &launch.policy(), script);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let uid = rustix::process::getuid().as_raw();
    let said = format!("{uid}\n{}\nsandbox\nof-the-role\n", launch.cwd);
    assert_eq!(outcome.stdout, said, "{}", outcome.stderr);
    all_hold(&outcome);
    let made = std::fs::metadata(launch.cwd.join("made")).expect("made");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&made), uid, "it belongs to the fleet user");
    assert!(outcome.record().started);
    nothing_left(&launch);
}

#[test]
fn a_status_and_a_signal_reach_the_record() {
    let backend = need_podman!();
    let launch = Launch::new();
    let outcome = run(&backend, &launch, &launch.policy(), &["/bin/sh", "-c", "exit 7"]);
    assert_eq!((outcome.code, outcome.record().code), (Some(7), Some(7)), "{outcome:?}");
    let launch = Launch::new();
    let words = ["/usr/bin/printf", "[%s]", "--", "--rm", "a b", "", "run"];
    let outcome = run(&backend, &launch, &launch.policy(), &words);
    assert_eq!(outcome.stdout, "[--][--rm][a b][][run]", "no word of it is podman's");
    let launch = Launch::new();
    let outcome = run(&backend, &launch, &launch.policy(), &["/bin/sh", "-c", "kill -KILL $$"]);
    assert_eq!(outcome.record().signal, Some(9), "{outcome:?}");
    nothing_left(&launch);
}

#[test]
fn a_command_that_is_not_there_is_told_from_one_that_failed() {
    let backend = need_podman!();
    let launch = Launch::new();
    let outcome = run(&backend, &launch, &launch.policy(), &["/nonexistent/program"]);
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    let error = outcome.record().error.clone().unwrap_or_default();
    assert!(error.contains("/nonexistent/program"), "{error}");
    assert!(!outcome.record().started);
    nothing_left(&launch);
}

#[test]
fn what_podman_says_of_a_container_that_cannot_be_made_is_the_reason() {
    let backend = need_podman!();
    let launch = Launch::new();
    let mut plan = plan(&backend, &launch, &launch.policy(), &["/bin/true"]);
    let at = plan.argv.iter().position(|word| *word == PlanWord::text("--init")).expect("there");
    plan.argv[at] = PlanWord::text("--no-such-flag");
    let outcome = launch.run_plan(plan, &["/bin/true"]);
    let error = outcome.record().error.clone().unwrap_or_default();
    assert!(error.contains("no-such-flag"), "{outcome:?}");
    nothing_left(&launch);
}

#[test]
fn a_source_that_was_replaced_is_refused() {
    let backend = need_podman!();
    let launch = Launch::new();
    let shown = launch.base.join("shown");
    std::fs::create_dir(&shown).expect("mkdir");
    let policy = launch.policy().read(&shown);
    let plan = plan(&backend, &launch, &policy, &["/bin/true"]);
    std::fs::remove_dir(&shown).expect("rmdir");
    std::os::unix::fs::symlink(launch.home.join(".ssh"), &shown).expect("link");
    let outcome = launch.run_plan(plan, &["/bin/true"]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("symbolic link"), "{}", outcome.stderr);
    nothing_left(&launch);
}

#[test]
fn a_container_that_shows_another_object_gets_no_command() {
    let backend = need_podman!();
    let launch = Launch::new();
    let (shown, other) = (launch.base.join("shown"), launch.home.join(".ssh"));
    std::fs::create_dir(&shown).expect("mkdir");
    let argv = ["/bin/sh", "-c", "echo ran"];
    let mut plan = plan(&backend, &launch, &launch.policy().read(&shown), &argv);
    // What podman would see if the path led elsewhere after the last check.
    for word in &mut plan.argv {
        if let PlanWord::Text(text) = word {
            let source = format!("--volume={shown}:");
            *text = text.replace(&source, &format!("--volume={other}:")).into();
        }
    }
    // Still known by the path that was checked.
    let (check, real) = (launch.base.join("shown"), std::fs::metadata(&shown).expect("there"));
    let check = plan.checks.iter_mut().find(|it| it.path == check).expect("checked");
    check.path.clone_from(&other);
    let found = std::fs::metadata(&other).expect("there");
    assert_ne!(found.ino(), real.ino());
    let outcome = launch.run_plan(plan, &argv);
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(!outcome.stdout.contains("ran"), "{outcome:?}");
    nothing_left(&launch);
}

#[test]
fn the_trial_passes_and_leaves_nothing() {
    let backend = need_podman!();
    let launch = Launch::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    let evidence = runtime.block_on(backend.probe(&launch.policy().policy)).expect("usable");
    assert!(evidence.version.starts_with("podman"), "{evidence:?}");
    assert_eq!(processes_naming("/tmp/of-trial-"), Vec::<String>::new());
}

#[test]
fn what_is_allowed_is_served_in_a_network_that_has_nothing_else() {
    let backend = need_podman!();
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        std::io::Write::write_all(&mut stream, b"served\n").expect("write");
    });
    let launch = Launch::new();
    let policy = launch.policy().reachable(&[&format!("127.0.0.1:{port}")]);
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; head -n 1 <&3; \
         (exec 4<>/dev/tcp/127.0.0.1/1) 2>/dev/null || echo refused; cat /proc/net/dev | wc -l; {WAIT}"
    );
    let argv = ["/bin/bash", "-c", &*script];
    let outcome = watched(&backend, &launch, &policy, &argv);
    assert_eq!(outcome.stdout, "served\nrefused\n3\n", "{}", outcome.stderr);
    all_hold(&outcome);
    serving.join().expect("served");
    nothing_left(&launch);
}

#[test]
fn the_host_s_network_is_there_where_it_is_asked_for() {
    let backend = need_podman!();
    let launch = Launch::new();
    let policy = launch.policy().network(NetworkMode::Allow);
    let outcome = observed(&backend, &launch, &policy, "readlink /proc/self/ns/net");
    let own = std::fs::read_link("/proc/self/ns/net").expect("a namespace");
    assert_eq!(outcome.stdout.trim(), own.to_str().expect("text"), "{}", outcome.stderr);
    all_hold(&outcome);
    nothing_left(&launch);
}

#[test]
fn the_whole_of_etc_is_shown_but_its_secrets() {
    let backend = need_podman!();
    for network in [NetworkMode::Deny, NetworkMode::Allow] {
        let launch = Launch::new();
        let mut policy = launch.policy().network(network);
        policy.policy.system = SystemView::Full;
        let script = "test -e /etc/fstab -o -e /etc/debian_version && echo shown; \
                      cat /etc/shadow; ls /etc/ssl/private";
        let outcome = observed(&backend, &launch, &policy, script);
        assert_eq!(outcome.stdout, "shown\n", "{}", outcome.stderr);
        all_hold(&outcome);
        nothing_left(&launch);
    }
}
