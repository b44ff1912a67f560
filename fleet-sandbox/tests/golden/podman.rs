//! Whole lines of the keeper and of podman, as they are planned for a made-up host.

use std::fmt::Write as _;
use std::sync::Arc;

use fleet_core::isolation::{IsolationPolicy, Mount, NetworkMode, SystemView};
use fleet_core::launch::{LaunchPlan, PlanWord, Preparation, ScratchEntry};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, IsolationBackend as _, PlanError};
use fleet_sandbox::PodmanIsolation;
use fleet_sandbox::bubblewrap::HostView;
use fleet_sandbox::podman::PodmanHost;

use super::argv::{command, host, policy};
use crate::support::{TestExec, podman_evidence};

pub(crate) fn backend(host: HostView) -> PodmanIsolation {
    let own = PodmanHost {
        etc: vec![
            ("/etc/localtime", "/usr/share/zoneinfo/UTC".into(), FileKind::File),
            ("/etc/ssl/certs", "/etc/ssl/certs".into(), FileKind::Directory),
        ],
        files: 4096,
        processes: 2048,
        missing: Vec::new(),
        ungranted: None,
    };
    let program = Some("/usr/bin/podman".into());
    PodmanIsolation::with(program, host, own, "/bin/ours-fleet".into(), Arc::new(TestExec))
}

fn plan(host: HostView, policy: &IsolationPolicy) -> LaunchPlan {
    backend(host).plan(policy, &podman_evidence(), &command()).expect("a plan")
}

fn shown(plan: &LaunchPlan) -> String {
    let mut text = String::new();
    for word in &plan.argv {
        let written = match word {
            PlanWord::Text(word) if word.starts_with("--") => write!(text, "\n{word}"),
            PlanWord::Text(word) => write!(text, " {word:?}"),
            PlanWord::Descriptor(index) | PlanWord::DescriptorPath(index) => {
                let request = serde_json::to_value(&plan.descriptors[*index]).expect("json");
                write!(text, " <{}>", request["kind"].as_str().expect("a kind"))
            }
            PlanWord::Scratch { before, after } => {
                let line = if before.is_empty() { " " } else { "\n" };
                write!(text, "{line}{before}<own>{after}")
            }
            PlanWord::Tty => write!(text, "\n<tty>"),
        };
        written.expect("a text takes all");
    }
    text.push_str("\n\n");
    for made in &plan.prepare {
        let written = match made {
            Preparation::MakeDir { path } => writeln!(text, "make {path}"),
            Preparation::Scratch { path, entry: ScratchEntry::File { content } } => {
                let lines = if path == "seccomp.json" { "…" } else { content };
                writeln!(text, "own {path}: {lines:?}")
            }
            Preparation::Scratch { path, entry: ScratchEntry::Directory { mode } } => {
                writeln!(text, "own {path}/ {mode:04o}")
            }
            Preparation::Scratch { path, entry: ScratchEntry::Link { target } } => {
                writeln!(text, "own {path} -> {target}")
            }
        };
        written.expect("a text takes all");
    }
    write!(text, "checks {:?}\ncleanup {:?}", plan.checks, plan.cleanup).expect("a text");
    text
}

#[test]
fn deny_curated_as_a_user() {
    insta::assert_snapshot!(shown(&plan(host(), &policy())));
}

#[test]
fn allow_full_as_root() {
    let policy =
        IsolationPolicy { network: NetworkMode::Allow, system: SystemView::Full, ..policy() };
    insta::assert_snapshot!(shown(&plan(HostView { uid: 0, gid: 0, ..host() }, &policy)));
}

#[test]
fn no_value_of_the_environment_is_in_the_line_and_the_command_is_its_end() {
    let plan = plan(host(), &policy());
    let tail: Vec<PlanWord> = command().argv.into_iter().map(PlanWord::text).collect();
    assert!(plan.argv.ends_with(&tail));
    let env = |word: &PlanWord| {
        let PlanWord::Text(text) = word else { return false };
        text.starts_with("--env") || text.starts_with("-e")
    };
    assert!(!plan.argv.iter().any(env));
}

#[test]
fn a_served_network_is_none_with_sockets_of_the_launcher() {
    let policy = IsolationPolicy {
        network: NetworkMode::Allowlist,
        reachable: vec!["a.example:443".parse().expect("a rule")],
        ..policy()
    };
    let plan = plan(host(), &policy);
    assert!(plan.argv.contains(&PlanWord::text("--network=none")));
    assert_eq!(plan.network.expect("served").listeners.len(), 1);
}

/// A mount whose path holds these letters.
fn with(letters: &str) -> IsolationPolicy {
    let mut policy = policy();
    let at = LexicalPath::absolute(&format!("/srv/{letters}")).expect("plain");
    let first = policy.mounts[0].clone();
    policy.mounts.push(Mount { source: at.clone(), destination: at, ..first });
    policy
}

#[test]
fn a_path_that_podman_would_split_is_written_in_the_other_notation_or_refused() {
    let words = |policy: &IsolationPolicy| -> Vec<String> {
        plan(host(), policy)
            .argv
            .iter()
            .filter_map(|word| match word {
                PlanWord::Text(text) => Some(text.to_string()),
                _ => None,
            })
            .collect()
    };
    let comma = words(&with("a,b"));
    assert!(comma.iter().any(|word| word.starts_with("--volume=/srv/a,b:/srv/a,b:rw,")));
    let colon = words(&with("a:b"));
    assert!(
        colon.iter().any(|word| word.starts_with("--mount=type=bind,src=/srv/a:b,dst=/srv/a:b,"))
    );
    for letters in ["a:b,c", "a:b\"c"] {
        let refused = backend(host()).plan(&with(letters), &podman_evidence(), &command());
        assert!(matches!(refused, Err(PlanError::Unsupported { .. })), "{letters}: {refused:?}");
    }
}

#[test]
fn what_it_cannot_do_is_refused() {
    let policy = IsolationPolicy { nested_sandbox: true, ..policy() };
    let refused = backend(host()).plan(&policy, &podman_evidence(), &command());
    assert!(matches!(refused, Err(PlanError::Unsupported { .. })), "{refused:?}");
    let mut missing = super::argv::policy();
    missing.ephemeral_dirs.clear();
    let refused = backend(host()).plan(&missing, &podman_evidence(), &command());
    assert!(matches!(refused, Err(PlanError::MissingSource { .. })), "{refused:?}");
}
