//! How the commands that act on several roles report.

use fleet_adapters::runner::apply::{Outcome, RoleOutcome};
use serde_json::{Value, json};

use crate::app::App;
use crate::exit::ExitStatus;
use crate::ui::document;

/// Prints how each role fared, and ends as the table of exit codes says. `extra` goes into the JSON
/// document.
pub fn report(app: &App, json: bool, outcomes: &[RoleOutcome], extra: Value) -> ExitStatus {
    let (mut done, mut failed, mut pending) = (0, 0, 0);
    for role in outcomes {
        match &role.outcome {
            Outcome::Done { .. } | Outcome::Unchanged { .. } => done += 1,
            Outcome::Pending { .. } => pending += 1,
            Outcome::Failed { .. } => failed += 1,
        }
    }
    let status = ExitStatus::of_targets(done, failed, pending);
    if json {
        let mut fields = json!({ "exit": status.code(), "roles": outcomes });
        if let (Value::Object(fields), Value::Object(extra)) = (&mut fields, extra) {
            fields.extend(extra);
        }
        app.printer.json(&document(fields));
    }
    for role in outcomes {
        let name = &role.name;
        match &role.outcome {
            Outcome::Failed { detail } => {
                for line in detail.lines() {
                    app.printer.error(format!("{name}: {line}"));
                }
            }
            Outcome::Done { detail }
            | Outcome::Unchanged { detail }
            | Outcome::Pending { detail } => {
                if !json {
                    app.printer.line(format!("{name}: {detail}"));
                }
            }
        }
    }
    status
}
