//! Scripts: lists of steps, written into prompts as `@@[…]`.
//!
//! A step is one of these, plus any of `sleep` (seconds), `hold` (until `POST /_release`) and
//! `escalate` (Codex: ask for the command outside its sandbox, with this reason):
//!
//! ```json
//! {"say": "text"}
//! {"run": "shell command"}
//! {"read": "/path"}
//! {"write": {"path": "/p", "content": "whole lines\n"}}
//! {"edit": {"path": "/p", "old": "whole lines", "new": "whole lines"}}
//! {"mcp": {"server": "s", "tool": "t", "args": {}}}
//! {"tool": "Name", "input": {}, "namespace": "only for Responses"}
//! {"status": 529, "message": "overloaded", "retryAfter": 1}
//! ```

use std::time::Duration;

use serde_json::Value;

const MARK: &str = "@@";

/// What the model does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Say(String),
    Run(String),
    Read(String),
    Write { path: String, content: String },
    Edit { path: String, old: String, new: String },
    Mcp { server: String, tool: String, args: Value },
    Tool { name: String, input: Value, namespace: Option<String> },
    Status { status: u16, message: String, retry_after: Option<u64> },
}

/// One step of a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) sleep: Duration,
    pub(crate) hold: bool,
    pub(crate) escalate: Option<String>,
    /// As it was written, for the log.
    pub(crate) raw: Value,
}

const ACTIONS: [&str; 8] = ["say", "run", "read", "write", "edit", "mcp", "tool", "status"];
/// Keys beside the action, and the action they belong to (any when empty).
const OTHERS: [(&str, &str); 7] = [
    ("sleep", ""),
    ("hold", ""),
    ("escalate", ""),
    ("input", "tool"),
    ("namespace", "tool"),
    ("message", "status"),
    ("retryAfter", "status"),
];

impl Step {
    /// A step that says this.
    pub(crate) fn say(text: &str) -> Self {
        Self::of(Action::Say(text.to_owned()), serde_json::json!({ "say": text }))
    }

    /// A step that reads this file.
    pub(crate) fn read(path: &str) -> Self {
        Self::of(Action::Read(path.to_owned()), serde_json::json!({ "read": path }))
    }

    fn of(action: Action, raw: Value) -> Self {
        Self { action, sleep: Duration::ZERO, hold: false, escalate: None, raw }
    }

    /// Reads one step; an error names what is wrong with it.
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        let object = value.as_object().ok_or_else(|| format!("not an object: {value}"))?;
        let mut actions = ACTIONS.into_iter().filter(|name| object.contains_key(*name));
        let name = actions.next().ok_or_else(|| format!("none of {ACTIONS:?} in {value}"))?;
        if let Some(second) = actions.next() {
            return Err(format!("both {name} and {second} in {value}"));
        }
        for key in object.keys().filter(|key| *key != name) {
            match OTHERS.iter().find(|(other, _)| other == key) {
                Some((_, owner)) if owner.is_empty() || *owner == name => {}
                _ => return Err(format!("unknown key {key} in {value}")),
            }
        }
        let sleep = match object.get("sleep") {
            None => Duration::ZERO,
            Some(seconds) => seconds
                .as_f64()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| format!("sleep is no number of seconds in {value}"))?,
        };
        let escalate =
            object.get("escalate").map(|why| text(why, "escalate", value)).transpose()?;
        let hold = match object.get("hold") {
            None => false,
            Some(hold) => hold.as_bool().ok_or_else(|| format!("hold is no bool in {value}"))?,
        };
        let action = action(name, &object[name], value)?;
        Ok(Self { action, sleep, hold, escalate, raw: value.clone() })
    }
}

fn text(value: &Value, name: &str, step: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{name} is no text in {step}"))
}

fn action(name: &str, value: &Value, step: &Value) -> Result<Action, String> {
    let field = |key: &str| text(&value[key], key, step);
    Ok(match name {
        "say" => Action::Say(text(value, name, step)?),
        "run" => Action::Run(text(value, name, step)?),
        "read" => Action::Read(text(value, name, step)?),
        "write" => Action::Write { path: field("path")?, content: field("content")? },
        "edit" => Action::Edit { path: field("path")?, old: field("old")?, new: field("new")? },
        "mcp" => Action::Mcp {
            server: field("server")?,
            tool: field("tool")?,
            args: value.get("args").cloned().unwrap_or_else(|| serde_json::json!({})),
        },
        "tool" => Action::Tool {
            name: text(value, name, step)?,
            input: step.get("input").cloned().unwrap_or_else(|| serde_json::json!({})),
            namespace: step
                .get("namespace")
                .map(|space| text(space, "namespace", step))
                .transpose()?,
        },
        _ => Action::Status {
            status: status(value).ok_or_else(|| format!("no HTTP error status in {step}"))?,
            message: step["message"].as_str().unwrap_or("scripted error").to_owned(),
            retry_after: step["retryAfter"].as_u64(),
        },
    })
}

/// An HTTP status that is an error.
pub(crate) fn status(value: &Value) -> Option<u16> {
    value
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code))
}

/// Reads a whole script.
pub(crate) fn parse_script(value: &Value) -> Result<Vec<Step>, String> {
    let list = value.as_array().ok_or_else(|| "a script is a list of steps".to_owned())?;
    list.iter().map(Step::parse).collect()
}

/// The last script in a text. A script quoted inside another one is none.
///
/// A list that is no script becomes one that says what is wrong with it, so that a slip shows.
pub(crate) fn find_script(text: &str) -> Option<Vec<Step>> {
    let mut found = None;
    let mut rest = text;
    while let Some(at) = rest.find("@@[") {
        rest = &rest[at + MARK.len()..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            rest = &rest[values.byte_offset()..];
            found = Some(
                parse_script(&value)
                    .unwrap_or_else(|error| vec![Step::say(&format!("(bad script: {error})"))]),
            );
        }
    }
    found
}
