//! Git under the filters: what agents do with it all day must work. Other programs: `e2e::programs` of
//! the command line.

use camino::Utf8Path;
use fleet_core::isolation::{MountMode, MountOrigin};
use fleet_core::port::IsolationBackend as _;
use rstest::rstest;

use crate::support::{By, Host, Launch, PolicyBuilder, need};

/// Runs a script in a sandbox; its output must end with `done`.
fn works(by: By, launch: &Launch, policy: &PolicyBuilder, script: &str) {
    let script = format!("set -eu\n{script}\necho done");
    let argv = ["/bin/sh", "-c", &script];
    let outcome = launch.run_plan(by.plan(launch, policy, &argv), &argv);
    assert!(
        outcome.code == Some(0) && outcome.stdout.ends_with("done\n"),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
}

fn launch(by: By) -> Launch {
    let mut launch = Launch::new();
    if by == By::Landlock {
        let variables = Host::landlock().variables(&launch.policy().policy);
        launch.env.extend(variables.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
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

#[rstest]
#[case::bubblewrap(By::Bubblewrap)]
#[case::landlock_as_user(By::Landlock)]
#[case::podman(By::Podman)]
fn git_commits_in_a_plain_repository(#[case] by: By) {
    need!(by);
    let launch = launch(by);
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
    works(by, &launch, &policy, script);
    assert_eq!(head(&launch.cwd), "again");
}

#[rstest]
#[case::bubblewrap(By::Bubblewrap)]
#[case::landlock_as_user(By::Landlock)]
#[case::podman(By::Podman)]
fn git_commits_in_a_worktree(#[case] by: By) {
    need!(by);
    let launch = launch(by);
    on_host(
        &launch,
        "mkdir main && cd main && git init -q . && echo a > a && git add a && git commit -qm first \
         && git worktree add -q ../tree -b tree",
    );
    let (tree, git) = (launch.cwd.join("tree"), launch.cwd.join("main/.git"));
    let policy = PolicyBuilder::new(&tree, &launch.home).write(&tree).write(&git);
    let launch = Launch { cwd: tree.clone(), ..launch };
    works(by, &launch, &policy, "echo b > b; git add b; git commit -qm inside; git status --short");
    assert_eq!(head(&tree), "inside");
}

#[rstest]
#[case::bubblewrap(By::Bubblewrap)]
#[case::landlock_as_user(By::Landlock)]
#[case::podman(By::Podman)]
fn git_commits_in_a_submodule(#[case] by: By) {
    need!(by);
    let launch = launch(by);
    on_host(
        &launch,
        "git init -q part && cd part && echo a > a && git add a && git commit -qm first && cd .. \
         && git init -q whole && cd whole \
         && git -c protocol.file.allow=always submodule add -q ../part part && git commit -qm part",
    );
    let script = "cd whole/part; echo b > b; git add b; git commit -qm inside; cd ..; \
                  git commit -qam moved; git submodule status";
    works(by, &launch, &launch.policy(), script);
    assert_eq!(head(&launch.cwd.join("whole/part")), "inside");
    assert_eq!(head(&launch.cwd.join("whole")), "moved");
}
