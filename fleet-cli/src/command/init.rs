//! `init`: the state directory and the supervisor.

use serde_json::json;

use crate::app::App;
use crate::args;
use crate::error::{CliError, ErrorKind};
use crate::exit::ExitStatus;
use crate::settings::SupervisorChoice;
use crate::ui::{Table, document};

/// What a supervisor of this build means for the operator.
pub const NONE_MEANS: &str =
    "no reboot survival, and nobody restarts a killed runner (the next `up` does)";

/// Checks that this build has the supervisor that was asked for, and says what was chosen.
///
/// # Errors
/// systemd or launchd was asked for.
pub fn supervisor_text(choice: SupervisorChoice) -> Result<String, CliError> {
    let unavailable = |name: &str| {
        let message = format!("supervisor `{name}` is not available in this build");
        let error = ErrorKind::Unavailable { message };
        Err(CliError::from(error)
            .hint("unset OURS_FLEET_SUPERVISOR or set it to `none`: fleet's own detached runners"))
    };
    match choice {
        SupervisorChoice::Systemd => unavailable("systemd"),
        SupervisorChoice::Launchd => unavailable("launchd"),
        SupervisorChoice::None => Ok(format!("`none`: {NONE_MEANS}")),
        SupervisorChoice::Auto => {
            Ok(format!("systemd and launchd are not built yet: using `none`: {NONE_MEANS}"))
        }
    }
}

/// Prepares this machine.
///
/// # Errors
/// The supervisor is not in this build, or a directory cannot be made.
pub fn run(app: &App, args: &args::Init) -> Result<ExitStatus, CliError> {
    let supervisor = supervisor_text(app.settings.supervisor)?;
    let root = app.runtime.world.layout.root();
    let existed = app.runtime.ports.store.list(root)?.is_some();
    app.runtime.ports.store.ensure_dir(root)?;
    let base = app.runtime.world.layout.base_config();
    if args.json {
        app.printer.json(&document(json!({
            "stateRoot": root,
            "created": !existed,
            "supervisor": { "kind": "none", "detail": supervisor, "survivesReboot": false },
            "baseConfig": base,
        })));
    } else {
        let verb = if existed { "exists" } else { "created" };
        let mut table = Table::plain();
        table.row(["state directory:".to_owned(), format!("{root} ({verb})")]);
        table.row(["supervisor:".to_owned(), supervisor]);
        table.row([
            "next:".to_owned(),
            format!("write {base}, then `ours-fleet config` and `ours-fleet up`"),
        ]);
        table.print(&app.printer, "");
    }
    Ok(ExitStatus::Done)
}
