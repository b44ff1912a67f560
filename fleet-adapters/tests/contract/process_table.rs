use fleet_adapters::ProcTable;
use fleet_core::contract_tests;
use fleet_core::port::{ProcessIdentity, ProcessTable};
use fleet_core::test_support::contract::process_table::ProcessSubject;

use crate::support::Children;

struct Real {
    table: ProcTable,
    children: Children,
}

impl ProcessSubject for Real {
    fn table(&self) -> &dyn ProcessTable {
        &self.table
    }

    fn spawn(&self) -> u32 {
        self.children.sleeper()
    }

    fn parent(&self) -> ProcessIdentity {
        self.table.own().expect("this process lives")
    }

    fn end(&self, pid: u32) {
        self.children.end(pid);
    }
}

fn real() -> Real {
    Real { table: ProcTable::new(), children: Children::default() }
}

contract_tests!(real => process_table:
    knows_the_asking_process,
    follows_a_process_to_its_end,
    signals_end_a_process,
    never_takes_one_process_for_another,
    finds_what_lives_below,
    waits_for_the_end,
);
