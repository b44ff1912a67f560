//! The rows of the report, from a policy. Pure. Each says what does not hold as plainly as what does.

use fleet_core::isolation::{EnforcementLevel, EnforcementRow, IsolationPolicy, Item, NetworkMode};

use super::{refuse, since};

use EnforcementLevel::{Degraded, Enforced, Missing};

pub(super) fn rows(abi: u32, policy: &IsolationPolicy) -> Vec<EnforcementRow> {
    let row = |item, asked: &str, level, evidence: String| EnforcementRow {
        item,
        asked: asked.to_owned(),
        level,
        evidence,
    };
    let (level, evidence) = network(abi, policy.network);
    let processes = if abi >= since::SCOPES {
        (
            Degraded,
            "they can be seen with their command lines, but neither signalled, traced nor read",
        )
    } else {
        (Missing, "they can be seen and signalled, though neither traced nor read")
    };
    vec![
        row(Item::Filesystem, "only what the policy lists", Degraded, filesystem(abi, policy)),
        row(Item::Network, policy.network.as_str(), level, evidence),
        row(Item::Processes, "own only", processes.0, processes.1.to_owned()),
        row(
            Item::Ipc,
            "own only",
            Enforced,
            "no Unix socket can be made but connected pairs, which can take a name in the name space of \
             the host, and nothing passes through it; System V and message queue calls are refused, \
             /dev/shm is closed"
                .to_owned(),
        ),
        row(Item::Hostname, "hidden", Missing, "the host's name".to_owned()),
        row(
            Item::Capabilities,
            "none",
            Enforced,
            "none is held; the bounding set stays, which no_new_privs makes useless".to_owned(),
        ),
        row(Item::NoNewPrivileges, "set", Enforced, "no_new_privs".to_owned()),
        row(Item::SystemCalls, "filtered", Enforced, "seccomp filters".to_owned()),
        row(Item::NestedNamespaces, "denied", Enforced, "the seccomp filter".to_owned()),
        row(
            Item::Environment,
            "the built one only",
            Enforced,
            "the sandbox is started with it".to_owned(),
        ),
        row(Item::Lifetime, "ends with its launcher", Degraded, lifetime(abi).to_owned()),
    ]
}

fn lifetime(abi: u32) -> &'static str {
    if abi >= since::SCOPES {
        "a process that the command can't reach kills all others at once when the launcher ends, also \
         one that is killed; that process itself can be killed from outside"
    } else {
        "the command is killed when its launcher ends; what the command started is killed by the \
         launcher, as far as it is found, and outlives one that is killed itself"
    }
}

fn filesystem(abi: u32, policy: &IsolationPolicy) -> String {
    let mut parts = vec![
        format!("contents by Landlock {abi}: nothing else can be read, written, listed or executed"),
        "names are not hidden, names in directories and accesses can be watched (inotify), and mode, owner, times and attributes of the user's own files can be \
         changed everywhere"
            .to_owned(),
        "/proc, passwd, group, hosts and resolv.conf are the host's".to_owned(),
        "/tmp is closed and nothing is in memory".to_owned(),
    ];
    if abi < since::MOVES {
        parts.push("nothing can be moved from one directory to another".to_owned());
    }
    parts.extend(
        refuse::shortfalls(abi, policy).into_iter().map(|what| format!("not held: {what}")),
    );
    parts.join("; ")
}

fn network(abi: u32, mode: NetworkMode) -> (EnforcementLevel, String) {
    match mode {
        NetworkMode::Allow => (Enforced, "the host's network, as asked".to_owned()),
        NetworkMode::Deny if abi >= since::TCP => (
            Enforced,
            "no socket but netlink can be made (seccomp) and no TCP port used (Landlock); names and \
             addresses of the host's interfaces can be seen"
                .to_owned(),
        ),
        NetworkMode::Deny => (
            Enforced,
            "no socket but netlink can be made (seccomp); names and addresses of the host's \
             interfaces can be seen"
                .to_owned(),
        ),
        NetworkMode::Broker | NetworkMode::Allowlist => {
            (Missing, "it tells ports apart, not hosts".to_owned())
        }
    }
}
