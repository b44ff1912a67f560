//! The files of `examples/ci`, run as they are: every step of the workflow in a clone, and the hook
//! by git itself.

use std::path::PathBuf;
use std::process::Command;

use crate::support::TestEnvironment;
use crate::support::repository::Repository;

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/ci").join(name);
    std::fs::read_to_string(path).expect("an example")
}

const NARROW: &str = "\
roles:
  A:
    harness: command
    harness_options: { argv: [cat] }
    cwd: /srv/a
    isolation: { network: deny, fs: { read: [/srv/data] } }
";

fn wider() -> String {
    NARROW.replace("read: [/srv/data]", "write: [/srv/data]")
}

fn narrower() -> String {
    NARROW.replace("/srv/data", "/srv/data/part")
}

/// Name and script of each step that runs something.
fn steps() -> Vec<(String, String)> {
    let workflow: serde_json::Value =
        serde_yaml::from_str(&example("fleet-check.yml")).expect("a workflow");
    let steps = workflow["jobs"]["check"]["steps"].as_array().expect("steps");
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    steps.iter().filter_map(|step| Some((text(&step["name"])?, text(&step["run"])?))).collect()
}

/// Runs the steps as a runner of GitHub Actions does: until one fails.
fn workflow(repository: &Repository, base: &str) -> (bool, String) {
    let mut log = String::new();
    let mut seen = 0;
    for (name, script) in steps() {
        if name == "Install ours-fleet" {
            assert!(script.starts_with("cargo install "), "{script}");
            continue;
        }
        seen += 1;
        let out = repository
            .command("bash")
            .args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", &script])
            .env("BASE", base)
            .output()
            .expect("bash");
        log.push_str(&String::from_utf8_lossy(&out.stdout));
        log.push_str(&String::from_utf8_lossy(&out.stderr));
        if !out.status.success() {
            return (false, log);
        }
    }
    assert_eq!(seen, 2, "the steps of the workflow");
    (true, log)
}

#[test]
fn the_workflow_stops_what_is_wider_and_what_is_wrong() {
    let env = TestEnvironment::new();
    let repository = Repository::new(&env);
    repository.write("fleet.yaml", NARROW);
    let base = repository.commit("the fleet");

    repository.write("fleet.yaml", &narrower());
    repository.commit("narrower");
    let (passed, log) = workflow(&repository, &base);
    assert!(passed, "{log}");

    repository.write("fleet.yaml", &wider());
    repository.commit("wider");
    let (passed, log) = workflow(&repository, &base);
    assert!(!passed, "{log}");
    let line =
        "::error file=fleet.yaml,line=6,col=47,title=wider::role A: paths: /srv/data: ro → rw\n";
    assert!(log.contains(line), "{log}");

    repository.write("fleet.yaml", "rolez: {}\n");
    repository.commit("wrong");
    let (passed, log) = workflow(&repository, &base);
    assert!(!passed && log.contains("::error file=fleet.yaml,line=1,col=1,"), "{log}");
}

/// Commits what is in the working directory, with the hook.
fn commit(repository: &Repository, all: bool) -> (bool, String) {
    let mut command = repository.command("git");
    command.args(["commit", "-q", "-m", "x"]);
    if all {
        command.arg("-a");
    }
    let out = command.output().expect("git");
    let text = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn the_hook_stops_what_is_wider_and_what_is_wrong() {
    for directory in ["", "ops/"] {
        let env = TestEnvironment::new();
        let mut repository = Repository::new(&env);
        let fleet = format!("{directory}fleet.yaml");
        repository.set("OURS_FLEET_FILE", &fleet);
        let hook = example("pre-commit");
        env.script("repository/.git/hooks/pre-commit", &hook);

        repository.write("README", "no fleet yet\n");
        repository.git(&["add", "."]);
        let (passed, log) = commit(&repository, false);
        assert!(passed, "a repository without a fleet: {log}");

        repository.write(&fleet, NARROW);
        repository.git(&["add", "."]);
        let (passed, log) = commit(&repository, false);
        assert!(passed, "the first fleet: {log}");

        repository.write(&fleet, &wider());
        let (passed, log) = commit(&repository, true);
        assert!(!passed, "wider: {log}");
        let line = format!("wider: role A: paths: /srv/data: ro → rw ({fleet}:6:47)");
        assert!(log.contains(&line), "{log}");

        // What counts is what is staged, whatever lies in the working directory.
        repository.git(&["add", "."]);
        repository.write(&fleet, NARROW);
        let (passed, log) = commit(&repository, false);
        assert!(!passed, "staged: {log}");

        repository.write(&fleet, "roles: [\n");
        let (passed, log) = commit(&repository, true);
        assert!(!passed, "wrong: {log}");

        repository.write(&fleet, &narrower());
        let (passed, log) = commit(&repository, true);
        assert!(passed, "narrower: {log}");

        // A drop-in belongs to it.
        let drop_in = "roles: { B: { harness: command, harness_options: { argv: [cat] }, isolation: { network: deny, fs: { read: [~/.ssh] } } } }\n";
        repository.write(&format!("{directory}fleet.d/b.yaml"), drop_in);
        repository.git(&["add", "."]);
        let (passed, log) = commit(&repository, false);
        assert!(!passed && log.contains("fleet.d/b.yaml:1:"), "a drop-in: {log}");

        let left = Command::new("git")
            .args(["-C", repository.path().to_str().expect("UTF-8"), "log", "--format=%s"])
            .output()
            .expect("git");
        assert_eq!(String::from_utf8_lossy(&left.stdout).lines().count(), 3, "commits");
    }
}
