//! A stand-in for `ours-fleet _run`: this test program itself, called through a script. It keeps the
//! runner's side of the supervisor's protocol and nothing else.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use fleet_adapters::supervisor::{
    DetachRequest, DetachedSettings, DetachedSupervisor, become_session_leader, detach,
};
use fleet_adapters::{FileStore, ProcTable, ProcessExec, SystemClock};
use fleet_core::id::Timestamp;
use fleet_core::layout::{FleetLayout, RoleTrees};
use fleet_core::port::{Clock, Monotonic, ProcessTable, Service, StateStore};
use fleet_core::run_marker::RunMarker;
use tempfile::TempDir;

use crate::support::{path_variable, script, temp, utf8};

/// The test through which the stand-in is entered.
const ENTRANCE: &str = "integration::daemon::a_daemon_leaves_session_group_and_directory";

/// Says by its presence that this process is the stand-in, and holds its arguments.
const ASKED: &str = "OURS_FLEET_TEST_STAND_IN";
const HOME: &str = "OURS_FLEET_TEST_HOME";
/// `deaf`: ignores SIGTERM; `broken`: ends at once.
const MANNER: &str = "OURS_FLEET_TEST_MANNER";

/// A clock on which waiting is shorter, so that limits of many seconds can be tested.
#[derive(Debug)]
struct ShortClock {
    real: SystemClock,
    factor: u32,
}

#[async_trait]
impl Clock for ShortClock {
    fn now(&self) -> Timestamp {
        self.real.now()
    }

    fn monotonic(&self) -> Monotonic {
        let zero = Monotonic::default();
        Monotonic::from_start(self.real.monotonic().since(zero) * self.factor)
    }

    async fn sleep(&self, duration: Duration) {
        self.real.sleep(duration / self.factor).await;
    }
}

/// A fleet home whose runners are stand-ins.
pub(crate) struct Fleet {
    dir: TempDir,
    supervisor: DetachedSupervisor,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        Self::with("", 1)
    }

    /// A fleet whose runners have a manner, with limits shorter by a factor.
    pub(crate) fn with(manner: &str, factor: u32) -> Self {
        let dir = temp();
        let home = utf8(&dir);
        let binary = home.join("ours-fleet");
        let tests = std::env::current_exe().expect("our own path");
        // The report of the test program goes nowhere; descriptor 3 is what was standard output.
        let text = format!(
            "#!/bin/sh\n{ASKED}=\"$*\" exec '{}' --exact {ENTRANCE} --nocapture 3>&1 >/dev/null\n",
            tests.display()
        );
        script(&binary, &text);
        let env = [("PATH", &*path_variable()), (HOME, home.as_str()), (MANNER, manner)];
        let settings = DetachedSettings {
            binary,
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            layout: FleetLayout::new(&home),
        };
        let supervisor = DetachedSupervisor::new(
            Arc::new(ProcessExec),
            Arc::new(FileStore),
            Arc::new(ProcTable::new()),
            Arc::new(ShortClock { real: SystemClock::new(), factor }),
            settings,
        );
        Self { dir, supervisor }
    }

    pub(crate) fn supervisor(&self) -> &DetachedSupervisor {
        &self.supervisor
    }

    pub(crate) fn trees(&self, role: &str) -> RoleTrees {
        FleetLayout::new(&utf8(&self.dir)).role(&role.parse().expect("a role name"))
    }

    /// A role with its control directory made.
    pub(crate) fn service(&self, role: &str) -> Service {
        FileStore.ensure_dir(&self.trees(role).control).expect("it is made");
        Service { role: role.parse().expect("a role name"), config: None }
    }
}

impl Drop for Fleet {
    /// Ends what a failed test left behind, by identity only.
    fn drop(&mut self) {
        let roles = FileStore.list(&FleetLayout::new(&utf8(&self.dir)).control_root());
        for role in roles.ok().flatten().unwrap_or_default() {
            let marker = self.trees(&role.name).run_marker();
            let content = FileStore.read(&marker, 4096).ok().flatten().unwrap_or_default();
            if let Ok(marker) = RunMarker::parse(&content)
                && marker.runner().pid != std::process::id()
                && FileStore.is_locked(&self.trees(&role.name).runner_lock()).unwrap_or(false)
            {
                let _ended =
                    ProcTable::new().signal(marker.runner(), fleet_core::port::Signal::Kill);
            }
        }
    }
}

/// Becomes the stand-in if this process was started as one, and then does not return.
pub(crate) async fn enter_if_asked() {
    let Ok(arguments) = std::env::var(ASKED) else { return };
    let words: Vec<&str> = arguments.split(' ').collect();
    let home = Utf8PathBuf::from(std::env::var(HOME).expect("a home"));
    let code = match words.as_slice() {
        ["_run", role, .., "--detach"] => start(&home, role),
        ["_run", role, ..] => run(&home, role).await,
        _ => 64,
    };
    #[expect(clippy::exit, reason = "the test report must not follow")]
    std::process::exit(code);
}

fn trees(home: &Utf8Path, role: &str) -> RoleTrees {
    FleetLayout::new(home).role(&role.parse().expect("a role name"))
}

/// `_run ROLE --detach`.
fn start(home: &Utf8Path, role: &str) -> i32 {
    let log = trees(home, role).runner_log();
    let env = ["PATH", HOME, MANNER]
        .map(|name| (name.to_owned(), std::env::var(name).expect("it was passed on")));
    let request = DetachRequest {
        binary: &home.join("ours-fleet"),
        args: &["_run".to_owned(), role.to_owned()],
        env: &env,
        log: &log,
    };
    let identity = detach(&request).expect("it starts");
    let mut out = std::fs::File::options().write(true).open("/dev/fd/3").expect("our output");
    let line = serde_json::to_string(&identity).expect("JSON");
    writeln!(out, "{line}").expect("it is written");
    0
}

/// `_run ROLE`.
async fn run(home: &Utf8Path, role: &str) -> i32 {
    use tokio::signal::unix::{SignalKind, signal};

    become_session_leader().expect("a session");
    let manner = std::env::var(MANNER).expect("it was passed on");
    if manner == "broken" {
        // Standard error is the log.
        writeln!(
            std::fs::File::options().append(true).open("/dev/fd/2").expect("the log"),
            "\u{1b}[1mbroken on purpose"
        )
        .expect("it is written");
        return 1;
    }
    let mut asked = signal(SignalKind::terminate()).expect("a handler");
    let trees = trees(home, role);
    let Some(_lock) = FileStore.try_lock(&trees.runner_lock()).expect("an answer") else {
        return 1;
    };
    let own = ProcTable::new().own().expect("an identity");
    let marker = RunMarker::new(own, SystemClock::new().now());
    let marker_path = trees.run_marker();
    FileStore.write(&marker_path, marker.to_json().as_bytes(), 0o600).expect("it is written");
    while asked.recv().await.is_some() {
        if manner != "deaf" {
            break;
        }
    }
    FileStore.remove(&marker_path).expect("it is removed");
    0
}
