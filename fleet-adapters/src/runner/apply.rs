//! `up`, `down` and `restart`: roles brought to where they should be, each on its own (02 §3.11).

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use fleet_core::config::{Fleet, Role};
use fleet_core::id::{RoleName, SessionId};
use fleet_core::isolation::forbidden::ForbiddenList;
use fleet_core::lifecycle::StopKind;
use fleet_core::plan::{self, AssessRequest, Assessment};
use fleet_core::port::{PathProbe, RunState, Service, SupervisorError};
use fleet_core::run_marker::{RUN_MARKER_LIMIT, RunMarker};
use fleet_core::status::{RoleState, Status};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Runtime;
use super::control::Client;
use super::home;
use super::leftovers;
use super::native_sandbox::NativeSandboxes;
use super::observe::{self, RoleView};
use super::protocol::Command;
use super::run::StopIntent;
use super::run::attempt;
use super::version::HarnessVersions;
use fleet_core::error_chain::chain;

/// Roles worked on at the same time.
const PARALLEL: usize = 8;
/// How long a start is waited for.
const START_WAIT: Duration = Duration::from_secs(15);
/// Between two looks at a starting role: short at first, since most are up at once.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_millis(50);
/// How long a control request may take.
const CONTROL_WAIT: Duration = Duration::from_secs(2);

/// What `up` would do with a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It has no directories yet: make them and start it.
    Create,
    /// Start it.
    Start,
    /// It runs as the fleet files say.
    Unchanged,
    /// It runs as the fleet files said before; left alone.
    RestartNeeded,
    /// It is held down: release it.
    Release,
    /// Its runner is gone and its console runs: end that, then start.
    Recover,
    /// It will not be started.
    Refused,
}

impl Action {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Start => "start",
            Self::Unchanged => "unchanged",
            Self::RestartNeeded => "restart needed",
            Self::Release => "release",
            Self::Recover => "recover",
            Self::Refused => "refused",
        }
    }
}

/// What `up` would do with a role, and why.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedRole {
    /// The role.
    pub name: RoleName,
    /// What.
    pub action: Action,
    /// Every reason of a refusal, or one line about the action.
    pub reasons: Vec<String>,
}

/// How an operation on one role ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// As asked.
    Done {
        /// One line.
        detail: String,
    },
    /// Nothing was to be done.
    Unchanged {
        /// One line.
        detail: String,
    },
    /// Accepted; the role waits for its start slot.
    Pending {
        /// One line.
        detail: String,
    },
    /// Not done.
    Failed {
        /// Why, and what to do.
        detail: String,
    },
}

/// A role and how the operation on it ended.
#[derive(Debug, Clone, Serialize)]
pub struct RoleOutcome {
    /// The role.
    pub name: RoleName,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Judges every role and says what `up` would do. Changes nothing.
pub async fn plan(runtime: &Runtime, fleet: &Fleet, names: &[RoleName]) -> Vec<PlannedRole> {
    let probe = runtime.ports.paths.fresh();
    let forbidden = ForbiddenList::build(&runtime.world.forbidden_inputs(fleet), &*probe);
    let native = NativeSandboxes::of_fleet(runtime, fleet, true).await;
    let mut planned = Vec::new();
    let roles = || names.iter().filter_map(|name| Some((name, fleet.roles.get(name)?)));
    let versions = HarnessVersions::of_roles(runtime, roles().map(|(_, role)| role)).await;
    for (name, role) in roles() {
        let version = versions.get(&role.harness);
        let reasons = refusals(runtime, fleet, role, &native, &forbidden, &*probe, version);
        let view = observe::role(runtime, Some(fleet), name).await;
        let (action, reasons) = if view.observed.state == RoleState::Running
            || view.observed.state == RoleState::Starting
        {
            running_action(&view, reasons)
        } else if !reasons.is_empty() {
            (Action::Refused, reasons)
        } else {
            stopped_action(runtime, &view)
        };
        planned.push(PlannedRole { name: name.clone(), action, reasons });
    }
    planned
}

fn running_action(view: &RoleView, refusals: Vec<String>) -> (Action, Vec<String>) {
    if view.restart_needed {
        let mut reasons =
            vec![format!("the fleet file changed: `ours-fleet restart {}`", view.name)];
        reasons.extend(refusals);
        (Action::RestartNeeded, reasons)
    } else {
        (Action::Unchanged, vec![view.observed.state.as_str().to_owned()])
    }
}

fn stopped_action(runtime: &Runtime, view: &RoleView) -> (Action, Vec<String>) {
    if view.observed.orphaned_console {
        return (Action::Recover, vec!["runner gone, console running".to_owned()]);
    }
    match view.observed.state {
        RoleState::HeldDown => (Action::Release, vec!["held down".to_owned()]),
        RoleState::BackingOff => (Action::Release, vec!["waiting for its next attempt".to_owned()]),
        RoleState::Unknown => (Action::Start, view.observed.detail.iter().cloned().collect()),
        RoleState::Stopped | RoleState::Running | RoleState::Starting => {
            let known = runtime
                .ports
                .store
                .list(&runtime.trees(&view.name).control)
                .is_ok_and(|entries| entries.is_some());
            if known { (Action::Start, Vec::new()) } else { (Action::Create, Vec::new()) }
        }
    }
}

/// Everything that keeps a role from being started on this host at this moment.
pub fn refusals(
    runtime: &Runtime,
    fleet: &Fleet,
    role: &Role,
    native: &NativeSandboxes,
    forbidden: &ForbiddenList,
    probe: &dyn PathProbe,
    version: Option<&str>,
) -> Vec<String> {
    let Some(assessment) = assess(runtime, fleet, role, native, forbidden, probe, version) else {
        return plan::refusals(fleet, role);
    };
    let mut reasons: Vec<String> = assessment.problems.iter().map(ToString::to_string).collect();
    reasons.extend(assessment.blockers);
    reasons
}

/// The judgement of a role as its next fresh start would meet it, with this version of its harness's
/// program; `None` if its harness is not registered. One `probe` serves a whole fleet: roles share
/// directories.
pub fn assess(
    runtime: &Runtime,
    fleet: &Fleet,
    role: &Role,
    native: &NativeSandboxes,
    forbidden: &ForbiddenList,
    probe: &dyn PathProbe,
    version: Option<&str>,
) -> Option<Assessment> {
    let harness = runtime.harnesses.get(role.harness.as_str())?;
    let session: SessionId = "00000000-0000-4000-8000-000000000000".parse().ok()?;
    let trees = runtime.trees(&role.name);
    let operator = home::operator_files(runtime, &**harness, role, forbidden, probe);
    let request = AssessRequest {
        fleet,
        role,
        harness: &**harness,
        world: &runtime.world,
        forbidden,
        mode: fleet_core::harness::StartMode::Fresh,
        session: harness.session_ids().are_chosen().then_some(&session),
        harness_home: &trees.harness_home(harness.id()),
        outer: native.outer(harness.id(), Assessment::boundary(role, runtime.world.uid)),
        version,
        operator_files: &operator.texts,
    };
    let mut assessment = plan::assess(&request, probe);
    assessment.notes.extend(operator.notes);
    Some(assessment)
}

/// Carries out a plan: refused roles fail, the others are started at the same time, and each is
/// waited for until its runner says that it runs, that it failed, or that it waits for its slot.
///
/// # Cancel safety
/// Not cancel safe: some roles may have been started.
pub async fn up(
    runtime: &Runtime,
    planned: &[PlannedRole],
    config: Option<&Utf8PathBuf>,
) -> Vec<RoleOutcome> {
    each(runtime, planned.to_vec(), config.cloned(), |runtime, role, config, slots| async move {
        start_one(&runtime, &role, config, &slots).await
    })
    .await
}

/// Stops roles, all at the same time.
///
/// # Cancel safety
/// Repeat after a drop.
pub async fn down(runtime: &Runtime, names: &[RoleName]) -> Vec<RoleOutcome> {
    let roles = names
        .iter()
        .map(|name| PlannedRole {
            name: name.clone(),
            action: Action::Unchanged,
            reasons: Vec::new(),
        })
        .collect();
    each(runtime, roles, None, |runtime, role, _, slots| async move {
        let _slot = slots.acquire().await;
        stop_one(&runtime, &role.name, StopKind::Down).await
    })
    .await
}

/// Stops and starts roles; `fresh` ends their conversations.
///
/// # Cancel safety
/// Not cancel safe: a role may be left stopped.
pub async fn restart(
    runtime: &Runtime,
    planned: &[PlannedRole],
    config: Option<&Utf8PathBuf>,
    fresh: bool,
) -> Vec<RoleOutcome> {
    each(
        runtime,
        planned.to_vec(),
        config.cloned(),
        move |runtime, role, config, slots| async move {
            let kind = if fresh { StopKind::ForceRestart } else { StopKind::Restart };
            let slot = slots.acquire().await;
            if let Outcome::Failed { detail } = stop_one(&runtime, &role.name, kind).await {
                return Outcome::Failed { detail };
            }
            drop(slot);
            if fresh {
                drop(runtime.ports.store.remove(&runtime.trees(&role.name).booted()));
            }
            let role = PlannedRole { action: Action::Start, ..role };
            start_one(&runtime, &role, config, &slots).await
        },
    )
    .await
}

/// Does the same to every role, all at the same time. `work` takes one of the slots for as long as it
/// does more than wait, so that a role that is slow keeps no other from being started.
async fn each<F, Fut>(
    runtime: &Runtime,
    roles: Vec<PlannedRole>,
    config: Option<Utf8PathBuf>,
    work: F,
) -> Vec<RoleOutcome>
where
    F: Fn(Runtime, PlannedRole, Option<Utf8PathBuf>, Arc<Semaphore>) -> Fut,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(PARALLEL));
    let names: Vec<RoleName> = roles.iter().map(|role| role.name.clone()).collect();
    let mut running = JoinSet::new();
    for (index, role) in roles.into_iter().enumerate() {
        let job = work(runtime.clone(), role, config.clone(), slots.clone());
        running.spawn(async move { (index, job.await) });
    }
    let lost = || Outcome::Failed { detail: "the operation was interrupted".to_owned() };
    let mut outcomes: Vec<Outcome> = names.iter().map(|_| lost()).collect();
    while let Some(done) = running.join_next().await {
        if let Ok((index, outcome)) = done {
            outcomes[index] = outcome;
        }
    }
    names.into_iter().zip(outcomes).map(|(name, outcome)| RoleOutcome { name, outcome }).collect()
}

async fn start_one(
    runtime: &Runtime,
    role: &PlannedRole,
    config: Option<Utf8PathBuf>,
    slots: &Semaphore,
) -> Outcome {
    match role.action {
        Action::Refused => return Outcome::Failed { detail: role.reasons.join("\n") },
        Action::Unchanged | Action::RestartNeeded => {
            return Outcome::Unchanged { detail: role.reasons.join("; ") };
        }
        Action::Create | Action::Start | Action::Release | Action::Recover => {}
    }
    let slot = slots.acquire().await;
    let before = living_status(runtime, &role.name);
    let begun = begin(runtime, role, config).await;
    drop(slot);
    match begun {
        Ok(()) => wait_for_start(runtime, &role.name, before.as_ref()).await,
        Err(detail) => Outcome::Failed { detail },
    }
}

/// Everything up to a runner that has been told to start.
async fn begin(
    runtime: &Runtime,
    role: &PlannedRole,
    config: Option<Utf8PathBuf>,
) -> Result<(), String> {
    let service = Service { role: role.name.clone(), config };
    if runtime.ports.supervisor.liveness(&service).await.state == RunState::Running {
        // Its runner lives: it is asked over its socket once it waits, see `wait_for_start`.
        return Ok(());
    }
    if role.action == Action::Recover {
        end_orphan(runtime, &role.name).await?;
    }
    make_ready(runtime, &service, role.action)?;
    runtime.ports.supervisor.start(&service).await.map_err(|error| said(&error))
}

/// Directories, the recorded configuration, and a clean streak: an operator asked for this start.
fn make_ready(runtime: &Runtime, service: &Service, action: Action) -> Result<(), String> {
    let (store, trees) = (&runtime.ports.store, runtime.trees(&service.role));
    let text = |error: fleet_core::port::StoreError| chain(&error);
    for tree in trees.all() {
        store.ensure_dir(tree).map_err(text)?;
    }
    let config = service.config.as_ref().map(ToString::to_string).unwrap_or_default();
    store.write(&trees.config_path(), format!("{config}\n").as_bytes(), 0o600).map_err(text)?;
    let kept = store.read(&trees.restart_ledger(), 64 * 1024).map_err(text)?;
    if kept.is_some() && action != Action::Recover {
        let (mut ledger, corrupt) = fleet_core::lifecycle::RestartLedger::parse(kept.as_deref());
        if !corrupt {
            ledger.release(runtime.ports.clock.now());
            let bytes = serde_json::to_vec(&ledger).unwrap_or_default();
            store.write(&trees.restart_ledger(), &bytes, 0o600).map_err(text)?;
        }
    }
    Ok(())
}

async fn release(runtime: &Runtime, role: &RoleName) -> Result<(), String> {
    let client = Client::new(&*runtime.ports.store, &runtime.trees(role))
        .map_err(|failure| failure.to_string())?;
    client.call(Command::Release, CONTROL_WAIT).await.map_err(|failure| failure.to_string())?;
    Ok(())
}

/// The status that a living runner published last.
fn living_status(runtime: &Runtime, role: &RoleName) -> Option<Status> {
    observe::published(&*runtime.ports.store, &runtime.trees(role))
        .filter(|status| runtime.ports.processes.is_alive(&status.runner.process).unwrap_or(false))
}

/// Waits until the runner says how the start went. A runner that lived `before` and waits for its next
/// attempt, or is held down, is asked to make that attempt now: what it said of the one before is not
/// the answer.
async fn wait_for_start(runtime: &Runtime, role: &RoleName, before: Option<&Status>) -> Outcome {
    let trees = runtime.trees(role);
    let is_old = |status: &Status| {
        before.is_some_and(|before| {
            before.runner.process == status.runner.process && before.attempt == status.attempt
        })
    };
    let mut released = false;
    let begun = runtime.ports.clock.monotonic();
    let mut last: Option<Status> = None;
    let mut pause = LOOK_AGAIN;
    while runtime.ports.clock.monotonic().since(begun) < START_WAIT {
        // What an earlier runner said is not the word of the new one.
        let published = observe::published(&*runtime.ports.store, &trees);
        let fresh = published.as_ref().filter(|status| {
            runtime.ports.processes.is_alive(&status.runner.process).unwrap_or(false)
        });
        if let Some(status) = fresh {
            match status.state {
                // A status that could not be written any more must not vouch for a dead console.
                RoleState::Running if observe::console(runtime, status) == RunState::Stopped => {}
                RoleState::Running => return started(status),
                RoleState::BackingOff | RoleState::HeldDown if is_old(status) => {
                    if !released && let Err(detail) = release(runtime, role).await {
                        return Outcome::Failed { detail };
                    }
                    released = true;
                }
                RoleState::BackingOff | RoleState::HeldDown => return not_started(status),
                RoleState::Starting | RoleState::Stopped | RoleState::Unknown => {
                    last = Some(status.clone());
                }
            }
        }
        let service = Service { role: role.clone(), config: None };
        if runtime.ports.supervisor.liveness(&service).await.state == RunState::Stopped {
            let in_order = last.zip(published).is_some_and(|(seen, end)| {
                end.state == RoleState::Stopped && end.runner.process == seen.runner.process
            });
            return Outcome::Failed {
                detail: if in_order {
                    "it was stopped while it started".to_owned()
                } else {
                    format!("its runner ended at once: see `ours-fleet logs {role}`")
                },
            };
        }
        runtime.ports.clock.sleep(pause).await;
        pause = (pause * 5 / 4).min(LAST_LOOK);
    }
    match last.and_then(|status| status.detail) {
        Some(detail) if detail.contains("start slot") => Outcome::Pending { detail },
        detail => {
            let look = || format!("look at its console with `ours-fleet peek {role}`");
            let (seconds, why) = (START_WAIT.as_secs(), detail.unwrap_or_else(look));
            Outcome::Failed { detail: format!("not ready within {seconds} s: {why}") }
        }
    }
}

fn started(status: &Status) -> Outcome {
    let mode = status.mode.map_or("", fleet_core::harness::StartMode::as_str);
    let detail = match status.isolation.as_ref().and_then(|outer| outer.degraded.as_ref()) {
        Some(reason) => format!("running ({mode}), UN-ISOLATED: {reason}"),
        None => format!("running ({mode})"),
    };
    Outcome::Done { detail }
}

fn not_started(status: &Status) -> Outcome {
    let reason = status.failures.last_reason.as_deref().unwrap_or("no reason published");
    Outcome::Failed { detail: format!("{}: {reason}", status.state.as_str()) }
}

async fn end_orphan(runtime: &Runtime, role: &RoleName) -> Result<(), String> {
    let status = observe::published(&*runtime.ports.store, &runtime.trees(role));
    let launcher = status.and_then(|status| status.console.launcher);
    attempt::end(runtime, role, launcher.as_ref())
        .await
        .map(|_| ())
        .map_err(|error| format!("its console could not be ended: {error}"))
}

async fn stop_one(runtime: &Runtime, name: &RoleName, kind: StopKind) -> Outcome {
    let service = Service { role: name.clone(), config: None };
    let before = observe::role(runtime, None, name).await;
    if before.observed.state == RoleState::Stopped {
        // What is stopped may still be meant to start with the machine.
        if let Err(error) = runtime.ports.supervisor.stop(&service).await {
            return Outcome::Failed { detail: said(&error) };
        }
        // Runner and launcher may have been killed: then nobody has removed what they made.
        return match leftovers::remove(runtime, name).await {
            Ok(left) if left.is_empty() => Outcome::Unchanged { detail: "not running".to_owned() },
            Ok(left) => {
                Outcome::Done { detail: format!("not running; removed {}", left.join(", ")) }
            }
            Err(detail) => Outcome::Failed { detail },
        };
    }
    let intent = write_intent(runtime, name, kind);
    let stopped = runtime.ports.supervisor.stop(&service).await;
    if let Err(error) = stopped {
        // A stop that failed must not turn a later shutdown into a `down`.
        if intent {
            drop(runtime.ports.store.remove(&runtime.trees(name).stop_intent()));
        }
        return Outcome::Failed { detail: said(&error) };
    }
    if before.observed.orphaned_console
        && let Err(detail) = end_orphan(runtime, name).await
    {
        return Outcome::Failed { detail };
    }
    let after = observe::role(runtime, None, name).await;
    if after.observed.orphaned_console
        && let Err(detail) = end_orphan(runtime, name).await
    {
        return Outcome::Failed { detail };
    }
    if after.observed.orphaned_sandbox
        && let Err(detail) = leftovers::remove(runtime, name).await
    {
        return Outcome::Failed { detail };
    }
    match leftovers::unended_line(&*runtime.ports.store, &runtime.trees(name)) {
        Some(detail) => Outcome::Failed { detail },
        None => Outcome::Done { detail: "stopped".to_owned() },
    }
}

/// Writes what the stop is meant to do, for exactly the living runner.
fn write_intent(runtime: &Runtime, name: &RoleName, kind: StopKind) -> bool {
    let (store, trees) = (&runtime.ports.store, runtime.trees(name));
    let Ok(Some(bytes)) = store.read(&trees.run_marker(), RUN_MARKER_LIMIT) else { return false };
    let Ok(marker) = RunMarker::parse(&bytes) else { return false };
    let intent = StopIntent::new(kind, marker.runner(), runtime.ports.clock.now());
    let bytes = serde_json::to_vec(&intent).unwrap_or_default();
    store.write(&trees.stop_intent(), &bytes, 0o600).is_ok()
}

fn said(error: &SupervisorError) -> String {
    chain(error)
}
