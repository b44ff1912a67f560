//! What may be said of a role: published status, judged by proof of life. Never calls tmux.

use fleet_core::config::Fleet;
use fleet_core::id::RoleName;
use fleet_core::isolation::{EnforcementLevel, EnforcementRow, Item};
use fleet_core::launch::Observation;
use fleet_core::layout::RoleTrees;
use fleet_core::plan;
use fleet_core::port::{RunState, Service, StateStore};
use fleet_core::status::{ObservedState, Remains, RoleState, Status, judge};
use serde::Serialize;

use super::{Runtime, leftovers};

/// Observations are not larger.
const MAX_OBSERVED: u64 = 256 * 1024;

/// A role as seen from outside.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleView {
    /// The role.
    pub name: RoleName,
    /// Whether the fleet files name it.
    pub configured: bool,
    /// What is known of it.
    #[serde(flatten)]
    pub observed: ObservedState,
    /// What its runner published last; believed only as far as `observed` says.
    pub status: Option<Status>,
    /// What was observed of its isolation at the last launch.
    pub enforcement: Vec<EnforcementRow>,
    /// Whether the fleet files now say something else than what the running attempt was made from.
    pub restart_needed: bool,
}

/// The status that a role's runner published last, alive or not.
pub fn published(store: &dyn StateStore, trees: &RoleTrees) -> Option<Status> {
    let bytes = store.read(&trees.status(), Status::MAX_BYTES).ok()??;
    let status: Status = serde_json::from_slice(&bytes).ok()?;
    (status.schema_version == Status::SCHEMA_VERSION).then_some(status)
}

/// Whether the console that a status names lives: its launcher is looked at, tmux is not asked.
pub fn console(runtime: &Runtime, status: &Status) -> RunState {
    let Some(launcher) = &status.console.launcher else { return RunState::Unknown };
    match runtime.ports.processes.is_alive(launcher) {
        Ok(true) => RunState::Running,
        Ok(false) => RunState::Stopped,
        Err(_) => RunState::Unknown,
    }
}

/// Looks at one role.
///
/// # Cancel safety
/// Reads only.
pub async fn role(runtime: &Runtime, fleet: Option<&Fleet>, name: &RoleName) -> RoleView {
    let trees = runtime.trees(name);
    let store = &*runtime.ports.store;
    let status = published(store, &trees);
    let service = Service { role: name.clone(), config: None };
    let liveness = runtime.ports.supervisor.liveness(&service).await;
    let console = status.as_ref().map_or(RunState::Unknown, |status| console(runtime, status));
    let remains = Remains { console, sandbox: leftovers::sandbox(runtime, &trees) };
    let observed = judge(status.as_ref(), liveness.state, &liveness.detail, remains);
    let configured = fleet.and_then(|fleet| fleet.roles.get(name));
    let live = matches!(observed.state, RoleState::Running | RoleState::Starting);
    let launched = status.as_ref().and_then(|status| status.runner.config_fingerprint.as_ref());
    let restart_needed = live
        && configured
            .zip(launched)
            .is_some_and(|(role, launched)| plan::fingerprint(role) != *launched);
    let enforcement = store
        .read(&trees.observed(), MAX_OBSERVED)
        .ok()
        .flatten()
        .and_then(|bytes| serde_json::from_slice::<Observation>(&bytes).ok())
        .filter(|seen| {
            status.as_ref().is_some_and(|status| status.launch_id.as_ref() == Some(&seen.launch_id))
        })
        .map(|seen| seen.rows)
        .unwrap_or_default();
    let enforcement = match &status {
        Some(status) => as_it_is(enforcement, status),
        None => enforcement,
    };
    RoleView {
        name: name.clone(),
        configured: configured.is_some(),
        observed,
        status,
        enforcement,
        restart_needed,
    }
}

/// What the launcher observed at the start, with what its runner saw go since.
fn as_it_is(mut rows: Vec<EnforcementRow>, status: &Status) -> Vec<EnforcementRow> {
    let lost = status.isolation.as_ref().and_then(|it| it.uncovered_words(&status.role));
    if let Some(lost) = lost {
        let holds = |row: &&mut EnforcementRow| {
            row.item == Item::Filesystem && row.level == EnforcementLevel::Enforced
        };
        if let Some(row) = rows.iter_mut().find(holds) {
            row.level = EnforcementLevel::Degraded;
            row.evidence = lost;
        }
    }
    rows
}

/// Roles that have a control directory but are not in the fleet files.
pub fn unconfigured(runtime: &Runtime, fleet: &Fleet) -> Vec<RoleName> {
    let entries = runtime.ports.store.list(&runtime.world.layout.control_root());
    entries
        .ok()
        .flatten()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| entry.name.parse::<RoleName>().ok())
        .filter(|name| !fleet.roles.contains_key(name))
        .collect()
}

/// Looks at every role of the fleet in file order, then at those that still run without being in it.
///
/// # Cancel safety
/// Reads only.
pub async fn fleet(runtime: &Runtime, fleet: &Fleet) -> Vec<RoleView> {
    let mut views = Vec::new();
    for name in fleet.roles.keys() {
        views.push(role(runtime, Some(fleet), name).await);
    }
    for name in unconfigured(runtime, fleet) {
        let view = role(runtime, Some(fleet), &name).await;
        if view.observed.state != RoleState::Stopped {
            views.push(view);
        }
    }
    views
}
