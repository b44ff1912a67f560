//! The log of one runner: dated lines in `control/<Role>/runner.log`.

use std::sync::Arc;

use camino::Utf8PathBuf;
use fleet_core::port::{Clock, StateStore};

/// A log that has grown to this moves aside; one old log is kept (02 §2.2).
const MAX_LOG: u64 = 10 * 1024 * 1024;

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
        drop(self.store.rotate(
            &self.path,
            &Utf8PathBuf::from(format!("{}.1", self.path)),
            MAX_LOG,
        ));
        drop(self.store.append_line(&self.path, line.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use fleet_core::id::Timestamp;
    use fleet_core::test_support::fakes::{ManualClock, MemoryStore};

    use super::*;

    #[test]
    fn w30_a_log_is_bounded_and_its_last_lines_are_kept() {
        let (store, path) = (MemoryStore::default(), Utf8PathBuf::from("/control/runner.log"));
        let log = RunnerLog::new(
            Arc::new(store.clone()),
            Arc::new(ManualClock::new(Timestamp::default())),
            path.clone(),
        );
        let full = vec![b'x'; usize::try_from(MAX_LOG).expect("it fits")];
        store.put(&path, &full);
        log.info("next");
        let old = store.content(&Utf8PathBuf::from("/control/runner.log.1")).expect("kept");
        assert_eq!(old.len(), full.len());
        let now = String::from_utf8(store.content(&path).expect("begun again")).expect("text");
        assert!(now.ends_with(" info next\n") && now.lines().count() == 1, "{now}");
        log.warn("small logs stay");
        assert_eq!(
            store.content(&path).expect("it grows").split(|byte| *byte == b'\n').count() - 1,
            2
        );
    }
}
