//! One launch, made ready: from the fleet file to a launch file (02 §3.1, steps 3–12).

mod files;
mod outer;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::attest::AttestRequest;
use fleet_core::config::{Role, YamlMode};
use fleet_core::environment::{EnvironmentInputs, child_environment};
use fleet_core::harness::screen::TerminalDriver;
use fleet_core::harness::{ExitPolicy, Harness, SessionIds, StartMode};
use fleet_core::id::{LaunchId, RoleName, SessionId};
use fleet_core::isolation::covers::Covers;
use fleet_core::isolation::forbidden::{ForbiddenList, Tier};
use fleet_core::isolation::select::strict;
use fleet_core::isolation::{BackendName, IsolationPolicy};
use fleet_core::launch::{Environment, LaunchFile, LaunchPlan};
use fleet_core::layout::RoleTrees;
use fleet_core::lifecycle::{RestartLedger, StartDecision, StartFacts, decide_start};
use fleet_core::path::LexicalPath;
use fleet_core::permissions::{self, Unattended};
use fleet_core::plan::{self, AssessRequest, Assessment};
use fleet_core::port::{NewConsole, PathProbe, StoreError};
use fleet_core::status::{HarnessStatus, IsolationStatus};
use serde::{Deserialize, Serialize};

use super::caps::Caps;
use super::log::RunnerLog;
use super::sessions::{SessionFinder, recorded};
use super::version::harness_status;
use super::{LoadedFleet, Runtime, home, native_sandbox};
use outer::Outer;

/// `TERM` inside the console: tmux's own default terminal.
const TERM: &str = "tmux-256color";
/// Control files are not larger.
const MAX_CONTROL: u64 = 64 * 1024;

/// A launch made ready. Nothing runs yet.
#[derive(Debug)]
pub struct Prepared {
    /// Its id.
    pub launch_id: LaunchId,
    /// The console to open.
    pub console: NewConsole,
    /// Fresh or resume.
    pub mode: StartMode,
    /// The conversation, as far as it is known before the start.
    pub session: Option<SessionId>,
    /// When an exit counts as what.
    pub exit_policy: ExitPolicy,
    /// How the program shows itself.
    pub driver: Arc<dyn TerminalDriver>,
    /// Where it keeps session records.
    pub(super) records: Option<Utf8PathBuf>,
    /// How to find its conversation, if it chooses the id itself.
    pub(super) finder: Option<SessionFinder>,
    /// What is done with a question that nobody is there to answer.
    pub unattended: Unattended,
    /// Whether the launch ships fleet's hook.
    pub hooked: bool,
    /// The isolation in force.
    pub isolation: IsolationStatus,
    /// What it covers in the project.
    pub(super) covers: Covers,
    /// The working directory.
    pub cwd: Utf8PathBuf,
    /// The harness.
    pub harness: HarnessStatus,
    /// Hash of the role as launched.
    pub fingerprint: String,
    /// Minimum spacing of launches host-wide, in milliseconds.
    pub start_stagger_ms: u64,
    /// Number of roles in the fleet files.
    pub configured_roles: usize,
}

/// A launch that will not happen, in one line that says what to do. Counted as "could not start".
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// Why.
    pub reason: String,
}

impl Refused {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Self::new(format!("{error}{}", cause.unwrap_or_default()))
    }
}

/// Which homes a role has used (01 §2.5): one that was used under isolation may hold planted hooks and
/// is never used without it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct HomeRecord {
    version: u32,
    isolated: bool,
}

/// How a launch begins.
struct Start {
    home: Utf8PathBuf,
    finder: Option<SessionFinder>,
    decision: StartDecision,
    session: Option<SessionId>,
    caps: Caps,
}

/// Makes the next launch of a role ready.
///
/// On `Ok` the four trees exist, hand-out and control are written, and the launch file waits for the
/// console. On an error nothing was started.
///
/// # Cancel safety
/// Dropping the future leaves files that the next attempt writes again.
pub async fn prepare(
    runtime: &Runtime,
    name: &RoleName,
    config: Option<&Utf8Path>,
    ledger: &mut RestartLedger,
    log: &RunnerLog,
) -> Result<Prepared, Refused> {
    let loaded = runtime
        .load(config, YamlMode::Compat)
        .map_err(|error| Refused::new(format!("the fleet file does not load: {error}")))?;
    let role = loaded.fleet.roles.get(name).ok_or_else(|| {
        let files: Vec<&str> = loaded.fleet.source_files.iter().map(|f| f.as_str()).collect();
        Refused::new(format!("no role `{name}` in {}", files.join(", ")))
    })?;
    let harness = runtime
        .harnesses
        .get(role.harness.as_str())
        .ok_or_else(|| Refused::new(format!("harness `{}` does not exist here", role.harness)))?
        .clone();
    let trees = runtime.trees(name);
    for tree in trees.all() {
        runtime.ports.store.ensure_dir(tree)?;
    }

    let version = runtime.harness_version(&*harness).await.unwrap_or_else(|why| {
        log.warn(&format!("version of harness `{}` unknown: {why}", harness.id()));
        None
    });
    let attempt =
        Attempt { runtime, loaded: &loaded, role, harness: &*harness, trees: &trees, log, version };
    attempt.prepare(ledger).await
}

struct Attempt<'a> {
    runtime: &'a Runtime,
    loaded: &'a LoadedFleet,
    role: &'a Role,
    harness: &'a dyn Harness,
    trees: &'a RoleTrees,
    log: &'a RunnerLog,
    version: Option<String>,
}

impl Attempt<'_> {
    async fn prepare(&self, ledger: &mut RestartLedger) -> Result<Prepared, Refused> {
        let wants_isolation = Assessment::wants_isolation(self.role);
        let probe = self.runtime.ports.paths.fresh();
        let forbidden =
            ForbiddenList::build(&self.runtime.world.forbidden_inputs(&self.loaded.fleet), &*probe);
        let mut isolated = wants_isolation;
        let mut outer = None;
        // At most two rounds: as asked, and once more in another home when that cannot be had.
        loop {
            let home = self.harness_home(isolated)?;
            let finder = self.finder(&home, &*probe);
            let (decision, session) = self.decide(&home, finder.as_ref(), ledger)?;
            let isolation = Assessment::boundary(self.role, self.runtime.world.uid);
            let isolation = isolation.filter(|_| isolated);
            let boundary = native_sandbox::outer(self.runtime, self.harness, isolation).await;
            let assessment =
                self.assess(&home, &decision, session.as_ref(), boundary, &forbidden, &*probe)?;
            let chosen = match outer.take() {
                Some(chosen) => chosen,
                None => self.choose_outer(assessment.policy.as_ref()).await?,
            };
            if chosen.degraded.is_some() && isolated {
                self.refuse_obeyed(&assessment.dirs.cwd, &*probe)?;
                isolated = false;
                outer = Some(chosen);
                continue;
            }
            let backend = chosen.backend.name();
            let caps = Caps::decide(self.runtime, self.loaded, self.role, backend, self.log)
                .await
                .map_err(Refused::new)?;
            let start = Start { home, finder, decision, session, caps };
            return self.write(ledger, start, assessment, &chosen, &forbidden, &*probe);
        }
    }

    /// Refuses a degraded start of Codex where its working directory has settings for it: the agent may
    /// have made them in its sandbox, and hooks and servers there would run with all rights. There is
    /// no option to leave them out, and a directory that is not trusted opens a dialog (measured).
    /// Claude Code leaves its own out by options.
    fn refuse_obeyed(&self, cwd: &Utf8Path, probe: &dyn PathProbe) -> Result<(), Refused> {
        const OBEYED: &[(&str, &str)] = &[("codex", ".codex")];
        for (_, name) in OBEYED.iter().filter(|(id, _)| self.harness.id().as_str() == *id) {
            let path = cwd.join(name);
            let there = lexical(&path).and_then(|path| {
                probe.resolve(&path).map_err(|error| Refused::new(error.to_string()))
            })?;
            if there.object.is_some() {
                return Err(Refused::new(format!(
                    "no start without isolation: {path} may be the agent's own work, and outside of \
                     the sandbox what it says would run with all rights; look at it and move it away, \
                     or bring the sandbox back"
                )));
            }
        }
        Ok(())
    }

    /// The harness home, made; another one where the usual one was used under isolation and this
    /// launch has none.
    fn harness_home(&self, isolated: bool) -> Result<Utf8PathBuf, Refused> {
        let store = &self.runtime.ports.store;
        let record: HomeRecord = store
            .read(&self.trees.harness_homes(), MAX_CONTROL)?
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let home = if isolated || !(record.isolated || Assessment::wants_isolation(self.role)) {
            self.trees.harness_home(self.harness.id())
        } else {
            self.trees.harness_home_unisolated(self.harness.id())
        };
        store.ensure_dir(&home)?;
        if isolated && !record.isolated {
            let record = HomeRecord { version: 1, isolated: true };
            let bytes = serde_json::to_vec(&record).unwrap_or_default();
            store.write(&self.trees.harness_homes(), &bytes, 0o600)?;
        }
        Ok(home)
    }

    /// How to find a conversation whose id the program chooses.
    fn finder(&self, home: &Utf8Path, probe: &dyn PathProbe) -> Option<SessionFinder> {
        let SessionIds::Recorded(files) = self.harness.session_ids() else { return None };
        let cwd = plan::working_directory(self.role, self.trees);
        let real =
            LexicalPath::absolute(cwd.as_str()).ok().and_then(|cwd| probe.resolve(&cwd).ok());
        let mut names = vec![cwd.to_string()];
        names.extend(real.map(|real| real.path.as_str().to_owned()));
        Some(SessionFinder {
            store: self.runtime.ports.store.clone(),
            layout: self.runtime.world.layout.clone(),
            role: self.role.name.clone(),
            files,
            home: home.to_owned(),
            cwd: names,
        })
    }

    fn decide(
        &self,
        home: &Utf8PathBuf,
        finder: Option<&SessionFinder>,
        ledger: &RestartLedger,
    ) -> Result<(StartDecision, Option<SessionId>), Refused> {
        let store = &self.runtime.ports.store;
        let mut recorded = recorded(&**store, self.trees)?;
        if let Some(finder) = finder
            && let Some(record) = recorded.take_if(|record| record.harness == *self.harness.id())
        {
            recorded = Some(finder.settle(record)?);
        }
        let booted = store.read(&self.trees.booted(), MAX_CONTROL)?.is_some();
        let facts = StartFacts {
            session: recorded.as_ref(),
            booted,
            harness: self.harness.id(),
            home,
            supports_resume: self.harness.supports_resume(self.role.harness_options.expose()),
            policy: self.harness.exit_policy(),
        };
        let decision = decide_start(&facts, ledger);
        let session = match (decision.mode, recorded) {
            (StartMode::Resume, Some(recorded)) => recorded.id,
            (StartMode::Resume | StartMode::Fresh, _) if finder.is_none() => {
                Some(self.new_session_id()?)
            }
            (StartMode::Resume | StartMode::Fresh, _) => None,
        };
        Ok((decision, session))
    }

    fn new_session_id(&self) -> Result<SessionId, Refused> {
        self.runtime.ports.ids.uuid().parse().map_err(|error| Refused::new(format!("{error}")))
    }

    fn assess(
        &self,
        home: &Utf8Path,
        decision: &StartDecision,
        session: Option<&SessionId>,
        outer: permissions::Outer,
        forbidden: &ForbiddenList,
        probe: &dyn PathProbe,
    ) -> Result<Assessment, Refused> {
        let operator =
            home::operator_files(self.runtime, self.harness, self.role, forbidden, probe);
        for note in &operator.notes {
            self.log.warn(note);
        }
        let request = AssessRequest {
            fleet: &self.loaded.fleet,
            role: self.role,
            harness: self.harness,
            world: &self.runtime.world,
            forbidden,
            mode: decision.mode,
            session,
            harness_home: home,
            outer,
            version: self.version.as_deref(),
            operator_files: &operator.texts,
        };
        let assessment = plan::assess(&request, probe);
        if let Some(problem) = assessment.problems.first() {
            return Err(Refused::new(problem.to_string()));
        }
        if let Some(blocker) = assessment.blockers.first() {
            return Err(Refused::new(blocker.clone()));
        }
        Ok(assessment)
    }

    fn write(
        &self,
        ledger: &mut RestartLedger,
        start: Start,
        assessment: Assessment,
        outer: &Outer<'_>,
        forbidden: &ForbiddenList,
        probe: &dyn PathProbe,
    ) -> Result<Prepared, Refused> {
        let Start { home, finder, decision, session, caps } = start;
        let store = &self.runtime.ports.store;
        let now = self.runtime.ports.clock.now();
        let isolated = outer.backend.name() != BackendName::None;
        let policy = assessment.policy.as_ref().filter(|_| isolated);
        let mut plan = self.launch_plan(&assessment, policy, outer)?;
        plan.promise.extend(caps.promise.iter().cloned());
        if let (Some(policy), Some(request)) = (policy, plan.attestation_mut()) {
            self.ask(request, policy, forbidden, probe)?;
        }

        self.write_degraded_marker(outer.degraded.as_deref(), &now.to_string())?;
        self.write_state_files()?;
        self.write_briefing(&assessment, policy, outer, probe)?;
        store.write(&self.trees.promised(), &json(&plan.promise), 0o600)?;
        home::furnish(&**store, self.trees, self.harness, &assessment, self.log)?;
        self.record_session(&home, finder.as_ref(), &decision, session.as_ref())?;
        if decision.discards_resume {
            ledger.resume_discarded = true;
        }
        self.log.info(&format!("{} start: {}", decision.mode.as_str(), decision.reason));

        let launch_id: LaunchId = self
            .runtime
            .ports
            .ids
            .uuid()
            .parse()
            .map_err(|error| Refused::new(format!("{error}")))?;
        let env =
            self.environment(&assessment, policy.map(|policy| outer.backend.variables(policy)));
        let backend = plan.backend;
        let binds = matches!(backend, BackendName::Bubblewrap | BackendName::Podman);
        let limits = caps.request(&self.runtime.world, &self.role.name, self.trees, &launch_id);
        let file = LaunchFile {
            version: LaunchFile::VERSION,
            launch_id: launch_id.clone(),
            role: self.role.name.clone(),
            command: assessment.command,
            env,
            plan,
            exit_record: self.trees.exit_record(),
            observed: self.trees.observed(),
            sandbox_process: Some(self.trees.sandbox_process()),
            connections: Some(self.trees.connections()),
            limits,
        };
        store.remove(&self.trees.exit_record())?;
        store.remove(&self.trees.observed())?;
        store.write(
            &self.trees.booted(),
            format!("{now} {}\n", decision.mode.as_str()).as_bytes(),
            0o600,
        )?;
        super::overlays::record(&**store, self.trees, &file.plan)?;
        store.write(&self.trees.launch_file(), &json(&file), 0o600)?;
        Ok(Prepared {
            launch_id,
            console: NewConsole {
                argv: vec![
                    self.runtime.world.binary.to_string(),
                    "_pane".to_owned(),
                    self.trees.launch_file().to_string(),
                ],
                cwd: assessment.dirs.cwd.clone(),
                columns: 200,
                rows: 50,
            },
            mode: decision.mode,
            session,
            exit_policy: self.harness.exit_policy(),
            driver: self.harness.driver(self.role.harness_options.expose()),
            records: self.harness.session_records().map(|directory| home.join(directory)),
            finder,
            unattended: self.role.permissions.unattended,
            hooked: assessment.hooked,
            isolation: IsolationStatus {
                backend,
                degraded: outer.degraded.clone(),
                lesser: outer.lesser.clone(),
                uncovered: Vec::new(),
            },
            covers: policy.filter(|_| binds).map(Covers::of).unwrap_or_default(),
            cwd: assessment.dirs.cwd,
            harness: harness_status(self.harness, self.version.as_deref()),
            fingerprint: plan::fingerprint(self.role),
            start_stagger_ms: self.loaded.fleet.start_stagger_ms,
            configured_roles: self.loaded.fleet.roles.len(),
        })
    }

    /// What the sandbox is asked about itself beyond what its backend asks: whether it hides what no
    /// role may see. Where the role must not start without isolation, it must not with less either.
    fn ask(
        &self,
        request: &mut AttestRequest,
        policy: &IsolationPolicy,
        forbidden: &ForbiddenList,
        probe: &dyn PathProbe,
    ) -> Result<(), Refused> {
        let mut hidden: Vec<LexicalPath> = forbidden
            .entries()
            .iter()
            .filter(|entry| entry.tier == Tier::NoExposure)
            .map(|entry| entry.resolved.clone())
            .chain(forbidden.names(Tier::NoExposure, probe))
            .collect();
        hidden.push(lexical(&self.trees.control)?);
        request.hide(policy, &hidden);
        let fleet = &self.loaded.fleet;
        let required = fleet.policy.require.forbids_unisolated(&fleet.provenance);
        let uid = self.runtime.world.uid;
        request.strict = self.role.isolation.as_ref().is_some_and(|block| {
            strict(block, self.role.permissions, uid, required.as_deref()).is_some()
        });
        Ok(())
    }

    fn launch_plan(
        &self,
        assessment: &Assessment,
        policy: Option<&IsolationPolicy>,
        outer: &Outer<'_>,
    ) -> Result<LaunchPlan, Refused> {
        let result = if let Some(policy) = policy {
            outer.backend.plan(policy, &outer.evidence, &assessment.command)
        } else {
            let cwd = lexical(&assessment.command.cwd)?;
            let policy = IsolationPolicy::none(&cwd, &lexical(&self.runtime.world.homes.os)?);
            outer.backend.plan(&policy, &outer.evidence, &assessment.command)
        };
        result.map_err(|error| Refused::new(error.to_string()))
    }

    /// `sandbox` are the variables of the backend, if there is one.
    fn environment(
        &self,
        assessment: &Assessment,
        sandbox: Option<Vec<(&'static str, String)>>,
    ) -> Environment {
        let world = &self.runtime.world;
        let mut env = child_environment(&EnvironmentInputs {
            own: &world.env,
            home: world.homes.os.as_str(),
            path: &world.path(),
            term: TERM,
            harness: &assessment.harness_env,
            harness_home: assessment
                .home_variable
                .map(|it| (it, assessment.dirs.harness_home.as_str())),
            role: self.role,
            isolated: sandbox.is_some(),
        });
        let given = |name: &str| {
            self.role.env.contains_key(name) || self.role.env_pass.iter().any(|it| it == name)
        };
        for (name, value) in sandbox.into_iter().flatten().filter(|(name, _)| !given(name)) {
            env.0.insert(name.to_owned(), value);
        }
        env
    }
}

fn lexical(path: &Utf8Path) -> Result<LexicalPath, Refused> {
    LexicalPath::absolute(path.as_str()).map_err(|error| Refused::new(format!("{path}: {error}")))
}

/// Our own types always serialise.
fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
