//! A6: secrets that would be readable in the process list or in files.

use std::fs;
use std::path::Path;

use crate::support::{TestEnvironment, needs, wait_for};

const CANARY: &str = "canary-7f3a-of-the-environment";

fn command_lines() -> String {
    let mut all = String::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        all.push_str(&String::from_utf8_lossy(&line));
        all.push('\n');
    }
    all
}

fn files_with(dir: &Path, needle: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            files_with(&path, needle, found);
        } else if kind.is_file() {
            let content = fs::read(&path).unwrap_or_default();
            if String::from_utf8_lossy(&content).contains(needle) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn a6_secrets_are_in_no_command_line_and_no_file() {
    needs!("tmux", "bwrap");
    let mut env = TestEnvironment::with_fleet(&format!(
        "roles:\n  A:\n    harness: command\n    env: {{ API_TOKEN: {CANARY}-env }}\n    env_pass: [PASSED]\n    harness_options:\n      argv: [sh, -c, 'echo $API_TOKEN $PASSED $HIDDEN > \"$OURS_FLEET_STATE/seen\"; exec cat']\n    isolation: {{ network: deny }}\n"
    ));
    env.set("PASSED", &format!("{CANARY}-pass"));
    env.set("HIDDEN", &format!("{CANARY}-hidden"));
    // The control: a secret on a command line is found.
    let mut control = std::process::Command::new("sh")
        .args(["-c", "read x", "sh", &format!("{CANARY}-control")])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("sh");
    // A process that has just been made has no command line for a moment.
    wait_for("the look at command lines finds the control", || {
        command_lines().contains(&format!("{CANARY}-control")).then_some(())
    });
    drop(control.stdin.take());
    control.wait().expect("ends");

    let out = env.run(["up"]).expect(0);
    let seen = wait_for("the harness has its environment", || {
        env.state_file("A", "seen").filter(|seen| seen.ends_with(b"\n"))
    });
    // It has what it was given, and nothing else of fleet's own environment.
    assert_eq!(String::from_utf8_lossy(&seen), format!("{CANARY}-env {CANARY}-pass\n"));

    let mut said = out.all();
    for args in [
        &["status", "A"][..],
        &["status", "A", "--json"],
        &["logs", "A"],
        &["config"],
        &["config", "--json"],
        &["doctor"],
        &["ls", "--json"],
    ] {
        said.push_str(&env.run(args).all());
    }
    assert!(!said.contains(CANARY), "{said}");
    let lines = command_lines();
    assert!(!lines.contains(CANARY), "a secret is in a command line");
    let mut files = Vec::new();
    files_with(&env.path(".ours-fleet"), CANARY, &mut files);
    assert_eq!(files, [env.path(".ours-fleet/agents/A/seen").display().to_string()]);
}
