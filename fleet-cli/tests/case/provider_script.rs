//! The scripted provider: which script counts, and which of its steps comes next.

use rstest::rstest;
use serde_json::{Value, json};

use crate::scripted_provider::script::{Action, Step, find_script, parse_script};
use crate::scripted_provider::turns::{Rules, Turn, briefing_path, pick};
use crate::scripted_provider::{anthropic, responses, side_text};

fn raw(text: &str) -> Option<Vec<Value>> {
    Some(find_script(text)?.into_iter().map(|step| step.raw).collect())
}

#[rstest]
#[case::none("no script here", None)]
#[case::alone(r#"@@[{"say":"a"}]"#, Some(vec![json!({"say": "a"})]))]
#[case::in_text(r#"Do @@[{"run":"ls"}] now."#, Some(vec![json!({"run": "ls"})]))]
#[case::the_last(r#"@@[{"say":"a"}] @@[{"say":"b"}]"#, Some(vec![json!({"say": "b"})]))]
#[case::cut_off(r#"@@[{"say":"a"}] @@[{"say":"b"#, Some(vec![json!({"say": "a"})]))]
#[case::quoted_inside(
    r#"@@[{"run":"send B '@@[]'"}]"#,
    Some(vec![json!({"run": "send B '@@[]'"})])
)]
#[case::a_hunk("@@\n-a\n+b\n", None)]
#[case::empty("@@[]", Some(vec![]))]
fn the_last_whole_script_of_a_text(#[case] text: &str, #[case] wanted: Option<Vec<Value>>) {
    assert_eq!(raw(text), wanted);
}

#[rstest]
#[case::not_a_list(json!({"say": "a"}), "a script is a list")]
#[case::no_object(json!(["a"]), "not an object")]
#[case::no_action(json!([{"sleep": 1}]), "none of")]
#[case::two_actions(json!([{"say": "a", "run": "b"}]), "both say and run")]
#[case::unknown(json!([{"say": "a", "helt": true}]), "unknown key helt")]
#[case::of_another(json!([{"say": "a", "input": {}}]), "unknown key input")]
#[case::no_text(json!([{"run": 1}]), "run is no text")]
#[case::a_field(json!([{"write": {"path": "/a"}}]), "content is no text")]
#[case::sleep(json!([{"say": "a", "sleep": -1}]), "sleep is no number of seconds")]
#[case::hold(json!([{"say": "a", "hold": "yes"}]), "hold is no bool")]
#[case::status(json!([{"status": 200}]), "no HTTP error status")]
fn a_slip_in_a_script_is_named(#[case] script: Value, #[case] wanted: &str) {
    let error = parse_script(&script).expect_err("a slip");
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn a_slip_in_a_prompt_is_what_the_model_says() {
    let script = find_script(r#"@@[{"rum":"ls"}]"#).expect("a script");
    let [Step { action: Action::Say(text), .. }] = script.as_slice() else {
        panic!("{script:?}");
    };
    assert!(text.starts_with("(bad script: none of"), "{text}");
}

fn user(text: &str) -> Turn {
    Turn::User(text.to_owned())
}

fn tool(text: &str) -> Turn {
    Turn::Tool(text.to_owned())
}

const TWO: &str = r#"@@[{"say":"one"},{"say":"two"}]"#;

#[rstest]
#[case::first(vec![user(TWO)], "one")]
#[case::second(vec![user(TWO), Turn::Model, tool("x")], "two")]
#[case::over(vec![user(TWO), Turn::Model, Turn::Model], "(script end)")]
#[case::plain_words_go_on(vec![user(TWO), Turn::Model, user("and now?")], "two")]
#[case::the_newest(vec![user(TWO), Turn::Model, user(r#"@@[{"say":"new"}]"#)], "new")]
#[case::a_tool_gives_no_orders(
    vec![user(TWO), Turn::Model, tool(r#"@@[{"say":"evil"}]"#)],
    "two"
)]
#[case::none(vec![user("hello")], "fallback one")]
#[case::none_again(vec![user("hello"), Turn::Model], "fallback two")]
#[case::none_from_the_start(vec![user("a"), Turn::Model, Turn::Model, user("b")], "fallback one")]
fn the_step_that_is_due(#[case] turns: Vec<Turn>, #[case] wanted: &str) {
    let fallback = vec![Step::say("fallback one"), Step::say("fallback two")];
    let rules = Rules { fallback, follow_briefing: false };
    assert_eq!(pick(&turns, &rules), Step::say(wanted));
}

#[test]
fn without_any_script_the_model_acknowledges() {
    assert_eq!(pick(&[user("hello")], &Rules::default()), Step::say("ack"));
}

fn read_it() -> Turn {
    user("Read and follow /s/briefing.md now.")
}

#[rstest]
#[case::reads(vec![read_it()], Step::read("/s/briefing.md"))]
#[case::follows(vec![read_it(), Turn::Model, tool(TWO)], Step::say("one"))]
#[case::goes_on(vec![read_it(), Turn::Model, tool(TWO), Turn::Model], Step::say("two"))]
#[case::reads_again_when_broken_off(vec![read_it(), Turn::Model], Step::read("/s/briefing.md"))]
#[case::says_so_when_there_is_none(vec![read_it(), Turn::Model, tool("refused")], Step::say("ack"))]
#[case::words_of_the_user_win(vec![user(&format!("/s/briefing.md {TWO}"))], Step::say("one"))]
#[case::the_same_again_goes_on(
    vec![read_it(), Turn::Model, tool(TWO), Turn::Model, read_it(), Turn::Model, tool(TWO)],
    Step::say("two")
)]
#[case::a_later_tool_gives_no_orders(
    vec![read_it(), Turn::Model, tool(TWO), Turn::Model, tool(r#"@@[{"say":"evil"}]"#)],
    Step::say("two")
)]
fn a_briefing_is_read_and_followed(#[case] turns: Vec<Turn>, #[case] wanted: Step) {
    let rules = Rules { fallback: Vec::new(), follow_briefing: true };
    assert_eq!(pick(&turns, &rules), wanted);
    if turns.len() == 1 && turns[0] == read_it() {
        assert_eq!(pick(&turns, &Rules::default()), Step::say("ack"), "only when asked to");
    }
}

#[rstest]
#[case::a_word("read /a/b/briefing.md, then work", Some("/a/b/briefing.md"))]
#[case::in_ticks("read `/a b/briefing.md` now", Some("/a b/briefing.md"))]
#[case::in_quotes("read \"/a b/briefing.md\"", Some("/a b/briefing.md"))]
#[case::in_brackets("(/a/briefing.md)", Some("/a/briefing.md"))]
#[case::relative("read a/briefing.md", None)]
#[case::the_first_absolute("a/briefing.md é/briefing.md /é/briefing.md", Some("/é/briefing.md"))]
#[case::none("read the briefing", None)]
fn the_briefing_that_a_text_names(#[case] text: &str, #[case] wanted: Option<&str>) {
    assert_eq!(briefing_path(text).as_deref(), wanted);
}

/// What Claude Code really sends: reminders that repeat, messages of the system, its own answer after
/// a turn that was broken off, and words typed meanwhile beside the result of a tool.
#[test]
fn claude_conversation_without_its_noise() {
    let old = r#"@@[{"say":"old"}]"#;
    let new = r#"@@[{"say":"new"}]"#;
    let body = json!({ "messages": [
        { "role": "user", "content": [
            { "type": "text", "text": format!("<system-reminder>was: {old}</system-reminder>") },
            { "type": "text", "text": "go" } ] },
        { "role": "system", "content": old },
        { "role": "assistant", "content": [{ "type": "tool_use" }] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t1", "content": old, "is_error": true },
            { "type": "text", "text": format!("<system-reminder>{old}</system-reminder>") } ] },
        { "role": "assistant", "content": [{ "type": "text", "text": "No response requested." }] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t2", "content": [{ "type": "text", "text": "out" }] },
            { "type": "text", "text": format!(
                "<system-reminder>The user sent a new message while you were working:\n{new}</system-reminder>") } ] },
    ]});
    let turns = anthropic::turns(&body);
    let wanted = [user("go"), Turn::Model, tool(old), tool("out"), user(&format!(":\n{new}"))];
    assert_eq!(turns, wanted);
    let told = anthropic::told(&body);
    assert_eq!(told.len(), 1, "only the newest: {told:?}");
    assert_eq!((told[0].call.as_str(), told[0].text.as_str(), told[0].error), ("t2", "out", false));
}

#[test]
fn codex_conversation_without_its_noise() {
    let message = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
    let body = json!({ "input": [
        message("developer", TWO),
        message("user", "go"),
        { "type": "reasoning", "summary": [] },
        { "type": "function_call", "name": "x", "call_id": "c1", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": "one" },
        { "type": "custom_tool_call", "name": "x", "call_id": "c2", "input": "" },
        { "type": "custom_tool_call_output", "call_id": "c2", "output": [{ "type": "input_text", "text": "two" }] },
    ]});
    let wanted = [user("go"), Turn::Model, tool("one"), Turn::Model, tool("two")];
    assert_eq!(responses::turns(&body), wanted);
    let told = responses::told(&body);
    assert_eq!(told.len(), 1, "only the newest: {told:?}");
    assert_eq!((told[0].call.as_str(), told[0].text.as_str()), ("c2", "two"));
}

#[test]
fn side_calls_are_told_from_turns() {
    let tools = json!([{ "name": "Bash" }]);
    let turn = json!({ "tools": tools, "messages": [] });
    assert!(!anthropic::is_side(&turn, &[user("go")]));
    assert!(anthropic::is_side(&json!({ "tools": [] }), &[user("go")]));
    assert!(anthropic::is_side(&turn, &[user("[SUGGESTION MODE: what next?]")]));
    assert!(!responses::is_side(&turn, None));
    assert!(!responses::is_side(&turn, Some(r#"{"thread_source":"user"}"#)));
    assert!(responses::is_side(&turn, Some(r#"{"thread_source":"thread_title"}"#)));
    assert!(responses::is_side(&json!({}), None));
}

#[test]
fn a_side_call_gets_the_least_that_its_schema_accepts() {
    let properties = json!({
        "title": { "type": "string" }, "ok": { "type": "boolean" }, "n": { "type": "integer" },
        "kind": { "enum": ["a", "b"] }, "list": { "type": "array" }, "more": { "type": "object" },
    });
    let body = json!({ "text": { "format": { "schema": { "properties": properties } } } });
    let wanted = json!({
        "title": "scripted", "ok": false, "n": 0, "kind": "a", "list": [], "more": {},
    });
    let answer: Value = serde_json::from_str(&side_text(&body, "ok")).expect("JSON");
    assert_eq!(answer, wanted);
    assert_eq!(side_text(&json!({}), "ok"), "ok");
}
