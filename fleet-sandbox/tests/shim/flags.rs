//! A `bwrap` that drops one flag: the loss must show in exactly the row that the flag is there for.

use std::os::unix::fs::PermissionsExt as _;

use fleet_core::isolation::{EnforcementLevel, Item};
use fleet_sandbox::bubblewrap::flags::{self, Guard};

use crate::support::{Host, Launch, Outcome, need_bwrap};

/// Drops the first occurrence of a flag whose last operand is `target` (any, if empty).
fn shim(launch: &mut Launch, flag: &str, target: &str) {
    let operands = flags::find(flag).expect("in the table").operands;
    let real = Host::bwrap().expect("installed");
    let script = format!(
        r#"#!/bin/sh
left=$#
hit=
while [ "$left" -gt 0 ]; do
  word=$1; shift; left=$((left - 1))
  if [ -z "$hit" ] && [ "$word" = '{flag}' ]; then
    eval "last=\${{{operands}}}"
    if [ -z '{target}' ] || [ "$last" = '{target}' ]; then
      shift {operands}; left=$((left - {operands})); hit=1
      continue
    fi
  fi
  [ "$word" = -- ] && hit=1
  set -- "$@" "$word"
done
# Some shells export variables of their own.
exec /usr/bin/env -u PWD -u OLDPWD -u SHLVL -u _ {real} "$@"
"#
    );
    let path = launch.base.join("bwrap");
    std::fs::write(&path, script).expect("write");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    launch.bwrap = path;
}

fn run(flag: &str, target: &str) -> Outcome {
    let mut launch = Launch::new();
    shim(&mut launch, flag, target);
    // The path of the real one is not in the policy: the command needs none.
    launch.run(&launch.policy(), &["/bin/sh", "-c", "sleep 0.3"])
}

/// Flag, which of its occurrences, and whether that takes root to show.
const DROPPED: &[(&str, &str)] = &[
    ("--die-with-parent", ""),
    ("--unshare-ipc", ""),
    ("--unshare-pid", ""),
    ("--unshare-cgroup-try", ""),
    ("--unshare-net", ""),
    ("--cap-drop", ""),
    ("--disable-userns", ""),
    ("--hostname", ""),
    ("--ro-bind", "/proc/sys"),
    ("--ro-bind", "/proc/cmdline"),
    ("--dev", ""),
    ("--bind-fd", ""),
    ("--size", ""),
    ("--perms", "1777"),
    ("--remount-ro", ""),
    ("--add-seccomp-fd", ""),
];

#[test]
fn each_dropped_flag_flips_its_row_and_no_other() {
    need_bwrap!();
    for (flag, target) in DROPPED {
        let Guard::Row(item) = flags::find(flag).expect("in the table").guard else {
            panic!("{flag} guards no row");
        };
        let outcome = run(flag, target);
        let flipped: Vec<(Item, String)> = outcome
            .rows()
            .into_iter()
            .filter(|(_, level, _)| *level != EnforcementLevel::Enforced)
            .map(|(item, _, evidence)| (item, evidence))
            .collect();
        // Without it an ordinary user's sandbox drops them all the same.
        let expected = if *flag == "--cap-drop" && !Host::is_root() { vec![] } else { vec![item] };
        let items: Vec<Item> = flipped.iter().map(|(item, _)| *item).collect();
        assert_eq!(items, expected, "{flag} {target}: {flipped:?} {}", outcome.stderr);
    }
}

/// Of those that the sandbox itself can miss.
const MISSED_INSIDE: &[(&str, &str, &str)] = &[
    ("--die-with-parent", "", "lifetime: not true that the end of the parent kills"),
    ("--unshare-ipc", "", "ipc: not true that the ipc namespace is its own"),
    ("--unshare-pid", "", "processes: not true that the pid namespace is its own"),
    ("--unshare-net", "", "network: not true that a port of the host is unreachable: it answers"),
    ("--hostname", "", "hostname: not true that the host name is sandbox"),
    ("--ro-bind", "/proc/cmdline", "filesystem: not true that /proc/cmdline is empty"),
    ("--bind-fd", "", "filesystem: not true that"),
    ("--size", "", "filesystem: not true that /tmp holds at most"),
    ("--remount-ro", "", "filesystem: not true that / is read-only: it can be opened for writing"),
    ("--add-seccomp-fd", "", "system-calls: not true that clone3 is refused"),
];

#[test]
fn under_strict_a_dropped_flag_is_missed_inside_and_the_command_never_starts() {
    need_bwrap!();
    for (flag, target, complaint) in MISSED_INSIDE {
        let mut launch = Launch::new();
        shim(&mut launch, flag, target);
        let argv = ["/bin/sh", "-c", "touch ran"];
        let mut plan = launch.plan(&launch.policy(), &argv);
        plan.attestation_mut().expect("asked").strict = true;
        let outcome = launch.run_plan(plan, &argv);
        assert!(!outcome.record().started && !launch.cwd.join("ran").exists(), "{flag}");
        assert_eq!(outcome.code, Some(125), "{flag}");
        let error = outcome.record().error.clone().expect("a reason");
        assert!(error.contains(complaint), "{flag}: {error}");
    }
}

#[test]
fn flags_that_the_rest_needs_cannot_be_dropped() {
    need_bwrap!();
    for (flag, target) in
        [("--unshare-user", ""), ("--unshare-uts", ""), ("--tmpfs", ""), ("--proc", "")]
    {
        assert_eq!(flags::find(flag).expect("in the table").guard, Guard::Refused, "{flag}");
        let outcome = run(flag, target);
        assert!(!outcome.record().started, "{flag}: {outcome:?}");
        for (item, level, _) in outcome.rows() {
            assert_ne!(level, EnforcementLevel::Enforced, "{flag} {item:?}");
        }
    }
}

#[test]
fn every_guarding_flag_of_the_table_is_tried() {
    for flag in flags::FLAGS {
        let tried = DROPPED.iter().any(|(name, _)| *name == flag.name);
        // The same mount by path, read-only by descriptor, or made of data: judged by the same code.
        let alike = ["--bind", "--ro-bind-fd", "--ro-bind-data"].contains(&flag.name);
        match flag.guard {
            Guard::Row(_) => assert!(tried || alike, "{}", flag.name),
            Guard::Refused | Guard::Setup => assert!(!tried, "{}", flag.name),
        }
    }
}

#[test]
fn without_the_status_pipe_nothing_is_believed() {
    need_bwrap!();
    let outcome = run("--json-status-fd", "");
    assert!(!outcome.record().started);
    for (item, level, _) in outcome.rows() {
        assert_ne!(level, EnforcementLevel::Enforced, "{item:?}");
    }
}
