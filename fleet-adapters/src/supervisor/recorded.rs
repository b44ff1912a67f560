//! The supervisor that is chosen now, beside whatever really runs each role: a role never has two.

use std::sync::Arc;

use async_trait::async_trait;
use fleet_core::error_chain::chain;
use fleet_core::id::RoleName;
use fleet_core::layout::FleetLayout;
use fleet_core::port::{
    Liveness, Prepared, RunState, Service, Shortcoming, StateStore, Supervisor, SupervisorError,
    SupervisorKind,
};
use serde::{Deserialize, Serialize};

const MAX_RECORD: u64 = 4 * 1024;

/// `supervisor.json`: what a role was last started with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    version: u32,
    kind: SupervisorKind,
}

/// Starts roles with one supervisor, and stops and looks at each with the one that its record names.
#[derive(Debug)]
pub struct RecordedSupervisor {
    chosen: Arc<dyn Supervisor>,
    others: Vec<Arc<dyn Supervisor>>,
    store: Arc<dyn StateStore>,
    layout: FleetLayout,
}

impl RecordedSupervisor {
    /// Starts with `chosen`; `others` may have been chosen earlier.
    pub fn new(
        chosen: Arc<dyn Supervisor>,
        others: Vec<Arc<dyn Supervisor>>,
        store: Arc<dyn StateStore>,
        layout: FleetLayout,
    ) -> Self {
        Self { chosen, others, store, layout }
    }

    fn recorded(&self, role: &RoleName) -> Option<SupervisorKind> {
        let bytes =
            self.store.read(&self.layout.role(role).supervisor_record(), MAX_RECORD).ok()??;
        serde_json::from_slice::<Record>(&bytes).ok().map(|record| record.kind)
    }

    /// What runs a role, as far as its record tells.
    fn of(&self, role: &RoleName) -> &dyn Supervisor {
        let kind = self.recorded(role);
        let other = self.others.iter().find(|other| Some(other.kind()) == kind);
        &**other.unwrap_or(&self.chosen)
    }
}

#[async_trait]
impl Supervisor for RecordedSupervisor {
    fn kind(&self) -> SupervisorKind {
        self.chosen.kind()
    }

    fn survives_reboot(&self) -> bool {
        self.chosen.survives_reboot()
    }

    async fn prepare(&self, boot: bool) -> Result<Prepared, SupervisorError> {
        self.chosen.prepare(boot).await
    }

    async fn inspect(&self) -> Vec<Shortcoming> {
        self.chosen.inspect().await
    }

    async fn start(&self, service: &Service) -> Result<(), SupervisorError> {
        let role = &service.role;
        let failed =
            |detail| SupervisorError::Failed { action: "start", role: role.clone(), detail };
        let before = self.of(role);
        if before.kind() != self.chosen.kind() {
            // Stopped for good: the other one would start it again with the machine.
            before.stop(service).await?;
        }
        let trees = self.layout.role(role);
        let record = Record { version: 1, kind: self.chosen.kind() };
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        // Before the start: what runs without a record would be looked for in the wrong place.
        self.store
            .ensure_dir(&trees.control)
            .and_then(|()| self.store.write(&trees.supervisor_record(), &bytes, 0o600))
            .map_err(|error| failed(chain(&error)))?;
        self.chosen.start(service).await
    }

    async fn stop(&self, service: &Service) -> Result<(), SupervisorError> {
        self.of(&service.role).stop(service).await
    }

    async fn liveness(&self, service: &Service) -> Liveness {
        if self.recorded(&service.role).is_none() && self.chosen.kind() != SupervisorKind::None {
            // Never started: nothing to ask for.
            let detail = "never started".to_owned();
            return Liveness { state: RunState::Stopped, detail, pid: None };
        }
        self.of(&service.role).liveness(service).await
    }
}
