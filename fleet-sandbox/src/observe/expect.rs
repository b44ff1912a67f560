//! What a plan's line asks for, in the terms of an observation.

use std::net::SocketAddr;

use fleet_core::isolation::BackendName;
use fleet_core::launch::{DescriptorRequest, LaunchPlan, PlanWord};
use fleet_core::port::FileIdentity;

use crate::bubblewrap::flags;

/// A mount that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExpectedMount {
    pub(super) destination: String,
    pub(super) read_only: bool,
    /// May be absent, if its source is.
    pub(super) optional: bool,
    pub(super) what: What,
    /// Object that must be visible there.
    pub(super) identity: Option<FileIdentity>,
}

/// Which kind of mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Bind,
    Tmpfs { size: Option<u64>, mode: Option<u32> },
    Proc,
    Dev,
}

/// The line in short.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    /// The flags without operands that matter here.
    pub(super) flags: Vec<&'static str>,
    pub(super) hostname: Option<String>,
    pub(super) filters: usize,
    pub(super) locked_root: bool,
    pub(super) mounts: Vec<ExpectedMount>,
    /// What the launcher serves inside.
    pub(super) listeners: Vec<SocketAddr>,
}

impl Expected {
    /// Whether the line holds this flag.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }
}

/// `None` when the line holds a flag that is not known, or there is no sandbox: then nothing can be said.
pub(super) fn expected(plan: &LaunchPlan) -> Option<Expected> {
    match plan.backend {
        BackendName::Bubblewrap => bubblewrap(plan),
        BackendName::Podman => super::podman::expected(plan),
        BackendName::Landlock | BackendName::None => None,
    }
}

fn bubblewrap(plan: &LaunchPlan) -> Option<Expected> {
    // A descriptor stands as its index in the list of requests, marked by a byte no path holds.
    let words: Vec<String> = plan
        .argv
        .iter()
        .skip(1)
        .map(|word| match word {
            PlanWord::Text(text) => text.to_string(),
            PlanWord::Descriptor(index) | PlanWord::DescriptorPath(index) => format!("\0{index}"),
            // None of these in a line of bubblewrap.
            PlanWord::Scratch { .. } | PlanWord::Tty => String::new(),
        })
        .collect();
    let network = plan.network.iter().flat_map(|network| &network.listeners);
    let mut seen = Expected {
        listeners: network.map(|listener| listener.at).collect(),
        ..Expected::default()
    };
    let (mut size, mut mode) = (None, None);
    for (flag, operands) in flags::split(&words)? {
        let first = operands.first();
        let last = operands.last().cloned().unwrap_or_default();
        match flag.name {
            name if flag.operands == 0 => seen.flags.push(name),
            "--hostname" => seen.hostname = first.cloned(),
            "--add-seccomp-fd" => seen.filters += 1,
            "--remount-ro" => seen.locked_root |= last == "/",
            "--size" => size = last.parse().ok(),
            "--perms" => mode = u32::from_str_radix(&last, 8).ok(),
            "--tmpfs" => seen.mounts.push(ExpectedMount {
                destination: last,
                read_only: false,
                optional: false,
                what: What::Tmpfs { size: size.take(), mode: mode.take() },
                identity: None,
            }),
            "--proc" | "--dev" => seen.mounts.push(ExpectedMount {
                destination: last,
                read_only: false,
                optional: false,
                what: if flag.name == "--proc" { What::Proc } else { What::Dev },
                identity: None,
            }),
            name if name.contains("bind") => {
                mode = None;
                let identity = first.and_then(|source| identity(plan, source));
                seen.mounts.push(ExpectedMount {
                    destination: last,
                    read_only: name.starts_with("--ro-"),
                    optional: name.ends_with("-try"),
                    what: What::Bind,
                    identity,
                });
            }
            _ => {}
        }
    }
    Some(seen)
}

fn identity(plan: &LaunchPlan, source: &str) -> Option<FileIdentity> {
    if let Some(index) = source.strip_prefix('\0') {
        return match plan.descriptors.get(index.parse::<usize>().ok()?)? {
            DescriptorRequest::Source { identity, .. } => Some(*identity),
            _ => None,
        };
    }
    plan.checks.iter().find(|check| check.path == source).map(|check| check.identity)
}
