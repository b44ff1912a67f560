//! [`NoIsolation`]: runs the command as it is and says what that means.

use async_trait::async_trait;
use fleet_core::isolation::{
    BackendName, EnforcementLevel, EnforcementRow, IsolationPolicy, Item, NetworkMode,
};
use fleet_core::launch::{LaunchCommand, LaunchPlan, PlanWord};
use fleet_core::port::{IsolationBackend, PlanError, ProbeEvidence, ProbeFailure};

/// No isolation, on purpose or because nothing else is usable.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoIsolation;

#[async_trait]
impl IsolationBackend for NoIsolation {
    fn name(&self) -> BackendName {
        BackendName::None
    }

    fn enforces_network(&self, mode: NetworkMode) -> bool {
        mode == NetworkMode::Allow
    }

    async fn probe(&self, _: &IsolationPolicy) -> Result<ProbeEvidence, ProbeFailure> {
        Ok(ProbeEvidence { version: String::new(), program: String::new(), features: Vec::new() })
    }

    fn plan(
        &self,
        policy: &IsolationPolicy,
        _: &ProbeEvidence,
        command: &LaunchCommand,
    ) -> Result<LaunchPlan, PlanError> {
        Ok(LaunchPlan {
            backend: BackendName::None,
            argv: command.argv.iter().map(PlanWord::text).collect(),
            descriptors: Vec::new(),
            checks: Vec::new(),
            network: None,
            prepare: Vec::new(),
            cleanup: Vec::new(),
            promise: self.promise(policy),
        })
    }

    fn promise(&self, policy: &IsolationPolicy) -> Vec<EnforcementRow> {
        let row = |item, asked: &str, level, evidence: &str| EnforcementRow {
            item,
            asked: asked.to_owned(),
            level,
            evidence: evidence.to_owned(),
        };
        let missing = |item, asked: &str, evidence: &str| {
            row(item, asked, EnforcementLevel::Missing, evidence)
        };
        let network = if policy.network == NetworkMode::Allow {
            row(Item::Network, "allow", EnforcementLevel::Enforced, "the host's network, as asked")
        } else {
            missing(Item::Network, policy.network.as_str(), "no isolation: the host's network")
        };
        vec![
            missing(
                Item::Filesystem,
                "only what the policy lists",
                "no isolation: every file of the fleet user",
            ),
            network,
            missing(Item::Processes, "own only", "no isolation: the host's processes"),
            missing(Item::Ipc, "own only", "no isolation: the host's IPC"),
            missing(Item::Hostname, "hidden", "no isolation: the host's name"),
            missing(Item::Capabilities, "none", "no isolation: those of the fleet user"),
            missing(Item::NoNewPrivileges, "set", "no isolation"),
            missing(Item::SystemCalls, "filtered", "no isolation: typing into the terminal too"),
            missing(Item::NestedNamespaces, "denied", "no isolation"),
            row(
                Item::Environment,
                "the built one only",
                EnforcementLevel::Enforced,
                "the command is started with it",
            ),
            row(
                Item::Lifetime,
                "ends with its launcher",
                EnforcementLevel::Degraded,
                "its descendants are killed when it ends, unless the launcher itself is killed",
            ),
        ]
    }
}
