//! The outer boundary of a launch: which isolation backend it gets, or that it gets none.

use fleet_core::isolation::select::{Fallback, candidates, fallback, is_lesser, strict};
use fleet_core::isolation::{BackendName, IsolationPolicy};
use fleet_core::port::{IsolationBackend, ProbeEvidence, ProbeFailure};

use super::{Attempt, Refused};

/// The outer boundary of a launch, chosen.
pub(super) struct Outer<'a> {
    pub(super) backend: &'a dyn IsolationBackend,
    pub(super) evidence: ProbeEvidence,
    /// Why there is none.
    pub(super) degraded: Option<String>,
    /// Why it is one that holds less than what was meant.
    pub(super) lesser: Option<String>,
}

impl<'a> Outer<'a> {
    fn usable(backend: &'a dyn IsolationBackend, evidence: ProbeEvidence) -> Self {
        Self { backend, evidence, degraded: None, lesser: None }
    }
}

impl Attempt<'_> {
    /// Chooses the backend: each candidate is tried with the very flags of this role.
    pub(super) async fn choose_outer(
        &self,
        policy: Option<&IsolationPolicy>,
    ) -> Result<Outer<'_>, Refused> {
        let Some((policy, block)) = policy.zip(self.role.isolation.as_ref()) else {
            return Ok(Outer::usable(self.none()?, no_evidence()));
        };
        if let Some(mount) = policy.missing_sources().next() {
            return Err(Refused::new(format!(
                "{} does not exist ({}): create it, or take it out of the fleet file",
                mount.source,
                mount.origin.key()
            )));
        }
        let (permissions, uid) = (self.role.permissions, self.runtime.world.uid);
        let fleet = &self.loaded.fleet;
        let required = fleet.policy.require.forbids_unisolated(&fleet.provenance);
        let strict = strict(block, permissions, uid, required.as_deref());
        let mut failures: Vec<(BackendName, ProbeFailure)> = Vec::new();
        for name in candidates(block) {
            let Some(backend) =
                self.runtime.ports.backends.iter().find(|backend| backend.name() == name)
            else {
                continue;
            };
            let lesser = is_lesser(block, name);
            if lesser && strict.is_some() {
                continue;
            }
            match backend.probe(policy).await {
                Ok(evidence) => {
                    let short = backend.shortfalls(policy);
                    if let Some(rule) = strict.as_ref().filter(|_| !short.is_empty()) {
                        let what = format!("{} ({rule})", short.join("; "));
                        failures.push((name, ProbeFailure::CannotEnforce { backend: name, what }));
                        continue;
                    }
                    let mut outer = Outer::usable(&**backend, evidence);
                    if lesser {
                        let reason = lesser_reason(&failures);
                        self.log.warn(&format!("isolation by {name}, which is less: {reason}"));
                        outer.lesser = Some(reason);
                    }
                    return Ok(outer);
                }
                Err(failure) => failures.push((name, failure)),
            }
        }
        match fallback(block, permissions, uid, required.as_deref(), &failures) {
            Fallback::Refuse { message } => Err(Refused::new(message)),
            Fallback::Unisolated { message } => {
                self.log.warn(&format!("UN-ISOLATED: {message}"));
                Ok(Outer {
                    backend: self.none()?,
                    evidence: no_evidence(),
                    degraded: Some(message),
                    lesser: None,
                })
            }
        }
    }

    fn none(&self) -> Result<&dyn IsolationBackend, Refused> {
        self.runtime
            .ports
            .backends
            .iter()
            .find(|backend| backend.name() == BackendName::None)
            .map(|backend| &**backend)
            .ok_or_else(|| Refused::new("this program has no launcher for un-isolated roles"))
    }
}

fn lesser_reason(failures: &[(BackendName, ProbeFailure)]) -> String {
    let each: Vec<String> =
        failures.iter().map(|(name, failure)| format!("{name} is not usable: {failure}")).collect();
    each.join("; ")
}

fn no_evidence() -> ProbeEvidence {
    ProbeEvidence { version: String::new(), program: String::new(), features: Vec::new() }
}
