//! Where mounts may appear (01 §2.3), and what every sandbox has of its own.

use fleet_core::isolation::{IsolationPolicy, NetworkMode, SystemView};

use super::*;

const READ: &str = "isolation.fs.read[0]";
const WRITE: &str = "isolation.fs.write[0]";

#[test]
fn memory_has_these_caps_and_modes_and_no_others() {
    let policy = accepted(|_| ());
    let mib = 1 << 20;
    let expected = [
        ("/tmp", 512 * mib, 0o1777),
        ("/run", 16 * mib, 0o755),
        ("/var/tmp", 256 * mib, 0o1777),
        ("/dev/shm", 64 * mib, 0o1777),
        ("/home/u", 256 * mib, 0o700),
        ("/home/u/.cache", 256 * mib, 0o700),
    ];
    let found: Vec<(&str, u64, u32)> =
        policy.tmpfs.iter().map(|it| (it.destination.as_str(), it.size, it.mode)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_role_without_isolation_is_said_to_be_open() {
    let policy = IsolationPolicy::none(&path("/w"), &path(HOME));
    assert_eq!(policy.backend, Backend::None);
    assert_eq!(policy.network, NetworkMode::Allow);
    assert_eq!(policy.system, SystemView::Full);
    assert!(policy.nested_sandbox && policy.mounts.is_empty());
    assert_eq!((policy.cwd, policy.home), (path("/w"), path(HOME)));
}

/// Of two mounts around a path the inner one shows it, and an uncovered path is shown by none.
#[test]
fn the_covering_mount_is_the_deepest() {
    let policy = accepted(|s| {
        s.tree.dir("/data/a/b");
        s.read("/data").write("/data/a");
    });
    let at = |place| policy.covering(&path(place)).map(|mount| mount.destination.to_string());
    assert_eq!(at("/data/x").as_deref(), Some("/data"));
    assert_eq!(at("/data/a/b").as_deref(), Some("/data/a"));
    assert_eq!(at("/opt"), None);
}

#[test]
fn below_usr_a_working_directory_is_the_only_writable_thing() {
    let mine = |s: &mut Scene| no(s.tree.dir("/usr/src/mine").dir("/lib64/mine"));
    accepted(|s| {
        mine(s);
        s.cwd("/usr/src/mine");
    });
    refused(
        |s| {
            mine(s);
            s.write("/usr/src/mine");
        },
        WRITE,
        &["destination `/usr/src/mine` is inside the protected path `/usr`"],
    );
    // Only below `/usr`: programs and libraries elsewhere are not a place for a project.
    refused(
        |s| {
            mine(s);
            s.cwd("/lib64/mine");
        },
        "cwd",
        &["is inside the protected path `/lib64`"],
    );
    // Root owns everything there, so owning it says nothing.
    let problems = scene(|s| {
        s.uid = 0;
        s.tree.set_uid(0).dir("/usr/src/mine");
        s.cwd("/usr/src/mine");
    })
    .resolve()
    .expect_err("root");
    assert!(problems.iter().any(|it| it.path == "cwd" && it.message.contains("`/usr`")));
}

#[test]
fn a_protected_path_is_protected_from_read_only_mounts_too() {
    let shared = |s: &mut Scene| {
        s.operator_home().tree.remove("/home/u/.claude/plugins");
        s.tree.dir("/data/dots/plugins/in").link("/home/u/.claude/plugins", "/data/dots/plugins");
        s.share();
    };
    accepted(shared);
    for (wanted, relation) in [
        ("/data/dots/plugins/in", "is inside"),
        ("/data/dots/plugins", "is"),
        ("/data/dots", "would cover"),
    ] {
        refused(
            |s| {
                shared(s);
                s.read(wanted);
            },
            READ,
            &[&format!(
                "destination `{wanted}` {relation} the protected path `/data/dots/plugins`"
            )],
        );
    }
}

#[test]
fn a_refused_destination_is_told_as_written_and_as_it_is() {
    let problem = refusal(|s| {
        s.tree.link("/home/u/work/u", "/usr");
        s.read("/home/u/work/u");
    });
    assert_eq!(
        problem.message,
        "destination `/usr` (written `/home/u/work/u`) is the protected path `/usr`"
    );
    let problem = refusal(|s| no(s.read("/usr")));
    assert_eq!(problem.message, "destination `/usr` is the protected path `/usr`");
}

#[test]
fn only_equal_mounts_are_kept_once() {
    let (a, b) = ("/home/u/notes.txt", "/home/u/other.txt");
    let two = |s: &mut Scene, first: &str, second: &str| {
        s.tree.file(a, "a").file(b, "b");
        s.secret(first, "/run/secrets/x").secret(second, "/run/secrets/x");
    };
    let policy = accepted(|s| two(s, a, a));
    let secrets = |policy: &IsolationPolicy| {
        policy.mounts.iter().filter(|it| matches!(it.origin, MountOrigin::Secret { .. })).count()
    };
    assert_eq!(secrets(&policy), 1);
    refused(|s| two(s, a, b), "isolation.secrets[1]", &["`/run/secrets/x` is mounted twice"]);
}
