use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;

/// A program to run, not through a shell.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program: a path, or a name looked up in the `PATH` of `env`.
    pub program: String,
    /// Its arguments, passed unchanged.
    pub args: Vec<String>,
    /// The whole environment of the child; nothing is inherited.
    pub env: Vec<(String, String)>,
    /// Working directory; `/` when absent.
    pub cwd: Option<Utf8PathBuf>,
    /// Bytes for standard input, which is closed after them; `/dev/null` when absent.
    pub stdin: Option<Vec<u8>>,
    /// After this long the whole process group is killed.
    pub timeout: Duration,
}

impl CommandSpec {
    /// A command with an empty environment, no input and a limit of ten seconds.
    pub fn new<I, S>(program: impl Into<String>, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
            stdin: None,
            timeout: Duration::from_secs(10),
        }
    }
}

impl Debug for CommandSpec {
    /// Names of the environment only: values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandSpec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("stdin_bytes", &self.stdin.as_ref().map(Vec::len))
            .field("timeout", &self.timeout)
            .finish()
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It returned this code. A program that does not exist counts as 127, one that may not be
    /// executed as 126.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

/// What a program left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// How it ended.
    pub exit: Exit,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl ExecOutput {
    /// Whether the program returned 0.
    pub fn success(&self) -> bool {
        self.exit == Exit::Code(0)
    }

    /// Standard output as text, with invalid UTF-8 replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as trimmed text, with invalid UTF-8 replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
}

/// Why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The limit passed; the process group was killed.
    #[error("`{program}` did not end within {} ms and was killed", timeout.as_millis())]
    Timeout {
        /// The program.
        program: String,
        /// The limit.
        timeout: Duration,
    },
    /// More output than 10 MiB; the process group was killed.
    #[error("`{program}` wrote more than {limit} bytes and was killed")]
    OutputLimit {
        /// The program.
        program: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The system refused to start it or to talk to it.
    #[error("failed to run `{program}`")]
    Io {
        /// The program.
        program: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}

/// Runs programs to their end.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait Exec: Send + Sync + Debug {
    /// Runs the program in a process group of its own and returns what it left.
    ///
    /// A non-zero exit is no error, a missing program is [`Exit::Code`]`(127)`. Standard output and
    /// error are read at the same time and together hold at most 10 MiB. A background child that
    /// keeps the pipes open after the program's own end does not delay the answer beyond the timeout.
    ///
    /// # Cancel safety
    /// Dropping the future kills the process group.
    async fn run(&self, spec: &CommandSpec) -> Result<ExecOutput, ExecError>;
}
