//! What the runner publishes of an agent, and the version of its program.

use fleet_adapters::runner::protocol::Command;
use fleet_core::harness::screen::{EvidenceSource, Readiness};
use fleet_core::id::SessionId;
use fleet_core::port::TmuxAddress;
use fleet_core::status::{RoleState, Status};
use fleet_core::test_support::fakes::{Answer, ComposerProgram, Look};

use super::harness::Stage;
use super::stand_in::harnesses;

const FLEET: &str = "roles: {A: {harness: stand-in}}";

fn address(stage: &Stage) -> TmuxAddress {
    stage.runtime.console_address(&stage.role)
}

async fn asked(stage: &Stage) -> Status {
    let answer = stage.ask(Command::Status).await.expect("an answer");
    serde_json::from_value(answer).expect("a status")
}

#[tokio::test]
async fn a_start_dialog_keeps_a_role_starting_and_is_named() {
    let mut stage = Stage::with(FLEET, harnesses(false));
    let runner = stage.start();
    let launch = stage.launched().await;
    let program = ComposerProgram::new(Look::Claude);
    program.stop_at_start(true);
    stage.tmux.set_program(&address(&stage), program.clone());
    stage.runs(&launch);
    let status = stage.until_status(|status| status.detail.is_some()).await;
    assert_eq!(status.state, RoleState::Starting);
    let detail = status.detail.expect("a detail");
    assert!(detail.contains("a start dialog is open (trust)"), "{detail}");
    program.stop_at_start(false);
    let status = stage.until_status(|status| status.state == RoleState::Running).await;
    assert_eq!(status.detail, None);
    assert_eq!(status.agent.expect("seen").state.readiness, Readiness::Idle);
    assert_eq!(program.approved(), 0, "nobody answered it");
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn a_status_that_is_asked_for_is_looked_at_then() {
    let mut stage = Stage::with(FLEET, harnesses(false));
    let runner = stage.start();
    let launch = stage.launched().await;
    let program = ComposerProgram::new(Look::Claude);
    stage.tmux.set_program(&address(&stage), program.clone());
    stage.runs(&launch);
    stage.until_status(|status| status.state == RoleState::Running).await;
    program.ask(true);
    let agent = asked(&stage).await.agent.expect("seen");
    assert_eq!(agent.state.readiness, Readiness::Waiting);
    assert_eq!(agent.words(), "waiting (permission prompt)");
    assert_eq!(agent.state.evidence, EvidenceSource::Screen);
    // And what was seen is published.
    let seen = |status: &Status, wanted| {
        status.agent.as_ref().is_some_and(|agent| agent.state.readiness == wanted)
    };
    stage.until_status(|status| seen(status, Readiness::Waiting)).await;
    program.ask(false);
    assert_eq!(asked(&stage).await.agent.expect("seen").state.readiness, Readiness::Idle);
    stage.until_status(|status| seen(status, Readiness::Idle)).await;
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn a_record_is_believed_with_its_process_and_followed() {
    let mut stage = Stage::with(FLEET, harnesses(false));
    let runner = stage.start();
    let launch = stage.launched().await;
    let home = stage.trees().harness_home(&"stand-in".parse().expect("an id"));
    let records = home.join("records");
    stage.store.put(&records.join("notes.txt"), b"");
    let program = ComposerProgram::new(Look::Claude);
    stage.tmux.set_program(&address(&stage), program.clone());
    stage.runs(&launch);
    let status = stage.until_status(|status| status.state == RoleState::Running).await;
    stage.until_status(|_| stage.watches.is_watched(&records)).await;
    let launcher = status.console.launcher.expect("a launcher");
    let process = stage.processes.spawn_below(launcher.pid, Some((2, 77)));
    let stranger = stage.processes.spawn();
    let record = |pid: u32, start: u64, namespace: u32, state: &str| {
        let text = format!(
            r#"{{"pid":{pid},"procStart":"{start}","status":"{state}","kind":"interactive",
                "pidDomain":"linux:0:pid:[{namespace}]","statusUpdatedAt":5}}"#
        );
        stage.store.put(&records.join(format!("{pid}.json")), text.as_bytes());
    };
    // Left behind by a kill, of another namespace, of a process that is not of this role.
    for (pid, start, namespace) in [
        (2, process.start_time + 1, 77),
        (2, process.start_time, 78),
        (stranger.pid, stranger.start_time, 77),
    ] {
        record(pid, start, namespace, "busy");
        let agent = asked(&stage).await.agent.expect("seen");
        assert_eq!(agent.state.readiness, Readiness::Idle, "{pid} {start} {namespace}");
        assert_ne!(agent.state.evidence, EvidenceSource::Record);
    }
    // Its own: the change of the file alone is enough.
    record(2, process.start_time, 77, "busy");
    stage.watches.touch(&records);
    let by_record = |status: &Status, wanted| {
        status.agent.as_ref().is_some_and(|agent| {
            agent.followed
                && agent.state.readiness == wanted
                && agent.state.evidence == EvidenceSource::Record
        })
    };
    stage.until_status(|status| by_record(status, Readiness::Busy)).await;
    record(2, process.start_time, 77, "idle");
    stage.watches.touch(&records);
    stage.until_status(|status| by_record(status, Readiness::Idle)).await;
    // The process dies and its record stays.
    record(2, process.start_time, 77, "busy");
    stage.processes.end(process.pid);
    let agent = asked(&stage).await.agent.expect("seen");
    assert_ne!(agent.state.evidence, EvidenceSource::Record);
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn the_version_of_the_program_is_known_to_the_launch_and_published() {
    for (answer, version, qualified) in [
        (Answer::prints("1.2.3 (Agent)\n"), Some("1.2.3"), Some(true)),
        (Answer::prints("9.9.9\n"), Some("9.9.9"), Some(false)),
        (Answer::fails(1, "no"), None, None),
        (Answer::Timeout, None, None),
        (Answer::prints(""), None, None),
    ] {
        let mut stage = Stage::with(FLEET, harnesses(false));
        stage.exec.program("agent", answer);
        let runner = stage.start();
        let launch = stage.launched().await;
        assert_eq!(launch.command.argv.get(3).map(String::as_str), version);
        let status = stage.until_status(|status| status.harness.is_some()).await;
        let harness = status.harness.expect("a harness");
        assert_eq!((harness.version.as_deref(), harness.qualified), (version, qualified));
        let calls = stage.exec.calls();
        let probe = calls.first().expect("asked once");
        assert_eq!(calls.len(), 1);
        for name in ["HOME", "STAND_IN_HOME"] {
            assert!(probe.env.contains(&(name.to_owned(), "/dev/null/home".to_owned())), "{name}");
        }
        stage.stop();
        runner.await.expect("no panic").expect("an orderly stop");
    }
}

#[tokio::test]
async fn a_text_goes_through_the_runner_and_its_turn_is_published() {
    let mut stage = Stage::with(FLEET, harnesses(false));
    let runner = stage.start();
    let launch = stage.launched().await;
    let program = ComposerProgram::new(Look::Claude);
    stage.tmux.set_program(&address(&stage), program.clone());
    stage.runs(&launch);
    let status = stage.until_status(|status| status.state == RoleState::Running).await;
    assert!(status.session_id.is_some_and(|id: SessionId| !id.as_str().is_empty()));
    let send = |text: &str| Command::SubmitPrompt {
        text: text.to_owned(),
        interrupt: false,
        timeout_ms: 1_000,
    };
    let answer = stage.ask(send("go on")).await.expect("sent");
    assert_eq!(answer["receipt"], "turn-started");
    assert_eq!(program.messages(), ["go on"]);
    program.set_turn_length(0);
    program.type_draft("mine");
    let refused = stage.ask(send("another")).await.expect_err("a draft stands there");
    assert!(refused.contains("draft"), "{refused}");
    assert_eq!((program.messages().len(), program.draft().as_str()), (1, "mine"));
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}
