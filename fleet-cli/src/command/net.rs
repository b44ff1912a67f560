//! `net`: the connections of a role's sandbox.

use camino::Utf8Path;
use fleet_core::launch::{
    ConnectionDecision, ConnectionFiles, ConnectionRecord, ConnectionTotals, Counts,
};
use serde_json::json;

use super::target::Reachable;
use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::{Table, document};

/// A record is set aside before it is larger; a little more is read.
const MAX_RECORD: u64 = 2 * 1024 * 1024;
/// Further back no beginning is looked for: so many lines lie between it and its end at most.
const MOST_OPEN: usize = 4096;
/// Records shown of each kind, so that no number of refusals hides what was reached.
const LINES: usize = 200;

/// Prints the latest connections, oldest first, and what all of them came to.
///
/// # Errors
/// The role does not exist, the fleet does not load, or the record cannot be read.
pub fn run(app: &App, args: &args::Net) -> Result<ExitStatus, CliError> {
    Reachable::read(app).check(app, &args.name)?;
    let files = ConnectionFiles::beside(&app.runtime.trees(&args.name).connections());
    let served = records(app, &files.connections)?;
    let refusals = records(app, &files.refusals)?;
    let totals = app.runtime.ports.store.read(&files.totals, ConnectionTotals::MAX_BYTES)?;
    let totals: Option<ConnectionTotals> =
        totals.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let hidden = served.len().saturating_sub(LINES) + refusals.len().saturating_sub(LINES);
    let mut shown: Vec<&ConnectionRecord> = latest(&served).iter().collect();
    shown.extend(latest(&refusals));
    shown.sort_by_key(|record| record.at);
    if args.json {
        app.printer.json(&document(json!({
            "role": args.name,
            "connections": shown,
            "notShown": hidden,
            "totals": totals,
        })));
        return Ok(ExitStatus::Done);
    }
    if shown.is_empty() && totals.is_none() {
        app.printer.note(format!(
            "`{}` has no recorded connection: they are recorded under `network: broker` and \
             `allowlist`",
            args.name
        ));
        return Ok(ExitStatus::Done);
    }
    if !shown.is_empty() {
        let mut table = Table::new(["WHEN", "TARGET", "DECISION", "SENT", "RECEIVED", "NOTE"]);
        for record in shown {
            table.row(row(record));
        }
        table.print(&app.printer, "");
    }
    if hidden > 0 {
        app.printer.line(format!("{hidden} older records are not shown"));
    }
    if let Some(totals) = totals {
        print_totals(app, &totals);
    }
    Ok(ExitStatus::Done)
}

/// What is recorded in a file and its older part, oldest first.
fn records(app: &App, path: &Utf8Path) -> Result<Vec<ConnectionRecord>, CliError> {
    let mut records: Vec<ConnectionRecord> = Vec::new();
    for path in [ConnectionFiles::older(path), path.to_owned()] {
        let content = app.runtime.ports.store.read(&path, MAX_RECORD)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&content);
        // A line that was cut off by the end of its writer says nothing.
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
    }
    Ok(records)
}

fn latest(records: &[ConnectionRecord]) -> &[ConnectionRecord] {
    &records[records.len().saturating_sub(LINES)..]
}

fn row(record: &ConnectionRecord) -> [String; 6] {
    let target = record.target.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
    let decision = match record.decision {
        ConnectionDecision::Allowed if record.open => "open",
        ConnectionDecision::Allowed => "allowed",
        ConnectionDecision::Refused => "refused",
        ConnectionDecision::Failed => "failed",
    };
    let note = match record.since {
        Some(since) => format!("{} more since {since}: {}", record.count, record.reason),
        None => record.reason.clone(),
    };
    [
        record.at.to_string(),
        target,
        decision.to_owned(),
        record.sent.to_string(),
        record.received.to_string(),
        note,
    ]
}

fn print_totals(app: &App, totals: &ConnectionTotals) {
    let out = &app.printer;
    out.line(format!("in all since {}, by rule:", totals.since));
    let mut table = Table::new(["RULE", "SERVED", "FAILED", "SENT", "RECEIVED", "LAST"]);
    let mut row = |rule: String, counts: &Counts| {
        table.row([
            rule,
            counts.served.to_string(),
            counts.failed.to_string(),
            counts.sent.to_string(),
            counts.received.to_string(),
            counts.last.map(|at| at.to_string()).unwrap_or_default(),
        ]);
    };
    for it in &totals.rules {
        row(it.rule.to_string(), &it.counts);
    }
    if totals.former != Counts::default() {
        row("(former rules)".to_owned(), &totals.former);
    }
    table.print(out, "  ");
    if totals.refused > 0 {
        out.line(format!("  refused: {}", totals.refused));
    }
    if totals.merged > 0 {
        out.line(format!("  without a record of their own, counted in others: {}", totals.merged));
    }
    let dropped = totals.dropped;
    if dropped.connections + dropped.refusals > 0 {
        out.line(format!(
            "  dropped to make room: {} records of connections, {} of refusals",
            dropped.connections, dropped.refusals
        ));
    }
}
