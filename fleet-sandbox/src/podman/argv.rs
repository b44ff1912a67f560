//! The command line of the keeper and of `podman`, from a policy. Pure: opens nothing, asks nothing.
//!
//! Order: the keeper with its descriptors, podman's flags, the system view, in-memory directories, the
//! policy's mounts, the empty tree, the first program inside, the command. Each flag is one word with
//! its value. Where podman keeps its files is the keeper's matter.
//! Tests: `golden/podman.rs`.

use std::borrow::Cow;

use fleet_core::attest::AttestRequest;
use fleet_core::isolation::network::{Listener, NetworkLayout};
use fleet_core::isolation::{
    BackendName, EnforcementRow, IsolationPolicy, Mount, NetworkMode, SystemView,
};
use fleet_core::launch::{
    Cleanup, LaunchCommand, LaunchPlan, NetworkPlan, PlanWord, Preparation, ScratchEntry,
};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PlanError, ProbeEvidence};

use super::host::PodmanHost;
use super::line::{BIND, Line, unsupported};
use super::{ENTER, profile};
use crate::attest;
use crate::bubblewrap::argv::{HOSTNAME, masks_proc};
use crate::bubblewrap::{HostView, made};

/// Numbers in the container, in the order in which the keeper passes descriptors on.
const INSIDE: [&str; 5] = ["/proc/self/fd/3", "4", "5", "6", "7"];
/// Where podman mounts its init program.
const INIT: &str = "/run/podman-init";
/// An empty file by which programs tell that they are in a container, where `/run` is not in memory.
const MARKER: &str = "/run/.containerenv";

const FIXED: &[&str] = &[
    "--rm",
    "--interactive",
    // Else two keys would leave the agent running without a console.
    "--detach-keys=",
    "--sig-proxy=false",
    "--pid=private",
    "--uts=private",
    // Own, without a shared memory directory of podman's on the host.
    "--ipc=none",
    "--cgroupns=private",
    "--hostname=sandbox",
    "--read-only",
    "--read-only-tmpfs=false",
    "--systemd=false",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    // Where SELinux labels files, ours are those of the user; nothing is relabelled.
    "--security-opt=label=disable",
    "--passwd=false",
    "--no-hosts",
    "--http-proxy=false",
    "--unsetenv-all",
    "--log-driver=none",
    "--no-healthcheck",
    "--pull=never",
    "--image-volume=ignore",
    "--umask=0022",
    "--init",
    "--preserve-fds=5",
];

pub(super) fn proc_masks<'h>(host: &'h HostView, policy: &IsolationPolicy) -> &'h [&'static str] {
    if masks_proc(host, policy) { &host.proc_masks } else { &[] }
}

/// Whose ids the container has: as a plain user the same number inside and outside, and subordinate
/// ones for all others; as root a user namespace in which there is nobody but root.
fn user(host: &HostView) -> &'static [&'static str] {
    if host.uid == 0 { &["--uidmap=0:0:1", "--gidmap=0:0:1"] } else { &["--userns=keep-id"] }
}

fn attestation(host: &HostView, policy: &IsolationPolicy, listeners: &[Listener]) -> AttestRequest {
    let secrets: Vec<&str> = host.etc_secrets.iter().map(|(path, _)| *path).collect();
    attest::request::podman(policy, listeners, HOSTNAME, proc_masks(host, policy), &secrets)
}

pub(super) fn plan(
    host: &HostView,
    own: &PodmanHost,
    policy: &IsolationPolicy,
    evidence: &ProbeEvidence,
    command: &LaunchCommand,
    promise: Vec<EnforcementRow>,
) -> Result<LaunchPlan, PlanError> {
    if policy.nested_sandbox {
        return Err(unsupported("`nested_sandbox`"));
    }
    let mut line = Line::of(policy);
    for path in &policy.ephemeral_dirs {
        line.prepare.push(Preparation::MakeDir { path: path.clone() });
        line.cleanup.push(Cleanup::RemoveEmptyDir { path: path.clone() });
    }
    let layout = NetworkLayout::of(&policy.reachable);
    let served = policy.network.lists_hosts() && !layout.listeners.is_empty();
    let listeners = if served { layout.listeners.as_slice() } else { &[] };

    line.keeper(attestation(host, policy, listeners));
    line.text(&*evidence.program);
    line.literals([
        "--runtime=runc",
        "--cgroup-manager=cgroupfs",
        "--storage-driver=vfs",
        "--events-backend=none",
        "--log-level=error",
        "run",
    ]);
    line.literals(FIXED.iter().copied());
    line.words.push(PlanWord::Tty);
    line.literals(user(host).iter().copied());
    line.literals([if policy.network == NetworkMode::Allow {
        "--network=host"
    } else {
        "--network=none"
    }]);
    line.text(format!("--ulimit=nofile={0}:{0}", own.files));
    line.text(format!("--ulimit=nproc={0}:{0}", own.processes));
    line.literals(["--ulimit=core=0:0"]);
    line.scratch("seccomp.json", ScratchEntry::File { content: profile::text() });
    line.words.push(PlanWord::scratch("--security-opt=seccomp=", "/seccomp.json"));
    line.masks(host);
    line.text(format!("--workdir={}", command.cwd));
    line.system_view(host, own)?;
    line.data("/etc/hostname", format!("{HOSTNAME}\n"));
    match policy.system {
        SystemView::Curated => {
            for (path, content) in made::etc(host, policy, &layout) {
                line.data(path, content);
            }
        }
        SystemView::Full => resolver(&mut line, host),
    }
    // A mount of the policy at the very place of an in-memory directory covers it.
    let covered = |at: &LexicalPath| policy.mounts.iter().any(|mount| mount.destination == *at);
    for tmpfs in policy.tmpfs.iter().filter(|tmpfs| !covered(&tmpfs.destination)) {
        // It belongs to the container's root. That is another one than the fleet user, who is alone
        // in there.
        let mode = if host.uid == 0 { tmpfs.mode } else { 0o1777 };
        line.in_memory(tmpfs.destination.as_str(), tmpfs.size, mode, true)?;
    }
    // podman refuses the same place twice; the last one is on top.
    for (index, mount) in policy.mounts.iter().enumerate() {
        let again = |later: &Mount| later.destination == mount.destination;
        if !policy.mounts.iter().skip(index + 1).any(again) {
            line.mount(mount)?;
        }
    }
    line.tree();
    line.literals(["--rootfs"]);
    line.words.push(PlanWord::scratch("", "/rootfs"));
    let [own_program, environment, request, release, channel] = INSIDE;
    line.literals([own_program, ENTER, environment, request, release, channel]);
    line.words.extend(command.argv.iter().map(PlanWord::text));

    Ok(LaunchPlan {
        backend: BackendName::Podman,
        argv: line.words,
        descriptors: line.descriptors,
        checks: line.checks,
        prepare: line.prepare,
        cleanup: line.cleanup,
        network: served
            .then(|| NetworkPlan { rules: policy.reachable.clone(), listeners: layout.listeners }),
        promise,
    })
}

/// The host's own `/etc` is shown then, and podman must not put a resolver of its own over it; where its
/// link leads is not shown.
fn resolver(line: &mut Line<'_>, host: &HostView) {
    if line.policy.network != NetworkMode::Allow {
        return;
    }
    line.literals(["--dns=none"]);
    if let (Some(target), Some(content)) = (&host.resolv_conf_target, &host.resolv_conf) {
        line.scratch("resolver", ScratchEntry::File { content: content.clone() });
        let bind = format!("/resolver:{target}:ro,{BIND}");
        line.words.push(PlanWord::scratch("--volume=", bind));
        line.point(target.as_str(), FileKind::File);
    }
}

/// The mounts that podman adds on its own, for the observation, and whether one may be absent: nothing
/// else may be there.
pub(crate) const OF_PODMAN: &[(&str, bool)] = &[(INIT, false), (MARKER, true)];

/// The word of the line that names the empty tree ends the flags.
pub(crate) const END: &str = "--rootfs";

/// A flag of the line and its value, for the observation.
pub(crate) fn split(word: &str) -> (&str, Cow<'_, str>) {
    match word.split_once('=') {
        Some((flag, value)) => (flag, Cow::Borrowed(value)),
        None => (word, Cow::Borrowed("")),
    }
}
