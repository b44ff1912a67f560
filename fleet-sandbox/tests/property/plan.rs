//! P13 to P15: a plan passes the command on as it is, and adds no mount.

use fleet_core::isolation::{IsolationPolicy, Mount, MountMode, MountOrigin};
use fleet_core::launch::{DescriptorRequest, LaunchCommand, LaunchPlan, PlanWord};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileIdentity, FileKind, IsolationBackend as _};
use fleet_sandbox::NoIsolation;
use fleet_sandbox::bubblewrap::flags;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases;
use crate::golden::argv::{backend, policy};
use crate::support::evidence;

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("--".to_owned()),
        Just(String::new()),
        Just("--ro-bind".to_owned()),
        Just("--setenv".to_owned()),
        "[^\0]{0,12}",
    ]
}

fn mount() -> impl Strategy<Value = Mount> {
    let path = prop_oneof!["/srv/[a-z -]{1,8}(/[a-z]{1,3}){0,2}", "/srv/a(/[ab]){0,3}"];
    (path, any::<u64>(), any::<bool>()).prop_filter_map("a plain path", |(path, ino, writable)| {
        let path = LexicalPath::absolute(&path).ok()?;
        Some(Mount {
            source: path.clone(),
            identity: Some(FileIdentity { dev: 7, ino }),
            kind: Some(FileKind::Directory),
            destination: path,
            mode: if writable { MountMode::ReadWrite } else { MountMode::ReadOnly },
            origin: MountOrigin::FsRead { index: 0 },
        })
    })
}

fn plan(
    mounts: Vec<Mount>,
    argv: Vec<String>,
    by_descriptor: bool,
) -> (IsolationPolicy, LaunchPlan) {
    let policy = IsolationPolicy { mounts, ephemeral_dirs: Vec::new(), ..policy() };
    let command = LaunchCommand { argv, cwd: "/srv/work".into() };
    let plan = backend().plan(&policy, &evidence("/usr/bin/bwrap".into(), by_descriptor), &command);
    (policy, plan.expect("a plan"))
}

/// Binds of the fixed system view, for the host of the golden tests.
fn is_system_view(source: &str, destination: &str, flag: &str) -> bool {
    match (flag, source) {
        ("--ro-bind", "/dev/null") => destination.starts_with("/proc/"),
        ("--ro-bind", "/usr" | "/lib64" | "/proc/sys") => source == destination,
        ("--ro-bind-try", _) => source == destination && source.starts_with("/etc/"),
        _ => false,
    }
}

proptest! {
    #![proptest_config(cases::config(cases::in_memory()))]

    #[test]
    fn p13_the_tail_is_the_command(argv in vec(word(), 1..8), by_descriptor: bool) {
        let (_, plan) = plan(policy().mounts[..3].to_vec(), argv.clone(), by_descriptor);
        // The first separator ends the flags, whatever the command holds.
        let at = plan.argv.iter().position(|word| *word == PlanWord::text("--")).expect("there");
        let tail: Vec<PlanWord> = argv.into_iter().map(PlanWord::text).collect();
        // In between only the program that asks what holds, with its two descriptors.
        let (asks, command) = plan.argv[at + 1..].split_at(4);
        prop_assert!(matches!(asks[0], PlanWord::DescriptorPath(_)));
        prop_assert_eq!(&asks[1], &PlanWord::text("_attest"));
        prop_assert_eq!(command, &tail[..]);
    }

    #[test]
    fn p14_every_bind_is_of_the_policy(mut mounts in vec(mount(), 0..8), by_descriptor: bool) {
        mounts.sort_by_key(|mount| (mount.destination.depth(), mount.destination.clone()));
        mounts.dedup_by(|one, other| one.destination == other.destination);
        let (policy, plan) = plan(mounts, vec!["x".to_owned()], by_descriptor);
        let words: Vec<String> = plan.argv[1..].iter().map(|word| match word {
            PlanWord::Text(text) => text.to_string(),
            PlanWord::Descriptor(index) | PlanWord::DescriptorPath(index) => format!("#{index}"),
            PlanWord::Scratch { .. } | PlanWord::Tty => panic!("not for bubblewrap"),
        }).collect();
        let mut left = policy.mounts.clone();
        for (flag, operands) in flags::split(&words).expect("known flags") {
            if !flag.name.contains("bind") {
                continue;
            }
            let (source, destination) = (&operands[0], &operands[1]);
            let request = source.strip_prefix('#').map(|index| {
                &plan.descriptors[index.parse::<usize>().expect("index")]
            });
            let source = match request {
                Some(DescriptorRequest::Data { label, .. }) => {
                    prop_assert_eq!(label, destination);
                    prop_assert!(destination.starts_with("/etc/"));
                    continue;
                }
                Some(DescriptorRequest::Source { path, .. }) => path.as_str(),
                Some(other) => panic!("{other:?}"),
                None => source.as_str(),
            };
            if is_system_view(source, destination, flag.name) {
                continue;
            }
            let writable = !flag.name.starts_with("--ro-");
            let of_the_policy = left.iter().position(|mount| {
                mount.source.as_str() == source
                    && mount.destination.as_str() == destination
                    && (mount.mode == MountMode::ReadWrite) == writable
            });
            prop_assert!(of_the_policy.is_some(), "{} {} {}", flag.name, source, destination);
            left.remove(of_the_policy.expect("just seen"));
        }
        // What has no bind of its own is shown by the one around it, and is looked at all the same.
        for mount in &left {
            let around = policy.mounts.iter().filter(|it| *it != mount && mount.destination.is_within(&it.destination));
            let nearest = around.max_by_key(|it| it.destination.depth());
            prop_assert_eq!(nearest.map(|it| it.mode), Some(mount.mode), "not shown: {:?}", mount);
            prop_assert!(plan.checks.iter().any(|it| it.path == *mount.source.as_path()));
        }
    }

    #[test]
    fn p15_none_leaves_the_command_alone(argv in vec(word(), 0..8)) {
        let command = LaunchCommand { argv: argv.clone(), cwd: "/".into() };
        let plan = NoIsolation.plan(&policy(), &evidence("".into(), false), &command).expect("a plan");
        let expected: Vec<PlanWord> = argv.into_iter().map(PlanWord::text).collect();
        prop_assert_eq!(plan.argv, expected);
        prop_assert!(plan.descriptors.is_empty());
    }
}
