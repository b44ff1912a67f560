//! The event log of one role: dated, numbered lines in `control/<Role>/session-events.jsonl` (02
//! §7.5). No bodies: nothing of what was said or given to a tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::id::Timestamp;
use fleet_core::port::StateStore;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A log that has grown to this moves aside; one old log is kept.
const MAX_LOG: u64 = 2 * 1024 * 1024;
/// A last line may stand above the limit.
const MAX_READ: u64 = 2 * MAX_LOG;

/// Appends events. A failed write is dropped: observability never stops a role.
#[derive(Debug)]
pub struct EventLog {
    store: Arc<dyn StateStore>,
    path: Utf8PathBuf,
    old: Utf8PathBuf,
    next: AtomicU64,
}

#[derive(Debug, Deserialize)]
struct Numbered {
    seq: u64,
}

impl EventLog {
    /// The log at `path`; numbers go on above the highest that can be read. One writer a log.
    pub fn open(store: Arc<dyn StateStore>, path: Utf8PathBuf) -> Self {
        let old = Utf8PathBuf::from(format!("{path}.1"));
        let last = [&old, &path].into_iter().map(|path| highest(&*store, path)).max();
        let next = AtomicU64::new(last.unwrap_or_default().saturating_add(1));
        Self { store, path, old, next }
    }

    /// Appends one event. Members without a value are left out. Must hold no secret.
    pub fn append<'a>(
        &self,
        at: Timestamp,
        kind: &str,
        members: impl IntoIterator<Item = (&'static str, Option<&'a str>)>,
    ) {
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        let mut event = Map::new();
        event.insert("version".into(), json!(1));
        event.insert("seq".into(), json!(seq));
        event.insert("at".into(), json!(at.to_string()));
        event.insert("kind".into(), json!(kind));
        for (name, value) in members {
            if let Some(value) = value {
                event.insert(name.into(), json!(value));
            }
        }
        drop(self.store.rotate(&self.path, &self.old, MAX_LOG));
        drop(self.store.append_line(&self.path, Value::Object(event).to_string().as_bytes()));
    }
}

fn highest(store: &dyn StateStore, path: &Utf8Path) -> u64 {
    let Ok(Some(bytes)) = store.read(path, MAX_READ) else { return 0 };
    let seq = |line: &[u8]| serde_json::from_slice::<Numbered>(line).map_or(0, |line| line.seq);
    bytes.split(|byte| *byte == b'\n').map(seq).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use fleet_core::test_support::fakes::MemoryStore;

    use super::*;

    fn lines(store: &MemoryStore, path: &str) -> Vec<Value> {
        let bytes = store.content(Utf8Path::new(path)).unwrap_or_default();
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn numbers_go_on_over_restarts_damage_and_rotation() {
        let store = MemoryStore::default();
        store.ensure_dir("/c".into()).expect("a directory");
        let path = Utf8PathBuf::from("/c/session-events.jsonl");
        let open = || EventLog::open(Arc::new(store.clone()), path.clone());
        open().append(
            Timestamp::from_millis(0),
            "permission",
            [("tool", Some("Write")), ("x", None)],
        );
        let log = open();
        log.append(Timestamp::from_millis(0), "permission", []);
        let seen = lines(&store, path.as_str());
        assert_eq!(
            seen[0],
            json!({ "version": 1, "seq": 1, "at": "1970-01-01T00:00:00.000Z",
                    "kind": "permission", "tool": "Write" })
        );
        assert_eq!(seen[1]["seq"], 2);

        store.put(&path, b"{\"seq\":9}\nbroken\n{\"seq\":");
        open().append(Timestamp::from_millis(0), "error", []);
        let text = String::from_utf8(store.content(&path).expect("a log")).expect("UTF-8");
        assert!(text.lines().last().is_some_and(|line| line.contains("\"seq\":10")), "{text}");

        let mut full = text.into_bytes();
        full.resize(usize::try_from(MAX_LOG).expect("it fits"), b'x');
        store.put(&path, &full);
        open().append(Timestamp::from_millis(0), "error", []);
        assert_eq!(lines(&store, path.as_str())[0]["seq"], 11, "above the old log's");
        assert_eq!(lines(&store, path.as_str()).len(), 1, "a new log");
    }
}
