//! What can go wrong in a command, with what to do about it.

use std::error::Error;

use camino::Utf8PathBuf;
use fleet_adapters::runner::run::RunError;
use fleet_core::diagnostic::{Diagnostic, Severity};
use fleet_core::id::RoleName;
use fleet_core::port::{PathProbeError, StoreError, SupervisorError, TmuxError};
use serde_json::{Value, json};

use crate::exit::ExitStatus;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    /// The command line asks for something that does not exist or makes no sense.
    #[error("{message}")]
    Usage {
        /// What is wrong with it.
        message: String,
    },
    /// A variable of the environment has a value that fleet cannot use.
    #[error("{variable}: {message}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// What is wrong; holds no secret.
        message: String,
    },
    /// A role that is not configured.
    #[error("no role `{name}` in {}", list(consulted))]
    UnknownRole {
        /// The name asked for.
        name: RoleName,
        /// Files that were read, or looked for.
        consulted: Vec<Utf8PathBuf>,
    },
    /// The fleet files hold errors.
    #[error("the configuration has {} (nothing was touched)", count(diagnostics, "error"))]
    Config {
        /// Every problem, errors and warnings.
        diagnostics: Vec<Diagnostic>,
    },
    /// A fleet file cannot be read.
    #[error("failed to read the configuration")]
    ConfigFile {
        /// Why.
        #[source]
        source: fleet_adapters::runner::ConfigFileError,
    },
    /// A state file cannot be read or written.
    #[error("failed to use the state directory")]
    State {
        /// Why.
        #[source]
        source: StoreError,
    },
    /// A path cannot be looked at.
    #[error("failed to look at a path")]
    Probe {
        /// Why.
        #[source]
        source: PathProbeError,
    },
    /// The supervisor did not do what was asked.
    #[error("the supervisor failed")]
    Supervisor {
        /// Why.
        #[source]
        source: SupervisorError,
    },
    /// An older version of the fleet files cannot be had.
    #[error("{message}")]
    Revision {
        /// Why.
        message: String,
    },
    /// Something that this build does not have.
    #[error("{message}")]
    Unavailable {
        /// What.
        message: String,
    },
    /// The role does not run.
    #[error("role `{role}` is not running ({state})")]
    NotRunning {
        /// The role.
        role: RoleName,
        /// What it is instead, with the reason where there is one.
        state: String,
    },
    /// The control plane of a role failed; says nothing about the agent.
    #[error("role `{role}`: {message}")]
    Control {
        /// The role.
        role: RoleName,
        /// The kind of failure, a stable word.
        kind: &'static str,
        /// What was seen.
        message: String,
        /// How the command ends.
        status: ExitStatus,
    },
    /// The console of a role failed.
    #[error("the console of `{role}` failed")]
    Console {
        /// The role.
        role: RoleName,
        /// Why.
        #[source]
        source: TmuxError,
    },
    /// A program could not be started.
    #[error("failed to run `{program}`")]
    Program {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The runner of a role failed.
    #[error("the runner failed")]
    Runner {
        /// Why.
        #[source]
        source: RunError,
    },
    /// The runtime of this process could not be built.
    #[error("failed to start")]
    Runtime {
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

fn list(paths: &[Utf8PathBuf]) -> String {
    paths.iter().map(|path| path.as_str()).collect::<Vec<_>>().join(", ")
}

fn count(diagnostics: &[Diagnostic], what: &str) -> String {
    match diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count() {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

impl ErrorKind {
    /// The kind as a word, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Usage { .. } => "usage",
            Self::Environment { .. } => "environment",
            Self::UnknownRole { .. } => "unknown-role",
            Self::Config { .. } => "config",
            Self::ConfigFile { .. } => "config-file",
            Self::State { .. } => "state",
            Self::Probe { .. } => "path",
            Self::Supervisor { .. } => "supervisor",
            Self::Revision { .. } => "revision",
            Self::Unavailable { .. } => "unavailable",
            Self::NotRunning { .. } => "not-running",
            Self::Control { kind, .. } => kind,
            Self::Console { .. } => "console",
            Self::Program { .. } => "program",
            Self::Runner { .. } => "runner",
            Self::Runtime { .. } => "runtime",
        }
    }
}

/// An error of a command.
#[derive(Debug)]
pub struct CliError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// What to do about it, one step each.
    pub hints: Vec<String>,
}

impl CliError {
    /// A mistake on the command line that the parser cannot see.
    pub fn usage(message: impl Into<String>) -> Self {
        ErrorKind::Usage { message: message.into() }.into()
    }

    /// With something to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// How the command ends.
    pub fn status(&self) -> ExitStatus {
        match self.kind {
            ErrorKind::Usage { .. } | ErrorKind::Environment { .. } => ExitStatus::Usage,
            ErrorKind::Control { status, .. } => status,
            _ => ExitStatus::Failed,
        }
    }

    /// The problems of the fleet files, if they are the error.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match &self.kind {
            ErrorKind::Config { diagnostics } => diagnostics,
            _ => &[],
        }
    }

    /// The error and its causes on one line.
    pub fn message(&self) -> String {
        let mut message = self.kind.to_string();
        let mut cause = self.kind.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        message
    }

    /// The error as a JSON document.
    pub fn json(&self) -> Value {
        crate::ui::document(json!({
            "error": {
                "kind": self.kind.word(),
                "message": self.message(),
                "hints": self.hints,
            },
            "diagnostics": self.diagnostics(),
        }))
    }
}

impl From<ErrorKind> for CliError {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, hints: Vec::new() }
    }
}

impl From<StoreError> for CliError {
    fn from(source: StoreError) -> Self {
        ErrorKind::State { source }.into()
    }
}

impl From<SupervisorError> for CliError {
    fn from(source: SupervisorError) -> Self {
        ErrorKind::Supervisor { source }.into()
    }
}
