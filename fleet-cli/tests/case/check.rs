//! `check` as people and CI run it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::TestEnvironment;
use crate::support::repository::Repository;

const GOOD: &str = "\
roles:
  A:
    harness: command
    harness_options: { argv: [cat] }
    isolation: { network: deny, fs: { read: [/srv/data] } }
";

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn run(repository: &Repository, directory: &str, args: &[&str]) -> Run {
    let mut command = repository.command(env!("CARGO_BIN_EXE_ours-fleet"));
    let output = command
        .current_dir(repository.path().join(directory))
        .arg("check")
        .args(args)
        .output()
        .expect("the binary runs");
    Run {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

impl Run {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

#[test]
fn a_verdict_is_the_same_for_every_account_and_touches_nothing() {
    let bad = "roles:\n  A:\n    cwd: ~/project\n    isolation: { network: deny, fs: { read: [~/.ssh, /home/u/.aws], write: [/srv/x] } }\n    briefing_file: /nowhere\n";
    let mut outputs = BTreeSet::new();
    for extra in [&[][..], &[("CLAUDE_CONFIG_DIR", "/srv/x"), ("SSH_AUTH_SOCK", "/srv/x/s")]] {
        let mut env = TestEnvironment::with_fleet(bad);
        env.write("project/file", "");
        for (name, value) in extra {
            env.set(name, value);
        }
        let out = env.run(["check", "-c", "fleet.yaml", "--format", "json"]).expect(1);
        assert_eq!(out.stderr, "");
        outputs.insert(out.stdout.clone());
        let json = out.json();
        assert_eq!(json["lexical"], true, "{json}");
        let errors: Vec<&str> = json["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|it| it["level"] == "error")
            .filter_map(|it| it["path"].as_str())
            .collect();
        assert_eq!(errors, ["isolation.fs.read[0]", "isolation.fs.read[1]"], "{json}");
        assert!(!env.path(".ours-fleet").exists(), "nothing was touched");
    }
    assert_eq!(outputs.len(), 1, "{outputs:?}");
}

#[test]
fn a_person_reads_what_is_wrong_and_that_nothing_else_was_looked_at() {
    let env = TestEnvironment::with_fleet(GOOD);
    env.write("fleet.d/b.yaml", "roles:\n  B: { harness: command, harness_options: { argv: [cat] }, isolation: { network: deny, fs: { read: ['~'] } } }\n");
    let out = env.run(["check"]).expect(1);
    assert_eq!(out.stderr, "");
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert_eq!(lines[..2], ["source: fleet.yaml", "source: fleet.d/b.yaml"], "{lines:#?}");
    assert_eq!(
        lines[2],
        "judged by the text alone: no other file was looked at, `~` is /home/operator"
    );
    assert!(lines[3].starts_with("error: fleet.d/b.yaml:2:"), "{}", lines[3]);
    assert!(lines[3].contains("role B: isolation.fs.read[0]: "), "{}", lines[3]);
    assert_eq!(lines.last(), Some(&"refused: 2 roles, 1 error"));
    env.write("fleet.d/b.yaml", "roles: {}\n");
    let out = env.run(["check"]).expect(0);
    assert_eq!(out.stdout.lines().last(), Some("ok: 1 role"));
}

#[test]
fn a_fleet_that_is_not_there_is_empty_unless_it_was_asked_for() {
    let env = TestEnvironment::new();
    let out = env.run(["check"]).expect(0);
    assert!(out.stdout.contains("fleet.yaml (does not exist)"), "{}", out.stdout);
    assert!(
        out.stdout.contains("warning: there is no fleet file, so nothing was judged"),
        "{}",
        out.stdout
    );
    let out = env.run(["check", "-c", "other.yaml", "--format", "json"]).expect(1);
    assert_eq!(out.json()["error"]["kind"], "config-file");
}

#[test]
fn an_older_file_with_its_drop_ins_is_compared() {
    let env = TestEnvironment::with_fleet(GOOD);
    let drop_in = "roles: { B: { harness: command, harness_options: { argv: [cat] }, isolation: { network: deny } } }\n";
    env.write("old/fleet.yaml", &GOOD.replace("/srv/data", "/srv/data/part"));
    env.write("old/fleet.d/b.yaml", drop_in);
    let out = env.run(["check", "--against", "old/fleet.yaml", "--format", "json"]).expect(1);
    let json = out.json();
    let found = &json["against"];
    assert_eq!(found["commit"], Value::Null);
    assert_eq!(found["removedRoles"][0]["role"], "B");
    assert_eq!(found["removedRoles"][0]["place"]["file"], "old/fleet.d/b.yaml");
    assert_eq!(
        found["widenings"],
        serde_json::json!([{
            "role": "A",
            "dimension": "paths",
            "weight": "widening",
            "subject": "/srv/data",
            "from": "not reachable",
            "to": "ro",
            "key": "isolation.fs.read[0]",
            "place": { "file": "fleet.yaml", "line": 5, "column": 46 },
        }])
    );
    env.run(["check", "--against", "fleet.yaml"]).expect(0);
    // The other way round it is narrower.
    let out = env.run(["check", "-c", "old/fleet.yaml", "--against", "./fleet.yaml"]).expect(0);
    assert!(out.stdout.contains("new role: B (old/fleet.d/b.yaml:1:10)\n"), "{}", out.stdout);
    assert_eq!(
        out.stdout.lines().last(),
        Some("ok: 2 roles, nothing is wider than in ./fleet.yaml")
    );
}

#[test]
fn a_revision_is_compared_from_anywhere_in_the_repository() {
    let env = TestEnvironment::new();
    let repository = Repository::new(&env);
    repository.write("README", "");
    let first = repository.commit("no fleet");
    repository.write("ops/fleet.yaml", GOOD);
    repository.write("ops/fleet.d/b.yaml", "roles: {}\n");
    repository.write("ops/fleet.d/notes.txt", "rolez");
    repository.commit("a fleet");
    repository.git(&["tag", "v1"]);
    repository.write("ops/fleet.d/b.yaml", &GOOD.replace("A:", "B:"));
    repository.write("ops/fleet.yaml", &GOOD.replace("read: [", "read: [/srv/more, "));
    for (directory, file) in
        [("", "ops/fleet.yaml"), ("ops", "fleet.yaml"), ("ops/fleet.d", "../fleet.yaml")]
    {
        for revision in ["v1", "HEAD", "main", "HEAD~0"] {
            let out = run(&repository, directory, &["-c", file, "--against", revision]).expect(1);
            let wider = "wider: role A: paths: /srv/more: not reachable → ro (";
            assert!(out.out.contains(wider), "{}", out.out);
            assert!(out.out.contains("new role: B ("), "{}", out.out);
            let verdict = format!("refused: 2 roles, 1 widening against {revision}");
            assert_eq!(out.out.lines().last(), Some(verdict.as_str()));
        }
    }
    // Before there was a fleet every role is new.
    let out = run(&repository, "", &["-c", "ops/fleet.yaml", "--against", &first]).expect(0);
    assert!(out.out.contains("new role: A (ops/fleet.yaml:2:3)"), "{}", out.out);
    // From inside a hook git has set variables that lead elsewhere.
    let out = repository
        .command(env!("CARGO_BIN_EXE_ours-fleet"))
        .args(["check", "-c", "ops/fleet.yaml", "--against", "HEAD"])
        .envs([("GIT_DIR", "/nowhere"), ("GIT_INDEX_FILE", "/nowhere")])
        .output()
        .expect("the binary runs");
    assert_eq!(out.status.code(), Some(1));
    // Files are named from the top of the repository, wherever the command runs.
    let args = ["-c", "fleet.yaml", "--against", "v1", "--format", "github"];
    let out = run(&repository, "ops", &args).expect(1);
    assert!(out.out.contains("::error file=ops/fleet.yaml,line=5,col="), "{}", out.out);
}

#[test]
fn what_is_no_version_is_refused_and_never_an_option_of_git() {
    let env = TestEnvironment::new();
    let repository = Repository::new(&env);
    repository.write("fleet.yaml", GOOD);
    repository.commit("a fleet");
    let canary = env.path("canary");
    let option = format!("--against=--output={}", canary.display());
    for args in
        [&["--against="][..], &[&option], &["--against=-x"], &["--against=HEAD\n::error::x"]]
    {
        let out = run(&repository, "", &[&["-c", "fleet.yaml"], args].concat()).expect(64);
        assert!(out.out.is_empty() && !out.err.contains("\n::"), "{}", out.err);
    }
    for revision in
        ["nope", "HEAD:fleet.yaml", "HEAD;touch canary", "$(touch canary)", "@{", "..", "HEAD HEAD"]
    {
        let out = run(&repository, "", &["-c", "fleet.yaml", "--against", revision]).expect(1);
        assert!(out.err.contains("neither a file nor a revision"), "{revision}: {}", out.err);
    }
    assert!(!canary.exists() && !repository.path().join("canary").exists());
    let plain = TestEnvironment::with_fleet(GOOD);
    let out = plain.run(["check", "--against", "HEAD"]).expect(1);
    assert!(out.stderr.contains("in no git repository"), "{}", out.stderr);
}

#[test]
fn an_old_version_that_does_not_load_or_is_a_link_is_no_free_pass() {
    let env = TestEnvironment::new();
    let repository = Repository::new(&env);
    repository.write("fleet.yaml", "rolez: {}\n");
    repository.commit("wrong");
    repository.write("fleet.yaml", GOOD);
    let out = run(&repository, "", &["-c", "fleet.yaml", "--against", "HEAD"]).expect(1);
    assert!(out.out.contains("`HEAD` does not load, so nothing can be compared"), "{}", out.out);
    assert!(out.out.contains("(HEAD:fleet.yaml:1:1: "), "{}", out.out);
    std::fs::remove_file(repository.path().join("fleet.yaml")).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", repository.path().join("fleet.yaml"))
        .expect("a link");
    repository.commit("a link");
    std::fs::remove_file(repository.path().join("fleet.yaml")).expect("removed");
    repository.write("fleet.yaml", GOOD);
    let out = run(&repository, "", &["-c", "fleet.yaml", "--against", "HEAD"]).expect(1);
    assert!(out.err.contains("is no regular file in `HEAD`"), "{}", out.err);
}

/// A fleet with texts that try to end lines, begin commands and steer terminals.
const HOSTILE: &str = "\
roles:
  A:
    harness_options:
      plugins: { \"x\\n::error file=a::forged\\e[31m@y\": true }
    isolation: { network: deny }
    \"k\\n::warning::forged\": 1
    permissions: { approval: \"::error::forged\" }
\"\\n::error::forged\": 1
";

#[test]
fn hostile_texts_forge_no_line_no_command_and_no_escape() {
    let env = TestEnvironment::with_fleet(HOSTILE);
    let plugin = "roles:\n  A:\n    harness_options:\n      plugins: { \"x\\n::error file=a::forged\\e[31m\\u2028::error::x@y\": true }\n    isolation: { network: deny }\n";
    env.write("new.yaml", plugin);
    env.write("::error::x.yaml", plugin);
    env.write("old.yaml", "roles:\n  A:\n    isolation: { network: deny }\n");
    for format in ["human", "json", "sarif", "github"] {
        for args in
            [&[][..], &["-c", "new.yaml", "--against", "old.yaml"], &["-c", "::error::x.yaml"]]
        {
            let out = env.run([&["check", "--format", format], args].concat());
            assert!(!out.all().contains('\u{1b}'), "{format}: {}", out.all());
            for line in out.all().split(['\n', '\r']) {
                let ours = ["::error file=", "::warning file=", "::notice file="];
                let ours = format == "github" && ours.iter().any(|it| line.starts_with(it));
                assert!(!line.trim_start().starts_with("::") || ours, "{format}: {line}");
                assert!(!line.starts_with("::error file=a::"), "{format}: {line}");
            }
        }
    }
    let out = env.run(["check", "-c", "new.yaml", "--against", "old.yaml"]).expect(1);
    assert!(
        out.stdout.contains("harness_options: plugins.x\\n::error file=a::forged"),
        "{}",
        out.stdout
    );
}

#[test]
fn sarif_has_what_code_scanning_needs() {
    let env = TestEnvironment::with_fleet(GOOD);
    env.write(
        "a b/fleet.yaml",
        "roles:\n  A:\n    permissions: { approval: auto }\n    harness_options: { permission_mode: default }\n    isolation: { network: deny, fs: { read: [~/.ssh] } }\n  N: { isolation: { network: deny } }\n",
    );
    env.write(
        "old.yaml",
        "roles:\n  A:\n    isolation: { network: deny }\n  R: { isolation: { network: deny } }\n",
    );
    let args = ["check", "-c", "a b/fleet.yaml", "--against", "old.yaml", "--format", "sarif"];
    let out = env.run(args).expect(1);
    let log: Value = serde_json::from_str(&out.stdout).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().is_some_and(|uri| uri.ends_with("sarif-schema-2.1.0.json")));
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "ours-fleet");
    let rules = driver["rules"].as_array().expect("rules");
    let ids: BTreeSet<&str> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
    assert_eq!(ids.len(), rules.len(), "ids are unique");
    assert!(rules.iter().all(|rule| rule["shortDescription"]["text"].is_string()));
    let results = run["results"].as_array().expect("results");
    let mut seen = BTreeSet::new();
    for result in results {
        let id = result["ruleId"].as_str().expect("a rule");
        let index =
            usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
        assert_eq!(rules[index]["id"], id);
        assert!(matches!(result["level"].as_str(), Some("error" | "warning" | "note")), "{result}");
        assert!(!result["message"]["text"].as_str().expect("a text").is_empty());
        for location in result["locations"].as_array().into_iter().flatten() {
            let place = &location["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], "a%20b/fleet.yaml");
            assert_eq!(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
            assert!(place["region"]["startLine"].as_u64().is_some_and(|line| line > 0), "{place}");
        }
        seen.insert(id);
    }
    for id in [
        "comparison/new-role",
        "comparison/removed-role",
        "comparison/wider/approval",
        "comparison/wider/paths",
        "config/forbidden-mount",
        "permissions/conflict",
        "permissions/floor",
    ] {
        assert!(seen.contains(id), "{id} is not in {seen:?}");
    }
}

#[test]
fn strict_yaml_is_asked_for_by_a_flag() {
    let env = TestEnvironment::with_fleet(
        "x: &a 1\nroles: {}\n".replace("x: &a 1\n", "vars: { A: &a x }\n").as_str(),
    );
    env.run(["check"]).expect(0);
    let out = env.run(["check", "--yaml-mode", "strict", "--format", "github"]).expect(1);
    assert!(out.stdout.contains("title=config/anchor::"), "{}", out.stdout);
    env.run(["check", "--format", "xml"]).expect(64);
}
