//! The backends of the matrix: the one place to add another.

use camino::Utf8Path;
use fleet_core::isolation::Backend;
use fleet_core::launch::LaunchPlan;
use fleet_core::port::{IsolationBackend, ProbeEvidence};

use super::probe::{Mode, User};
use crate::support::{Host, Launch, PolicyBuilder, evidence, podman_evidence, probe_program};

type Usable = (Box<dyn IsolationBackend>, ProbeEvidence);

/// A backend, and what is known to be open in it.
pub(super) struct Entry {
    pub(super) name: &'static str,
    kind: Backend,
    /// The backend with what its trial found, for the `bwrap` of the stage; `None` where it cannot be used.
    make: fn(&Utf8Path) -> Option<Usable>,
    /// Attempts that get through in every mode, with the reason: the backend's expected column.
    pub(super) leaks: &'static [(&'static str, &'static str)],
    /// Rows shown by tests of their own of which this backend has one; `None` for all.
    pub(super) tests: Option<&'static [&'static str]>,
    /// Whether its refusals are those of the list of attempts (`expected`).
    pub(super) exact: bool,
    /// Whether it takes a role at all. What it does not take it refuses to start.
    takes: fn(Mode, User) -> bool,
}

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "bubblewrap",
        kind: Backend::Bubblewrap,
        make: bubblewrap,
        leaks: &[],
        tests: None,
        exact: true,
        takes: |_, _| true,
    },
    Entry {
        name: "landlock",
        kind: Backend::Landlock,
        make: landlock,
        leaks: super::confined::LEAKS,
        // `…_as_user` in `terminal`, `lifetime`, `limits` and `kills`, and in `integration/landlock.rs`.
        tests: None,
        exact: false,
        takes: |mode, user| matches!(mode, Mode::Deny | Mode::Allow) && user == User::Plain,
    },
    Entry {
        name: "podman",
        kind: Backend::Podman,
        make: podman,
        leaks: &[],
        // `integration/podman.rs`, `escape/podman.rs`, `terminal` and `kills`; 54 is the launcher's,
        // whatever the backend. Its caps are not set, and its report says so.
        tests: Some(&["19", "34c", "50", "51", "52", "53", "54"]),
        exact: false,
        takes: |_, _| true,
    },
];

impl Entry {
    pub(super) fn takes(&self, mode: Mode, user: User) -> bool {
        (self.takes)(mode, user)
    }

    /// Whether it really starts no role of this mode, whoever asks: no plan is made. That no root is
    /// taken is told by its trial.
    pub(super) fn refuses(&self, policy: &PolicyBuilder) -> bool {
        let Some((backend, evidence)) = (self.make)("/nonexistent".into()) else { return true };
        let command = fleet_core::launch::LaunchCommand {
            argv: vec!["/usr/bin/true".to_owned()],
            cwd: "/".into(),
        };
        !backend.enforces_network(policy.policy.network)
            && backend.plan(&policy.policy, &evidence, &command).is_err()
    }

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

fn landlock(_: &Utf8Path) -> Option<Usable> {
    let backend = Host::landlock();
    (backend.abi() > 0).then(|| {
        let usable: Usable = (Box::new(backend), evidence(probe_program(), true));
        usable
    })
}

fn podman(_: &Utf8Path) -> Option<Usable> {
    Some((Box::new(Host::podman()?), podman_evidence()))
}
