//! The scripted provider as a program: both protocols on the wire, outages, holds and its log.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Outage, Provider, Reply};

const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";

/// A first turn of Claude Code.
fn claude(script: &Value, stream: bool) -> Value {
    let tools = ["Bash", "Read", "Write", "Edit", "mcp__s__t"].map(|name| json!({ "name": name }));
    json!({
        "model": "m", "stream": stream, "tools": tools,
        "messages": [{ "role": "user", "content": format!("@@{script}") }],
    })
}

/// A first turn of Codex that is offered these tools.
fn codex(script: &Value, tools: &Value) -> Value {
    json!({
        "model": "m", "stream": true, "tools": tools,
        "input": [{ "type": "message", "role": "user",
                    "content": [{ "type": "input_text", "text": format!("@@{script}") }] }],
    })
}

fn functions() -> Value {
    json!([{ "type": "function", "name": "exec_command" }])
}

/// Joins the pieces of a stream of Claude's.
fn joined(reply: &Reply, kind: &str) -> String {
    let events = reply.events();
    let pieces = events.iter().filter_map(|(_, data)| data["delta"][kind].as_str());
    pieces.collect()
}

/// The item that a stream of Codex ends with.
fn item(reply: &Reply) -> Value {
    let (name, last) = reply.events().pop().expect("events");
    assert_eq!((name.as_str(), &last["type"]), ("response.completed", &json!(name)));
    last["response"]["output"][0].clone()
}

#[test]
fn a_message_streams_in_the_order_of_the_api() {
    let provider = Provider::start_with(&["--chunk", "3"]);
    let reply = provider.post(MESSAGES, &claude(&json!([{ "say": "grüß dich" }]), true));
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let events = reply.events();
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    let delta = "content_block_delta";
    let wanted = [
        "message_start",
        "content_block_start",
        delta,
        delta,
        delta,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, wanted);
    assert!(events.iter().all(|(name, data)| data["type"] == *name), "{events:?}");
    assert_eq!(joined(&reply, "text"), "grüß dich");
    assert_eq!(events[6].1["delta"]["stop_reason"], "end_turn");
}

#[rstest]
#[case(json!({"run": "ls"}), "Bash", json!({"command": "ls", "description": "scripted command"}))]
#[case(json!({"read": "/a"}), "Read", json!({"file_path": "/a"}))]
#[case(json!({"write": {"path": "/a", "content": "b"}}), "Write",
       json!({"file_path": "/a", "content": "b"}))]
#[case(json!({"edit": {"path": "/a", "old": "b", "new": "c"}}), "Edit",
       json!({"file_path": "/a", "old_string": "b", "new_string": "c"}))]
#[case(json!({"mcp": {"server": "s", "tool": "t", "args": {"x": 1}}}), "mcp__s__t", json!({"x": 1}))]
#[case(json!({"tool": "Not offered", "input": {"y": 2}}), "Not offered", json!({"y": 2}))]
fn a_step_is_a_tool_of_claude(#[case] step: Value, #[case] name: &str, #[case] input: Value) {
    let provider = Provider::start();
    let reply = provider.post(MESSAGES, &claude(&json!([step]), true));
    let events = reply.events();
    let block = &events[1].1["content_block"];
    assert_eq!((&block["type"], &block["name"]), (&json!("tool_use"), &json!(name)));
    let streamed: Value = serde_json::from_str(&joined(&reply, "partial_json")).expect("JSON");
    assert_eq!(streamed, input);
    assert_eq!(events[events.len() - 2].1["delta"]["stop_reason"], "tool_use");
    // The same without a stream.
    let whole = provider.post(MESSAGES, &claude(&json!([step]), false)).json();
    assert_eq!(
        (&whole["content"][0]["name"], &whole["content"][0]["input"]),
        (&json!(name), &input)
    );
    assert_ne!(whole["content"][0]["id"], block["id"], "ids are never used twice");
    let log = provider.log();
    assert_eq!(log.len(), 2);
    assert_eq!(log[0].answer, json!({ "tool": name, "input": input }));
    assert_eq!(log[0].step, step);
}

#[rstest]
#[case::run(json!({"run": "ls"}), functions(), json!({"cmd": "ls"}), "exec_command")]
#[case::run_older(json!({"run": "ls"}), json!([{"type": "function", "name": "shell_command"}]),
    json!({"command": "ls"}), "shell_command")]
#[case::run_oldest(json!({"run": "ls"}), json!([{"type": "function", "name": "shell"}]),
    json!({"command": ["bash", "-lc", "ls"]}), "shell")]
#[case::escalate(json!({"run": "ls", "escalate": "because"}), functions(),
    json!({"cmd": "ls", "sandbox_permissions": "require_escalated", "justification": "because"}),
    "exec_command")]
#[case::read(json!({"read": "/it's $HOME"}), functions(), json!({"cmd": r"cat '/it'\''s $HOME'"}),
    "exec_command")]
#[case::write(json!({"write": {"path": "/a", "content": "b\nc\n"}}), functions(),
    json!({"cmd": "apply_patch <<'EOP'\n*** Begin Patch\n*** Add File: /a\n+b\n+c\n*** End Patch\nEOP"}),
    "exec_command")]
#[case::mcp_flat(json!({"mcp": {"server": "s", "tool": "t", "args": {"x": 1}}}),
    json!([{"type": "function", "name": "mcp__s__t"}]), json!({"x": 1}), "mcp__s__t")]
fn a_step_is_a_function_of_codex(
    #[case] step: Value,
    #[case] tools: Value,
    #[case] arguments: Value,
    #[case] name: &str,
) {
    let provider = Provider::start();
    let item = item(&provider.post(RESPONSES, &codex(&json!([step]), &tools)));
    assert_eq!((&item["type"], &item["name"]), (&json!("function_call"), &json!(name)));
    let text = item["arguments"].as_str().expect("text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), arguments);
}

#[test]
fn an_mcp_tool_of_codex_may_lie_in_a_namespace() {
    let provider = Provider::start();
    let tools = json!([
        { "type": "namespace", "name": "mcp__other", "tools": [{ "type": "function", "name": "t" }] },
        { "type": "namespace", "name": "mcp__s__", "tools": [{ "type": "function", "name": "t" }] },
    ]);
    let script = json!([{ "mcp": { "server": "s", "tool": "t" } }]);
    let item = item(&provider.post(RESPONSES, &codex(&script, &tools)));
    assert_eq!((&item["name"], &item["namespace"]), (&json!("t"), &json!("mcp__s__")));
    assert_eq!(item["arguments"], "{}");
}

#[rstest]
#[case::patch(json!({"edit": {"path": "/a", "old": "b", "new": "c"}}),
    json!([{"type": "function", "name": "exec_command"}, {"type": "custom", "name": "apply_patch"}]),
    "apply_patch", "*** Begin Patch\n*** Update File: /a\n@@\n-b\n+c\n*** End Patch")]
#[case::code(json!({"run": "ls"}), json!([{"type": "custom", "name": "exec"}]),
    "exec", "const r = await tools.exec_command({\"cmd\":\"ls\"}); ")]
#[case::code_mcp(json!({"mcp": {"server": "s", "tool": "t"}}), json!([{"type": "custom", "name": "exec"}]),
    "exec", "const r = await tools.mcp__s__t({}); ")]
#[case::raw(json!({"tool": "x", "input": "free text"}), functions(), "x", "free text")]
fn a_step_is_a_freeform_tool_of_codex(
    #[case] step: Value,
    #[case] tools: Value,
    #[case] name: &str,
    #[case] input: &str,
) {
    let provider = Provider::start();
    let item = item(&provider.post(RESPONSES, &codex(&json!([step]), &tools)));
    assert_eq!((&item["type"], &item["name"]), (&json!("custom_tool_call"), &json!(name)));
    let text = item["input"].as_str().expect("text");
    assert!(text.starts_with(input), "{text}");
}

#[test]
fn newer_models_of_codex_get_their_tools_as_input() {
    let provider = Provider::start();
    let mut body = codex(&json!([{ "run": "ls" }]), &json!([]));
    let more = json!({ "type": "additional_tools", "tools": functions() });
    body["input"].as_array_mut().expect("a list").push(more);
    assert_eq!(item(&provider.post(RESPONSES, &body))["name"], "exec_command");
}

#[test]
fn a_response_streams_in_the_order_of_the_api() {
    let provider = Provider::start_with(&["--chunk", "2"]);
    let reply = provider.post(RESPONSES, &codex(&json!([{ "say": "abc" }]), &functions()));
    let names: Vec<_> = reply.events().into_iter().map(|(name, _)| name).collect();
    let wanted = [
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names, wanted);
    assert_eq!(item(&reply)["content"][0]["text"], "abc");
}

#[test]
fn side_calls_use_up_no_step_and_are_marked() {
    let provider = Provider::start_with(&["--side-reply", "a title"]);
    let script = json!([{ "say": "one" }, { "say": "two" }]);
    let mut side = claude(&script, false);
    side["tools"] = json!([]);
    assert_eq!(provider.post(MESSAGES, &side).json()["content"][0]["text"], "a title");
    let turn = provider.post(MESSAGES, &claude(&script, false)).json();
    assert_eq!(turn["content"][0]["text"], "one");
    let sides: Vec<_> = provider.log().iter().map(|entry| entry.side).collect();
    assert_eq!(sides, [true, false]);
}

#[test]
fn the_rest_of_the_apis() {
    let provider = Provider::start();
    assert_eq!(provider.send("HEAD", "/", &[], b"").expect("an answer").status, 200);
    let models = provider.send("GET", "/v1/models?limit=1", &[], b"").expect("an answer").json();
    assert_eq!(models["data"][0]["id"], "scripted-1");
    let count = provider.post("/v1/messages/count_tokens", &json!({})).json();
    assert_eq!(count["input_tokens"], 10);
    assert_eq!(provider.post("/v1/other", &json!({})).status, 404);
    let broken = provider.send("POST", MESSAGES, &[], b"{").expect("an answer");
    assert_eq!((broken.status, &broken.json()["type"]), (400, &json!("error")));
    let outcomes: Vec<_> = provider.log().into_iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, ["status 404", "status 400"], "what was not foreseen is in the log");
}

#[test]
fn the_script_for_prompts_without_one_can_be_replaced() {
    let provider = Provider::start();
    let mut body = claude(&json!([]), false);
    body["messages"][0]["content"] = json!("hello");
    let says = || provider.post(MESSAGES, &body).json()["content"][0]["text"].clone();
    assert_eq!(says(), "ack");
    provider.set_script(&json!([{ "say": "changed" }]));
    assert_eq!(says(), "changed");
    assert_eq!(provider.post("/_script", &json!([{ "sya": "x" }])).status, 400);
    assert_eq!(says(), "changed", "a bad script changes nothing");
}

#[rstest]
#[case(MESSAGES, 529, "/error/type", "overloaded_error")]
#[case(MESSAGES, 429, "/error/type", "rate_limit_error")]
#[case(MESSAGES, 401, "/error/type", "authentication_error")]
#[case(RESPONSES, 429, "/error/code", "rate_limit_exceeded")]
#[case(RESPONSES, 500, "/error/code", "server_error")]
fn an_outage_ends_after_so_many_turns(
    #[case] path: &str,
    #[case] status: u16,
    #[case] place: &str,
    #[case] kind: &str,
) {
    let provider = Provider::start();
    provider.set_outage(Outage::status(status).retry_after(7).count(2));
    let script = json!([{ "say": "well" }]);
    let body = if path == MESSAGES { claude(&script, true) } else { codex(&script, &functions()) };
    let mut side = body.clone();
    side["tools"] = json!([]);
    for sent in [&body, &side, &body] {
        let reply = provider.post(path, sent);
        assert_eq!((reply.status, reply.header("retry-after")), (status, Some("7")));
        assert_eq!(reply.json().pointer(place), Some(&json!(kind)));
    }
    assert_eq!(provider.post(path, &body).status, 200);
    let log = provider.log();
    assert_eq!(log[2].outcome, format!("status {status}"));
    assert_eq!((log[2].answer.clone(), log[3].outcome.as_str()), (Value::Null, "answered"));
}

#[test]
fn an_outage_lasts_until_it_is_over() {
    let provider = Provider::start();
    let body = claude(&json!([{ "say": "well" }]), true);
    let outcome = || {
        let sent = provider.send("POST", MESSAGES, &[], body.to_string().as_bytes());
        sent.map(|reply| reply.status).map_err(|error| error.kind())
    };
    provider.set_outage(Outage::refuse());
    assert_eq!(outcome(), Err(std::io::ErrorKind::UnexpectedEof), "closed before an answer");
    assert!(outcome().is_err());
    provider.set_outage(Outage::cut());
    assert_eq!(outcome(), Err(std::io::ErrorKind::UnexpectedEof), "cut in the middle");
    provider.clear_outage();
    assert_eq!(outcome(), Ok(200));
    provider.set_outage(Outage::status(529).seconds(0));
    assert_eq!(outcome(), Ok(200), "its time is over");
    provider.set_outage(Outage::status(529).seconds(600));
    assert_eq!(outcome(), Ok(529));
    let outcomes: Vec<_> = provider.log().into_iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, ["refused", "refused", "cut", "answered", "answered", "status 529"]);
    for bad in [json!({"kind": "fire"}), json!({"kind": "status"}), json!({"kind": "cut", "x": 1})]
    {
        assert_eq!(provider.post("/_outage", &bad).status, 400, "{bad}");
    }
}

#[test]
fn a_step_may_be_an_error() {
    let provider = Provider::start();
    let script = json!([{ "status": 429, "message": "slow down", "retryAfter": 3 }]);
    let reply = provider.post(MESSAGES, &claude(&script, true));
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("3")));
    assert_eq!(reply.json()["error"]["message"], "slow down");
}

#[test]
fn a_hold_waits_for_the_release_after_it() {
    let provider = Provider::start();
    provider.release();
    let body = claude(&json!([{ "say": "at last", "hold": true }]), false);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| provider.post(MESSAGES, &body).json());
        provider.wait_for_request("the held turn", |entry| entry.step["hold"] == true);
        // Others are answered meanwhile.
        let other = provider.post(MESSAGES, &claude(&json!([{ "say": "x" }]), false));
        assert_eq!(other.status, 200);
        assert!(!held.is_finished(), "an old release counts for nothing");
        provider.release();
        assert_eq!(held.join().expect("an answer")["content"][0]["text"], "at last");
    });
}

#[test]
fn nobody_is_held_for_ever_and_a_sleep_ends() {
    let provider = Provider::start_with(&["--hold-limit", "0"]);
    let begun = Instant::now();
    let script = json!([{ "say": "x", "hold": true, "sleep": 0.2 }]);
    assert_eq!(provider.post(MESSAGES, &claude(&script, false)).status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(200));
}

#[test]
fn the_log_holds_what_the_model_was_told_and_no_secret() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("log");
    let provider = Provider::start_with(&["--log", file.to_str().expect("UTF-8")]);
    let mut body = claude(&json!([{ "run": "ls" }, { "say": "end" }]), false);
    let id = provider.post(MESSAGES, &body).json()["content"][0]["id"].clone();
    let messages = body["messages"].as_array_mut().expect("a list");
    messages.push(json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": id }] }));
    messages.push(json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": id, "content": "denied", "is_error": true }] }));
    let secrets = [("authorization", "Bearer canary-1"), ("X-Api-Key", "canary-2")];
    let body = body.to_string();
    provider.send("POST", MESSAGES, &secrets, body.as_bytes()).expect("an answer");
    let entry = provider.wait_for_request("the second turn", |entry| !entry.told.is_empty());
    assert_eq!(json!(entry.told), json!([{ "call": id, "text": "denied", "error": true }]));
    assert_eq!(entry.answer, json!({ "text": "end" }));
    assert_eq!(entry.headers["x-api-key"], "…");
    assert!(entry.tools.contains(&"Bash".to_owned()));
    let lines = std::fs::read_to_string(&file).expect("the log");
    assert_eq!(lines.lines().count(), 2);
    let last: Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last, serde_json::to_value(&entry).expect("JSON"), "the file says the same");
    assert!(!lines.contains("canary"), "{lines}");
}

#[test]
fn it_ends_with_its_standard_input_and_listens_on_loopback_alone() {
    let mut child = Command::new(Provider::program())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the provider");
    drop(child.stdin.take());
    let mut out = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("its URL");
    assert!(child.wait().expect("its end").success());
    assert!(out.starts_with("http://127.0.0.1:") && out.lines().count() == 1, "{out:?}");
    let bad = Command::new(Provider::program())
        .arg("--prot")
        .stderr(Stdio::null())
        .status()
        .expect("a status");
    assert_eq!(bad.code(), Some(64));
}
