use std::sync::Arc;

use fleet_core::contract_tests;
use fleet_core::port::{RunState, Service, Supervisor, SupervisorKind};
use fleet_core::test_support::contract::supervisor::SupervisorSubject;
use fleet_core::test_support::fakes::{MemoryProcesses, MemorySupervisor};

struct Memory {
    supervisor: MemorySupervisor,
}

impl SupervisorSubject for Memory {
    fn supervisor(&self) -> &dyn Supervisor {
        &self.supervisor
    }

    fn service(&self, role: &str) -> Service {
        Service { role: role.parse().expect("a role name"), config: None }
    }
}

fn memory() -> Memory {
    let processes = Arc::new(MemoryProcesses::default());
    Memory { supervisor: MemorySupervisor::new(SupervisorKind::None, processes) }
}

contract_tests!(memory => supervisor:
    begins_stopped,
    starts_and_stops,
    starting_twice_changes_nothing,
    roles_are_apart,
);

#[tokio::test]
async fn refusals_and_doubts_are_told() {
    let memory = memory();
    let service = memory.service("Rev");
    memory.supervisor.refuse(&service.role, "disk full");
    let error = memory.supervisor.start(&service).await.expect_err("refused");
    assert!(error.to_string().ends_with("disk full"), "{error}");
    assert!(memory.supervisor.started().is_empty());
    memory.supervisor.hide(&service.role, "no answer");
    let liveness = memory.supervisor.liveness(&service).await;
    assert_eq!((liveness.state, liveness.detail.as_str()), (RunState::Unknown, "no answer"));
}
