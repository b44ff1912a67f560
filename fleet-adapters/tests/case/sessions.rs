//! Conversations whose ids the program chooses (02 §3.7).

use std::time::Duration;

use camino::Utf8PathBuf;
use fleet_core::launch::LaunchFile;
use fleet_core::lifecycle::RecordedSession;
use fleet_core::port::{StateStore, StoreLock};

use super::harness::{End, Stage};
use super::stand_in::harnesses;

const FLEET: &str = "roles: {A: {harness: stand-in}}";
const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(200);
const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const SECOND: &str = "22222222-2222-4222-8222-222222222222";

fn argv(launch: &LaunchFile) -> Vec<&str> {
    launch.command.argv.iter().skip(1).map(String::as_str).collect()
}

fn home(stage: &Stage) -> Utf8PathBuf {
    stage.trees().harness_home(&"stand-in".parse().expect("an id"))
}

/// Plays the program: keeps a conversation.
fn keeps(stage: &Stage, name: &str, id: &str, cwd: &str) {
    let file = home(stage).join("sessions").join(name);
    stage.store.put(&file, format!("{id} {cwd}\nmore\n").as_bytes());
}

fn record(stage: &Stage) -> RecordedSession {
    let bytes = stage.store.content(&stage.trees().session_id()).expect("a record");
    serde_json::from_slice(&bytes).expect("a record of ours")
}

#[tokio::test]
async fn an_id_is_read_from_the_newest_file_of_this_conversation() {
    let mut stage = Stage::with(FLEET, harnesses(true));
    let cwd = stage.trees().state.to_string();
    keeps(&stage, "2026/01/rollout-1", FIRST, &cwd);
    let runner = stage.start();
    let launch = stage.launched().await;
    assert_eq!(argv(&launch), ["begin", ""], "fleet cannot choose");
    assert_eq!(record(&stage).id, None);
    assert_eq!(record(&stage).after.as_deref(), Some("2026/01/rollout-1"));
    // Of another directory, of another kind, unfinished, no id, and older: none is this one.
    keeps(&stage, "2026/02/rollout-3", SECOND, "/elsewhere");
    keeps(&stage, "2026/02/other-4", SECOND, &cwd);
    stage.store.put(&home(&stage).join("sessions/2026/02/rollout-5"), SECOND.as_bytes());
    keeps(&stage, "2026/02/rollout-6", "--last", &cwd);
    keeps(&stage, "2025/12/rollout-0", SECOND, &cwd);
    stage.ends(&launch, End::Code(1, LONG)).await;
    let again = stage.launched().await;
    assert_eq!(argv(&again), ["begin", ""], "nothing is resumed by guess");
    keeps(&stage, "2026/02/rollout-7", SECOND, &cwd);
    stage.ends(&again, End::Code(1, LONG)).await;
    let resumed = stage.launched().await;
    assert_eq!(argv(&resumed), ["resume", SECOND]);
    assert_eq!(record(&stage).id.expect("an id").as_str(), SECOND);
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn a_failing_resume_is_discarded_once_and_its_id_kept_aside() {
    let mut stage = Stage::with(FLEET, harnesses(true));
    let cwd = stage.trees().state.to_string();
    let runner = stage.start();
    let launch = stage.launched().await;
    keeps(&stage, "2026/01/rollout-1", FIRST, &cwd);
    stage.ends(&launch, End::Code(1, LONG)).await;
    let resumed = stage.launched().await;
    assert_eq!(argv(&resumed), ["resume", FIRST]);
    stage.ends(&resumed, End::Code(1, SHORT)).await;
    let fresh = stage.launched().await;
    assert_eq!(argv(&fresh), ["begin", ""]);
    let kept = record(&stage);
    assert_eq!(kept.id, None);
    assert_eq!(kept.previous.expect("kept aside").as_str(), FIRST);
    // The conversation that was given up is not found again.
    stage.ends(&fresh, End::Code(1, SHORT)).await;
    let next = stage.launched().await;
    assert_eq!(argv(&next), ["begin", ""]);
    assert_eq!(record(&stage).previous.expect("still").as_str(), FIRST);
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn two_living_roles_never_hold_one_id() {
    for alive in [true, false] {
        let mut stage = Stage::with(FLEET, harnesses(true));
        let cwd = stage.trees().state.to_string();
        let other = stage.runtime.trees(&"B".parse().expect("a name"));
        let theirs = RecordedSession {
            version: 1,
            harness: "stand-in".parse().expect("an id"),
            home: "/elsewhere".into(),
            id: Some(FIRST.parse().expect("an id")),
            after: None,
            previous: None,
        };
        stage.store.put(&other.session_id(), &serde_json::to_vec(&theirs).expect("JSON"));
        let held: Option<Box<dyn StoreLock>> = if alive {
            stage.store.try_lock(&other.runner_lock()).expect("an answer")
        } else {
            None
        };
        let runner = stage.start();
        let launch = stage.launched().await;
        keeps(&stage, "2026/01/rollout-1", FIRST, &cwd);
        stage.ends(&launch, End::Code(1, LONG)).await;
        let next = stage.launched().await;
        let expected = if alive { ["begin", ""] } else { ["resume", FIRST] };
        assert_eq!(argv(&next), expected);
        drop(held);
        stage.stop();
        runner.await.expect("no panic").expect("an orderly stop");
    }
}

#[tokio::test]
async fn a_chosen_id_is_resumed_and_discarded_likewise() {
    let mut stage = Stage::with(FLEET, harnesses(false));
    let runner = stage.start();
    let launch = stage.launched().await;
    let first = argv(&launch)[1].to_owned();
    stage.ends(&launch, End::Code(1, LONG)).await;
    let resumed = stage.launched().await;
    assert_eq!(argv(&resumed), ["resume", first.as_str()]);
    stage.ends(&resumed, End::Code(1, SHORT)).await;
    let fresh = stage.launched().await;
    assert_eq!(argv(&fresh)[0], "begin");
    assert_ne!(argv(&fresh)[1], first);
    assert_eq!(record(&stage).previous.expect("kept aside").as_str(), first);
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}
