//! How a runner takes over its role: lock, ledger, run marker, operator socket, first status.

use camino::Utf8PathBuf;
use fleet_core::harness::ExitPolicy;
use fleet_core::id::{RoleName, Timestamp};
use fleet_core::layout::RoleTrees;
use fleet_core::lifecycle::{Lifecycle, RestartLedger};
use fleet_core::port::{ProcessIdentity, StoreError};
use fleet_core::run_marker::{RUN_MARKER_LIMIT, RunMarker};
use fleet_core::status::{ConsoleStatus, FailureStatus, RoleState, RunnerStatus, Status};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

use super::{ErrorLogged, RunError, Runner, Told};
use crate::runner::Runtime;
use crate::runner::agent::News;
use crate::runner::control::{self, Incoming, Server};
use crate::runner::events::EventLog;
use crate::runner::hook::{self, HookDesk};
use crate::runner::log::RunnerLog;
use fleet_core::error_chain::chain;

/// Ledgers are not larger.
const MAX_LEDGER: u64 = 64 * 1024;
/// Judges an end before any harness was known: the core's defaults.
const NO_POLICY: ExitPolicy = ExitPolicy { clean_exit_is_fresh: false, fast_fail_ms: 20_000 };

impl Runner {
    /// Step 1: the lock, the run marker, the socket, the first status.
    pub(super) fn claim(
        runtime: Runtime,
        role: RoleName,
        config: Option<Utf8PathBuf>,
        told: Told,
    ) -> Result<(Self, mpsc::Receiver<Incoming>), RunError> {
        let trees = runtime.trees(&role);
        let store = runtime.ports.store.clone();
        let failed = |source| RunError::Store { role: role.clone(), source };
        store.ensure_dir(&trees.control).map_err(failed)?;
        let lock = store
            .try_lock(&trees.runner_lock())
            .map_err(failed)?
            .ok_or_else(|| RunError::AlreadyRunning { role: role.clone() })?;
        let now = runtime.ports.clock.now();
        let own = runtime.ports.processes.own().map_err(|error| RunError::System {
            action: "read the runner's own process",
            role: role.clone(),
            source: error.source,
        })?;
        let log = RunnerLog::new(store.clone(), runtime.ports.clock.clone(), trees.runner_log());

        let ledger = read_ledger(&runtime, &trees, &own, &log, now).map_err(failed)?;
        let marker = RunMarker::new(own.clone(), now).to_json();
        store.write(&trees.run_marker(), marker.as_bytes(), 0o600).map_err(failed)?;
        let ids = runtime.ports.ids.clone();
        let token = control::ensure_token(&*store, &trees, || ids.token()).map_err(failed)?;
        let (requests, incoming) = mpsc::channel(16);
        let server = control::serve(&trees.control_socket(), token, runtime.world.uid, requests)
            .map_err(|source| RunError::System {
                action: "open the operator socket",
                role: role.clone(),
                source,
            })?;
        let (hooks, hook_server) = hook_desk(&runtime, &role, &trees, &log);
        let status = first_status(&runtime, &role, &own, &ledger, now);
        let runner = Self {
            config: config.or_else(|| recorded_config(&runtime, &trees)),
            trees,
            log,
            own,
            life: Lifecycle::new(ledger),
            status,
            policy: NO_POLICY,
            attempt: None,
            wake_at: None,
            typing: Arc::default(),
            news: watch::channel(News::default()).1,
            hooks,
            error_logged: ErrorLogged::default(),
            _server: server,
            told,
            _hook_server: hook_server,
            _lock: lock,
            role,
            runtime,
        };
        runner.publish();
        Ok((runner, incoming))
    }
}

/// The desk for the hook, and its socket. Without a socket questions are denied by the hook itself.
fn hook_desk(
    runtime: &Runtime,
    role: &RoleName,
    trees: &RoleTrees,
    log: &RunnerLog,
) -> (Arc<HookDesk>, Option<Server>) {
    let ports = &runtime.ports;
    let events = EventLog::open(ports.store.clone(), trees.session_events());
    let desk = HookDesk::new(runtime.console(role), ports.clock.clone(), events, log.clone());
    let desk = Arc::new(desk);
    let bound = match ports.store.ensure_dir(&trees.handout) {
        Ok(()) => hook::serve(&trees.hook_socket(), runtime.world.uid, desk.clone())
            .map_err(|error| chain(&error)),
        Err(error) => Err(chain(&error)),
    };
    let server = bound.map_err(|why| {
        log.warn(&format!("no hook socket, so every permission question is denied: {why}"));
    });
    (desk, server.ok())
}

/// The configuration of the last `up`, for a runner that was started without one.
fn recorded_config(runtime: &Runtime, trees: &RoleTrees) -> Option<Utf8PathBuf> {
    const MAX: u64 = 8 * 1024;
    let bytes = runtime.ports.store.read(&trees.config_path(), MAX).ok()??;
    let path = String::from_utf8(bytes).ok()?.trim().to_owned();
    (!path.is_empty()).then(|| Utf8PathBuf::from(path))
}

fn first_status(
    runtime: &Runtime,
    role: &RoleName,
    own: &ProcessIdentity,
    ledger: &RestartLedger,
    now: Timestamp,
) -> Status {
    Status {
        schema_version: Status::SCHEMA_VERSION,
        role: role.clone(),
        state: RoleState::Starting,
        since: now,
        detail: None,
        at: now,
        runner: RunnerStatus {
            process: own.clone(),
            version: runtime.world.version.clone(),
            config_fingerprint: None,
        },
        supervisor: runtime.ports.supervisor.kind(),
        harness: None,
        mode: None,
        attempt: 0,
        launch_id: None,
        session_id: None,
        agent: None,
        console: ConsoleStatus {
            tmux_socket: runtime.console_address(role).socket,
            launcher: None,
        },
        cwd: None,
        isolation: None,
        failures: FailureStatus::default(),
        last_termination: ledger.last_termination.clone(),
        abrupt_terminations: ledger.abrupt_terminations,
    }
}

/// Reads the ledger and notes in it how the runner before this one ended, if not in order.
fn read_ledger(
    runtime: &Runtime,
    trees: &RoleTrees,
    own: &ProcessIdentity,
    log: &RunnerLog,
    now: Timestamp,
) -> Result<RestartLedger, StoreError> {
    let store = &runtime.ports.store;
    let bytes = store.read(&trees.restart_ledger(), MAX_LEDGER)?;
    let (mut ledger, corrupt) = RestartLedger::parse(bytes.as_deref());
    if corrupt {
        let copy = trees.control.join("restart-ledger.json.corrupt");
        store.write(&copy, bytes.as_deref().unwrap_or_default(), 0o600)?;
        log.warn(&format!("the restart ledger was unreadable; kept as {copy}"));
    }
    if let Some(bytes) = store.read(&trees.run_marker(), RUN_MARKER_LIMIT)? {
        let previous = RunMarker::parse(&bytes).ok();
        let host_restarted = previous.is_some_and(|marker| marker.runner().boot_id != own.boot_id);
        ledger.record_lost_runner(host_restarted, now);
        log.warn(if host_restarted {
            "the host was restarted under the previous runner"
        } else {
            "the previous runner ended without a stop"
        });
        // Its marker is replaced by ours: nothing else would tell the next runner.
        save_ledger(runtime, trees, &ledger, log);
    }
    Ok(ledger)
}

pub(super) fn save_ledger(
    runtime: &Runtime,
    trees: &RoleTrees,
    ledger: &RestartLedger,
    log: &RunnerLog,
) {
    let bytes = serde_json::to_vec(ledger).unwrap_or_default();
    if let Err(error) = runtime.ports.store.write(&trees.restart_ledger(), &bytes, 0o600) {
        log.warn(&format!("restart ledger not saved: {}", chain(&error)));
    }
}
