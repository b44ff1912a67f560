//! `logs`: the log of a role's runner.

use std::time::Duration;

use serde_json::{Value, json};

use super::target::Reachable;
use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::document;

/// Lines shown without being asked for more.
const LINES: usize = 200;
/// The log is rotated before it is larger (02 §2.2); a little more is read.
const MAX_LOG: u64 = 16 * 1024 * 1024;
/// Between two looks at a log that is followed.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Prints the end of the log and, on request, what follows.
///
/// # Errors
/// The role does not exist, the fleet does not load, or its log cannot be read.
pub async fn run(app: &App, args: &args::Logs) -> Result<ExitStatus, CliError> {
    Reachable::read(app).check(app, &args.name)?;
    let path = app.runtime.trees(&args.name).runner_log();
    let read = || app.runtime.ports.store.read(&path, MAX_LOG);
    let content = read()?;
    if content.is_none() {
        app.printer.note(format!("`{}` has no log yet: it was never started", args.name));
    }
    let content = content.unwrap_or_default();
    let text = String::from_utf8_lossy(&content).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    if args.json && !args.follow {
        app.printer.json(&document(json!({ "role": args.name, "path": path, "lines": last })));
        return Ok(ExitStatus::Done);
    }
    print(app, args, last);
    let mut seen = content.len();
    if !args.follow {
        return Ok(ExitStatus::Done);
    }
    loop {
        app.printer.flush();
        if app.printer.is_closed() {
            return Ok(ExitStatus::Done);
        }
        app.runtime.ports.clock.sleep(LOOK_AGAIN).await;
        let content = read()?.unwrap_or_default();
        // Shorter than before: a new file was begun.
        let from = if content.len() < seen { 0 } else { seen };
        // A half-written line waits for its end.
        let end = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if end > from {
            let text = String::from_utf8_lossy(&content[from..end]).into_owned();
            print(app, args, &text.lines().collect::<Vec<_>>());
            seen = end;
        } else if from == 0 {
            seen = 0;
        }
    }
}

fn print(app: &App, args: &args::Logs, lines: &[&str]) {
    for line in lines {
        if args.json {
            let fields: Value = json!({ "role": args.name, "line": line });
            app.printer.json_line(&document(fields));
        } else {
            app.printer.line(line);
        }
    }
}
