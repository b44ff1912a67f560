//! The same for a container: what the line of podman asks for, and how it is judged.

use std::net::SocketAddr;

use fleet_core::isolation::Item;
use fleet_core::launch::{LaunchFile, LaunchPlan, PlanWord};

use super::expect::{Expected, ExpectedMount, What};
use super::facts::{Facts, Sandboxed, look};
use super::rows::{self, Verdict, fails, given, holds, own_namespace, status, unseen};
use crate::podman::{KEEP, flags};
use fleet_core::isolation::EnforcementLevel;

/// podman's own filter, and the two that the first program inside installs.
const FILTERS: usize = 3;

/// What the line asks for; `None` without one.
pub(super) fn expected(plan: &LaunchPlan) -> Option<Expected> {
    let network = plan.network.iter().flat_map(|network| &network.listeners);
    let listeners: Vec<SocketAddr> = network.map(|listener| listener.at).collect();
    let mut seen = Expected { listeners, filters: FILTERS, ..Expected::default() };
    let mut words = plan.argv.iter().skip_while(|word| **word != PlanWord::literal("run")).skip(1);
    for word in words.by_ref() {
        let text = match word {
            PlanWord::Text(text) => text.to_string(),
            // Marked by a byte that no path holds.
            PlanWord::Scratch { before, after } => format!("{before}\0{after}"),
            PlanWord::Tty | PlanWord::Descriptor(_) | PlanWord::DescriptorPath(_) => continue,
        };
        let (flag, value) = flags::split(&text);
        match flag {
            flags::END => return Some(seen),
            "--network" if value == "none" => seen.flags.push("--unshare-net"),
            "--hostname" => seen.hostname = Some(value.into_owned()),
            "--read-only" => seen.locked_root = true,
            "--tmpfs" => seen.mounts.extend(in_memory(&value)),
            "--volume" => seen.mounts.extend(volume(plan, &value)),
            "--mount" => seen.mounts.extend(mount(plan, &value)),
            "--security-opt" => seen.mounts.extend(masks(&value)),
            _ => {}
        }
    }
    None
}

/// With what podman mounts without being asked.
fn also() -> impl Iterator<Item = ExpectedMount> {
    let own = |destination: &str, what| ExpectedMount {
        destination: destination.to_owned(),
        read_only: false,
        optional: false,
        what,
        identity: None,
    };
    let binds = flags::OF_PODMAN.iter().map(move |(at, optional)| ExpectedMount {
        read_only: !optional,
        optional: *optional,
        ..own(at, What::Bind)
    });
    [own("/proc", What::Proc), own("/dev", What::Dev)].into_iter().chain(binds)
}

fn masks(value: &str) -> impl Iterator<Item = ExpectedMount> + '_ {
    let list = value.strip_prefix("mask=").unwrap_or_default();
    list.split(':').filter(|path| !path.is_empty()).map(|path| ExpectedMount {
        destination: path.to_owned(),
        // A device that takes whatever is written, or an empty directory.
        read_only: false,
        optional: false,
        what: What::Bind,
        identity: None,
    })
}

fn in_memory(value: &str) -> Option<ExpectedMount> {
    let (destination, options) = value.split_once(':')?;
    let option = |name: &str| options.split(',').find_map(|it| it.strip_prefix(name));
    Some(ExpectedMount {
        destination: destination.to_owned(),
        read_only: options.split(',').any(|option| option == "ro"),
        optional: false,
        what: What::Tmpfs {
            size: option("size=").and_then(|size| size.parse().ok()),
            mode: option("mode=").and_then(|mode| u32::from_str_radix(mode, 8).ok()),
        },
        identity: None,
    })
}

fn bind(plan: &LaunchPlan, source: &str, destination: &str, read_only: bool) -> ExpectedMount {
    let check = plan.checks.iter().find(|check| check.path == source);
    ExpectedMount {
        destination: destination.to_owned(),
        read_only,
        optional: false,
        what: What::Bind,
        identity: check.map(|check| check.identity),
    }
}

fn volume(plan: &LaunchPlan, value: &str) -> Option<ExpectedMount> {
    let mut parts = value.splitn(3, ':');
    let (source, destination, options) = (parts.next()?, parts.next()?, parts.next()?);
    Some(bind(plan, source, destination, options.split(',').any(|option| option == "ro")))
}

fn mount(plan: &LaunchPlan, value: &str) -> Option<ExpectedMount> {
    let option = |name: &str| value.split(',').find_map(|it| it.strip_prefix(name));
    Some(bind(plan, option("src=")?, option("dst=")?, option("ro=") == Some("true")))
}

pub(super) fn judge(item: Item, wanted: &Expected, facts: &Facts) -> Verdict {
    match item {
        Item::Filesystem => filesystem(wanted, facts),
        Item::Processes => match own_namespace(facts, "pid", "a pid namespace of its own") {
            (EnforcementLevel::Enforced, _) => {
                own_namespace(facts, "cgroup", "pid and cgroup namespaces of its own")
            }
            other => other,
        },
        Item::Hostname => own_namespace(facts, "uts", "a UTS namespace of its own"),
        Item::Capabilities => match rows::judge(item, wanted, facts) {
            (EnforcementLevel::Enforced, evidence) => {
                let own = format!("{evidence}, in a user namespace of its own");
                own_namespace(facts, "user", &own)
            }
            other => other,
        },
        Item::NestedNamespaces => {
            match (status(facts, "Seccomp"), rows::judge(Item::SystemCalls, wanted, facts)) {
                (None, _) => unseen(),
                (Some(_), (EnforcementLevel::Enforced, evidence)) => {
                    holds(format!("the filters refuse to make one: {evidence}"))
                }
                (Some(_), (level, evidence)) => (level, evidence),
            }
        }
        Item::Lifetime => match given(facts, &[KEEP]) {
            (EnforcementLevel::Enforced, _) => {
                holds("its keeper runs, and ends it when the launcher is gone")
            }
            other => other,
        },
        _ => rows::judge(item, wanted, facts),
    }
}

/// As elsewhere; and what lies below a read-only mount must be so too, because podman does not make
/// it so.
fn filesystem(wanted: &Expected, facts: &Facts) -> Verdict {
    let mut all = wanted.mounts.clone();
    all.extend(also());
    let (level, evidence) = rows::filesystem(&all, wanted.locked_root, facts);
    if level != EnforcementLevel::Enforced {
        return (level, evidence);
    }
    let open = facts.mounts.iter().flatten().filter(|line| !line.is_read_only()).find_map(|line| {
        let point = std::str::from_utf8(&line.point).ok()?;
        let around = all
            .iter()
            .filter(|mount| is_at_or_below(point, &mount.destination))
            .max_by_key(|mount| mount.destination.len())?;
        (around.read_only && around.destination != point).then_some(point)
    });
    match open {
        Some(point) => fails(format!("{point} is writable below a read-only mount")),
        None => (level, evidence),
    }
}

fn is_at_or_below(point: &str, above: &str) -> bool {
    point.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a container in which nothing of the role runs yet shows what it must: sources are given to
/// podman by path, so something else could have been there when it looked.
///
/// # Errors
/// What it shows instead.
pub(crate) fn before(launch: &LaunchFile, program: u32, init: u32) -> Result<(), String> {
    let wanted = expected(&launch.plan).ok_or("its line cannot be read")?;
    let facts = look(launch, Sandboxed { program, command: init });
    match filesystem(&wanted, &facts) {
        (EnforcementLevel::Enforced, _) => Ok(()),
        (_, evidence) => Err(evidence),
    }
}
