//! What users are told about consoles, and what a console's program gets.

use crate::support::{TestEnvironment, needs, wait_for};

const ONE: &str = "\
roles:
  A:
    harness: command
    harness_options: { argv: [sh, -c, 'echo ready; exec cat'] }
";

#[test]
fn fault4_users_are_never_told_to_call_tmux_themselves() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(ONE);
    let mut said = env.run(["--help"]).expect(0).all();
    for verb in ["init", "up", "down", "restart", "ls", "status", "peek", "attach", "send", "logs"]
    {
        said.push_str(&env.run([verb, "--help"]).expect(0).all());
    }
    for args in [&["init"][..], &["attach", "A"], &["up"], &["status", "A"], &["ls"], &["doctor"]] {
        said.push_str(&env.run(args).all());
    }
    let briefing = env.read(".ours-fleet/handout/A/briefing.md").expect("a briefing");
    said.push_str(&String::from_utf8_lossy(&briefing));
    assert!(said.contains("ours-fleet attach"), "{said}");
    for word in ["tmux attach", "tmux a ", "tmux -S", "attach-session"] {
        assert!(!said.contains(word), "{word:?} in {said}");
    }
}

/// Faults 5 and 27: the program gets colour unless the role refuses it, and never a messaging daemon.
#[test]
fn fault5_fault27_what_the_shell_of_up_had_does_not_reach_a_console() {
    needs!("tmux");
    let role = "    harness: command\n    harness_options: { argv: [sh, -c, 'env > \"$OURS_FLEET_STATE/part\"; mv \"$OURS_FLEET_STATE/part\" \"$OURS_FLEET_STATE/env\"; exec cat'] }\n";
    let mut env = TestEnvironment::with_fleet(&format!(
        "roles:\n  Plain:\n{role}  Asked:\n{role}    env: {{ NO_COLOR: '1' }}\n"
    ));
    env.set("NO_COLOR", "1");
    env.set("OURS_AUTOSTART", "1");
    env.run(["up"]).expect(0);
    for (name, asked) in [("Plain", false), ("Asked", true)] {
        let seen = wait_for("its environment", || env.state_file(name, "env"));
        let seen = String::from_utf8(seen).expect("UTF-8");
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines.contains(&"NO_COLOR=1"), asked, "{name}: {seen}");
        assert!(lines.contains(&"OURS_AUTOSTART=0"), "{name}: {seen}");
        assert!(lines.contains(&"TERM=tmux-256color"), "{name}: {seen}");
    }
}

/// A program outside the system directories is there inside the sandbox, its interpreter included.
#[test]
fn fault90_a_program_of_the_home_runs_inside_the_sandbox() {
    needs!("tmux", "bwrap");
    let mut env = TestEnvironment::new();
    let interpreter = env.script("tools/interpreter", "#!/bin/sh\nexec sh \"$@\"\n");
    env.script(
        ".local/bin/agent",
        &format!(
            "#!{}\nls \"$HOME/.local/bin\" \"$HOME/private\" > \"$OURS_FLEET_STATE/ran\" 2>&1\nexec cat\n",
            interpreter.display()
        ),
    );
    env.write("private/canary", "x");
    env.write(
        "fleet.yaml",
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [agent] }\n    isolation: { network: deny }\n",
    );
    let path = std::env::var("PATH").expect("PATH");
    env.set("PATH", &format!("{}:{path}", env.path(".local/bin").display()));
    env.run(["up"]).expect(0);
    let ran = wait_for("it runs", || env.state_file("A", "ran").filter(|ran| !ran.is_empty()));
    let ran = String::from_utf8_lossy(&ran).into_owned();
    assert!(ran.contains("agent") && !ran.contains("canary"), "{ran}");
}
