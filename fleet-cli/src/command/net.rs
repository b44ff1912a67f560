//! `net`: the connections of a role's sandbox.

use fleet_core::launch::{ConnectionDecision, ConnectionRecord};
use serde_json::json;

use super::target::Reachable;
use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::{Table, document};

/// The record is set aside before it is larger; a little more is read.
const MAX_RECORD: u64 = 2 * 1024 * 1024;
/// Further back no beginning is looked for: so many lines lie between it and its end at most.
const MOST_OPEN: usize = 4096;
/// Lines shown.
const LINES: usize = 200;

/// Prints the latest connections, oldest first.
///
/// # Errors
/// The role does not exist, the fleet does not load, or the record cannot be read.
pub fn run(app: &App, args: &args::Net) -> Result<ExitStatus, CliError> {
    Reachable::read(app).check(app, &args.name)?;
    let path = app.runtime.trees(&args.name).connections();
    let content = app.runtime.ports.store.read(&path, MAX_RECORD)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&content);
    // A line that was cut off by the end of its writer says nothing.
    let mut records: Vec<ConnectionRecord> = Vec::new();
    for line in text.lines() {
        let Ok(record) = serde_json::from_str::<ConnectionRecord>(line) else { continue };
        let same = |it: &&mut ConnectionRecord| {
            it.connection == record.connection && it.launch_id == record.launch_id
        };
        // The end of a connection takes the place of its beginning.
        match records.iter_mut().rev().take(MOST_OPEN).find(same) {
            Some(begun) => *begun = record,
            None => records.push(record),
        }
    }
    let last = &records[records.len().saturating_sub(LINES)..];
    if args.json {
        app.printer.json(&document(json!({ "role": args.name, "connections": last })));
        return Ok(ExitStatus::Done);
    }
    if last.is_empty() {
        app.printer.note(format!(
            "`{}` has no recorded connection: they are recorded under `network: broker` and \
             `allowlist`",
            args.name
        ));
        return Ok(ExitStatus::Done);
    }
    let mut table = Table::new(["WHEN", "TARGET", "DECISION", "SENT", "RECEIVED", "NOTE"]);
    for record in last {
        table.row(row(record));
    }
    table.print(&app.printer, "");
    Ok(ExitStatus::Done)
}

fn row(record: &ConnectionRecord) -> [String; 6] {
    let target = record.target.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
    let decision = match record.decision {
        ConnectionDecision::Allowed if record.open => "open",
        ConnectionDecision::Allowed => "allowed",
        ConnectionDecision::Refused => "refused",
        ConnectionDecision::Failed => "failed",
    };
    [
        record.at.to_string(),
        target,
        decision.to_owned(),
        record.sent.to_string(),
        record.received.to_string(),
        record.reason.clone(),
    ]
}
