//! The system call filters of a sandbox, as bytes (04 §4.3).
//!
//! Two programs, because a program has one answer for what it catches: `deny*` answers `EPERM`,
//! `clone3` and `openat2` answer `ENOSYS`, so that programs fall back to `clone` and `openat`, whose
//! flags and mode can be looked at. They catch different calls, so their order does not matter. A foreign
//! architecture kills the process. `confined` is a third one, for sandboxes without namespaces.
//! Must not know how a filter is installed. Tests: `golden/seccomp.rs`, `escape/system_calls.rs`.

mod confined;

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// Denies everything of the list.
pub const DENY: &str = "deny";
/// As [`DENY`], without what a sandbox inside the sandbox needs: namespaces and mounts.
pub const DENY_NESTED: &str = "deny-nested";
/// Makes `clone3` and `openat2` look as if the kernel did not have them: what they ask for lies in
/// memory, where no filter can look.
pub const NO_CLONE3: &str = "clone3";
/// As [`NO_CLONE3`], but `clone3` stays: a sandbox inside the sandbox may make namespaces anyway.
pub const NO_OPENAT2: &str = "openat2";

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// No such filter.
    #[error("there is no seccomp filter named `{name}`")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The tables know x86-64 and aarch64 only.
    #[error("there is no seccomp filter for this processor architecture")]
    Architecture,
    /// The filter did not compile.
    #[error("failed to compile the seccomp filter")]
    Compile(#[from] seccompiler::BackendError),
    /// The kernel did not take it.
    #[error("the kernel did not take the seccomp filter")]
    Install(#[from] seccompiler::Error),
}

pub(crate) const EPERM: u32 = 1;
pub(crate) const ENOSYS: u32 = 38;

/// A call and its number on x86-64 and on aarch64.
pub(crate) type Call = (&'static str, Option<i64>, Option<i64>);

const fn both(name: &'static str, x86_64: i64, aarch64: i64) -> Call {
    (name, Some(x86_64), Some(aarch64))
}

const fn same(name: &'static str, number: i64) -> Call {
    (name, Some(number), Some(number))
}

const fn x86_only(name: &'static str, number: i64) -> Call {
    (name, Some(number), None)
}

/// Denied whatever the arguments.
pub(crate) const DENIED: &[Call] = &[
    // It opens sockets and files without the calls that are filtered here.
    same("io_uring_setup", 425),
    same("io_uring_enter", 426),
    same("io_uring_register", 427),
    both("bpf", 321, 280),
    both("perf_event_open", 298, 241),
    both("userfaultfd", 323, 282),
    // Kernel key rings are not part of any namespace.
    both("add_key", 248, 217),
    both("request_key", 249, 218),
    both("keyctl", 250, 219),
    both("name_to_handle_at", 303, 264),
    both("open_by_handle_at", 304, 265),
    both("kexec_load", 246, 104),
    both("kexec_file_load", 320, 294),
    both("init_module", 175, 105),
    both("finit_module", 313, 273),
    both("delete_module", 176, 106),
    both("swapon", 167, 224),
    both("swapoff", 168, 225),
    both("reboot", 169, 142),
    both("acct", 163, 89),
    both("quotactl", 179, 60),
    same("quotactl_fd", 443),
    both("syslog", 103, 116),
    x86_only("iopl", 172),
    x86_only("ioperm", 173),
    both("settimeofday", 164, 170),
    both("clock_settime", 227, 112),
    both("adjtimex", 159, 171),
    both("clock_adjtime", 305, 266),
    both("process_vm_writev", 311, 271),
    both("personality", 135, 92),
    both("kcmp", 312, 272),
    both("migrate_pages", 256, 238),
    both("move_pages", 279, 239),
];

/// Denied unless a sandbox inside the sandbox is allowed.
pub(crate) const DENIED_UNLESS_NESTED: &[Call] = &[
    both("mount", 165, 40),
    both("umount2", 166, 39),
    both("pivot_root", 155, 41),
    both("chroot", 161, 51),
    both("setns", 308, 268),
    both("unshare", 272, 97),
    same("open_tree", 428),
    same("move_mount", 429),
    same("fsopen", 430),
    same("fsconfig", 431),
    same("fsmount", 432),
    same("fspick", 433),
    same("mount_setattr", 442),
    same("open_tree_attr", 467),
];

pub(crate) const IOCTL: Call = both("ioctl", 16, 29);
pub(crate) const SOCKET: Call = both("socket", 41, 198);
pub(crate) const CLONE: Call = both("clone", 56, 220);
pub(crate) const CLONE3: Call = same("clone3", 435);
pub(crate) const MKNOD: Call = x86_only("mknod", 133);
pub(crate) const MKNODAT: Call = both("mknodat", 259, 33);
pub(crate) const OPEN: Call = x86_only("open", 2);
pub(crate) const OPENAT: Call = both("openat", 257, 56);
pub(crate) const OPENAT2: Call = same("openat2", 437);
/// Calls that set the mode of a file, with the argument that holds it.
pub(crate) const SETS_MODE: &[(Call, u8)] = &[
    (x86_only("chmod", 90), 1),
    (both("fchmod", 91, 52), 1),
    (both("fchmodat", 268, 53), 2),
    (same("fchmodat2", 452), 2),
    (x86_only("creat", 85), 1),
];

/// `TIOCSTI` types into the terminal, `TIOCLINUX` pastes into a console, `TIOCSETD` loads line
/// disciplines.
pub(crate) const TERMINAL_REQUESTS: &[u64] = &[0x5412, 0x541c, 0x5423];
/// `CLONE_NEW*` that `clone` knows: mount, cgroup, UTS, IPC, user, pid, network.
pub(crate) const NAMESPACE_FLAGS: &[u64] =
    &[0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];
pub(crate) const AF_NETLINK: u64 = 16;
/// `AF_UNIX`, `AF_INET`, `AF_INET6`, `AF_NETLINK`.
pub(crate) const FAMILIES: &[u64] = &[1, 2, 10, AF_NETLINK];
pub(crate) const S_IFMT: u64 = 0o170_000;
/// A program with this bit runs with the rights of its owner, also outside, where no `nosuid` holds.
/// The like for groups stays: shared repositories need it on their directories, and no filter can tell
/// what a descriptor or a path leads to.
pub(crate) const S_ISUID: u64 = 0o4000;
/// The flags with which `open` makes a file. Without one of them its mode is not read, and whatever
/// stands in that register means nothing.
pub(crate) const MAKES_FILE: &[u64] = &[0o100, 0o20_000_000];
/// Character and block devices; making FIFOs and plain files stays possible.
pub(crate) const DEVICE_TYPES: &[u64] = &[0o020_000, 0o060_000];

/// The bytes of a filter, in the form that the kernel and `bwrap --add-seccomp-fd` read.
pub fn filter(name: &str) -> Result<Vec<u8>, FilterError> {
    Ok(bytes(&program(name)?))
}

fn program(name: &str) -> Result<BpfProgram, FilterError> {
    let arch = target()?;
    match name {
        DENY => deny(arch, false),
        DENY_NESTED => deny(arch, true),
        NO_CLONE3 => absent(arch, &[CLONE3, OPENAT2]),
        NO_OPENAT2 => absent(arch, &[OPENAT2]),
        confined::CONFINED => confined::program(arch, true),
        confined::CONFINED_OFFLINE => confined::program(arch, false),
        _ => Err(FilterError::Unknown { name: name.to_owned() }),
    }
}

/// Puts a filter on this thread, for good, and on whatever it starts.
///
/// # Security
/// Sets `no_new_privs`. Other threads stay as they are: call it before there are any.
pub(crate) fn install(name: &str) -> Result<(), FilterError> {
    Ok(seccompiler::apply_filter(&program(name)?)?)
}

/// The filters of a sandbox without namespaces, in the order in which they are installed.
pub(crate) fn confined_profiles(network: bool) -> [&'static str; 3] {
    let third = if network { confined::CONFINED } else { confined::CONFINED_OFFLINE };
    [NO_CLONE3, DENY, third]
}

/// The filters of a sandbox, in the order in which they are installed.
pub fn profiles(nested_sandbox: bool) -> &'static [&'static str] {
    // With `clone` free to make namespaces, hiding `clone3` would win nothing.
    if nested_sandbox { &[NO_OPENAT2, DENY_NESTED] } else { &[NO_CLONE3, DENY] }
}

fn target() -> Result<TargetArch, FilterError> {
    TargetArch::try_from(std::env::consts::ARCH)
        .ok()
        .filter(|arch| matches!(arch, TargetArch::x86_64 | TargetArch::aarch64))
        .ok_or(FilterError::Architecture)
}

fn number(arch: TargetArch, call: Call) -> Option<i64> {
    match arch {
        TargetArch::x86_64 => call.1,
        _ => call.2,
    }
}

fn rule(
    conditions: Vec<Result<SeccompCondition, seccompiler::BackendError>>,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

fn deny(arch: TargetArch, nested: bool) -> Result<BpfProgram, FilterError> {
    // All compared as 32 bit: the kernel looks at no more of these arguments, so a value with high
    // bits set must not slip through.
    let test = |argument, op, value| SeccompCondition::new(argument, Len::Dword, op, value);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut add = |call: Call, with: Vec<SeccompRule>| {
        if let Some(number) = number(arch, call) {
            rules.insert(number, with);
        }
    };
    for call in DENIED {
        add(*call, Vec::new());
    }
    if !nested {
        for call in DENIED_UNLESS_NESTED {
            add(*call, Vec::new());
        }
        let flags =
            NAMESPACE_FLAGS.iter().map(|flag| rule(vec![test(0, Op::MaskedEq(*flag), *flag)]));
        add(CLONE, flags.collect::<Result<_, _>>()?);
    }
    let requests = TERMINAL_REQUESTS.iter().map(|request| rule(vec![test(1, Op::Eq, *request)]));
    add(IOCTL, requests.collect::<Result<_, _>>()?);
    let other_family = rule(FAMILIES.iter().map(|family| test(0, Op::Ne, *family)).collect())?;
    let other_netlink = rule(vec![test(0, Op::Eq, AF_NETLINK), test(2, Op::Ne, 0)])?;
    add(SOCKET, vec![other_family, other_netlink]);
    for (call, argument) in [(MKNOD, 1), (MKNODAT, 2)] {
        let devices =
            DEVICE_TYPES.iter().map(|kind| rule(vec![test(argument, Op::MaskedEq(S_IFMT), *kind)]));
        let set_user_id = rule(vec![test(argument, Op::MaskedEq(S_ISUID), S_ISUID)]);
        add(call, devices.chain([set_user_id]).collect::<Result<_, _>>()?);
    }
    for (call, argument) in SETS_MODE {
        add(*call, vec![rule(vec![test(*argument, Op::MaskedEq(S_ISUID), S_ISUID)])?]);
    }
    for (call, flags) in [(OPEN, 1), (OPENAT, 2)] {
        let makes = MAKES_FILE.iter().map(|flag| {
            let set_user_id = test(flags + 1, Op::MaskedEq(S_ISUID), S_ISUID);
            rule(vec![test(flags, Op::MaskedEq(*flag), *flag), set_user_id])
        });
        add(call, makes.collect::<Result<_, _>>()?);
    }
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM), arch)?;
    Ok(filter.try_into()?)
}

fn absent(arch: TargetArch, calls: &[Call]) -> Result<BpfProgram, FilterError> {
    let numbers = calls.iter().filter_map(|call| number(arch, *call));
    let rules = numbers.map(|number| (number, Vec::new())).collect();
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(ENOSYS), arch)?;
    let program: BpfProgram = filter.try_into()?;
    if !matches!(arch, TargetArch::x86_64) {
        return Ok(program);
    }
    // x32 calls come with the same architecture and numbers with bit 30 set, so no rule above would
    // match them: load the number, and answer ENOSYS from that bit on.
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut guarded = vec![
        step(0x20, 0, 0, 0),                    // ld [nr]
        step(0x35, 0, 1, 0x4000_0000),          // jge #0x40000000
        step(0x06, 0, 0, 0x0005_0000 | ENOSYS), // ret ERRNO(ENOSYS)
    ];
    guarded.extend(program);
    Ok(guarded)
}

fn bytes(program: &[sock_filter]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for step in program {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_compiles_for_both_architectures() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64] {
            for nested in [false, true] {
                assert!(deny(arch, nested).expect("deny").len() < 4096);
            }
            assert!(!absent(arch, &[CLONE3, OPENAT2]).expect("absent").is_empty());
            let confined = |network| confined::program(arch, network).expect("confined").len();
            assert!(confined(false) > confined(true));
        }
        assert!(filter("else").is_err());
    }

    #[test]
    fn no_number_is_listed_twice() {
        let all: Vec<Call> = DENIED
            .iter()
            .chain(DENIED_UNLESS_NESTED)
            .copied()
            .chain([IOCTL, SOCKET, CLONE, CLONE3, MKNOD, MKNODAT, OPEN, OPENAT, OPENAT2])
            .chain(SETS_MODE.iter().map(|(call, _)| *call))
            .collect();
        for arch in [TargetArch::x86_64, TargetArch::aarch64] {
            let mut numbers: Vec<_> = all.iter().filter_map(|call| number(arch, *call)).collect();
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count);
        }
    }
}
