//! `_hook`: small, quick and quiet, whatever is wrong.

use std::io::Write;
use std::process::Stdio;

use crate::support::TestEnvironment;

/// Runs a hook with this input: code, standard output, standard error.
fn hook(env: &TestEnvironment, args: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut command = env.command();
    command.arg("_hook").args(args).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("all of it is read");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

#[test]
fn without_a_runner_a_question_is_denied_and_nothing_else_is_said() {
    let env = TestEnvironment::new();
    let socket = env.path("hook.sock").display().to_string();
    let large = vec![b'x'; 3 * 1024 * 1024];
    for input in [&b"{}"[..], b"", b"no json", &large] {
        let (code, out, err) = hook(&env, &["PermissionRequest", &socket], input);
        let printed: serde_json::Value = serde_json::from_str(&out).expect("one JSON document");
        let decision = &printed["hookSpecificOutput"]["decision"];
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(decision["behavior"], "deny");
        assert!(decision["message"].as_str().is_some_and(|text| text.contains("unattended: deny")));
        for event in ["SessionStart", "UserPromptSubmit", "Notification", "Stop", "StopFailure"] {
            let seen = hook(&env, &[event, &socket], input);
            assert_eq!(seen, (0, String::new(), String::new()), "{event}");
        }
    }
    assert_eq!(hook(&env, &["PreToolUse", &socket], b"").0, 64, "only the events of the table");
    assert!(!env.path(".ours-fleet").exists(), "nothing is made");
    assert!(!env.run(["--help"]).expect(0).stdout.contains("_hook"));
}

/// It needs neither a fleet file nor a home, so a broken one does not matter.
#[test]
fn a_broken_fleet_file_does_not_matter() {
    let env = TestEnvironment::with_fleet("roles: [");
    let socket = env.path("hook.sock").display().to_string();
    assert_eq!(hook(&env, &["Stop", &socket], b"{}"), (0, String::new(), String::new()));
}
