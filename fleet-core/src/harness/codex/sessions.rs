//! The conversations that Codex recorded. The agent can write these files, so whatever is odd is no
//! conversation.

use serde::Deserialize;

use crate::harness::{SessionFiles, SessionMeta};

/// `sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`, below the config home.
pub(super) const SESSION_FILES: SessionFiles =
    SessionFiles { directory: "sessions", depth: 3, parse };

/// The first line holds the instructions of the model: 22 KiB were seen.
const LONGEST_LINE: usize = 1 << 20;
/// Longest path of a working directory.
const LONGEST_CWD: usize = 4096;
const UUID: usize = 36;

#[derive(Deserialize)]
struct Line {
    r#type: String,
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    id: String,
    cwd: String,
    /// A text for a program that a person started, an object for a helper that the model started.
    source: serde_json::Value,
    #[serde(default)]
    thread_source: Option<String>,
}

/// The conversation of a rollout file. `None` for one that is not of the console itself: a helper of
/// the model, or a `codex exec` that the agent ran in its own home.
fn parse(name: &str, first_line: &str) -> Option<SessionMeta> {
    if first_line.len() > LONGEST_LINE {
        return None;
    }
    let stem = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    let named = stem.get(stem.len().checked_sub(UUID)?..)?;
    let line: Line = serde_json::from_str(first_line).ok()?;
    let Payload { id, cwd, source, thread_source } = line.payload;
    let own = line.r#type == "session_meta"
        && source == "cli"
        && thread_source.is_none_or(|thread| thread == "user");
    let sound = is_uuid(&id)
        && id == named
        && cwd.starts_with('/')
        && cwd.len() <= LONGEST_CWD
        && !cwd.chars().any(char::is_control);
    if own && sound { Some(SessionMeta { id: id.parse().ok()?, cwd }) } else { None }
}

/// Whether a text is a UUID in the usual form. Anything else `codex resume` takes for a name.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == UUID
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
