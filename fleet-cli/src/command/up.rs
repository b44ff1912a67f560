//! `up`: makes what runs match the fleet file.

use fleet_adapters::runner::apply::{self, Action, Outcome, PlannedRole, RoleOutcome};
use fleet_adapters::runner::observe;
use fleet_core::config::{Fleet, YamlMode};
use fleet_core::id::RoleName;
use fleet_core::plan::unavailable_line;
use fleet_core::programs::Distrust;
use fleet_core::status::RoleState;
use serde_json::json;

use super::outcome;
use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::fleet::FleetFiles;
use crate::ui::{Table, Tone, document};

/// Starts what is configured and not running.
///
/// # Errors
/// The fleet does not load, a name is unknown, or the supervisor is not in this build: nothing was
/// touched.
pub async fn run(app: &App, args: &args::Up) -> Result<ExitStatus, CliError> {
    app.supervision.check()?;
    app.mend();
    let files = FleetFiles::read(app, YamlMode::Compat)?;
    let fleet = files.good(app)?;
    let names = FleetFiles::select(fleet, &args.names)?;
    // A default that cannot be served is a note in the plan; what somebody wrote is said aloud.
    for key in fleet.unavailable.iter().filter(|key| key.place.is_some()) {
        app.printer.warn(format!("not available: {}", unavailable_line(key)));
    }
    for passed in &app.runtime.world.passed_over {
        if let Distrust::Agent(_) = passed.why {
            let directory = &passed.directory;
            app.printer.warn(format!("no program is taken from `{directory}`: {}", passed.why));
        }
    }
    let orphans = orphans(app, fleet).await;
    for name in &orphans {
        app.printer.warn(format!(
            "`{name}` runs and is no longer configured: `ours-fleet down {name}` stops it"
        ));
    }
    if names.is_empty() {
        let advice = format!("nothing to start: {}", files.empty_advice());
        if args.json {
            app.printer.json(&document(json!({ "exit": 0, "roles": [], "orphans": orphans })));
            app.printer.note(advice);
        } else {
            app.printer.line(advice);
        }
        return Ok(ExitStatus::Done);
    }

    let planned = apply::plan(&app.runtime, fleet, &names).await;
    if args.dry_run {
        return Ok(show_plan(app, args.json, &planned, &orphans));
    }
    // Every refusal is on the screen before the first start.
    let (refused, startable): (Vec<_>, Vec<_>) =
        planned.into_iter().partition(|role| role.action == Action::Refused);
    for role in refused.iter().filter(|_| !args.json) {
        for reason in &role.reasons {
            app.printer.error(format!("{}: not started: {reason}", role.name));
        }
    }
    let starting =
        |role: &&PlannedRole| !matches!(role.action, Action::Unchanged | Action::RestartNeeded);
    let starts = startable.iter().any(|role| starting(&role));
    for role in startable.iter().filter(starting) {
        if fleet.roles.get(&role.name).is_some_and(|role| role.isolation.is_none()) {
            app.printer.note(format!(
                "note: {} has no `isolation`: it runs with all rights of user {}",
                role.name, app.runtime.world.user
            ));
        }
    }
    if starts {
        prepare(app).await?;
    }
    let started = apply::up(&app.runtime, &startable, files.explicit.as_ref()).await;
    Ok(finish(app, args.json, &names, &refused, started, &orphans))
}

/// Before the first start: the supervisor is made ready, and what it is not is said aloud.
pub(super) async fn prepare(app: &App) -> Result<(), CliError> {
    if app.supervision.instead.is_some() {
        app.printer.note(format!("note: supervisor {}", app.supervision.text()));
    }
    let prepared = app.runtime.ports.supervisor.prepare(false).await?;
    for line in prepared.done {
        app.printer.note(format!("note: {line}"));
    }
    for warning in prepared.warnings {
        app.printer.warn(warning);
    }
    Ok(())
}

/// One report in file order. The reasons of refused roles are already on the screen.
fn finish(
    app: &App,
    json: bool,
    names: &[RoleName],
    refused: &[PlannedRole],
    started: Vec<RoleOutcome>,
    orphans: &[RoleName],
) -> ExitStatus {
    let mut all: Vec<RoleOutcome> = started;
    all.extend(refused.iter().map(|role| RoleOutcome {
        name: role.name.clone(),
        outcome: Outcome::Failed { detail: role.reasons.join("\n") },
    }));
    all.sort_by_key(|role| names.iter().position(|name| *name == role.name));
    let (shown, silent): (Vec<_>, Vec<_>) = if json {
        (all, Vec::new())
    } else {
        all.into_iter().partition(|role| !refused.iter().any(|other| other.name == role.name))
    };
    let status = outcome::report(app, json, &shown, json!({ "orphans": orphans }));
    match (silent.is_empty(), status) {
        (true, status) => status,
        (false, _) if shown.iter().all(|role| matches!(role.outcome, Outcome::Failed { .. })) => {
            ExitStatus::Failed
        }
        (false, _) => ExitStatus::Partial,
    }
}

fn show_plan(app: &App, json: bool, planned: &[PlannedRole], orphans: &[RoleName]) -> ExitStatus {
    let refused = planned.iter().filter(|role| role.action == Action::Refused).count();
    let status = ExitStatus::of_targets(planned.len() - refused, refused, 0);
    if json {
        app.printer.json(&document(json!({
            "exit": status.code(),
            "dryRun": true,
            "roles": planned,
            "orphans": orphans,
        })));
        return status;
    }
    let mut table = Table::new(["NAME", "ACTION", "REASON"]);
    for role in planned {
        let tone = match role.action {
            Action::Refused => Tone::Bad,
            Action::RestartNeeded | Action::Release | Action::Recover => Tone::Attention,
            Action::Create | Action::Start => Tone::Good,
            Action::Unchanged => Tone::Plain,
        };
        let mut reasons = role.reasons.iter().map(String::as_str);
        table.toned([
            (role.name.as_str(), Tone::Plain),
            (role.action.as_str(), tone),
            (reasons.next().unwrap_or_default(), Tone::Plain),
        ]);
        for reason in reasons {
            table.row(["", "", reason]);
        }
    }
    table.print(&app.printer, "");
    app.printer.note("dry run: nothing was changed");
    status
}

/// Roles that run and are in no fleet file.
async fn orphans(app: &App, fleet: &Fleet) -> Vec<RoleName> {
    let mut found = Vec::new();
    for name in observe::unconfigured(&app.runtime, fleet) {
        // A fleet file given by `-c` says nothing about the roles of another one.
        if recorded_config(app, &name)
            != app.settings.configuration.as_ref().map(ToString::to_string)
        {
            continue;
        }
        let view = observe::role(&app.runtime, None, &name).await;
        if view.observed.state != RoleState::Stopped {
            found.push(name);
        }
    }
    found
}

/// The configuration that a role was started with; `None` means the default one.
pub fn recorded_config(app: &App, name: &RoleName) -> Option<String> {
    let path = app.runtime.trees(name).config_path();
    let bytes = app.runtime.ports.store.read(&path, 16 * 1024).ok().flatten()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}
