//! What a policy comes to, as data: what the first program inside is told. Pure.
//!
//! The mounts of the policy are not in it: they are handed over as descriptors that the launcher has
//! checked. Here is the fixed view of the system, the same for every role.

use fleet_core::isolation::system::{ETC_MADE, ETC_SHOWN};
use fleet_core::isolation::{IsolationPolicy, MountMode, MountOrigin, NetworkMode, SystemView};
use serde::{Deserialize, Serialize};

use crate::bubblewrap::HostView;

/// Devices that any program may need. None leads anywhere.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Made up in a sandbox with mounts of its own; here the host's is shown, or nothing.
const NOT_SHOWN: &str = "/etc/machine-id";
/// Below the role's own directory: what stands for `HOME` and `/tmp`, which are closed.
const PRIVATE: &str = ".sandbox";

/// What the first program does to itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rules {
    /// Always 1.
    pub(super) version: u32,
    /// Version of the kernel's interface that the promise rests on. A kernel with less is refused.
    pub(super) abi: u32,
    /// Whether the network of the host may be used.
    pub(super) network: bool,
    /// Where the command starts.
    pub(super) cwd: String,
    /// Paths of the system that can be read and executed, as far as they exist.
    pub(super) system: Vec<String>,
    /// Devices that can be read and written, as far as they exist.
    pub(super) devices: Vec<String>,
    /// Directories to make once confined, if that works.
    pub(super) make: Vec<String>,
}

impl Rules {
    pub(super) const VERSION: u32 = 1;

    pub(super) fn of(host: &HostView, abi: u32, policy: &IsolationPolicy) -> Self {
        let private = private(policy);
        let make = private.iter().flat_map(|private| {
            ["", "/home", "/tmp"].map(|below| format!("{}{below}", private.base))
        });
        Self {
            version: Self::VERSION,
            abi,
            network: policy.network == NetworkMode::Allow,
            cwd: policy.cwd.as_str().to_owned(),
            system: system(host, policy),
            devices: DEVICES.iter().map(|path| (*path).to_owned()).collect(),
            make: make.collect(),
        }
    }
}

/// Directories of the role's own in place of those that every user shares.
pub(super) struct Private {
    base: String,
}

impl Private {
    pub(super) fn home(&self) -> String {
        format!("{}/home", self.base)
    }

    pub(super) fn temporary(&self) -> String {
        format!("{}/tmp", self.base)
    }
}

/// They lie in the role's own directory; `None` if the policy shows none that can be written.
pub(super) fn private(policy: &IsolationPolicy) -> Option<Private> {
    let state = policy
        .mounts
        .iter()
        .find(|mount| mount.origin == MountOrigin::State && mount.mode == MountMode::ReadWrite)?;
    Some(Private { base: format!("{}/{PRIVATE}", state.destination) })
}

fn system(host: &HostView, policy: &IsolationPolicy) -> Vec<String> {
    let mut paths = vec!["/usr".to_owned(), "/proc".to_owned()];
    paths.extend(host.system_paths.iter().map(|(path, _)| (*path).to_owned()));
    match policy.system {
        SystemView::Full => paths.push("/etc".to_owned()),
        SystemView::Curated => paths.extend(
            ETC_SHOWN
                .iter()
                .chain(ETC_MADE)
                .filter(|path| **path != NOT_SHOWN)
                .map(|path| (*path).to_owned()),
        ),
    }
    if policy.network == NetworkMode::Allow {
        paths.extend(host.resolv_conf_target.iter().map(ToString::to_string));
    }
    paths
}
