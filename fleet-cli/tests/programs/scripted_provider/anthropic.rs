//! The Anthropic Messages API, as Claude Code speaks it.

use serde_json::{Value, json};

use super::record::ToolResult;
use super::script::{Action, Step};
use super::turns::Turn;
use super::{Answer, Event, Input, fresh_id, pieces};

/// Names of the tools that were offered.
pub(crate) fn tools(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

/// Whether this is no turn of the conversation: it offers no tools, or asks what the user might say.
pub(crate) fn is_side(body: &Value, turns: &[Turn]) -> bool {
    let last = turns.iter().rev().find_map(|turn| match turn {
        Turn::User(text) => Some(text.as_str()),
        _ => None,
    });
    tools(body).is_empty() || last.is_some_and(|text| text.contains("[SUGGESTION MODE"))
}

/// The text of a content: a string, or the text blocks of a list.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// What the user said, without what the harness reminds the model of: a reminder may repeat an old
/// prompt. One kind of it holds new words: what was typed while the model worked.
pub(crate) fn said(text: &str) -> String {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    const TYPED_MEANWHILE: &str = "sent a new message while you were working";
    let mut said = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        said.push_str(&rest[..at]);
        rest = &rest[at + OPEN.len()..];
        let end = rest.find(CLOSE).unwrap_or(rest.len());
        if let Some(at) = rest[..end].find(TYPED_MEANWHILE) {
            said.push_str(&rest[at + TYPED_MEANWHILE.len()..end]);
        }
        rest = rest[end..].strip_prefix(CLOSE).unwrap_or_default();
    }
    said.push_str(rest);
    said
}

fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

/// The conversation of a request.
pub(crate) fn turns(body: &Value) -> Vec<Turn> {
    // Claude Code writes this answer itself when a turn was broken off.
    const NOT_OURS: &str = "No response requested.";
    let mut turns = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        if message["role"] == "assistant" && text_of(&message["content"]) != NOT_OURS {
            turns.push(Turn::Model);
        }
        // There are messages of the system between those of the two speakers.
        if message["role"] != "user" {
            continue;
        }
        let mut words = Vec::new();
        for block in blocks(message) {
            match block["type"].as_str() {
                Some("tool_result") => turns.push(Turn::Tool(text_of(&block["content"]))),
                Some("text") => words.push(said(block["text"].as_str().unwrap_or_default())),
                _ => {}
            }
        }
        let words = words.join("\n");
        if !words.trim().is_empty() {
            turns.push(Turn::User(words.trim().to_owned()));
        }
    }
    turns
}

/// What tools answered since the last answer of the model.
pub(crate) fn told(body: &Value) -> Vec<ToolResult> {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let newest = messages.iter().rposition(|message| message["role"] == "assistant");
    messages[newest.map_or(0, |at| at + 1)..]
        .iter()
        .flat_map(blocks)
        .filter(|block| block["type"] == "tool_result")
        .map(|block| ToolResult {
            call: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
            text: text_of(&block["content"]),
            error: block["is_error"] == true,
        })
        .collect()
}

/// A step in the words of the harness. A tool that was not offered is called all the same: a test
/// may want to see it refused.
pub(crate) fn answer(step: &Step, body: &Value) -> Answer {
    let offered = tools(body);
    let call = |name: String, input: Value| Answer::Call {
        name,
        namespace: None,
        input: Input::Json(input),
    };
    let known = |name: &str| {
        let same = offered.iter().find(|other| other.eq_ignore_ascii_case(name));
        same.cloned().unwrap_or_else(|| name.to_owned())
    };
    match &step.action {
        Action::Say(text) => Answer::Text(text.clone()),
        Action::Status { message, .. } => Answer::Text(message.clone()),
        Action::Run(command) => {
            call(known("Bash"), json!({ "command": command, "description": "scripted command" }))
        }
        Action::Read(path) => call(known("Read"), json!({ "file_path": path })),
        Action::Write { path, content } => {
            call(known("Write"), json!({ "file_path": path, "content": content }))
        }
        Action::Edit { path, old, new } => {
            call(known("Edit"), json!({ "file_path": path, "old_string": old, "new_string": new }))
        }
        Action::Mcp { server, tool, args } => {
            call(known(&format!("mcp__{server}__{tool}")), args.clone())
        }
        Action::Tool { name, input, .. } => call(name.clone(), input.clone()),
    }
}

fn message(body: &Value, answer: &Answer, model: &str) -> Value {
    let (block, stop) = match answer {
        Answer::Text(text) => (json!({ "type": "text", "text": text }), "end_turn"),
        Answer::Call { name, input, .. } => {
            let input = match input {
                Input::Json(value) => value.clone(),
                Input::Free(text) => Value::from(text.as_str()),
            };
            let id = fresh_id("toolu");
            (json!({ "type": "tool_use", "id": id, "name": name, "input": input }), "tool_use")
        }
    };
    json!({
        "id": fresh_id("msg"), "type": "message", "role": "assistant",
        "model": body["model"].as_str().unwrap_or(model),
        "content": [block], "stop_reason": stop, "stop_sequence": null,
        "usage": { "input_tokens": 10, "output_tokens": 5,
                   "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 },
    })
}

/// The answer as one message.
pub(crate) fn whole(body: &Value, answer: &Answer, model: &str) -> Value {
    message(body, answer, model)
}

/// The answer as a stream.
pub(crate) fn events(body: &Value, answer: &Answer, model: &str, piece: usize) -> Vec<Event> {
    let mut head = message(body, answer, model);
    let mut block = head["content"][0].clone();
    let stop = head["stop_reason"].clone();
    head["content"] = json!([]);
    head["stop_reason"] = Value::Null;
    head["usage"]["output_tokens"] = json!(1);
    let deltas: Vec<Value> = match answer {
        Answer::Text(text) => {
            block["text"] = json!("");
            let texts = pieces(text, piece).into_iter();
            texts.map(|text| json!({ "type": "text_delta", "text": text })).collect()
        }
        Answer::Call { .. } => {
            let input = block["input"].to_string();
            block["input"] = json!({});
            let parts = pieces(&input, piece).into_iter();
            parts.map(|part| json!({ "type": "input_json_delta", "partial_json": part })).collect()
        }
    };
    let start = json!({ "type": "content_block_start", "index": 0, "content_block": block });
    let mut events = vec![
        ("message_start", json!({ "type": "message_start", "message": head })),
        ("content_block_start", start),
    ];
    for delta in deltas {
        let delta = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
        events.push(("content_block_delta", delta));
    }
    let delta = json!({
        "type": "message_delta", "usage": { "output_tokens": 5 },
        "delta": { "stop_reason": stop, "stop_sequence": null },
    });
    events.push(("content_block_stop", json!({ "type": "content_block_stop", "index": 0 })));
    events.push(("message_delta", delta));
    events.push(("message_stop", json!({ "type": "message_stop" })));
    events
}

/// The body of an HTTP error.
pub(crate) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
