//! The hook socket is the one door from a sandbox to the runner: it can be used as meant, and for
//! nothing else.

use std::process::Command;

use crate::support::{TestEnvironment, needs, wait_for};

/// What the program in the sandbox tries, each with what it saw in a file of its state.
const ATTEMPTS: &str = r#"
hook="$FLEET _hook"
out="$OURS_FLEET_STATE"
handout=$(dirname "$OURS_FLEET_BRIEFING")
control="$(dirname "$(dirname "$handout")")/control"
echo '{"tool_name":"Write"}' | $hook PermissionRequest "$handout/hook.sock" > "$out/question"
echo '{"error":"rate_limit"}' | $hook StopFailure "$handout/hook.sock" > "$out/event"; echo $? >> "$out/event"
python3 - "$handout/hook.sock" > "$out/hostile" 2>&1 <<'END'
import socket, sys
for line in [b'{"version":1,"id":"1","token":"","command":"send_key","key":"Enter"}',
             b'{"version":1,"id":"1","token":"","command":"submit_prompt","text":"typed-by-agent","timeoutMs":1}',
             b'{"version":1,"id":"1","token":"","command":"status"}']:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(line + b"\n")
    print(s.recv(9999).decode().strip())
END
{ rm -f "$handout/hook.sock" || mv "$handout/hook.sock" "$handout/x"; } 2> "$out/replace" && echo replaced >> "$out/replace"
ls "$control" "$control/A" > "$out/control" 2>&1
cat "$control/A/control-token" >> "$out/control" 2>&1
echo done > "$out/finished"
exec cat
"#;

#[test]
fn from_a_sandbox_only_the_two_requests_reach_the_runner() {
    needs!("tmux", "bwrap", "python3");
    let binary = env!("CARGO_BIN_EXE_ours-fleet");
    let env = TestEnvironment::new();
    let script = env.script("attempts.sh", ATTEMPTS);
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n  A:\n    harness: command\n    env: {{ FLEET: '{binary}' }}\n    \
             harness_options: {{ argv: [sh, '{script}'] }}\n    isolation:\n      network: deny\n      \
             on_unavailable: strict\n      fs: {{ read: ['{binary}', '{script}'] }}\n",
            script = script.display()
        ),
    );
    env.run(["up"]).expect(0);
    let seen = |name: &str| {
        String::from_utf8(env.state_file("A", name).unwrap_or_default()).expect("UTF-8")
    };
    wait_for("the attempts are over", || seen("finished").contains("done").then_some(()));

    // As meant: through a read-only directory, without a network.
    let question = seen("question");
    assert!(question.contains("nobody is at this console"), "{question:?}");
    assert_eq!(seen("event"), "0\n", "prints nothing and ends well");
    let log = |name: &str| {
        let bytes = env.read(&format!(".ours-fleet/control/A/{name}")).expect("a log");
        String::from_utf8(bytes).expect("UTF-8")
    };
    let events = log("session-events.jsonl");
    assert!(
        events.contains("\"kind\":\"permission\"") && events.contains("rate_limit"),
        "{events}"
    );
    assert!(log("runner.log").contains("permission for Write: denied (nobody)"));

    // Nothing else.
    let refused = "{\"version\":1,\"ok\":false}\n";
    assert_eq!(seen("hostile"), refused.repeat(3));
    assert!(!env.run(["peek", "A"]).expect(0).stdout.contains("typed-by-agent"));
    let replace = seen("replace");
    assert!(replace.contains("Read-only") && !replace.contains("replaced"), "{replace}");
    let control = seen("control");
    assert!(!control.contains("control-token\n") && !control.contains(".sock"), "{control}");
    assert!(control.contains("No such file"), "{control}");

    // What was tried is possible in principle: outside of the sandbox all of it is there.
    let handout = env.path(".ours-fleet/handout/A/hook.sock");
    assert!(handout.exists() && env.path(".ours-fleet/control/A/control-token").exists());
    let status = Command::new("rm").arg("-f").arg(&handout).status().expect("rm");
    assert!(status.success() && !handout.exists());
}
