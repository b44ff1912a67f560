//! A role as it would run on this machine: what `config` shows, `doctor` checks and `up` refuses.
//! Looks at paths through the probe and changes nothing.

mod json;
mod redact;

use std::num::NonZero;

use fleet_adapters::runner::apply;
use fleet_core::config::{Fleet, Role};
use fleet_core::diagnostic::{Diagnostic, Place};
use fleet_core::isolation::forbidden::ForbiddenList;
use fleet_core::isolation::select::{Fallback, candidates, fallback};
use fleet_core::isolation::{BackendName, EnforcementRow, IsolationPolicy};
use fleet_core::permissions::{Conflict, Floor, Translation};
use fleet_core::plan::working_directory;
use fleet_core::port::PathProbe;

pub use json::plan_json;
pub use redact::redacted;

use crate::app::App;

/// Roles that are worth a thread: judging one takes about as long as starting one.
const ROLES_A_THREAD: usize = 25;

/// A role with everything that can be told before a launch.
#[derive(Debug)]
pub struct ResolvedRole<'a> {
    /// The role.
    pub role: &'a Role,
    /// Where it is declared.
    pub place: Place,
    /// Where it works.
    pub cwd: String,
    /// What the harness makes of the permissions.
    pub translation: Option<Translation>,
    /// Native options that differ from the declared permissions.
    pub conflicts: Vec<Conflict>,
    /// What works without a person.
    pub floor: Option<Floor>,
    /// The resolved sandbox, if one is declared and resolves.
    pub policy: Option<IsolationPolicy>,
    /// The backend that would be tried first.
    pub backend: Option<BackendName>,
    /// Whether the role would start un-isolated if no sandbox can be had.
    pub starts_unisolated: bool,
    /// What that backend promises.
    pub promise: Vec<EnforcementRow>,
    /// What the policy refuses.
    pub problems: Vec<Diagnostic>,
    /// What would stop a launch at this moment although the file is sound.
    pub blockers: Vec<String>,
}

/// Resolves roles of one fleet against one list of forbidden paths: one judgement, with one probe.
#[derive(Debug)]
pub struct Resolver<'a> {
    app: &'a App,
    fleet: &'a Fleet,
    forbidden: ForbiddenList,
    probe: Box<dyn PathProbe>,
}

impl<'a> Resolver<'a> {
    /// Builds the list of forbidden paths for this fleet.
    pub fn new(app: &'a App, fleet: &'a Fleet) -> Self {
        let inputs = app.runtime.world.forbidden_inputs(fleet);
        let probe = app.probe();
        let forbidden = ForbiddenList::build(&inputs, &*probe);
        Self { app, fleet, forbidden, probe }
    }

    /// Every role, in file order. A large fleet is judged by several threads, each with a probe.
    pub fn all(&self) -> Vec<ResolvedRole<'a>> {
        let roles: Vec<&'a Role> = self.fleet.roles.values().collect();
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let share = roles.len().div_ceil(threads).max(ROLES_A_THREAD);
        std::thread::scope(|scope| {
            let mut shares = roles.chunks(share);
            let own = shares.next().unwrap_or_default();
            let others: Vec<_> = shares
                .map(|roles| {
                    scope.spawn(|| {
                        let probe = self.app.probe();
                        roles.iter().map(|role| self.judge(role, &*probe)).collect::<Vec<_>>()
                    })
                })
                .collect();
            let mut all: Vec<_> = own.iter().map(|role| self.role(role)).collect();
            for other in others {
                match other.join() {
                    Ok(roles) => all.extend(roles),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    }

    /// Everything that keeps a role from being started now; empty if nothing does.
    pub fn refusals(&self, role: &Role) -> Vec<String> {
        apply::refusals(&self.app.runtime, self.fleet, role, &self.forbidden, &*self.probe)
    }

    /// One role, judged by the same function as its launch.
    pub fn role(&self, role: &'a Role) -> ResolvedRole<'a> {
        self.judge(role, &*self.probe)
    }

    fn judge(&self, role: &'a Role, probe: &dyn PathProbe) -> ResolvedRole<'a> {
        let runtime = &self.app.runtime;
        let backend = role.isolation.as_ref().and_then(|block| candidates(block).first().copied());
        let mut resolved = ResolvedRole {
            place: self.place(role),
            cwd: working_directory(role, &runtime.trees(&role.name)).to_string(),
            translation: None,
            conflicts: Vec::new(),
            floor: None,
            policy: None,
            promise: Vec::new(),
            problems: Vec::new(),
            blockers: Vec::new(),
            starts_unisolated: role.isolation.as_ref().is_some_and(|block| {
                let verdict = fallback(block, role.permissions, runtime.world.uid, &[]);
                matches!(verdict, Fallback::Unisolated { .. })
            }),
            backend,
            role,
        };
        if let Some(assessment) = apply::assess(runtime, self.fleet, role, &self.forbidden, probe) {
            resolved.policy = assessment.policy;
            resolved.translation = Some(assessment.effective);
            resolved.conflicts = assessment.conflicts;
            resolved.floor = assessment.floor;
            resolved.problems = assessment.problems;
            resolved.blockers = assessment.blockers;
        } else {
            resolved.blockers = self.refusals(role);
        }
        if let (Some(policy), Some(name)) = (&resolved.policy, backend)
            && let Some(found) = self.app.backend(name)
        {
            resolved.promise = found.promise(policy);
        }
        resolved
    }

    fn place(&self, role: &Role) -> Place {
        let written = self.fleet.provenance.lookup(&format!("roles.{}", role.name));
        written.map_or_else(|| Place::file(role.source_file.as_str()), |(_, place)| place.clone())
    }
}
