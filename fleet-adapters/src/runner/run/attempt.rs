//! One attempt: the console with the launcher in it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8PathBuf;
use fleet_core::harness::StartMode;
use fleet_core::harness::screen::{Readiness, Sight};
use fleet_core::id::{LaunchId, RoleName};
use fleet_core::isolation::covers::Covers;
use fleet_core::launch::Observation;
use fleet_core::layout::RoleTrees;
use fleet_core::lifecycle::{Event, classify};
use fleet_core::port::{
    Capture, ConsolePresence, KeyName, Monotonic, ProcessIdentity, Signal, Tmux, TmuxError,
};

use crate::runner::Runtime;
use crate::runner::agent::{Observer, Records, Seen};
use crate::runner::control::Failure;
use crate::runner::covers;
use crate::runner::hook::HookDesk;
use crate::runner::leftovers;
use crate::runner::prepare::Prepared;
use crate::runner::protocol::{Delivered, FailureKind, Receipt, RefusalReason};
use crate::runner::sessions::SessionFinder;
use fleet_core::error_chain::chain;

/// The launcher gives the program 5 s to end; after this long it is killed with everything in it.
const END_WAIT: Duration = Duration::from_secs(8);
/// Looks at a starting program: the first ones close together, since most are ready at once.
const FIRST_LOOK: Duration = Duration::from_millis(4);
const LAST_LOOK: Duration = Duration::from_millis(250);
/// A program that shows no ready text for this long waits for somebody: it is looked at seldom then.
const SLOW_START: Duration = Duration::from_secs(20);
const SELDOM: Duration = Duration::from_secs(2);
/// Without ready texts a program must have lived this long since its console was opened, so that one
/// that ends at once is never called running.
const SETTLE: Duration = Duration::from_millis(250);
/// A program whose screen nobody understands for this long counts as up: a newer version may look
/// different, and it is not held back for that.
const UNKNOWN_WAIT: Duration = Duration::from_secs(10);
/// Exit records and observations are not larger.
const MAX_RECORD: u64 = 256 * 1024;

/// A task that ends with the attempt.
#[derive(Debug)]
struct Task(tokio::task::AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A launched attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) role: RoleName,
    pub(super) launch_id: LaunchId,
    pub(super) exit_record: Utf8PathBuf,
    pub(super) launcher: ProcessIdentity,
    pub(super) started: Monotonic,
    pub(super) mode: StartMode,
    pub(super) observer: Arc<Observer>,
    pub(super) finder: Option<Arc<SessionFinder>>,
    _watcher: Task,
}

/// Opens the console.
pub(super) async fn open(
    runtime: &Runtime,
    role: &RoleName,
    prepared: &Prepared,
    hooks: &HookDesk,
) -> Result<Attempt, String> {
    let console = runtime.console(role);
    if let Some(dir) = console.address().socket.parent() {
        runtime.ports.store.ensure_dir(dir).map_err(|error| chain(&error))?;
    }
    let started = runtime.ports.clock.monotonic();
    let pid = console.open(&prepared.console).await.map_err(|error| chain(&error))?;
    let launcher = match runtime.ports.processes.identity(pid) {
        Ok(Some(identity)) => identity,
        // Already gone: an identity that no living process has makes the wait end at once, and the
        // exit record tells the rest.
        Ok(None) => {
            let own = runtime.ports.processes.own().map_err(|error| chain(&error))?;
            ProcessIdentity { pid, start_time: 0, boot_id: own.boot_id }
        }
        Err(error) => return Err(chain(&error)),
    };
    let trees = runtime.trees(role);
    let exit_record = trees.exit_record();
    let observer = Arc::new(observer(runtime, console, prepared, &launcher, hooks));
    let finder = prepared.finder.clone().map(Arc::new);
    let watcher = tokio::spawn(watch(
        runtime.clone(),
        observer.clone(),
        (trees, prepared.covers.clone()),
        prepared.launch_id.clone(),
        started,
    ));
    Ok(Attempt {
        role: role.clone(),
        exit_record,
        launch_id: prepared.launch_id.clone(),
        launcher,
        started,
        mode: prepared.mode,
        observer,
        finder,
        _watcher: Task(watcher.abort_handle()),
    })
}

/// Waits for the launcher's end and judges it. Never returns without an attempt.
///
/// # Cancel safety
/// Cancel safe.
pub(super) async fn ended(runtime: &Runtime, attempt: Option<&Attempt>) -> Event {
    let Some(attempt) = attempt else { return std::future::pending().await };
    while let Err(error) = runtime.ports.processes.wait_exit(&attempt.launcher).await {
        // Without a working wait the only honest way is to look now and then.
        drop(error);
        runtime.ports.clock.sleep(Duration::from_secs(2)).await;
        if let Ok(false) = runtime.ports.processes.is_alive(&attempt.launcher) {
            break;
        }
    }
    let lived = runtime.ports.clock.monotonic().since(attempt.started);
    let record = runtime.ports.store.read(&attempt.exit_record, MAX_RECORD).ok().flatten();
    if record.is_none() {
        // The launcher was killed: nobody ended what it had started.
        drop(runtime.ports.processes.kill_session(&attempt.launcher));
    }
    let console_present = match record {
        Some(_) => false,
        None => runtime.console(&attempt.role).presence().await != ConsolePresence::Absent,
    };
    Event::Ended {
        termination: classify(record.as_deref(), &attempt.launch_id, console_present),
        lived_ms: u64::try_from(lived.as_millis()).unwrap_or(u64::MAX),
        mode: attempt.mode,
    }
}

fn observer(
    runtime: &Runtime,
    console: Arc<dyn Tmux>,
    prepared: &Prepared,
    launcher: &ProcessIdentity,
    hooks: &HookDesk,
) -> Observer {
    let ports = &runtime.ports;
    let observer = Observer::new(console, ports.clock.clone(), prepared.driver.clone());
    let observer = if prepared.hooked { observer.with_hooks(hooks.subscribe()) } else { observer };
    match &prepared.records {
        None => observer,
        Some(directory) => observer.with_records(Records {
            store: ports.store.clone(),
            processes: ports.processes.clone(),
            directory: directory.clone(),
            launcher: launcher.clone(),
            known: Mutex::default(),
        }),
    }
}

/// Says when the program is up: the launcher reported that it really started, and its console shows
/// that it takes input or works, where that can be told. Then follows its session record and its hook,
/// and all the time what the launch covers.
async fn watch(
    runtime: Runtime,
    observer: Arc<Observer>,
    (trees, covers): (RoleTrees, Covers),
    launch: LaunchId,
    opened: Monotonic,
) {
    let mut pause = FIRST_LOOK;
    let started = || {
        let bytes = runtime.ports.store.read(&trees.observed(), MAX_RECORD).ok().flatten()?;
        let seen: Observation = serde_json::from_slice(&bytes).ok()?;
        (seen.launch_id == launch && seen.saw_the_command()).then_some(())
    };
    while started().is_none() {
        runtime.ports.clock.sleep(pause).await;
        pause = (pause * 2).min(LAST_LOOK);
    }
    // Not before: what the launcher makes to cover it is there then.
    let covers = covers::follow(&runtime, &trees, covers, &observer);
    tokio::join!(covers, comes_up(&runtime, &observer, opened));
}

async fn comes_up(runtime: &Runtime, observer: &Observer, opened: Monotonic) {
    let clock = &runtime.ports.clock;
    let lived = || clock.monotonic().since(opened);
    let sight = observer.driver().sight();
    if sight == Sight::Nothing {
        clock.sleep(SETTLE.saturating_sub(lived())).await;
        observer.set_ready();
        return;
    }
    let mut pause = FIRST_LOOK * 4;
    while !observer.look().await.is_ok_and(|seen| is_up(&seen, sight, lived())) {
        clock.sleep(pause).await;
        let slow = lived() >= SLOW_START;
        pause = (pause * 2).min(if slow { SELDOM } else { LAST_LOOK });
    }
    observer.set_ready();
    observer.follow(&*runtime.ports.watches).await;
}

fn is_up(seen: &Seen, sight: Sight, lived: Duration) -> bool {
    match seen.state.readiness {
        Readiness::Idle | Readiness::Busy | Readiness::Waiting => true,
        Readiness::Starting | Readiness::Dialog => false,
        Readiness::Unknown => sight == Sight::Composer && lived >= UNKNOWN_WAIT,
    }
}

/// Ends whatever is left of a role's console: asks the launcher, which ends the program in order,
/// then kills both. Tells whether anything was there.
pub(in crate::runner) async fn end(
    runtime: &Runtime,
    role: &RoleName,
    launcher: Option<&ProcessIdentity>,
) -> Result<bool, TmuxError> {
    let processes = &runtime.ports.processes;
    let mut found = false;
    if let Some(launcher) = launcher
        && processes.is_alive(launcher).unwrap_or(false)
    {
        found = true;
        drop(processes.signal(launcher, Signal::Term));
        if !exits(runtime, launcher).await {
            drop(processes.signal(launcher, Signal::Kill));
            exits(runtime, launcher).await;
            drop(processes.kill_session(launcher));
        }
    }
    let killed = runtime.console(role).kill().await?;
    // What stays is in its record, and tried again before the next start.
    drop(leftovers::remove(runtime, role).await);
    super::super::overlays::undo(&*runtime.ports.store, &runtime.trees(role));
    Ok(found || killed)
}

async fn exits(runtime: &Runtime, process: &ProcessIdentity) -> bool {
    tokio::select! {
        result = runtime.ports.processes.wait_exit(process) => result.is_ok(),
        () = runtime.ports.clock.sleep(END_WAIT) => false,
    }
}

/// The last lines of the console.
pub(super) async fn peek(console: &dyn Tmux, lines: u32) -> Result<String, Failure> {
    let what = Capture { history: lines, joined: false };
    let text = console.capture(what).await.map_err(|error| failure(&error))?;
    let rows: Vec<&str> = text.trim_end().lines().collect();
    let wanted = usize::try_from(lines).unwrap_or(usize::MAX);
    Ok(rows[rows.len().saturating_sub(wanted)..].join("\n"))
}

/// Presses one key.
pub(super) async fn press(console: &dyn Tmux, key: &str) -> Result<serde_json::Value, Failure> {
    let key: KeyName =
        key.parse().map_err(|error| Failure::new(FailureKind::Rejected, format!("{error}")))?;
    console.key(&key).await.map_err(|error| failure(&error))?;
    let delivered = Delivered { receipt: Receipt::Typed, observable: false };
    Ok(serde_json::to_value(delivered).unwrap_or_default())
}

fn failure(error: &TmuxError) -> Failure {
    match error {
        TmuxError::NoConsole { .. } => Failure {
            kind: FailureKind::Offline,
            message: error.to_string(),
            reason: Some(RefusalReason::Offline),
        },
        TmuxError::Failed { .. } | TmuxError::BadText { .. } => {
            Failure::new(FailureKind::Backend, error.to_string())
        }
    }
}
