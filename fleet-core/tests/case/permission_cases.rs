//! Conformance cases 07 E (and two of C) whose answer is in the file or the translation, named after
//! the case.

use std::sync::Arc;

use fleet_core::harness::Harness as _;
use fleet_core::harness::claude_code::ClaudeCodeHarness;
use fleet_core::harness::codex::CodexHarness;
use fleet_core::isolation::MountOrigin;
use fleet_core::permissions::{Approval, Capability, Filesystem, Outer, Unattended, floor};
use fleet_core::permissions::{Permissions, Translation};
use fleet_core::test_support::scene::{Scene, path};
use fleet_core::{Harnesses, MountMode};
use serde_json::json;

use crate::claude::{around, with_options};
use crate::fleet::{base, names};

/// The harnesses themselves, not their stubs.
fn built_in() -> Harnesses {
    let mut harnesses = Harnesses::default();
    harnesses.register(Arc::new(ClaudeCodeHarness::default()));
    harnesses.register(Arc::new(CodexHarness::default()));
    harnesses
}

#[test]
fn e1_nothing_written_asks_and_says_so_to_the_program() {
    let it = around("cwd: /srv/project");
    let expected = Permissions {
        approval: Approval::Ask,
        filesystem: Filesystem::Workspace,
        unattended: Unattended::Deny,
    };
    assert_eq!((it.role.permissions, it.role.permissions_declared), (expected, false));
    assert_eq!(it.launch().argv[1..3], ["--permission-mode", "default"]);
}

#[test]
fn e2_approvals_of_claude_code() {
    for (approval, filesystem, mode) in [
        ("auto", "workspace", "acceptEdits"),
        ("allow", "workspace", "dontAsk"),
        ("allow", "read-only", "dontAsk"),
        ("allow", "unrestricted", "bypassPermissions"),
        ("ask", "unrestricted", "default"),
    ] {
        let keys = format!("permissions: {{approval: {approval}, filesystem: {filesystem}}}");
        for outer in [Outer::Off, Outer::On] {
            let said = around(&keys).outer(outer).translated();
            assert_eq!(said.native["permission_mode"], mode, "{keys}");
            assert!(said.exact, "{keys} {outer:?}: {:?}", said.warnings);
        }
    }
    let text = "roles: {A: {permissions: {approval: deny}}}";
    let role = base(text).with(built_in()).role("A");
    let denied = Permissions { filesystem: Filesystem::ReadOnly, ..Permissions::default() };
    assert_eq!(role.permissions, denied, "`deny` is ask × read-only × deny");
}

#[test]
fn e7_a_native_mode_that_does_not_exist_names_file_role_and_values() {
    let text = "roles:\n  A:\n    harness_options:\n      permission_mode: yolo\n";
    let line = base(text).with(built_in()).only();
    names(
        &line,
        &["/home/op/fleet.yaml:4:", "role 'A'", "harness_options.permission_mode", "acceptEdits"],
    );
}

#[test]
fn e10_what_needs_a_person_is_named_whether_it_is_denied_or_waits() {
    for unattended in [Unattended::Deny, Unattended::Wait] {
        let said = around("cwd: /srv/project").effective();
        let floor = floor(&Translation::Supported(said), unattended).expect("has permissions");
        let missing: Vec<&str> = floor.missing.iter().map(|it| it.as_str()).collect();
        assert_eq!(missing, ["write-state", "workspace-edit", "status-commands"]);
        assert!(floor.granted.contains(&Capability::Messaging), "allowed by rule");
        assert_eq!(floor.unattended, unattended, "decides between failure and warning");
    }
    let bypass = with_options("permission_mode: bypassPermissions").effective();
    let floor = floor(&Translation::Supported(bypass), Unattended::Deny).expect("has permissions");
    assert!(floor.is_met(), "the control");
}

#[test]
fn c18_a_secret_with_two_colons_is_refused() {
    let entry = |text: &str| {
        let text = json!({"roles": {"A": {"isolation": {"secrets": [text]}}}}).to_string();
        base(text).load()
    };
    for text in ["/a:/b:/c", "/a:", ":/b", "a:/b", "/a:b"] {
        let loaded = entry(text);
        assert!(loaded.fleet.is_none(), "{text}");
        assert_eq!(loaded.diagnostics[0].path, "isolation.secrets[0]", "{text}");
        let shown = loaded.diagnostics[0].to_string();
        assert!(!shown.contains(text), "the source of a secret is repeated: {shown}");
    }
    let fleet = entry("/a\\:b:/run/secrets/c").fleet.expect("an escaped colon is a name");
    let secret = &fleet.roles["A"].isolation.as_ref().expect("a block").secrets[0];
    assert_eq!((secret.from.as_str(), secret.to.as_str()), ("/a:b", "/run/secrets/c"));
}

#[test]
fn c19_a_directory_of_keys_is_no_directory_to_work_in() {
    let harness = CodexHarness::default();
    let options = |dir: &str| json!({ "add_dirs": [dir] }).as_object().expect("a map").clone();
    for (wanted, word) in [
        ("/home/u/.ssh", "is the forbidden path"),
        ("/home/u/.ssh/keys", "is inside the forbidden path"),
        ("/home/u", "would expose"),
        ("/home/u/.ours-fleet/handout/A", "forbidden path"),
        ("/etc", "part of the system"),
    ] {
        let mut scene = Scene::new();
        scene.write_dirs = harness.write_dirs(&options(wanted));
        let problems = scene.resolve().expect_err(wanted);
        assert_eq!(problems[0].path, "harness_options.add_dirs[0]", "{}", problems[0]);
        assert!(problems[0].message.contains(word), "{}", problems[0]);
    }
    let mut scene = Scene::new();
    scene.write_dirs = harness.write_dirs(&options("/data"));
    let policy = scene.resolve().expect("a directory like any other");
    let mount = policy.covering(&path("/data/x")).expect("it is mounted");
    assert_eq!(
        (mount.mode, &mount.origin),
        (MountMode::ReadWrite, &MountOrigin::AddDir { index: 0 })
    );
}
