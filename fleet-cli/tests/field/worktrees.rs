//! A8: an agent commits where it works, and gets no further into the repository than that.

use std::fs;
use std::process::Command;

use rstest::rstest;

use crate::support::{TestEnvironment, needs, wait_for};

/// Commits, then tries to write what decides about hooks, configuration and other worktrees, and what
/// a later launch would be made from. Tells each thing that worked.
const AGENT: &str = r#"#!/bin/sh
out="$OURS_FLEET_STATE/report"
echo change >> file
git add file && git -c user.name=agent -c user.email=agent@localhost commit -qm "by the agent" \
    && echo committed > "$out.new" || echo "not committed" > "$out.new"
git checkout -q -b topic && echo branched >> "$out.new"
common=$(git rev-parse --path-format=absolute --git-common-dir)
admin=$(git rev-parse --absolute-git-dir)
wrote() { (echo evil >> "$1") 2>/dev/null && echo "wrote $2" >> "$out.new"; }
wrote "$common/hooks/pre-commit" hook
wrote "$common/config" config
if [ -f .git ]; then
    wrote .git pointer
    (mv .git .git2) 2>/dev/null && echo "moved pointer" >> "$out.new"
fi
for name in gitdir commondir; do
    [ -f "$admin/$name" ] && wrote "$admin/$name" "$name"
done
[ -d "$common/worktrees/other" ] && wrote "$common/worktrees/other/HEAD" other
(mv "$common/hooks" "$common/hooks2") 2>/dev/null && echo "moved hooks" >> "$out.new"
[ -f .git ] && (mv "$admin" "$admin.2") 2>/dev/null && echo "moved admin" >> "$out.new"
[ -e "$common/../secret" ] && echo "saw the main tree" >> "$out.new"
mv "$out.new" "$out"
exec cat
"#;

/// Where the agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Worktree,
    Submodule,
}

fn git(env: &TestEnvironment, at: &str, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=u",
            "-c",
            "user.email=u@localhost",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .current_dir(env.path(at))
        .env("HOME", env.path("nobody"))
        .output()
        .expect("git");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

/// A repository of that kind; returns the working directory below the home.
fn repository(env: &TestEnvironment, kind: Kind) -> &'static str {
    fs::create_dir(env.path("main")).expect("directory");
    git(env, "main", &["init", "-q"]);
    env.write("main/file", "first\n");
    git(env, "main", &["add", "file"]);
    git(env, "main", &["commit", "-qm", "first"]);
    match kind {
        Kind::Plain => "main",
        Kind::Worktree => {
            env.write("main/secret", "of the main tree");
            git(env, "main", &["worktree", "add", "-q", "../other"]);
            git(env, "main", &["worktree", "add", "-q", "../work"]);
            "work"
        }
        Kind::Submodule => {
            fs::create_dir(env.path("super")).expect("directory");
            git(env, "super", &["init", "-q"]);
            git(env, "super", &["submodule", "-q", "add", "../main", "sub"]);
            "super/sub"
        }
    }
}

fn report(kind: Kind, isolation: &str) -> (TestEnvironment, &'static str, Vec<String>) {
    let env = TestEnvironment::new();
    let cwd = repository(&env, kind);
    let report = report_of(&env, cwd, AGENT, isolation);
    (env, cwd, report)
}

/// Has an agent work in a directory; returns the lines of its report.
fn report_of(env: &TestEnvironment, cwd: &str, script: &str, isolation: &str) -> Vec<String> {
    let agent = env.script("tools/agent", script);
    let fleet = format!(
        "roles:\n  A:\n    harness: command\n    cwd: {}\n    harness_options: {{ argv: [{}] }}\n{isolation}",
        env.path(cwd).display(),
        agent.display()
    );
    env.write("fleet.yaml", &fleet);
    env.run(["up"]).expect(0);
    let report = wait_for("it reports", || env.state_file("A", "report"));
    let report = String::from_utf8(report).expect("UTF-8");
    report.lines().map(str::to_owned).collect()
}

#[rstest]
#[case(Kind::Plain)]
#[case(Kind::Worktree)]
#[case(Kind::Submodule)]
fn a8_an_agent_commits_and_writes_nothing_that_decides(#[case] kind: Kind) {
    needs!("tmux", "bwrap", "git");
    let (env, cwd, report) = report(kind, "    isolation: { network: deny }\n");
    assert_eq!(report, ["committed", "branched"]);
    env.run(["down"]).expect(0);
    assert_eq!(git(&env, cwd, &["log", "-1", "--format=%an %s", "topic"]), "agent by the agent");
    assert_eq!(git(&env, cwd, &["status", "--porcelain", "--untracked-files=no"]), "");
    git(&env, cwd, &["fsck", "--strict"]);
    // The next launch meets the same repository and judges it alike.
    env.run(["up"]).expect(0);
}

/// The control: without the sandbox the same agent does all of it.
#[rstest]
#[case(Kind::Worktree, &["pointer", "gitdir", "commondir", "other"])]
#[case(Kind::Submodule, &["pointer"])]
fn a8_without_a_sandbox_the_same_agent_writes_everything(
    #[case] kind: Kind,
    #[case] more: &[&str],
) {
    needs!("tmux", "git");
    let (_env, _, report) = report(kind, "");
    assert!(report.contains(&"committed".to_owned()), "{report:?}");
    for name in ["hook", "config"].iter().chain(more) {
        assert!(report.contains(&format!("wrote {name}")), "{name}: {report:?}");
    }
}

/// Works in a repository with a submodule and a linked worktree, then tries to write what git outside of
/// the sandbox would obey in them.
const OWNER: &str = r#"#!/bin/sh
out="$OURS_FLEET_STATE/report"
: > "$out.new"
did() { name=$1; shift; "$@" >> "$OURS_FLEET_STATE/log" 2>&1 && echo "$name" >> "$out.new"; }
commit() { git -C "$1" -c user.name=agent -c user.email=agent@localhost commit -qm "by the agent"; }
echo change >> sub/file && git -C sub add file
did "committed in sub" commit sub
git add sub
did "committed" commit .
did "listed" git worktree list
did "checked out" git -C sub checkout -q HEAD~1
did "back" git -C sub checkout -q -
did "status" git status --porcelain
did "submodule status" git submodule status
# Git writes `core.worktree` of each submodule anew, so it needs its configuration.
did "updated" git submodule update
wrote() { (echo "; evil" >> "$1") 2>/dev/null && echo "wrote $2" >> "$out.new"; }
wrote .git/modules/sub/config config
wrote .git/modules/sub/hooks/post-checkout hook
wrote sub/.git pointer
wrote .git/worktrees/other/commondir commondir
wrote .git/worktrees/other/gitdir gitdir
wrote team.gitconfig included
for name in .git/modules/sub .git/modules .git/worktrees/other sub; do
    (mv "$name" "$name.2") 2>/dev/null && echo "moved $name" >> "$out.new"
done
mv "$out.new" "$out"
exec cat
"#;

#[rstest]
#[case::protected("{ network: deny }", false)]
#[case::control("{ network: deny, protect: [] }", true)]
fn an_agent_writes_no_configuration_of_a_submodule_or_another_worktree(
    #[case] isolation: &str,
    #[case] open: bool,
) {
    needs!("tmux", "bwrap", "git");
    let env = TestEnvironment::new();
    let cwd = repository(&env, Kind::Submodule).trim_end_matches("/sub");
    env.write("super/team.gitconfig", "[user]\n\tname = u\n\temail = u@localhost\n");
    git(&env, cwd, &["config", "include.path", "../team.gitconfig"]);
    git(&env, cwd, &["add", "team.gitconfig"]);
    git(&env, cwd, &["commit", "-qm", "sub"]);
    git(&env, cwd, &["worktree", "add", "-q", "../other"]);
    let report = report_of(&env, cwd, OWNER, &format!("    isolation: {isolation}\n"));
    let mut works = vec![
        "committed in sub",
        "committed",
        "listed",
        "checked out",
        "back",
        "status",
        "submodule status",
    ];
    if open {
        works.push("updated");
    }
    assert_eq!(report[..works.len()], works, "{report:?}");
    if open {
        for name in ["config", "hook", "pointer", "commondir", "gitdir", "included"] {
            assert!(report.contains(&format!("wrote {name}")), "{name}: {report:?}");
        }
    } else {
        assert_eq!(report.len(), works.len(), "{report:?}");
        env.run(["down"]).expect(0);
        assert_eq!(git(&env, "super/sub", &["log", "-1", "--format=%an"]), "agent");
        git(&env, cwd, &["status"]);
        env.run(["up"]).expect(0);
    }
}

/// A `.git` file that leads to a repository which knows nothing of this directory shows it to nobody.
#[test]
fn a8_a_pointer_to_a_strange_repository_is_refused_by_up() {
    needs!("git");
    let env = TestEnvironment::new();
    repository(&env, Kind::Worktree);
    let pointer = fs::read_to_string(env.path("other/.git")).expect("a pointer");
    env.write("mine/.git", &pointer);
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n  A:\n    harness: command\n    cwd: {}\n    harness_options: {{ argv: [cat] }}\n    isolation: {{ network: deny }}\n",
            env.path("mine").display()
        ),
    );
    let out = env.run(["up"]).expect(1);
    assert!(
        out.stderr.contains("/other`") && out.stderr.contains("fleet.yaml:4"),
        "{}",
        out.stderr
    );
    assert!(!env.path(".ours-fleet/control/A").exists(), "nothing was started");
}
