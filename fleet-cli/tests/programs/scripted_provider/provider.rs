//! A model provider that follows a script, for tests of real coding agents without a model.
//!
//! What to answer is read from the conversation alone, so resumed, forked and concurrent sessions
//! all work. The newest user text that holds `@@[…]` is the script; the number of model answers since
//! then picks the step.

pub(crate) mod anthropic;
pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod outage;
pub(crate) mod record;
pub(crate) mod responses;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod turns;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// What the model answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Text(String),
    /// A tool call, in the words of the harness.
    Call {
        name: String,
        /// Responses only: the group of tools that the name belongs to.
        namespace: Option<String>,
        input: Input,
    },
}

/// What a tool is called with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Json(Value),
    /// The text of a freeform ("custom") tool of the Responses API.
    Free(String),
}

impl Answer {
    /// The same for the log.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => serde_json::json!({ "text": text }),
            Self::Call { name, namespace, input } => {
                let input = match input {
                    Input::Json(value) => value.clone(),
                    Input::Free(text) => Value::from(text.as_str()),
                };
                let mut call = serde_json::json!({ "tool": name, "input": input });
                if let Some(namespace) = namespace {
                    call["namespace"] = Value::from(namespace.as_str());
                }
                call
            }
        }
    }
}

/// One event of a stream: its name and its data.
pub(crate) type Event = (&'static str, Value);

/// A name that no other answer has, in this process or in another one.
pub(crate) fn fresh_id(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
    format!("{prefix}_{now:x}{:x}{count:x}", std::process::id())
}

/// Pieces of a text, as a stream delivers them.
pub(crate) fn pieces(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// The answer to a side call: `reply`, or the least object that the requested schema accepts.
pub(crate) fn side_text(body: &Value, reply: &str) -> String {
    let schema = ["/text/format/schema", "/output_config/format/schema", "/output_format/schema"]
        .into_iter()
        .find_map(|place| body.pointer(place)?.get("properties")?.as_object());
    let Some(properties) = schema else { return reply.to_owned() };
    let least = |schema: &Value| match schema["enum"].get(0) {
        Some(first) => first.clone(),
        None => match schema["type"].as_str() {
            Some("boolean") => Value::from(false),
            Some("integer" | "number") => Value::from(0),
            Some("array") => Value::from(Vec::<Value>::new()),
            Some("object") => serde_json::json!({}),
            _ => Value::from("scripted"),
        },
    };
    let object: serde_json::Map<_, _> =
        properties.iter().map(|(name, schema)| (name.clone(), least(schema))).collect();
    Value::from(object).to_string()
}
