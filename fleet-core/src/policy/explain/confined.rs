//! What is otherwise under Landlock: it refuses contents and hides nothing, and what may be written may
//! be written down to its last file.

use super::{Explanation, Verdict};
use crate::isolation::{Backend, IsolationPolicy, Mount, MountMode};
use crate::path::LexicalPath;

const SEEN: &str = "under `backend: landlock` its name, size and times can be seen, and its mode, owner \
                    and attributes changed where it belongs to the account";

/// What a sandbox by rules makes of mounts and in-memory directories, in words.
pub const NO_MOUNTS: &[(&str, &str, &str)] = &[
    ("rw", "HOME and TMPDIR", "directories of the role's own, on the disk, not capped, and kept"),
    ("-", "/tmp, /var/tmp, /run, /dev/shm", "closed"),
    (
        "-",
        "everything else",
        "contents refused; names, sizes and times can be seen, and mode, owner, times and attributes \
         changed where it belongs to the account",
    ),
];

/// How a mount of a policy really is under its backend, if that is not as it says: nothing is read-only
/// in a directory that may be written, where a sandbox works by rules.
pub fn not_held(policy: &IsolationPolicy, mount: &Mount) -> Option<&'static str> {
    let around = |other: &&Mount| {
        other.mode == MountMode::ReadWrite
            && other.destination != mount.destination
            && mount.destination.is_within(&other.destination)
    };
    (policy.backend == Backend::Landlock
        && mount.mode == MountMode::ReadOnly
        && policy.mounts.iter().any(|other| around(&other)))
    .then_some("not held: it lies in a directory that the role may write")
}

/// Corrects an answer about a path that was given for a sandbox with mounts of its own.
pub(super) fn seen_by_rules(
    policy: &IsolationPolicy,
    target: &LexicalPath,
    mut it: Explanation,
) -> Explanation {
    if policy.backend != Backend::Landlock {
        return it;
    }
    it.facts.retain(|fact| !fact.starts_with("it is a Unix socket") && !fact.contains("in memory"));
    let open = policy
        .mounts
        .iter()
        .any(|mount| mount.mode == MountMode::ReadWrite && target.is_within(&mount.destination));
    let first = target.components().next().unwrap_or_default();
    let (verdict, says) = match (it.verdict, first) {
        (Verdict::ReadOnly, _) if open => (
            Verdict::ReadWrite,
            "the role can write it: under `backend: landlock` nothing is read-only in a directory that \
             it may write",
        ),
        (Verdict::ReadOnly, "etc") if target.as_str() == "/etc/machine-id" => {
            (Verdict::Hidden, "the role cannot read it")
        }
        (Verdict::ReadOnly, "etc") => {
            (Verdict::ReadOnly, "the role can read the host's own and cannot write it")
        }
        (Verdict::Private, "proc") => (
            Verdict::ReadOnly,
            "the role reads the host's: it sees all processes and their command lines, and of the rest \
             only what is its own",
        ),
        (Verdict::Private, "dev") => (
            Verdict::Hidden,
            "of `/dev` the role can use `null`, `zero`, `full`, `random`, `urandom`, `tty` and its own \
             terminal",
        ),
        (Verdict::Private | Verdict::Hidden, _) => {
            (Verdict::Hidden, "the role can neither read nor write it")
        }
        _ => return it,
    };
    it.verdict = verdict;
    says.clone_into(&mut it.says);
    if verdict == Verdict::Hidden {
        it.facts.push(SEEN.to_owned());
    }
    it
}
