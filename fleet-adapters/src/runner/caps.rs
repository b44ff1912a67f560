//! The caps of one launch: what this machine can hold of what the role asks for.

use fleet_core::config::Role;
use fleet_core::id::{LaunchId, RoleName};
use fleet_core::isolation::{BackendName, EnforcementLevel, EnforcementRow, Resources};
use fleet_core::layout::RoleTrees;
use fleet_core::limits::{self, Attempt, GroupPrefix, LimitRequest};
use fleet_core::port::SweepError;
use fleet_core::world::World;

use super::log::RunnerLog;
use super::{LoadedFleet, Runtime};

/// Removes what killed launches of a role left of their caps, and names it.
///
/// # Cancel safety
/// May be repeated at any time.
pub(super) async fn sweep(runtime: &Runtime, role: &RoleName) -> Result<Vec<String>, SweepError> {
    let prefix = GroupPrefix::new(role, runtime.world.layout.root());
    runtime.ports.limits.sweep(&runtime.trees(role).groups(), &prefix).await
}

/// What a launch is to be held to, and by what.
#[derive(Debug, Default)]
pub(super) struct Caps {
    /// The rows of the promise.
    pub(super) promise: Vec<EnforcementRow>,
    resources: Resources,
    strict: Option<String>,
    attempts: Vec<Attempt>,
}

impl Caps {
    /// Tries what this machine can hold, if the role asks for anything.
    ///
    /// # Errors
    /// A cap that must hold cannot.
    pub(super) async fn decide(
        runtime: &Runtime,
        loaded: &LoadedFleet,
        role: &Role,
        backend: BackendName,
        log: &RunnerLog,
    ) -> Result<Self, String> {
        let Some(block) = &role.isolation else { return Ok(Self::default()) };
        let resources = block.resources;
        if resources == Resources::default() {
            return Ok(Self::default());
        }
        let facts = runtime.ports.limits.facts().await;
        let fleet = &loaded.fleet;
        let strict = limits::strict_caps(block, fleet.policy.require.needs_caps(&fleet.provenance));
        // That a command without a sandbox can undo them is what somebody wanted who wrote that.
        let judged = if backend == BackendName::None { BackendName::Bubblewrap } else { backend };
        let held = limits::promise(&facts, resources, judged);
        if let (Some(rule), Some(row)) = (&strict, limits::weakest(&held)) {
            let (item, evidence) = (row.item.as_str(), &row.evidence);
            return Err(format!(
                "the cap on {item} cannot be enforced here ({evidence}), and {rule} refuses a start \
                 without it"
            ));
        }
        for row in held.iter().filter(|row| row.level != EnforcementLevel::Enforced) {
            let (item, level) = (row.item.as_str(), row.level.as_str());
            log.warn(&format!("the cap on {item} is {level}: {}", row.evidence));
        }
        Ok(Self {
            promise: limits::promise(&facts, resources, backend),
            // What cannot be capped is not asked of the launcher either.
            resources: if limits::capped(backend) { resources } else { Resources::default() },
            strict,
            attempts: limits::attempts(&facts, resources),
        })
    }

    /// What the launcher is asked; nothing without caps.
    pub(super) fn request(
        self,
        world: &World,
        role: &RoleName,
        trees: &RoleTrees,
        launch: &LaunchId,
    ) -> Option<LimitRequest> {
        (self.resources != Resources::default()).then(|| LimitRequest {
            resources: self.resources,
            strict: self.strict,
            group: GroupPrefix::new(role, world.layout.root()).launch(launch),
            record: trees.groups(),
            attempts: self.attempts,
            runtime_dir: world.env.0.get("XDG_RUNTIME_DIR").map(Into::into),
        })
    }
}
