//! Self-attestation as data: what a sandbox is asked about itself, from inside, before its command
//! starts, and what it answers.
//!
//! A backend writes the questions into its plan ([`DescriptorRequest::AttestRequest`]); whoever knows
//! more adds to them ([`LaunchPlan::attestation_mut`]); the launcher fills in what only it can know.
//! Nothing here names a backend: each asks what it promises.
//!
//! [`DescriptorRequest::AttestRequest`]: crate::launch::DescriptorRequest::AttestRequest
//! [`LaunchPlan::attestation_mut`]: crate::launch::LaunchPlan::attestation_mut

use core::net::SocketAddr;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::isolation::system::{ETC_MADE, ETC_SHOWN, SystemPlace, system_place};
use crate::isolation::{IsolationPolicy, Item, SystemView};
use crate::path::LexicalPath;

/// A system call that a filter refuses. Each is tried with arguments with which it could do nothing
/// even without a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeniedCall {
    /// `keyctl`.
    Keyctl,
    /// `add_key`.
    AddKey,
    /// `io_uring_setup`.
    IoUringSetup,
    /// `perf_event_open`.
    PerfEventOpen,
    /// `mount`.
    Mount,
    /// `unshare`.
    Unshare,
    /// `clone3`, which must look as if the kernel did not have it.
    Clone3,
    /// `ioctl(TIOCSTI)`: typing into the terminal.
    TypeIntoTerminal,
    /// A `packet` socket.
    PacketSocket,
    /// An `alg` socket.
    AlgSocket,
    /// A `vsock` socket.
    VsockSocket,
    /// A Unix socket, which could reach every service of the host by its path.
    UnixSocket,
    /// A pair of Unix datagram sockets: each end could send to any path.
    DatagramPair,
    /// An IPv4 socket.
    InetSocket,
    /// `shmget`: shared memory by a key, which no directory holds.
    SharedMemory,
}

impl DeniedCall {
    /// What every filter refuses.
    pub const ALWAYS: &[Self] = &[
        Self::Keyctl,
        Self::AddKey,
        Self::IoUringSetup,
        Self::PerfEventOpen,
        Self::TypeIntoTerminal,
        Self::PacketSocket,
        Self::AlgSocket,
        Self::VsockSocket,
    ];
    /// What it refuses as well, unless a sandbox inside the sandbox is allowed.
    pub const UNLESS_NESTED: &[Self] = &[Self::Mount, Self::Clone3];

    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keyctl => "keyctl",
            Self::AddKey => "add_key",
            Self::IoUringSetup => "io_uring_setup",
            Self::PerfEventOpen => "perf_event_open",
            Self::Mount => "mount",
            Self::Unshare => "unshare",
            Self::Clone3 => "clone3",
            Self::TypeIntoTerminal => "ioctl(TIOCSTI)",
            Self::PacketSocket => "a packet socket",
            Self::AlgSocket => "an alg socket",
            Self::VsockSocket => "a vsock socket",
            Self::UnixSocket => "a Unix socket",
            Self::DatagramPair => "a pair of datagram sockets",
            Self::InetSocket => "an IPv4 socket",
            Self::SharedMemory => "shmget",
        }
    }
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Probe {
    /// Nothing can be opened there.
    Hidden {
        /// The path.
        path: String,
    },
    /// A write there fails.
    ReadOnly {
        /// The path.
        path: String,
    },
    /// It cannot be opened for writing. For a sandbox without mounts of its own: a program that runs
    /// cannot be opened for writing by anybody, which counts.
    Unwritable {
        /// The path.
        path: String,
    },
    /// It is there, on a mount that can be written.
    Writable {
        /// The path.
        path: String,
    },
    /// Nothing can be read from it.
    Empty {
        /// The path.
        path: String,
    },
    /// The file system there holds no more than this.
    Capped {
        /// The path.
        path: String,
        /// The cap.
        bytes: u64,
    },
    /// These variables are set and no others. The launcher adds those of the launch to what the
    /// backend sets itself.
    Environment {
        /// Their names.
        names: Vec<String>,
    },
    /// No descriptor but the three standard ones goes on to the command.
    Descriptors,
    /// Every capability set is empty.
    NoCapabilities,
    /// No capability is held or handed on. The bounding set is not looked at: without a capability it
    /// cannot be emptied.
    NoHeldCapabilities,
    /// No privilege can be gained.
    NoNewPrivileges,
    /// A system call filter is in force.
    Filtered,
    /// A system call is refused by the filter.
    Refused {
        /// Which.
        call: DeniedCall,
    },
    /// There is no network interface but the loopback one.
    LoopbackOnly,
    /// A socket of the launcher listens there.
    Listening {
        /// Where.
        at: SocketAddr,
    },
    /// A port that the launcher opens on the host's loopback cannot be reached.
    HostPort {
        /// The port; filled in by the launcher.
        port: u16,
    },
    /// An abstract Unix socket that the launcher opens cannot be reached.
    HostSocket {
        /// Its name; filled in by the launcher.
        name: String,
    },
    /// A namespace is another one than the launcher's.
    OwnNamespace {
        /// Its name below `/proc/<pid>/ns`.
        name: String,
        /// The launcher's; filled in by it.
        host: u64,
    },
    /// There are hardly any processes.
    Processes {
        /// How many at most, which is also the highest pid.
        most: u32,
    },
    /// The launcher, a process of the same user, can be neither read nor signalled.
    LauncherOutOfReach,
    /// The name of the machine.
    Hostname {
        /// What it must be.
        name: String,
    },
    /// The end of the parent kills.
    DiesWithParent,
    /// No core dump is written.
    NoCoreDumps,
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden { path } => write!(f, "{path} is hidden"),
            Self::ReadOnly { path } => write!(f, "{path} is read-only"),
            Self::Unwritable { path } => write!(f, "{path} cannot be opened for writing"),
            Self::Writable { path } => write!(f, "{path} is writable"),
            Self::Empty { path } => write!(f, "{path} is empty"),
            Self::Capped { path, bytes } => write!(f, "{path} holds at most {bytes} bytes"),
            Self::Environment { .. } => f.write_str("the environment is the built one"),
            Self::Descriptors => f.write_str("no descriptor goes on to the command"),
            Self::NoCapabilities => f.write_str("no capability is held"),
            Self::NoHeldCapabilities => f.write_str("no capability is held or handed on"),
            Self::NoNewPrivileges => f.write_str("NoNewPrivs is 1"),
            Self::Filtered => f.write_str("Seccomp is 2"),
            Self::Refused { call } => write!(f, "{} is refused", call.as_str()),
            Self::LoopbackOnly => f.write_str("loopback is the only interface"),
            Self::Listening { at } => write!(f, "{at} is served"),
            Self::HostPort { .. } => f.write_str("a port of the host is unreachable"),
            Self::HostSocket { .. } => f.write_str("an abstract socket of the host is unreachable"),
            Self::OwnNamespace { name, .. } => write!(f, "the {name} namespace is its own"),
            Self::Processes { .. } => f.write_str("no process of the host is in sight"),
            Self::LauncherOutOfReach => f.write_str("the launcher is out of reach"),
            Self::Hostname { name } => write!(f, "the host name is {name}"),
            Self::DiesWithParent => f.write_str("the end of the parent kills"),
            Self::NoCoreDumps => f.write_str("no core dump is written"),
        }
    }
}

/// A question and the row of the report that rests on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttestCheck {
    /// The row.
    pub item: Item,
    /// The question.
    pub probe: Probe,
}

impl AttestCheck {
    /// A question for a row.
    pub fn new(item: Item, probe: Probe) -> Self {
        Self { item, probe }
    }
}

/// Everything that a sandbox is asked about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttestRequest {
    /// Always 1.
    pub version: u32,
    /// Whether the command must not start when one answer is no.
    pub strict: bool,
    /// The questions.
    pub checks: Vec<AttestCheck>,
}

impl AttestRequest {
    /// The version written and accepted.
    pub const VERSION: u32 = 1;

    /// A request that only reports.
    pub fn new(checks: Vec<AttestCheck>) -> Self {
        Self { version: Self::VERSION, strict: false, checks }
    }

    /// Asks for each of these paths whether it is hidden, leaving out what the policy shows on purpose
    /// and what leads there.
    ///
    /// # Security
    /// Paths only, never contents: the request is readable to whoever can read the launch file.
    pub fn hide<'a>(
        &mut self,
        policy: &IsolationPolicy,
        paths: impl IntoIterator<Item = &'a LexicalPath>,
    ) {
        let mut paths: Vec<&LexicalPath> =
            paths.into_iter().filter(|path| is_hidden(policy, path)).collect();
        paths.sort_unstable_by_key(|path| path.as_str());
        paths.dedup();
        self.checks.extend(paths.into_iter().map(|path| {
            let path = path.as_str().to_owned();
            AttestCheck::new(Item::Filesystem, Probe::Hidden { path })
        }));
    }

    /// Number of questions for a row.
    pub fn count(&self, item: Item) -> usize {
        self.checks.iter().filter(|check| check.item == item).count()
    }
}

/// Whether a sandbox of this policy has nothing at a path: it is in no mount, and no mount is in it.
/// An in-memory directory hides what is below it, but not itself nor what leads to it.
fn is_hidden(policy: &IsolationPolicy, path: &LexicalPath) -> bool {
    let of_the_system = match system_place(path, policy.system) {
        None => false,
        Some(place) => place != SystemPlace::Hidden || policy.system == SystemView::Full,
    };
    let leads_to_system = ETC_SHOWN
        .iter()
        .chain(ETC_MADE)
        .filter_map(|shown| LexicalPath::absolute(shown).ok())
        .any(|shown| shown.is_within(path));
    let mounted = policy
        .mounts
        .iter()
        .any(|mount| path.is_within(&mount.destination) || mount.destination.is_within(path));
    let in_memory = policy.tmpfs.iter().any(|tmpfs| tmpfs.destination.is_within(path));
    !(of_the_system || leads_to_system || mounted || in_memory || policy.cwd.is_within(path))
}

/// An answer that is no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// What should be.
    pub check: String,
    /// What is.
    pub saw: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not true that {}: {}", self.check, self.saw)
    }
}

/// The answers for one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemRecord {
    /// The row.
    pub item: Item,
    /// How many answers are yes.
    pub held: usize,
    /// How many are no.
    pub failed: usize,
    /// The first of those that are no.
    pub failures: Vec<Failure>,
}

/// What a sandbox answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttestRecord {
    /// Always 1.
    pub version: u32,
    /// One entry a row that was asked about.
    pub items: Vec<ItemRecord>,
}

impl AttestRecord {
    /// Failures kept of one row.
    pub const MOST_FAILURES: usize = 5;

    /// Puts answers together: `None` for a yes.
    pub fn of(answers: impl IntoIterator<Item = (Item, Option<Failure>)>) -> Self {
        let mut items: Vec<ItemRecord> = Vec::new();
        for (item, failure) in answers {
            let at = items.iter().position(|record| record.item == item).unwrap_or_else(|| {
                items.push(ItemRecord { item, held: 0, failed: 0, failures: Vec::new() });
                items.len() - 1
            });
            let record = &mut items[at];
            match failure {
                None => record.held += 1,
                Some(failure) => {
                    record.failed += 1;
                    if record.failures.len() < Self::MOST_FAILURES {
                        record.failures.push(failure);
                    }
                }
            }
        }
        Self { version: AttestRequest::VERSION, items }
    }

    /// The answers for a row.
    pub fn item(&self, item: Item) -> Option<&ItemRecord> {
        self.items.iter().find(|record| record.item == item)
    }

    /// Whether every answer is yes.
    pub fn holds(&self) -> bool {
        self.items.iter().all(|record| record.failed == 0)
    }

    /// What does not hold, in one line; empty if all does.
    pub fn complaint(&self) -> String {
        let lines: Vec<String> = self
            .items
            .iter()
            .flat_map(|record| {
                record.failures.iter().map(|failure| format!("{}: {failure}", record.item.as_str()))
            })
            .collect();
        lines.join("; ")
    }
}

/// What the program inside the sandbox writes into its pipe, one a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum AttestReport {
    /// Before all others, where there is one: the process outside of the command's reach that ends
    /// everything else of the sandbox when its launcher ends.
    Sweeper {
        /// Its number, as the launcher sees it.
        pid: u32,
    },
    /// The answers; first.
    Record {
        /// They.
        record: AttestRecord,
        /// Whether the command is not started because of them.
        refused: bool,
    },
    /// The sandbox could not be made by the program inside, so that nothing was answered; alone.
    NotConfined {
        /// Why.
        reason: String,
    },
    /// The command could not be executed. Without this line the end of the pipe means that it was.
    NotExecuted {
        /// Why.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::{Mount, MountMode, MountOrigin, Tmpfs};

    fn path(text: &str) -> LexicalPath {
        LexicalPath::absolute(text).expect("plain")
    }

    #[test]
    fn only_what_no_mount_has_to_do_with_is_asked_to_be_hidden() {
        let mut policy = IsolationPolicy::none(&path("/home/ada/work"), &path("/home/ada"));
        policy.system = SystemView::Curated;
        policy.tmpfs = vec![Tmpfs { destination: path("/home/ada"), size: 1, mode: 0o700 }];
        policy.mounts = ["/home/ada/work", "/home/ada/.claude/plugins", "/srv/state/A"]
            .map(|at| Mount {
                source: path(at),
                identity: None,
                kind: None,
                destination: path(at),
                mode: MountMode::ReadOnly,
                origin: MountOrigin::Cwd,
            })
            .to_vec();
        let paths = [
            "/home/ada/.ssh",
            "/home/ada/.ssh",
            "/srv/state/B",
            "/etc/wireguard",
            // Shown, or above or below what is shown.
            "/home/ada/.claude",
            "/home/ada/work/keys",
            "/srv/state",
            "/home/ada",
            "/home",
            "/usr/local/secret",
            "/proc/kcore",
        ]
        .map(path);
        let asked = |policy: &IsolationPolicy| {
            let mut request = AttestRequest::new(Vec::new());
            request.hide(policy, &paths);
            request.checks.iter().map(|check| check.probe.to_string()).collect::<Vec<_>>()
        };
        let hidden =
            ["/etc/wireguard is hidden", "/home/ada/.ssh is hidden", "/srv/state/B is hidden"];
        assert_eq!(asked(&policy), hidden);
        policy.system = SystemView::Full;
        assert_eq!(asked(&policy), hidden[1..]);
    }

    #[test]
    fn a_record_counts_all_and_names_the_first() {
        let no = |n: usize| Some(Failure { check: format!("c{n}"), saw: "s".to_owned() });
        let answers = (0..8).map(|n| (Item::Network, no(n))).chain([(Item::Ipc, None)]);
        let record = AttestRecord::of(answers);
        let network = record.item(Item::Network).expect("asked");
        assert_eq!((network.held, network.failed, network.failures.len()), (0, 8, 5));
        assert_eq!(record.item(Item::Ipc).map(|ipc| (ipc.held, ipc.failed)), Some((1, 0)));
        assert!(record.item(Item::Cpu).is_none() && !record.holds());
        assert!(record.complaint().starts_with("network: not true that c0: s; "));
        assert!(AttestRecord::of([(Item::Ipc, None)]).holds());
    }
}
