//! The runner of one role: what happens becomes events of the core's lifecycle, and its effects are
//! carried out here (02 §3). Event driven: an idle runner sleeps in the kernel.

pub(super) mod attempt;
mod claim;
mod gate;
mod intent;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use fleet_core::delivery::Left;
use fleet_core::harness::ExitPolicy;
use fleet_core::harness::screen::Readiness;
use fleet_core::id::{RoleName, Timestamp};
use fleet_core::layout::RoleTrees;
use fleet_core::lifecycle::{Effect, Event, Lifecycle, Phase, StopKind};
use fleet_core::path::LexicalPath;
use fleet_core::port::{Monotonic, ProcessIdentity, StoreError, StoreLock};
use fleet_core::status::{AgentStatus, FailureStatus, RoleState, Status};
use tokio::sync::{Mutex, mpsc, watch};

use self::attempt::Attempt;
use self::claim::save_ledger;
use super::Runtime;
use super::agent::News;
use super::control::{Incoming, Server};
use super::hook::HookDesk;
use super::log::RunnerLog;
use super::prepare::{Prepared, prepare};
use fleet_core::error_chain::chain;

pub use intent::{StopIntent, read_intent};

/// Why a runner did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another runner of this role lives.
    #[error("another runner of `{role}` is alive")]
    AlreadyRunning {
        /// The role.
        role: RoleName,
    },
    /// A control file could not be used.
    #[error("failed to take over the control directory of `{role}`")]
    Store {
        /// The role.
        role: RoleName,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// The runner could not find out who it is, or could not listen.
    #[error("failed to {action} for `{role}`")]
    System {
        /// What was tried.
        action: &'static str,
        /// The role.
        role: RoleName,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Is told each published status, the first one as soon as the runner owns its role.
pub type Told = Box<dyn Fn(&Status) + Send + Sync>;

/// Runs a role until it is stopped: `stop` turns true, the program is ended, and this returns.
///
/// A program that ends is started again as the core's lifecycle decides; after too many immediate
/// failures the runner stays alive, starts nothing and says so.
pub async fn run(
    runtime: Runtime,
    role: RoleName,
    config: Option<Utf8PathBuf>,
    stop: watch::Receiver<bool>,
    told: Told,
) -> Result<(), RunError> {
    let (mut runner, mut incoming) = Runner::claim(runtime, role, config, told)?;
    runner.end_leftovers().await;
    runner.live(stop, &mut incoming).await;
    Ok(())
}

/// What the log holds of errors that the agent showed. An agent chooses when it shows one: two lines a
/// minute at most, or it could push out of the log what happened before.
#[derive(Debug, Default)]
struct ErrorLogged {
    at: Option<Timestamp>,
    /// Whether the log does not say yet that it is over.
    open: bool,
}

/// Milliseconds from one logged error of the agent to the next.
const ERROR_LOG_PAUSE: u64 = 60_000;

struct Runner {
    runtime: Runtime,
    role: RoleName,
    config: Option<Utf8PathBuf>,
    trees: RoleTrees,
    log: RunnerLog,
    own: ProcessIdentity,
    life: Lifecycle,
    status: Status,
    policy: ExitPolicy,
    attempt: Option<Attempt>,
    wake_at: Option<Monotonic>,
    typing: Arc<Mutex<Option<Left>>>,
    news: watch::Receiver<News>,
    hooks: Arc<HookDesk>,
    error_logged: ErrorLogged,
    _server: Server,
    told: Told,
    _hook_server: Option<Server>,
    _lock: Box<dyn StoreLock>,
}

impl Runner {
    /// Step 2: a console that an earlier runner left is ended before anything else.
    async fn end_leftovers(&self) {
        let previous = super::observe::published(&*self.runtime.ports.store, &self.trees);
        let launcher = previous.and_then(|status| status.console.launcher);
        match attempt::end(&self.runtime, &self.role, launcher.as_ref()).await {
            Ok(true) => self.log.warn("ended the console of an earlier runner"),
            Ok(false) => {}
            Err(error) => {
                self.log.warn(&format!("console of an earlier runner: {}", chain(&error)));
            }
        }
    }

    async fn live(
        &mut self,
        mut stop: watch::Receiver<bool>,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) {
        let mut event = Some(Event::Begin);
        loop {
            while let Some(happened) = event.take() {
                let now = self.runtime.ports.clock.now();
                let effects = self.life.on(happened, self.policy, now);
                self.show(now);
                for effect in effects {
                    if effect == Effect::Finish {
                        self.finish();
                        return;
                    }
                    if let Some(next) = self.carry_out(effect, &mut stop, incoming).await {
                        event = Some(next);
                    }
                }
            }
            event = self.wait(&mut stop, incoming).await;
        }
    }

    /// Waits for whatever happens next.
    async fn wait(
        &mut self,
        stop: &mut watch::Receiver<bool>,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> Option<Event> {
        let clock = self.runtime.ports.clock.clone();
        let delay = self.wake_at.map(|at| at.since(clock.monotonic()));
        let stopping = matches!(self.life.phase(), Phase::Stopping(_) | Phase::Stopped);
        tokio::select! {
            biased;
            () = stopped(stop), if !stopping => Some(Event::Stop(self.stop_kind())),
            event = attempt::ended(&self.runtime, self.attempt.as_ref()) => {
                self.attempt = None;
                if let Event::Ended { termination, .. } = &event {
                    let (words, detail) = (termination.class.words(), &termination.detail);
                    self.log.info(&format!("{words}: {detail}"));
                }
                // The server ends with its last program; the next attempt needs it gone.
                if let Err(error) = attempt::end(&self.runtime, &self.role, None).await {
                    self.log.warn(&format!("console not ended: {}", chain(&error)));
                }
                Some(event)
            }
            () = changed(&mut self.news) => self.hear(),
            () = sleep(&*clock, delay) => {
                self.wake_at = None;
                Some(Event::DelayOver)
            }
            Some(request) = incoming.recv() => self.answer(request),
        }
    }

    async fn carry_out(
        &mut self,
        effect: Effect,
        stop: &mut watch::Receiver<bool>,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> Option<Event> {
        match effect {
            Effect::Attempt => match self.launch(stop, incoming).await {
                Ok(()) => None,
                Err(reason) => {
                    self.log.warn(&format!("could not start: {reason}"));
                    Some(Event::Refused { reason })
                }
            },
            Effect::SaveLedger => {
                save_ledger(&self.runtime, &self.trees, &self.life.ledger, &self.log);
                None
            }
            Effect::Wait(millis) => {
                let now = self.runtime.ports.clock.monotonic();
                self.wake_at = Some(now.plus(Duration::from_millis(millis)));
                let next = self.runtime.ports.clock.now().plus_millis(millis);
                self.status.failures.next_at = Some(next);
                self.publish();
                None
            }
            Effect::TearDown => {
                self.wake_at = None;
                let launcher = self.attempt.take().map(|attempt| attempt.launcher);
                if let Err(error) = attempt::end(&self.runtime, &self.role, launcher.as_ref()).await
                {
                    self.log.warn(&format!("console not ended: {}", chain(&error)));
                }
                drop(self.runtime.ports.store.remove(&self.trees.launch_file()));
                Some(Event::TornDown)
            }
            Effect::ForgetConversation => {
                let store = &self.runtime.ports.store;
                drop(store.remove(&self.trees.booted()));
                // Whoever asked for the stop is told of what would not end, by that record.
                if super::leftovers::unended(&**store, &self.trees).is_none() {
                    drop(store.remove(&self.trees.exit_record()));
                }
                None
            }
            Effect::Finish => None,
        }
    }

    /// Steps 3–15: prepare, pass the gate, open the console. A stop ends the first two; once the
    /// console is being opened it must be known, or what runs in it could not be ended in order.
    async fn launch(
        &mut self,
        stop: &mut watch::Receiver<bool>,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> Result<(), String> {
        self.status.attempt += 1;
        let prepared = tokio::select! {
            biased;
            () = stopped(stop) => return Ok(()),
            prepared = prepare(
                &self.runtime,
                &self.role,
                self.config.as_deref(),
                &mut self.life.ledger,
                &self.log,
            ) => prepared.map_err(|refused| refused.to_string())?,
        };
        self.policy = prepared.exit_policy;
        if prepared.start_stagger_ms > 0 && !self.pass_gate(&prepared, stop, incoming).await? {
            return Ok(());
        }
        self.hooks.launch(prepared.unattended);
        let attempt = attempt::open(&self.runtime, &self.role, &prepared, &self.hooks).await?;
        self.log.info(&format!(
            "launched: mode {}, launcher pid {}, cwd {}, isolation {}",
            prepared.mode.as_str(),
            attempt.launcher.pid,
            prepared.cwd,
            prepared.isolation.backend
        ));
        self.status.harness = Some(prepared.harness);
        self.status.mode = Some(prepared.mode);
        self.status.launch_id = Some(prepared.launch_id);
        self.status.session_id = prepared.session;
        self.status.console.launcher = Some(attempt.launcher.clone());
        self.status.cwd = Some(prepared.cwd);
        self.status.isolation = Some(prepared.isolation);
        self.status.runner.config_fingerprint = Some(prepared.fingerprint);
        self.status.agent = None;
        // What an earlier console held went with it.
        self.typing = Arc::default();
        self.news = attempt.observer.subscribe();
        self.news.mark_changed();
        self.attempt = Some(attempt);
        self.publish();
        Ok(())
    }

    /// Waits for the start slot, answering requests meanwhile; `false` if a stop came first.
    async fn pass_gate(
        &mut self,
        prepared: &Prepared,
        stop: &mut watch::Receiver<bool>,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> Result<bool, String> {
        let (stagger, roles) = (prepared.start_stagger_ms, prepared.configured_roles);
        let slot = tokio::select! {
            biased;
            () = stopped(stop) => return Ok(false),
            slot = gate::reserve(&self.runtime, stagger, roles) => slot.map_err(|e| chain(&e))?,
        };
        if slot.wait == Duration::ZERO {
            return Ok(true);
        }
        self.status.detail = Some(format!("waiting for its start slot at {}", slot.at));
        self.publish();
        let clock = self.runtime.ports.clock.clone();
        let over = clock.sleep(slot.wait);
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(false),
                () = &mut over => break,
                // Nothing that is asked for now can lead to another event: there is no console yet.
                Some(request) = incoming.recv() => drop(self.answer(request)),
            }
        }
        self.status.detail = None;
        Ok(true)
    }

    /// Something about the agent changed: it is published.
    fn hear(&mut self) -> Option<Event> {
        let news = self.news.borrow_and_update().clone();
        let attempt = self.attempt.as_ref()?;
        if self.status.session_id.is_none() {
            // A turn that began or ended is when a program names its conversation.
            self.status.session_id = news
                .session
                .or_else(|| attempt.finder.as_ref().and_then(|finder| finder.current()));
        }
        let starting = self.life.phase() == Phase::Starting;
        if starting {
            let dialog = news.agent.as_ref().filter(|a| a.state.readiness == Readiness::Dialog);
            let detail = dialog.map(|agent| start_dialog(&self.role, agent));
            if let Some(detail) = detail.as_ref().filter(|_| detail != self.status.detail) {
                self.log.warn(detail);
            }
            self.status.detail = detail;
        }
        self.log_error(news.agent.as_ref());
        self.uncover(news.uncovered);
        self.status.agent = news.agent;
        self.status.at = self.runtime.ports.clock.now();
        self.publish();
        (starting && news.ready).then_some(Event::Ready)
    }

    /// Publishes what is not covered any more, and leaves evidence of each path once.
    fn uncover(&mut self, paths: Vec<LexicalPath>) {
        let Some(isolation) = &mut self.status.isolation else { return };
        for path in paths.iter().filter(|path| !isolation.uncovered.contains(path)) {
            self.log.warn(&format!(
                "`{path}` was replaced outside of the sandbox: inside, nothing keeps the agent from \
                 writing it until `ours-fleet restart {}`",
                self.role
            ));
            self.hooks.record("cover-lost", [("path", Some(path.as_str()))]);
        }
        isolation.uncovered = paths;
    }

    /// Logs that the agent shows an error, and that it went, but not again and again: a program that
    /// counts down to its next try shows another text each second.
    fn log_error(&mut self, agent: Option<&AgentStatus>) {
        let error = |agent: &AgentStatus| agent.state.error.clone();
        let (before, now) = (self.status.agent.as_ref().and_then(error), agent.and_then(error));
        let at = self.runtime.ports.clock.now();
        let logged = &mut self.error_logged;
        let recent = logged.at.is_some_and(|last| at.since(last) < ERROR_LOG_PAUSE);
        match now {
            Some(error) if before.as_ref() != Some(&error) && !recent => {
                self.log.warn(&format!("the agent shows an error: {error}"));
                *logged = ErrorLogged { at: Some(at), open: true };
            }
            None if before.is_some() && std::mem::take(&mut logged.open) => {
                self.log.info("the agent shows no error any more");
            }
            _ => {}
        }
    }

    fn stop_kind(&self) -> StopKind {
        read_intent(&*self.runtime.ports.store, &self.trees)
            .filter(|intent| intent.is_for(&self.own))
            .map_or(StopKind::Shutdown, |intent| intent.kind)
    }

    /// Brings the status in line with the lifecycle and publishes it.
    fn show(&mut self, now: Timestamp) {
        let state = match self.life.phase() {
            Phase::Starting | Phase::Stopping(_) => RoleState::Starting,
            Phase::Running => RoleState::Running,
            Phase::BackingOff => RoleState::BackingOff,
            Phase::HeldDown => RoleState::HeldDown,
            Phase::Stopped => RoleState::Stopped,
        };
        let ledger = &self.life.ledger;
        if self.status.state != state {
            self.status.since = now;
        }
        self.status.state = state;
        self.status.detail = match self.life.phase() {
            Phase::BackingOff | Phase::HeldDown => ledger.last_reason.clone(),
            Phase::Stopping(_) => Some("stopping".to_owned()),
            Phase::Starting | Phase::Running | Phase::Stopped => None,
        };
        self.status.failures = FailureStatus {
            count: ledger.consecutive_immediate_failures,
            last_reason: ledger.last_reason.clone(),
            next_at: None,
            held_since: ledger.opened_at,
        };
        self.status.last_termination.clone_from(&ledger.last_termination);
        self.status.abrupt_terminations = ledger.abrupt_terminations;
        if self.attempt.is_none() {
            self.status.console.launcher = None;
            self.status.agent = None;
        }
        self.status.at = now;
        self.publish();
    }

    fn publish(&self) {
        let bytes = serde_json::to_vec(&self.status).unwrap_or_default();
        if let Err(error) = self.runtime.ports.store.publish(&self.trees.status(), &bytes, 0o600) {
            self.log.warn(&format!("status not published: {}", chain(&error)));
        }
        (self.told)(&self.status);
    }

    fn finish(&self) {
        for path in [self.trees.run_marker(), self.trees.stop_intent()] {
            if let Err(error) = self.runtime.ports.store.remove(&path) {
                self.log.warn(&format!("{path} not removed: {}", chain(&error)));
            }
        }
        self.log.info("stopped in order");
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // The sender is gone: nobody can ask for a stop any more.
        std::future::pending::<()>().await;
    }
}

fn start_dialog(role: &RoleName, agent: &AgentStatus) -> String {
    let which = agent.state.dialog.as_deref().unwrap_or("unknown");
    format!("a start dialog is open ({which}): answer it with `ours-fleet attach {role}`")
}

/// Waits for news; for ever if there can be none.
async fn changed(news: &mut watch::Receiver<News>) {
    if news.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn sleep(clock: &dyn fleet_core::port::Clock, delay: Option<Duration>) {
    match delay {
        Some(delay) => clock.sleep(delay).await,
        None => std::future::pending().await,
    }
}
