//! `down`: stops roles.

use fleet_adapters::runner::apply;
use fleet_adapters::runner::observe;
use fleet_core::id::RoleName;
use fleet_core::status::RoleState;
use serde_json::json;

use super::outcome;
use super::target::Reachable;
use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::document;

/// Stops the named roles, or all.
///
/// A fleet file that does not load keeps nobody from stopping what runs.
///
/// # Errors
/// A name is neither configured nor known from an earlier run, or the fleet file does not load and
/// nothing runs: nothing was touched.
pub async fn run(app: &App, args: &args::Down) -> Result<ExitStatus, CliError> {
    app.mend();
    let mut known = Reachable::read(app);
    let mut names: Vec<RoleName> = Vec::new();
    for name in &args.names {
        known.check(app, name)?;
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if args.names.is_empty() {
        names.extend(known.fleet.roles.keys().cloned());
        if let Some(broken) = known.broken.take() {
            names.extend(observe::unconfigured(&app.runtime, &known.fleet));
            if !any_runs(app, &names).await {
                return Err(broken);
            }
            known.broken = Some(broken);
        }
    }
    known.complain(app);
    if names.is_empty() {
        if args.json {
            app.printer.json(&document(json!({ "exit": 0, "roles": [] })));
        } else {
            app.printer.line("nothing to stop: no roles are configured");
        }
        return Ok(ExitStatus::Done);
    }
    let outcomes = apply::down(&app.runtime, &names).await;
    Ok(outcome::report(app, args.json, &outcomes, json!({})))
}

async fn any_runs(app: &App, names: &[RoleName]) -> bool {
    for name in names {
        let view = observe::role(&app.runtime, None, name).await;
        if view.observed.state != RoleState::Stopped {
            return true;
        }
    }
    false
}
