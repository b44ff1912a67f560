use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8Path;
use fleet_core::contract_tests;
use fleet_core::port::{ConsolePresence, NewConsole, TmuxAddress, TmuxServers};
use fleet_core::test_support::contract::tmux::TmuxSubject;
use fleet_core::test_support::fakes::{MemoryProcesses, MemoryTmuxServers, Typed};

struct Memory {
    processes: Arc<MemoryProcesses>,
    servers: MemoryTmuxServers,
}

#[async_trait]
impl TmuxSubject for Memory {
    fn servers(&self) -> &dyn TmuxServers {
        &self.servers
    }

    fn address(&self, role: &str) -> TmuxAddress {
        let socket = Utf8Path::new("/fleet/control").join(role).join("tmux.sock");
        TmuxAddress { socket, session: role.parse().expect("a role name") }
    }

    fn console(&self) -> NewConsole {
        let argv = vec!["cat".to_owned(), "-u".to_owned()];
        NewConsole { argv, cwd: "/".into(), columns: 200, rows: 50 }
    }

    fn end_program(&self, pid: u32) {
        self.processes.end(pid);
    }

    async fn pause(&self) {}
}

fn memory() -> Memory {
    let processes = Arc::new(MemoryProcesses::default());
    let servers = MemoryTmuxServers::new(Arc::clone(&processes));
    Memory { processes, servers }
}

contract_tests!(memory => tmux:
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

#[tokio::test]
async fn a_broken_server_is_unknown_and_what_is_typed_is_remembered() {
    let memory = memory();
    let address = memory.address("Rev");
    let tmux = memory.servers.server(address.clone());
    tmux.open(&memory.console()).await.expect("it opens");
    tmux.paste("a\nb").await.expect("it is typed");
    assert_eq!(memory.servers.typed(&address), [Typed::Text("a\nb".to_owned())]);
    memory.servers.set_broken(&address.socket, Some("permission denied"));
    let unknown = ConsolePresence::Unknown("permission denied".to_owned());
    assert_eq!(tmux.presence().await, unknown);
    assert!(tmux.kill().await.is_err());
}
