//! [`BubblewrapIsolation`]: the port's methods, each by one of the neighbours.

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use fleet_core::isolation::{BackendName, EnforcementRow, IsolationPolicy, Item, NetworkMode};
use fleet_core::launch::{LaunchCommand, LaunchPlan};
use fleet_core::port::{Exec, IsolationBackend, PlanError, ProbeEvidence, ProbeFailure};

use super::system::HostView;
use super::{argv, probe};
use crate::promise::{self, enforced};

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
        let nested = if policy.nested_sandbox {
            enforced(Item::NestedNamespaces, "allowed", "not restricted, as asked (nested_sandbox)")
        } else {
            enforced(Item::NestedNamespaces, "denied", "--disable-userns and the seccomp filter")
        };
        vec![
            enforced(
                Item::Filesystem,
                "only what the policy lists",
                "a mount namespace that holds the policy's mounts and the system view",
            ),
            promise::network(policy),
            enforced(Item::Processes, "own only", "pid and cgroup namespaces of its own"),
            enforced(Item::Ipc, "own only", "an IPC namespace of its own"),
            enforced(Item::Hostname, argv::HOSTNAME, "a UTS namespace of its own"),
            enforced(Item::Capabilities, "none", "all dropped"),
            enforced(Item::NoNewPrivileges, "set", "no_new_privs"),
            enforced(
                Item::SystemCalls,
                if policy.nested_sandbox { "filtered, namespaces allowed" } else { "filtered" },
                "seccomp filters",
            ),
            nested,
            enforced(Item::Environment, "the built one only", "the sandbox is started with it"),
            enforced(Item::Lifetime, "ends with its launcher", "--die-with-parent"),
        ]
    }
}
