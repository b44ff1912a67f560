//! An MCP server for tests, on standard input and output: one tool that reads, one that writes.

use std::fs::File;
use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

/// Serves until the input ends. `look` is marked read-only and says how often `note` was called;
/// `note` appends its `text` as a line to the file.
pub(crate) fn serve(path: &str, input: impl BufRead, mut out: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        // A notification wants no answer.
        if message["id"].is_null() {
            continue;
        }
        let mut answer = json!({ "jsonrpc": "2.0", "id": message["id"] });
        match result(path, &message) {
            Ok(result) => answer["result"] = result,
            Err(error) => answer["error"] = json!({ "code": -32603, "message": error }),
        }
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn result(path: &str, message: &Value) -> Result<Value, String> {
    let parameters = &message["params"];
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": parameters["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "scripted", "version": "1" },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": [
            { "name": "look", "description": "says how many notes there are",
              "inputSchema": { "type": "object", "properties": {} },
              "annotations": { "readOnlyHint": true } },
            { "name": "note", "description": "writes a note",
              "inputSchema": { "type": "object", "required": ["text"],
                               "properties": { "text": { "type": "string" } } } },
        ]})),
        "tools/call" => {
            let text = call(path, parameters).map_err(|error| error.to_string())?;
            Ok(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        other => Err(format!("unknown method {other}")),
    }
}

fn call(path: &str, parameters: &Value) -> io::Result<String> {
    match parameters["name"].as_str() {
        Some("look") => {
            let notes = match std::fs::read_to_string(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                notes => notes?,
            };
            Ok(format!("{} notes", notes.lines().count()))
        }
        Some("note") => {
            let text = parameters["arguments"]["text"].as_str().unwrap_or_default();
            let mut file = File::options().append(true).create(true).open(path)?;
            file.write_all(format!("{text}\n").as_bytes())?;
            Ok(format!("noted: {text}"))
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}
