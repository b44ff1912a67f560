use fleet_adapters::ProcTable;
use fleet_adapters::supervisor::{DetachRequest, detach};
use fleet_core::port::{ProcessTable, Signal, Supervisor};

use super::stand_in::{Fleet, enter_if_asked};
use crate::support::{path_variable, temp, utf8};

/// Fields of `/proc/<pid>/stat` from the state on.
fn stat(pid: u32) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, rest) = stat.rsplit_once(") ").expect("a stat line");
    rest.split(' ').map(str::to_owned).collect()
}

#[tokio::test]
async fn a_daemon_leaves_session_group_and_directory() {
    enter_if_asked().await;
    let fleet = Fleet::new();
    let service = fleet.service("Rev");
    fleet.supervisor().start(&service).await.expect("it starts");
    let pid = fleet.supervisor().liveness(&service).await.pid.expect("a pid");
    let fields = stat(pid);
    let (group, session, terminal) = (&fields[2], &fields[3], &fields[4]);
    assert_eq!(group, &pid.to_string());
    assert_eq!(session, &pid.to_string());
    assert_eq!(terminal, "0", "it has no terminal");
    let link = |what: &str| std::fs::read_link(format!("/proc/{pid}/{what}")).expect("a link");
    assert_eq!(link("cwd").to_str(), Some("/"));
    assert_eq!(link("fd/0").to_str(), Some("/dev/null"));
    assert_eq!(link("fd/2"), fleet.trees("Rev").runner_log());
    fleet.supervisor().stop(&service).await.expect("it stops");
}

#[tokio::test]
async fn a_log_is_private_and_never_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let dir = temp();
    let (log, link) = (utf8(&dir).join("runner.log"), utf8(&dir).join("link.log"));
    symlink(&log, &link).expect("it is made");
    let sleep = camino::Utf8Path::new("/bin/sleep");
    let env = [("PATH".to_owned(), path_variable())];
    let args = ["600".to_owned()];
    let request = |log| DetachRequest { binary: sleep, args: &args, env: &env, log };
    assert!(detach(&request(&link)).is_err(), "a link");
    assert!(!log.exists());
    let identity = detach(&request(&log)).expect("it starts");
    let table = ProcTable::new();
    assert!(table.is_alive(&identity).expect("an answer"));
    assert_eq!(log.metadata().expect("it exists").permissions().mode() & 0o777, 0o600);
    table.signal(&identity, Signal::Kill).expect("an answer");
    table.wait_exit(&identity).await.expect("an answer");
}
