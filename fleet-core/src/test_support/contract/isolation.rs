//! What every [`IsolationBackend`] must do with a policy, as far as it can be seen without a start.

use std::collections::BTreeSet;

use crate::isolation::{BackendName, EnforcementLevel, IsolationPolicy, Item, NetworkMode};
use crate::launch::{DescriptorRequest, LaunchCommand, LaunchPlan, PlanWord};
use crate::port::{IsolationBackend, ProbeEvidence};

const MODES: [NetworkMode; 4] =
    [NetworkMode::Deny, NetworkMode::Allow, NetworkMode::Broker, NetworkMode::Allowlist];
/// Rows that every report has, whatever the policy.
const ROWS: [Item; 11] = [
    Item::Filesystem,
    Item::Network,
    Item::Processes,
    Item::Ipc,
    Item::Hostname,
    Item::Capabilities,
    Item::NoNewPrivileges,
    Item::SystemCalls,
    Item::NestedNamespaces,
    Item::Environment,
    Item::Lifetime,
];

/// Runs the suite. `policy` must be one that the backend takes with one of the networks at least.
///
/// # Panics
/// At the first wrong answer.
pub fn isolation_contract(
    backend: &dyn IsolationBackend,
    evidence: &ProbeEvidence,
    policy: &IsolationPolicy,
    command: &LaunchCommand,
) {
    let mut planned = 0;
    for network in MODES {
        let policy = IsolationPolicy { network, ..policy.clone() };
        let plan = backend.plan(&policy, evidence, command);
        assert_eq!(plan, backend.plan(&policy, evidence, command), "the same in, the same out");
        promise_is_whole(backend, &policy);
        let Ok(plan) = plan else {
            assert!(!backend.enforces_network(network), "{network} is enforced, and not planned");
            continue;
        };
        planned += 1;
        assert_eq!(plan.backend, backend.name());
        assert_eq!(plan.promise, backend.promise(&policy), "the plan promises what is promised");
        tail_is_the_command(&plan, command);
        sources_are_of_the_policy(&plan, &policy);
        words_name_descriptors(&plan);
        let own = plan.attestation().is_some();
        assert_eq!(own, backend.name() != BackendName::None, "whoever confines asks what holds");
    }
    assert!(planned > 0, "no network can be had");
}

fn promise_is_whole(backend: &dyn IsolationBackend, policy: &IsolationPolicy) {
    let promise = backend.promise(policy);
    let items: BTreeSet<Item> = promise.iter().map(|row| row.item).collect();
    assert_eq!(items.len(), promise.len(), "a row twice");
    assert!(ROWS.iter().all(|item| items.contains(item)), "a row too few: {items:?}");
    for row in &promise {
        assert!(!row.asked.is_empty() && !row.evidence.is_empty(), "without words: {row:?}");
        let network = row.item == Item::Network && !backend.enforces_network(policy.network);
        assert!(!network || row.level == EnforcementLevel::Missing, "{row:?}");
    }
    // What does not hold to the full is told by a row.
    let short = backend.shortfalls(policy);
    let weak = promise.iter().any(|row| row.level != EnforcementLevel::Enforced);
    assert!(short.is_empty() || weak, "{short:?} and every row is enforced");
}

fn tail_is_the_command(plan: &LaunchPlan, command: &LaunchCommand) {
    let from = plan.argv.len().saturating_sub(command.argv.len());
    let tail: Vec<PlanWord> = command.argv.iter().map(PlanWord::text).collect();
    assert_eq!(plan.argv.get(from..), Some(tail.as_slice()), "the tail is the command");
}

fn sources_are_of_the_policy(plan: &LaunchPlan, policy: &IsolationPolicy) {
    for request in &plan.descriptors {
        let DescriptorRequest::Source { path, identity, file } = request else { continue };
        let mount = policy.mounts.iter().find(|mount| mount.source.as_path() == path);
        let mount = mount.unwrap_or_else(|| panic!("{path} is in no mount of the policy"));
        assert_eq!((mount.identity, mount.kind), (Some(*identity), Some(*file)), "{path}");
    }
    for check in &plan.checks {
        assert!(policy.mounts.iter().any(|it| it.source.as_path() == check.path), "{check:?}");
    }
}

fn words_name_descriptors(plan: &LaunchPlan) {
    for word in &plan.argv {
        if let PlanWord::Descriptor(index) | PlanWord::DescriptorPath(index) = word {
            assert!(*index < plan.descriptors.len(), "{word:?}");
        }
    }
}
