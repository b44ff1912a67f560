//! A rename on the host takes a read-only mount away inside (measured); the role's report says so.

use std::process::Command;

use rstest::rstest;

use crate::support::{TestEnvironment, needs, wait_for};

/// Writes at the end of the configuration when told to, and says how that went.
const AGENT: &str = r#"
while :; do
  read -r path
  if echo >> "$path"; then echo "[wrote $path]"; else echo "[kept from $path]"; fi
done
"#;

struct Project {
    env: TestEnvironment,
    config: String,
}

impl Project {
    fn start(backend: &str) -> Self {
        let env = TestEnvironment::new();
        let script = env.script("agent.sh", AGENT);
        let repository = env.path("src/a");
        let git = Command::new("git").args(["init", "-q"]).arg(&repository).status();
        assert!(git.expect("git").success());
        env.write(
            "fleet.yaml",
            &format!(
                "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [/bin/sh, '{script}'] }}\n    \
                 cwd: '{cwd}'\n    isolation:\n      backend: {backend}\n      network: deny\n      \
                 on_unavailable: strict\n      fs: {{ read: ['{script}'] }}\n",
                script = script.display(),
                cwd = repository.display()
            ),
        );
        env.run(["up"]).expect(0);
        let config = repository.join(".git/config").to_str().expect("UTF-8").to_owned();
        Self { env, config }
    }

    /// Has the agent write there, until its answer is this one.
    fn agent_says(&self, path: &str, answer: &str) {
        self.env.run(["send", "A", path]).expect(0);
        wait_for(answer, || {
            // The console breaks lines.
            let screen = self.env.run(["peek", "A"]).stdout.replace('\n', "");
            screen.contains(&format!("[{answer} {path}]")).then_some(())
        });
    }

    fn row(&self) -> String {
        let status = self.env.status("A");
        let rows = status["enforcement"].as_array().expect("rows").clone();
        let row = rows.iter().find(|row| row["item"] == "filesystem").expect("a row");
        format!("{} {}", row["level"].as_str().expect("a level"), row["evidence"])
    }

    fn explained(&self) -> String {
        self.env.run(["explain", "A", &self.config]).expect(0).stdout
    }
}

fn expect_lost(project: &Project, path: &str) {
    let row = wait_for("the report says so", || {
        let row = project.row();
        row.starts_with("degraded").then_some(row)
    });
    assert!(row.contains(path) && row.contains("`ours-fleet restart A`"), "{row}");
    let text = project.env.run(["status", "A"]).expect(0).stdout;
    assert!(text.contains("DEGRADED") && text.contains(path), "{text}");
    let events = project.env.read(".ours-fleet/control/A/session-events.jsonl").unwrap_or_default();
    let events = String::from_utf8(events).expect("UTF-8");
    assert_eq!(events.matches("cover-lost").count(), 1, "{events}");
    assert!(events.contains(path), "{events}");
}

#[rstest]
#[case::bubblewrap("bubblewrap")]
#[case::podman("podman")]
fn a_configuration_that_is_replaced_outside_is_reported(#[case] backend: &str) {
    needs!("tmux", "git");
    match backend {
        "podman" => {
            needs!("podman", "runc");
        }
        _ => {
            needs!("bwrap");
        }
    }
    let project = Project::start(backend);
    // The control: covered, and everybody says so.
    project.agent_says(&project.config, "kept from");
    assert!(project.row().starts_with("enforced"), "{}", project.row());
    assert!(project.explained().contains("cannot write it"), "{}", project.explained());

    let words = ["config", "--file", &project.config, "user.name", "x"];
    assert!(Command::new("git").args(words).status().expect("git").success());
    project.agent_says(&project.config, "wrote");
    expect_lost(&project, &project.config);
    let explained = project.explained();
    assert!(explained.contains("can read and write it"), "{explained}");

    project.env.run(["restart", "A"]).expect(0);
    project.agent_says(&project.config, "kept from");
    assert!(project.row().starts_with("enforced"), "{}", project.row());
    assert!(project.explained().contains("cannot write it"), "{}", project.explained());
    project.env.run(["down"]).expect(0);
}

/// One that is there before and one that the launch makes.
#[rstest]
fn hooks_that_are_moved_away_are_reported(#[values(true, false)] before: bool) {
    needs!("tmux", "bwrap", "git");
    let project = Project::start("bubblewrap");
    if !before {
        project.env.run(["down"]).expect(0);
        std::fs::remove_dir_all(project.env.path("src/a/.git/hooks")).expect("removed");
        project.env.run(["up"]).expect(0);
    }
    let hooks = project.env.path("src/a/.git/hooks");
    let hook = hooks.join("pre-commit").to_str().expect("UTF-8").to_owned();
    project.agent_says(&hook, "kept from");
    std::fs::rename(&hooks, project.env.path("src/a/.git/h.old")).expect("renamed");
    std::fs::create_dir(&hooks).expect("made");
    project.agent_says(&hook, "wrote");
    expect_lost(&project, hooks.to_str().expect("UTF-8"));
    project.env.run(["down"]).expect(0);
}

/// What is written in place, and an orderly end, take nothing away.
#[test]
fn what_stays_in_place_is_not_reported() {
    needs!("tmux", "bwrap", "git");
    let project = Project::start("bubblewrap");
    std::fs::remove_dir_all(project.env.path("src/a/.git/hooks")).expect("removed");
    project.env.run(["restart", "A"]).expect(0);
    let config = std::fs::read(&project.config).expect("read");
    std::fs::write(&project.config, config).expect("written");
    std::fs::write(project.env.path("src/a/.git/other"), "").expect("written");
    project.agent_says(&project.config, "kept from");
    assert!(project.row().starts_with("enforced"), "{}", project.row());
    project.env.run(["restart", "A"]).expect(0);
    project.env.run(["down"]).expect(0);
    let events = project.env.read(".ours-fleet/control/A/session-events.jsonl").unwrap_or_default();
    let events = String::from_utf8(events).expect("UTF-8");
    // The first removal was one.
    assert!(events.matches("cover-lost").count() <= 1, "{events}");
}
