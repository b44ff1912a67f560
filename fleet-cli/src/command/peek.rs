//! `peek`: the last lines of a console.

use std::time::Duration;

use fleet_adapters::runner::protocol::{Command, Peeked};
use fleet_core::port::Capture;
use fleet_core::status::RoleState;
use serde_json::json;

use super::control::call;
use super::status::evidence;
use super::target::{not_running, view};
use crate::app::App;
use crate::args;
use crate::error::{CliError, ErrorKind};
use crate::exit::ExitStatus;
use crate::ui::{document, printable};

const LIMIT: Duration = Duration::from_secs(5);

/// Prints the end of a console: through the runner; if only the console lives, from it.
///
/// # Errors
/// The role does not exist or does not run, or its runner does not answer.
pub async fn run(app: &App, args: &args::Peek) -> Result<ExitStatus, CliError> {
    let view = view(app, &args.name).await?;
    let mut agent = None;
    let text = if view.observed.orphaned_console {
        app.printer.warn(format!("the runner of `{}` is gone, its console runs", args.name));
        let what = Capture { history: args.lines, joined: false };
        let text = app
            .runtime
            .console(&args.name)
            .capture(what)
            .await
            .map_err(|source| ErrorKind::Console { role: args.name.clone(), source })?;
        last_lines(&text, args.lines)
    } else if view.observed.state == RoleState::Stopped {
        return Err(not_running(&view));
    } else {
        let command = Command::Peek { lines: args.lines };
        let peeked = call::<Peeked>(app, &view, command, LIMIT).await?;
        agent = peeked.agent;
        peeked.text
    };
    if args.json {
        let lines: Vec<&str> = text.lines().collect();
        app.printer.json(&document(json!({ "role": args.name, "lines": lines, "agent": agent })));
        return Ok(ExitStatus::Done);
    }
    if !text.is_empty() {
        app.printer.raw(&format!("{}\n", printable(text.trim_end_matches('\n'))));
    }
    if let Some(agent) = agent {
        // Beside the text of the console, which stays what it is.
        let now = app.runtime.ports.clock.now();
        app.printer.note(format!("agent: {}, {}", agent.words(), evidence(&agent, now)));
    }
    Ok(ExitStatus::Done)
}

/// The last lines without trailing blank ones.
fn last_lines(text: &str, count: u32) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    lines[lines.len().saturating_sub(count)..].join("\n")
}
