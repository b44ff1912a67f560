//! Programs that agents use all day, under the filters: what they do must work.

use camino::Utf8Path;
use fleet_core::isolation::{MountMode, MountOrigin};

use crate::support::{Launch, PolicyBuilder, need_bwrap, skip};

/// Runs a script in a sandbox; its output must end with `done`.
fn works(launch: &Launch, policy: &PolicyBuilder, script: &str) {
    let script = format!("set -eu\n{script}\necho done");
    let outcome = launch.run(policy, &["/bin/sh", "-c", &script]);
    assert!(
        outcome.code == Some(0) && outcome.stdout.ends_with("done\n"),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
}

fn launch() -> Launch {
    let mut launch = Launch::new();
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.com"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.com"),
    ] {
        launch.env.push((name.to_owned(), value.to_owned()));
    }
    launch
}

/// Prepares a tree on the host.
fn on_host(launch: &Launch, script: &str) {
    let output = std::process::Command::new("/bin/sh")
        .args(["-euc", script])
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(launch.env.iter().cloned())
        .output()
        .expect("sh");
    assert!(output.status.success(), "{output:?}");
}

fn head(repository: &Utf8Path) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "safe.directory=*", "-C", repository.as_str(), "log", "-1", "--format=%s"])
        .output()
        .expect("git");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn git_commits_in_a_plain_repository() {
    need_bwrap!();
    let launch = launch();
    on_host(&launch, "git init -q . && echo a > a && git add a && git commit -qm first");
    let git = launch.cwd.join(".git");
    let policy = launch
        .policy()
        .mount(&git, MountMode::ReadWrite, MountOrigin::SelfBind)
        .mount(&git.join("config"), MountMode::ReadOnly, MountOrigin::SelfBind)
        .mount(&git.join("hooks"), MountMode::ReadOnly, MountOrigin::SelfBind);
    let script = "echo b > b; git add b; git commit -qm inside; git checkout -q -b other; \
                  echo c > b; git stash -q; git stash pop -q; git diff --quiet && exit 3; \
                  git commit -qam again; git rebase -q HEAD~1; git gc -q; git fsck";
    works(&launch, &policy, script);
    assert_eq!(head(&launch.cwd), "again");
}

#[test]
fn git_commits_in_a_worktree() {
    need_bwrap!();
    let launch = launch();
    on_host(
        &launch,
        "mkdir main && cd main && git init -q . && echo a > a && git add a && git commit -qm first \
         && git worktree add -q ../tree -b tree",
    );
    let (tree, git) = (launch.cwd.join("tree"), launch.cwd.join("main/.git"));
    let policy = PolicyBuilder::new(&tree, &launch.home).write(&tree).write(&git);
    let launch = Launch { cwd: tree.clone(), ..launch };
    works(&launch, &policy, "echo b > b; git add b; git commit -qm inside; git status --short");
    assert_eq!(head(&tree), "inside");
}

#[test]
fn git_commits_in_a_submodule() {
    need_bwrap!();
    let launch = launch();
    on_host(
        &launch,
        "git init -q part && cd part && echo a > a && git add a && git commit -qm first && cd .. \
         && git init -q whole && cd whole \
         && git -c protocol.file.allow=always submodule add -q ../part part && git commit -qm part",
    );
    let script = "cd whole/part; echo b > b; git add b; git commit -qm inside; cd ..; \
                  git commit -qam moved; git submodule status";
    works(&launch, &launch.policy(), script);
    assert_eq!(head(&launch.cwd.join("whole/part")), "inside");
    assert_eq!(head(&launch.cwd.join("whole")), "moved");
}

#[test]
fn node_runs_threads_children_and_timers() {
    need_bwrap!();
    if !Utf8Path::new("/usr/bin/node").exists() {
        skip!("node is not installed");
    }
    let launch = launch();
    let script = r#"/usr/bin/node -e '
        const { Worker } = require("worker_threads");
        const { execFileSync } = require("child_process");
        const fs = require("fs");
        fs.writeFileSync("out", execFileSync("/bin/echo", ["child"]));
        fs.watch(".", () => {}).close();
        require("net").createServer().listen(0, "127.0.0.1", function () {
            this.close();
            new Worker("require(\"worker_threads\").parentPort.postMessage(1)", { eval: true })
                .on("message", () => setTimeout(() => process.exit(0), 1));
        });'; test "$(cat out)" = child"#;
    works(&launch, &launch.policy(), script);
}

#[test]
fn python_runs_threads_processes_and_sockets() {
    need_bwrap!();
    if !Utf8Path::new("/usr/bin/python3").exists() {
        skip!("python3 is not installed");
    }
    let launch = launch();
    let script = "/usr/bin/python3 -c '
import multiprocessing, socket, sqlite3, subprocess, tempfile, threading
def work(queue): queue.put(42)
threading.Thread(target=print).start()
queue = multiprocessing.Queue()
process = multiprocessing.Process(target=work, args=(queue,)); process.start()
assert queue.get() == 42; process.join()
a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1) == b\"x\"
assert subprocess.check_output([\"/bin/echo\", \"child\"]) == b\"child\\n\"
sqlite3.connect(\"data.db\").execute(\"create table t (x)\").connection.commit()
tempfile.NamedTemporaryFile().write(b\"x\")
'";
    works(&launch, &launch.policy(), script);
}

/// The toolchain of root is in a home that no other user can read.
#[test]
fn cargo_builds_and_tests_a_crate_as_root() {
    need_bwrap!();
    let cargo = Utf8Path::new(env!("CARGO"));
    let toolchain = cargo.parent().and_then(Utf8Path::parent).expect("a toolchain");
    let mut launch = launch();
    launch.env.retain(|(name, _)| name != "PATH");
    launch.env.push(("PATH".to_owned(), format!("{toolchain}/bin:/usr/bin:/bin")));
    launch.env.push(("CARGO_HOME".to_owned(), launch.cwd.join(".cargo").to_string()));
    let script = "cargo init --quiet --name made --vcs none --lib .; cargo test --quiet --offline";
    works(&launch, &launch.policy().read(toolchain), script);
}
