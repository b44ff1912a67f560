//! What a briefing tells a real agent (01 §5.1): what it is to read, where it writes, how it ends; and
//! nothing that this build does not have.

use fleet_core::briefing::{BriefingInputs, render};
use fleet_core::config::Role;
use fleet_core::harness::Harness;
use fleet_core::harness::command::CommandHarness;
use fleet_core::layout::FleetLayout;
use fleet_core::test_support::fakes::StubHarness;

use crate::fleet::{base, names};

fn briefing(role: &Role, harness: &dyn Harness, curated: Option<&str>) -> String {
    let trees = FleetLayout::new("/h".into()).role(&role.name);
    render(&BriefingInputs {
        role,
        vocabulary: harness.vocabulary(),
        trees: &trees,
        cwd: "/work".into(),
        user: "op",
        curated,
        policy: None,
        backend: fleet_core::isolation::BackendName::Bubblewrap,
        degraded: None,
    })
}

#[test]
fn every_step_names_a_file_that_exists_or_says_that_it_may_not() {
    let role = base("roles: {A: {mission: Keep it green., cwd: /work}}").role("A");
    let text = briefing(&role, &StubHarness::claude_code(), None);
    names(
        &text,
        &[
            "1. You are the stub `A`.",
            "2. Read `/h/.ours-fleet/agents/A/WORKLOG.md`",
            "If `/h/.ours-fleet/agents/A/ROUTINES.md` exists",
            "4. Append to `/h/.ours-fleet/agents/A/WORKLOG.md`",
            "Take up your task",
            "Work in `/work`.",
            "    Keep it green.",
            "done,\n  blocked (on what) or resting",
        ],
    );
    let steps: Vec<&str> = text
        .lines()
        .filter(|line| line.as_bytes().first().is_some_and(u8::is_ascii_digit))
        .collect();
    assert_eq!(steps.len(), 6, "{steps:?}");
}

#[test]
fn nothing_is_promised_that_is_not_there() {
    for extra in ["", "coordinator: Boss", "mission: x, persona: y, bio: z"] {
        let role = base(format!("roles: {{A: {{{extra}}}}}")).role("A");
        for harness in [&StubHarness::claude_code() as &dyn Harness, &CommandHarness::default()] {
            let text = briefing(&role, harness, None);
            for absent in [
                "fleet-monitor",
                "get_messages",
                "send_message",
                "set_bio",
                "current_identity",
                "WORKLOG.archives",
                "spawn",
            ] {
                assert!(!text.contains(absent), "`{absent}` in:\n{text}");
            }
        }
    }
    let role = base("roles: {A: {coordinator: Boss}}").role("A");
    names(
        &briefing(&role, &StubHarness::codex(), None),
        &["You report to `Boss`. You cannot send mail"],
    );
}

#[test]
fn a_role_without_a_task_waits_and_a_curated_text_is_one() {
    let role = base("roles: {A: {}}").role("A");
    let harness = StubHarness::codex();
    names(&briefing(&role, &harness, None), &["wait to be told"]);
    let curated = briefing(&role, &harness, Some("Count sheep."));
    names(&curated, &["# Your task\n\n    Count sheep.", "Take up your task", "# House rules"]);
}
