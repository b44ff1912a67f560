use fleet_core::redact::{MARKER, is_secret_key};
use serde_json::{Map, Value};

/// Hides what may be secret in options (01 §1.18): every value below a key that holds an environment
/// or headers, values whose key says so at any depth, user names and passwords in URLs, and values of
/// `key=value` words and URL queries whose key says so. A key may be a dotted path, as Codex has them.
pub fn redacted(options: &Map<String, Value>) -> Value {
    let mut shown = Map::new();
    for (key, value) in options {
        shown.insert(key.clone(), keyed(key, value));
    }
    Value::Object(shown)
}

/// Keys below which every value is hidden: environments, headers, and `shell_environment_policy.set`.
const WHOLE: &[&str] = &["env", "headers", "http_headers", "set"];

fn keyed(key: &str, value: &Value) -> Value {
    let whole = || key.split('.').any(|part| WHOLE.contains(&part.trim_matches(['"', '\''])));
    if is_secret_key(key) || whole() { hidden(value) } else { plain(value) }
}

/// The shape with every value replaced; names of entries stay.
fn hidden(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.keys().map(|key| (key.clone(), MARKER.into())).collect())
        }
        _ => MARKER.into(),
    }
}

fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(key, value)| (key.clone(), keyed(key, value))).collect(),
        ),
        Value::Array(items) => Value::Array(list(items)),
        Value::String(text) => Value::String(word(text)),
        other => other.clone(),
    }
}

/// A list of words; the one after a switch whose name says so is hidden too.
fn list(items: &[Value]) -> Vec<Value> {
    let mut hide_next = false;
    let mut shown = Vec::with_capacity(items.len());
    for item in items {
        let hide = std::mem::take(&mut hide_next) && item.is_string();
        hide_next = item.as_str().is_some_and(|text| {
            text.starts_with('-') && !text.contains('=') && is_secret_key(text)
        });
        shown.push(if hide { MARKER.into() } else { plain(item) });
    }
    shown
}

fn word(text: &str) -> String {
    let text = url_user(text);
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(['?', '&', ' ', '\n', ';']) {
        let body = piece.trim_end_matches(['?', '&', ' ', '\n', ';']);
        match body.split_once('=') {
            Some((key, value)) if is_secret_key(key) && !value.is_empty() => {
                shown.push_str(key);
                shown.push('=');
                shown.push_str(MARKER);
                shown.push_str(&piece[body.len()..]);
            }
            _ => shown.push_str(piece),
        }
    }
    shown
}

/// Hides `user:password@` after each `://`.
fn url_user(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        shown.push_str(head);
        let end = tail.find(['/', '?', '#', ' ', '"', '\'']).unwrap_or(tail.len());
        match tail[..end].rfind('@') {
            Some(user) => {
                shown.push_str(MARKER);
                rest = &tail[user..];
            }
            None => rest = tail,
        }
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_by_place_and_by_name() {
        let options: Value = serde_json::json!({
            "argv": ["run", "--api-key", "CANARY", "--token=CANARY", "-v",
                "https://me:CANARY@host/x?token=CANARY&n=1", "A_SECRET=CANARY"],
            "config": { "model": { "auth_token": "CANARY" }, "list": [{ "password": ["CANARY"] }] },
            "flat": { "mcp_servers.x.env.PLAIN": "CANARY", "mcp_servers.'x'.\"env\"": {"A": "CANARY"},
                "model_providers.x.http_headers.X": "CANARY",
                "shell_environment_policy.set.PLAIN": "CANARY", "model_providers.x.name": "shown",
                "mcp_servers": { "x": { "env": { "A": "CANARY" }, "http_headers": {"A": "CANARY"} } } },
            "mcp_servers": { "x": {
                "command": "run", "env": { "PLAIN": "CANARY" }, "headers": { "X": "CANARY" } } },
            "model": "large",
        });
        let Value::Object(options) = options else { panic!("an object") };
        let shown = redacted(&options);
        let text = shown.to_string();
        assert!(!text.contains("CANARY"), "{text}");
        assert_eq!(shown["argv"][4], "-v");
        assert_eq!(shown["argv"][5], "https://<redacted>@host/x?token=<redacted>&n=1");
        assert_eq!(shown["mcp_servers"]["x"]["env"]["PLAIN"], MARKER);
        assert_eq!(shown["mcp_servers"]["x"]["command"], "run");
        assert_eq!(shown["flat"]["model_providers.x.name"], "shown");
        assert_eq!(shown["model"], "large");
    }
}
