use fleet_adapters::{FileStore, ProcTable};
use fleet_core::id::Timestamp;
use fleet_core::port::{
    ProcessIdentity, ProcessTable, RunState, StateStore, Supervisor, SupervisorError,
};
use fleet_core::run_marker::RunMarker;

use super::stand_in::Fleet;
use crate::support::{Children, lives};

fn marker(runner: ProcessIdentity) -> Vec<u8> {
    RunMarker::new(runner, Timestamp::from_millis(1_795_973_400_000)).to_json().into_bytes()
}

/// What may stand in the marker of a runner that is not there, each with what is said about it.
fn stale_markers(
    victim: &ProcessIdentity,
    dead: &ProcessIdentity,
) -> Vec<(Option<Vec<u8>>, &'static str)> {
    let other_start =
        ProcessIdentity { start_time: victim.start_time.wrapping_sub(1), ..victim.clone() };
    let other_boot = ProcessIdentity { boot_id: "another-boot".into(), ..victim.clone() };
    let init = ProcessIdentity { pid: 1, start_time: u64::MAX, boot_id: victim.boot_id.clone() };
    let nobody = ProcessIdentity { pid: 0, ..victim.clone() };
    vec![
        (Some(marker(other_start)), "now another process"),
        (Some(marker(other_boot)), "now another process"),
        (Some(marker(init)), "now another process"),
        (Some(marker(dead.clone())), "gone"),
        (Some(marker(nobody)), "gone"),
        (Some(b"garbage".to_vec()), "cannot be read"),
        (Some(victim.pid.to_string().into_bytes()), "cannot be read"),
        (Some(Vec::new()), "empty"),
        (Some(vec![b' '; 5000]), "larger than"),
        (None, "does not exist"),
    ]
}

#[tokio::test]
async fn a11_a_stale_marker_never_gets_a_process_signalled() {
    // The wait for a runner that is just starting is not needed here.
    let fleet = Fleet::with("", 100);
    let service = fleet.service("Rev");
    let trees = fleet.trees("Rev");
    let children = Children::default();
    let table = ProcTable::new();
    let victim = table.identity(children.sleeper()).expect("an answer").expect("it lives");
    let dead = table.identity(children.sleeper()).expect("an answer").expect("it lives");
    children.end(dead.pid);
    for (content, words) in stale_markers(&victim, &dead) {
        let shown =
            content.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        match &content {
            Some(content) => FileStore.write(&trees.run_marker(), content, 0o600).expect("written"),
            None => drop(FileStore.remove(&trees.run_marker()).expect("removed")),
        }
        // Nobody holds the lock: whatever the marker says, no runner is there.
        assert_eq!(fleet.supervisor().liveness(&service).await.state, RunState::Stopped, "{shown}");
        fleet.supervisor().stop(&service).await.expect("nothing to stop");
        assert!(children.runs(victim.pid), "{shown}");

        // Somebody holds it, and the marker does not say who.
        let held = FileStore.try_lock(&trees.runner_lock()).expect("an answer").expect("free");
        let liveness = fleet.supervisor().liveness(&service).await;
        assert_eq!(liveness.state, RunState::Unknown, "{shown}");
        assert!(liveness.detail.contains(words), "{shown}: {}", liveness.detail);
        assert_eq!(liveness.pid, None);
        for error in [
            fleet.supervisor().stop(&service).await.expect_err("it cannot be told whom to stop"),
            fleet.supervisor().start(&service).await.expect_err("it cannot be told what runs"),
        ] {
            let SupervisorError::Failed { detail, .. } = error else { panic!("{error:?}") };
            assert!(detail.contains(words), "{shown}: {detail}");
        }
        assert!(children.runs(victim.pid), "{shown}");
        drop(held);
    }
}

#[tokio::test]
async fn a11_a_stale_marker_does_not_keep_a_runner_from_starting() {
    let fleet = Fleet::new();
    let service = fleet.service("Rev");
    let children = Children::default();
    let table = ProcTable::new();
    let victim = table.identity(children.sleeper()).expect("an answer").expect("it lives");
    let path = fleet.trees("Rev").run_marker();
    FileStore.write(&path, &marker(victim.clone()), 0o600).expect("it is written");
    fleet.supervisor().start(&service).await.expect("it starts");
    let pid = fleet.supervisor().liveness(&service).await.pid.expect("a pid");
    assert_ne!(pid, victim.pid);
    fleet.supervisor().stop(&service).await.expect("it stops");
    assert!(children.runs(victim.pid));
    assert!(!lives(pid));
}

#[tokio::test]
async fn a_runner_that_does_not_listen_is_killed() {
    let fleet = Fleet::with("deaf", 30);
    let service = fleet.service("Rev");
    fleet.supervisor().start(&service).await.expect("it starts");
    let pid = fleet.supervisor().liveness(&service).await.pid.expect("a pid");
    fleet.supervisor().stop(&service).await.expect("it stops");
    assert!(!lives(pid));
    let marker = FileStore.read(&fleet.trees("Rev").run_marker(), 4096).expect("an answer");
    assert!(marker.is_some(), "it had no time to clean up, which tells a kill from an orderly end");
    assert_eq!(fleet.supervisor().liveness(&service).await.state, RunState::Stopped);
}

#[tokio::test]
async fn a_runner_that_ends_at_once_is_a_failed_start_that_names_the_log() {
    let fleet = Fleet::with("broken", 1);
    let service = fleet.service("Rev");
    let error = fleet.supervisor().start(&service).await.expect_err("it cannot start");
    let text = error.to_string();
    assert!(text.contains(fleet.trees("Rev").runner_log().as_str()), "{text}");
    // Its last words are said, without what a terminal would take for a command.
    assert!(text.contains(": [1mbroken on purpose; see"), "{text}");
    assert_eq!(fleet.supervisor().liveness(&service).await.state, RunState::Stopped);
}

#[tokio::test]
async fn two_starts_at_once_leave_one_runner() {
    let fleet = Fleet::new();
    let service = fleet.service("Rev");
    let (first, second) =
        tokio::join!(fleet.supervisor().start(&service), fleet.supervisor().start(&service));
    first.expect("one of them runs");
    second.expect("one of them runs");
    let pid = fleet.supervisor().liveness(&service).await.pid.expect("a pid");
    fleet.supervisor().stop(&service).await.expect("it stops");
    assert!(!lives(pid));
    assert_eq!(fleet.supervisor().liveness(&service).await.state, RunState::Stopped);
}
