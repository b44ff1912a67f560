//! The supervisor `systemd`: user units, one for each role, that restart a killed runner and start with
//! the machine (02 §4.1). What is in the units is `fleet_core::units::systemd`'s.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::error_chain::chain;
use fleet_core::id::RoleName;
use fleet_core::layout::FleetLayout;
use fleet_core::port::{
    Clock, CommandSpec, Exec, ExecOutput, Exit, Liveness, Prepared, ProcessTable, RunState,
    Service, Shortcoming, StateStore, Supervisor, SupervisorError, SupervisorKind,
};
use fleet_core::units::systemd::{MARKER, UnitFacts, UnitNames, UnitState, template, unit_state};

use super::proof::{Proof, Seen};

/// For a job of a manager: a runner has 15 s to end in order before it is killed.
const JOB_LIMIT: Duration = Duration::from_secs(40);
/// For a question.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Templates are not larger.
const MAX_TEMPLATE: u64 = 64 * 1024;

/// What [`SystemdSupervisor`] needs to know.
#[derive(Debug, Clone)]
pub struct SystemdSettings {
    /// What the template says of this installation.
    pub facts: UnitFacts,
    /// The names of the fleet's units.
    pub names: UnitNames,
    /// The user's directory of units, `~/.config/systemd/user`.
    pub units: Utf8PathBuf,
    /// `XDG_RUNTIME_DIR`, in which the user manager listens.
    pub runtime_dir: Utf8PathBuf,
    /// `PATH` to find `systemctl` and `loginctl` by.
    pub path: String,
    /// Name of the account.
    pub user: String,
    /// Where the roles keep their state.
    pub layout: FleetLayout,
}

/// What the file of the template is.
enum Template {
    Missing,
    Right,
    /// Fleet's, with another text.
    Old,
    /// Somebody else's.
    Foreign,
}

/// Runs each runner as an instance of a template unit of the user manager.
///
/// It never starts a manager: one that is not there is an error.
#[derive(Debug)]
pub struct SystemdSupervisor {
    exec: Arc<dyn Exec>,
    proof: Proof,
    settings: SystemdSettings,
}

/// Whether a user manager listens in this runtime directory.
///
/// # Errors
/// Why it is held not to, and what to do.
///
/// # Security
/// In a directory of somebody else, or one that others may write, nobody is asked.
pub fn user_manager(runtime_dir: &Utf8Path) -> Result<(), String> {
    let socket = runtime_dir.join("systemd/private");
    let own = rustix::process::geteuid().as_raw();
    let about = runtime_dir.symlink_metadata();
    if about.is_ok_and(|about| about.uid() != own || about.mode() & 0o022 != 0) {
        return Err(format!("{runtime_dir} is not a directory of this user alone"));
    }
    UnixStream::connect(&socket).map(drop).map_err(|error| {
        format!(
            "no systemd user manager listens at {socket} ({error}): log in through a session, or let one \
             run without: `loginctl enable-linger`"
        )
    })
}

impl SystemdSupervisor {
    /// A supervisor over these ports.
    pub fn new(
        exec: Arc<dyn Exec>,
        store: Arc<dyn StateStore>,
        processes: Arc<dyn ProcessTable>,
        clock: Arc<dyn Clock>,
        settings: SystemdSettings,
    ) -> Self {
        let proof = Proof { store, processes, clock, layout: settings.layout.clone() };
        Self { exec, proof, settings }
    }

    async fn run(
        &self,
        program: &str,
        args: &[&str],
        limit: Duration,
    ) -> Result<ExecOutput, String> {
        let mut spec = CommandSpec::new(program, args.iter().copied());
        spec.env = vec![
            ("PATH".to_owned(), self.settings.path.clone()),
            ("XDG_RUNTIME_DIR".to_owned(), self.settings.runtime_dir.to_string()),
            ("LC_ALL".to_owned(), "C".to_owned()),
        ];
        spec.timeout = limit;
        self.exec.run(&spec).await.map_err(|error| chain(&error))
    }

    /// Runs `systemctl --user` with these words.
    ///
    /// # Errors
    /// It did not end with 0: its own words, with what is known to help.
    async fn systemctl(&self, args: &[&str], limit: Duration) -> Result<String, String> {
        let words = [&["--user", "--no-ask-password"], args].concat();
        let output = self.run("systemctl", &words, limit).await?;
        match output.exit {
            Exit::Code(0) => Ok(output.stdout_text()),
            exit => Err(self.complaint(exit, &output.stderr_text())),
        }
    }

    fn complaint(&self, exit: Exit, words: &str) -> String {
        let words = match (words, exit) {
            ("", Exit::Code(code)) => format!("systemctl ended with {code} and no message"),
            ("", Exit::Signal(signal)) => format!("systemctl was killed by signal {signal}"),
            (words, _) => words.to_owned(),
        };
        if words.contains("user scope bus") || words.contains("XDG_RUNTIME_DIR") {
            return format!("{words} (try `loginctl enable-linger {}`)", self.settings.user);
        }
        words
    }

    fn unit(&self, role: &RoleName) -> String {
        self.settings.names.unit(role)
    }

    /// Whether a role starts with the machine: what `enable` makes is a link.
    fn is_enabled(&self, unit: &str) -> bool {
        let link = self.settings.units.join("default.target.wants").join(unit);
        link.symlink_metadata().is_ok()
    }

    async fn unit_state(&self, unit: &str) -> UnitState {
        let words = ["show", unit, "-p", "ActiveState", "-p", "SubState", "-p", "MainPID"];
        match self.systemctl(&words, ANSWER_LIMIT).await {
            Ok(shown) => unit_state(&shown),
            Err(detail) => UnitState { state: RunState::Unknown, detail, pid: None },
        }
    }

    async fn disable(&self, unit: &str) -> Result<(), String> {
        self.systemctl(&["disable", "--now", unit], JOB_LIMIT).await.map(drop)
    }

    fn template_path(&self) -> Utf8PathBuf {
        self.settings.units.join(self.settings.names.template())
    }

    fn template(&self) -> Result<Template, String> {
        let found = self.proof.store.read(&self.template_path(), MAX_TEMPLATE);
        Ok(match found.map_err(|error| chain(&error))? {
            None => Template::Missing,
            Some(found) if found == template(&self.settings.facts).as_bytes() => Template::Right,
            Some(found) if found.starts_with(MARKER.as_bytes()) => Template::Old,
            Some(_) => Template::Foreign,
        })
    }

    /// Writes the template if it is missing or another one; tells whether it did.
    async fn write_template(&self) -> Result<bool, String> {
        let (path, units) = (self.template_path(), &self.settings.units);
        match self.template()? {
            Template::Right => return Ok(false),
            Template::Foreign => {
                return Err(format!("{path} was not written by fleet: move it away"));
            }
            Template::Missing | Template::Old => {}
        }
        std::fs::create_dir_all(units).map_err(|error| format!("{units}: {error}"))?;
        let text = template(&self.settings.facts);
        self.proof.store.write(&path, text.as_bytes(), 0o644).map_err(|error| chain(&error))?;
        self.systemctl(&["daemon-reload"], JOB_LIMIT).await?;
        Ok(true)
    }

    fn lingers(&self) -> bool {
        Utf8Path::new("/var/lib/systemd/linger").join(&self.settings.user).exists()
    }

    /// Whether the account's manager runs without a login, else asks for it.
    async fn linger(&self) -> Result<bool, String> {
        if self.lingers() {
            return Ok(false);
        }
        let user = &self.settings.user;
        let output = self.run("loginctl", &["enable-linger", user], ANSWER_LIMIT).await?;
        if output.success() { Ok(true) } else { Err(output.stderr_text()) }
    }
}

#[async_trait]
impl Supervisor for SystemdSupervisor {
    fn kind(&self) -> SupervisorKind {
        SupervisorKind::Systemd
    }

    fn survives_reboot(&self) -> bool {
        true
    }

    async fn prepare(&self, boot: bool) -> Result<Prepared, SupervisorError> {
        let unavailable =
            |reason| SupervisorError::Unavailable { kind: SupervisorKind::Systemd, reason };
        user_manager(&self.settings.runtime_dir).map_err(unavailable)?;
        let mut prepared = Prepared::default();
        if self.write_template().await.map_err(unavailable)? {
            prepared.done.push(format!("wrote {}", self.template_path()));
        }
        if boot {
            let user = &self.settings.user;
            match self.linger().await {
                Ok(false) => {}
                Ok(true) => prepared.done.push(format!("roles start with the machine (linger of {user})")),
                Err(why) => prepared.warnings.push(format!(
                    "roles start when {user} logs in, not with the machine ({why}): run `sudo loginctl \
                     enable-linger {user}`"
                )),
            }
        }
        Ok(prepared)
    }

    async fn inspect(&self) -> Vec<Shortcoming> {
        let path = self.template_path();
        let init = || "run `ours-fleet init`".to_owned();
        let template = match self.template() {
            Ok(Template::Right) => None,
            Ok(Template::Missing) => Some((format!("{path} does not exist"), init())),
            Ok(Template::Old) => {
                Some((format!("{path} is of another installation of ours-fleet"), init()))
            }
            Ok(Template::Foreign) => {
                Some((format!("{path} was not written by fleet"), "move it away".to_owned()))
            }
            Err(why) => Some((why, init())),
        };
        let user = &self.settings.user;
        let linger = (!self.lingers()).then(|| {
            let what = format!("roles start when {user} logs in, not with the machine");
            (what, format!("run `sudo loginctl enable-linger {user}`"))
        });
        let both = template.into_iter().chain(linger);
        both.map(|(what, fix)| Shortcoming { what, fix }).collect()
    }

    async fn start(&self, service: &Service) -> Result<(), SupervisorError> {
        let role = &service.role;
        let failed =
            |detail| SupervisorError::Failed { action: "start", role: role.clone(), detail };
        let unit = self.unit(role);
        let enabled = self.is_enabled(&unit);
        if enabled && matches!(self.proof.look_until_clear(role).await, Seen::Running(_)) {
            return Ok(());
        }
        let started = match self.systemctl(&["enable", "--now", &unit], JOB_LIMIT).await {
            Ok(_) => match self.proof.look_until_clear(role).await {
                Seen::Running(_) => Ok(()),
                Seen::Unclear(why) => Err(why),
                // It exits with 0 also when only the start failed.
                Seen::Stopped => Err(self.unit_state(&unit).await.detail),
            },
            Err(why) => Err(why),
        };
        let Err(why) = started else { return Ok(()) };
        let last = self.proof.last_words(&self.proof.trees(role).runner_log());
        let last = last.map(|line| format!(": {line}")).unwrap_or_default();
        let undone = if enabled { Ok(()) } else { self.disable(&unit).await };
        let also = undone.err().map(|why| format!("; nor could it be disabled: {why}"));
        Err(failed(format!(
            "{why}{last}; see `systemctl --user status {unit}` and `journalctl --user -u {unit}`{}",
            also.unwrap_or_default()
        )))
    }

    async fn stop(&self, service: &Service) -> Result<(), SupervisorError> {
        let role = &service.role;
        let failed =
            |detail| SupervisorError::Failed { action: "stop", role: role.clone(), detail };
        let unit = self.unit(role);
        if !self.is_enabled(&unit)
            && matches!(self.liveness(service).await.state, RunState::Stopped)
        {
            return Ok(());
        }
        self.disable(&unit).await.map_err(failed)?;
        match self.proof.look_until_clear(role).await {
            Seen::Stopped => Ok(()),
            Seen::Running(runner) => Err(failed(format!(
                "{unit} is stopped, but pid {} still runs the role: it was not started by systemd",
                runner.pid
            ))),
            Seen::Unclear(why) => Err(failed(why)),
        }
    }

    async fn liveness(&self, service: &Service) -> Liveness {
        match self.proof.look(&service.role) {
            Seen::Running(runner) => Liveness {
                state: RunState::Running,
                detail: format!("runner has pid {}", runner.pid),
                pid: Some(runner.pid),
            },
            Seen::Unclear(detail) => Liveness { state: RunState::Unknown, detail, pid: None },
            // Between a runner that was killed and the next one nobody holds the lock.
            Seen::Stopped => {
                let UnitState { state, detail, .. } =
                    self.unit_state(&self.unit(&service.role)).await;
                let state = if state == RunState::Running { RunState::Unknown } else { state };
                Liveness { state, detail, pid: None }
            }
        }
    }
}
