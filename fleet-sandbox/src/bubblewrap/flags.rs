//! Every flag that the argv may hold: how many operands it takes, and what would be lost without it.
//!
//! The observation parses command lines with it, and the shim tests drop one flag after another to
//! show that the loss is seen.

use fleet_core::isolation::Item;

/// What a flag is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Without it this row of the observation no longer holds.
    Row(Item),
    /// Without it bubblewrap refuses the rest of the line, or the command is not started.
    Refused,
    /// It protects nothing by itself: without it the command does not run, or runs elsewhere.
    Setup,
}

/// One flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// As written.
    pub name: &'static str,
    /// Number of operands.
    pub operands: usize,
    /// What it is good for.
    pub guard: Guard,
}

const fn flag(name: &'static str, operands: usize, guard: Guard) -> Flag {
    Flag { name, operands, guard }
}

/// The table.
pub const FLAGS: &[Flag] = &[
    flag("--die-with-parent", 0, Guard::Row(Item::Lifetime)),
    flag("--unshare-user", 0, Guard::Refused),
    flag("--unshare-ipc", 0, Guard::Row(Item::Ipc)),
    flag("--unshare-uts", 0, Guard::Refused),
    flag("--unshare-pid", 0, Guard::Row(Item::Processes)),
    flag("--unshare-cgroup-try", 0, Guard::Row(Item::Processes)),
    flag("--unshare-net", 0, Guard::Row(Item::Network)),
    flag("--cap-drop", 1, Guard::Row(Item::Capabilities)),
    flag("--disable-userns", 0, Guard::Row(Item::NestedNamespaces)),
    flag("--hostname", 1, Guard::Row(Item::Hostname)),
    flag("--json-status-fd", 1, Guard::Setup),
    flag("--block-fd", 1, Guard::Setup),
    flag("--ro-bind", 2, Guard::Row(Item::Filesystem)),
    flag("--ro-bind-try", 2, Guard::Setup),
    flag("--bind", 2, Guard::Row(Item::Filesystem)),
    flag("--ro-bind-fd", 2, Guard::Row(Item::Filesystem)),
    flag("--bind-fd", 2, Guard::Row(Item::Filesystem)),
    flag("--ro-bind-data", 2, Guard::Row(Item::Filesystem)),
    flag("--symlink", 2, Guard::Setup),
    // The program that asks what holds is executed by a path below it.
    flag("--proc", 1, Guard::Refused),
    flag("--dev", 1, Guard::Row(Item::Filesystem)),
    flag("--size", 1, Guard::Row(Item::Filesystem)),
    flag("--perms", 1, Guard::Row(Item::Filesystem)),
    flag("--tmpfs", 1, Guard::Refused),
    flag("--remount-ro", 1, Guard::Row(Item::Filesystem)),
    flag("--chdir", 1, Guard::Setup),
    flag("--add-seccomp-fd", 1, Guard::Row(Item::SystemCalls)),
];

/// The entry of a flag.
pub fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// Splits a line into flags with their operands, up to `--`. `None` for a flag that is not in the
/// table or has too few operands.
pub fn split<T: AsRef<str>>(words: &[T]) -> Option<Vec<(&'static Flag, &[T])>> {
    let mut parts = Vec::new();
    let mut rest = words;
    while let Some((first, tail)) = rest.split_first() {
        if first.as_ref() == "--" {
            return Some(parts);
        }
        let flag = find(first.as_ref())?;
        let operands = tail.get(..flag.operands)?;
        parts.push((flag, operands));
        rest = &tail[flag.operands..];
    }
    None
}
