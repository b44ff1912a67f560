//! Words that people, scripts and other crates rely on.

use fleet_core::isolation::forbidden::{Cause, Conflict, Exposure, Side, Tier};
use fleet_core::isolation::{EnforcementLevel, Item};
use fleet_core::permissions::Capability;
use fleet_core::port::FileKind;

use super::*;

/// Every origin: the key that asks for it, its name in a sentence, whether the role asks for it.
#[test]
fn every_origin_has_a_key_and_a_name() {
    let text = |text: &str| text.to_owned();
    let table = [
        (MountOrigin::State, "isolation", "the role's own directory", false),
        (MountOrigin::Cwd, "cwd", "`cwd`", true),
        (MountOrigin::HarnessHome, "isolation", "the home of the harness", false),
        (MountOrigin::Handout, "isolation", "the handout of the role", false),
        (
            MountOrigin::SharedItem { name: text("plugins") },
            "isolation",
            "the shared item `plugins`",
            false,
        ),
        (
            MountOrigin::Repository { part: text("refs") },
            "cwd",
            "the refs of the repository of `cwd`",
            true,
        ),
        (
            MountOrigin::AddDir { index: 4 },
            "harness_options.add_dirs[4]",
            "`harness_options.add_dirs[4]`",
            true,
        ),
        (MountOrigin::LaunchClosure, "isolation", "the program of the harness", false),
        (
            MountOrigin::FsWrite { index: 1 },
            "isolation.fs.write[1]",
            "`isolation.fs.write[1]`",
            true,
        ),
        (MountOrigin::FsRead { index: 2 }, "isolation.fs.read[2]", "`isolation.fs.read[2]`", true),
        (MountOrigin::Secret { index: 3 }, "isolation.secrets[3]", "`isolation.secrets[3]`", true),
        (
            MountOrigin::Overlay { path: text(".git/config") },
            "isolation.protect",
            "the protected path `.git/config`",
            false,
        ),
        (MountOrigin::SelfBind, "isolation.protect", "a directory above a protected path", false),
    ];
    for (origin, key, name, by_user) in table {
        assert_eq!(origin.key(), key);
        assert_eq!(origin.to_string(), name);
        assert_eq!(origin.is_by_user(), by_user, "{origin}");
    }
}

#[test]
fn rows_of_the_report_have_stable_names() {
    let items = [
        (Item::Filesystem, "filesystem"),
        (Item::Network, "network"),
        (Item::Processes, "processes"),
        (Item::Ipc, "ipc"),
        (Item::Hostname, "hostname"),
        (Item::Capabilities, "capabilities"),
        (Item::NoNewPrivileges, "no-new-privileges"),
        (Item::SystemCalls, "system-calls"),
        (Item::NestedNamespaces, "nested-namespaces"),
        (Item::Environment, "environment"),
        (Item::Lifetime, "lifetime"),
        (Item::Memory, "memory"),
        (Item::Pids, "pids"),
        (Item::Cpu, "cpu"),
    ];
    for (item, name) in items {
        assert_eq!(item.as_str(), name);
        assert_eq!(serde_json::to_value(item).expect("a word"), name);
    }
    let levels = [
        (EnforcementLevel::Enforced, "enforced"),
        (EnforcementLevel::Degraded, "degraded"),
        (EnforcementLevel::Missing, "missing"),
    ];
    for (level, name) in levels {
        assert_eq!(level.as_str(), name);
        assert_eq!(serde_json::to_value(level).expect("a word"), name);
    }
    for capability in Capability::ALL {
        assert_eq!(serde_json::to_value(capability).expect("a word"), capability.as_str());
    }
    let letters = [Tier::NoExposure, Tier::NoWrite, Tier::System].map(Tier::letter);
    assert_eq!(letters, ['A', 'B', 'C']);
}

fn conflict(cause: Cause) -> Conflict {
    Conflict {
        side: Side::Source,
        written: "/w".to_owned(),
        resolved: path("/w"),
        via: None,
        cause,
    }
}

/// The whole sentence and the advice, for each way in which a mount is refused.
#[test]
fn a_refusal_says_what_is_wrong_and_what_to_do() {
    let forbidden = |exposure, tier, what| {
        conflict(Cause::Forbidden { exposure, path: path("/f"), tier, what })
    };
    let table = [
        (
            conflict(Cause::Root),
            "source `/w` is the root directory, which would expose everything",
            "list the directories that are needed",
        ),
        (
            forbidden(Exposure::Is, Tier::NoExposure, "keys"),
            "source `/w` is the forbidden path `/f` (keys)",
            "leave it out",
        ),
        (
            forbidden(Exposure::Inside, Tier::System, "system"),
            "source `/w` is inside the forbidden path `/f` (system)",
            "leave it out",
        ),
        (
            forbidden(Exposure::Contains, Tier::NoExposure, "keys"),
            "source `/w` would expose the forbidden path `/f` (keys)",
            "mount only the subdirectories that are needed",
        ),
        (
            forbidden(Exposure::Contains, Tier::NoWrite, "login"),
            "source `/w` would expose `/f`, which no role may write (login)",
            "mount it read-only, or a directory that does not touch it",
        ),
        (
            forbidden(Exposure::Contains, Tier::NoExposure, "fleet configuration"),
            "source `/w` would expose the forbidden path `/f` (fleet configuration)",
            "keep the fleet files outside of what a role can reach: move them, or mount a \
             directory that does not hold them",
        ),
        (
            conflict(Cause::Kind { kind: FileKind::Socket }),
            "source `/w` is a socket",
            "only regular files and directories can be mounted",
        ),
        (
            conflict(Cause::Unreadable { error: PathProbeError::Denied { path: "/w".to_owned() } }),
            "source `/w` cannot be judged: no permission to look at /w",
            "make it readable for the fleet user, or leave it out",
        ),
        (
            conflict(Cause::ListIncomplete { input: "x\n".to_owned() }),
            "source `/w` cannot be judged: `x\\n` must be forbidden but is no plain absolute path",
            "correct the environment that fleet is started with",
        ),
    ];
    for (conflict, sentence, hint) in table {
        let problem = conflict.diagnostic("isolation.fs.read[0]");
        assert_eq!((problem.message.as_str(), problem.hint.as_deref()), (sentence, Some(hint)));
        assert_eq!(
            (problem.code, problem.path.as_str()),
            (Code::ForbiddenMount, "isolation.fs.read[0]")
        );
    }
    let mut moved = conflict(Cause::Root);
    moved.side = Side::Destination;
    moved.resolved = path("/r");
    moved.via = Some(path("/r/in"));
    assert_eq!(
        moved.to_string(),
        "destination `/w` (resolves to `/r`), through the mount point `/r/in` inside, is the root \
         directory, which would expose everything"
    );
}
