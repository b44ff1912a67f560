//! The role's own directories and its working directory.

use fleet_core::port::FileKind;

use super::*;

const STATE: &str = "/home/u/.ours-fleet/agents/A";

#[test]
fn the_widest_mode_of_an_own_directory_is_0750() {
    for mode in [0o700, 0o750, 0o710, 0o1700] {
        accepted(|s| no(s.tree.dir_mode(STATE, mode)));
    }
    for mode in [0o770, 0o701, 0o720, 0o755, 0o1777] {
        let problem = refusal(|s| no(s.tree.dir_mode(STATE, mode)));
        let shown = format!("has mode {:04o}, wider than 0750", mode & 0o777);
        assert!(problem.message.contains(&shown), "{problem}");
        assert_eq!(problem.code, Code::FileTrust);
    }
}

#[test]
fn an_own_directory_is_a_directory() {
    refused(
        |s| no(s.tree.remove(STATE).file(STATE, "x")),
        "isolation",
        &["`/home/u/.ours-fleet/agents/A` is not a directory"],
    );
    // Not made yet: the launch makes it.
    let policy = accepted(|s| no(s.tree.remove(STATE)));
    assert_eq!(policy.missing_sources().count(), 1);
}

#[test]
fn the_state_as_working_directory_is_mounted_once_and_writable() {
    for mode in [MountMode::ReadWrite, MountMode::ReadOnly] {
        let policy = accepted(|s| s.cwd(STATE).cwd_mode = mode);
        assert_eq!(policy.cwd, path(STATE));
        assert!(policy.mounts.iter().all(|mount| mount.origin != MountOrigin::Cwd));
        let state = policy.covering(&path(STATE)).expect("mounted");
        assert_eq!((state.mode, &state.origin), (MountMode::ReadWrite, &MountOrigin::State));
    }
    let policy = accepted(|_| ());
    assert_eq!(policy.cwd, path(STATE));
}

#[test]
fn the_working_directory_is_a_directory() {
    refused(|s| no(s.cwd("/home/u/notes.txt")), "cwd", &["not a directory"]);
    refused(
        |s| {
            s.tree.special("/home/u/work/s", FileKind::Fifo);
            s.cwd("/home/u/work/s");
        },
        "cwd",
        &["not a directory"],
    );
}

/// Fleet puts its own trees where the operator keeps them; no rule about what a *role* may ask for
/// stands in the way.
#[test]
fn a_fleet_home_below_a_system_directory_works() {
    accepted(|s| {
        s.homes.fleet = "/var/spool/f".into();
        for tree in s.trees().all() {
            s.tree.dir_mode(tree.as_str(), 0o700);
        }
        let home = s.trees().harness.join("command");
        s.tree.dir_mode(home.as_str(), 0o700);
    });
}

#[test]
fn a_shared_item_that_was_moved_meanwhile_is_left_out() {
    let shared = |s: &mut Scene| no(s.operator_home().share());
    let count = |policy: fleet_core::isolation::IsolationPolicy| {
        policy
            .mounts
            .iter()
            .filter(|it| matches!(it.origin, MountOrigin::SharedItem { .. }))
            .count()
    };
    let all = count(accepted(shared));
    let moved = accepted(|s| {
        shared(s);
        s.tree.remove("/home/u/.claude/plugins").link("/home/u/.claude/plugins", "/home/u/lib");
    });
    assert!(moved.covering(&path("/home/u/lib")).is_none());
    assert_eq!(count(moved), all - 1);
}

#[test]
fn a_shared_item_is_judged_again() {
    refused(
        |s| {
            s.operator_home().share();
            s.forbid_paths.push(path("/home/u/.claude/plugins"));
        },
        "isolation",
        &["is the forbidden path `/home/u/.claude/plugins`"],
    );
}
