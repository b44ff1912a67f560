//! [`PodmanIsolation`]: the port's methods, each by one of the neighbours.

use std::sync::Arc;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{BackendName, EnforcementRow, IsolationPolicy, Item, NetworkMode};
use fleet_core::launch::{LaunchCommand, LaunchPlan};
use fleet_core::port::{Exec, IsolationBackend, PlanError, ProbeEvidence, ProbeFailure};

use super::host::{self, PodmanHost};
use super::{argv, probe};
use crate::bubblewrap::HostView;
use crate::bubblewrap::argv::HOSTNAME;
use crate::promise::{self, enforced};

/// Confines with the `podman` program: a container without an image, of empty mount points and the
/// mounts of the policy.
#[derive(Debug)]
pub struct PodmanIsolation {
    program: Option<Utf8PathBuf>,
    host: HostView,
    own: PodmanHost,
    launcher: Utf8PathBuf,
    exec: Arc<dyn Exec>,
}

impl PodmanIsolation {
    /// Uses the first `podman` of the directories, which come from the caller's `PATH`. `launcher` is
    /// the program whose `_pane` makes the trial; `user` is as for [`HostView::gather`].
    pub fn new(
        path_directories: &[Utf8PathBuf],
        host: HostView,
        launcher: Utf8PathBuf,
        exec: Arc<dyn Exec>,
    ) -> Self {
        let own = PodmanHost::gather(path_directories, &host);
        Self::with(host::find(path_directories), host, own, launcher, exec)
    }

    /// Whether nothing that podman needs beside itself is known to be missing.
    ///
    /// # Errors
    /// What is.
    pub fn needs(&self) -> Result<(), ProbeFailure> {
        probe::needs(&self.own, &self.host)
    }

    /// With what is known of the host given, for plans that must not depend on it.
    pub fn with(
        program: Option<Utf8PathBuf>,
        host: HostView,
        own: PodmanHost,
        launcher: Utf8PathBuf,
        exec: Arc<dyn Exec>,
    ) -> Self {
        Self { program, host, own, launcher, exec }
    }
}

#[async_trait]
impl IsolationBackend for PodmanIsolation {
    fn name(&self) -> BackendName {
        BackendName::Podman
    }

    fn enforces_network(&self, _mode: NetworkMode) -> bool {
        true
    }

    async fn probe(&self, policy: &IsolationPolicy) -> Result<ProbeEvidence, ProbeFailure> {
        let program = self.program.as_ref().ok_or(ProbeFailure::Missing {
            program: "podman".to_owned(),
            hint: "install it: apt install podman runc uidmap catatonit",
        })?;
        self.needs()?;
        let evidence = probe::evidence(self.exec.as_ref(), program).await?;
        let plan = |policy: &IsolationPolicy, command: &LaunchCommand| {
            self.plan(policy, &evidence, command)
        };
        probe::trial(self.exec.as_ref(), &self.launcher, policy, plan).await?;
        Ok(evidence)
    }

    fn plan(
        &self,
        policy: &IsolationPolicy,
        evidence: &ProbeEvidence,
        command: &LaunchCommand,
    ) -> Result<LaunchPlan, PlanError> {
        argv::plan(&self.host, &self.own, policy, evidence, command, self.promise(policy))
    }

    async fn clear(&self, control: &Utf8Path) -> bool {
        let control = control.to_owned();
        let work = tokio::task::spawn_blocking(move || crate::launch::clear_left(&control));
        work.await.unwrap_or(false)
    }

    fn promise(&self, policy: &IsolationPolicy) -> Vec<EnforcementRow> {
        vec![
            enforced(
                Item::Filesystem,
                "only what the policy lists",
                "a container without an image, with the policy's mounts and the system view",
            ),
            promise::network(policy),
            enforced(Item::Processes, "own only", "pid and cgroup namespaces of its own"),
            enforced(Item::Ipc, "own only", "an IPC namespace of its own"),
            enforced(Item::Hostname, HOSTNAME, "a UTS namespace of its own"),
            enforced(Item::Capabilities, "none", "all dropped, in a user namespace of its own"),
            enforced(Item::NoNewPrivileges, "set", "no_new_privs"),
            enforced(Item::SystemCalls, "filtered", "podman's seccomp profile and our filters"),
            enforced(Item::NestedNamespaces, "denied", "the seccomp filters"),
            enforced(
                Item::Environment,
                "the built one only",
                "the command is started with it; podman never learns it",
            ),
            enforced(
                Item::Lifetime,
                "ends with its launcher",
                "a keeper outside ends it when the launcher is gone",
            ),
        ]
    }
}
