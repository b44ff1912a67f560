//! `restart` and `force-restart`: stop and start.

use fleet_adapters::runner::apply::{self, Action, Outcome, PlannedRole, RoleOutcome};
use fleet_adapters::runner::native_sandbox::NativeSandboxes;
use fleet_adapters::runner::version::HarnessVersions;
use fleet_core::config::YamlMode;
use fleet_core::id::RoleName;
use serde_json::json;

use super::{outcome, up};
use crate::app::App;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::fleet::FleetFiles;
use crate::resolved::Resolver;
use crate::ui::document;

/// Stops and starts roles; `fresh` ends their conversations. A role that could not be started again
/// is left as it is.
///
/// # Errors
/// The fleet does not load, a name is unknown, or the supervisor is not in this build: nothing was
/// touched.
pub async fn run(
    app: &App,
    names: &[RoleName],
    fresh: bool,
    json: bool,
) -> Result<ExitStatus, CliError> {
    app.supervision.check()?;
    app.mend();
    let files = FleetFiles::read(app, YamlMode::Compat)?;
    let fleet = files.good(app)?;
    let names = FleetFiles::select(fleet, names)?;
    if names.is_empty() {
        let advice = format!("nothing to restart: {}", files.empty_advice());
        if json {
            app.printer.json(&document(json!({ "exit": 0, "roles": [] })));
            app.printer.note(advice);
        } else {
            app.printer.line(advice);
        }
        return Ok(ExitStatus::Done);
    }
    let native = NativeSandboxes::of_fleet(&app.runtime, fleet, true).await;
    let chosen = names.iter().filter_map(|name| fleet.roles.get(name));
    let versions = HarnessVersions::of_roles(&app.runtime, chosen).await;
    let resolver = Resolver::new(app, fleet, native, versions);
    let (mut ready, mut outcomes) = (Vec::new(), Vec::new());
    for role in names.iter().filter_map(|name| fleet.roles.get(name)) {
        let reasons = resolver.refusals(role);
        if reasons.is_empty() {
            let action = Action::Start;
            ready.push(PlannedRole { name: role.name.clone(), action, reasons });
        } else {
            let detail =
                format!("left as it is, it could not start again:\n{}", reasons.join("\n"));
            let outcome = Outcome::Failed { detail };
            outcomes.push(RoleOutcome { name: role.name.clone(), outcome });
        }
    }
    if !ready.is_empty() {
        up::prepare(app).await?;
    }
    outcomes.extend(apply::restart(&app.runtime, &ready, files.explicit.as_ref(), fresh).await);
    outcomes.sort_by_key(|role| names.iter().position(|name| *name == role.name));
    Ok(outcome::report(app, json, &outcomes, json!({})))
}
