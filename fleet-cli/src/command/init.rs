//! `init`: the state directory and the supervisor.

use serde_json::json;

use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::{Table, document};

/// Prepares this machine.
///
/// # Errors
/// The supervisor cannot be used, or a directory cannot be made.
pub async fn run(app: &App, args: &args::Init) -> Result<ExitStatus, CliError> {
    app.supervision.check()?;
    let supervisor = app.supervision.text();
    let root = app.runtime.world.layout.root();
    let existed = app.runtime.ports.store.list(root)?.is_some();
    app.runtime.ports.store.ensure_dir(root)?;
    let base = app.runtime.world.layout.base_config();
    let port = &app.runtime.ports.supervisor;
    let prepared = port.prepare(true).await?;
    if args.json {
        app.printer.json(&document(json!({
            "stateRoot": root,
            "created": !existed,
            "supervisor": {
                "kind": port.kind(),
                "detail": supervisor,
                "survivesReboot": port.survives_reboot() && prepared.warnings.is_empty(),
                "done": prepared.done,
                "warnings": prepared.warnings,
            },
            "baseConfig": base,
        })));
    } else {
        let verb = if existed { "exists" } else { "created" };
        let mut table = Table::plain();
        table.row(["state directory:".to_owned(), format!("{root} ({verb})")]);
        table.row(["supervisor:".to_owned(), supervisor]);
        for line in prepared.done {
            table.row([String::new(), line]);
        }
        table.row([
            "next:".to_owned(),
            format!("write {base}, then `ours-fleet config` and `ours-fleet up`"),
        ]);
        table.print(&app.printer, "");
        for warning in prepared.warnings {
            app.printer.warn(warning);
        }
    }
    Ok(ExitStatus::Done)
}
