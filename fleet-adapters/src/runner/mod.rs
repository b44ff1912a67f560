//! The drivers: they carry out what the core decides, over ports only, so that an embedder gets them
//! without the command line. Nothing here names an adapter.
//!
//! [`prepare`] makes one launch, [`run`] is the runner of one role, [`apply`] brings roles up and
//! down, [`native_sandbox`] tries what a harness has of its own, [`observe`] reads what is published,
//! [`control`] is the operator socket and its client, [`hook`] those of the agent program's hook.

mod agent;
pub mod apply;
mod caps;
pub mod config_files;
pub mod control;
mod covers;
pub mod deliver;
pub mod events;
mod home;
pub mod hook;
mod leftovers;
pub mod log;
mod mend;
pub mod native_sandbox;
pub mod observe;
mod overlays;
pub mod prepare;
pub mod protocol;
pub mod run;
mod sessions;
mod trust;
pub mod version;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::config::{Fleet, LoadOptions, YamlMode};
use fleet_core::diagnostic::{Diagnostic, Severity};
use fleet_core::harness::Harnesses;
use fleet_core::id::RoleName;
use fleet_core::layout::RoleTrees;
use fleet_core::path::LexicalPath;
use fleet_core::plan;
use fleet_core::port::{
    Clock, DirectoryWatches, Exec, IdSource, IsolationBackend, PathProbes, ProcessTable,
    ResourceLimits, StateStore, Supervisor, Tmux, TmuxAddress, TmuxServers,
};
use fleet_core::world::World;

pub use agent::{News, Observer, Seen};
pub use config_files::{
    ConfigFileError, ConfigTrust, briefing_files, file_trust, read_sources, resolve_config,
};
pub use mend::mend;
pub use trust::program_trust;

/// Every port that the drivers use.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Programs run to their end.
    pub exec: Arc<dyn Exec>,
    /// Consoles.
    pub tmux: Arc<dyn TmuxServers>,
    /// What keeps runners alive.
    pub supervisor: Arc<dyn Supervisor>,
    /// Isolation backends, each at most once; the one named `none` is required.
    pub backends: Vec<Arc<dyn IsolationBackend>>,
    /// The file system, looked at.
    pub paths: Arc<dyn PathProbes>,
    /// Caps on launches.
    pub limits: Arc<dyn ResourceLimits>,
    /// State files.
    pub store: Arc<dyn StateStore>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Processes.
    pub processes: Arc<dyn ProcessTable>,
    /// New ids and tokens.
    pub ids: Arc<dyn IdSource>,
    /// Changes of directories.
    pub watches: Arc<dyn DirectoryWatches>,
}

/// The ports, the harnesses and the account: all that a driver needs.
#[derive(Debug, Clone)]
pub struct Runtime {
    /// The ports.
    pub ports: Ports,
    /// The registered harnesses.
    pub harnesses: Harnesses,
    /// The account.
    pub world: World,
    /// A 0700 directory for sockets whose place in the state root is too long.
    pub runtime_dir: Utf8PathBuf,
}

/// A loaded fleet with its warnings.
#[derive(Debug, Clone)]
pub struct LoadedFleet {
    /// The fleet.
    pub fleet: Fleet,
    /// Warnings of the load.
    pub warnings: Vec<Diagnostic>,
    /// Whether the base file was absent and not asked for by name.
    pub base_missing: bool,
}

/// Why no fleet was loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadFleetError {
    /// A file could not be read.
    #[error(transparent)]
    Files(#[from] ConfigFileError),
    /// The files hold errors; every problem of the load, warnings included.
    #[error("{}", first_line(.0))]
    Invalid(Vec<Diagnostic>),
}

fn first_line(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let first = errors.next().map(ToString::to_string).unwrap_or_default();
    match errors.count() {
        0 => first,
        more => format!("{first} (and {more} more: run `ours-fleet config`)"),
    }
}

impl Runtime {
    /// Loads the fleet files: the base (default or named) and every drop-in. The one judgement of a
    /// fleet file: text, trust in the files, and the texts that they name.
    pub fn load(
        &self,
        config: Option<&Utf8Path>,
        yaml_mode: YamlMode,
    ) -> Result<LoadedFleet, LoadFleetError> {
        let (store, probe) = (&*self.ports.store, self.ports.paths.fresh());
        let layout = &self.world.layout;
        let sources = read_sources(store, &*probe, layout, config)?;
        let base_missing = sources.base.is_none();
        let home = LexicalPath::absolute(self.world.homes.os.as_str())
            .unwrap_or_else(|_| LexicalPath::root());
        let options = LoadOptions { yaml_mode, home: &home, harnesses: &self.harnesses };
        let mut loaded = fleet_core::config::load(&sources, &options);
        if let Some(fleet) = loaded.fleet {
            let trust = ConfigTrust { layout, explicit: config, uid: self.world.uid };
            let mut found = file_trust(store, &*probe, &fleet, &trust);
            found.extend(briefing_files(store, &*probe, &fleet));
            if found.is_empty() {
                return Ok(LoadedFleet { fleet, warnings: loaded.diagnostics, base_missing });
            }
            loaded.diagnostics.extend(found);
        }
        Err(LoadFleetError::Invalid(loaded.diagnostics))
    }

    /// The four trees of a role.
    pub fn trees(&self, role: &RoleName) -> RoleTrees {
        self.world.layout.role(role)
    }

    /// The address of a role's console.
    pub fn console_address(&self, role: &RoleName) -> TmuxAddress {
        let socket = plan::tmux_socket(&self.trees(role), &self.runtime_dir);
        TmuxAddress { socket, session: role.clone() }
    }

    /// A role's console.
    pub fn console(&self, role: &RoleName) -> Arc<dyn Tmux> {
        self.ports.tmux.server(self.console_address(role))
    }
}
