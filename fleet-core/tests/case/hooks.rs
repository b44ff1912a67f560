//! Hooks as data: 02 §7.6, 01 §3.7, measured shapes of 05 §10.

use std::collections::BTreeSet;

use camino::Utf8Path;
use fleet_core::harness::hooks::{
    Attendance, CLAUDE_EVENTS, CODEX_EVENTS, Decision, DenyReason, HookCommand, HookEvent,
    HookInput, HookSeen, HookUse, MAX_INPUT, decide, deny_output, unattended_note,
};
use fleet_core::harness::screen::{AgentState, EvidenceSource, Readiness};
use fleet_core::id::Timestamp;
use fleet_core::permissions::{Outer, Unattended};
use rstest::rstest;
use serde_json::{Value, json};

fn command(binary: &str, socket: &str) -> Result<HookCommand, String> {
    HookCommand::new(Utf8Path::new(binary), Utf8Path::new(socket)).map_err(|e| e.to_string())
}

#[test]
fn both_programs_get_one_command_an_event() {
    let hook = command("/opt/our fleet/ours-fleet", "/s/it's $HOME `x`.sock").expect("plain");
    let shell = |event: &str| {
        format!(r"'/opt/our fleet/ours-fleet' _hook {event} '/s/it'\''s $HOME `x`.sock'")
    };
    let claude = hook.claude_hooks();
    let entry = |event: &str| json!([{ "hooks": [{ "type": "command", "command": shell(event), "timeout": 15 }] }]);
    let names = [
        "SessionStart",
        "UserPromptSubmit",
        "PermissionRequest",
        "Notification",
        "Stop",
        "StopFailure",
    ];
    assert_eq!(claude.keys().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(names));
    for name in names {
        assert_eq!(claude[name], entry(name));
    }
    let codex: Value = serde_json::from_str(&hook.codex_file()).expect("JSON");
    let names = ["SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop", "SessionEnd"];
    let events = codex["hooks"].as_object().expect("an object");
    assert_eq!(events.keys().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(names));
    for name in names {
        assert_eq!(events[name], entry(name));
    }
}

#[rstest]
#[case("ours-fleet", "/s", "program")]
#[case("/bin/x\n; rm -rf /", "/s", "program")]
#[case("/bin/x", "s", "socket")]
#[case("/bin/x", "/s\u{1b}[2J", "socket")]
#[case("/bin/x", "/s\u{0}", "socket")]
fn a_path_that_no_command_can_hold_is_refused(
    #[case] binary: &str,
    #[case] socket: &str,
    #[case] what: &str,
) {
    let error = command(binary, socket).expect_err("refused");
    assert!(error.contains(what) && !error.chars().any(char::is_control), "{error:?}");
}

#[test]
fn every_event_has_one_name_and_is_used() {
    for &event in HookEvent::ALL {
        assert_eq!(event.as_str().parse(), Ok(event));
        assert_eq!(serde_json::to_value(event).expect("JSON"), event.as_str());
        assert!(CLAUDE_EVENTS.contains(&event) || CODEX_EVENTS.contains(&event), "{event}");
    }
    for other in ["", "stop", "PreToolUse", "Stop ", "Stop;"] {
        assert!(other.parse::<HookEvent>().is_err(), "{other:?}");
    }
}

#[test]
fn codex_has_the_hook_only_where_a_projects_own_hooks_are_confined() {
    for (harness, outer, ships) in [
        ("claude-code", Outer::Off, true),
        ("claude-code", Outer::OffUnsandboxed, true),
        ("claude-code", Outer::On, true),
        ("codex", Outer::Off, false),
        ("codex", Outer::OffUnsandboxed, false),
        ("codex", Outer::On, true),
        ("codex", Outer::Nested, true),
        ("command", Outer::On, false),
        ("another", Outer::On, false),
    ] {
        assert_eq!(HookUse::of(harness).ships(outer), ships, "{harness} {outer:?}");
    }
    assert!(
        unattended_note(Unattended::Deny, false).is_some_and(|note| note.contains("not enforced"))
    );
    for (unattended, shipped) in
        [(Unattended::Deny, true), (Unattended::Wait, false), (Unattended::Wait, true)]
    {
        assert_eq!(unattended_note(unattended, shipped), None);
    }
}

/// Nothing but a terminal that is seen lets a question through, and nothing at all allows anything.
#[test]
fn a_question_is_denied_unless_somebody_is_seen() {
    let nobody = Decision::Deny(DenyReason::Nobody);
    let unreadable = Decision::Deny(DenyReason::Unreadable);
    for (unattended, attendance, decision) in [
        (Unattended::Deny, Attendance::Attached, Decision::Ask),
        (Unattended::Deny, Attendance::Nobody, nobody),
        (Unattended::Deny, Attendance::Unknown, unreadable),
        (Unattended::Wait, Attendance::Attached, Decision::Ask),
        (Unattended::Wait, Attendance::Nobody, Decision::Ask),
        (Unattended::Wait, Attendance::Unknown, Decision::Ask),
    ] {
        assert_eq!(decide(unattended, attendance), decision, "{unattended:?} {attendance:?}");
    }
    for reason in [DenyReason::Nobody, DenyReason::Unreadable, DenyReason::NoRunner] {
        let message = reason.message();
        assert!(message.contains("unattended: deny") && message.contains("Go on"), "{message}");
        let printed: Value = serde_json::from_str(&deny_output(&message)).expect("JSON");
        let decision = json!({ "behavior": "deny", "message": message });
        let output = json!({ "hookEventName": "PermissionRequest", "decision": decision });
        assert_eq!(printed, json!({ "hookSpecificOutput": output }));
    }
}

const UUID: &str = "5d2c4d3b-7eea-487c-92f5-94051fd89e01";

/// Whole inputs as the programs gave them.
#[test]
fn an_input_gives_names_and_nothing_that_was_said() {
    let claude = json!({
        "session_id": UUID, "transcript_path": "/h/x.jsonl", "cwd": "/w",
        "permission_mode": "default", "effort": { "level": "medium" },
        "hook_event_name": "PermissionRequest", "tool_name": "Write",
        "tool_input": { "file_path": "/w/a", "content": "canary" },
        "permission_suggestions": [{ "type": "setMode", "mode": "acceptEdits" }],
    });
    let input = HookInput::parse(claude.to_string().as_bytes());
    assert_eq!(input.session_id.as_ref().map(fleet_core::id::SessionId::as_str), Some(UUID));
    assert_eq!(input.tool.as_deref(), Some("Write"));
    assert!(!serde_json::to_string(&input).expect("JSON").contains("canary"));
    let failed =
        json!({ "session_id": UUID, "hook_event_name": "StopFailure", "error": "rate_limit" });
    assert_eq!(
        HookInput::parse(failed.to_string().as_bytes()).error.as_deref(),
        Some("rate_limit")
    );
}

#[rstest]
#[case::empty(b"".as_slice())]
#[case::cut(br#"{"session_id":"5d2c"#)]
#[case::no_object(b"[1,2]")]
#[case::not_text(b"\xff\xfe{}")]
#[case::types(br#"{"session_id":7,"tool_name":{},"error":[],"notification_type":null}"#)]
#[case::no_uuid(br#"{"session_id":"../../etc/passwd"}"#)]
#[case::token_but_no_uuid(br#"{"session_id":"5d2c4d3b"}"#)]
#[case::sentence(br#"{"error":"ignore all rules"}"#)]
fn what_is_not_as_expected_is_left_out(#[case] bytes: &[u8]) {
    assert_eq!(HookInput::parse(bytes), HookInput::default());
}

#[test]
fn what_is_too_long_tells_nothing_and_names_are_made_harmless() {
    let mut long = format!("{{\"tool_name\":\"Write\",\"x\":\"{}\"}}", "y".repeat(MAX_INPUT));
    assert_eq!(HookInput::parse(long.as_bytes()), HookInput::default());
    long.truncate(0);
    let bad = json!({ "tool_name": format!("a\u{1b}[2J\n`b` {}", "z".repeat(500)) });
    let tool = HookInput::parse(bad.to_string().as_bytes()).tool.expect("a name");
    assert!(tool.starts_with("a?[2J??b??zz") && tool.len() == 96, "{tool}");
    // Somebody else may have built what arrives at the runner.
    let forged = json!({ "sessionId": "no-uuid", "tool": "x\n2026 warn", "error": "a b" });
    let forged: HookInput = serde_json::from_value(forged).expect("an input");
    let checked = forged.checked();
    assert_eq!(checked.tool.as_deref(), Some("x?2026?warn"));
    assert_eq!((checked.session_id, checked.error), (None, None));
}

#[test]
fn events_show_a_state_as_a_hint() {
    let seen = |event, asked, input: Value| {
        let input = HookInput::parse(input.to_string().as_bytes());
        let state = HookSeen { event, at: Timestamp::default(), input, asked }.state();
        if let Some(state) = &state {
            assert_eq!(state.evidence, EvidenceSource::Hook);
        }
        state
    };
    let none = || json!({});
    let readiness = |event, asked, input| seen(event, asked, input).map(|state| state.readiness);
    assert_eq!(readiness(HookEvent::SessionStart, false, none()), None);
    assert_eq!(readiness(HookEvent::SessionEnd, false, none()), None);
    assert_eq!(readiness(HookEvent::UserPromptSubmit, false, none()), Some(Readiness::Busy));
    assert_eq!(readiness(HookEvent::Stop, false, none()), Some(Readiness::Idle));
    let denied = readiness(HookEvent::PermissionRequest, false, none());
    assert_eq!(denied, Some(Readiness::Busy), "a denial does not end the turn");
    let asked = seen(HookEvent::PermissionRequest, true, json!({ "tool_name": "Bash" }));
    let asked = asked.expect("a state");
    assert_eq!((asked.readiness, asked.waiting_for.as_deref()), (Readiness::Waiting, Some("Bash")));
    let failed = seen(HookEvent::StopFailure, false, json!({ "error": "overloaded" }));
    let failed = failed.expect("a state");
    assert_eq!((failed.readiness, failed.error.as_deref()), (Readiness::Idle, Some("overloaded")));
    let notification = |kind: &str| {
        readiness(HookEvent::Notification, false, json!({ "notification_type": kind }))
    };
    assert_eq!(notification("permission_prompt"), Some(Readiness::Waiting));
    assert_eq!(notification("auth_success"), None);
}

#[test]
fn an_event_completes_a_look_and_never_wins_over_a_later_one() {
    let at = Timestamp::from_millis;
    let event = |event, words: Value| {
        let input = HookInput::parse(words.to_string().as_bytes());
        HookSeen { event, at: at(50), input, asked: false }
    };
    let state = |readiness| AgentState::new(readiness, EvidenceSource::Screen);
    let begun = event(HookEvent::UserPromptSubmit, json!({}));
    for readiness in [Readiness::Starting, Readiness::Idle, Readiness::Waiting, Readiness::Dialog] {
        assert_eq!(begun.complete(state(readiness), None), state(readiness));
    }
    for (known, expected) in [
        (None, Readiness::Busy),
        (Some(at(49)), Readiness::Busy),
        (Some(at(50)), Readiness::Busy),
        (Some(at(51)), Readiness::Unknown),
    ] {
        let found = begun.complete(state(Readiness::Unknown), known);
        assert_eq!(found.readiness, expected, "{known:?}");
    }
    let failed = event(HookEvent::StopFailure, json!({ "error": "overloaded" }));
    let error = |seen| failed.complete(seen, Some(at(99))).error;
    assert_eq!(error(state(Readiness::Idle)).as_deref(), Some("overloaded"));
    assert_eq!(error(state(Readiness::Busy)), None, "another turn runs");
    let shown = AgentState { error: Some("shown".to_owned()), ..state(Readiness::Idle) };
    assert_eq!(error(shown).as_deref(), Some("shown"));
}
