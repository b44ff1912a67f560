//! What really happens when nobody is at the keyboard: every neutral approval and filesystem, with and
//! without our isolation, on the real programs. The table in `docs/unattended-matrix.md` is what was
//! observed; each cell is compared with it, and with what `config` claims.
//!
//! With `OURS_FLEET_MEASURE=FILE` each cell adds its row to that file instead, whatever the table says:
//! `scripts/qualify.sh` compares them, and writes them into the table on request.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, say};
use crate::support::{Provider, needs};

/// The probes, in the order of the table's columns.
const PROBES: &[&str] = &[
    "read state",
    "write cwd",
    "write state",
    "write elsewhere",
    "command cwd",
    "command state",
    "command elsewhere",
    "mcp",
];

/// What the fleet's own messaging will be called. Until it is built a server of the tests bears the name.
const OURS: &str = "ours";
/// Where that server writes, on the host.
const MAIL: &str = ".ours-fleet/agents/A/mail";

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
        "mcp" => {
            let call = json!({ "server": OURS, "tool": "note", "args": { "text": "mail" } });
            (json!({ "mcp": call }), Some(MAIL))
        }
        other => panic!("no probe {other}"),
    }
}

/// The capabilities that a probe can show, in their order, and the probes that must succeed unasked.
const WORKS: &[(&str, &[&str])] = &[
    ("read-state", &["read state"]),
    ("write-state", &["write state"]),
    ("messaging", &["mcp"]),
    ("workspace-edit", &["write cwd", "command cwd"]),
    ("status-commands", &["command state"]),
];

fn works(seen: &Seen, probes: &[&str]) -> bool {
    probes.iter().all(|probe| seen[probe] == "ok")
}

/// What tools say when they did it.
const DONE: &[&str] = &["File created successfully", "Success. Updated", "worked"];

/// Tries one thing and tells what came of it: `ok`, `ask`, `ro`, `lost` or `no`.
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
                // In the sandbox's own temporary directory, which ends with it.
                Some(_) if DONE.iter().any(|word| told.contains(word)) => "lost",
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

/// A cell of the matrix.
#[derive(Debug, Clone, Copy)]
struct Cell {
    agent: Agent,
    approval: &'static str,
    filesystem: &'static str,
    isolated: bool,
}

type Seen = BTreeMap<&'static str, &'static str>;

impl Cell {
    fn fleet(self) -> AgentFleet {
        let mut role = AgentRole::new("A", self.agent, self.isolated, json!([say("ready")]));
        role.approval = self.approval;
        role.filesystem = self.filesystem;
        role.unattended = "wait";
        if self.agent == Agent::Claude {
            // Only so does the program look at servers that fleet does not name.
            "    harness_options: { mcp_servers_only: false }\n".clone_into(&mut role.more);
        }
        let fleet = AgentFleet::new(&[role]);
        std::fs::create_dir(fleet.env.path("elsewhere")).expect("a directory");
        self.add_server(&fleet);
        fleet
    }

    /// Gives the role the server that stands in for the fleet's own, in the way that the fleet will:
    /// under its name, and for Codex with its tools approved. Fleet itself lets no operator name a server
    /// so; the files of the program that are not fleet's can.
    fn add_server(self, fleet: &AgentFleet) {
        // In the working directory, which the isolation shows.
        let program = fleet.env.path("work/mail-server");
        std::fs::copy(Provider::program(), &program).expect("a copy");
        let (program, mail) = (program.display().to_string(), fleet.env.path(MAIL));
        let args = json!(["mcp", mail]);
        match self.agent {
            Agent::Claude => {
                let server = json!({ "type": "stdio", "command": program, "args": args });
                let home = ".ours-fleet/harness/A/claude-code/.claude.json";
                let file =
                    fleet.env.write(home, &json!({ "mcpServers": { OURS: server } }).to_string());
                for private in file.ancestors().take_while(|it| *it != fleet.env.home()) {
                    let mode = if private.is_dir() { 0o700 } else { 0o600 };
                    std::fs::set_permissions(private, Permissions::from_mode(mode))
                        .expect("a mode");
                }
            }
            Agent::Codex => {
                let config = format!(
                    "[mcp_servers.{OURS}]\ncommand = {program:?}\nargs = {args}\n\
                     default_tools_approval_mode = \"approve\"\n"
                );
                fleet.env.write("work/.codex/config.toml", &config);
            }
        }
    }

    /// What `config` claims, and what then happens.
    fn run(self) -> (Value, Seen) {
        let fleet = self.fleet();
        let mut config = fleet.env.run(["config", "--json"]).expect(0).json();
        fleet.up();
        fleet.env.write(".ours-fleet/agents/A/ROUTINES.md", "CANARY-OF-THE-ROUTINES\n");
        fleet.wait_step("ready");
        fleet.wait_readiness("A", "idle");
        let seen = PROBES
            .iter()
            .enumerate()
            .map(|(number, probe)| (*probe, observe(&fleet, number, probe)))
            .collect();
        fleet.env.run(["down"]).expect(0);
        (config["roles"][0]["permissions"].take(), seen)
    }

    fn key(self) -> String {
        let isolation = if self.isolated { "on" } else { "off" };
        let Self { agent, approval, filesystem, .. } = self;
        format!("| {} | {approval} | {filesystem} | {isolation} |", agent.harness())
    }

    fn row(self, claimed: &Value, seen: &Seen) -> String {
        let mut row = self.key();
        for probe in PROBES {
            write!(row, " {} |", seen[probe]).expect("text");
        }
        let lacks: Vec<&str> =
            WORKS.iter().filter(|it| !works(seen, it.1)).map(|it| it.0).collect();
        let floor =
            if lacks.is_empty() { "all".to_owned() } else { format!("no {}", lacks.join(", ")) };
        write!(row, " {floor} |").expect("text");
        row.push_str(if claimed["exact"] == true { " exact |" } else { " not exact |" });
        row
    }

    /// Why what was seen is not exactly what the neutral words mean (01 §3.1); nothing where it is.
    fn deviations(self, seen: &Seen) -> Vec<String> {
        let cwd = ["write cwd", "command cwd"];
        let state = ["write state", "command state"];
        let elsewhere = ["write elsewhere", "command elsewhere"];
        // Isolated, `unrestricted` means all that the isolation shows.
        let bounded = self.isolated || self.filesystem != "unrestricted";
        let mut inside = state.to_vec();
        let mut outside = Vec::new();
        if self.filesystem == "read-only" { &mut outside } else { &mut inside }.extend(cwd);
        if bounded { &mut outside } else { &mut inside }.extend(elsewhere);
        let mut found = Vec::new();
        for probe in inside.iter().chain(&outside) {
            let (within, outcome) = (inside.contains(probe), seen[probe]);
            let right = match self.approval {
                "ask" => outcome != "ok",
                _ if within => outcome == "ok",
                "auto" => outcome != "ok",
                _ => ["no", "ro", "lost"].contains(&outcome),
            };
            if !right {
                found.push(format!("{probe}: {outcome}"));
            }
        }
        found
    }

    /// Where `config` says something else than what was seen.
    fn contradictions(self, claimed: &Value, seen: &Seen) -> Vec<String> {
        let list = claimed["capabilities"].as_array().cloned().unwrap_or_default();
        let mut wrong = Vec::new();
        for (capability, probes) in WORKS {
            let granted = list.iter().any(|it| it == capability);
            if granted != works(seen, probes) {
                wrong.push(format!("{capability}: claimed {granted}"));
            }
        }
        // Messaging is no part of the floor while it is not built.
        let missing: Vec<&str> = WORKS
            .iter()
            .filter(|it| it.0 != "messaging" && !works(seen, it.1))
            .map(|it| it.0)
            .collect();
        if claimed["floor"]["missing"] != json!(missing) {
            wrong.push(format!("floor: claimed {}, seen {missing:?}", claimed["floor"]["missing"]));
        }
        let deviations = self.deviations(seen);
        if (claimed["exact"] == true) != deviations.is_empty() {
            wrong.push(format!("exact: claimed {}, but {deviations:?}", claimed["exact"]));
        }
        let warned = claimed["warnings"].as_array().is_some_and(|list| !list.is_empty());
        if warned == (claimed["exact"] == true) {
            wrong.push(format!("exact is {}, warnings {}", claimed["exact"], claimed["warnings"]));
        }
        wrong
    }
}

const TABLE: &str = include_str!("../../../docs/unattended-matrix.md");

/// The row that is checked in.
fn recorded(cell: Cell) -> &'static str {
    let key = cell.key();
    TABLE.lines().find(|line| line.starts_with(&key)).unwrap_or("no such row")
}

#[rstest]
fn as_user_the_matrix_is_what_config_claims(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
    #[values("ask", "auto", "allow")] approval: &'static str,
    #[values("read-only", "workspace", "unrestricted")] filesystem: &'static str,
    #[values(false, true)] isolated: bool,
) {
    needs!("tmux", "bwrap", "socat");
    needs_agent!(agent);
    let cell = Cell { agent, approval, filesystem, isolated };
    let (claimed, seen) = cell.run();
    let row = cell.row(&claimed, &seen);
    if let Some(file) = std::env::var_os("OURS_FLEET_MEASURE").filter(|file| !file.is_empty()) {
        let file = OpenOptions::new().append(true).create(true).open(file);
        file.expect("a file").write_all(format!("{row}\n").as_bytes()).expect("written");
    } else {
        assert_eq!(recorded(cell), row, "docs/unattended-matrix.md says otherwise");
    }
    assert_eq!(cell.contradictions(&claimed, &seen), Vec::<String>::new(), "{row}\n{claimed}");
}

/// Root is bound by nothing but the isolation, and then it works as anybody.
#[rstest]
fn as_root_an_isolated_agent_does_what_the_matrix_says(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
) {
    needs!("tmux", "bwrap", "socat");
    needs_agent!(agent);
    let cell = Cell { agent, approval: "allow", filesystem: "unrestricted", isolated: true };
    let (claimed, seen) = cell.run();
    assert_eq!(recorded(cell), cell.row(&claimed, &seen));
    assert_eq!(cell.contradictions(&claimed, &seen), Vec::<String>::new(), "{claimed}");
}

#[test]
fn as_root_claude_without_bounds_and_without_isolation_is_refused() {
    needs!("tmux");
    needs_agent!(Agent::Claude);
    let cell = Cell {
        agent: Agent::Claude,
        approval: "allow",
        filesystem: "unrestricted",
        isolated: false,
    };
    let fleet = cell.fleet();
    let refused = fleet.env.run(["up"]).expect(1).all();
    let why = "refuses `bypassPermissions` as root without isolation: isolate the role";
    assert!(refused.contains(why), "{refused}");
    assert_eq!(fleet.provider.log().len(), 0);
    fleet.env.expect_no_process();
}
