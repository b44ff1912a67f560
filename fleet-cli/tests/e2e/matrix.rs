//! What really happens when nobody is at the keyboard: every neutral approval and filesystem, with and
//! without our isolation, on the real programs. The table in `docs/unattended-matrix.md` is what was
//! observed; each cell is compared with it, and with what `config` claims.
//!
//! `OURS_FLEET_MEASURE=1` writes the observed rows into the table instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, say};
use crate::support::needs;

/// The probes, in the order of the table's columns.
const PROBES: &[&str] = &[
    "read state",
    "write cwd",
    "write state",
    "write elsewhere",
    "command cwd",
    "command state",
    "command elsewhere",
];

/// What is tried, and the file that is there afterwards if it worked.
fn attempt(probe: &str) -> (Value, Option<&'static str>) {
    let write = |path: &str| json!({ "write": { "path": path, "content": "probe\n" } });
    let command =
        |path: &str| json!({ "run": format!("sh -c 'echo probe > {path}' && echo worked") });
    match probe {
        "read state" => (json!({ "read": "HOME/.ours-fleet/agents/A/ROUTINES.md" }), None),
        "write cwd" => (write("HOME/work/written"), Some("work/written")),
        "write state" => {
            (write("HOME/.ours-fleet/agents/A/written"), Some(".ours-fleet/agents/A/written"))
        }
        "write elsewhere" => (write("HOME/elsewhere/written"), Some("elsewhere/written")),
        "command cwd" => (command("HOME/work/run"), Some("work/run")),
        "command state" => {
            (command("HOME/.ours-fleet/agents/A/run"), Some(".ours-fleet/agents/A/run"))
        }
        "command elsewhere" => (command("HOME/elsewhere/run"), Some("elsewhere/run")),
        other => panic!("no probe {other}"),
    }
}

/// Tries one thing and tells what came of it: `ok`, `ask`, `ro` or `no`.
fn observe(fleet: &AgentFleet, number: usize, probe: &str) -> &'static str {
    let (step, file) = attempt(probe);
    let home = fleet.env.home().display().to_string();
    let end = format!("probe {number} over");
    let script = json!([step, say(&end)]).to_string().replace("HOME/", &format!("{home}/"));
    let asked = fleet.provider.log().len();
    fleet.env.run(["send", "A", &format!("next @@{script}")]).expect(0);
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        let log = fleet.provider.log();
        let turns = || log.iter().skip(asked).filter(|entry| !entry.side);
        if let Some(last) = turns().find(|entry| entry.step.to_string().contains(&end)) {
            let told: String = last.told.iter().map(|result| result.text.as_str()).collect();
            assert!(!last.told.is_empty(), "the tool was never called: {last:?}");
            fleet.wait_readiness("A", "idle");
            return match file {
                Some(file) if fleet.env.path(file).exists() => "ok",
                None if told.contains("CANARY-OF-THE-ROUTINES") => "ok",
                _ if told.contains("Read-only file system") => "ro",
                _ => "no",
            };
        }
        if turns().next().is_some() && fleet.readiness("A") == "waiting" {
            assert!(
                file.is_none_or(|file| !fleet.env.path(file).exists()),
                "{probe}: done and asked"
            );
            fleet.env.run(["send", "A", "--key", "Escape"]).expect(0);
            fleet.wait_readiness("A", "idle");
            return "ask";
        }
        if Instant::now() > limit {
            let peek = fleet.env.run(["peek", "A"]).all();
            panic!("{probe}: neither done nor asked\n{peek}\n{}", fleet.env.status("A"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What the claims of `config` say about a cell; problems, one line each.
fn contradictions(
    config: &Value,
    approval: &str,
    filesystem: &str,
    seen: &BTreeMap<&str, &str>,
) -> Vec<String> {
    let permissions = &config["roles"][0]["permissions"];
    let granted = |name: &str| {
        let list = permissions["capabilities"].as_array().cloned().unwrap_or_default();
        list.iter().any(|it| it == name)
    };
    let exact = permissions["exact"] == true;
    let mut wrong = Vec::new();
    let mut claim = |holds: bool, text: String| {
        if !holds {
            wrong.push(text);
        }
    };
    for (capability, probes) in [
        ("read-state", &["read state"][..]),
        ("write-state", &["write state"]),
        ("workspace-edit", &["write cwd", "command cwd"]),
        ("status-commands", &["command state"]),
    ] {
        let works = probes.iter().all(|probe| seen[probe] == "ok");
        claim(
            granted(capability) == works,
            format!("{capability}: claimed {}", granted(capability)),
        );
    }
    if exact {
        let outside = ["write elsewhere", "command elsewhere"];
        if filesystem != "unrestricted" {
            for probe in outside {
                claim(seen[probe] != "ok", format!("{probe} works"));
            }
        }
        if filesystem == "read-only" {
            for probe in ["write cwd", "command cwd"] {
                claim(seen[probe] != "ok", format!("{probe} works"));
            }
        }
        match approval {
            "ask" => {
                for probe in ["write cwd", "command cwd"].iter().chain(&outside) {
                    claim(seen[*probe] != "ok", format!("{probe} does not ask"));
                }
            }
            "allow" => {
                for (probe, outcome) in seen {
                    claim(*outcome != "ask", format!("{probe} asks"));
                }
            }
            _ => {}
        }
    }
    wrong
}

const TABLE: &str = include_str!("../../../docs/unattended-matrix.md");

#[rstest]
fn as_user_the_matrix_is_what_config_claims(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
    #[values("ask", "auto", "allow")] approval: &'static str,
    #[values("read-only", "workspace", "unrestricted")] filesystem: &'static str,
    #[values(false, true)] isolated: bool,
) {
    needs!("tmux", "bwrap", "socat");
    needs_agent!(agent);
    let mut role = AgentRole::new("A", agent, isolated, json!([say("ready")]));
    role.approval = approval;
    role.filesystem = filesystem;
    role.unattended = "wait";
    let fleet = AgentFleet::new(std::slice::from_ref(&role));
    std::fs::create_dir(fleet.env.path("elsewhere")).expect("a directory");
    fleet.env.run(["init"]).expect(0);
    fleet.env.write(".ours-fleet/agents/A/ROUTINES.md", "CANARY-OF-THE-ROUTINES\n");
    let config = fleet.env.run(["config", "--json"]).expect(0).json();
    fleet.up();
    fleet.wait_step("ready");
    fleet.wait_readiness("A", "idle");
    let seen: BTreeMap<&str, &str> = PROBES
        .iter()
        .enumerate()
        .map(|(number, probe)| (*probe, observe(&fleet, number, probe)))
        .collect();
    fleet.env.run(["down"]).expect(0);

    let key = format!(
        "| {} | {approval} | {filesystem} | {} |",
        agent.harness(),
        if isolated { "on" } else { "off" }
    );
    let mut row = key.clone();
    for probe in PROBES {
        write!(row, " {} |", seen[probe]).expect("text");
    }
    let exact = config["roles"][0]["permissions"]["exact"] == true;
    let wrong = contradictions(&config, approval, filesystem, &seen);
    row.push_str(if exact { " exact |" } else { " not exact |" });
    if std::env::var_os("OURS_FLEET_MEASURE").is_some() {
        println!("{row}");
    } else {
        let recorded = TABLE.lines().find(|line| line.starts_with(&key)).unwrap_or("no such row");
        assert_eq!(recorded, row, "docs/unattended-matrix.md says otherwise");
    }
    assert_eq!(wrong, Vec::<String>::new(), "{row}\n{}", config["roles"][0]["permissions"]);
}
