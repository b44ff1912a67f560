//! `_roles`: role names for completion. Fast, and silent about every problem.

use fleet_core::config::YamlMode;

use crate::app::App;
use crate::fleet::FleetFiles;

/// Prints one name a line.
pub fn run(app: &App) {
    let fleet = FleetFiles::read(app, YamlMode::Compat).ok().and_then(|files| files.fleet);
    for name in fleet.iter().flat_map(|fleet| fleet.roles.keys()) {
        app.printer.line(name.as_str());
    }
}
