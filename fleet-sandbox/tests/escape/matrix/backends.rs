//! The backends of the matrix: the one place to add another.

use camino::Utf8Path;
use fleet_core::isolation::Backend;
use fleet_core::launch::LaunchPlan;
use fleet_core::port::{IsolationBackend, ProbeEvidence};

use crate::support::{Host, Launch, PolicyBuilder, evidence};

type Usable = (Box<dyn IsolationBackend>, ProbeEvidence);

/// A backend, and what is known to be open in it.
pub(super) struct Entry {
    pub(super) name: &'static str,
    kind: Backend,
    /// The backend with what its trial found, for the `bwrap` of the stage; `None` where it cannot be used.
    make: fn(&Utf8Path) -> Option<Usable>,
    /// Attempts that get through in every mode, with the reason: the backend's expected column.
    pub(super) leaks: &'static [(&'static str, &'static str)],
    /// Whether its refusals are those of the list of attempts (`expected`).
    pub(super) exact: bool,
}

pub(super) const ALL: &[Entry] = &[Entry {
    name: "bubblewrap",
    kind: Backend::Bubblewrap,
    make: bubblewrap,
    leaks: &[],
    exact: true,
}];

impl Entry {
    pub(super) fn usable(&self) -> bool {
        (self.make)("/nonexistent".into()).is_some()
    }

    pub(super) fn plan(
        &self,
        launch: &Launch,
        policy: &PolicyBuilder,
        argv: &[String],
    ) -> LaunchPlan {
        let (backend, evidence) = (self.make)(&launch.bwrap).expect("usable");
        let mut policy = policy.policy.clone();
        policy.backend = self.kind;
        backend.plan(&policy, &evidence, &launch.command(argv)).expect("a plan")
    }
}

fn bubblewrap(program: &Utf8Path) -> Option<Usable> {
    Host::bwrap()?;
    Some((Box::new(Host::backend()), evidence(program, true)))
}
