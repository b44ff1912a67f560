//! A runner that is asked whether somebody is there (02 §7.6).

use fleet_adapters::runner::hook::run_hook;
use fleet_core::harness::hooks::HookEvent;

use super::harness::Stage;

const DENY: &str = "roles: {A: {harness: command, harness_options: {argv: [/opt/agent]}}}";
const WAIT: &str = "roles: {A: {harness: command, permissions: {unattended: wait}, harness_options: {argv: [/opt/agent]}}}";
const QUESTION: &str = r#"{"tool_name":"Write","tool_input":{"content":"canary"}}"#;

async fn ask(stage: &Stage) -> Option<String> {
    let socket = stage.trees().hook_socket();
    let work = move || run_hook(&socket, HookEvent::PermissionRequest, QUESTION.as_bytes());
    tokio::task::spawn_blocking(work).await.expect("no panic")
}

fn stage(fleet: &str) -> Stage {
    let stage = Stage::new(fleet);
    std::fs::create_dir_all(stage.trees().handout).expect("a directory for the socket");
    stage
}

fn text(stage: &Stage, path: &camino::Utf8Path) -> String {
    String::from_utf8(stage.store.content(path).unwrap_or_default()).expect("UTF-8")
}

#[tokio::test]
async fn a_question_is_denied_unless_a_terminal_is_attached_at_that_moment() {
    let mut stage = stage(DENY);
    let runner = stage.start();
    stage.launched().await;
    let address = stage.runtime.console_address(&stage.role);

    let printed = ask(&stage).await.expect("denied");
    assert!(printed.contains("nobody is at this console"), "{printed}");
    stage.tmux.attach(&address, &["/dev/pts/7"]);
    assert_eq!(ask(&stage).await, None);
    stage.tmux.set_broken(&address.socket, Some("no answer"));
    let printed = ask(&stage).await.expect("denied");
    assert!(printed.contains("could not be found out"), "{printed}");
    stage.tmux.set_broken(&address.socket, None);

    let events = text(&stage, &stage.trees().session_events());
    let decisions: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let words = |name: &str| -> Vec<String> {
        decisions.iter().map(|event| event[name].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(words("kind"), ["permission"; 3]);
    assert_eq!(words("decision"), ["denied", "asked", "denied"]);
    assert_eq!(words("reason"), ["nobody", "-", "unreadable"]);
    assert_eq!(words("policy"), ["deny"; 3]);
    assert_eq!(words("tool"), ["Write"; 3]);
    let log = text(&stage, &stage.trees().runner_log());
    assert!(log.contains("permission for Write: denied (nobody), unattended deny"), "{log}");
    assert!(!log.contains("canary") && !events.contains("canary"), "no bodies");

    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
    let printed = ask(&stage).await.expect("denied");
    assert!(printed.contains("could not be asked"), "{printed}");
}

#[tokio::test]
async fn with_wait_the_dialog_opens_for_whoever_comes() {
    let mut stage = stage(WAIT);
    let runner = stage.start();
    stage.launched().await;
    assert_eq!(ask(&stage).await, None);
    let events = text(&stage, &stage.trees().session_events());
    assert!(events.contains("\"policy\":\"wait\"") && events.contains("asked"), "{events}");
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}
