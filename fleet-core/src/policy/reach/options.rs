//! `harness_options` in comparable form. What an option grants only its harness knows, so a new or
//! changed one counts as wider, except for those that are known to grant nothing.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{BOUNDS, exact};
use crate::harness::Options;
use crate::path::LexicalPath;
use crate::policy::order::{Dimension, Grant, Reach, Value};

/// What an option means for the reach of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Nothing.
    Neutral,
    /// Which program runs.
    Program,
    /// Compared as a path.
    Path,
    /// Compared by the approval and the bound that it amounts to.
    Native,
    /// `false` grants, `true` does not.
    Inverted,
    /// Switches: `true` and an absent one may grant, `false` does not.
    Switches,
}

/// Options by name, whichever harness has them. Of those that are not listed, `false` grants nothing.
const MEANINGS: &[(&str, Meaning)] = &[
    ("add_dirs", Meaning::Path),
    ("approval", Meaning::Native),
    ("argv", Meaning::Program),
    ("busy", Meaning::Neutral),
    ("effort", Meaning::Neutral),
    ("launcher", Meaning::Program),
    ("mcp_servers_only", Meaning::Inverted),
    ("modal", Meaning::Neutral),
    ("monitor", Meaning::Neutral),
    ("permission_mode", Meaning::Native),
    ("plugins", Meaning::Switches),
    ("ready", Meaning::Neutral),
    ("resume_argv", Meaning::Program),
    ("sandbox", Meaning::Native),
];

const SERVERS: &str = "mcp_servers";

/// The directories of `add_dirs` that are plain paths, with their places.
pub(super) fn add_dirs(options: &Options) -> Vec<(usize, LexicalPath)> {
    let list = options.get("add_dirs").and_then(Json::as_array);
    let texts = list.into_iter().flatten().map(|entry| entry.as_str().unwrap_or_default());
    texts
        .enumerate()
        .filter_map(|(index, text)| Some((index, LexicalPath::absolute(text).ok()?)))
        .collect()
}

/// Adds what the options grant. `ordered`: the harness says what its native settings amount to, so
/// that they are compared by that.
pub(super) fn add(reach: &mut Reach, options: &Options, ordered: bool) {
    reach.guards(Dimension::SwitchedOff, "harness_options", true);
    let mut servers: BTreeMap<String, Server> = BTreeMap::new();
    for (name, value) in options {
        let meaning = MEANINGS.iter().find(|(known, _)| known == name).map(|(_, meaning)| *meaning);
        let meaning = match meaning {
            Some(Meaning::Native) if !ordered || !is_ordered(name, value) => None,
            other => other,
        };
        let mut leaves = Vec::new();
        flatten(name, value, &mut leaves);
        for (path, leaf) in leaves {
            match meaning {
                Some(Meaning::Neutral | Meaning::Path | Meaning::Native) => {}
                Some(Meaning::Program) => {
                    let first = leaf.get(0).and_then(Json::as_str);
                    let shown = first.map_or_else(|| "set".to_owned(), program);
                    push(reach, Dimension::Program, &path, exact(shown, leaf.to_string()));
                }
                Some(Meaning::Inverted) => {
                    if leaf.as_bool() != Some(true) {
                        push(reach, Dimension::Options, &path, exact("false", leaf.to_string()));
                    }
                }
                Some(Meaning::Switches) if leaf.as_bool() == Some(false) => {
                    push(reach, Dimension::SwitchedOff, &path, Value::Word);
                }
                Some(Meaning::Switches) | None => option(reach, &path, leaf, &mut servers),
            }
        }
    }
    for (key, server) in servers {
        let shown = server.shown.unwrap_or_else(|| "set".to_owned());
        let value = exact(shown, server.parts.join("\0"));
        let grant = Grant {
            subject: server.name,
            value,
            key: format!("harness_options.{key}"),
            written: true,
        };
        reach.add(Dimension::Mcp, grant);
    }
}

/// Whether the value of a native option has a place in the order of bounds; approvals always have.
fn is_ordered(name: &str, value: &Json) -> bool {
    let mut bounds = BOUNDS.iter().filter(|(key, _, _)| *key == name);
    name != "sandbox" || bounds.any(|(_, known, _)| value.as_str() == Some(known))
}

/// What is written of one MCP server.
#[derive(Default)]
struct Server {
    name: String,
    parts: Vec<String>,
    shown: Option<String>,
}

fn option(reach: &mut Reach, path: &str, leaf: &Json, servers: &mut BTreeMap<String, Server>) {
    let words: Vec<&str> = path.split('.').collect();
    if let Some(at) = words.iter().position(|word| *word == SERVERS)
        && let Some(name) = words.get(at + 1)
    {
        let server = servers.entry(words[..at + 2].join(".")).or_default();
        (*name).clone_into(&mut server.name);
        let rest = &words[at + 2..];
        let part = match (rest.first().copied(), leaf) {
            // The values are secrets that nobody can compare; which there are is told by the names.
            (Some("env" | "headers" | "http_headers"), _) => rest.join("."),
            (Some("command"), Json::String(text)) => {
                server.shown = Some(program(text));
                format!("command {text}")
            }
            (Some("url"), Json::String(text)) => {
                server.shown = Some(host(text));
                format!("url {text}")
            }
            _ => format!("{} {leaf}", rest.join(".")),
        };
        server.parts.push(part);
        return;
    }
    match leaf {
        // What is off or empty grants nothing.
        Json::Bool(false) | Json::Null => {}
        Json::Bool(true) => push(reach, Dimension::Options, path, exact("true", "true")),
        Json::Array(items) => {
            for item in items {
                push(reach, Dimension::Options, path, exact("another list", item.to_string()));
            }
        }
        Json::Object(_) | Json::Number(_) | Json::String(_) => {
            push(reach, Dimension::Options, path, exact("another value", leaf.to_string()));
        }
    }
}

fn push(reach: &mut Reach, dimension: Dimension, path: &str, value: Value) {
    let key = format!("harness_options.{path}");
    reach.add(dimension, Grant { subject: path.to_owned(), value, key, written: true });
}

/// Every value that is no map, with its dotted path, in the order of the keys.
fn flatten<'a>(path: &str, value: &'a Json, leaves: &mut Vec<(String, &'a Json)>) {
    match value.as_object() {
        Some(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, value) in entries {
                flatten(&format!("{path}.{key}"), value, leaves);
            }
        }
        None => leaves.push((path.to_owned(), value)),
    }
}

/// A program as it may be shown: its name, without what else may stand in the text.
fn program(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

/// The host of an address, without user, path and query, which may hold secrets.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}
