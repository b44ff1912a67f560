use fleet_core::contract_tests;
use fleet_core::port::{ProcessIdentity, ProcessTable};
use fleet_core::test_support::contract::process_table::ProcessSubject;
use fleet_core::test_support::fakes::MemoryProcesses;

struct Memory {
    processes: MemoryProcesses,
    parent: ProcessIdentity,
}

impl ProcessSubject for Memory {
    fn table(&self) -> &dyn ProcessTable {
        &self.processes
    }

    fn spawn(&self) -> u32 {
        self.processes.spawn_below(self.parent.pid, Some((2, 7))).pid
    }

    fn parent(&self) -> ProcessIdentity {
        self.parent.clone()
    }

    fn end(&self, pid: u32) {
        self.processes.end(pid);
    }
}

fn memory() -> Memory {
    let processes = MemoryProcesses::default();
    let parent = processes.spawn();
    Memory { processes, parent }
}

contract_tests!(memory => process_table:
    knows_the_asking_process,
    follows_a_process_to_its_end,
    signals_end_a_process,
    never_takes_one_process_for_another,
    finds_what_lives_below,
    waits_for_the_end,
);

#[test]
fn a_reused_pid_and_a_reboot_make_new_identities() {
    let processes = MemoryProcesses::default();
    let first = processes.spawn();
    let second = processes.reuse(first.pid);
    assert_eq!(second.pid, first.pid);
    assert!(!processes.is_alive(&first).expect("an answer"));
    assert!(processes.is_alive(&second).expect("an answer"));
    processes.reboot();
    assert!(!processes.is_alive(&second).expect("an answer"));
    processes.set_broken(Some("no /proc"));
    assert!(processes.is_alive(&second).is_err());
}
