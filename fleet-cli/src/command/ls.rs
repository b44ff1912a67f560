//! `ls`: one line a role.

use fleet_adapters::runner::observe::{self, RoleView};
use fleet_core::harness::screen::Readiness;
use fleet_core::id::Timestamp;
use fleet_core::status::{AgentStatus, RoleState};
use serde_json::json;

use super::target::Reachable;
use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::{Table, Tone, document};

/// Lists the roles that run, or all. A fleet file that does not load is said and does not hide what
/// runs.
///
/// # Errors
/// None of its own.
pub async fn run(app: &App, args: &args::Ls) -> Result<ExitStatus, CliError> {
    let known = Reachable::read(app);
    let broken = known.complain(app);
    let mut views = observe::fleet(&app.runtime, &known.fleet).await;
    if !args.all {
        views.retain(|view| view.observed.state != RoleState::Stopped);
    }
    if args.json {
        app.printer.json(&document(json!({ "roles": views })));
    } else if views.is_empty() {
        app.printer.line("(none)");
    } else {
        table(&views, app.runtime.ports.clock.now()).print(&app.printer, "");
    }
    Ok(if broken { ExitStatus::Failed } else { ExitStatus::Done })
}

/// The table of `ls` and `status`.
pub fn table(views: &[RoleView], now: Timestamp) -> Table {
    let mut table = Table::new(["NAME", "STATE", "SINCE", "AGENT", "HARNESS", "ISOLATION", "NOTE"]);
    for view in views {
        let believed = view.status.as_ref().filter(|_| view.observed.state != RoleState::Stopped);
        let since = believed.map(|status| age(now.since(status.since))).unwrap_or_default();
        let harness = believed.and_then(|status| status.harness.as_ref());
        let agent = believed.and_then(|status| status.agent.as_ref());
        let isolation = believed.and_then(|status| status.isolation.as_ref());
        let degraded = isolation.is_some_and(|isolation| isolation.degraded.is_some());
        let (isolation, isolation_tone) = match isolation {
            Some(_) if degraded => ("UN-ISOLATED".to_owned(), Tone::Bad),
            Some(isolation) => (isolation.backend.to_string(), Tone::Plain),
            None => (String::new(), Tone::Plain),
        };
        table.toned([
            (view.name.to_string(), Tone::Plain),
            (view.observed.state.as_str().to_owned(), state_tone(view.observed.state)),
            (since, Tone::Plain),
            (
                agent.map(|agent| seen(agent, now)).unwrap_or_default(),
                agent.map_or(Tone::Plain, agent_tone),
            ),
            (harness.map(|harness| harness.id.to_string()).unwrap_or_default(), Tone::Plain),
            (isolation, isolation_tone),
            (note(view), Tone::Plain),
        ]);
    }
    table
}

/// What was last seen of an agent, and when if that is a while ago and nobody follows it.
fn seen(agent: &AgentStatus, now: Timestamp) -> String {
    const RECENT_MS: u64 = 10_000;
    let ago = now.since(agent.at);
    let words = agent.words();
    if agent.followed || ago < RECENT_MS { words } else { format!("{words}, {} ago", age(ago)) }
}

/// The tone of what an agent does.
pub fn agent_tone(agent: &AgentStatus) -> Tone {
    match agent.state.readiness {
        Readiness::Waiting | Readiness::Dialog => Tone::Attention,
        _ if agent.state.error.is_some() => Tone::Attention,
        _ => Tone::Plain,
    }
}

fn note(view: &RoleView) -> String {
    let mut notes: Vec<String> = view.observed.detail.iter().cloned().collect();
    if view.restart_needed {
        notes.push("restart needed: the fleet file changed".to_owned());
    }
    if !view.configured {
        notes.push("not configured".to_owned());
    }
    notes.join("; ")
}

/// The tone of a state word.
pub fn state_tone(state: RoleState) -> Tone {
    match state {
        RoleState::Running => Tone::Good,
        RoleState::Starting | RoleState::BackingOff | RoleState::Unknown => Tone::Attention,
        RoleState::HeldDown => Tone::Bad,
        RoleState::Stopped => Tone::Plain,
    }
}

/// A time span in its two largest units.
pub fn age(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if days > 0 {
        format!("{days}d {}h", hours % 24)
    } else if hours > 0 {
        format!("{hours}h {}m", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes}m {}s", seconds % 60)
    } else {
        format!("{seconds}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units() {
        for (millis, text) in [
            (0, "0s"),
            (59_999, "59s"),
            (61_000, "1m 1s"),
            (3_600_000, "1h 0m"),
            (90_000_000, "1d 1h"),
        ] {
            assert_eq!(age(millis), text);
        }
    }
}
