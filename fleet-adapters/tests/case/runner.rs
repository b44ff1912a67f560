use std::time::Duration;

use fleet_adapters::runner::observe;
use fleet_adapters::runner::protocol::Command;
use fleet_core::harness::StartMode;
use fleet_core::isolation::{EnforcementLevel, EnforcementRow, Item};
use fleet_core::lifecycle::{ExitClass, RestartLedger};
use fleet_core::port::StateStore;
use fleet_core::status::RoleState;

use super::harness::{End, Stage};

const FLEET: &str = "roles: {A: {harness: command, harness_options: {argv: [/opt/agent], resume_argv: [/opt/agent, --resume]}}}";
const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(200);

fn argv(launch: &fleet_core::launch::LaunchFile) -> Vec<&str> {
    launch.command.argv.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn g3_a_program_that_dies_at_once_is_tried_five_times_then_held() {
    let mut stage = Stage::new(FLEET);
    let runner = stage.start();
    for attempt in 1..=5u32 {
        let launch = stage.launched().await;
        stage.ends(&launch, End::Code(1, SHORT)).await;
        let status = stage.until_status(|status| status.failures.count == attempt).await;
        if attempt < 5 {
            let ledger = stage.store.content(&stage.trees().restart_ledger()).expect("a ledger");
            let (ledger, corrupt) = RestartLedger::parse(Some(&ledger));
            assert!(!corrupt);
            assert_eq!(ledger.next_delay_ms, 1_000 << attempt, "2, 4, 8, 16 s");
        } else {
            assert_eq!(status.state, RoleState::HeldDown);
            assert!(status.failures.held_since.is_some());
            assert!(status.detail.expect("a reason").contains("exit code 1"));
        }
    }
    // The runner stays alive, starts nothing, and an operator can release it.
    stage.ask(Command::Release).await.expect("released");
    let launch = stage.launched().await;
    stage.runs(&launch);
    stage.until_status(|status| status.state == RoleState::Running).await;
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

/// The launcher reports also of a command that never ran, with rows that say so.
#[tokio::test]
async fn a_command_that_was_never_seen_is_not_called_running() {
    let mut stage = Stage::new(FLEET);
    let runner = stage.start();
    let launch = stage.launched().await;
    stage.observes(
        &launch,
        vec![EnforcementRow {
            item: Item::Filesystem,
            asked: "only what the policy lists".to_owned(),
            level: EnforcementLevel::Missing,
            evidence: EnforcementRow::ENDED_EARLY.to_owned(),
        }],
    );
    for _ in 0..2000 {
        tokio::task::yield_now().await;
        let status = observe::published(&*stage.store as &dyn StateStore, &stage.trees());
        assert_ne!(status.map(|status| status.state), Some(RoleState::Running));
    }
    // The control: one that was seen.
    stage.runs(&launch);
    stage.until_status(|status| status.state == RoleState::Running).await;
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn g4_a_resume_that_fails_at_once_is_discarded_once_in_a_streak() {
    let mut stage = Stage::new(FLEET);
    let runner = stage.start();
    let first = stage.launched().await;
    assert_eq!(argv(&first), ["/opt/agent"]);
    stage.ends(&first, End::Code(3, LONG)).await;

    let resumed = stage.launched().await;
    assert_eq!(argv(&resumed), ["/opt/agent", "--resume"]);
    let session =
        |launch: &fleet_core::launch::LaunchFile| launch.env.0["OURS_FLEET_SESSION_ID"].clone();
    assert_eq!(session(&resumed), session(&first), "the conversation goes on");
    stage.ends(&resumed, End::Code(3, SHORT)).await;

    let fresh = stage.launched().await;
    assert_eq!(argv(&fresh), ["/opt/agent"]);
    assert_ne!(session(&fresh), session(&first), "a new conversation");
    stage.ends(&fresh, End::Code(3, SHORT)).await;

    let again = stage.launched().await;
    assert_eq!(argv(&again), ["/opt/agent", "--resume"]);
    stage.ends(&again, End::Code(3, SHORT)).await;

    let still = stage.launched().await;
    assert_eq!(argv(&still), ["/opt/agent", "--resume"], "only once in one streak");
    assert_eq!(session(&still), session(&fresh));
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn g6_the_exit_record_of_a_program_that_is_already_gone_is_used() {
    let mut stage = Stage::new(FLEET);
    let runner = stage.start();
    let launch = stage.launched().await;
    stage.ends(&launch, End::NotStarted).await;
    let status = stage.until_status(|status| status.failures.count == 1).await;
    let last = status.last_termination.expect("an end");
    assert_eq!((last.class, last.detail.as_str()), (ExitClass::CouldNotStart, "no such program"));
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn g7_a_console_that_vanishes_says_nothing_against_the_conversation() {
    let mut stage = Stage::new(FLEET);
    let runner = stage.start();
    let launch = stage.launched().await;
    stage.runs(&launch);
    stage.until_status(|status| status.state == RoleState::Running).await;
    stage.ends(&launch, End::Silence).await;
    let next = stage.launched().await;
    let status =
        stage.until_status(|status| status.launch_id.as_ref() == Some(&next.launch_id)).await;
    assert_eq!(status.last_termination.expect("an end").class, ExitClass::SessionDestroyed);
    assert_eq!(status.mode, Some(StartMode::Resume));
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn g9_a_runner_that_was_killed_is_recorded_once_by_the_next_one() {
    let mut stage = Stage::new(FLEET);
    let runner = stage.start();
    let launch = stage.launched().await;
    stage.runs(&launch);
    stage.until_status(|status| status.state == RoleState::Running).await;
    // Killed: the task goes, lock and socket with it, the marker stays.
    runner.abort();
    assert!(runner.await.expect_err("aborted").is_cancelled());
    assert!(stage.exists(&stage.trees().run_marker()));

    let runner = stage.start();
    let next = stage.launched().await;
    assert_eq!(argv(&next), ["/opt/agent", "--resume"], "the conversation goes on");
    let status =
        stage.until_status(|status| status.launch_id.as_ref() == Some(&next.launch_id)).await;
    assert_eq!(status.abrupt_terminations, 1);
    assert_eq!(status.last_termination.expect("an end").class, ExitClass::Abrupt);
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
    assert!(!stage.exists(&stage.trees().run_marker()), "an orderly stop leaves no marker");
    assert!(stage.exists(&stage.trees().booted()), "a shutdown keeps the conversation");
    let ledger = stage.store.content(&stage.trees().restart_ledger()).expect("a ledger");
    let (ledger, _) = RestartLedger::parse(Some(&ledger));
    assert_eq!(ledger.abrupt_terminations, 1, "later runners know of it too");
}

#[tokio::test]
async fn a_launch_that_the_policy_refuses_runs_no_program() {
    let mut stage = Stage::new(
        "roles: {A: {harness: command, cwd: /nowhere, harness_options: {argv: [/opt/agent]}}}",
    );
    let runner = stage.start();
    let status = stage.until_status(|status| status.state == RoleState::HeldDown).await;
    assert!(status.detail.expect("a reason").contains("/nowhere` does not exist"));
    assert!(stage.tmux.opened().is_empty(), "no console was opened");
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn a_second_runner_of_a_role_does_not_start() {
    let mut stage = Stage::new(FLEET);
    let first = stage.start();
    stage.launched().await;
    let stop = tokio::sync::watch::channel(false).1;
    let second = fleet_adapters::runner::run::run(
        stage.runtime.clone(),
        stage.role.clone(),
        None,
        stop,
        Box::new(|_| ()),
    );
    let error = second.await.expect_err("the role has a runner");
    assert!(error.to_string().contains("another runner of `A` is alive"));
    stage.stop();
    first.await.expect("no panic").expect("an orderly stop");
}
