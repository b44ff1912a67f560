//! Rows that backends promise alike.

use fleet_core::isolation::{EnforcementLevel, EnforcementRow, IsolationPolicy, Item, NetworkMode};

/// A row that holds once the sandbox runs.
pub(crate) fn enforced(item: Item, asked: &str, evidence: &str) -> EnforcementRow {
    EnforcementRow {
        item,
        asked: asked.to_owned(),
        level: EnforcementLevel::Enforced,
        evidence: evidence.to_owned(),
    }
}

/// The network of a backend with namespaces.
pub(crate) fn network(policy: &IsolationPolicy) -> EnforcementRow {
    match policy.network {
        NetworkMode::Allow => enforced(Item::Network, "allow", "the host's network, as asked"),
        NetworkMode::Deny => enforced(Item::Network, "deny", "a network namespace of its own"),
        NetworkMode::Broker | NetworkMode::Allowlist => enforced(
            Item::Network,
            &reachable(policy),
            "a network namespace of its own, in which the launcher serves what is listed",
        ),
    }
}

/// The mode with every endpoint that can be reached.
fn reachable(policy: &IsolationPolicy) -> String {
    let list: Vec<String> = policy.reachable.iter().map(ToString::to_string).collect();
    let list = if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
    format!("{}: {list}", policy.network)
}
