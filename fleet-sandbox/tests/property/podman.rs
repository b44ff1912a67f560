//! P13 and P14 for podman: the command is passed on as it is, and no bind is added.

use fleet_core::isolation::{IsolationPolicy, Mount, MountMode, MountOrigin};
use fleet_core::launch::{LaunchCommand, LaunchPlan, PlanWord};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileIdentity, FileKind, IsolationBackend as _, PlanError};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases;
use crate::golden::argv::{host, policy};
use crate::golden::podman::backend;
use crate::support::podman_evidence;

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("--".to_owned()),
        Just(String::new()),
        Just("--privileged".to_owned()),
        Just("run".to_owned()),
        "[^\0]{0,12}",
    ]
}

/// Paths with what podman splits its words at, too.
fn mount() -> impl Strategy<Value = Mount> {
    ("/srv/[a-z:,\" =-]{1,8}(/[a-z:,]{1,3}){0,2}", any::<u64>(), any::<bool>()).prop_filter_map(
        "a plain path",
        |(path, ino, writable)| {
            let path = LexicalPath::absolute(&path).ok()?;
            Some(Mount {
                source: path.clone(),
                identity: Some(FileIdentity { dev: 7, ino }),
                kind: Some(FileKind::Directory),
                destination: path,
                mode: if writable { MountMode::ReadWrite } else { MountMode::ReadOnly },
                origin: MountOrigin::FsRead { index: 0 },
            })
        },
    )
}

fn plan(mounts: Vec<Mount>, argv: Vec<String>) -> Result<LaunchPlan, PlanError> {
    let policy = IsolationPolicy { mounts, ephemeral_dirs: Vec::new(), ..policy() };
    let command = LaunchCommand { argv, cwd: "/srv/work".into() };
    backend(host()).plan(&policy, &podman_evidence(), &command)
}

/// Source, destination and whether it is read-only, as podman reads the word: at colons, or at commas.
fn as_podman_reads(word: &str) -> Option<(String, String, bool)> {
    if let Some(value) = word.strip_prefix("--volume=") {
        let parts: Vec<&str> = value.split(':').collect();
        assert_eq!(parts.len(), 3, "{word}");
        let read_only = parts[2].split(',').any(|option| option == "ro");
        return Some((parts[0].to_owned(), parts[1].to_owned(), read_only));
    }
    let value = word.strip_prefix("--mount=")?;
    let option = |name: &str| {
        let found: Vec<&str> =
            value.split(',').filter_map(|option| option.strip_prefix(name)).collect();
        assert_eq!(found.len(), 1, "{word}");
        found[0].to_owned()
    };
    Some((option("src="), option("dst="), option("ro=") == "true"))
}

proptest! {
    #![proptest_config(cases::config(cases::in_memory()))]

    #[test]
    fn p13_podman_passes_the_command_on(argv in vec(word(), 1..8)) {
        let plan = plan(policy().mounts[..2].to_vec(), argv.clone()).expect("a plan");
        let tail: Vec<PlanWord> = argv.into_iter().map(PlanWord::text).collect();
        prop_assert!(plan.argv.ends_with(&tail));
        // Before it the first program inside, and before that what ends podman's flags.
        let flags = &plan.argv[..plan.argv.len() - tail.len()];
        prop_assert_eq!(&flags[flags.len() - 8], &PlanWord::text("--rootfs"));
    }

    #[test]
    fn p14_every_bind_of_podman_is_of_the_policy(mut mounts in vec(mount(), 0..8)) {
        mounts.sort_by_key(|mount| (mount.destination.depth(), mount.destination.clone()));
        mounts.dedup_by(|one, other| one.destination == other.destination);
        let odd = |mount: &Mount| {
            let at = mount.source.as_str();
            at.contains(':') && (at.contains(',') || at.contains('"'))
        };
        let plan = match plan(mounts.clone(), vec!["x".to_owned()]) {
            Ok(plan) => plan,
            Err(error) => {
                prop_assert!(mounts.iter().any(odd), "{error}");
                return Ok(());
            }
        };
        prop_assert!(!mounts.iter().any(odd));
        let mut left = mounts;
        for word in &plan.argv {
            let PlanWord::Text(word) = word else { continue };
            let Some((source, destination, read_only)) = as_podman_reads(word) else { continue };
            let system = source == "/usr" || source == "/lib64" || destination.starts_with("/etc/");
            if system && read_only {
                continue;
            }
            let of_the_policy = left.iter().position(|mount| {
                mount.source.as_str() == source
                    && mount.destination.as_str() == destination
                    && (mount.mode == MountMode::ReadOnly) == read_only
            });
            match of_the_policy {
                Some(at) => drop(left.remove(at)),
                None => prop_assert!(false, "{word} is not of the policy"),
            }
        }
        prop_assert!(left.is_empty(), "{left:?} is lost");
    }
}
