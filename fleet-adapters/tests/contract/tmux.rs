use async_trait::async_trait;
use fleet_core::contract_tests;
use fleet_core::port::{NewConsole, TmuxAddress, TmuxServers};
use fleet_core::test_support::contract::tmux::TmuxSubject;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::Servers;

#[async_trait]
impl TmuxSubject for Servers {
    fn servers(&self) -> &dyn TmuxServers {
        &self.servers
    }

    fn address(&self, role: &str) -> TmuxAddress {
        Servers::address(self, role)
    }

    fn console(&self) -> NewConsole {
        self.running(&["cat", "-u"])
    }

    fn end_program(&self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, Signal::KILL).expect("it is killed");
    }

    async fn pause(&self) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

fn real() -> Servers {
    Servers::new()
}

contract_tests!(real => tmux:
    begins_absent,
    opens_and_ends,
    opens_once,
    refuses_what_a_shell_would_run,
    ends_with_its_program,
    names_are_exact,
    names_are_exact_on_one_server,
    shows_what_was_pasted,
    presses_a_key_only_on_what_shows,
    refuses_bad_text,
);
