//! `status`: the fleet at a glance, or everything about one role.

use std::fmt::Write;
use std::time::Duration;

use fleet_adapters::runner::observe::{self, RoleView};
use fleet_adapters::runner::protocol::Command;
use fleet_core::id::{RoleName, Timestamp};
use fleet_core::isolation::{EnforcementLevel, EnforcementRow};
use fleet_core::status::{AgentStatus, RoleState, Status};
use serde_json::json;

use super::config::level_tone;
use super::control::call;
use super::ls::{age, agent_tone, state_tone, table};
use super::target::{Reachable, view};
use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::{Printer, Table, Tone, document};

/// How long the runner may take for a look at the console.
const LOOK_LIMIT: Duration = Duration::from_secs(3);

/// Shows one role or all.
///
/// # Errors
/// The named role does not exist.
pub async fn run(app: &App, args: &args::Status) -> Result<ExitStatus, CliError> {
    app.mend();
    match &args.name {
        Some(name) => one(app, name, args.json).await,
        None => all(app, args.json).await,
    }
}

async fn all(app: &App, json: bool) -> Result<ExitStatus, CliError> {
    let known = Reachable::read(app);
    let broken = known.complain(app);
    let views = observe::fleet(&app.runtime, &known.fleet).await;
    if json {
        app.printer.json(&document(json!({ "roles": views })));
    } else if views.is_empty() {
        app.printer.line("(none)");
    } else {
        table(&views, app.runtime.ports.clock.now()).print(&app.printer, "");
    }
    Ok(if broken { ExitStatus::Failed } else { ExitStatus::Done })
}

async fn one(app: &App, name: &RoleName, json: bool) -> Result<ExitStatus, CliError> {
    let mut view = view(app, name).await?;
    look_again(app, &mut view).await;
    if json {
        let value = serde_json::to_value(&view).unwrap_or_default();
        app.printer.json(&document(value));
    } else {
        print(app, &view);
    }
    Ok(ExitStatus::Done)
}

/// Asks the runner, which looks at the console. What it published stands if it does not answer.
async fn look_again(app: &App, view: &mut RoleView) {
    let live = matches!(view.observed.state, RoleState::Running | RoleState::Starting);
    if !live || view.status.as_ref().is_none_or(|status| status.agent.is_none()) {
        return;
    }
    if let Ok(status) = call::<Status>(app, view, Command::Status, LOOK_LIMIT).await {
        view.status = Some(status);
    }
}

fn print(app: &App, view: &RoleView) {
    let out = &app.printer;
    let now = app.runtime.ports.clock.now();
    let live = view.observed.state != RoleState::Stopped;
    out.heading(view.name.as_str());
    let mut table = Table::plain();
    let state = match &view.observed.detail {
        Some(detail) => format!("{} ({detail})", view.observed.state.as_str()),
        None => view.observed.state.as_str().to_owned(),
    };
    table.toned([("state", Tone::Plain), (state.as_str(), state_tone(view.observed.state))]);
    if view.status.is_none() && view.configured && !live {
        table.row(["never started", &format!("`ours-fleet up {}` starts it", view.name)]);
    }
    if let Some(status) = &view.status {
        if live {
            facts(&mut table, status, now);
        }
        failures(&mut table, view, status, now);
        history(&mut table, &view.name, status);
    }
    if view.restart_needed {
        let text = format!("the fleet file changed: `ours-fleet restart {}`", view.name);
        table.toned([("restart", Tone::Plain), (text.as_str(), Tone::Attention)]);
    }
    if !view.configured {
        let text = format!("in no fleet file: `ours-fleet down {}` stops it", view.name);
        table.toned([("not configured", Tone::Plain), (text.as_str(), Tone::Attention)]);
    }
    if view.observed.orphaned_console {
        let text = format!("`ours-fleet up {}` ends it and starts again", view.name);
        table.toned([("console", Tone::Plain), (text.as_str(), Tone::Attention)]);
    }
    if view.observed.orphaned_sandbox {
        let name = &view.name;
        let text =
            format!("`ours-fleet down {name}` ends it, `ours-fleet up {name}` starts again too");
        table.toned([("sandbox", Tone::Plain), (text.as_str(), Tone::Attention)]);
    }
    table.print(out, "  ");
    if live {
        enforcement(out, view);
    }
}

fn facts(table: &mut Table, status: &Status, now: Timestamp) {
    let mut row = |key: &str, value: String| table.row([key.to_owned(), value]);
    row("since", format!("{} ({} ago)", status.since, age(now.since(status.since))));
    row(
        "runner",
        format!(
            "pid {}, supervisor {}, version {}",
            status.runner.process.pid, status.supervisor, status.runner.version
        ),
    );
    if let Some(launcher) = &status.console.launcher {
        row("console", format!("pid {}, {}", launcher.pid, status.console.tmux_socket));
    }
    if let Some(harness) = &status.harness {
        let mode = status.mode.map_or("", fleet_core::harness::StartMode::as_str);
        let version = harness.version.as_ref().map(|version| format!(" {version}"));
        let measured = if harness.qualified == Some(false) { " (not qualified)" } else { "" };
        let program = format!("{}{}{measured}", harness.id, version.unwrap_or_default());
        row("harness", format!("{program}, {mode}, attempt {}", status.attempt));
    }
    if let Some(agent) = &status.agent {
        let mut text = format!("{}, {}", agent.words(), evidence(agent, now));
        if let Some(error) = &agent.state.error {
            let _ = write!(text, "; last turn: {error}");
        }
        table.toned([("agent", Tone::Plain), (text.as_str(), agent_tone(agent))]);
    }
    let mut row = |key: &str, value: String| table.row([key.to_owned(), value]);
    if let Some(session) = &status.session_id {
        row("session", session.to_string());
    }
    if let Some(cwd) = &status.cwd {
        row("cwd", cwd.to_string());
    }
    if let Some(isolation) = &status.isolation {
        let mut toned = |text: &str, tone| {
            table.toned([("isolation", Tone::Plain), (text, tone)]);
        };
        if let Some(lost) = isolation.uncovered_words(&status.role) {
            toned(&format!("DEGRADED: {lost}"), Tone::Bad);
        }
        match (&isolation.degraded, &isolation.lesser) {
            (Some(reason), _) => toned(&format!("UN-ISOLATED: {reason}"), Tone::Bad),
            (None, Some(reason)) => {
                let text = format!("{}, which is less than asked: {reason}", isolation.backend);
                toned(&text, Tone::Attention);
            }
            (None, None) => toned(isolation.backend.as_str(), Tone::Plain),
        }
    }
}

/// Since when, what the state rests on, and how old the look is.
pub fn evidence(agent: &AgentStatus, now: Timestamp) -> String {
    let looked = match now.since(agent.at) {
        _ if agent.followed => String::new(),
        ago if ago < 1000 => String::new(),
        ago => format!(", looked at {} ago", age(ago)),
    };
    let source = agent.state.evidence.as_str();
    format!("since {} ({} ago), by {source}{looked}", agent.since, age(now.since(agent.since)))
}

fn failures(table: &mut Table, view: &RoleView, status: &Status, now: Timestamp) {
    let failures = &status.failures;
    let reason = failures.last_reason.as_deref().unwrap_or("no reason published");
    if let (RoleState::HeldDown, Some(since)) = (view.observed.state, failures.held_since) {
        let text = format!(
            "since {since} ({} ago), after {} failures: {reason}; release it with `ours-fleet up {}`",
            age(now.since(since)),
            failures.count,
            view.name
        );
        table.toned([("held down", Tone::Plain), (text.as_str(), Tone::Bad)]);
    } else if failures.count > 0 {
        let next = failures.next_at.map(|at| format!(", next attempt {at}")).unwrap_or_default();
        let text = format!("{} in a row: {reason}{next}", failures.count);
        table.toned([("failures", Tone::Plain), (text.as_str(), Tone::Attention)]);
    }
}

fn history(table: &mut Table, name: &RoleName, status: &Status) {
    if let Some(last) = &status.last_termination {
        let text = format!("{} at {}; see `ours-fleet logs {name}`", last.detail, last.at);
        // Stops that were asked for are no such end: the last one may be long ago.
        table.row(["last end by itself", &text]);
    }
    if status.abrupt_terminations > 0 {
        let text = format!("{} without an orderly stop", status.abrupt_terminations);
        table.row(["runner ends", &text]);
    }
}

fn enforcement(out: &Printer, view: &RoleView) {
    if view.enforcement.is_empty() {
        return;
    }
    if saw_nothing(&view.enforcement) {
        out.line(format!("  observed: nothing: {}", EnforcementRow::ENDED_EARLY));
        return;
    }
    out.line("  observed:");
    let mut rows = Table::plain();
    for row in &view.enforcement {
        rows.toned([
            (row.item.as_str(), Tone::Plain),
            (row.level.as_str(), level_tone(row.level)),
            (&row.asked, Tone::Plain),
            (&row.evidence, Tone::Plain),
        ]);
    }
    rows.print(out, "    ");
    let weak =
        view.enforcement.iter().filter(|row| row.level != EnforcementLevel::Enforced).count();
    if weak > 0 {
        out.line(format!("  {weak} of {} do not fully hold", view.enforcement.len()));
    }
}

/// Whether the command ended before any row could be looked at.
fn saw_nothing(rows: &[EnforcementRow]) -> bool {
    rows.iter().all(|row| {
        row.level == EnforcementLevel::Missing && row.evidence == EnforcementRow::ENDED_EARLY
    })
}

#[cfg(test)]
mod tests {
    use fleet_core::isolation::Item;

    use super::*;

    #[test]
    fn rows_are_left_out_only_if_nothing_was_seen() {
        let row = |level, evidence: &str| EnforcementRow {
            item: Item::Network,
            asked: "deny".to_owned(),
            level,
            evidence: evidence.to_owned(),
        };
        let ended =
            row(EnforcementLevel::Missing, "the command ended before it could be looked at");
        assert!(saw_nothing(&[ended.clone(), ended.clone()]));
        assert!(!saw_nothing(&[ended.clone(), row(EnforcementLevel::Missing, "the host's")]));
        assert!(!saw_nothing(&[ended, row(EnforcementLevel::Enforced, "its own")]));
    }
}
