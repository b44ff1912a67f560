//! The sandboxes of the real Claude Code and Codex inside ours (`nested_sandbox: true`). A directory that ours
//! grants and theirs does not tells them apart.

use rstest::rstest;
use serde_json::json;

use super::agents::write_canaries;
use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, run, say};
use crate::support::needs;

/// As root there is none: no sandbox can be made in a sandbox that holds no capability.
#[rstest]
#[case::inside(true)]
#[case::control_without(false)]
fn as_user_a_command_is_in_both_sandboxes(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
    #[case] nested: bool,
) {
    needs!("tmux", "bwrap", "socat");
    needs_agent!(agent);
    // Few steps: a sandbox in a sandbox takes its time on a busy machine.
    let script = json!([
        run("cat HOME/.ssh/canary HOME/.ours-fleet/control/B/canary; echo looked"),
        run("echo inside > HOME/work/inside && echo wrote-in''side"),
        run("echo granted > HOME/granted/file && echo wrote-gran''ted || echo refused-by-the''irs"),
        run("echo hidden > HOME/hidden/file && echo wrote-hid''den || echo refused-by-o''urs"),
        say("all done"),
    ]);
    let mut role = AgentRole::new("A", agent, false, script);
    role.more = "    isolation: ISOLATION\n".to_owned();
    let fleet = AgentFleet::new(std::slice::from_ref(&role));
    for directory in ["granted", "hidden"] {
        std::fs::create_dir(fleet.env.path(directory)).expect("a directory");
    }
    let granted = fleet.env.path("granted").display().to_string();
    let block = format!(
        "{{ backend: bubblewrap, network: broker, nested_sandbox: {nested}, \
         on_unavailable: strict, fs: {{ write: ['{granted}'] }} }}"
    );
    let yaml = String::from_utf8(fleet.env.read("fleet.yaml").expect("a fleet")).expect("text");
    fleet.env.write("fleet.yaml", &yaml.replace("ISOLATION", &block));
    write_canaries(&fleet);
    fleet.env.run(["init"]).expect(0);
    let config = fleet.env.run(["config", "--json"]).expect(0).json();
    let outer = if nested { "nested" } else { "on" };
    assert_eq!(config["roles"][0]["permissions"]["outer"], outer, "{config}");

    fleet.up();
    fleet.wait_step("all done");
    fleet.wait_readiness("A", "idle");
    let told = fleet.told_after("HOME/work/inside".trim_start_matches("HOME"));
    assert!(told.contains("wrote-inside"), "{told}");
    let told = fleet.told_after("/granted/file");
    let answer = if nested { "refused-by-theirs" } else { "wrote-granted" };
    assert!(told.contains(answer), "{told}");
    assert_eq!(fleet.env.path("granted/file").exists(), !nested);
    let told = fleet.told_after("/hidden/file");
    assert!(told.contains("refused-by-ours"), "{told}");
    assert!(!fleet.env.path("hidden/file").exists());
    let told = fleet.told_after("echo looked");
    assert!(told.contains("looked") && !told.contains("CANARY"), "{told}");
    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}
