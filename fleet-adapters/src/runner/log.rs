//! The log of one runner: dated lines in `control/<Role>/runner.log`.

use std::sync::Arc;

use camino::Utf8PathBuf;
use fleet_core::port::{Clock, StateStore};

/// Writes dated lines. A failed write is dropped: observability never stops a role (02 §0 G8).
#[derive(Debug, Clone)]
pub struct RunnerLog {
    store: Arc<dyn StateStore>,
    clock: Arc<dyn Clock>,
    path: Utf8PathBuf,
}

impl RunnerLog {
    /// A log at `path`.
    pub fn new(store: Arc<dyn StateStore>, clock: Arc<dyn Clock>, path: Utf8PathBuf) -> Self {
        Self { store, clock, path }
    }

    /// Notes something that happened. Must hold no secret.
    pub fn info(&self, text: &str) {
        self.line("info", text);
    }

    /// Notes something that a person should look at. Must hold no secret.
    pub fn warn(&self, text: &str) {
        self.line("warn", text);
    }

    fn line(&self, level: &str, text: &str) {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let line = format!("{} {level} {text}", self.clock.now());
        drop(self.store.append_line(&self.path, line.as_bytes()));
    }
}
