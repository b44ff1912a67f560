use fleet_core::contract_tests;
use fleet_core::port::{Service, Supervisor};
use fleet_core::test_support::contract::supervisor::SupervisorSubject;

use crate::integration::stand_in::Fleet;

impl SupervisorSubject for Fleet {
    fn supervisor(&self) -> &dyn Supervisor {
        Fleet::supervisor(self)
    }

    fn service(&self, role: &str) -> Service {
        Fleet::service(self, role)
    }
}

fn fleet() -> Fleet {
    Fleet::new()
}

contract_tests!(fleet => supervisor:
    begins_stopped,
    starts_and_stops,
    starting_twice_changes_nothing,
    roles_are_apart,
);
