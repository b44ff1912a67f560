//! Under Landlock an agent can change the mode of everything of the user. It can't take `down` away.

use std::os::unix::fs::PermissionsExt as _;

use rstest::rstest;

use crate::support::{TestEnvironment, needs, wait_for};

/// Two roles; `Att` takes all rights from a path once it is told to.
fn fleet(target: &str) -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write("att/x", "");
    env.write("sib/x", "");
    let role = |name: &str, cwd: &str, script: &str| {
        format!(
            "  {name}:\n    harness: command\n    cwd: {cwd}\n    harness_options: {{ argv: [sh, -c, '{script}; exec cat'] }}\n    isolation: {{ backend: landlock, network: deny, on_unavailable: warn }}\n",
            cwd = env.path(cwd).display(),
        )
    };
    let script = format!(
        "while ! test -e go; do sleep 0.1; done; chmod 000 {}; echo > done",
        env.path(target).display()
    );
    let (att, sib) = (role("Att", "att", &script), role("Sib", "sib", "true"));
    env.write("fleet.yaml", &format!("roles:\n{att}{sib}"));
    env
}

#[rstest]
#[case::its_own_control(".ours-fleet/control/Att")]
#[case::control_of_another(".ours-fleet/control/Sib")]
#[case::its_lock(".ours-fleet/control/Att/runner.lock")]
#[case::state_of_another(".ours-fleet/agents/Sib")]
#[case::the_state_of_all(".ours-fleet")]
fn a_mode_that_an_agent_took_away_keeps_nobody_from_stopping_it_as_user(#[case] target: &str) {
    needs!("tmux");
    let env = fleet(target);
    env.run(["up"]).expect(0);
    // The control: nothing to mend, nothing said.
    let before = env.run(["status"]).expect(0);
    assert!(!before.all().contains("given back"), "{}", before.all());
    env.write("att/go", "");
    wait_for("the attack", || env.read("att/done"));
    let mode = || env.path(target).metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(), 0, "the attack works");
    let told = env.run(["status"]).expect(0).all();
    assert!(told.contains("given back") && told.contains(target), "{told}");
    assert_eq!(env.status("Sib")["state"], "running");
    // Once more, straight before the stop.
    std::fs::set_permissions(env.path(target), std::fs::Permissions::from_mode(0o000))
        .expect("chmod");
    let told = env.run(["down", "Att"]).expect(0).all();
    assert!(told.contains("given back") && told.contains("stopped"), "{told}");
    assert_eq!(mode() & 0o600, 0o600);
    assert_eq!(env.status("Att")["state"], "stopped");
    assert_eq!(env.status("Sib")["state"], "running");
    // Without its agent doing it again while it starts.
    std::fs::remove_file(env.path("att/go")).expect("removed");
    std::fs::set_permissions(env.path(target), std::fs::Permissions::from_mode(0o000))
        .expect("chmod");
    env.run(["up"]).expect(0);
    assert_eq!(env.status("Att")["state"], "running");
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

/// What others could use to take a role over is closed again; the control is what was done in between.
#[test]
fn a_mode_that_was_opened_to_others_is_closed_again() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n",
    );
    env.run(["up"]).expect(0);
    let mode = |path: &str| env.path(path).metadata().expect("there").permissions().mode() & 0o777;
    let opened = [
        (".ours-fleet", 0o777, 0o700),
        (".ours-fleet/control", 0o777, 0o700),
        (".ours-fleet/control/A/control-token", 0o666, 0o600),
        (".ours-fleet/control/A/control.sock", 0o000, 0o600),
    ];
    for (path, given, _) in opened {
        std::fs::set_permissions(env.path(path), std::fs::Permissions::from_mode(given))
            .expect("chmod");
        assert_eq!(mode(path), given, "{path}");
    }
    let told = env.run(["status"]).expect(0).all();
    for (path, given, wanted) in opened {
        assert_eq!(mode(path), wanted, "{path}");
        assert!(
            told.contains(&format!("{path} had been opened to others (mode {given:04o})"))
                || given == 0,
            "{told}"
        );
    }
    assert_eq!(env.status("A")["state"], "running");
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

/// A console whose socket its user may not use any more keeps no role from starting again.
#[test]
fn a_socket_that_was_closed_keeps_no_role_from_starting() {
    needs!("tmux");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n",
    );
    env.run(["up"]).expect(0);
    let socket = env.path(".ours-fleet/control/A/tmux.sock");
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).expect("chmod");
    env.run(["restart", "A"]).expect(0);
    assert_eq!(env.status("A")["state"], "running");
    assert_eq!(env.run(["peek", "A"]).expect(0).stderr, "");
    env.run(["down"]).expect(0);
    env.expect_no_process();
}
