//! A role as it would run on this machine: what `config` shows, `doctor` checks and `up` refuses.
//! Looks at paths through the probe and changes nothing.

mod json;
pub mod permissions;
mod redact;

use std::num::NonZero;

use camino::Utf8PathBuf;
use fleet_adapters::runner::apply;
use fleet_adapters::runner::native_sandbox::NativeSandboxes;
use fleet_adapters::runner::version::HarnessVersions;
use fleet_core::config::{Fleet, Role};
use fleet_core::diagnostic::{Diagnostic, Place};
use fleet_core::harness::FilePlace;
use fleet_core::harness::shared::SharedItems;
use fleet_core::isolation::forbidden::ForbiddenList;
use fleet_core::isolation::select::{Fallback, candidates, fallback};
use fleet_core::isolation::{BackendName, EnforcementRow, IsolationPolicy};
use fleet_core::limits::{self, LimitFacts};
use fleet_core::permissions::{Conflict, Floor, Outer, Translation};
use fleet_core::plan::{Assessment, working_directory};
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
    /// The boundary that the launch would have, so far as can be told.
    pub outer: Outer,
    /// The config home of its harness.
    pub home: Option<ResolvedHome>,
    /// Files that fleet writes before each start.
    pub files: Vec<(FilePlace, String)>,
    /// What the harness says of the launch.
    pub notes: Vec<String>,
    /// What the harness makes of the permissions.
    pub translation: Option<Translation>,
    /// Native options that differ from the declared permissions.
    pub conflicts: Vec<Conflict>,
    /// What works without a person.
    pub floor: Option<Floor>,
    /// The resolved sandbox, if one is declared and resolves.
    pub policy: Option<IsolationPolicy>,
    /// What the role sees of the operator's harness home.
    pub shared: SharedItems,
    /// The backend that would be tried first.
    pub backend: Option<BackendName>,
    /// The rule of the fleet that forbids a start without isolation, with its place.
    pub required: Option<String>,
    /// Whether the role would start un-isolated if no sandbox can be had.
    pub starts_unisolated: bool,
    /// What that backend promises.
    pub promise: Vec<EnforcementRow>,
    /// What the policy refuses.
    pub problems: Vec<Diagnostic>,
    /// What would stop a launch at this moment although the file is sound.
    pub blockers: Vec<String>,
}

/// The config home of a role's harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedHome {
    /// The variable that names it.
    pub variable: &'static str,
    /// Where it is.
    pub path: Utf8PathBuf,
    /// Items of the operator's home that are shown in it, if they exist.
    pub shared: Vec<String>,
}

/// Resolves roles of one fleet against one list of forbidden paths: one judgement, with one probe.
#[derive(Debug)]
pub struct Resolver<'a> {
    app: &'a App,
    fleet: &'a Fleet,
    native: NativeSandboxes,
    versions: HarnessVersions,
    limits: Option<LimitFacts>,
    forbidden: ForbiddenList,
    probe: Box<dyn PathProbe>,
}

impl<'a> Resolver<'a> {
    /// Builds the list of forbidden paths for this fleet.
    pub fn new(
        app: &'a App,
        fleet: &'a Fleet,
        native: NativeSandboxes,
        versions: HarnessVersions,
    ) -> Self {
        let inputs = app.runtime.world.forbidden_inputs(fleet);
        let probe = app.probe();
        let forbidden = ForbiddenList::build(&inputs, &*probe);
        Self { app, fleet, native, versions, limits: None, forbidden, probe }
    }

    /// Promises caps by what this machine was seen to hold, not by what is assumed.
    #[must_use]
    pub fn with_limits(self, facts: LimitFacts) -> Self {
        Self { limits: Some(facts), ..self }
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
        let (runtime, version) = (&self.app.runtime, self.versions.get(&role.harness));
        let (native, forbidden) = (&self.native, &self.forbidden);
        apply::refusals(runtime, self.fleet, role, native, forbidden, &*self.probe, version)
    }

    /// The judgement of a role as its next start would meet it; `None` if its harness is not
    /// registered.
    pub fn assessment(&self, role: &Role) -> Option<Assessment> {
        let (runtime, version) = (&self.app.runtime, self.versions.get(&role.harness));
        let (native, forbidden) = (&self.native, &self.forbidden);
        apply::assess(runtime, self.fleet, role, native, forbidden, &*self.probe, version)
    }

    /// The boundary that the launch of a role would have, so far as can be told.
    pub fn outer(&self, role: &Role) -> Outer {
        let uid = self.app.runtime.world.uid;
        self.native.outer(&role.harness, Assessment::boundary(role, uid))
    }

    /// What no role may reach.
    pub fn forbidden(&self) -> &ForbiddenList {
        &self.forbidden
    }

    /// What is asked where paths lead.
    pub fn probe(&self) -> &dyn PathProbe {
        &*self.probe
    }

    /// One role, judged by the same function as its launch.
    pub fn role(&self, role: &'a Role) -> ResolvedRole<'a> {
        self.judge(role, &*self.probe)
    }

    fn judge(&self, role: &'a Role, probe: &dyn PathProbe) -> ResolvedRole<'a> {
        let runtime = &self.app.runtime;
        let backend = role.isolation.as_ref().and_then(|block| candidates(block).first().copied());
        let required = self.fleet.policy.require.forbids_unisolated(&self.fleet.provenance);
        let mut resolved = ResolvedRole {
            place: self.place(role),
            cwd: working_directory(role, &runtime.trees(&role.name)).to_string(),
            outer: self.outer(role),
            home: None,
            files: Vec::new(),
            notes: Vec::new(),
            translation: None,
            conflicts: Vec::new(),
            floor: None,
            policy: None,
            shared: SharedItems::default(),
            promise: Vec::new(),
            problems: Vec::new(),
            blockers: Vec::new(),
            starts_unisolated: role.isolation.as_ref().is_some_and(|block| {
                let (uid, required) = (runtime.world.uid, required.as_deref());
                let verdict = fallback(block, role.permissions, uid, required, &[]);
                matches!(verdict, Fallback::Unisolated { .. })
            }),
            backend,
            required,
            role,
        };
        let (native, forbidden) = (&self.native, &self.forbidden);
        let version = self.versions.get(&role.harness);
        let judged = apply::assess(runtime, self.fleet, role, native, forbidden, probe, version);
        if let Some(assessment) = judged {
            resolved.home = self.home(role, &assessment);
            resolved.files =
                assessment.files.iter().map(|file| (file.place, file.name.clone())).collect();
            resolved.notes = assessment.notes;
            resolved.policy = assessment.policy;
            resolved.shared = assessment.shared;
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
            let resources = policy.resources;
            resolved.promise.extend(match &self.limits {
                Some(facts) => limits::promise(facts, resources, name),
                None => limits::assumed(resources, name),
            });
        }
        resolved
    }

    fn home(&self, role: &Role, assessment: &Assessment) -> Option<ResolvedHome> {
        let spec = self.app.runtime.harnesses.get(role.harness.as_str())?.home()?;
        Some(ResolvedHome {
            variable: spec.variable,
            path: assessment.dirs.harness_home.clone(),
            shared: assessment.shared.items.iter().map(|item| item.name.clone()).collect(),
        })
    }

    fn place(&self, role: &Role) -> Place {
        let written = self.fleet.provenance.lookup(&format!("roles.{}", role.name));
        written.map_or_else(|| Place::file(role.source_file.as_str()), |(_, place)| place.clone())
    }
}
