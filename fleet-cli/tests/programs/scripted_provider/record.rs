//! The log: what the model was asked and told, and what it answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One answer of a tool, as the harness hands it to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolResult {
    /// The id of the call.
    pub(crate) call: String,
    pub(crate) text: String,
    /// Whether the harness marked it as a failure; Codex never does.
    pub(crate) error: bool,
}

/// One request to the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) path: String,
    /// A title, a summary, a classifier: no turn of the conversation.
    pub(crate) side: bool,
    /// The step that was due.
    pub(crate) step: Value,
    /// `answered`, `status N`, `cut` or `refused`.
    pub(crate) outcome: String,
    /// `{"text"}` or `{"tool", "input"}`.
    pub(crate) answer: Value,
    /// The tools that were offered.
    pub(crate) tools: Vec<String>,
    /// What tools answered since the last answer of the model.
    pub(crate) told: Vec<ToolResult>,
    /// The newest text of the user.
    pub(crate) user: String,
    /// Without secrets.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// Headers by name in lower case, the values of secret ones masked.
pub(crate) fn masked(headers: &[(String, String)]) -> BTreeMap<String, String> {
    const SECRET: [&str; 6] = ["auth", "key", "token", "cookie", "secret", "credential"];
    headers
        .iter()
        .map(|(name, value)| {
            let secret = SECRET.iter().any(|word| name.contains(word));
            (name.clone(), if secret { "…".to_owned() } else { value.clone() })
        })
        .collect()
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let age = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    age.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
}
