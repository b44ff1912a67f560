//! A runner over fakes: memory for files, consoles and processes, a clock that hurries, and a launcher
//! that the test plays.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use fleet_adapters::runner::control::Client;
use fleet_adapters::runner::protocol::Command;
use fleet_adapters::runner::run::{RunError, run};
use fleet_adapters::runner::{Ports, Runtime, observe};
use fleet_core::harness::Harnesses;
use fleet_core::id::{RoleName, Timestamp};
use fleet_core::isolation::{BackendName, EnforcementRow, IsolationPolicy, NetworkMode};
use fleet_core::launch::{
    Environment, ExitRecord, LaunchCommand, LaunchFile, LaunchPlan, Observation, PlanWord,
};
use fleet_core::layout::{FleetLayout, Homes, RoleTrees};
use fleet_core::limits::{Cap, Means};
use fleet_core::port::{
    IsolationBackend, PathProbe, PathProbes, PlanError, ProbeEvidence, ProbeFailure, StateStore,
    SupervisorKind,
};
use fleet_core::status::Status;
use fleet_core::test_support::fakes::{
    CountingIds, FixedLimits, ManualClock, MemoryProcesses, MemoryStore, MemorySupervisor,
    MemoryTmuxServers, MemoryTree, MemoryWatches, ScriptedExec,
};
use fleet_core::world::World;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The launcher of roles without isolation, as a plan.
#[derive(Debug)]
struct Plain;

#[async_trait]
impl IsolationBackend for Plain {
    fn name(&self) -> BackendName {
        BackendName::None
    }

    fn enforces_network(&self, mode: NetworkMode) -> bool {
        mode == NetworkMode::Allow
    }

    async fn probe(&self, _policy: &IsolationPolicy) -> Result<ProbeEvidence, ProbeFailure> {
        unreachable!("nobody probes the absence of isolation")
    }

    fn plan(
        &self,
        _policy: &IsolationPolicy,
        _evidence: &ProbeEvidence,
        command: &LaunchCommand,
    ) -> Result<LaunchPlan, PlanError> {
        Ok(LaunchPlan {
            backend: BackendName::None,
            argv: command.argv.iter().map(PlanWord::text).collect(),
            descriptors: Vec::new(),
            checks: Vec::new(),
            network: None,
            prepare: Vec::new(),
            cleanup: Vec::new(),
            promise: Vec::new(),
        })
    }

    fn promise(&self, _policy: &IsolationPolicy) -> Vec<EnforcementRow> {
        Vec::new()
    }
}

#[derive(Debug)]
pub(crate) struct OneTree(pub(crate) MemoryTree);

impl PathProbes for OneTree {
    fn fresh(&self) -> Box<dyn PathProbe> {
        Box::new(self.0.clone())
    }
}

/// How a played program ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// It returns a code after living this long.
    Code(i32, Duration),
    /// The launcher says that it never ran.
    NotStarted,
    /// The launcher dies without a word.
    Silence,
}

/// One role `A` under a runner.
pub(crate) struct Stage {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) processes: Arc<MemoryProcesses>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) tmux: MemoryTmuxServers,
    pub(crate) watches: MemoryWatches,
    pub(crate) exec: Arc<ScriptedExec>,
    pub(crate) limits: FixedLimits,
    pub(crate) runtime: Runtime,
    pub(crate) role: RoleName,
    stop: watch::Sender<bool>,
    launches: usize,
    // The operator socket is a real one.
    _home: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(fleet: &str) -> Self {
        Self::with(fleet, Harnesses::built_in())
    }

    /// A stage whose fleet file may name more harnesses.
    pub(crate) fn with(fleet: &str, harnesses: Harnesses) -> Self {
        let dir = tempfile::Builder::new().prefix("of-").tempdir().expect("a home");
        let home = Utf8PathBuf::from_path_buf(dir.path().canonicalize().expect("canonical"))
            .expect("UTF-8");
        let layout = FleetLayout::new(&home);
        let role: RoleName = "A".parse().expect("a name");
        std::fs::create_dir_all(layout.role(&role).control).expect("a directory for the socket");

        let (store, processes) =
            (Arc::new(MemoryStore::default()), Arc::new(MemoryProcesses::default()));
        store.put(&home.join("fleet.yaml"), fleet.as_bytes());
        let mut tree = MemoryTree::new();
        let uid = rustix::process::geteuid().as_raw();
        tree.set_uid(uid);
        tree.file(home.join("fleet.yaml").as_str(), fleet);
        tree.file_mode("/opt/agent", "\x7fELF", 0o755);
        let clock = Arc::new(ManualClock::hurried(Timestamp::from_millis(1_000_000)));
        let tmux = MemoryTmuxServers::new(processes.clone());
        let world = World {
            homes: Homes { fleet: home.clone(), os: home.clone(), passwd: None },
            layout,
            uid,
            user: "u".to_owned(),
            env: Environment::default(),
            path_dirs: Vec::new(),
            passed_over: Vec::new(),
            trust: fleet_core::programs::ProgramTrust::default(),
            relocated: Vec::new(),
            sockets: Vec::new(),
            binary: "/opt/ours-fleet".into(),
            version: "0".to_owned(),
        };
        let limits = FixedLimits::new([(Means::Group, Cap::Mem), (Means::Group, Cap::Pids)]);
        let (watches, exec) = (MemoryWatches::default(), Arc::new(ScriptedExec::default()));
        let ports = Ports {
            exec: exec.clone(),
            tmux: Arc::new(tmux.clone()),
            supervisor: Arc::new(MemorySupervisor::new(SupervisorKind::None, processes.clone())),
            backends: vec![Arc::new(Plain)],
            paths: Arc::new(OneTree(tree)),
            limits: Arc::new(limits.clone()),
            store: store.clone(),
            clock: clock.clone(),
            processes: processes.clone(),
            ids: Arc::new(CountingIds::default()),
            watches: Arc::new(watches.clone()),
        };
        let runtime = Runtime { ports, harnesses, world, runtime_dir: home };
        Self {
            store,
            processes,
            clock,
            tmux,
            watches,
            exec,
            limits,
            runtime,
            role,
            stop: watch::channel(false).0,
            launches: 0,
            _home: dir,
        }
    }

    pub(crate) fn trees(&self) -> RoleTrees {
        self.runtime.trees(&self.role)
    }

    /// Starts the runner.
    pub(crate) fn start(&mut self) -> JoinHandle<Result<(), RunError>> {
        self.stop = watch::channel(false).0;
        let stop = self.stop.subscribe();
        tokio::spawn(run(self.runtime.clone(), self.role.clone(), None, stop, Box::new(|_| ())))
    }

    pub(crate) fn stop(&self) {
        self.stop.send(true).expect("a runner listens");
    }

    /// Waits for the next console and returns its launch file.
    pub(crate) async fn launched(&mut self) -> LaunchFile {
        self.launches += 1;
        self.until(|stage| stage.tmux.opened().len() >= stage.launches).await;
        assert_eq!(self.tmux.opened().len(), self.launches, "more consoles than expected");
        let bytes = self.store.content(&self.trees().launch_file()).expect("a launch file");
        serde_json::from_slice(&bytes).expect("a launch file of ours")
    }

    /// Plays the launcher: says that the program runs.
    pub(crate) fn runs(&self, launch: &LaunchFile) {
        self.observes(launch, Vec::new());
    }

    /// Plays the launcher: says what it observed.
    pub(crate) fn observes(&self, launch: &LaunchFile, rows: Vec<EnforcementRow>) {
        let seen = Observation {
            version: 1,
            launch_id: launch.launch_id.clone(),
            at: Timestamp::default(),
            backend: BackendName::None,
            rows,
        };
        self.store.put(&launch.observed, &serde_json::to_vec(&seen).expect("JSON"));
    }

    /// Plays the launcher: writes how the program ended, and goes.
    pub(crate) async fn ends(&self, launch: &LaunchFile, end: End) {
        let status =
            self.until_status(|status| status.launch_id.as_ref() == Some(&launch.launch_id)).await;
        let mut record = ExitRecord {
            version: 1,
            backend: "tmux".into(),
            launch_id: launch.launch_id.clone(),
            started: true,
            code: None,
            signal: None,
            hangup: false,
            stopped: false,
            started_at: Timestamp::default(),
            ended_at: Timestamp::default(),
            error: None,
            out_of_memory: None,
            left: None,
        };
        match end {
            End::Code(code, lived) => {
                self.clock.advance(lived);
                record.code = Some(code);
            }
            End::NotStarted => {
                record.started = false;
                record.error = Some("no such program".into());
            }
            End::Silence => {}
        }
        if !matches!(end, End::Silence) {
            self.store.put(&launch.exit_record, &serde_json::to_vec(&record).expect("JSON"));
        }
        self.processes.end(status.console.launcher.expect("a launcher").pid);
    }

    pub(crate) fn status(&self) -> Option<Status> {
        observe::published(&*self.store as &dyn StateStore, &self.trees())
    }

    /// Waits for a published status. Bounded by turns of the scheduler, not by time.
    pub(crate) async fn until_status(&self, wanted: impl Fn(&Status) -> bool) -> Status {
        self.until(|stage| stage.status().is_some_and(|status| wanted(&status))).await;
        self.status().expect("just seen")
    }

    async fn until(&self, seen: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if seen(self) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("never seen; the last status is {:?}", self.status());
    }

    /// Asks the runner over its real socket.
    pub(crate) async fn ask(&self, command: Command) -> Result<serde_json::Value, String> {
        let client = Client::new(&*self.store, &self.trees()).map_err(|error| error.to_string())?;
        client.call(command, Duration::from_secs(5)).await.map_err(|error| error.to_string())
    }

    pub(crate) fn exists(&self, path: &Utf8Path) -> bool {
        self.store.content(path).is_some()
    }
}
