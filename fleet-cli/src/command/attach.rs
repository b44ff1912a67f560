//! `attach`: this terminal becomes the role's console.

use std::io::IsTerminal;

use fleet_core::status::RoleState;

use super::target::{not_running, view};
use crate::app::App;
use crate::args;
use crate::error::{CliError, ErrorKind};
use crate::exit::ExitStatus;

/// Runs `tmux attach` on the role's own server and waits for it.
///
/// # Errors
/// The role does not exist or has no console, or this is no terminal.
pub async fn run(app: &App, args: &args::Attach) -> Result<ExitStatus, CliError> {
    let view = view(app, &args.name).await?;
    let console = matches!(view.observed.state, RoleState::Running | RoleState::Starting)
        || view.observed.orphaned_console;
    if !console {
        return Err(not_running(&view));
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::from(ErrorKind::Unavailable {
            message: "attach needs a terminal".to_owned(),
        })
        .hint(format!("`ours-fleet peek {}` prints the console", args.name)));
    }
    app.printer.note(format!("{}: leave with Ctrl-b d, the role goes on", args.name));
    let words = app.runtime.console(&args.name).attach_argv();
    let (program, rest) = words.split_first().ok_or_else(|| ErrorKind::Unavailable {
        message: "the console cannot be attached".to_owned(),
    })?;
    #[expect(clippy::disallowed_methods, reason = "Exec gives no terminal to a program")]
    let outcome = std::process::Command::new(program)
        .args(rest)
        // Inside another tmux the client would refuse to nest; the servers are not the same.
        .env_remove(crate::env_vars::TMUX)
        .status()
        .map_err(|source| ErrorKind::Program { program: program.clone(), source })?;
    Ok(if outcome.success() { ExitStatus::Done } else { ExitStatus::Failed })
}
