//! Help as people read it. A change shows up here and is looked at on purpose.

mod ci;

use crate::support::TestEnvironment;

#[test]
fn help_texts() {
    let env = TestEnvironment::new();
    let mut pages = String::new();
    let none: Option<&str> = None;
    for verb in [
        none,
        Some("init"),
        Some("config"),
        Some("check"),
        Some("explain"),
        Some("doctor"),
        Some("up"),
        Some("down"),
        Some("restart"),
        Some("force-restart"),
        Some("ls"),
        Some("status"),
        Some("peek"),
        Some("logs"),
        Some("net"),
        Some("attach"),
        Some("send"),
        Some("version"),
        Some("schema"),
        Some("completions"),
        Some("man"),
    ] {
        let out = env.run(verb.into_iter().chain(["--help"])).expect(0);
        assert_eq!(out.stderr, "");
        let title = verb.map_or("ours-fleet".to_owned(), |verb| format!("ours-fleet {verb}"));
        assert!(verb.is_none() || out.stdout.contains("Examples:"), "{title} has no example");
        pages.extend(["===== ", &title, " --help\n", &out.stdout, "\n"]);
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn every_example_of_the_help_parses() {
    let env = TestEnvironment::new();
    let mut seen = 0;
    for verb in [
        "init",
        "config",
        "check",
        "explain",
        "doctor",
        "up",
        "down",
        "restart",
        "force-restart",
        "ls",
        "status",
        "peek",
        "logs",
        "net",
        "attach",
        "send",
        "version",
        "schema",
        "completions",
        "man",
    ] {
        let help = env.run([verb, "--help"]).expect(0).stdout;
        let examples = help.split("Examples:\n").nth(1).expect("examples");
        for line in examples.lines().filter(|line| line.contains("ours-fleet")) {
            let line =
                line.split(" | ").next().and_then(|line| line.split(" > ").next()).unwrap_or(line);
            let words = line.trim().replace("OURS_FLEET_SUPERVISOR=none ", "");
            let out = std::process::Command::new("sh")
                .arg("-c")
                .arg(words.replacen("ours-fleet", env!("CARGO_BIN_EXE_ours-fleet"), 1))
                .env_clear()
                .env("HOME", env.home())
                .env("PATH", std::env::var("PATH").expect("PATH"))
                .output()
                .expect("sh");
            assert_ne!(
                out.status.code(),
                Some(64),
                "{line}: {}",
                String::from_utf8_lossy(&out.stderr)
            );
            assert_ne!(out.status.code(), Some(127), "{line}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} examples");
}

#[test]
fn the_readme_repeats_the_table_of_exit_codes() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"))
        .expect("README.md");
    for (status, meaning) in fleet_cli::exit::TABLE {
        let row = format!("| {} | {meaning} |", status.code());
        assert!(readme.lines().any(|line| line == row), "{row}");
    }
}
