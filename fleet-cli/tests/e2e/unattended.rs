//! `unattended: deny` with the real programs: a question is denied at once while nobody is there, and
//! its dialog opens for a terminal that is attached (02 §7.6).

use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, say};
use crate::support::{needs, wait_for};

/// A call that each program asks about: the provider waits before it until it is released.
fn question(agent: Agent) -> Value {
    match agent {
        Agent::Claude => json!({
            "write": { "path": "HOME/elsewhere.txt", "content": "asked-for" }, "hold": true
        }),
        Agent::Codex => json!({
            "run": "rm -rf HOME/work/asked-for", "escalate": "asked-for", "hold": true
        }),
    }
}

fn fleet(agent: Agent, isolated: bool, unattended: &'static str) -> AgentFleet {
    let script = json!([question(agent), say("went on")]);
    let mut role = AgentRole::new("A", agent, isolated, script);
    role.approval = "ask";
    role.unattended = unattended;
    let fleet = AgentFleet::new(&[role]);
    fleet.up();
    fleet.wait_step("asked-for");
    fleet
}

/// Recorded decisions about questions.
fn decisions(fleet: &AgentFleet) -> Vec<String> {
    let log = fleet.env.read(".ours-fleet/control/A/session-events.jsonl").unwrap_or_default();
    let events = String::from_utf8(log).expect("UTF-8");
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let questions = events.filter(|event| event["kind"] == "permission");
    questions.map(|event| event["decision"].as_str().expect("a word").to_owned()).collect()
}

macro_rules! needs_built {
    ($agent:expr) => {
        needs!("tmux", "bwrap", "socat");
        needs_agent!($agent);
    };
}

#[rstest]
#[case::claude(Agent::Claude, false)]
#[case::claude_confined(Agent::Claude, true)]
#[case::codex_confined(Agent::Codex, true)]
fn while_nobody_is_there_a_question_is_denied_and_the_model_is_told(
    #[case] agent: Agent,
    #[case] isolated: bool,
) {
    needs_built!(agent);
    let fleet = fleet(agent, isolated, "deny");
    fleet.provider.release();
    fleet.wait_step("went on");
    let told = fleet.told_after("asked-for");
    assert!(told.contains("nobody is at this console"), "{told}");
    assert_eq!(decisions(&fleet), ["denied"]);
    assert!(!fleet.env.path("elsewhere.txt").exists());
    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}

/// A terminal attached in another tmux server, ended with the test.
struct Attached(std::path::PathBuf);

impl Attached {
    fn new(fleet: &AgentFleet) -> Self {
        let socket = fleet.env.path("t.sock");
        let own = fleet.env.path(".ours-fleet/control/A/tmux.sock").display().to_string();
        let attach = ["tmux", "-S", &own, "attach-session", "-t", "=A"];
        let status = Command::new("tmux")
            .arg("-S")
            .arg(&socket)
            .args(["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40"])
            .args(["env", "-u", "TMUX"])
            .args(attach)
            .env("HOME", fleet.env.home())
            .status();
        assert!(status.expect("tmux").success());
        let attached = Self(socket);
        wait_for("a terminal is attached", || {
            let list = Command::new("tmux").args(["-S", &own, "list-clients"]).output();
            (!list.expect("tmux").stdout.is_empty()).then_some(())
        });
        attached
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        drop(Command::new("tmux").arg("-S").arg(&self.0).arg("kill-server").status());
    }
}

#[rstest]
#[case::claude(Agent::Claude, false, true)]
#[case::claude_confined(Agent::Claude, true, true)]
#[case::codex_confined(Agent::Codex, true, true)]
#[case::claude_waits(Agent::Claude, false, false)]
#[case::codex_waits(Agent::Codex, true, false)]
fn where_somebody_is_there_or_will_come_the_dialog_opens(
    #[case] agent: Agent,
    #[case] isolated: bool,
    #[case] attach: bool,
) {
    needs_built!(agent);
    let fleet = fleet(agent, isolated, if attach { "deny" } else { "wait" });
    let attached = attach.then(|| Attached::new(&fleet));
    fleet.provider.release();
    wait_for("the question was let through", || (decisions(&fleet) == ["asked"]).then_some(()));
    wait_for("the dialog is on the screen", || {
        let screen = fleet.env.run(["peek", "A"]).stdout;
        screen.contains("1. Yes").then_some(())
    });
    let asked = |entry: &crate::scripted_provider::record::Entry| {
        !entry.side && entry.step.to_string().contains("went on")
    };
    assert!(!fleet.provider.log().iter().any(asked), "nobody has answered");
    drop(attached);
    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}
