//! `explain` against a real sandbox, and as a command.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{TestEnvironment, needs, wait_for};

const CANARY: &str = "CANARY";
const MARK: &str = "MARK";

/// Looks for the canary in every file of a list and appends a mark to it; one line a file.
const LOOK: &str = r#"
cd /; d="$OURS_FLEET_STATE"; echo CANARY > "$d/own"
while read -r p; do
  s=-; grep -q CANARY "$p" 2>/dev/null && s=r
  { echo MARK >> "$p"; } 2>/dev/null
  echo "$s $p" >> "$d/seen"
done < "$d/list"
echo end >> "$d/seen"; exec cat
"#;

/// The files, with the canary in each, and where the role sees them.
fn files(env: &TestEnvironment) -> Vec<PathBuf> {
    let plain = [
        "work/file",
        "work/vendor/file",
        "work/.git/hooks/pre-commit",
        "work/.git/config",
        "work/.git/description",
        "data/file",
        "data/inner/file",
        "out/file",
        "out/sealed/file",
        ".ssh/id",
        ".bashrc",
        "notes.txt",
        "private/file",
        ".ours-fleet/agents/Other/file",
    ];
    let mut all: Vec<PathBuf> = plain.iter().map(|name| env.write(name, CANARY)).collect();
    for (link, target) in
        [("work/in", "data/file"), ("work/away", ".ssh/id"), ("elsewhere", "out/file")]
    {
        let link = env.path(link);
        if !link.is_symlink() {
            symlink(env.path(target), &link).expect("a link");
        }
        all.push(link);
    }
    all.push(env.path("fleet.yaml"));
    all.push(env.path(".ours-fleet/agents/A/own"));
    all.push("/run/secrets/key".into());
    env.write("keys/key", CANARY);
    all
}

fn fleet(env: &TestEnvironment, isolation: &str) {
    let script = env.script("look.sh", LOOK);
    let home = env.home().display();
    env.write(
        "fleet.yaml",
        &format!(
            "# {CANARY}\npolicy:\n  forbid_paths: [{home}/private]\nroles:\n  A:\n    harness: command\n    harness_options: {{ argv: [sh, {script}] }}\n    cwd: {home}/work\n    isolation: {isolation}\n",
            script = script.display()
        ),
    );
}

/// The part of the host on which the mark of a file would be found.
fn on_the_host(env: &TestEnvironment, file: &Path) -> PathBuf {
    if file.starts_with("/run/secrets") { env.path("keys/key") } else { file.to_path_buf() }
}

/// What `explain` says of each file, what the role saw and what it could change.
fn look(env: &TestEnvironment, isolation: &str) -> Vec<(PathBuf, String, bool, bool)> {
    let files = files(env);
    fleet(env, isolation);
    let list: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let state = env.path(".ours-fleet/agents/A");
    env.run(["config"]).expect(0);
    fs::create_dir_all(&state).expect("a directory");
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).expect("a mode");
    }
    drop(fs::remove_file(state.join("seen")));
    fs::write(state.join("list"), list.join("\n") + "\n").expect("a list");
    let verdicts: Vec<String> = list
        .iter()
        .map(|file| {
            let answer = env.run(["explain", "A", file, "--json"]).expect(0).json();
            answer["answer"]["verdict"].as_str().expect("a verdict").to_owned()
        })
        .collect();
    env.run(["up"]).expect(0);
    let seen = wait_for("it looked", || {
        env.state_file("A", "seen").filter(|seen| seen.ends_with(b"end\n"))
    });
    env.run(["down"]).expect(0);
    let seen = String::from_utf8(seen).expect("UTF-8");
    let read: Vec<bool> = seen.lines().map(|line| line.starts_with("r ")).collect();
    files
        .into_iter()
        .zip(verdicts)
        .zip(read)
        .map(|((file, verdict), read)| {
            let there = fs::read_to_string(on_the_host(env, &file)).unwrap_or_default();
            let written = there.contains(MARK);
            (file, verdict, read, written)
        })
        .collect()
}

#[test]
fn what_a_sandboxed_role_can_do_is_what_explain_says() {
    needs!("tmux", "bwrap");
    let env = TestEnvironment::new();
    let home = env.home().display().to_string();
    let isolation = format!(
        "{{ network: deny, on_unavailable: strict, fs: {{ read: [{home}/work/vendor, {home}/data, {home}/out/sealed, {home}/look.sh], write: [{home}/out, {home}/data/inner] }}, secrets: ['{home}/keys/key:/run/secrets/key'] }}"
    );
    let found = look(&env, &isolation);
    assert!(found.len() >= 18, "{found:?}");
    for (file, verdict, read, written) in &found {
        let says =
            (matches!(verdict.as_str(), "read-write" | "read-only"), verdict == "read-write");
        // Two names of one file share its mark.
        let link = file.ends_with("elsewhere");
        assert!(
            says == (*read, *written) || (link && says.1 == *written),
            "{}: explain says {verdict}; read: {read}, written: {written}",
            file.display()
        );
    }
    for word in ["read-write", "read-only", "hidden"] {
        assert!(found.iter().any(|(_, verdict, ..)| verdict == word), "{word}: {found:?}");
    }

    // The control: the same files, the same script, no sandbox.
    let env = TestEnvironment::new();
    for (file, verdict, read, written) in look(&env, "{ backend: none }") {
        assert_eq!(verdict, "account", "{}", file.display());
        let only_inside = file.starts_with("/run/secrets");
        assert!((read && written) || only_inside, "{}", file.display());
    }
}

const FLEET: &str = "\
roles:
  A:
    harness: command
    harness_options: { argv: [sh] }
    env: { TOKEN: s3cr3t-value }
    isolation: { network: deny, on_unavailable: strict }
";

#[test]
fn a_question_has_one_answer_and_an_exit_code() {
    let env = TestEnvironment::with_fleet(FLEET);
    let ssh = env.run(["explain", "A", "~/.ssh/id"]).expect(0);
    for word in ["hidden", "forbidden.tier-a", "keys and credentials", "built into fleet"] {
        assert!(ssh.stdout.contains(word), "{word}: {}", ssh.stdout);
    }
    // Relative to where the command was typed.
    let here = env.run(["explain", "A", "./x", "--json"]).expect(0).json();
    assert_eq!(here["answer"]["subject"], env.path("x").display().to_string());
    let host = env.run(["explain", "A", "[::1]:443"]).expect(0);
    assert!(host.stdout.contains("unreachable") && host.stdout.contains("fleet.yaml:6:"));
    let whole = env.run(["explain", "A"]).expect(0);
    for word in ["files", "network", "environment", "permissions", "not enforced", "fleet.yaml:6:"]
    {
        assert!(whole.stdout.contains(word), "{word}: {}", whole.stdout);
    }
    let json = env.run(["explain", "A", "--json"]).expect(0).json();
    assert_eq!(json["network"]["verdict"], "unreachable");
    for args in [&["A"][..], &["A", "env", "TOKEN"], &["A", "--json"]] {
        let out = env.run(std::iter::once(&"explain").chain(args)).expect(0);
        assert!(out.stdout.contains("TOKEN") && !out.all().contains("s3cr3t"), "{}", out.all());
    }

    for (args, code) in [
        (&["B", "/"][..], 1),
        (&["A", "src/x"], 64),
        (&["A", "env"], 64),
        (&["A", "env", "A=s3cr3t"], 64),
        (&["A", "tool", "Bash(rm)"], 64),
        (&["A", "/x", "/y"], 64),
        (&["A", ""], 64),
        (&["A", "~other/x"], 64),
        (&[], 64),
    ] {
        env.run(std::iter::once(&"explain").chain(args)).expect(code);
    }
    env.write("fleet.yaml", "rolez: {}");
    env.run(["explain", "A"]).expect(1);
}

#[test]
fn a_hostile_subject_cannot_steer_the_terminal() {
    let env = TestEnvironment::with_fleet(FLEET);
    for subject in ["/a\u{1b}[2J", "a\u{1b}[2J", "/a\nroot: read-write", "/\u{202e}x"] {
        let out = env.run(["explain", "A", subject]);
        assert!(!out.all().contains(['\u{1b}', '\u{202e}']), "{:?}", out.all());
        assert!(!out.stdout.contains("\nroot:"), "{:?}", out.stdout);
    }
}

#[test]
fn the_schema_needs_no_fleet_and_no_home() {
    let env = TestEnvironment::new();
    let output = env.command().env_remove("HOME").arg("schema").output().expect("it runs");
    assert!(output.status.success());
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let drop_in = env.run(["schema", "--drop-in"]).expect(0);
    let drop_in: serde_json::Value = serde_json::from_str(&drop_in.stdout).expect("JSON");
    assert_eq!(drop_in["properties"].as_object().map(serde_json::Map::len), Some(1));
    env.run(["schema", "-c", "x.yaml"]).expect(64);
}

/// The overview of a role is that of its own backend, and says of no mount what is not held.
#[test]
fn the_overview_is_that_of_the_backend() {
    let env = TestEnvironment::new();
    env.write("work/.git/hooks/pre-commit", "");
    env.write("work/.git/config", "");
    let told = |backend: &str| {
        env.write(
            "fleet.yaml",
            &format!(
                "roles:\n  A:\n    harness: command\n    cwd: {}\n    harness_options: {{ argv: [cat] }}\n    isolation: {{ backend: {backend}, network: deny, on_unavailable: warn }}\n",
                env.path("work").display()
            ),
        );
        let overview = env.run(["explain", "A"]).all();
        let config = env.run(["config"]).all();
        let variable = env.run(["explain", "A", "env", "TMPDIR"]).all();
        let json = env.run(["explain", "A", "--json"]).json();
        (overview, config, variable, json)
    };
    let (overview, config, variable, json) = told("landlock");
    assert!(!overview.contains("in memory, at most"), "{overview}");
    assert!(!overview.contains("not listed, so not there"), "{overview}");
    for word in
        ["names, sizes and times can be seen", "not capped", "TMPDIR", "not held: it lies in"]
    {
        assert!(overview.contains(word), "{word}: {overview}");
    }
    let hooks = config.lines().find(|line| line.contains(".git/hooks")).expect("a mount");
    assert!(hooks.trim_start().starts_with("rw") && hooks.contains("not held"), "{hooks}");
    assert!(variable.contains("the agent gets it"), "{variable}");
    assert!(json["memory"].as_array().is_some_and(Vec::is_empty), "{json}");
    // The control: all of it is so under bubblewrap.
    let (overview, config, variable, json) = told("bubblewrap");
    assert!(overview.contains("in memory, at most"), "{overview}");
    assert!(overview.contains("not listed, so not there"), "{overview}");
    assert!(!overview.contains("not held: it lies in"), "{overview}");
    let hooks = config.lines().find(|line| line.contains(".git/hooks")).expect("a mount");
    assert!(hooks.trim_start().starts_with("ro"), "{hooks}");
    assert!(variable.contains("the agent does not get it"), "{variable}");
    assert!(json["memory"].as_array().is_some_and(|it| !it.is_empty()), "{json}");
}
