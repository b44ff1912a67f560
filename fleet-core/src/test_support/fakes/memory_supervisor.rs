use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::MemoryProcesses;
use crate::id::RoleName;
use crate::port::{
    Liveness, ProcessIdentity, ProcessTable, RunState, Service, Signal, Supervisor,
    SupervisorError, SupervisorKind,
};
use crate::test_support::sync::lock;

type OnStart = Box<dyn Fn(&Service, &ProcessIdentity) + Send + Sync>;

/// Keeps runners that are only entries of a [`MemoryProcesses`].
pub struct MemorySupervisor {
    kind: SupervisorKind,
    processes: Arc<MemoryProcesses>,
    state: Mutex<State>,
    on_start: Mutex<Option<OnStart>>,
}

#[derive(Debug, Default)]
struct State {
    runners: BTreeMap<RoleName, ProcessIdentity>,
    started: Vec<Service>,
    stopped: Vec<Service>,
    refusals: BTreeMap<RoleName, String>,
    unknown: BTreeMap<RoleName, String>,
}

impl fmt::Debug for MemorySupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySupervisor")
            .field("kind", &self.kind)
            .field("state", &lock(&self.state))
            .finish_non_exhaustive()
    }
}

impl MemorySupervisor {
    /// A supervisor that says it is of this kind.
    pub fn new(kind: SupervisorKind, processes: Arc<MemoryProcesses>) -> Self {
        let (state, on_start) = (Mutex::default(), Mutex::default());
        Self { kind, processes, state, on_start }
    }

    /// What a runner does as soon as it runs, for example publish a status.
    pub fn on_start(&self, action: impl Fn(&Service, &ProcessIdentity) + Send + Sync + 'static) {
        *lock(&self.on_start) = Some(Box::new(action));
    }

    /// Lets start and stop of a role fail with these words.
    pub fn refuse(&self, role: &RoleName, detail: &str) {
        lock(&self.state).refusals.insert(role.clone(), detail.to_owned());
    }

    /// Leaves open whether the role runs, for this reason.
    pub fn hide(&self, role: &RoleName, detail: &str) {
        lock(&self.state).unknown.insert(role.clone(), detail.to_owned());
    }

    /// The services that were started, in order; those that ran already are left out.
    pub fn started(&self) -> Vec<Service> {
        lock(&self.state).started.clone()
    }

    /// The services that were stopped, in order; those that did not run are left out.
    pub fn stopped(&self) -> Vec<Service> {
        lock(&self.state).stopped.clone()
    }

    fn runner(&self, role: &RoleName) -> Option<ProcessIdentity> {
        let runner = lock(&self.state).runners.get(role).cloned()?;
        matches!(self.processes.is_alive(&runner), Ok(true)).then_some(runner)
    }

    fn refusal(&self, action: &'static str, role: &RoleName) -> Result<(), SupervisorError> {
        match lock(&self.state).refusals.get(role).cloned() {
            Some(detail) => Err(SupervisorError::Failed { action, role: role.clone(), detail }),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Supervisor for MemorySupervisor {
    fn kind(&self) -> SupervisorKind {
        self.kind
    }

    fn survives_reboot(&self) -> bool {
        self.kind != SupervisorKind::None
    }

    async fn start(&self, service: &Service) -> Result<(), SupervisorError> {
        self.refusal("start", &service.role)?;
        if self.runner(&service.role).is_some() {
            return Ok(());
        }
        let runner = self.processes.spawn();
        {
            let mut state = lock(&self.state);
            state.runners.insert(service.role.clone(), runner.clone());
            state.started.push(service.clone());
        }
        if let Some(action) = lock(&self.on_start).as_ref() {
            action(service, &runner);
        }
        Ok(())
    }

    async fn stop(&self, service: &Service) -> Result<(), SupervisorError> {
        self.refusal("stop", &service.role)?;
        if let Some(runner) = self.runner(&service.role) {
            // Both, as for a runner that does not listen.
            for signal in [Signal::Term, Signal::Kill] {
                let _outcome = self.processes.signal(&runner, signal);
            }
            lock(&self.state).stopped.push(service.clone());
        }
        Ok(())
    }

    async fn liveness(&self, service: &Service) -> Liveness {
        if let Some(detail) = lock(&self.state).unknown.get(&service.role).cloned() {
            return Liveness { state: RunState::Unknown, detail, pid: None };
        }
        match self.runner(&service.role) {
            Some(runner) => Liveness {
                state: RunState::Running,
                detail: format!("runner has pid {}", runner.pid),
                pid: Some(runner.pid),
            },
            None => {
                Liveness { state: RunState::Stopped, detail: "no runner".to_owned(), pid: None }
            }
        }
    }
}
