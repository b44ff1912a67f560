//! The fleet of this command: files read, loaded and judged, with the names that may be used.

use camino::Utf8PathBuf;
use fleet_adapters::runner::{LoadFleetError, resolve_config};
use fleet_core::config::{Fleet, Role, YamlMode};
use fleet_core::diagnostic::{Diagnostic, Severity, nearest};
use fleet_core::id::RoleName;

use crate::app::App;
use crate::error::{CliError, ErrorKind};

/// A load with everything that was found.
#[derive(Debug)]
pub struct FleetFiles {
    /// The fleet; `None` if it does not load.
    pub fleet: Option<Fleet>,
    /// Every problem.
    pub diagnostics: Vec<Diagnostic>,
    /// The base file.
    pub base_path: Utf8PathBuf,
    /// Whether the base file exists.
    pub base_exists: bool,
    /// The base file where it was asked for by name, canonical: what is stored.
    pub explicit: Option<Utf8PathBuf>,
}

impl FleetFiles {
    /// Reads and loads the fleet.
    ///
    /// # Errors
    /// A file cannot be read. Problems *in* the files are no error here.
    pub fn read(app: &App, yaml_mode: YamlMode) -> Result<Self, CliError> {
        let named = app.settings.configuration.as_deref();
        let explicit = match named {
            Some(path) => Some(
                resolve_config(&*app.probe(), path)
                    .map_err(|source| ErrorKind::ConfigFile { source })?,
            ),
            None => None,
        };
        let base_path = explicit.clone().unwrap_or_else(|| app.runtime.world.layout.base_config());
        match app.runtime.load(named, yaml_mode) {
            Ok(loaded) => Ok(Self {
                fleet: Some(loaded.fleet),
                diagnostics: loaded.warnings,
                base_path,
                base_exists: !loaded.base_missing,
                explicit,
            }),
            Err(LoadFleetError::Files(source)) => Err(ErrorKind::ConfigFile { source }.into()),
            Err(LoadFleetError::Invalid(diagnostics)) => {
                Ok(Self { fleet: None, diagnostics, base_path, base_exists: true, explicit })
            }
        }
    }

    /// Whether any problem is an error.
    pub fn has_errors(&self) -> bool {
        self.fleet.is_none() || has_errors(&self.diagnostics)
    }

    /// The fleet, if it has no errors. Warnings are printed.
    ///
    /// # Errors
    /// All problems at once.
    pub fn good(&self, app: &App) -> Result<&Fleet, CliError> {
        match &self.fleet {
            Some(fleet) if !self.has_errors() => {
                for warning in &self.diagnostics {
                    crate::ui::print_diagnostic(&app.printer, warning);
                }
                Ok(fleet)
            }
            _ => Err(ErrorKind::Config { diagnostics: self.diagnostics.clone() }.into()),
        }
    }

    /// A configured role.
    ///
    /// # Errors
    /// No such role: names the files consulted and the nearest name.
    pub fn find<'a>(fleet: &'a Fleet, name: &RoleName) -> Result<&'a Role, CliError> {
        fleet.roles.get(name).ok_or_else(|| unknown_role(fleet, name))
    }

    /// The selected roles in file order; every role if none is named.
    ///
    /// # Errors
    /// One of the names is not configured. Nothing was touched.
    pub fn select(fleet: &Fleet, names: &[RoleName]) -> Result<Vec<RoleName>, CliError> {
        for name in names {
            Self::find(fleet, name)?;
        }
        Ok(fleet
            .roles
            .keys()
            .filter(|name| names.is_empty() || names.contains(name))
            .cloned()
            .collect())
    }

    /// What to write when nothing is configured.
    pub fn empty_advice(&self) -> String {
        if self.base_exists {
            format!("no roles are configured: add some below `roles:` in {}", self.base_path)
        } else {
            format!(
                "nothing is configured: create {} (`ours-fleet --help` shows a first one)",
                self.base_path
            )
        }
    }
}

/// Whether any problem is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

fn unknown_role(fleet: &Fleet, name: &RoleName) -> CliError {
    let error: CliError =
        ErrorKind::UnknownRole { name: name.clone(), consulted: fleet.source_files.clone() }.into();
    let known = fleet.roles.keys().map(RoleName::as_str);
    match nearest(name.as_str(), known.clone()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None if fleet.roles.is_empty() => error.hint("no roles are configured"),
        None => error.hint(format!("configured: {}", known.collect::<Vec<_>>().join(", "))),
    }
}
