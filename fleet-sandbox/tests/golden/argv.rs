//! Whole command lines, for a host that is described by hand.

use std::fmt::Write as _;
use std::sync::Arc;

use fleet_core::isolation::{
    Backend, IsolationPolicy, Mount, MountMode, MountOrigin, NetworkMode, Resources, SystemView,
    Tmpfs,
};
use fleet_core::launch::{DescriptorRequest, LaunchCommand, LaunchPlan, PlanWord};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileIdentity, FileKind, IsolationBackend as _, PlanError};
use fleet_sandbox::bubblewrap::{HostView, SystemPath, flags};
use fleet_sandbox::{BubblewrapIsolation, NoIsolation};

use crate::support::{TestExec, evidence};

pub(crate) fn host() -> HostView {
    HostView {
        system_paths: vec![
            ("/bin", SystemPath::Link("usr/bin".to_owned())),
            ("/lib64", SystemPath::Directory),
        ],
        proc_masks: vec!["/proc/keys", "/proc/cmdline"],
        resolv_conf: Some("nameserver 192.0.2.1\n".to_owned()),
        resolv_conf_target: Some("/run/resolve/stub.conf".into()),
        etc_secrets: vec![
            ("/etc/shadow", FileKind::File),
            ("/etc/ssl/private", FileKind::Directory),
        ],
        uid: 1000,
        gid: 1000,
        user: "ada".to_owned(),
    }
}

pub(crate) fn backend() -> BubblewrapIsolation {
    BubblewrapIsolation::new(&[], host(), Arc::new(TestExec))
}

pub(crate) fn path(text: &str) -> LexicalPath {
    LexicalPath::absolute(text).expect("plain")
}

pub(crate) fn mount(at: &str, ino: u64, mode: MountMode, origin: MountOrigin) -> Mount {
    Mount {
        source: path(at),
        identity: Some(FileIdentity { dev: 1, ino }),
        kind: Some(FileKind::Directory),
        destination: path(at),
        mode,
        origin,
    }
}

pub(crate) fn policy() -> IsolationPolicy {
    IsolationPolicy {
        backend: Backend::Bubblewrap,
        network: NetworkMode::Deny,
        reachable: Vec::new(),
        resources: Resources::default(),
        mounts: vec![
            mount("/srv/state/Rev", 10, MountMode::ReadWrite, MountOrigin::State),
            mount("/srv/work", 11, MountMode::ReadWrite, MountOrigin::Cwd),
            mount("/srv/work/.git", 12, MountMode::ReadWrite, MountOrigin::SelfBind),
            Mount {
                identity: None,
                kind: None,
                ..mount(
                    "/srv/work/.git/hooks",
                    0,
                    MountMode::ReadOnly,
                    MountOrigin::Overlay { path: ".git/hooks".to_owned() },
                )
            },
        ],
        tmpfs: vec![
            Tmpfs { destination: path("/tmp"), size: 1 << 29, mode: 0o1777 },
            Tmpfs { destination: path("/home/ada"), size: 1 << 28, mode: 0o700 },
        ],
        system: SystemView::Curated,
        nested_sandbox: false,
        cwd: path("/srv/work"),
        home: path("/home/ada"),
        ephemeral_dirs: vec!["/srv/work/.git/hooks".into()],
        residual_risks: Vec::new(),
        blocklist_version: 1,
    }
}

pub(crate) fn command() -> LaunchCommand {
    let argv = ["harness", "--flag", "--", "", "naïve"].map(str::to_owned).to_vec();
    LaunchCommand { argv, cwd: "/srv/work".into() }
}

fn plan(policy: &IsolationPolicy, by_descriptor: bool) -> LaunchPlan {
    backend()
        .plan(policy, &evidence("/usr/bin/bwrap".into(), by_descriptor), &command())
        .expect("a plan")
}

/// One flag a line; a descriptor as the request that it stands for.
pub(crate) fn shown(plan: &LaunchPlan) -> String {
    let mut text = String::new();
    for word in &plan.argv {
        let written = match word {
            PlanWord::Text(word) if word.starts_with("--") => write!(text, "\n{word}"),
            PlanWord::Text(word) => write!(text, " {word:?}"),
            PlanWord::Scratch { before, after } if before.is_empty() => {
                write!(text, " <own>{after}")
            }
            PlanWord::Scratch { before, after } => write!(text, "\n{before}<own>{after}"),
            PlanWord::Tty => write!(text, "\n<tty>"),
            PlanWord::Descriptor(index) | PlanWord::DescriptorPath(index) => {
                let request = serde_json::to_string(&plan.descriptors[*index]).expect("json");
                write!(text, " <{request}>")
            }
        };
        written.expect("a text takes all");
    }
    let LaunchPlan { checks, prepare, cleanup, .. } = plan;
    format!("{text}\n\nchecks {checks:?}\nprepare {prepare:?}\ncleanup {cleanup:?}")
}

#[test]
fn deny_curated_by_descriptor() {
    insta::assert_snapshot!(shown(&plan(&policy(), true)));
}

#[test]
fn allow_full_nested_by_path() {
    let policy = IsolationPolicy {
        network: NetworkMode::Allow,
        system: SystemView::Full,
        nested_sandbox: true,
        ..policy()
    };
    insta::assert_snapshot!(shown(&plan(&policy, false)));
}

#[test]
fn no_flag_shows_the_environment_or_costs_the_terminal() {
    for by_descriptor in [true, false] {
        for word in plan(&policy(), by_descriptor).argv {
            for banned in ["--setenv", "--clearenv", "--new-session", "--as-pid-1"] {
                assert_ne!(word, PlanWord::text(banned));
            }
        }
    }
}

#[test]
fn every_flag_is_in_the_table() {
    for (system, nested_sandbox) in [(SystemView::Curated, false), (SystemView::Full, true)] {
        let policy = IsolationPolicy { system, nested_sandbox, ..policy() };
        let words: Vec<String> = plan(&policy, true).argv[1..]
            .iter()
            .map(|word| match word {
                PlanWord::Text(text) => text.to_string(),
                PlanWord::Descriptor(index) | PlanWord::DescriptorPath(index) => index.to_string(),
                PlanWord::Scratch { .. } | PlanWord::Tty => panic!("not for bubblewrap"),
            })
            .collect();
        assert!(flags::split(&words).is_some_and(|parts| parts.len() > 20));
    }
}

#[test]
fn a_source_without_identity_is_an_error_that_names_it() {
    let mut policy = policy();
    policy.ephemeral_dirs.clear();
    let error = backend()
        .plan(&policy, &evidence("/usr/bin/bwrap".into(), true), &command())
        .expect_err("refused");
    assert!(matches!(error, PlanError::MissingSource { .. }));
    assert_eq!(
        error.to_string(),
        "`/srv/work/.git/hooks` does not exist (isolation.protect: .git/hooks)"
    );
    // A shared item may be absent.
    policy.mounts[3].origin = MountOrigin::SharedItem { name: "plugins".to_owned() };
    assert!(backend().plan(&policy, &evidence("/usr/bin/bwrap".into(), true), &command()).is_ok());
}

#[test]
fn root_keeps_its_kernel_settings_covered_even_when_nesting() {
    let backend = BubblewrapIsolation::new(&[], HostView { uid: 0, ..host() }, Arc::new(TestExec));
    let policy = IsolationPolicy { nested_sandbox: true, ..policy() };
    let plan = backend
        .plan(&policy, &evidence("/usr/bin/bwrap".into(), true), &command())
        .expect("a plan");
    assert!(plan.argv.contains(&PlanWord::text("/proc/sys")));
}

#[test]
fn a_served_network_holds_the_command_back_until_its_sockets_listen() {
    let rules = ["api.example:443", "*.other.example"].map(|text| text.parse().expect(text));
    let policy =
        IsolationPolicy { network: NetworkMode::Allowlist, reachable: rules.to_vec(), ..policy() };
    let plan = backend().plan(&policy, &evidence("/usr/bin/bwrap".into(), true), &command());
    let plan = plan.expect("a plan");
    assert!(plan.argv.contains(&PlanWord::text("--block-fd")));
    assert!(plan.argv.contains(&PlanWord::text("--unshare-net")));
    let network = plan.network.expect("a network");
    assert_eq!(network.rules, rules);
    let listeners: Vec<String> = network.listeners.iter().map(|it| it.at.to_string()).collect();
    assert_eq!(listeners, ["127.0.77.1:443", "127.0.76.1:3128"]);
    let hosts = plan.descriptors.iter().find_map(|request| match request {
        DescriptorRequest::Data { label, content } if label == "/etc/hosts" => Some(content),
        _ => None,
    });
    assert!(hosts.is_some_and(|hosts| hosts.ends_with("127.0.77.1 api.example\n")), "{hosts:?}");

    // Nothing to serve: as under `deny`.
    let policy = IsolationPolicy { reachable: Vec::new(), ..policy };
    let plan = backend().plan(&policy, &evidence("/usr/bin/bwrap".into(), true), &command());
    let plan = plan.expect("a plan");
    assert_eq!(plan.network, None);
    assert!(!plan.argv.contains(&PlanWord::text("--block-fd")));
    assert!(plan.argv.contains(&PlanWord::text("--unshare-net")));
}

#[test]
fn none_says_what_is_missing() {
    let rows: Vec<String> = NoIsolation
        .promise(&policy())
        .into_iter()
        .map(|row| format!("{} {}: {}", row.item.as_str(), row.level.as_str(), row.evidence))
        .collect();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn a_mount_that_another_shows_has_no_bind_of_its_own_and_is_looked_at_all_the_same() {
    let (read, write) = (MountOrigin::FsRead { index: 0 }, MountOrigin::FsWrite { index: 0 });
    let (ro, rw) = (MountMode::ReadOnly, MountMode::ReadWrite);
    let elsewhere = Mount { source: path("/srv/other"), ..mount("/srv/d/e", 29, ro, read.clone()) };
    let of_the_role = [
        mount("/srv/a", 20, rw, write.clone()),
        mount("/srv/d", 21, ro, read.clone()),
        mount("/srv/a/same", 22, rw, write.clone()),
        mount("/srv/a/less", 23, ro, read.clone()),
        mount("/srv/ab", 24, rw, write.clone()),
        mount("/srv/a/guard", 25, rw, MountOrigin::SelfBind),
        elsewhere,
        mount("/srv/a/less/more", 26, rw, write.clone()),
        mount("/srv/a/less/same", 27, ro, read.clone()),
        mount("/srv/d/e/f", 28, ro, read),
        mount("/srv/a/same/deep", 30, rw, write),
    ];
    let mut policy = policy();
    policy.mounts.extend(of_the_role);
    for by_descriptor in [true, false] {
        let plan = plan(&policy, by_descriptor);
        let flags = flags_of(&plan);
        let bound = |at: &str| {
            flags.iter().any(|flag| flag.last().is_some_and(|it| it.trim_matches('"') == at))
        };
        for at in ["/srv/a/same", "/srv/a/less/same", "/srv/a/same/deep"] {
            assert!(!bound(at), "{at}: {flags:?}");
            assert!(plan.checks.iter().any(|check| check.path == at), "{at}");
        }
        for at in [
            "/srv/a",
            "/srv/ab",
            "/srv/a/less",
            "/srv/a/less/more",
            "/srv/a/guard",
            "/srv/d",
            "/srv/d/e",
            "/srv/d/e/f",
        ] {
            assert!(bound(at), "{at}: {flags:?}");
        }
    }
    policy.mounts[6].identity = None;
    let refused = backend().plan(&policy, &evidence("/usr/bin/bwrap".into(), true), &command());
    let refused = refused.expect_err("a source that is not there").to_string();
    assert!(refused.contains("/srv/a/same"), "{refused}");
}

/// The flags of a plan, each with its operands.
fn flags_of(plan: &LaunchPlan) -> Vec<Vec<String>> {
    let text = shown(plan);
    let lines = text.lines().take_while(|line| !line.starts_with("checks"));
    lines.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn d3_the_line_holds_every_protection_and_no_new_session() {
    let flags: Vec<String> = flags_of(&plan(&policy(), true))
        .into_iter()
        .filter_map(|it| it.into_iter().next())
        .collect();
    for wanted in [
        "--die-with-parent",
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-pid",
        "--unshare-net",
        "--cap-drop",
        "--add-seccomp-fd",
        "--chdir",
    ] {
        let there = flags.iter().any(|flag| flag == wanted);
        assert!(there, "{wanted} is not in {flags:?}");
    }
    assert!(flags.iter().all(|flag| flag != "--new-session"), "{flags:?}");
    assert!(flags.iter().all(|flag| flag != "--setenv"), "values are no arguments");
}

#[test]
fn d4_what_is_declared_must_exist() {
    for by_descriptor in [true, false] {
        for flag in flags_of(&plan(&policy(), by_descriptor)) {
            let optional = flag[0].ends_with("-try");
            let declared = flag.iter().any(|word| word.contains("/srv/"));
            assert!(!(optional && declared), "{flag:?}");
        }
    }
}

#[test]
fn d5_nothing_is_put_over_the_operators_home_of_a_harness() {
    for by_descriptor in [true, false] {
        let text = shown(&plan(&policy(), by_descriptor));
        for name in [".claude", ".codex"] {
            assert!(!text.contains(name), "{text}");
        }
    }
}

#[test]
fn w28_names_resolve_although_the_file_points_into_run() {
    let open = IsolationPolicy { network: NetworkMode::Allow, ..policy() };
    for (system, at) in
        [(SystemView::Curated, "/etc/resolv.conf"), (SystemView::Full, "/run/resolve/stub.conf")]
    {
        let plan = plan(&IsolationPolicy { system, ..open.clone() }, true);
        let found = plan.descriptors.iter().any(|request| match request {
            DescriptorRequest::Data { label, content } => {
                label == at && content.contains("nameserver 192.0.2.1")
            }
            _ => false,
        });
        assert!(found, "{system:?}: {plan:?}");
    }
}
