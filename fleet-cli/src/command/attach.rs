//! `attach`: this terminal becomes the role's console.

use std::io::IsTerminal;

use fleet_core::port::FileKind;
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
    let (name, rest) = words.split_first().ok_or_else(|| ErrorKind::Unavailable {
        message: "the console cannot be attached".to_owned(),
    })?;
    let program = trusted(app, name)?;
    #[expect(clippy::disallowed_methods, reason = "Exec gives no terminal to a program")]
    let outcome = std::process::Command::new(&program)
        .args(rest)
        // Inside another tmux the client would refuse to nest; the servers are not the same.
        .env_remove(crate::env_vars::TMUX)
        .status()
        .map_err(|source| ErrorKind::Program { program, source })?;
    Ok(if outcome.success() { ExitStatus::Done } else { ExitStatus::Failed })
}

/// A program that no agent of the fleet can have put there.
fn trusted(app: &App, name: &str) -> Result<String, CliError> {
    let probe = app.probe();
    let directories = app.runtime.world.dirs_for(name, &*probe);
    let found = directories.iter().filter_map(|directory| directory.child(name).ok()).find(|it| {
        let object = probe.resolve(it).ok().and_then(|found| found.object);
        object.is_some_and(|object| object.kind == FileKind::File && object.mode & 0o111 != 0)
    });
    found.map(|path| path.as_str().to_owned()).ok_or_else(|| {
        let message = format!("{name} was not found on PATH, without what agents may write");
        ErrorKind::Unavailable { message }.into()
    })
}
