//! What this backend does not do. Pure.

use fleet_core::isolation::{IsolationPolicy, Mount, MountMode, MountOrigin, NetworkMode};

use super::since;

/// Whether it can be had for this network at all.
pub(super) fn enforces(mode: NetworkMode) -> bool {
    matches!(mode, NetworkMode::Deny | NetworkMode::Allow)
}

/// The first reason for which it takes no such policy, whatever else the role allows.
pub(super) fn refusal(policy: &IsolationPolicy) -> Option<String> {
    if !enforces(policy.network) {
        return Some(format!(
            "`network: {}`: it tells ports apart, not hosts; write `network: deny`, `network: allow` \
             or `backend: bubblewrap`",
            policy.network
        ));
    }
    if policy.nested_sandbox {
        return Some("`nested_sandbox`: nothing can be mounted under it".to_owned());
    }
    let moved = policy.mounts.iter().find(|mount| is_moved(mount));
    if let Some(mount) = moved {
        return Some(format!(
            "`{}` at another place ({}): it shows every file where the host has it",
            mount.destination, mount.origin
        ));
    }
    open_again(policy).find(|mount| !is_guard(mount)).map(|mount| {
        format!(
            "`{}` read-only ({}): it lies in a directory that the role may write, and what may be \
             written may be written down to its last file",
            mount.destination, mount.origin
        )
    })
}

/// What it takes, but does not hold to the full.
pub(super) fn shortfalls(abi: u32, policy: &IsolationPolicy) -> Vec<String> {
    let mut all = Vec::new();
    let open: Vec<&str> = open_again(policy)
        .filter(|mount| is_guard(mount))
        .map(|mount| mount.destination.as_str())
        .collect();
    if !open.is_empty() {
        all.push(format!(
            "{} read-only: what lies in a directory that the role may write can be written too \
             (`isolation.protect`)",
            open.join(", ")
        ));
    }
    if abi < since::TRUNCATE {
        all.push(format!(
            "files against being emptied: version {abi} of the kernel's Landlock does not look at \
             that (Linux 6.2 does)"
        ));
    }
    all
}

/// A secret that is to appear where the host has something else. What fleet itself mounts elsewhere is
/// where links of the host lead from there.
fn is_moved(mount: &Mount) -> bool {
    matches!(mount.origin, MountOrigin::Secret { .. }) && mount.source != mount.destination
}

/// What guards the project of the role, as opposed to what somebody asked to be read-only.
fn is_guard(mount: &Mount) -> bool {
    matches!(
        mount.origin,
        MountOrigin::Overlay { .. } | MountOrigin::SelfBind | MountOrigin::Repository { .. }
    )
}

/// Read-only mounts in a writable one: rights are handed down and cannot be taken back below.
fn open_again(policy: &IsolationPolicy) -> impl Iterator<Item = &Mount> {
    policy.mounts.iter().filter(|mount| {
        mount.mode == MountMode::ReadOnly
            && policy.mounts.iter().any(|around| {
                around.mode == MountMode::ReadWrite
                    && (mount.destination.is_within(&around.destination)
                        || mount.source.is_within(&around.source))
            })
    })
}
