use std::sync::Arc;
use std::time::Duration;

use fleet_adapters::runner::Observer;
use fleet_adapters::runner::deliver::{Delivery, Refused, deliver};
use fleet_adapters::runner::protocol::RefusalReason;
use fleet_core::harness::command::PatternDriver;
use fleet_core::id::Timestamp;
use fleet_core::port::{NewConsole, TmuxAddress, TmuxServers};
use fleet_core::test_support::fakes::{ManualClock, MemoryProcesses, MemoryTmuxServers};

/// A screen that cannot be read is an explicit refusal, and a dialog is one too: nothing is typed.
#[tokio::test]
async fn fault54_a_failed_capture_is_never_a_delivery() {
    let servers = MemoryTmuxServers::new(Arc::new(MemoryProcesses::default()));
    let address =
        TmuxAddress { socket: "/c/tmux.sock".into(), session: "A".parse().expect("a name") };
    let tmux = servers.server(address.clone());
    let argv = vec!["agent".to_owned(), "x".to_owned()];
    tmux.open(&NewConsole { argv, cwd: "/".into(), columns: 80, rows: 24 })
        .await
        .expect("it opens");
    let clock = ManualClock::hurried(Timestamp::from_millis(1_000));
    let driver = PatternDriver {
        ready: vec!["$ ".to_owned()],
        busy: Vec::new(),
        modal: vec!["[y/n]".to_owned()],
    };
    let observer = Observer::new(tmux, Arc::new(clock), Arc::new(driver));
    let delivery = Delivery { text: "go on", interrupt: false, timeout: Duration::from_secs(1) };

    servers.show(&address, "$ ");
    servers.set_broken(&address.socket, Some("no answer"));
    let answer = deliver(&observer, &mut None, delivery).await;
    assert!(
        matches!(answer, Err(Refused { reason: RefusalReason::CaptureFailed, .. })),
        "{answer:?}"
    );
    servers.set_broken(&address.socket, None);
    servers.show(&address, "$ delete it all? [y/n]");
    let answer = deliver(&observer, &mut None, delivery).await;
    assert!(matches!(answer, Err(Refused { reason: RefusalReason::Modal, .. })), "{answer:?}");
    assert!(servers.typed(&address).is_empty(), "nothing was typed");

    // The control: a screen that waits for input.
    servers.show(&address, "$ ");
    deliver(&observer, &mut None, delivery).await.expect("delivered");
    assert!(!servers.typed(&address).is_empty());
}
