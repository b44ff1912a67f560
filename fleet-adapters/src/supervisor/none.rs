//! The supervisor `none`: a detached runner that nobody restarts (02 §4.3).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use fleet_core::id::RoleName;
use fleet_core::layout::FleetLayout;
use fleet_core::port::{
    Clock, CommandSpec, Exec, ExecOutput, Exit, Liveness, ProcessError, ProcessIdentity,
    ProcessTable, RunState, Service, Signal, Signalled, StateStore, Supervisor, SupervisorError,
    SupervisorKind,
};

use fleet_core::error_chain::chain;

use super::proof::{POLL, Proof, Seen};

/// From the return of the starting command to a runner with lock and marker.
const START_LIMIT: Duration = Duration::from_secs(5);
/// For an orderly end; after it the runner is killed.
const STOP_LIMIT: Duration = Duration::from_secs(15);
/// For the kernel to end a killed process.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// What [`DetachedSupervisor`] needs to know to start a runner.
#[derive(Clone)]
pub struct DetachedSettings {
    /// The program `ours-fleet`, an absolute path.
    pub binary: Utf8PathBuf,
    /// The whole environment of a runner: `PATH`, `HOME`, `OURS_FLEET_HOME` and the like.
    pub env: Vec<(String, String)>,
    /// Where the roles keep their state.
    pub layout: FleetLayout,
}

impl std::fmt::Debug for DetachedSettings {
    /// Names of the environment only: values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DetachedSettings")
            .field("binary", &self.binary)
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("layout", &self.layout)
            .finish()
    }
}

/// Runs each runner as a detached daemon of its own.
///
/// It starts one by `BINARY _run ROLE [-c CONFIG] --detach`, which spawns the runner, prints the
/// identity of its process as JSON and ends.
///
/// # Security
/// A process is signalled only while the runner's lock is held and only if pid, start time and boot
/// id are those of the run marker.
#[derive(Debug)]
pub struct DetachedSupervisor {
    exec: Arc<dyn Exec>,
    proof: Proof,
    settings: DetachedSettings,
}

impl DetachedSupervisor {
    /// A supervisor over these ports.
    pub fn new(
        exec: Arc<dyn Exec>,
        store: Arc<dyn StateStore>,
        processes: Arc<dyn ProcessTable>,
        clock: Arc<dyn Clock>,
        settings: DetachedSettings,
    ) -> Self {
        let proof = Proof { store, processes, clock, layout: settings.layout.clone() };
        Self { exec, proof, settings }
    }

    /// Waits for the end of a process; tells whether it came in time.
    async fn ended_within(
        &self,
        process: &ProcessIdentity,
        limit: Duration,
    ) -> Result<bool, ProcessError> {
        tokio::select! {
            biased;
            ended = self.proof.processes.wait_exit(process) => ended.map(|()| true),
            () = self.proof.clock.sleep(limit) => Ok(false),
        }
    }

    /// Asks, waits, kills, waits. `Ok(false)` if it would not even die.
    async fn end(&self, runner: &ProcessIdentity) -> Result<bool, ProcessError> {
        for (signal, limit) in [(Signal::Term, STOP_LIMIT), (Signal::Kill, KILL_LIMIT)] {
            if self.proof.processes.signal(runner, signal)? == Signalled::Gone
                || self.ended_within(runner, limit).await?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn start_command(&self, service: &Service) -> CommandSpec {
        let mut args = vec!["_run".to_owned(), service.role.as_str().to_owned()];
        if let Some(config) = &service.config {
            args.extend(["-c".to_owned(), config.as_str().to_owned()]);
        }
        args.push("--detach".to_owned());
        let mut spec = CommandSpec::new(self.settings.binary.as_str(), args);
        spec.env.clone_from(&self.settings.env);
        spec
    }

    /// Waits until the started runner has lock and marker.
    async fn wait_for_runner(
        &self,
        role: &RoleName,
        child: Option<&ProcessIdentity>,
    ) -> Result<(), String> {
        let start = self.proof.clock.monotonic();
        loop {
            // Asked before the look, so that whoever is found afterwards is another runner.
            let gone = child
                .is_some_and(|child| matches!(self.proof.processes.is_alive(child), Ok(false)));
            let seen = self.proof.look(role);
            let log = self.proof.trees(role).runner_log();
            match &seen {
                // An old marker may still stand there while the new runner has the lock already.
                Seen::Running(runner) if gone || child.is_none_or(|child| child == runner) => {
                    return Ok(());
                }
                Seen::Stopped if gone => {
                    let last = self.proof.last_words(&log);
                    let last = last.map(|line| format!(": {line}")).unwrap_or_default();
                    return Err(format!("it ended at once{last}; see {log}"));
                }
                _ => {}
            }
            if self.proof.clock.monotonic().since(start) >= START_LIMIT {
                let detail = match seen {
                    Seen::Unclear(why) => why,
                    _ => "it did not take its lock".to_owned(),
                };
                return Err(format!(
                    "it was not running after {} s: {detail}; see {log}",
                    START_LIMIT.as_secs()
                ));
            }
            self.proof.clock.sleep(POLL).await;
        }
    }
}

/// Why the starting command failed, `None` if it did not.
fn complaint(output: &ExecOutput) -> Option<String> {
    let words = output.stderr_text();
    match output.exit {
        Exit::Code(0) => None,
        _ if !words.is_empty() => Some(words),
        Exit::Code(code) => Some(format!("exit code {code} and no message")),
        Exit::Signal(signal) => Some(format!("killed by signal {signal}")),
    }
}

#[async_trait]
impl Supervisor for DetachedSupervisor {
    fn kind(&self) -> SupervisorKind {
        SupervisorKind::None
    }

    fn survives_reboot(&self) -> bool {
        false
    }

    async fn start(&self, service: &Service) -> Result<(), SupervisorError> {
        let failed = |detail| SupervisorError::Failed {
            action: "start",
            role: service.role.clone(),
            detail,
        };
        match self.proof.look_until_clear(&service.role).await {
            Seen::Running(_) => return Ok(()),
            Seen::Unclear(why) => return Err(failed(why)),
            Seen::Stopped => {}
        }
        let output = self.exec.run(&self.start_command(service)).await;
        let output = output.map_err(|error| failed(chain(&error)))?;
        if let Some(complaint) = complaint(&output) {
            // Ours may have ended at once because somebody else started one in the same moment.
            return match self.proof.look_until_clear(&service.role).await {
                Seen::Running(_) => Ok(()),
                Seen::Stopped | Seen::Unclear(_) => Err(failed(complaint)),
            };
        }
        let child: Option<ProcessIdentity> =
            serde_json::from_slice(output.stdout.trim_ascii()).ok();
        let waited = self.wait_for_runner(&service.role, child.as_ref()).await;
        if let Err(mut detail) = waited {
            if let Some(child) = &child
                && !matches!(self.end(child).await, Ok(true))
            {
                detail.push_str("; it could not be ended either");
            }
            return Err(failed(detail));
        }
        Ok(())
    }

    async fn stop(&self, service: &Service) -> Result<(), SupervisorError> {
        let failed =
            |detail| SupervisorError::Failed { action: "stop", role: service.role.clone(), detail };
        let runner = match self.proof.look_until_clear(&service.role).await {
            Seen::Stopped => return Ok(()),
            Seen::Unclear(why) => return Err(failed(format!("{why}; nothing was signalled"))),
            Seen::Running(runner) => runner,
        };
        match self.end(&runner).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(failed(format!("pid {} did not end, even when killed", runner.pid))),
            Err(error) => Err(failed(chain(&error))),
        }
    }

    async fn liveness(&self, service: &Service) -> Liveness {
        let (state, detail, pid) = match self.proof.look(&service.role) {
            Seen::Running(runner) => {
                (RunState::Running, format!("runner has pid {}", runner.pid), Some(runner.pid))
            }
            Seen::Stopped => (RunState::Stopped, "no runner holds the lock".to_owned(), None),
            Seen::Unclear(why) => (RunState::Unknown, why, None),
        };
        Liveness { state, detail, pid }
    }
}
