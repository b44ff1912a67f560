//! Where a fleet keeps its state (02 §2.1): one place that spells every directory.

use camino::{Utf8Path, Utf8PathBuf};

use crate::id::{HarnessId, RoleName};

/// The homes of the account that runs the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Homes {
    /// Holds `fleet.yaml`, `fleet.d` and the state root: `$OURS_FLEET_HOME`, else `os`.
    pub fleet: Utf8PathBuf,
    /// `$HOME`, what a child gets as `HOME` and what `~` in a fleet file means.
    pub os: Utf8PathBuf,
    /// The home that the user database names, where it differs.
    pub passwd: Option<Utf8PathBuf>,
}

/// Paths of one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetLayout {
    home: Utf8PathBuf,
    root: Utf8PathBuf,
}

impl FleetLayout {
    /// The layout below a fleet home.
    pub fn new(home: &Utf8Path) -> Self {
        Self { home: home.to_owned(), root: home.join(".ours-fleet") }
    }

    /// The fleet home.
    pub fn home(&self) -> &Utf8Path {
        &self.home
    }

    /// The state root, `<home>/.ours-fleet`.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The base configuration used when none is named.
    pub fn base_config(&self) -> Utf8PathBuf {
        self.home.join("fleet.yaml")
    }

    /// The directory of drop-ins.
    pub fn drop_in_dir(&self) -> Utf8PathBuf {
        self.home.join("fleet.d")
    }

    /// Scratch of the trial of a harness's own sandbox. Where the homes of roles are, so that it meets
    /// what they meet.
    pub fn trial(&self, harness: &HarnessId) -> Utf8PathBuf {
        self.root.join("trial").join(harness.as_str())
    }

    /// Kernel locks that outlive a role directory.
    pub fn locks(&self) -> Utf8PathBuf {
        self.root.join("locks")
    }

    /// The moment of the last launch, for the host-wide start gate.
    pub fn last_launch(&self) -> Utf8PathBuf {
        self.root.join(".last-launch")
    }

    /// The control directories of all permanent roles, one entry a role.
    pub fn control_root(&self) -> Utf8PathBuf {
        self.root.join("control")
    }

    /// The four trees of a permanent role.
    pub fn role(&self, role: &RoleName) -> RoleTrees {
        RoleTrees {
            state: self.root.join("agents").join(role.as_str()),
            harness: self.root.join("harness").join(role.as_str()),
            handout: self.root.join("handout").join(role.as_str()),
            control: self.root.join("control").join(role.as_str()),
        }
    }
}

/// The four directory trees of a role; none lies inside another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleTrees {
    /// STATE: the agent's own, read-write in its sandbox.
    pub state: Utf8PathBuf,
    /// Parent of the harness homes, one directory a harness id.
    pub harness: Utf8PathBuf,
    /// What fleet writes for the agent to read, read-only in its sandbox.
    pub handout: Utf8PathBuf,
    /// Launch inputs, ledgers, sockets, logs; never visible in a sandbox.
    pub control: Utf8PathBuf,
}

macro_rules! files {
    ($($(#[$doc:meta])* $name:ident: $tree:ident / $file:literal;)*) => {
        impl RoleTrees {
            $($(#[$doc])* pub fn $name(&self) -> Utf8PathBuf { self.$tree.join($file) })*
        }
    };
}

files! {
    /// The agent's durable log.
    worklog: state / "WORKLOG.md";
    /// The agent's standing routines, never created by fleet.
    routines: state / "ROUTINES.md";
    /// The briefing, written anew at each launch.
    briefing: handout / "briefing.md";
    /// Where the hook of the agent program reaches the runner.
    hook_socket: handout / "hook.sock";
    /// Canonical path of the configuration of the last `up`; empty means the default.
    config_path: control / "config-path";
    /// What really runs the role.
    supervisor_record: control / "supervisor.json";
    /// The launch file, read and unlinked by the launcher.
    launch_file: control / "launch.json";
    /// The published status.
    status: control / "status.json";
    /// The promised enforcement rows.
    promised: control / "enforcement.json";
    /// The observed enforcement rows.
    observed: control / "observed.json";
    /// The record of the connections of its sandbox.
    connections: control / "connections.jsonl";
    /// The control groups or the scope of the running launch.
    groups: control / "groups.json";
    /// The first process of the sandbox of a launch, for as long as it may run.
    sandbox_process: control / "sandbox-process.json";
    /// Marker: the role runs un-isolated against its wish.
    isolation_degraded: control / "isolation-degraded";
    /// The recorded conversation.
    session_id: control / "session-id";
    /// Marker: the next start may resume.
    booted: control / "booted";
    /// Harness homes used, and whether ever under isolation.
    harness_homes: control / "harness-home.json";
    /// Held while files of the harness home are edited; removed again.
    home_lock: control / "home-files.lock";
    /// How the last launch ended.
    exit_record: control / "exit-status";
    /// The restart ledger.
    restart_ledger: control / "restart-ledger.json";
    /// The run marker of the living runner.
    run_marker: control / "supervisor-run.json";
    /// Held by the runner for its whole life.
    runner_lock: control / "runner.lock";
    /// What an operator's stop is meant to do.
    stop_intent: control / "stop-intent.json";
    /// The operator socket.
    control_socket: control / "control.sock";
    /// The operator token.
    control_token: control / "control-token";
    /// The role's own tmux server, where the path is short enough.
    tmux_socket: control / "tmux.sock";
    /// The runner's log.
    runner_log: control / "runner.log";
    /// What happened, one JSON object a line.
    session_events: control / "session-events.jsonl";
    /// Project overlays and what was created for them.
    overlays: control / "overlays.json";
}

impl RoleTrees {
    /// The config home of one harness.
    pub fn harness_home(&self, harness: &HarnessId) -> Utf8PathBuf {
        self.harness.join(harness.as_str())
    }

    /// The config home for a start without the isolation that the role asks for (01 §2.5).
    pub fn harness_home_unisolated(&self, harness: &HarnessId) -> Utf8PathBuf {
        self.harness.join(format!("{harness}.unisolated"))
    }

    /// All four, in the order state, harness, handout, control.
    pub fn all(&self) -> [&Utf8Path; 4] {
        [&self.state, &self.harness, &self.handout, &self.control]
    }
}
