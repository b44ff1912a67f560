use camino::Utf8PathBuf;
use clap::Args;
use fleet_core::harness::hooks::HookEvent;
use fleet_core::id::RoleName;

/// The runner of one role.
#[derive(Debug, Args)]
pub struct Run {
    /// The role
    #[arg(value_name = "NAME")]
    pub name: RoleName,
    /// Leave the caller's session and terminal first
    #[arg(long)]
    pub detach: bool,
}

/// The launcher in a role's console.
#[derive(Debug, Args)]
pub struct Pane {
    /// The launch file
    #[arg(value_name = "FILE")]
    pub file: Utf8PathBuf,
}

/// Listens inside a sandbox's network, for the launcher.
#[derive(Debug, Args)]
pub struct Listen {
    /// Pid of a process in the sandbox, then the addresses
    #[arg(value_name = "PID ADDRESS…", num_args = 1..)]
    pub words: Vec<String>,
}

/// Role names, for completion.
#[derive(Debug, Args)]
pub struct Roles {}

/// What an agent program runs at its events.
#[derive(Debug, Args)]
pub struct Hook {
    /// What happened
    #[arg(value_name = "EVENT")]
    pub event: HookEvent,
    /// The socket of the runner
    #[arg(value_name = "SOCKET")]
    pub socket: Utf8PathBuf,
}
