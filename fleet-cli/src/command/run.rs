//! `_run`: the runner of one role.

use fleet_adapters::runner::run;
use fleet_adapters::supervisor::{DetachRequest, ServiceManager, become_session_leader, detach};
use fleet_core::status::Status;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::app::App;
use crate::args;
use crate::env_vars;
use crate::error::{CliError, ErrorKind};
use crate::exit::ExitStatus;

/// Starts the runner as a daemon and prints the identity of its process.
///
/// # Errors
/// The daemon could not be started.
pub fn detached(app: &App, args: &args::Run) -> Result<ExitStatus, CliError> {
    let trees = app.runtime.trees(&args.name);
    app.runtime.ports.store.ensure_dir(&trees.control)?;
    let mut words = vec!["_run".to_owned(), args.name.to_string()];
    if let Some(path) = &app.settings.configuration {
        words.extend(["-c".to_owned(), path.to_string()]);
    }
    let world = &app.runtime.world;
    let env: Vec<(String, String)> = world.env.0.clone().into_iter().collect();
    let request =
        DetachRequest { binary: &world.binary, args: &words, env: &env, log: &trees.runner_log() };
    let identity = detach(&request)
        .map_err(|source| ErrorKind::Program { program: world.binary.to_string(), source })?;
    app.printer.json_line(&serde_json::to_value(&identity).unwrap_or_default());
    Ok(ExitStatus::Done)
}

/// Runs the role until SIGTERM or SIGINT.
///
/// # Errors
/// Another runner of the role lives, or its control directory cannot be used.
pub async fn run_here(app: &App, args: &args::Run) -> Result<ExitStatus, CliError> {
    // Refused where the shell made this process the leader of its group: then it runs in the
    // foreground, which is what was asked for.
    drop(become_session_leader());
    let failed = |source| CliError::from(ErrorKind::Runtime { source });
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let (stop, stopped) = watch::channel(false);
    let config = app.settings.configuration.clone();
    let manager = match app.runtime.world.env.0.get(env_vars::NOTIFY_SOCKET) {
        Some(address) => ServiceManager::at(address).map_err(failed)?,
        None => ServiceManager::nobody(),
    };
    let told = Box::new(move |status: &Status| {
        manager.ready();
        manager.status(status.state.as_str());
    });
    let runner = run::run(app.runtime.clone(), args.name.clone(), config, stopped, told);
    tokio::pin!(runner);
    loop {
        tokio::select! {
            ended = &mut runner => {
                ended.map_err(|source| ErrorKind::Runner { source })?;
                return Ok(ExitStatus::Done);
            }
            _ = terminate.recv() => stop.send_replace(true),
            _ = interrupt.recv() => stop.send_replace(true),
        };
    }
}
