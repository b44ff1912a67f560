//! What a sandbox without namespaces must refuse beside the list of every sandbox: what a namespace
//! of its own would have kept away.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::{Call, EPERM, FilterError, SOCKET, both, number};

/// With the network of the host.
pub(super) const CONFINED: &str = "confined";
/// Without any network.
pub(super) const CONFINED_OFFLINE: &str = "confined-offline";

/// System V memory, semaphores and messages, and POSIX queues: reached by numbers and names that lie in
/// no directory.
const IPC: &[Call] = &[
    both("shmget", 29, 194),
    both("shmat", 30, 196),
    both("shmctl", 31, 195),
    both("semget", 64, 190),
    both("semop", 65, 193),
    both("semctl", 66, 191),
    both("semtimedop", 220, 192),
    both("msgget", 68, 186),
    both("msgsnd", 69, 189),
    both("msgrcv", 70, 188),
    both("msgctl", 71, 187),
    both("mq_open", 240, 180),
    both("mq_unlink", 241, 181),
];
const SOCKETPAIR: Call = both("socketpair", 53, 199);
const PRLIMIT: Call = both("prlimit64", 302, 261);

/// A Unix socket reaches whatever has a name in the file system: the console of the role itself, the
/// session bus, a container daemon. No rule of Landlock looks at that before its ninth version.
const AF_UNIX: u64 = 1;
const INET: &[u64] = &[2, 10];
/// Kinds of pairs whose ends can still send to any name, although each has its peer.
const ADDRESSABLE: &[u64] = &[2, 3];
const KIND: u64 = 0xf;

pub(super) fn program(arch: TargetArch, network: bool) -> Result<BpfProgram, FilterError> {
    let one = |argument, op, value| -> Result<SeccompRule, BackendError> {
        SeccompRule::new(vec![SeccompCondition::new(argument, Len::Dword, op, value)?])
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut add = |call: Call, with: Vec<SeccompRule>| {
        if let Some(number) = number(arch, call) {
            rules.insert(number, with);
        }
    };
    for call in IPC {
        add(*call, Vec::new());
    }
    let inet: &[u64] = if network { &[] } else { INET };
    let families = [AF_UNIX].iter().chain(inet).map(|family| one(0, Op::Eq, *family));
    add(SOCKET, families.collect::<Result<_, _>>()?);
    let kinds = ADDRESSABLE.iter().map(|kind| one(1, Op::MaskedEq(KIND), *kind));
    // A pair may take a name: to refuse `bind` would take the list of interfaces from programs, which
    // the C library asks for with a bound socket of netlink, and no filter can tell which one is meant.
    add(SOCKETPAIR, kinds.collect::<Result<_, _>>()?);
    // Limits of another process of the same user.
    add(PRLIMIT, vec![one(0, Op::Ne, 0)?]);
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM), arch)?;
    Ok(filter.try_into()?)
}
