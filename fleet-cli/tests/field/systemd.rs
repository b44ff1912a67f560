//! Runners as units of a real systemd user manager. `scripts/with-user-manager.sh` brings one; without it
//! there is nothing to run them by.

use std::process::Command;

use crate::support::{TestEnvironment, needs, wait_for};

const TWO: &str = "\
roles:
  Rev:
    harness: command
    harness_options: { argv: [sh, -c, 'echo ready; exec cat'] }
  Reviewer:
    harness: command
    harness_options: { argv: [sh, -c, 'echo ready; exec cat'] }
";

/// A fleet whose units a manager runs that this test did not start.
struct Fleet {
    env: TestEnvironment,
    home: String,
}

impl Fleet {
    fn new(env: TestEnvironment) -> Self {
        let home = std::env::var("HOME").expect("HOME");
        let runtime = std::env::var("XDG_RUNTIME_DIR").expect("XDG_RUNTIME_DIR");
        let mut env = env;
        let own = env.home().to_str().expect("UTF-8").to_owned();
        // The manager reads the units of its own home; a fleet home of its own has units of its own.
        env.set("OURS_FLEET_HOME", &own);
        env.set("HOME", &home);
        env.set("XDG_RUNTIME_DIR", &runtime);
        env.set("OURS_FLEET_SUPERVISOR", "auto");
        Self { env, home }
    }

    fn systemctl(args: &[&str]) -> String {
        let output = Command::new("systemctl").arg("--user").args(args).output();
        let output = output.expect("systemctl");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The unit of a role, by the template that `init` says it wrote.
    fn unit(&self, role: &str) -> String {
        let units = format!("{}/.config/systemd/user", self.home);
        let own = self.env.home().to_str().expect("UTF-8").to_owned();
        let entries = std::fs::read_dir(&units).expect("units");
        let template = entries
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.is_file())
            .find(|path| {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                text.contains(&format!("OURS_FLEET_HOME={own}\""))
            });
        let name = template.expect("a template").file_name().expect("a name").to_owned();
        name.to_str().expect("UTF-8").replace("@.service", &format!("@{role}.service"))
    }

    fn property(&self, role: &str, name: &str) -> String {
        Self::systemctl(&["show", &self.unit(role), "-p", name, "--value"])
    }

    fn enabled(&self, role: &str) -> bool {
        Self::systemctl(&["is-enabled", &self.unit(role)]) == "enabled"
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.env.run(["down"]);
    }
}

macro_rules! needs_user_manager {
    () => {
        needs!("tmux", "systemctl");
        if std::env::var_os("OURS_FLEET_TEST_USER_MANAGER").is_none() {
            skip!("no user manager of its own: run by scripts/with-user-manager.sh");
        }
    };
}

#[test]
fn a_killed_runner_is_restarted_and_what_is_down_stays_down() {
    needs_user_manager!();
    let fleet = Fleet::new(TestEnvironment::with_fleet(TWO));
    let init = fleet.env.run(["init"]).expect(0);
    assert!(init.stdout.contains("`systemd`") && init.stdout.contains("wrote "), "{}", init.stdout);
    let again = fleet.env.run(["init"]).expect(0);
    assert!(!again.stdout.contains("wrote "), "{}", again.stdout);

    fleet.env.run(["up"]).expect(0);
    let before = (fleet.env.pids("Rev"), fleet.env.pids("Reviewer"));
    for role in ["Rev", "Reviewer"] {
        assert_eq!(fleet.property(role, "ActiveState"), "active");
        assert!(fleet.enabled(role), "{role} starts with the machine");
    }
    assert_eq!(fleet.property("Rev", "MainPID"), before.0.0.to_string());
    assert_eq!(fleet.property("Rev", "StatusText"), "running");
    fleet.env.run(["up"]).expect(0);
    assert_eq!((fleet.env.pids("Rev"), fleet.env.pids("Reviewer")), before, "nothing to do");

    let killed = before.0.0.to_string();
    assert!(Command::new("kill").args(["-KILL", &killed]).status().expect("kill").success());
    wait_for("the runner is back", || {
        let status = fleet.env.status("Rev");
        let pid = status["status"]["runner"]["pid"].as_u64();
        (status["state"] == "running" && pid != Some(before.0.0)).then_some(())
    });
    assert_eq!(fleet.property("Rev", "NRestarts"), "1");
    assert_eq!(fleet.env.pids("Reviewer"), before.1, "the other role is untouched");

    fleet.env.run(["down", "Rev"]).expect(0);
    assert!(!fleet.enabled("Rev") && fleet.enabled("Reviewer"));
    // As at a boot: what is enabled is started.
    let unit = fleet.unit("Reviewer");
    Fleet::systemctl(&["stop", &unit]);
    wait_for("it stopped", || (fleet.env.status("Reviewer")["state"] == "stopped").then_some(()));
    Fleet::systemctl(&["start", "default.target"]);
    wait_for("it is back", || (fleet.env.status("Reviewer")["state"] == "running").then_some(()));
    assert_eq!(fleet.env.status("Rev")["state"], "stopped");
    // Stopped by somebody else, and taken down by fleet: it does not come back.
    Fleet::systemctl(&["stop", &unit]);
    wait_for("it stopped", || (fleet.env.status("Reviewer")["state"] == "stopped").then_some(()));
    fleet.env.run(["down"]).expect(0);
    assert!(!fleet.enabled("Reviewer"));
    fleet.env.expect_no_process();
}

#[test]
fn a_role_that_waits_for_its_restart_is_not_stopped_and_can_be_taken_down() {
    needs_user_manager!();
    let fleet = Fleet::new(TestEnvironment::with_fleet(TWO));
    fleet.env.run(["up", "Rev"]).expect(0);
    let (runner, _) = fleet.env.pids("Rev");
    assert!(
        Command::new("kill").args(["-KILL", &runner.to_string()]).status().expect("kill").success()
    );
    wait_for("it waits", || (fleet.property("Rev", "SubState") == "auto-restart").then_some(()));
    assert_eq!(fleet.env.status("Rev")["state"], "unknown");
    fleet.env.run(["down", "Rev"]).expect(0);
    assert_eq!(fleet.property("Rev", "ActiveState"), "inactive");
    assert_eq!(fleet.env.status("Rev")["state"], "stopped");
    fleet.env.expect_no_process();
}

#[test]
fn another_choice_takes_a_role_over() {
    needs_user_manager!();
    let mut fleet = Fleet::new(TestEnvironment::with_fleet(TWO));
    fleet.env.run(["up"]).expect(0);
    let reviewer = fleet.env.pids("Reviewer");
    fleet.env.set("OURS_FLEET_SUPERVISOR", "none");
    fleet.env.run(["restart", "Rev"]).expect(0);
    assert_eq!(fleet.env.status("Rev")["status"]["supervisor"], "none");
    assert!(!fleet.enabled("Rev"), "never two");
    assert_eq!(fleet.property("Rev", "ActiveState"), "inactive");
    // Each is looked at and stopped by what runs it.
    assert_eq!(fleet.env.pids("Reviewer"), reviewer);
    fleet.env.run(["down"]).expect(0);
    assert!(!fleet.enabled("Reviewer"));
    fleet.env.expect_no_process();
}

#[test]
fn a_start_that_fails_is_told_and_undone() {
    needs_user_manager!();
    let fleet = Fleet::new(TestEnvironment::with_fleet(TWO));
    fleet.env.run(["init"]).expect(0);
    // A runner that cannot take its role over: its control directory is a file.
    std::fs::create_dir_all(fleet.env.path(".ours-fleet/control")).expect("made");
    fleet.env.write(".ours-fleet/control/Rev/supervisor-run.json/x", "");
    let out = fleet.env.run(["up", "Rev"]).expect(1);
    let unit = fleet.unit("Rev");
    assert!(out.stderr.contains(&format!("journalctl --user -u {unit}")), "{}", out.stderr);
    assert!(!fleet.enabled("Rev"), "it would fail again at each boot");
}

#[test]
fn a_template_of_somebody_else_is_left_alone() {
    needs_user_manager!();
    let fleet = Fleet::new(TestEnvironment::with_fleet(TWO));
    fleet.env.run(["init"]).expect(0);
    let template = fleet.unit("");
    let path = format!("{}/.config/systemd/user/{template}", fleet.home);
    let written = std::fs::read_to_string(&path).expect("a template");
    std::fs::write(&path, "[Unit]\n").expect("written");
    let out = fleet.env.run(["up"]).expect(1);
    assert!(out.stderr.contains("was not written by fleet"), "{}", out.stderr);
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "[Unit]\n");
    // Fleet's own, of another installation, is written again.
    std::fs::write(&path, written.replace("RestartSec=5", "RestartSec=50")).expect("written");
    let doctor = fleet.env.run(["doctor"]).all();
    assert!(doctor.contains("is of another installation"), "{doctor}");
    fleet.env.run(["up"]).expect(0);
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), written);
}
