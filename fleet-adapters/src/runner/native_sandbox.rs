//! Whether a harness's own sandbox works on this host. Found out by running it: a version text or a
//! program on the `PATH` proves nothing about what the kernel allows (01 §3.2).

use std::collections::BTreeMap;
use std::time::Duration;

use fleet_core::config::Fleet;
use fleet_core::harness::{Harness, Prerequisite};
use fleet_core::id::HarnessId;
use fleet_core::isolation::closure::launch_closure;
use fleet_core::path::LexicalPath;
use fleet_core::permissions::Outer;
use fleet_core::plan::Assessment;
use fleet_core::port::{CommandSpec, Exit};

use super::Runtime;

/// A sandbox around nothing starts in a tenth of a second; a machine may be slow.
const LIMIT: Duration = Duration::from_secs(4);
/// Characters of an error that are shown.
const SHOWN: usize = 200;

/// What a trial showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NativeSandbox {
    /// The harness has no sandbox of its own.
    Absent,
    /// The trial ended as it should.
    Works {
        /// The program that ran.
        program: String,
    },
    /// It cannot be used here.
    Unusable {
        /// Why, one line.
        reason: String,
    },
}

/// The trials of one run of fleet, at most one a harness.
#[derive(Debug, Clone, Default)]
pub struct NativeSandboxes {
    tried: BTreeMap<HarnessId, NativeSandbox>,
}

impl NativeSandboxes {
    /// Nothing is tried and everything taken to work: for a look that may run no program.
    pub fn assumed() -> Self {
        Self::default()
    }

    /// Tries the sandbox of each harness of the fleet, or only where a role needs it because it has no
    /// isolation.
    ///
    /// # Cancel safety
    /// Dropping the future ends the trial that runs.
    pub async fn of_fleet(runtime: &Runtime, fleet: &Fleet, only_needed: bool) -> Self {
        let mut tried = BTreeMap::new();
        for role in fleet.roles.values() {
            if tried.contains_key(&role.harness)
                || (only_needed && Assessment::boundary(role, runtime.world.uid) == Some(Outer::On))
            {
                continue;
            }
            if let Some(harness) = runtime.harnesses.get(role.harness.as_str()) {
                tried.insert(role.harness.clone(), try_out(runtime, &**harness).await);
            }
        }
        Self { tried }
    }

    /// What the trial of a harness showed; `None` if there was none.
    pub fn get(&self, harness: &HarnessId) -> Option<&NativeSandbox> {
        self.tried.get(harness)
    }

    /// The boundary of a launch: the role's isolation, else the harness's own sandbox, if it works.
    pub fn outer(&self, harness: &HarnessId, isolation: Option<Outer>) -> Outer {
        boundary(self.get(harness), isolation)
    }
}

/// The boundary of one launch. The harness is tried only where it matters.
///
/// # Cancel safety
/// Dropping the future ends the trial.
pub async fn outer(runtime: &Runtime, harness: &dyn Harness, isolation: Option<Outer>) -> Outer {
    if isolation == Some(Outer::On) {
        return Outer::On;
    }
    boundary(Some(&try_out(runtime, harness).await), isolation)
}

/// What is not there cannot be inside the isolation either, which then bounds alone.
fn boundary(tried: Option<&NativeSandbox>, isolation: Option<Outer>) -> Outer {
    match (tried, isolation) {
        (Some(NativeSandbox::Unusable { .. } | NativeSandbox::Absent), Some(_)) => Outer::On,
        (_, Some(outer)) => outer,
        (Some(NativeSandbox::Unusable { .. }), None) => Outer::OffUnsandboxed,
        (Some(NativeSandbox::Absent | NativeSandbox::Works { .. }) | None, None) => Outer::Off,
    }
}

/// Runs the sandbox of a harness around nothing, in a scratch directory below the state root.
///
/// # Cancel safety
/// Dropping the future ends the trial.
pub async fn try_out(runtime: &Runtime, harness: &dyn Harness) -> NativeSandbox {
    let Some(needs) = harness.prerequisite().filter(|it| !it.sandbox_trial.is_empty()) else {
        return NativeSandbox::Absent;
    };
    match trial(runtime, harness, needs).await {
        Ok(program) => NativeSandbox::Works { program },
        Err(reason) => NativeSandbox::Unusable { reason },
    }
}

async fn trial(
    runtime: &Runtime,
    harness: &dyn Harness,
    needs: &Prerequisite,
) -> Result<String, String> {
    let world = &runtime.world;
    let probe = runtime.ports.paths.fresh();
    for program in needs.sandbox_programs {
        launch_closure(program, &world.path_dirs, &LexicalPath::root(), &*probe)
            .map_err(|error| error.to_string())?;
    }
    let [program, args @ ..] = needs.sandbox_trial else { return Err("nothing to run".to_owned()) };
    let scratch = world.layout.trial(harness.id());
    runtime.ports.store.ensure_dir(&scratch).map_err(|error| error.to_string())?;
    let mut spec = CommandSpec::new(*program, args.iter().copied());
    spec.timeout = LIMIT;
    // As an un-isolated role gets it, the place of temporary files included: Codex refuses to work
    // with a home below that.
    spec.env = vec![("PATH".to_owned(), world.path()), ("HOME".to_owned(), scratch.to_string())];
    if let Some(home) = harness.home() {
        spec.env.push((home.variable.to_owned(), scratch.to_string()));
    }
    if let Some(place) = world.env.0.get("TMPDIR") {
        spec.env.push(("TMPDIR".to_owned(), place.clone()));
    }
    spec.cwd = Some(scratch);
    let output = runtime.ports.exec.run(&spec).await.map_err(|error| error.to_string())?;
    match output.exit {
        Exit::Code(0) => Ok((*program).to_owned()),
        Exit::Code(127) if output.stderr_text().is_empty() => {
            Err(format!("`{program}` was not found"))
        }
        Exit::Code(code) => {
            Err(format!("`{program}` ended with {code}: {}", last_line(&output.stderr_text())))
        }
        Exit::Signal(signal) => Err(format!("`{program}` was ended by signal {signal}")),
    }
}

/// The last line that says something, without control characters.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let plain = line.unwrap_or("it said nothing").chars().filter(|c| !c.is_control());
    plain.take(SHOWN).collect()
}
