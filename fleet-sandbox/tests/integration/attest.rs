//! The sandbox is asked about itself: every question has a no, and a no has consequences.

use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use fleet_core::attest::{AttestCheck, AttestRequest, DeniedCall, Probe};
use fleet_core::isolation::{EnforcementLevel, Item};
use fleet_core::launch::{DescriptorRequest, LaunchPlan, PlanWord};
use fleet_sandbox::attest;
use rustix::io::{FdFlags, fcntl_setfd};

use crate::support::{Launch, need_bwrap, skip};

const SLEEPER: &[&str] = &["/bin/sh", "-c", "touch ran; sleep 0.3"];

/// What is answered to one question in this process, which no sandbox confines.
fn saw(probe: Probe) -> Option<String> {
    let record = attest::run(&AttestRequest::new(vec![AttestCheck::new(Item::Ipc, probe)]));
    let answers = record.item(Item::Ipc).expect("asked");
    answers.failures.first().map(ToString::to_string)
}

fn path(path: &camino::Utf8Path) -> String {
    path.to_string()
}

#[test]
fn every_question_is_answered_no_where_nothing_protects() {
    let launch = Launch::new();
    let file = launch.base.join("home/.ssh/id");
    std::fs::write(&file, "key").expect("write");
    let before = std::fs::symlink_metadata(&launch.cwd).expect("cwd");

    let port = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = (port.local_addr().expect("address").port(), port);
    let name = format!("fleet-attest-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("name");
    let _socket = UnixListener::bind_addr(&address).expect("bind");
    let leaked = std::fs::File::open(&file).expect("open");
    fcntl_setfd(&leaked, FdFlags::empty()).expect("unmarked");
    let own = std::fs::metadata("/proc/self/ns/ipc").expect("a namespace").ino();

    let mut probes = vec![
        Probe::Hidden { path: path(&file) },
        Probe::Hidden { path: path(&launch.cwd) },
        Probe::ReadOnly { path: path(&file) },
        Probe::ReadOnly { path: path(&launch.cwd) },
        Probe::ReadOnly { path: path(&launch.base.join("absent")) },
        Probe::Writable { path: path(&launch.base.join("absent")) },
        Probe::Empty { path: path(&file) },
        Probe::Empty { path: path(&launch.base) },
        Probe::Capped { path: path(&launch.base), bytes: 4096 },
        Probe::Environment { names: vec!["NO_SUCH_VARIABLE".to_owned()] },
        Probe::Descriptors,
        // The bounding set of an ordinary user is not empty either.
        Probe::NoCapabilities,
        Probe::Listening { at: "127.0.0.1:1".parse().expect("an address") },
        Probe::HostPort { port: port.0 },
        Probe::HostSocket { name },
        Probe::OwnNamespace { name: "ipc".to_owned(), host: own },
        Probe::OwnNamespace { name: "ipc".to_owned(), host: 0 },
        Probe::OwnNamespace { name: "none".to_owned(), host: 1 },
        Probe::Processes { most: 2 },
        Probe::Hostname { name: "another name".to_owned() },
        Probe::DiesWithParent,
    ];
    let calls = DeniedCall::ALWAYS.iter().chain(DeniedCall::UNLESS_NESTED);
    probes.extend(calls.chain(&[DeniedCall::Unshare]).map(|call| Probe::Refused { call: *call }));
    let privileged = crate::support::Host::is_root();
    for probe in probes {
        // Only root may make one, with or without a filter.
        if probe == (Probe::Refused { call: DeniedCall::PacketSocket }) && !privileged {
            continue;
        }
        assert!(saw(probe.clone()).is_some(), "answered yes: {probe}");
    }

    // Nothing was changed by trying, although all of it was possible.
    let after = std::fs::symlink_metadata(&launch.cwd).expect("cwd");
    assert_eq!((before.mtime(), before.mtime_nsec()), (after.mtime(), after.mtime_nsec()));
    assert_eq!(std::fs::read_dir(&launch.cwd).expect("cwd").count(), 0);
    assert_eq!(std::fs::read(&file).expect("file"), b"key");
    // Tests beside this one may leave their own open for a moment.
    let number = leaked.as_raw_fd().to_string();
    let named = |saw: Option<String>| {
        saw.is_some_and(|saw| saw.split([' ', ',']).any(|word| word == number))
    };
    assert!(named(saw(Probe::Descriptors)));
    fcntl_setfd(&leaked, FdFlags::CLOEXEC).expect("marked");
    assert!(!named(saw(Probe::Descriptors)), "the probe sees more than what is unmarked");
}

/// As above, where the machine of the test itself may be protected.
#[test]
fn questions_about_the_process_are_answered_no_where_nothing_protects() {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    for (line, probe) in
        [("NoNewPrivs:\t0", Probe::NoNewPrivileges), ("Seccomp:\t0", Probe::Filtered)]
    {
        if !status.contains(line) {
            skip!(format!("this test itself does not run with {line}"));
        }
        assert!(saw(probe).is_some(), "{line}");
    }
    let devices = std::fs::read_to_string("/proc/self/net/dev").expect("devices");
    if devices.lines().skip(2).all(|line| line.trim_start().starts_with("lo:")) {
        skip!("this machine has no interface but lo");
    }
    assert!(saw(Probe::LoopbackOnly).is_some());
    if rustix::process::getrlimit(rustix::process::Resource::Core).maximum == Some(0) {
        skip!("core dumps are off for this test itself");
    }
    assert!(saw(Probe::NoCoreDumps).is_some());
}

#[test]
fn the_rows_name_both_kinds_of_evidence() {
    need_bwrap!();
    let launch = Launch::new();
    let outcome = launch.run(&launch.policy(), SLEEPER);
    let rows = outcome.rows();
    assert!(rows.len() >= 11, "{rows:?}");
    for (item, level, evidence) in rows {
        assert_eq!(level, EnforcementLevel::Enforced, "{item:?}: {evidence}");
        assert!(evidence.ends_with(" from inside"), "{item:?}: {evidence}");
    }
}

fn ask(plan: &mut LaunchPlan, item: Item, probe: Probe, strict: bool) {
    let request = plan.attestation_mut().expect("asked");
    request.checks.push(AttestCheck::new(item, probe));
    request.strict = strict;
}

#[test]
fn a_no_flips_its_row_and_under_strict_the_command_never_starts() {
    need_bwrap!();
    let visible = |launch: &Launch| Probe::Hidden { path: launch.cwd.to_string() };

    let launch = Launch::new();
    let mut plan = launch.plan(&launch.policy(), SLEEPER);
    ask(&mut plan, Item::Filesystem, visible(&launch), false);
    let outcome = launch.run_plan(plan, SLEEPER);
    assert!(outcome.record().started && launch.cwd.join("ran").exists());
    for (item, level, evidence) in outcome.rows() {
        let holds = item != Item::Filesystem;
        assert_eq!(level == EnforcementLevel::Enforced, holds, "{item:?}: {evidence}");
        assert!(holds || evidence.contains("is hidden: it can be opened"), "{evidence}");
    }

    let launch = Launch::new();
    let mut plan = launch.plan(&launch.policy(), SLEEPER);
    ask(&mut plan, Item::Filesystem, visible(&launch), true);
    let outcome = launch.run_plan(plan, SLEEPER);
    assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
    assert!(!outcome.record().started && !launch.cwd.join("ran").exists());
    let error = outcome.record().error.clone().expect("a reason");
    let check = format!("filesystem: not true that {} is hidden", launch.cwd);
    assert!(error.contains(&check), "{error}");
    let rows = outcome.rows();
    assert!(rows.iter().all(|(_, level, _)| *level == EnforcementLevel::Missing), "{rows:?}");

    // Strict alone refuses nothing.
    let launch = Launch::new();
    let mut plan = launch.plan(&launch.policy(), SLEEPER);
    plan.attestation_mut().expect("asked").strict = true;
    assert!(launch.run_plan(plan, SLEEPER).record().started);
}

#[test]
fn without_an_answer_nothing_is_believed_and_nothing_ran() {
    need_bwrap!();
    let launch = Launch::new();
    let mut plan = launch.plan(&launch.policy(), SLEEPER);
    for word in &mut plan.argv {
        if matches!(word, PlanWord::DescriptorPath(_)) {
            *word = PlanWord::text("/usr/bin/true");
        }
    }
    let outcome = launch.run_plan(plan, SLEEPER);
    assert_eq!(outcome.code, Some(125), "{}", outcome.stderr);
    let error = outcome.record().error.clone().expect("a reason");
    assert!(error.contains("did not answer"), "{error}");
    assert!(!outcome.record().started && !launch.cwd.join("ran").exists());
    for (item, level, _) in outcome.rows() {
        assert_ne!(level, EnforcementLevel::Enforced, "{item:?}");
    }
}

#[test]
fn a_request_that_is_none_is_refused() {
    need_bwrap!();
    let launch = Launch::new();
    let mut plan = launch.plan(&launch.policy(), SLEEPER);
    plan.attestation_mut().expect("asked").version = 2;
    let outcome = launch.run_plan(plan, SLEEPER);
    assert!(!outcome.record().started && !launch.cwd.join("ran").exists());

    let mut plan = launch.plan(&launch.policy(), SLEEPER);
    let pipe = |request: &DescriptorRequest| matches!(request, DescriptorRequest::AttestPipe);
    let at = plan.descriptors.iter().position(pipe).expect("there");
    plan.descriptors[at] = DescriptorRequest::StatusPipe;
    let outcome = launch.run_plan(plan, SLEEPER);
    let error = outcome.record().error.clone().expect("a reason");
    assert!(error.contains("the launch plan is not usable"), "{error}");
}

#[test]
fn the_numbers_of_descriptors_are_not_taken_on_trust() {
    // In this process, so only with what ends before anything is marked or taken.
    let own = std::fs::File::open("/dev/null").expect("open").as_raw_fd().to_string();
    for words in [
        &[][..],
        &["3", "4"],
        &["x", "4", "true"],
        &["0", "4", "true"],
        &["-1", "4", "true"],
        &[&own, &own, "true"],
    ] {
        let words: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
        assert_eq!(attest::inside(&words), 125, "{words:?}");
    }
}
