//! A program of a version that nobody measured.

use std::process::Stdio;

use crate::support::{TestEnvironment, needs, wait_for};

#[test]
fn a_newer_program_starts_and_status_says_that_it_is_not_qualified() {
    needs!("tmux");
    let mut env = TestEnvironment::with_fleet(
        "roles: { A: { harness: codex, permissions: { filesystem: unrestricted } } }\n",
    );
    env.script(
        "bin/codex",
        "#!/bin/sh\n[ \"$*\" = --version ] && { echo 'codex-cli 99.0.0'; exit; }\nexec sleep 600\n",
    );
    let path = std::env::var("PATH").expect("PATH");
    env.set("PATH", &format!("{}:{path}", env.path("bin").display()));
    env.write(".codex/config.toml", "model = 'some-model'\n");
    // It never gets ready, and nobody waits for it.
    let mut command = env.command();
    command.arg("up").stdout(Stdio::null()).stderr(Stdio::null());
    let mut up = command.spawn().expect("up runs");
    let harness = wait_for("a published version", || {
        let status = env.status("A");
        let harness = &status["status"]["harness"];
        harness["version"].is_string().then(|| harness.clone())
    });
    assert_eq!(harness["version"], "99.0.0");
    assert_eq!(harness["qualified"], false);
    let text = env.run(["status", "A"]).expect(0).stdout;
    assert!(text.contains("codex 99.0.0 (not qualified)"), "{text}");
    env.run(["down"]).expect(0);
    up.wait().expect("up ends");
}
