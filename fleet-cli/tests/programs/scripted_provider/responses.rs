//! The `OpenAI` Responses API, as Codex speaks it.
//!
//! Codex offers tools in three ways, by model: functions alone, functions with a freeform
//! `apply_patch`, and "code mode": one freeform tool `exec` whose input is JavaScript that calls the
//! others. Tools of MCP servers may lie in a namespace.

use serde_json::{Value, json};

use super::record::ToolResult;
use super::script::{Action, Step};
use super::turns::Turn;
use super::{Answer, Event, Input, fresh_id, pieces};

/// A tool that was offered.
#[derive(Debug)]
struct Tool {
    name: String,
    freeform: bool,
    namespace: Option<String>,
}

fn items(body: &Value) -> Vec<Value> {
    match &body["input"] {
        Value::String(text) => vec![json!({ "type": "message", "role": "user", "content": text })],
        Value::Array(items) => items.clone(),
        _ => Vec::new(),
    }
}

fn collect(tools: &Value, namespace: Option<&str>, found: &mut Vec<Tool>) {
    for tool in tools.as_array().into_iter().flatten() {
        if tool["type"] == "namespace" {
            collect(&tool["tools"], tool["name"].as_str(), found);
        } else if let Some(name) = tool["name"].as_str().or_else(|| tool["type"].as_str()) {
            found.push(Tool {
                name: name.to_owned(),
                freeform: tool["type"] == "custom",
                namespace: namespace.map(str::to_owned),
            });
        }
    }
}

/// Everything offered; newer models get their tools as an item of the input.
fn offered(body: &Value) -> Vec<Tool> {
    let mut found = Vec::new();
    collect(&body["tools"], None, &mut found);
    for item in items(body).iter().filter(|item| item["type"] == "additional_tools") {
        collect(&item["tools"], None, &mut found);
    }
    found
}

/// Names of the tools that were offered.
pub(crate) fn tools(body: &Value) -> Vec<String> {
    offered(body).into_iter().map(|tool| tool.name).collect()
}

/// Whether this is no turn of the conversation: it offers no tools, or asks for a title.
pub(crate) fn is_side(body: &Value, turn_metadata: Option<&str>) -> bool {
    let metadata: Value = serde_json::from_str(turn_metadata.unwrap_or("{}")).unwrap_or_default();
    offered(body).is_empty() || metadata["thread_source"] == "thread_title"
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn is_call(kind: &str) -> bool {
    matches!(kind, "function_call" | "custom_tool_call" | "local_shell_call")
}

fn is_result(kind: &str) -> bool {
    matches!(kind, "function_call_output" | "custom_tool_call_output" | "local_shell_call_output")
}

/// The conversation of a request.
pub(crate) fn turns(body: &Value) -> Vec<Turn> {
    let turn = |item: &Value| match item["type"].as_str().unwrap_or("message") {
        "message" if item["role"] == "user" => Some(Turn::User(text_of(&item["content"]))),
        "message" if item["role"] == "assistant" => Some(Turn::Model),
        kind if is_call(kind) => Some(Turn::Model),
        kind if is_result(kind) => Some(Turn::Tool(text_of(&item["output"]))),
        _ => None,
    };
    items(body).iter().filter_map(turn).collect()
}

/// What tools answered since the last answer of the model.
pub(crate) fn told(body: &Value) -> Vec<ToolResult> {
    let items = items(body);
    let newest = items.iter().rposition(|item| {
        item["role"] == "assistant" || item["type"].as_str().is_some_and(is_call)
    });
    items[newest.map_or(0, |at| at + 1)..]
        .iter()
        .filter(|item| item["type"].as_str().is_some_and(is_result))
        .map(|item| ToolResult {
            call: item["call_id"].as_str().unwrap_or_default().to_owned(),
            text: text_of(&item["output"]),
            error: false,
        })
        .collect()
}

/// One word of a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Lines of a patch, each with its sign.
fn signed(sign: char, text: &str) -> String {
    let mut signed = String::new();
    for line in if text.is_empty() { "\n" } else { text }.lines() {
        signed.push(sign);
        signed.push_str(line);
        signed.push('\n');
    }
    signed
}

/// The tools of one request, and how to call them.
struct Offer {
    tools: Vec<Tool>,
    escalate: Option<String>,
}

impl Offer {
    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Whether the ordinary tools are functions of JavaScript.
    fn code_mode(&self) -> bool {
        self.find("exec").is_some_and(|tool| tool.freeform) && self.find("exec_command").is_none()
    }

    fn function(name: &str, input: Value, namespace: Option<&str>) -> Answer {
        let namespace = namespace.map(str::to_owned);
        Answer::Call { name: name.to_owned(), namespace, input: Input::Json(input) }
    }

    fn freeform(name: &str, text: String) -> Answer {
        Answer::Call { name: name.to_owned(), namespace: None, input: Input::Free(text) }
    }

    fn code(name: &str, argument: &Value) -> Answer {
        // The output of a command as it is: an object would escape the script of a briefing.
        let text = "text(typeof r?.output !== 'string' ? r : r.exit_code ? `${r.output}\\nexit code ${r.exit_code}` : r.output);";
        Self::freeform("exec", format!("const r = await tools.{name}({argument}); {text}"))
    }

    fn shell(&self, command: &str) -> Answer {
        let key =
            if self.code_mode() || self.find("exec_command").is_some() { "cmd" } else { "command" };
        let mut input = json!({ key: command });
        if let Some(why) = &self.escalate {
            input["sandbox_permissions"] = json!("require_escalated");
            input["justification"] = json!(why);
        }
        if self.code_mode() {
            return Self::code("exec_command", &input);
        }
        if let Some(tool) = self.find("exec_command").or_else(|| self.find("shell_command")) {
            return Self::function(&tool.name, input, None);
        }
        input[key] = json!(["bash", "-lc", command]);
        Self::function("shell", input, None)
    }

    fn patch(&self, text: &str) -> Answer {
        let text = format!("*** Begin Patch\n{text}*** End Patch");
        if self.code_mode() {
            return Self::code("apply_patch", &json!(text));
        }
        match self.find("apply_patch") {
            Some(tool) if tool.freeform => Self::freeform("apply_patch", text),
            Some(_) => Self::function("apply_patch", json!({ "input": text }), None),
            None => self.shell(&format!("apply_patch <<'EOP'\n{text}\nEOP")),
        }
    }

    fn mcp(&self, server: &str, tool: &str, args: &Value) -> Answer {
        let flat = format!("mcp__{server}__{tool}");
        if self.code_mode() {
            return Self::code(&flat, args);
        }
        let spaces = [format!("mcp__{server}"), format!("mcp__{server}__"), server.to_owned()];
        let nested = self.tools.iter().find(|offered| {
            offered.name == tool
                && offered.namespace.as_ref().is_some_and(|space| spaces.contains(space))
        });
        match nested {
            Some(found) => Self::function(tool, args.clone(), found.namespace.as_deref()),
            None if self.find(&flat).is_some() => Self::function(&flat, args.clone(), None),
            None => Self::function(tool, args.clone(), Some(&spaces[0])),
        }
    }
}

/// A step in the words of the harness. A tool that was not offered is called all the same: a test
/// may want to see it refused.
pub(crate) fn answer(step: &Step, body: &Value) -> Answer {
    let offer = Offer { tools: offered(body), escalate: step.escalate.clone() };
    match &step.action {
        Action::Say(text) => Answer::Text(text.clone()),
        Action::Status { message, .. } => Answer::Text(message.clone()),
        Action::Run(command) => offer.shell(command),
        Action::Read(path) => offer.shell(&format!("cat {}", quoted(path))),
        Action::Write { path, content } => {
            offer.patch(&format!("*** Add File: {path}\n{}", signed('+', content)))
        }
        Action::Edit { path, old, new } => offer.patch(&format!(
            "*** Update File: {path}\n@@\n{}{}",
            signed('-', old),
            signed('+', new)
        )),
        Action::Mcp { server, tool, args } => offer.mcp(server, tool, args),
        Action::Tool { name, input: Value::String(text), .. } => {
            Offer::freeform(name, text.clone())
        }
        Action::Tool { name, input, namespace } => {
            Offer::function(name, input.clone(), namespace.as_deref())
        }
    }
}

fn item(answer: &Answer) -> Value {
    match answer {
        Answer::Text(text) => json!({
            "type": "message", "role": "assistant", "id": fresh_id("msg"), "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Answer::Call { name, input: Input::Free(text), .. } => json!({
            "type": "custom_tool_call", "id": fresh_id("ctc"), "call_id": fresh_id("call"),
            "status": "completed", "name": name, "input": text,
        }),
        Answer::Call { name, namespace, input: Input::Json(value) } => {
            let mut item = json!({
                "type": "function_call", "id": fresh_id("fc"), "call_id": fresh_id("call"),
                "status": "completed", "name": name, "arguments": value.to_string(),
            });
            if let Some(namespace) = namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
    }
}

fn response(body: &Value, item: Option<&Value>, model: &str, id: &str) -> Value {
    let mut response = json!({
        "id": id, "object": "response", "created_at": super::record::now_ms() / 1000,
        "model": body["model"].as_str().unwrap_or(model), "status": "in_progress", "output": [],
    });
    if let Some(item) = item {
        response["status"] = json!("completed");
        response["output"] = json!([item]);
        response["usage"] = json!({
            "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
            "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens_details": { "reasoning_tokens": 0 },
        });
    }
    response
}

/// The answer as one object.
pub(crate) fn whole(body: &Value, answer: &Answer, model: &str) -> Value {
    response(body, Some(&item(answer)), model, &fresh_id("resp"))
}

/// The answer as a stream.
pub(crate) fn events(body: &Value, answer: &Answer, model: &str, piece: usize) -> Vec<Event> {
    let id = fresh_id("resp");
    let item = item(answer);
    let added = |item: &Value| {
        let event =
            json!({ "type": "response.output_item.added", "output_index": 0, "item": item });
        ("response.output_item.added", event)
    };
    let created = response(body, None, model, &id);
    let created = json!({ "type": "response.created", "response": created });
    let mut events = vec![("response.created", created)];
    if let Answer::Text(text) = answer {
        let mut empty = item.clone();
        empty["status"] = json!("in_progress");
        empty["content"] = json!([]);
        events.push(added(&empty));
        for text in pieces(text, piece) {
            let delta = json!({
                "type": "response.output_text.delta", "item_id": item["id"],
                "output_index": 0, "content_index": 0, "delta": text,
            });
            events.push(("response.output_text.delta", delta));
        }
    } else {
        events.push(added(&item));
    }
    let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": item });
    events.push(("response.output_item.done", done));
    let whole = response(body, Some(&item), model, &id);
    let completed = json!({ "type": "response.completed", "response": whole });
    events.push(("response.completed", completed));
    events
}

/// The body of an HTTP error.
pub(crate) fn error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        400 | 404 => ("invalid_request_error", Value::Null),
        401 => ("invalid_request_error", json!("invalid_api_key")),
        429 => ("requests", json!("rate_limit_exceeded")),
        _ => ("server_error", json!("server_error")),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}
