//! [`LandlockIsolation`]: the port's methods, each by one of the neighbours.

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use fleet_core::isolation::{
    BackendName, EnforcementRow, IsolationPolicy, NetworkMode, SystemView,
};
use fleet_core::launch::{LaunchCommand, LaunchPlan};
use fleet_core::port::{Exec, IsolationBackend, PlanError, ProbeEvidence, ProbeFailure};

use super::{TESTED_ABI, plan, probe, promise, refuse, rules};
use crate::bubblewrap::HostView;
use crate::sys;

/// Confines with the kernel's Landlock and filters of system calls, without namespaces and without
/// another program: less than [`BubblewrapIsolation`](crate::BubblewrapIsolation), for hosts that
/// forbid that.
#[derive(Debug)]
pub struct LandlockIsolation {
    /// This program, which is also the first one inside.
    binary: Utf8PathBuf,
    host: HostView,
    /// Version of the kernel's interface; 0 where there is none.
    abi: u32,
    exec: Arc<dyn Exec>,
}

impl LandlockIsolation {
    /// `binary` is this program, for the trial; asks the kernel for the version of its interface.
    pub fn new(binary: Utf8PathBuf, host: HostView, exec: Arc<dyn Exec>) -> Self {
        let abi = sys::landlock_abi().unwrap_or(0);
        Self { binary, host, abi: abi.min(TESTED_ABI), exec }
    }

    /// The same, as on a kernel that has no more than this version. For tests: a newer kernel does
    /// what an older one does when it is asked for that.
    #[must_use]
    pub fn with_abi_at_most(self, abi: u32) -> Self {
        Self { abi: self.abi.min(abi), ..self }
    }

    /// Version of the kernel's interface that it uses; 0 where there is none.
    pub fn abi(&self) -> u32 {
        self.abi
    }
}

#[async_trait]
impl IsolationBackend for LandlockIsolation {
    fn name(&self) -> BackendName {
        BackendName::Landlock
    }

    fn enforces_network(&self, mode: NetworkMode) -> bool {
        refuse::enforces(mode)
    }

    async fn probe(&self, policy: &IsolationPolicy) -> Result<ProbeEvidence, ProbeFailure> {
        if let Some(what) = refuse::refusal(policy) {
            return Err(ProbeFailure::CannotEnforce { backend: BackendName::Landlock, what });
        }
        probe::run(self.exec.as_ref(), &self.binary, &self.host, self.abi, policy).await
    }

    fn plan(
        &self,
        policy: &IsolationPolicy,
        _: &ProbeEvidence,
        command: &LaunchCommand,
    ) -> Result<LaunchPlan, PlanError> {
        plan::plan(&self.host, self.abi, policy, command, self.promise(policy))
    }

    fn promise(&self, policy: &IsolationPolicy) -> Vec<EnforcementRow> {
        promise::rows(self.abi, policy)
    }

    fn shortfalls(&self, policy: &IsolationPolicy) -> Vec<String> {
        refuse::shortfalls(self.abi, policy)
    }

    fn variables(&self, policy: &IsolationPolicy) -> Vec<(&'static str, String)> {
        let mut variables = rules::private(policy).map_or_else(Vec::new, |private| {
            vec![("HOME", private.home()), ("TMPDIR", private.temporary())]
        });
        if policy.system == SystemView::Curated {
            // Git ends where its `/etc/gitconfig` is there and cannot be read.
            variables.push(("GIT_CONFIG_NOSYSTEM", "1".to_owned()));
        }
        variables
    }
}
