//! Judges a sandbox without namespaces. The kernel shows nobody which rules of Landlock a process is
//! under, so what rests on them is told by the answers from inside alone; filters, capabilities and
//! the environment can be seen.

use fleet_core::isolation::{EnforcementLevel, EnforcementRow, Item};

use super::facts::Facts;
use super::rows::{Verdict, environment, fails, holds, status, unseen};

/// The filters that a sandbox without namespaces has.
const FILTERS: u64 = 3;

pub(super) fn judge(promised: &EnforcementRow, facts: &Facts) -> Verdict {
    match promised.item {
        Item::Environment => environment(facts),
        Item::NoNewPrivileges => match status(facts, "NoNewPrivs") {
            Some("1") => holds("NoNewPrivs 1"),
            Some(other) => fails(format!("NoNewPrivs {other}")),
            None => unseen(),
        },
        Item::Capabilities => capabilities(facts),
        // What these rows say is done by filters.
        Item::SystemCalls | Item::NestedNamespaces | Item::Ipc => filters(facts),
        Item::Network => match filters(facts) {
            (EnforcementLevel::Enforced, seen) => {
                (promised.level, format!("{}; {seen}", promised.evidence))
            }
            other => other,
        },
        // Seen from inside alone, or never the case.
        Item::Filesystem
        | Item::Processes
        | Item::Hostname
        | Item::Lifetime
        | Item::Memory
        | Item::Pids
        | Item::Cpu => (promised.level, promised.evidence.clone()),
    }
}

fn capabilities(facts: &Facts) -> Verdict {
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        match status(facts, set) {
            None => return unseen(),
            Some(bits) if bits.bytes().all(|digit| digit == b'0') => {}
            Some(bits) => return fails(format!("{set} {bits}")),
        }
    }
    holds("none is held, and no_new_privs keeps the bounding set useless")
}

fn filters(facts: &Facts) -> Verdict {
    let count = status(facts, "Seccomp_filters").and_then(|count| count.parse::<u64>().ok());
    let (Some(mode), Some(count)) = (status(facts, "Seccomp"), count) else { return unseen() };
    let added = count.saturating_sub(facts.own_filters);
    if mode == "2" && added >= FILTERS {
        holds(format!("Seccomp 2, {added} filters"))
    } else {
        fails(format!("Seccomp {mode}, {added} of {FILTERS} filters"))
    }
}
