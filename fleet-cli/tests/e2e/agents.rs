//! The real Claude Code and Codex, started by `up` in a brand-new home: they come up without a
//! dialog, read their briefing, work, are confined, and come back with the same conversation.

use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, run, say};
use crate::support::{needs, wait_for};

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(status.expect("kill").success());
}

/// What `status` calls the conversation.
fn session(fleet: &AgentFleet, role: &str) -> Value {
    fleet.env.status(role)["status"]["sessionId"].clone()
}

/// What no agent with a bound may read, isolated or not: a directory, what stands in a file of it, and
/// whether the tool for reading is tried beside a command.
const PLACES: &[(&str, &str, bool)] = &[
    (".ssh", "CANARY-OF-SSH", true),
    (".config/gh", "CANARY-OF-A-LOGIN", false),
    (".ours-fleet/agents/B", "CANARY-OF-THE-SIBLING", true),
    (".ours-fleet/harness/B/codex", "CANARY-OF-ITS-HOME", false),
    (".ours-fleet/handout/B", "CANARY-OF-ITS-HANDOUT", false),
    (".ours-fleet/control/B", "CANARY-OF-CONTROL", true),
];
/// The file in each place, and the name by which the step of the tool is found again.
const FILE: &str = "canary";

/// All places by one command, and some by the tool for reading.
pub(super) fn with_looks(script: Value) -> Value {
    let Value::Array(steps) = script else { panic!("a script is a list") };
    let files: Vec<String> =
        PLACES.iter().map(|(place, ..)| format!("HOME/{place}/{FILE}")).collect();
    let command = run(&format!("cat {}; echo looked", files.join(" ")));
    let tools = PLACES.iter().filter(|it| it.2);
    let tools = tools.map(|(place, ..)| json!({ "read": format!("HOME/{place}/{FILE}-2") }));
    std::iter::once(command).chain(tools).chain(steps).collect()
}

pub(super) fn write_canaries(fleet: &AgentFleet) {
    for (place, canary, _) in PLACES {
        for name in [FILE.to_owned(), format!("{FILE}-2")] {
            fleet.env.write(&format!("{place}/{name}"), &format!("{canary}\n"));
        }
    }
}

/// The canaries that the model was told, and how it came to them. Each call must have been made, as the
/// provider's log tells.
#[track_caller]
pub(super) fn leaks(fleet: &AgentFleet) -> Vec<String> {
    let told = fleet.told_after("echo looked");
    assert!(told.contains("looked"), "the command was never run: {told}");
    let found = PLACES.iter().filter(|it| told.contains(it.1));
    let mut leaks: Vec<String> = found.map(|it| format!("{} by a command", it.1)).collect();
    for (place, canary, _) in PLACES.iter().filter(|it| it.2) {
        let told = fleet.told_after(&format!("{place}/{FILE}-2"));
        assert!(!told.is_empty(), "{place}: the tool was never called");
        if told.contains(canary) {
            leaks.push(format!("{canary} by the tool"));
        }
    }
    leaks
}

#[rstest]
fn an_agent_works_unattended_and_confined(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
    #[values(false, true)] isolated: bool,
    #[values(false, true)] worktree: bool,
) {
    needs!("tmux", "bwrap", "git", "socat");
    needs_agent!(agent);
    let script = json!([
        run("echo began >> HOME/.ours-fleet/agents/A/WORKLOG.md"),
        { "edit": { "path": "HOME/work/answer.sh", "old": "echo 41", "new": "echo 42" } },
        run("sh HOME/work/test.sh"),
        run("git add answer.sh test.sh && git -c user.name=A -c user.email=a@example.org commit -q -m by-the-agent && git log -1 --format=%s"),
        say("all done"),
    ]);
    let role = AgentRole::new("A", agent, isolated, with_looks(script));
    let fleet = AgentFleet::new(std::slice::from_ref(&role));
    if worktree {
        fleet.git_init("main");
        std::fs::remove_dir(fleet.env.path("work")).expect("an empty directory");
        fleet.git("main", &["worktree", "add", "-q", "../work", "-b", "task"]);
    } else {
        fleet.git_init("work");
    }
    fleet.env.write("work/answer.sh", "echo 41\n");
    fleet.env.write("work/test.sh", "test \"$(sh answer.sh)\" = 42 && echo test-passed\n");
    write_canaries(&fleet);
    fleet.env.run(["init"]).expect(0);

    fleet.up();
    fleet.wait_step("all done");
    fleet.wait_readiness("A", "idle");

    let log = fleet.env.state_file("A", "WORKLOG.md").expect("a worklog");
    assert_eq!(String::from_utf8_lossy(&log), "began\n");
    for (step, said) in [("test.sh", "test-passed"), ("by-the-agent", "by-the-agent")] {
        let told = fleet.told_after(step);
        assert!(told.contains(said), "{step}: {told}");
    }
    assert_eq!(fleet.git("work", &["log", "-1", "--format=%s %an"]), "by-the-agent A\n");
    assert_eq!(leaks(&fleet), Vec::<String>::new());
    let ghosts = fleet.env.path(".aws").exists() || fleet.env.path(".gnupg").exists();
    assert!(!ghosts, "what is denied and absent was made");

    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}

/// The control of the test above: with the same probes an agent that may do everything is told all of
/// it, so a refusal there is a refusal.
#[rstest]
#[case::codex(Agent::Codex, "allow")]
#[case::claude(Agent::Claude, "auto")]
#[case::as_user_claude(Agent::Claude, "allow")]
fn an_agent_without_bounds_and_without_isolation_reads_everything(
    #[case] agent: Agent,
    #[case] approval: &'static str,
) {
    needs!("tmux");
    needs_agent!(agent);
    let mut role = AgentRole::new("A", agent, false, with_looks(json!([say("all done")])));
    role.approval = approval;
    role.filesystem = "unrestricted";
    let fleet = AgentFleet::new(std::slice::from_ref(&role));
    write_canaries(&fleet);
    fleet.up();
    fleet.wait_step("all done");
    let leaks = leaks(&fleet);
    let tries = PLACES.len() + PLACES.iter().filter(|it| it.2).count();
    assert_eq!(leaks.len(), tries, "{leaks:?}");
    let config = fleet.env.run(["config", "--json"]).expect(0).json();
    let notes = config["roles"][0]["permissions"]["notes"].to_string();
    assert!(notes.contains("can read all that this account can"), "{notes}");
    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}

/// Killed in the middle of a turn, an agent goes on with the conversation that it had.
#[rstest]
fn a_killed_agent_resumes_its_conversation(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
    #[values(false, true)] isolated: bool,
) {
    needs!("tmux", "bwrap", "socat");
    needs_agent!(agent);
    let script = json!([
        run("echo first-step"),
        { "run": "echo second-step", "hold": true },
        say("all done"),
    ]);
    let role = AgentRole::new("A", agent, isolated, script);
    let fleet = AgentFleet::new(std::slice::from_ref(&role));
    fleet.env.run(["init"]).expect(0);
    fleet.up();
    fleet.wait_step("second-step");
    fleet.wait_readiness("A", "busy");
    let before = fleet.env.status("A");
    let asked = fleet.provider.log().len();
    kill(fleet.agent_pid(&role));
    let again = wait_for("the agent asks again", || {
        fleet.provider.log().into_iter().skip(asked).find(|entry| !entry.side)
    });
    let body = again.body.to_string();
    assert!(body.contains("first-step"), "the conversation is the one before: {body}");
    let after = fleet.env.status("A");
    assert_eq!(after["status"]["mode"], "resume", "{after}");
    assert_eq!(after["status"]["attempt"], 2, "{before} {after}");
    let id = session(&fleet, "A");
    assert!(id.is_string(), "{after}");
    if agent == Agent::Claude {
        assert_eq!(before["status"]["sessionId"], id);
    }
    fleet.provider.release();
    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}

/// Two roles in one directory: each goes on with its own conversation, whoever wrote last.
#[rstest]
fn a5_two_agents_in_one_directory_never_swap_conversations(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
    #[values(false, true)] isolated: bool,
) {
    needs!("tmux", "bwrap", "socat");
    needs_agent!(agent);
    let role = |name, word: &str| {
        let script = json!([run(&format!("echo {word}")), say("all done")]);
        AgentRole::new(name, agent, isolated, script)
    };
    let roles = [role("A", "word-of-a"), role("B", "word-of-b")];
    let fleet = AgentFleet::new(&roles);
    fleet.env.run(["init"]).expect(0);
    fleet.up();
    for name in ["A", "B"] {
        fleet.wait_readiness(name, "idle");
    }
    wait_for("both are done", || {
        (fleet.provider.log().iter().filter(|it| it.step.to_string().contains("all done")).count()
            >= 2)
            .then_some(())
    });
    for name in ["A", "B"] {
        fleet.wait_readiness(name, "idle");
    }
    let asked = fleet.provider.log().len();
    for role in &roles {
        kill(fleet.agent_pid(role));
    }
    for (name, own, other) in [("A", "word-of-a", "word-of-b"), ("B", "word-of-b", "word-of-a")] {
        let request = wait_for("the agent asks again", || {
            let log = fleet.provider.log();
            log.into_iter()
                .skip(asked)
                .find(|entry| !entry.side && entry.body.to_string().contains(own))
        });
        let body = request.body.to_string();
        assert!(!body.contains(other), "{name} has the other conversation: {body}");
        assert_eq!(fleet.env.status(name)["status"]["mode"], "resume");
    }
    assert_ne!(session(&fleet, "A"), session(&fleet, "B"));
    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}
