//! Which roles a command means.

use fleet_adapters::runner::observe::{self, RoleView};
use fleet_core::config::{Fleet, YamlMode};
use fleet_core::id::RoleName;
use fleet_core::status::RoleState;

use crate::app::App;
use crate::error::{CliError, ErrorKind};
use crate::fleet::FleetFiles;
use crate::ui::{print_diagnostic, print_error};

/// What is known of the fleet where a broken file must not hide what runs.
#[derive(Debug)]
pub struct Reachable {
    /// The fleet; empty if it does not load.
    pub fleet: Fleet,
    /// Whether it does not load.
    pub broken: Option<CliError>,
}

impl Reachable {
    /// Loads the fleet; what is wrong with it is kept.
    pub fn read(app: &App) -> Self {
        let read = FleetFiles::read(app, YamlMode::Compat);
        let broken = match read.and_then(|files| files.good(app).cloned()) {
            Ok(fleet) => return Self { fleet, broken: None },
            Err(error) => error,
        };
        let base = app.runtime.world.layout.base_config();
        Self { fleet: Fleet::empty(vec![base]), broken: Some(broken) }
    }

    /// Says what is wrong with the fleet file, if anything; tells whether it was.
    pub fn complain(&self, app: &App) -> bool {
        if let Some(error) = &self.broken {
            // Not as an error: what was asked is done all the same.
            for diagnostic in error.diagnostics() {
                print_diagnostic(&app.printer, diagnostic);
            }
            if error.diagnostics().is_empty() {
                print_error(&app.printer, error);
            }
            app.printer.note("showing what is known from the state directory");
        }
        self.broken.is_some()
    }

    /// Checks that a role is configured, or has state of an earlier configuration.
    ///
    /// # Errors
    /// It is neither. Where the fleet does not load, that is the error: the role may be in it.
    pub fn check(&mut self, app: &App, name: &RoleName) -> Result<(), CliError> {
        if self.fleet.roles.contains_key(name) {
            return Ok(());
        }
        let control = app.runtime.trees(name).control;
        if app.runtime.ports.store.list(&control)?.is_some() {
            return Ok(());
        }
        match self.broken.take() {
            Some(broken) => Err(broken),
            None => FleetFiles::find(&self.fleet, name).map(|_| ()),
        }
    }
}

/// Looks at one role that must exist.
///
/// # Errors
/// No such role, or the fleet does not load.
pub async fn view(app: &App, name: &RoleName) -> Result<RoleView, CliError> {
    let mut known = Reachable::read(app);
    known.check(app, name)?;
    Ok(observe::role(&app.runtime, Some(&known.fleet), name).await)
}

/// The error for a role that has no console, with the way to get one.
pub fn not_running(view: &RoleView) -> CliError {
    let name = &view.name;
    let state = match &view.observed.detail {
        Some(detail) => format!("{}: {detail}", view.observed.state.as_str()),
        None => view.observed.state.as_str().to_owned(),
    };
    let error: CliError = ErrorKind::NotRunning { role: name.clone(), state }.into();
    match view.observed.state {
        RoleState::Starting | RoleState::Running => {
            error.hint(format!("`ours-fleet status {name}` shows when it is"))
        }
        RoleState::BackingOff | RoleState::HeldDown => error
            .hint(format!("`ours-fleet logs {name}` says why; `ours-fleet up {name}` starts it")),
        RoleState::Stopped | RoleState::Unknown => {
            error.hint(format!("start it with `ours-fleet up {name}`"))
        }
    }
}
