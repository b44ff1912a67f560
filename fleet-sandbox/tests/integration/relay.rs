//! The relay from start to end: its sockets, and a network that cannot be served.

use std::io::Write as _;
use std::net::TcpListener;

use crate::support::{Launch, need_bwrap};

/// A host port that greets once.
fn greeter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    std::thread::spawn(move || {
        if let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(b"greetings");
        }
    });
    port
}

#[test]
fn more_sockets_than_fit_one_message_are_handed_over() {
    need_bwrap!();
    let launch = Launch::new();
    let port = greeter();
    let mut hosts: Vec<String> = (0..150).map(|index| format!("h{index}.example:80")).collect();
    hosts.push(format!("127.0.0.1:{port}"));
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let target = format!("127.0.0.1:{port}");
    let seen = launch.attempts(&launch.policy().reachable(&hosts), &[&["talk", &target]]);
    assert_eq!(seen, ["ok greetings"]);
}

/// The command waits for its network. Where that cannot be served it never runs.
#[test]
fn a_network_that_cannot_be_served_starts_no_command() {
    need_bwrap!();
    for _ in 0..10 {
        let launch = Launch::new();
        let ran = launch.cwd.join("ran");
        let script = format!("echo ran > {ran}");
        let argv = ["/bin/sh", "-c", script.as_str()];
        let policy = launch.policy().reachable(&["127.0.0.1:9"]);
        // A directory in the place of the record of connections.
        std::fs::create_dir(launch.control.join("connections.jsonl")).expect("mkdir");
        let outcome = launch.run(&policy, &argv);
        let record = outcome.record();
        assert!(!record.started, "{record:?}");
        let error = record.error.clone().unwrap_or_default();
        assert!(error.contains("the record of connections"), "{error}");
        assert_eq!(outcome.code, Some(fleet_sandbox::launch::REFUSED), "{}", outcome.stderr);
        assert!(!ran.exists(), "the command ran");

        // The control: with a record to write to the same command runs.
        std::fs::remove_dir(launch.control.join("connections.jsonl")).expect("rmdir");
        assert_eq!(launch.run(&policy, &argv).code, Some(0));
        assert!(ran.exists());
    }
}
