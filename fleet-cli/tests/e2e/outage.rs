//! Outages of the provider with the real programs: the role says so, goes on when the provider is back,
//! and nothing of ours adds a request.

use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, say};
use crate::support::{Outage, needs, said};

/// How long the provider is away; `OURS_FLEET_TEST_OUTAGE` has it otherwise, for a run by hand.
fn seconds() -> u64 {
    std::env::var("OURS_FLEET_TEST_OUTAGE").map_or(10, |text| text.parse().expect("seconds"))
}
/// The programs try again by themselves: Claude ten times, Codex up to five streams with five requests
/// each, as the tests configure it. A restart loop, or a sender of ours that tries again, would ask
/// more often.
const MOST_REQUESTS: usize = 25;
/// How long an agent may take afterwards: the programs wait up to half a minute between two tries.
const PATIENCE: Duration = Duration::from_secs(45);

fn outage(kind: &str) -> Outage {
    match kind {
        "overloaded" => Outage::status(529),
        "rate-limited" => Outage::status(429).retry_after(2),
        "cut" => Outage::cut(),
        _ => Outage::refuse(),
    }
}

/// Whether the model answered a request whose newest words are these.
fn answered(fleet: &AgentFleet, text: &str) -> bool {
    let log = fleet.provider.log();
    let mut turns = log.iter().filter(|entry| !entry.side && entry.outcome == "answered");
    turns.any(|entry| said(entry).last().is_some_and(|said| said.contains(text)))
}

fn agent_error(status: &Value) -> Option<String> {
    status["status"]["agent"]["error"].as_str().map(str::to_owned)
}

#[rstest]
fn an_outage_is_told_and_survived(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
    #[values("overloaded", "rate-limited", "cut", "refused")] kind: &str,
) {
    needs!("tmux", "socat");
    needs_agent!(agent);
    let role = AgentRole::new("A", agent, false, json!([say("first-step")]));
    let fleet = AgentFleet::new(std::slice::from_ref(&role));
    fleet.up();
    fleet.wait_step("first-step");
    fleet.wait_readiness("A", "idle");
    let (before, pid) = (fleet.env.status("A"), fleet.agent_pid(&role));
    let asked = fleet.provider.log().len();

    let begun = Instant::now();
    fleet.provider.set_outage(outage(kind).seconds(seconds()));
    fleet.env.run(["send", "A", "said in the outage"]).expect(0);
    let limit = Duration::from_secs(seconds());
    let mut told = None;
    while begun.elapsed() < limit {
        let status = fleet.env.status("A");
        if let Some(error) = agent_error(&status) {
            told.get_or_insert(error);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    let during = fleet.provider.log().len() - asked;
    assert!(told.is_some(), "never told: {}", fleet.env.run(["peek", "A"]).all());
    assert!(during <= MOST_REQUESTS, "{during} requests: {told:?}");

    // The turn goes on by itself, or it was given up and the next text begins another.
    let back = Instant::now();
    while fleet.readiness("A") != "idle" && back.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(250));
    }
    fleet.env.run(["send", "A", "said afterwards"]).expect(0);
    fleet.wait_readiness("A", "idle");
    crate::support::wait_for("the model answers again", || {
        answered(&fleet, "said afterwards").then_some(())
    });
    fleet.wait_readiness("A", "idle");
    let after = fleet.env.status("A");
    assert_eq!(agent_error(&after), None, "it is over: {after}");
    for part in ["attempt", "failures", "abruptTerminations", "launchId"] {
        assert_eq!(before["status"][part], after["status"][part], "{part}");
    }
    assert_eq!(fleet.agent_pid(&role), pid, "the same process");
    let logs = fleet.env.run(["logs", "A"]).expect(0);
    for words in ["the agent shows an error: ", "the agent shows no error any more"] {
        assert!(logs.stdout.contains(words), "{}", logs.stdout);
    }
    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}
