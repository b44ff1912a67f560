//! Reads what can be seen of a sandbox from outside.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use fleet_core::isolation::BackendName;
use fleet_core::launch::{LaunchFile, LaunchPlan};
use fleet_core::port::FileIdentity;
use rustix::fs::{self, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::expect::expected;
use crate::procfs::{self, MountLine, mountinfo};
use crate::sys;

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub struct Sandboxed {
    /// Pid of the sandbox program; of the command itself if there is none.
    pub program: u32,
    /// Pid of the command.
    pub command: u32,
}

/// What was seen. `None` = could not be looked at.
#[derive(Debug, Default)]
pub struct Facts {
    /// `/proc/<pid>/status` of the command.
    pub(super) status: Option<BTreeMap<String, String>>,
    /// Number of filters that the launcher itself is under.
    pub(super) own_filters: u64,
    /// Per namespace, whether it is another one than the launcher's.
    pub(super) own_namespace: BTreeMap<&'static str, bool>,
    /// User namespaces between the command's and the launcher's, its own included.
    pub(super) user_levels: Option<usize>,
    /// The network interfaces that the command sees.
    pub(super) interfaces: Option<Vec<String>>,
    /// Which of the plan's sockets listen in the command's network.
    pub(super) listening: Option<Vec<SocketAddr>>,
    /// The command's mounts.
    pub(super) mounts: Option<Vec<MountLine>>,
    /// What is visible at the destinations whose object is known.
    pub(super) visible: BTreeMap<String, Option<FileIdentity>>,
    /// Whether the program's environment is the built one.
    pub(super) environment: Option<Result<(), String>>,
    /// The arguments that the sandbox program really got, up to `--`.
    pub(super) arguments: Option<Vec<String>>,
}

const NAMESPACES: &[&str] = &["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

/// The command below the sandbox's first process; that process itself, if it is no init.
pub(crate) fn command_pid(program: u32, init: u32) -> Option<u32> {
    // Without a pid namespace of its own the reported process is the command.
    if namespace_differs(init, "pid") == Some(false) && runs_another_program(init, program) {
        return Some(init);
    }
    procfs::children(init).first().copied()
}

/// Whether a process has gone on from the sandbox program to another one.
pub(crate) fn runs_another_program(pid: u32, program: u32) -> bool {
    let executable = |pid: u32| identity_of(&format!("/proc/{pid}/exe")).ok();
    match (executable(pid), executable(program)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

pub(crate) fn look(launch: &LaunchFile, at: Sandboxed) -> Facts {
    let pid = at.command;
    let own = std::process::id();
    let network = launch.plan.network.iter().flat_map(|network| &network.listeners);
    let listeners: Vec<SocketAddr> = network.map(|listener| listener.at).collect();
    let number = |status: &BTreeMap<String, String>| {
        status.get("Seccomp_filters").and_then(|count| count.parse().ok())
    };
    Facts {
        status: procfs::status(pid),
        own_filters: procfs::status(own).as_ref().and_then(number).unwrap_or(0),
        own_namespace: NAMESPACES
            .iter()
            .filter_map(|name| Some((*name, namespace_differs(pid, name)?)))
            .collect(),
        user_levels: user_levels(pid),
        interfaces: procfs::interfaces(pid),
        listening: procfs::listening(pid, &listeners),
        mounts: std::fs::read(format!("/proc/{pid}/mountinfo"))
            .ok()
            .map(|text| mountinfo(&text).collect()),
        visible: visible(pid, &launch.plan),
        // podman does not have it; it is the command's own then.
        environment: match launch.plan.backend {
            BackendName::Podman => environment(at.command, launch),
            _ => environment(at.program, launch),
        },
        arguments: arguments(at.program),
    }
}

fn namespace_differs(pid: u32, name: &str) -> Option<bool> {
    let theirs = identity_of(&format!("/proc/{pid}/ns/{name}")).ok()?;
    let ours = identity_of(&format!("/proc/self/ns/{name}")).ok()?;
    Some(theirs != ours)
}

fn identity_of(path: &str) -> Result<FileIdentity, Errno> {
    let stat = fs::stat(path)?;
    Ok(FileIdentity { dev: stat.st_dev, ino: stat.st_ino })
}

fn identity(fd: impl AsFd) -> Result<FileIdentity, Errno> {
    let stat = fs::fstat(fd)?;
    Ok(FileIdentity { dev: stat.st_dev, ino: stat.st_ino })
}

fn user_levels(pid: u32) -> Option<usize> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let ours = identity_of("/proc/self/ns/user").ok()?;
    let mut at = fs::openat(CWD, format!("/proc/{pid}/ns/user"), flags, Mode::empty()).ok()?;
    // The kernel allows 32 levels.
    for level in 0..=32 {
        if identity(&at).ok()? == ours {
            return Some(level);
        }
        at = sys::parent_namespace(&at).ok()?;
    }
    None
}

fn visible(pid: u32, plan: &LaunchPlan) -> BTreeMap<String, Option<FileIdentity>> {
    let root = root_of(pid).ok();
    expected(plan)
        .map(|expected| expected.mounts)
        .unwrap_or_default()
        .into_iter()
        .filter(|mount| mount.identity.is_some())
        .map(|mount| {
            let found = root.as_ref().and_then(|root| below(root, &mount.destination).ok());
            (mount.destination, found)
        })
        .collect()
}

fn root_of(pid: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::openat(CWD, format!("/proc/{pid}/root"), flags, Mode::empty())
}

/// Looks below another root without ever leaving it.
fn below(root: &OwnedFd, path: &str) -> Result<FileIdentity, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    identity(fs::openat2(root, path, flags, Mode::empty(), within)?)
}

fn environment(pid: u32, launch: &LaunchFile) -> Option<Result<(), String>> {
    let text = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut expected: Vec<String> =
        launch.env.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut found: Vec<String> = text
        .split(|byte| *byte == 0)
        .filter(|entry| !entry.is_empty())
        .map(|entry| String::from_utf8_lossy(entry).into_owned())
        .collect();
    expected.sort();
    found.sort();
    if expected == found {
        return Some(Ok(()));
    }
    // Names only: values may be secret.
    let odd: Vec<&str> = found
        .iter()
        .filter(|entry| !expected.contains(entry))
        .chain(expected.iter().filter(|entry| !found.contains(entry)))
        .map(|entry| entry.split('=').next().unwrap_or_default())
        .collect();
    Some(Err(odd.join(", ")))
}

fn arguments(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(
        text.split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .take_while(|word| word != "--")
            .collect(),
    )
}
