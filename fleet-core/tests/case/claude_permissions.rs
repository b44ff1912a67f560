//! 01 §3.2, §3.5 for `claude-code`: overrides, what the operator's settings add, what cannot be named.

use fleet_core::harness::Harness as _;
use fleet_core::harness::claude_code::ClaudeCodeHarness;
use fleet_core::permissions::{Approval, Capability, Outer, Translation, conflicts};
use rstest::rstest;

use crate::claude::{Around, around, whole, with_options};

fn granted(names: &str) -> Vec<&str> {
    names.split_whitespace().collect()
}

fn names(said: &fleet_core::permissions::Supported) -> Vec<&'static str> {
    said.granted.iter().map(|it| it.as_str()).collect()
}

#[rstest]
#[case::own(
    "acceptEdits",
    "auto",
    "read-state write-state messaging workspace-edit status-commands",
    Approval::Auto
)]
#[case::ask("manual", "auto", "read-state", Approval::Ask)]
#[case::plan("plan", "auto", "read-state", Approval::Ask)]
#[case::auto("auto", "ask", "read-state", Approval::Auto)]
#[case::edits("acceptEdits", "ask", "read-state", Approval::Auto)]
#[case::dont_ask("dontAsk", "ask", "read-state messaging", Approval::Auto)]
#[case::dont_ask_auto(
    "dontAsk",
    "auto",
    "read-state write-state messaging status-commands",
    Approval::Auto
)]
#[case::bypass(
    "bypassPermissions",
    "ask",
    "read-state write-state messaging monitor workspace-edit status-commands",
    Approval::Allow
)]
fn an_override_replaces_the_mode_and_keeps_the_rules(
    #[case] written: &str,
    #[case] approval: &str,
    #[case] expected: &str,
    #[case] mode: Approval,
) {
    let it = around(&format!(
        "permissions: {{approval: {approval}}}, harness_options: {{permission_mode: {written}}}"
    ));
    let (neutral, said) = (it.translated(), it.effective());
    assert_eq!(names(&said), granted(expected));
    assert_eq!(said.mode, mode);
    assert_eq!(said.native["permissions.allow"], neutral.native["permissions.allow"]);
    assert_eq!(said.native["sandbox"], neutral.native["sandbox"]);
    let same = said.native["permission_mode"] == neutral.native["permission_mode"];
    assert_eq!(said.exact, same);
    assert!(same || said.warnings[0].contains("`permission_mode: "), "{:?}", said.warnings);
    assert!(said.refusals.is_empty(), "the operator wrote it");
    let argv = it.launch().argv;
    assert_eq!(argv[2], said.native["permission_mode"]);
}

#[rstest]
#[case::differs("permissions: {approval: auto}", "dontAsk", 1)]
#[case::same("permissions: {approval: auto}", "acceptEdits", 0)]
#[case::older_word("permissions: {approval: ask}", "manual", 0)]
#[case::not_declared("cwd: /srv/project", "dontAsk", 0)]
fn conflicts_are_named_once(#[case] keys: &str, #[case] written: &str, #[case] count: usize) {
    let it = around(&format!("{keys}, harness_options: {{permission_mode: {written}}}"));
    let harness = ClaudeCodeHarness::default();
    let overrides = harness.native_overrides(it.role.harness_options.expose());
    let translated = Translation::Supported(it.translated());
    assert_eq!(conflicts(it.role.permissions_declared, &overrides, &translated).len(), count);
}

fn with_operator(keys: &str, settings: &str) -> Around {
    let mut it = around(keys);
    it.operator_files.insert("settings.json", settings.to_owned());
    it
}

#[test]
fn allow_entries_of_the_operator_beyond_the_row_are_named() {
    let settings = r#"{"permissions": {"allow": ["Bash(rm s3cr3t)"]}}"#;
    let said = with_operator("permissions: {approval: ask}", settings).translated();
    assert!(!said.exact);
    assert_eq!(said.warnings, ["the operator's `settings.json` allows more: `Bash(…)`"]);
}

#[test]
fn a_tool_that_the_operator_denies_is_no_longer_granted() {
    let settings = r#"{"permissions": {"deny": ["Bash"]}}"#;
    let said = with_operator("permissions: {approval: allow}", settings).translated();
    assert!(!said.granted.contains(&Capability::StatusCommands));
    assert!(!said.exact);
}

#[rstest]
#[case::root_off(true, Outer::Off, 1)]
#[case::root_unsandboxed(true, Outer::OffUnsandboxed, 1)]
#[case::root_on(true, Outer::On, 0)]
#[case::user(false, Outer::Off, 0)]
fn root_without_isolation_cannot_bypass(
    #[case] root: bool,
    #[case] outer: Outer,
    #[case] refusals: usize,
) {
    let mut it = around("permissions: {approval: allow, filesystem: unrestricted}").outer(outer);
    it.root = root;
    let said = it.effective();
    assert_eq!(said.refusals.len(), refusals, "{:?}", said.refusals);
    assert_eq!(said.native["permission_mode"], "bypassPermissions");
    // The same by the operator's own word.
    let mut it = with_options("permission_mode: bypassPermissions").outer(outer);
    it.root = root;
    assert_eq!(it.effective().refusals.len(), refusals);
}

#[rstest]
#[case::star("/srv/a*b")]
#[case::question("/srv/a?b")]
#[case::bracket("/srv/a[1]")]
#[case::backslash("/srv/a\\b")]
#[case::line("/srv/a\nb")]
fn a_directory_that_a_rule_cannot_name_refuses_the_launch(#[case] cwd: &str) {
    let mut it = around("permissions: {approval: allow}");
    it.dirs.cwd = cwd.into();
    let said = it.effective();
    assert_eq!(said.refusals.len(), 1);
    assert!(!said.refusals[0].contains('\n') && !said.exact);
    let overlay: serde_json::Value =
        serde_json::from_str(&whole(&it.launch(), "settings-overlay.json")).expect("JSON");
    let allow = overlay["permissions"]["allow"].as_array().expect("a list");
    assert!(allow.iter().all(|rule| !rule.as_str().expect("a text").contains(cwd)), "{allow:?}");
}

#[test]
fn other_characters_are_fit_for_a_rule() {
    let mut it = around("permissions: {approval: allow}");
    it.dirs.cwd = "/srv/my (old) {copy}, #1!".into();
    let said = it.effective();
    assert_eq!(said.refusals, [""; 0]);
    assert!(said.native["permissions.allow"].contains("Edit(//srv/my (old) {copy}, #1!/**)"));
}

#[test]
fn a_directory_behind_a_link_is_named_both_ways() {
    let mut it = around("permissions: {approval: allow, filesystem: read-only}");
    let state = it.dirs.state.clone();
    it.dirs.aliases.insert(it.dirs.cwd.clone(), "/data/project".into());
    it.dirs.aliases.insert(state.clone(), "/data/state".into());
    let said = it.effective();
    for part in [&format!("Edit(/{state}/**)"), "Edit(//data/state/**)"] {
        assert!(said.native["permissions.allow"].contains(part), "{part}");
    }
    let sandbox: serde_json::Value = serde_json::from_str(&said.native["sandbox"]).expect("JSON");
    assert_eq!(
        sandbox["filesystem"]["denyWrite"],
        serde_json::json!(["/srv/project", "/data/project"])
    );
}

#[test]
fn state_stays_writable_as_the_working_directory_of_a_reading_role() {
    let mut it = around("permissions: {approval: auto, filesystem: read-only}");
    it.dirs.cwd = it.dirs.state.clone();
    let said = it.effective();
    assert!(said.exact && said.granted.contains(&Capability::WriteState));
    assert!(!said.native["permissions.deny"].contains("Edit"));
    assert!(!said.native["sandbox"].contains("denyWrite"));
    assert!(said.notes.iter().any(|note| note.contains("stays writable")));
}

#[test]
fn state_inside_a_closed_working_directory_is_lost_and_said() {
    let mut it = around("permissions: {approval: auto, filesystem: read-only}");
    it.dirs.cwd = "/home/op".into();
    let said = it.effective();
    assert!(!said.exact && !said.granted.contains(&Capability::WriteState));
    assert_eq!(said.warnings.len(), 1);
}

#[test]
fn a_version_without_a_table_is_not_qualified() {
    let mut it = around("permissions: {approval: auto}");
    it.version = Some("9.9.9");
    let said = it.effective();
    assert!(!said.measured);
    assert!(said.notes[0].contains("version 9.9.9 is not qualified"), "{:?}", said.notes);
}
