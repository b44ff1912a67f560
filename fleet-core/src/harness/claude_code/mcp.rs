//! Servers of the Model Context Protocol: their grammar, and the file that names them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::options::Problems;
use crate::config::keys::{Key, Kind, TEXTS, key, names};
use crate::redact::Redacted;

/// The name of fleet's own messaging bridge.
pub(super) const OURS: &str = "ours";

const TYPES: &[&str] = &["stdio", "http", "sse"];
/// What is written of a server.
pub(super) const TABLE: &[Key] = &[
    key("args", TEXTS, "[]", "Arguments of the command."),
    key("command", Kind::Text, "", "The program of a local server."),
    key("env", Kind::Names(&Kind::Text), "{}", "Environment of a local server."),
    key("headers", Kind::Names(&Kind::Text), "{}", "Headers for a remote server."),
    key("type", Kind::Words(TYPES), "stdio", "How it is reached."),
    key("url", Kind::Text, "", "Where a remote server is."),
];
const LOCAL: &[&str] = &["args", "command", "env"];
const REMOTE: &[&str] = &["headers", "url"];

/// Servers by name, each as it goes into the file.
pub(super) type Servers = BTreeMap<String, Redacted<Map<String, Value>>>;

/// Reads `mcp_servers`.
pub(super) fn servers(value: &Value, problems: &mut Problems) -> Servers {
    let Some(written) = value.as_object() else {
        problems.add("mcp_servers", "must be a map of server names to servers");
        return Servers::new();
    };
    if written.is_empty() {
        problems.add("mcp_servers", "must name at least one server");
    }
    let mut servers = Servers::new();
    for (name, value) in written {
        let path = format!("mcp_servers.{name}");
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        if name.is_empty() || !name.chars().all(plain) {
            problems.add(&path, "a server name holds letters, digits, `_` and `-` only");
        } else if name.starts_with("ours__") {
            let message = "the tools of such a name would pass for those of the server `ours`";
            problems.add(&path, message);
        } else if let Some(server) = value.as_object() {
            check(server, &path, problems);
            let mut server = server.clone();
            server.entry("type").or_insert_with(|| json!(TYPES[0]));
            servers.insert(name.clone(), Redacted::new(server));
        } else {
            problems.add(&path, "must be a map");
        }
    }
    servers
}

fn check(server: &Map<String, Value>, path: &str, problems: &mut Problems) {
    let kind = match server.get("type") {
        None => Some(TYPES[0]),
        Some(value) => TYPES.iter().copied().find(|kind| value.as_str() == Some(kind)),
    };
    let Some(kind) = kind else {
        problems.with_allowed(&format!("{path}.type"), "is not a known value", TYPES);
        return;
    };
    let (meant, required) = if kind == TYPES[0] { (LOCAL, "command") } else { (REMOTE, "url") };
    if !server.contains_key(required) {
        problems.add(&format!("{path}.{required}"), "is required");
    }
    for (key, value) in server {
        let path = format!("{path}.{key}");
        match key.as_str() {
            "type" => {}
            key if names(TABLE).all(|name| name != key) => {
                problems.unknown_key(&path, &names(TABLE).collect::<Vec<_>>());
            }
            key if !meant.contains(&key) => {
                problems.add(&path, "has no meaning for a server of this type");
            }
            "args" => match value.as_array() {
                Some(items) => {
                    for (index, item) in items.iter().enumerate() {
                        text(item, &format!("{path}[{index}]"), problems);
                    }
                }
                None => problems.add(&path, "must be a list of texts"),
            },
            "env" | "headers" => match value.as_object() {
                Some(entries) => {
                    for (name, value) in entries {
                        entry(name, value, &path, problems);
                    }
                }
                None => problems.add(&path, "must be a map of names to texts"),
            },
            _ => match value.as_str() {
                Some(text) if text.trim().is_empty() => {
                    problems.add(&path, "must be a non-empty text");
                }
                Some(_) => text(value, &path, problems),
                None => problems.add(&path, "must be a non-empty text"),
            },
        }
    }
}

fn entry(name: &str, value: &Value, path: &str, problems: &mut Problems) {
    if name.is_empty() || name.contains(|it: char| it == '=' || it.is_control()) {
        let message = "holds a name that is empty or holds `=` or a control character";
        problems.add(path, message);
    } else {
        text(value, &format!("{path}.{name}"), problems);
    }
}

/// Texts go into argv, environment and headers of a server, where a control character ends one.
fn text(value: &Value, path: &str, problems: &mut Problems) {
    match value.as_str() {
        None => problems.add(path, "must be a text: quote it"),
        Some(text) if text.contains(|it: char| it.is_control()) => {
            problems.add(path, "holds a control character");
        }
        Some(_) => {}
    }
}

/// The text of `mcp-config.json`. A server named like the messaging bridge is left out.
pub(super) fn file(servers: &Servers) -> Redacted<String> {
    let kept: Map<String, Value> = servers
        .iter()
        .filter(|(name, _)| *name != OURS)
        .map(|(name, server)| (name.clone(), Value::Object(server.expose().clone())))
        .collect();
    Redacted::new(json!({ "mcpServers": kept }).to_string())
}
