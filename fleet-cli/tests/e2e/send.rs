//! `send` with the real programs: a text reaches the model once, whole and alone, or it is refused and
//! nothing was typed; and it never answers a dialog, nor takes a person's draft along (02 §6.5).

use std::process::Command;
use std::thread;
use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, say};
use crate::support::{needs, said, wait_for};

macro_rules! needs_built {
    ($agent:expr) => {
        needs!("tmux", "socat");
        needs_agent!($agent);
    };
}

/// An agent that is up, and in this state.
fn fleet(
    agent: Agent,
    script: Value,
    state: &str,
    change: impl FnOnce(&mut AgentRole),
) -> AgentFleet {
    let mut role = AgentRole::new("A", agent, false, script);
    change(&mut role);
    let fleet = AgentFleet::new(&[role]);
    fleet.up();
    fleet.wait_step("first-step");
    fleet.wait_readiness("A", state);
    fleet
}

/// An agent whose first turn is over.
fn idle(agent: Agent) -> AgentFleet {
    fleet(agent, json!([say("first-step")]), "idle", |_| {})
}

/// An agent in a turn that ends when the provider is released.
fn busy(agent: Agent) -> AgentFleet {
    fleet(agent, json!([{ "say": "first-step", "hold": true }]), "busy", |_| {})
}

/// What a sender was told: the exit code, and the receipt or the reason of the refusal.
fn send(fleet: &AgentFleet, options: &[&str], text: &str) -> (i32, String) {
    let args = [&["send", "A", "--json"], options, &["--", text]].concat();
    let output = fleet.env.run(args);
    let document = output.json();
    let word = document["receipt"].as_str().or(document["error"]["kind"].as_str());
    assert_eq!(document["reached"] == true, output.code == 0, "{document}");
    (output.code, word.unwrap_or_else(|| panic!("no receipt: {document}")).to_owned())
}

#[track_caller]
fn expect_refused(fleet: &AgentFleet, options: &[&str], text: &str, code: i32, reason: &str) {
    let found = send(fleet, options, text);
    assert_eq!(found, (code, reason.to_owned()), "{}", screen(fleet));
}

#[track_caller]
fn expect_sent(fleet: &AgentFleet, options: &[&str], text: &str, receipt: &str) {
    let found = send(fleet, options, text);
    assert_eq!(found, (0, receipt.to_owned()), "{text:?}: {}", screen(fleet));
}

/// A turn that is over at once may not be seen; that the text went is.
#[track_caller]
fn expect_gone(fleet: &AgentFleet, options: &[&str], text: &str) {
    let (code, receipt) = send(fleet, options, text);
    let sent = ["submitted", "turn-started"].contains(&receipt.as_str());
    assert!(code == 0 && sent, "{text:?}: {code} {receipt}: {}", screen(fleet));
}

/// Everything that the model was told by its user, as the newest request holds it.
fn told(fleet: &AgentFleet) -> Vec<String> {
    let log = fleet.provider.log();
    said(log.iter().rfind(|entry| !entry.side).expect("a request"))
}

/// Waits until the model was told this, as a text of its own; checks that it was told once.
#[track_caller]
fn expect_told(fleet: &AgentFleet, text: &str) {
    let text = text.trim();
    let mut seen = Vec::new();
    let limit = std::time::Instant::now() + Duration::from_secs(20);
    while std::time::Instant::now() < limit {
        seen = told(fleet);
        if seen.iter().any(|said| said == text) {
            let count: usize = seen.iter().map(|said| said.matches(text).count()).sum();
            assert_eq!(count, 1, "{text:?} in {seen:#?}");
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("the model was never told {text:?}: {seen:#?}\n{}", fleet.env.run(["peek", "A"]).all());
}

#[track_caller]
fn expect_never_told(fleet: &AgentFleet, text: &str) {
    let log = fleet.provider.log();
    assert!(log.iter().all(|entry| !entry.body.to_string().contains(text)), "{text:?}");
}

/// tmux, as a person at the console of the role.
fn tmux(fleet: &AgentFleet, args: &[&str]) {
    let socket = fleet.env.path(".ours-fleet/control/A/tmux.sock");
    let status = Command::new("tmux").arg("-S").arg(socket).args(args).status();
    assert!(status.expect("tmux").success(), "{args:?}");
}

fn screen(fleet: &AgentFleet) -> String {
    fleet.env.run(["peek", "A"]).stdout
}

fn down(fleet: &AgentFleet) {
    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}

/// Texts that are special to a terminal, to tmux, to a shell or to one of the programs.
fn texts() -> Vec<String> {
    let lines: Vec<String> = (1..=20).map(|n| format!("line {n} of twenty;")).collect();
    let long = (0..160).map(|n| format!("word-{n}")).collect::<Vec<_>>().join(" ");
    assert!(long.len() > 1200);
    let mut texts: Vec<String> = [
        "a plain text",
        "fix it;",
        ";",
        "-n foo",
        "--",
        "Enter",
        "$(id) `id` #{pane_id} %1 *",
        "a backslash at the end \\",
        "grüße, 日本語, हिन्दी and 👩‍🚀",
        "two\nlines",
        "an empty line\n\nin the middle",
        "a #hash, an @at and a $dollar inside",
        "at the end @README",
        "1",
        "y",
    ]
    .map(str::to_owned)
    .into();
    texts.push(lines.join("\n"));
    texts.push(long);
    texts
}

/// Texts that Claude Code would change or run; Codex takes them as they are.
const COMMANDS: [&str; 5] =
    ["!touch ran-by-a-shell", "/clear", " /clear", "a\ttab", "an accent of its own, e\u{301}"];

#[rstest]
fn an_idle_agent_is_told_each_text_unchanged(#[values(Agent::Claude, Agent::Codex)] agent: Agent) {
    needs_built!(agent);
    let fleet = idle(agent);
    let first = r#"@@[{"say":"slow","sleep":2}] the first one"#;
    let plain = fleet.env.run(["send", "A", first]).expect(0);
    assert_eq!((plain.stdout.as_str(), plain.stderr.as_str()), ("turn-started\n", ""));
    expect_told(&fleet, first);
    for text in texts() {
        fleet.wait_readiness("A", "idle");
        expect_gone(&fleet, &[], &text);
    }
    for text in COMMANDS {
        fleet.wait_readiness("A", "idle");
        match agent {
            Agent::Claude => expect_refused(&fleet, &[], text, 1, "bad-text"),
            Agent::Codex => expect_gone(&fleet, &[], text),
        }
    }
    fleet.wait_readiness("A", "idle");
    expect_gone(&fleet, &[], "the last one");
    expect_told(&fleet, "the last one");
    let mut wanted = vec![first.to_owned()];
    wanted.extend(texts());
    if agent == Agent::Codex {
        wanted.extend(COMMANDS.map(|text| text.trim().to_owned()));
    }
    wanted.push("the last one".to_owned());
    let said = told(&fleet);
    assert_eq!(said[said.len() - wanted.len()..], wanted);
    assert!(!fleet.env.path("work/ran-by-a-shell").exists());
    down(&fleet);
}

#[test]
fn a_busy_claude_is_told_after_its_turn() {
    needs_built!(Agent::Claude);
    let fleet = busy(Agent::Claude);
    for text in ["told later", "and this too;"] {
        expect_sent(&fleet, &[], text, "submitted");
    }
    let (code, words) = send(&fleet, &["--wait", "turn-started"], "a third one");
    assert_eq!(code, 1, "{words}");
    for text in ["told later", "and this too;", "a third one"] {
        expect_never_told(&fleet, text);
    }
    fleet.provider.release();
    for text in ["told later", "and this too;", "a third one"] {
        expect_told(&fleet, text);
    }
    down(&fleet);
}

#[test]
fn a_busy_codex_is_left_alone() {
    needs_built!(Agent::Codex);
    let fleet = busy(Agent::Codex);
    expect_refused(&fleet, &["--timeout", "1"], "not now", 3, "busy");
    assert!(!screen(&fleet).contains("not now"));
    assert_eq!(fleet.readiness("A"), "busy");
    // Its turn is held, so that it is seen.
    let text = r#"@@[{"say":"done","hold":true}] when you are done"#;
    thread::scope(|scope| {
        let patient = scope.spawn(|| send(&fleet, &["--timeout", "30"], text));
        // Nothing shows that a sender waits: as long as one that did type would take.
        thread::sleep(Duration::from_secs(1));
        assert!(!screen(&fleet).contains("when you are done"));
        fleet.provider.release();
        assert_eq!(patient.join().expect("a sender"), (0, "turn-started".to_owned()));
    });
    expect_told(&fleet, text);
    fleet.provider.release();
    expect_never_told(&fleet, "not now");
    down(&fleet);
}

#[rstest]
fn a_turn_is_interrupted_where_that_is_asked_for(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
) {
    needs_built!(agent);
    let fleet = idle(agent);
    let held = r#"@@[{"say":"held","hold":true}]"#;
    expect_sent(&fleet, &[], held, "turn-started");
    fleet.wait_step("held");
    fleet.wait_readiness("A", "busy");
    expect_gone(&fleet, &["--interrupt"], "@@[{\"say\":\"done\"}] stop that");
    expect_told(&fleet, "@@[{\"say\":\"done\"}] stop that");
    fleet.wait_readiness("A", "idle");
    // One that runs no turn is just told.
    expect_gone(&fleet, &["--interrupt"], "and go on");
    expect_told(&fleet, "and go on");
    down(&fleet);
}

/// Inside its isolation Codex tells the runner of a turn's end: it is published though nobody asks.
#[test]
fn the_hook_of_a_confined_codex_publishes_the_end_of_its_turn() {
    needs_built!(Agent::Codex);
    needs!("bwrap");
    let script = json!([{ "say": "first-step", "hold": true }]);
    let fleet = fleet(Agent::Codex, script, "busy", |role| role.isolated = true);
    let published = || {
        let bytes = fleet.env.read(".ours-fleet/control/A/status.json").expect("a status");
        let status: Value = serde_json::from_slice(&bytes).expect("JSON");
        status["agent"]["readiness"].clone()
    };
    assert_eq!(published(), "busy");
    fleet.provider.release();
    wait_for("the end of the turn", || (published() == "idle").then_some(()));
    down(&fleet);
}

/// A call that each program asks about, which would leave a trace.
fn question(agent: Agent) -> Value {
    match agent {
        Agent::Claude => json!({
            "write": { "path": "HOME/elsewhere.txt", "content": "first-step" }, "hold": true
        }),
        Agent::Codex => json!({
            "run": "touch HOME/elsewhere.txt", "escalate": "first-step", "hold": true
        }),
    }
}

fn asking(agent: Agent) -> AgentFleet {
    let script = json!([question(agent), say("went on")]);
    fleet(agent, script, "busy", |role| {
        role.approval = "ask";
        role.unattended = "wait";
    })
}

#[rstest]
fn a_permission_dialog_is_never_answered(#[values(Agent::Claude, Agent::Codex)] agent: Agent) {
    needs_built!(agent);
    let fleet = asking(agent);
    fleet.provider.release();
    fleet.wait_readiness("A", "waiting");
    let asked = fleet.provider.log().len();
    for text in ["1", "y", "a text for the dialog"] {
        expect_refused(&fleet, &["--timeout", "1"], text, 3, "modal");
    }
    expect_refused(&fleet, &["--interrupt"], "a text for the dialog", 3, "modal");
    assert_eq!(fleet.readiness("A"), "waiting");
    assert!(screen(&fleet).contains("1. Yes"), "the dialog is open: {}", screen(&fleet));
    assert!(!fleet.env.path("elsewhere.txt").exists());
    assert_eq!(fleet.provider.log().len(), asked, "nobody went on");
    // Answered by a person, the agent takes texts again, and those refused are not among them.
    fleet.env.run(["send", "A", "--key", "Escape"]).expect(0);
    fleet.wait_readiness("A", "idle");
    expect_gone(&fleet, &[], "now it is well");
    expect_told(&fleet, "now it is well");
    expect_never_told(&fleet, "a text for the dialog");
    assert!(!fleet.env.path("elsewhere.txt").exists());
    down(&fleet);
}

/// A dialog may open between any two steps of a delivery.
#[rstest]
fn a_dialog_that_opens_meanwhile_is_never_answered(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
) {
    needs_built!(agent);
    let fleet = asking(agent);
    let mut sent = Vec::new();
    for (round, delay) in [0, 80, 160, 240, 320, 400, 480, 600].into_iter().enumerate() {
        let text = format!("text-{round}-of-a-race");
        fleet.provider.release();
        thread::sleep(Duration::from_millis(delay));
        let (code, words) = send(&fleet, &["--timeout", "1"], &text);
        assert!(code == 0 || code == 3, "{words}");
        fleet.wait_readiness("A", "waiting");
        assert!(!fleet.env.path("elsewhere.txt").exists(), "round {round}: {words}");
        sent.push((text, code, words));
        fleet.env.run(["send", "A", "--key", "Escape"]).expect(0);
        fleet.wait_readiness("A", "idle");
        let home = fleet.env.home().display().to_string();
        let again = json!([question(agent)]).to_string().replace("HOME/", &format!("{home}/"));
        let begun = fleet.provider.log().len();
        expect_gone(&fleet, &[], &format!("@@{again} round {round}"));
        wait_for("the next question", || (fleet.provider.log().len() > begun).then_some(()));
        fleet.wait_readiness("A", "busy");
    }
    for (text, code, words) in sent {
        if code == 0 {
            expect_told(&fleet, &text);
        } else {
            assert!(!told(&fleet).concat().contains(&text), "{text}: {words}");
        }
    }
    down(&fleet);
}

/// At a start dialog a role stays `starting`, `up` and `status` say why, and nothing is typed. A project
/// of somebody's that brings hooks makes Codex ask about them.
#[test]
fn a_start_dialog_of_codex_is_named_and_left_alone() {
    needs_built!(Agent::Codex);
    let fleet = AgentFleet::new(&[AgentRole::new("A", Agent::Codex, false, json!([say("done")]))]);
    fleet.git_init("work");
    let hook = json!({ "type": "command", "command": "touch ran-by-a-hook" });
    let hooks = json!({ "hooks": { "SessionStart": [{ "hooks": [hook] }] } });
    fleet.env.write("work/.codex/hooks.json", &hooks.to_string());
    start_dialog(&fleet, "hooks", "Hooks need review");
    assert!(!fleet.env.path("work/ran-by-a-hook").exists());
    down(&fleet);
}

/// And a project that brings servers makes Claude Code ask about them, where a role lets it look.
#[test]
fn a_start_dialog_of_claude_is_named_and_left_alone() {
    needs_built!(Agent::Claude);
    let mut role = AgentRole::new("A", Agent::Claude, false, json!([say("done")]));
    "    harness_options: { mcp_servers_only: false }\n".clone_into(&mut role.more);
    let fleet = AgentFleet::new(&[role]);
    let server = json!({ "command": "touch", "args": ["ran-by-a-server"] });
    let servers = json!({ "mcpServers": { "found": server } });
    fleet.env.write("work/.mcp.json", &servers.to_string());
    start_dialog(&fleet, "project-mcp", "New MCP server found");
    assert!(!fleet.env.path("work/ran-by-a-server").exists());
    down(&fleet);
}

/// The same for a program that is started as a `command`: nobody accepted its questions beforehand.
#[test]
fn a_start_dialog_of_a_command_is_left_alone() {
    needs_built!(Agent::Claude);
    let fleet = AgentFleet::new(&[]);
    fleet.env.write("config/.claude.json", r#"{ "hasCompletedOnboarding": true }"#);
    fleet.env.write("work/README", "");
    let (home, url) = (fleet.env.home().display(), &fleet.provider.url);
    let yaml = format!(
        "start_stagger_ms: 0\nroles:\n  A:\n    harness: command\n    cwd: {home}/work\n    env: \
         {{ CLAUDE_CONFIG_DIR: '{home}/config', ANTHROPIC_BASE_URL: '{url}', ANTHROPIC_AUTH_TOKEN: \
         scripted }}\n    harness_options: {{ argv: [claude], ready: ['for shortcuts'], modal: \
         ['Quick safety check'] }}\n"
    );
    fleet.env.write("fleet.yaml", &yaml);
    start_dialog(&fleet, "", "Quick safety check");
    down(&fleet);
}

#[track_caller]
fn start_dialog(fleet: &AgentFleet, name: &str, text: &str) {
    let mut command = fleet.env.command();
    let mut up = command.arg("up").spawn().expect("the binary runs");
    wait_for("the start dialog", || screen(fleet).contains(text).then_some(()));
    wait_for("the role says so", || (fleet.readiness("A") == "dialog").then_some(()));
    let status = fleet.env.status("A");
    assert_eq!(status["status"]["state"], "starting", "{status}");
    let detail = status["status"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("start dialog") && detail.contains(name), "{status}");
    expect_refused(fleet, &["--timeout", "1"], "1", 3, "modal");
    assert!(screen(fleet).contains(text), "it is still open");
    assert_eq!(fleet.provider.log().len(), 0);
    drop(up.kill());
    drop(up.wait());
}

#[rstest]
fn the_draft_of_a_person_is_left_alone(#[values(Agent::Claude, Agent::Codex)] agent: Agent) {
    needs_built!(agent);
    let fleet = idle(agent);
    let draft = "a draft of a person";
    tmux(&fleet, &["send-keys", "-l", draft]);
    wait_for("the draft shows", || screen(&fleet).contains(draft).then_some(()));
    expect_refused(&fleet, &["--timeout", "1"], "behind the draft", 3, "draft");
    let shown = screen(&fleet);
    assert!(shown.contains(draft) && !shown.contains("behind the draft"), "{shown}");
    // Its author sends it: it is what he wrote.
    tmux(&fleet, &["send-keys", "Enter"]);
    expect_told(&fleet, draft);
    fleet.wait_readiness("A", "idle");
    expect_gone(&fleet, &[], "after the draft");
    expect_told(&fleet, "after the draft");
    expect_never_told(&fleet, "behind the draft");
    down(&fleet);
}

#[rstest]
fn a_console_somebody_reads_back_in_takes_texts(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
) {
    needs_built!(agent);
    let fleet = idle(agent);
    tmux(&fleet, &["copy-mode"]);
    expect_gone(&fleet, &[], "through the copy mode");
    expect_told(&fleet, "through the copy mode");
    down(&fleet);
}

/// 50 texts from 4 senders at once: each receipt is true.
#[rstest]
fn nothing_is_lost_or_glued_with_many_senders(#[values(Agent::Claude, Agent::Codex)] agent: Agent) {
    const SENDERS: usize = 4;
    const TEXTS: usize = 50;
    needs_built!(agent);
    let fleet = idle(agent);
    let outcomes: Vec<(String, i32, String)> = thread::scope(|scope| {
        let sender = |sender: usize| {
            let fleet = &fleet;
            move || -> Vec<_> {
                let own = (0..TEXTS).filter(|n| n % SENDERS == sender);
                own.map(|n| {
                    let text = format!("text <{n}> of sender {sender};");
                    let (code, words) = send(fleet, &["--timeout", "60"], &text);
                    (text, code, words)
                })
                .collect()
            }
        };
        let senders: Vec<_> = (0..SENDERS).map(|n| scope.spawn(sender(n))).collect();
        senders.into_iter().flat_map(|sender| sender.join().expect("a sender")).collect()
    });
    let sent: Vec<_> = outcomes.iter().filter(|(_, code, _)| *code == 0).collect();
    for (text, _, _) in &sent {
        expect_told(&fleet, text);
    }
    let said = told(&fleet).concat();
    for (text, code, words) in &outcomes {
        assert!(*code == 0 || !said.contains(text.as_str()), "{text}: {words}");
    }
    assert_eq!(sent.len(), TEXTS, "{outcomes:#?}");
    down(&fleet);
}
