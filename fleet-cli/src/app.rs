//! What every command gets: the runtime of the drivers, settings and a printer. Tests build it from
//! fakes.

use std::sync::Arc;

use fleet_adapters::runner::Runtime;
use fleet_core::isolation::BackendName;
use fleet_core::port::{IsolationBackend, PathProbe};

use crate::settings::Settings;
use crate::supervision::Supervision;
use crate::ui::Printer;

/// Everything a command works with.
#[derive(Debug)]
pub struct App {
    /// Ports, harnesses and the account.
    pub runtime: Runtime,
    /// What starts roles here.
    pub supervision: Supervision,
    /// What the environment and the command line decide beyond that.
    pub settings: Settings,
    /// Output.
    pub printer: Printer,
}

impl App {
    /// A probe for one judgement.
    pub fn probe(&self) -> Box<dyn PathProbe> {
        self.runtime.ports.paths.fresh()
    }

    /// Gives the user the state tree back, before anything is looked for in it, and says so.
    pub fn mend(&self) {
        for line in fleet_adapters::runner::mend(&self.runtime) {
            self.printer.warn(line);
        }
    }

    /// The isolation backend of this name, if this build has it.
    pub fn backend(&self, name: BackendName) -> Option<&Arc<dyn IsolationBackend>> {
        self.runtime.ports.backends.iter().find(|backend| backend.name() == name)
    }
}
