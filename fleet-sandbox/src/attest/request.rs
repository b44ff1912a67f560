//! The questions, from a policy. Pure: opens nothing, asks nothing.
//!
//! One function a promise, so that each backend asks what it promises and nothing else.

use fleet_core::attest::{AttestCheck, AttestRequest, DeniedCall, Probe};
use fleet_core::isolation::network::Listener;
use fleet_core::isolation::{IsolationPolicy, Item, MountMode, NetworkMode, SystemView};

fn ask(item: Item, probes: impl IntoIterator<Item = Probe>) -> impl Iterator<Item = AttestCheck> {
    probes.into_iter().map(move |probe| AttestCheck::new(item, probe))
}

/// The mounts of a policy: writable ones are, the others are not.
pub fn mounts(policy: &IsolationPolicy) -> impl Iterator<Item = AttestCheck> + '_ {
    let probes = policy.mounts.iter().filter_map(|mount| {
        let path = mount.destination.as_str().to_owned();
        // Without an identity it is made for the launch, or optional and absent.
        let made = policy.ephemeral_dirs.iter().any(|dir| *dir == *mount.source.as_path());
        (mount.identity.is_some() || made).then_some(match mount.mode {
            MountMode::ReadOnly => Probe::ReadOnly { path },
            MountMode::ReadWrite => Probe::Writable { path },
        })
    });
    ask(Item::Filesystem, probes)
}

/// The in-memory directories of a policy hold no more than they may.
pub fn caps(policy: &IsolationPolicy) -> impl Iterator<Item = AttestCheck> + '_ {
    let capped = policy.tmpfs.iter().map(|tmpfs| Probe::Capped {
        path: tmpfs.destination.as_str().to_owned(),
        bytes: tmpfs.size,
    });
    ask(Item::Filesystem, capped)
}

/// These cannot be written.
pub fn read_only<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = AttestCheck> + 'a {
    ask(Item::Filesystem, paths.iter().map(|path| Probe::ReadOnly { path: (*path).to_owned() }))
}

/// Nothing can be read from these.
pub fn empty<'a>(
    paths: impl Iterator<Item = &'a str> + 'a,
) -> impl Iterator<Item = AttestCheck> + 'a {
    ask(Item::Filesystem, paths.map(|path| Probe::Empty { path: path.to_owned() }))
}

/// No capability, no way to one, and the filter really refuses.
pub fn privileges(nested_sandbox: bool) -> Vec<AttestCheck> {
    let calls = |calls: &'static [DeniedCall]| {
        ask(Item::SystemCalls, calls.iter().map(|call| Probe::Refused { call: *call }))
    };
    let mut checks = vec![
        AttestCheck::new(Item::Capabilities, Probe::NoCapabilities),
        AttestCheck::new(Item::NoNewPrivileges, Probe::NoNewPrivileges),
        AttestCheck::new(Item::SystemCalls, Probe::Filtered),
    ];
    checks.extend(calls(DeniedCall::ALWAYS));
    if !nested_sandbox {
        checks.extend(calls(DeniedCall::UNLESS_NESTED));
        let unshare = Probe::Refused { call: DeniedCall::Unshare };
        checks.push(AttestCheck::new(Item::NestedNamespaces, unshare));
    }
    checks
}

/// The environment, and what else a command inherits.
///
/// `also` are the variables that the backend itself sets inside.
pub fn inherited(also: &[&str]) -> impl Iterator<Item = AttestCheck> + use<> {
    let names = also.iter().map(|name| (*name).to_owned()).collect();
    let probes = [Probe::Environment { names }, Probe::Descriptors, Probe::NoCoreDumps];
    ask(Item::Environment, probes)
}

/// Nothing of the host's network is reachable, and what is served is there.
pub fn network(listeners: &[Listener]) -> impl Iterator<Item = AttestCheck> + '_ {
    let own = [Probe::HostPort { port: 0 }, Probe::HostSocket { name: String::new() }];
    let served = listeners.iter().map(|listener| Probe::Listening { at: listener.at });
    ask(Item::Network, own.into_iter().chain(served))
}

/// A namespace of its own, of this kind.
pub fn namespace(item: Item, name: &str) -> AttestCheck {
    AttestCheck::new(item, Probe::OwnNamespace { name: name.to_owned(), host: 0 })
}

/// A network namespace with nothing but what the launcher serves, unless the host's network was asked for.
fn own_network(policy: &IsolationPolicy, listeners: &[Listener]) -> Vec<AttestCheck> {
    if policy.network == NetworkMode::Allow {
        return Vec::new();
    }
    let mut checks =
        vec![namespace(Item::Network, "net"), AttestCheck::new(Item::Network, Probe::LoopbackOnly)];
    checks.extend(network(listeners));
    checks
}

/// IPC and UTS namespaces.
fn own_names(hostname: &str) -> [AttestCheck; 3] {
    let name = hostname.to_owned();
    [
        namespace(Item::Ipc, "ipc"),
        namespace(Item::Hostname, "uts"),
        AttestCheck::new(Item::Hostname, Probe::Hostname { name }),
    ]
}

/// What a sandbox of bubblewrap is asked. `proc_masks` are covered by its plan if `masks_proc`.
pub fn bubblewrap(
    policy: &IsolationPolicy,
    listeners: &[Listener],
    hostname: &str,
    proc_masks: &[&'static str],
    etc_secrets: &[&'static str],
) -> AttestRequest {
    let mut checks = Vec::with_capacity(64 + policy.mounts.len());
    checks.extend(mounts(policy));
    checks.extend(caps(policy));
    checks.extend(read_only(&["/", "/usr", "/etc"]));
    if !proc_masks.is_empty() {
        checks.extend(empty(proc_masks.iter().copied()));
        checks.extend(read_only(&["/proc/sys/kernel/core_pattern"]));
    }
    if policy.system == SystemView::Full {
        checks.extend(empty(etc_secrets.iter().copied()));
    }
    checks.push(namespace(Item::Filesystem, "mnt"));
    checks.extend(own_network(policy, listeners));
    checks.push(namespace(Item::Processes, "pid"));
    // The sandbox program's own first process, and the one that asks.
    checks.push(AttestCheck::new(Item::Processes, Probe::Processes { most: 2 }));
    checks.extend(own_names(hostname));
    checks.extend(privileges(policy.nested_sandbox));
    // Set by `--chdir`.
    checks.extend(inherited(&["PWD"]));
    checks.push(AttestCheck::new(Item::Lifetime, Probe::DiesWithParent));
    AttestRequest::new(checks)
}

/// What a sandbox of Landlock is asked. It has no namespaces and no mounts: contents are refused, not
/// hidden. `scoped` = the kernel keeps signals in.
pub fn landlock(
    policy: &IsolationPolicy,
    scoped: bool,
    etc_secrets: &[&'static str],
) -> AttestRequest {
    let mut checks = Vec::with_capacity(48 + policy.mounts.len());
    checks.extend(mounts(policy).filter_map(|check| unwritable(policy, check)));
    let closed = ["/usr", "/etc", "/tmp", "/var/tmp", "/dev/shm", "/run", "/proc/sys/kernel"];
    let closed = closed.map(|path| Probe::Unwritable { path: path.to_owned() });
    checks.extend(ask(Item::Filesystem, closed));
    checks.extend(empty(etc_secrets.iter().copied()));
    let refused = |call| Probe::Refused { call };
    if policy.network != NetworkMode::Allow {
        checks.push(AttestCheck::new(Item::Network, refused(DeniedCall::InetSocket)));
        checks.extend(network(&[]));
    }
    if scoped {
        checks.push(AttestCheck::new(Item::Processes, Probe::LauncherOutOfReach));
    }
    let ipc = [DeniedCall::SharedMemory, DeniedCall::UnixSocket, DeniedCall::DatagramPair];
    checks.extend(ask(Item::Ipc, ipc.map(refused)));
    checks.extend(privileges(false).into_iter().map(|check| match check.probe {
        Probe::NoCapabilities => AttestCheck::new(check.item, Probe::NoHeldCapabilities),
        _ => check,
    }));
    checks.extend(inherited(&[]));
    checks.push(AttestCheck::new(Item::Lifetime, Probe::DiesWithParent));
    AttestRequest::new(checks)
}

/// A read-only mount by its attempt alone; what lies in a writable one is not promised.
fn unwritable(policy: &IsolationPolicy, check: AttestCheck) -> Option<AttestCheck> {
    let Probe::ReadOnly { path } = check.probe else { return Some(check) };
    let open = policy.mounts.iter().any(|mount| {
        mount.mode == MountMode::ReadWrite
            && std::path::Path::new(&path).starts_with(mount.destination.as_str())
    });
    (!open).then(|| AttestCheck::new(check.item, Probe::Unwritable { path }))
}

/// What a container of podman is asked. `proc_masks` are covered by its plan.
pub fn podman(
    policy: &IsolationPolicy,
    listeners: &[Listener],
    hostname: &str,
    proc_masks: &[&'static str],
    etc_secrets: &[&'static str],
) -> AttestRequest {
    let mut checks = Vec::with_capacity(64 + policy.mounts.len());
    checks.extend(mounts(policy));
    checks.extend(caps(policy));
    checks.extend(read_only(&["/", "/usr", "/etc", "/proc/sys/kernel/core_pattern"]));
    checks.extend(empty(proc_masks.iter().copied().chain(["/sys/fs/cgroup"])));
    if policy.system == SystemView::Full {
        checks.extend(empty(etc_secrets.iter().copied()));
    }
    checks.push(namespace(Item::Filesystem, "mnt"));
    checks.extend(own_network(policy, listeners));
    checks.push(namespace(Item::Processes, "pid"));
    checks.push(namespace(Item::Processes, "cgroup"));
    // The init program and the one that asks; numbers were also given to the runtime's threads.
    checks.push(AttestCheck::new(Item::Processes, Probe::Processes { most: 64 }));
    checks.extend(own_names(hostname));
    checks.push(namespace(Item::Capabilities, "user"));
    checks.extend(privileges(false));
    checks.extend(inherited(&[]));
    AttestRequest::new(checks)
}
