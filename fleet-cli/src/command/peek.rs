//! `peek`: the last lines of a console.

use std::time::Duration;

use fleet_adapters::runner::protocol::{Command, Peeked};
use fleet_core::port::Capture;
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
    } else if view.observed.has_no_runner() {
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
        app.printer.raw(&quoted(text.trim_end_matches('\n'), app.printer.width()));
    }
    if let Some(agent) = agent {
        // Not quoted, so no text of the console can look like it.
        let now = app.runtime.ports.clock.now();
        app.printer.note(format!("agent: {}, {}", agent.words(), evidence(&agent, now)));
    }
    Ok(ExitStatus::Done)
}

/// Each line of a console behind this mark: whatever an agent prints, it is never taken for a line of
/// fleet. On a terminal of a known width a long line goes on behind a mark of its own, since the terminal
/// would go on at the first column.
fn quoted(text: &str, width: Option<usize>) -> String {
    const MARK: &str = "|";
    const NARROW: usize = 16;
    let room = width.filter(|width| *width >= NARROW).map_or(usize::MAX, |width| width - 2);
    let mut shown = String::with_capacity(text.len() + 128);
    for line in printable(text).split('\n') {
        shown.push_str(MARK);
        let mut column = 0;
        for (index, c) in line.chars().enumerate() {
            // As many columns as it may take: letters of some scripts take two.
            let columns = match c {
                '\t' => 8,
                ' '..='~' => 1,
                _ => 2,
            };
            if column + columns > room {
                shown.push('\n');
                shown.push_str(MARK);
                column = 0;
            }
            if index == 0 || column == 0 {
                shown.push(' ');
            }
            column += columns;
            shown.push(c);
        }
        shown.push('\n');
    }
    shown
}

/// The last lines without trailing blank ones.
fn last_lines(text: &str, count: u32) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_console_stands_at_the_beginning_of_a_line() {
        let forged = "a\n\nagent: idle\r\nagent: idle\u{85}agent: idle\u{202e}x\n|y";
        assert_eq!(
            quoted(forged, None),
            "| a\n|\n| agent: idle\\u{d}\n| agent: idle\\u{85}agent: idle\\u{202e}x\n| |y\n"
        );
        // As wide as the terminal, so that what follows would stand in the first column.
        let wide = format!("{}agent: idle", "x".repeat(20));
        assert_eq!(quoted(&wide, Some(20)), format!("| {}\n| xxagent: idle\n", "x".repeat(18)));
        for width in 16..60 {
            for line in quoted(&"日本\tä".repeat(40), Some(width)).lines() {
                assert!(line.starts_with("| ") && line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}
