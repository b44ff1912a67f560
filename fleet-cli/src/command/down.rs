//! `down`: stops roles.

use fleet_adapters::runner::apply;
use fleet_adapters::runner::observe;
use fleet_core::id::RoleName;
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
/// A name is neither configured nor known from an earlier run: nothing was touched.
pub async fn run(app: &App, args: &args::Down) -> Result<ExitStatus, CliError> {
    let known = Reachable::read(app);
    let mut names: Vec<RoleName> = Vec::new();
    if args.names.is_empty() {
        if known.complain(app) {
            names.extend(observe::unconfigured(&app.runtime, &known.fleet));
        }
        names.extend(known.fleet.roles.keys().cloned());
    } else {
        known.complain(app);
        for name in &args.names {
            known.check(app, name)?;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
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
