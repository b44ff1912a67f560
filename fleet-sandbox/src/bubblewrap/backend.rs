//! [`BubblewrapIsolation`]: the port's methods, each by one of the neighbours.

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use fleet_core::isolation::{
    BackendName, EnforcementLevel, EnforcementRow, IsolationPolicy, Item, NetworkMode,
};
use fleet_core::launch::{LaunchCommand, LaunchPlan};
use fleet_core::port::{Exec, IsolationBackend, PlanError, ProbeEvidence, ProbeFailure};

use super::system::HostView;
use super::{argv, probe};

/// Confines with the `bwrap` program: namespaces, a file tree of its own, no capabilities, filters.
#[derive(Debug)]
pub struct BubblewrapIsolation {
    program: Option<Utf8PathBuf>,
    host: HostView,
    exec: Arc<dyn Exec>,
}

impl BubblewrapIsolation {
    /// Uses the first `bwrap` of the directories, which come from the caller's `PATH`.
    pub fn new(path_directories: &[Utf8PathBuf], host: HostView, exec: Arc<dyn Exec>) -> Self {
        Self { program: HostView::find_program(path_directories, "bwrap"), host, exec }
    }
}

#[async_trait]
impl IsolationBackend for BubblewrapIsolation {
    fn name(&self) -> BackendName {
        BackendName::Bubblewrap
    }

    fn enforces_network(&self, _mode: NetworkMode) -> bool {
        true
    }

    async fn probe(&self, policy: &IsolationPolicy) -> Result<ProbeEvidence, ProbeFailure> {
        let program = self.program.as_ref().ok_or(ProbeFailure::Missing {
            program: "bwrap".to_owned(),
            hint: "install it: apt install bubblewrap",
        })?;
        probe::run(self.exec.as_ref(), program, &self.host, policy).await
    }

    fn plan(
        &self,
        policy: &IsolationPolicy,
        evidence: &ProbeEvidence,
        command: &LaunchCommand,
    ) -> Result<LaunchPlan, PlanError> {
        argv::plan(&self.host, policy, evidence, command, self.promise(policy))
    }

    fn promise(&self, policy: &IsolationPolicy) -> Vec<EnforcementRow> {
        let row = |item, asked: &str, evidence: &str| EnforcementRow {
            item,
            asked: asked.to_owned(),
            level: EnforcementLevel::Enforced,
            evidence: evidence.to_owned(),
        };
        let network = match policy.network {
            NetworkMode::Allow => row(Item::Network, "allow", "the host's network, as asked"),
            NetworkMode::Deny => row(Item::Network, "deny", "a network namespace of its own"),
            NetworkMode::Broker | NetworkMode::Allowlist => row(
                Item::Network,
                &reachable(policy),
                "a network namespace of its own, in which the launcher serves what is listed",
            ),
        };
        let nested = if policy.nested_sandbox {
            row(Item::NestedNamespaces, "allowed", "not restricted, as asked (nested_sandbox)")
        } else {
            row(Item::NestedNamespaces, "denied", "--disable-userns and the seccomp filter")
        };
        vec![
            row(
                Item::Filesystem,
                "only what the policy lists",
                "a mount namespace that holds the policy's mounts and the system view",
            ),
            network,
            row(Item::Processes, "own only", "pid and cgroup namespaces of its own"),
            row(Item::Ipc, "own only", "an IPC namespace of its own"),
            row(Item::Hostname, argv::HOSTNAME, "a UTS namespace of its own"),
            row(Item::Capabilities, "none", "all dropped"),
            row(Item::NoNewPrivileges, "set", "no_new_privs"),
            row(
                Item::SystemCalls,
                if policy.nested_sandbox { "filtered, namespaces allowed" } else { "filtered" },
                "seccomp filters",
            ),
            nested,
            row(Item::Environment, "the built one only", "the sandbox is started with it"),
            row(Item::Lifetime, "ends with its launcher", "--die-with-parent"),
        ]
    }
}

/// The mode with every endpoint that can be reached.
pub(crate) fn reachable(policy: &IsolationPolicy) -> String {
    let list: Vec<String> = policy.reachable.iter().map(ToString::to_string).collect();
    let list = if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
    format!("{}: {list}", policy.network)
}
