//! Judges what was seen against what was promised.

use fleet_core::isolation::{BackendName, EnforcementLevel, EnforcementRow, Item};
use fleet_core::launch::LaunchPlan;

use super::confined;
use super::expect::{Expected, ExpectedMount, What, expected};
use super::facts::Facts;
use super::podman;
use crate::procfs::MountLine;

pub(super) type Verdict = (EnforcementLevel, String);

pub(super) fn holds(evidence: impl Into<String>) -> Verdict {
    (EnforcementLevel::Enforced, evidence.into())
}

pub(super) fn fails(evidence: impl Into<String>) -> Verdict {
    (EnforcementLevel::Missing, evidence.into())
}

pub(super) fn unseen() -> Verdict {
    fails("could not be looked at")
}

/// One row for each promised one. Without facts, because the command ended before it could be looked
/// at, nothing is `enforced`.
pub fn rows(plan: &LaunchPlan, seen: Option<&Facts>) -> Vec<EnforcementRow> {
    let wanted = expected(plan);
    let judge = if plan.backend == BackendName::Podman { podman::judge } else { judge };
    let confined = plan.backend == BackendName::Landlock;
    plan.promise
        .iter()
        .map(|promised| {
            let (level, evidence) = match (promised.level, seen, &wanted) {
                // What is not promised cannot be observed either.
                (EnforcementLevel::Missing, ..) => (promised.level, promised.evidence.clone()),
                (_, None, _) => fails(EnforcementRow::ENDED_EARLY),
                (_, Some(facts), Some(wanted)) => judge(promised.item, wanted, facts),
                (_, Some(facts), None) if confined => confined::judge(promised, facts),
                (_, Some(facts), None) => judge_bare(promised, facts),
            };
            EnforcementRow { item: promised.item, asked: promised.asked.clone(), level, evidence }
        })
        .collect()
}

/// Without a sandbox only what the launcher does itself can hold.
fn judge_bare(promised: &EnforcementRow, facts: &Facts) -> Verdict {
    match promised.item {
        Item::Environment => environment(facts),
        Item::Network | Item::Lifetime => (promised.level, promised.evidence.clone()),
        _ => unseen(),
    }
}

pub(super) fn judge(item: Item, wanted: &Expected, facts: &Facts) -> Verdict {
    match item {
        Item::Filesystem => filesystem(&wanted.mounts, wanted.locked_root, facts),
        Item::Network => network(wanted, facts),
        Item::Processes => processes(wanted, facts),
        Item::Ipc => own_namespace(facts, "ipc", "an IPC namespace of its own"),
        Item::Hostname => hostname(wanted, facts),
        Item::Capabilities => capabilities(facts),
        Item::NoNewPrivileges => match status(facts, "NoNewPrivs") {
            Some("1") => holds("NoNewPrivs 1"),
            Some(other) => fails(format!("NoNewPrivs {other}")),
            None => unseen(),
        },
        Item::SystemCalls => system_calls(wanted, facts),
        Item::NestedNamespaces => nested(wanted, facts),
        Item::Environment => environment(facts),
        Item::Lifetime => given(facts, &["--die-with-parent"]),
        Item::Memory | Item::Pids | Item::Cpu => fails("was not read back"),
    }
}

/// A network of its own has no way out but the sockets that the launcher serves; they are looked for
/// where the command would connect to them.
fn network(wanted: &Expected, facts: &Facts) -> Verdict {
    match (wanted.has("--unshare-net"), facts.own_namespace.get("net")) {
        (_, None) => return unseen(),
        (true, Some(false)) => return fails("the host's network namespace"),
        (false, Some(_)) => return holds("the host's network, as asked"),
        (true, Some(true)) => {}
    }
    let (Some(interfaces), Some(listening)) = (&facts.interfaces, &facts.listening) else {
        return unseen();
    };
    if let Some(other) = interfaces.iter().find(|name| *name != "lo") {
        return fails(format!("a network namespace of its own, but with the interface {other}"));
    }
    let lacking = wanted.listeners.iter().filter(|at| !listening.contains(at)).count();
    match (wanted.listeners.len(), lacking) {
        (0, _) => holds("a network namespace of its own, with loopback only"),
        (count, 0) => holds(format!(
            "a network namespace of its own, with loopback only; {count} sockets of the launcher \
             listen in it"
        )),
        (count, lacking) => (
            EnforcementLevel::Degraded,
            format!("a network namespace of its own, but {lacking} of {count} sockets are missing"),
        ),
    }
}

pub(super) fn status<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.status.as_ref()?.get(name).map(String::as_str)
}

pub(super) fn own_namespace(facts: &Facts, name: &str, evidence: &str) -> Verdict {
    match facts.own_namespace.get(name) {
        Some(true) => holds(evidence),
        Some(false) => fails(format!("the host's {name} namespace")),
        None => unseen(),
    }
}

/// What cannot be seen in the kernel is taken from the command line that the sandbox program really
/// got, which its own process shows.
pub(super) fn given(facts: &Facts, words: &[&str]) -> Verdict {
    let shown = words.join(" ");
    match &facts.arguments {
        None => unseen(),
        Some(arguments) if arguments.windows(words.len()).any(|window| window == words) => {
            holds(format!("the running sandbox program was given {shown}"))
        }
        Some(_) => fails(format!("the running sandbox program was not given {shown}")),
    }
}

fn processes(wanted: &Expected, facts: &Facts) -> Verdict {
    let (level, evidence) = own_namespace(facts, "pid", "a pid namespace of its own");
    if level != EnforcementLevel::Enforced || !wanted.has("--unshare-cgroup-try") {
        return (level, evidence);
    }
    match facts.own_namespace.get("cgroup") {
        Some(true) => holds("pid and cgroup namespaces of its own"),
        _ => (EnforcementLevel::Degraded, format!("{evidence}, but the host's cgroup namespace")),
    }
}

fn hostname(wanted: &Expected, facts: &Facts) -> Verdict {
    let (level, evidence) = own_namespace(facts, "uts", "a UTS namespace of its own");
    let Some(name) = wanted.hostname.as_deref().filter(|_| level == EnforcementLevel::Enforced)
    else {
        return (level, evidence);
    };
    let (level, reason) = given(facts, &["--hostname", name]);
    (level, format!("{evidence}; {reason}"))
}

fn capabilities(facts: &Facts) -> Verdict {
    const SETS: &[&str] = &["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let mut held = Vec::new();
    for set in SETS {
        match status(facts, set) {
            None => return unseen(),
            Some(bits) if bits.bytes().all(|digit| digit == b'0') => {}
            Some(bits) => held.push(format!("{set} {bits}")),
        }
    }
    if held.is_empty() { holds("all capability sets are empty") } else { fails(held.join(", ")) }
}

fn system_calls(wanted: &Expected, facts: &Facts) -> Verdict {
    let Some(mode) = status(facts, "Seccomp") else { return unseen() };
    let Some(count) = status(facts, "Seccomp_filters").and_then(|count| count.parse::<u64>().ok())
    else {
        return unseen();
    };
    let added = count.saturating_sub(facts.own_filters);
    let asked = u64::try_from(wanted.filters).unwrap_or(u64::MAX);
    match mode {
        "2" if asked > 0 && added >= asked => holds(format!("Seccomp 2, {added} filters")),
        "2" if added > 0 => {
            (EnforcementLevel::Degraded, format!("{added} of {asked} seccomp filters"))
        }
        _ => fails(format!("Seccomp {mode}, {added} of {asked} filters")),
    }
}

fn nested(wanted: &Expected, facts: &Facts) -> Verdict {
    if !wanted.has("--disable-userns") {
        return holds("not restricted, as asked");
    }
    match facts.user_levels {
        None => unseen(),
        Some(levels) if levels < 2 => {
            fails(format!("{levels} user namespace level, where a closed one takes 2"))
        }
        Some(levels) => {
            let (level, reason) = given(facts, &["--disable-userns"]);
            (level, format!("{levels} user namespace levels; {reason}"))
        }
    }
}

pub(super) fn environment(facts: &Facts) -> Verdict {
    match &facts.environment {
        None => unseen(),
        Some(Ok(())) => holds("the process was started with the built environment"),
        Some(Err(names)) => fails(format!("differs in {names}")),
    }
}

pub(super) fn filesystem(wanted: &[ExpectedMount], locked_root: bool, facts: &Facts) -> Verdict {
    let Some(mounts) = &facts.mounts else { return unseen() };
    match facts.own_namespace.get("mnt") {
        Some(true) => {}
        Some(false) => return fails("the host's mount namespace"),
        // A program that its user may not read can't be looked into either.
        None => return unseen(),
    }
    let mut complaints: Vec<String> =
        wanted.iter().filter_map(|mount| complaint(mount, mounts, facts)).collect();
    if locked_root && !mounts.iter().any(|line| line.point == b"/" && line.is_read_only()) {
        complaints.push("/ is writable".to_owned());
    }
    complaints.extend(mounts.iter().filter(|line| is_extra(line, wanted)).map(|line| {
        format!("{} is mounted and nobody asked for it", String::from_utf8_lossy(&line.point))
    }));
    if complaints.is_empty() {
        holds(format!("{} mounts, as asked", mounts.len()))
    } else {
        complaints.truncate(5);
        fails(complaints.join("; "))
    }
}

fn complaint(wanted: &ExpectedMount, mounts: &[MountLine], facts: &Facts) -> Option<String> {
    let at = &wanted.destination;
    // The last one is on top.
    let Some(found) = mounts.iter().rfind(|line| line.point == at.as_bytes()) else {
        return (!wanted.optional).then(|| format!("{at} is not mounted"));
    };
    if wanted.read_only && !found.is_read_only() {
        return Some(format!("{at} is writable"));
    }
    if let Some(identity) = wanted.identity
        && facts.visible.get(at) != Some(&Some(identity))
    {
        return Some(format!("{at} shows another object"));
    }
    match &wanted.what {
        What::Bind => None,
        What::Proc => (found.fstype != "proc").then(|| format!("{at} is not a process list")),
        What::Dev => (found.fstype != "tmpfs").then(|| format!("{at} is not a private one")),
        What::Tmpfs { .. } if found.fstype != "tmpfs" => Some(format!("{at} is not in memory")),
        What::Tmpfs { size, mode } => {
            let real = found.super_option("size").and_then(in_bytes);
            if size.is_some_and(|size| real.is_none_or(|real| real > size.div_ceil(4096) * 4096)) {
                return Some(format!("{at} is not capped as asked"));
            }
            let real = found
                .super_option("mode")
                .map_or(Some(0o1777), |mode| u32::from_str_radix(mode, 8).ok());
            (mode.is_some() && real != *mode).then(|| format!("{at} has another mode"))
        }
    }
}

/// `64k` and the like.
fn in_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if text.ends_with('k') => (digits, 1024),
        Some(digits) if text.ends_with('m') => (digits, 1024 * 1024),
        Some(digits) => (digits, 1024 * 1024 * 1024),
        None => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// A mount that is neither asked for nor below one that is: binds bring their submounts along.
fn is_extra(line: &MountLine, wanted: &[ExpectedMount]) -> bool {
    let Ok(point) = std::str::from_utf8(&line.point) else { return true };
    point != "/"
        && !wanted.iter().any(|mount| {
            let below = point
                .strip_prefix(mount.destination.as_str())
                .is_some_and(|rest| rest.starts_with('/'));
            mount.destination == point || (below && !matches!(mount.what, What::Tmpfs { .. }))
        })
}
