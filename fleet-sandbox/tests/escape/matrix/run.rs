//! One start that makes every attempt, in the console that a launcher has.

use std::collections::BTreeMap;
use std::process::Command;

use fleet_core::isolation::{MountMode, MountOrigin, NetworkMode};

use super::Ran;
use super::backends::Entry;
use super::probe::{Kind, Mode};
use super::probes;
use super::stage::Stage;
use crate::escape::terminal::console;
use crate::support::{PolicyBuilder, probe_program};

pub(super) fn inside(entry: &Entry, mode: Mode) -> Ran {
    let stage = Stage::new();
    let argv = argv(&stage, "127.0.76.1:3128");
    let launcher = {
        let launch = &stage.launch;
        launch.launcher(entry.plan(launch, &policy(&stage, mode), &argv), &argv)
    };
    finish(stage, &launcher)
}

/// The control by the same launcher.
pub(super) fn bare() -> Ran {
    let stage = Stage::new();
    let argv = argv(&stage, &stage.careless_proxy());
    let launcher = stage.launch.launcher(stage.launch.bare_plan(&argv), &argv);
    finish(stage, &launcher)
}

/// The control in the shape of the predecessor.
pub(super) fn open() -> Ran {
    let stage = Stage::new();
    let argv = argv(&stage, &stage.careless_proxy());
    let mut bwrap = Command::new(&stage.launch.bwrap);
    bwrap.args(["--die-with-parent", "--unshare-user", "--uid", "0", "--gid", "0"]);
    bwrap.args(["--unshare-pid"]);
    bwrap.args(["--cap-add", "ALL", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]);
    bwrap.args(["--proc", "/proc"]);
    let (shown, own) = (stage.path("shown"), stage.path("agents/me"));
    bwrap.args(["--ro-bind", shown.as_str(), shown.as_str()]);
    bwrap.args(["--bind", own.as_str(), own.as_str()]);
    bwrap.args(["--chdir", stage.launch.cwd.as_str(), "--"]).args(&argv);
    finish(stage, &bwrap)
}

/// The policy of a mode, on a stage that nobody plays on.
pub(super) fn policy_of(mode: Mode) -> PolicyBuilder {
    policy(&Stage::new(), mode)
}

fn policy(stage: &Stage, mode: Mode) -> PolicyBuilder {
    let git = stage.path("work/.git");
    let mut policy = stage.launch.policy();
    for read in ["shown", "home/.claude/.credentials.json", "home/.claude/settings.json"] {
        policy = policy.read(&stage.path(read));
    }
    let policy = policy
        .mount(&git, MountMode::ReadWrite, MountOrigin::SelfBind)
        .ephemeral(&git.join("hooks"))
        .mount(&git.join("config"), MountMode::ReadOnly, MountOrigin::SelfBind);
    let (listed, below) = (stage.listed_address(), stage.rule_of_names());
    match mode {
        Mode::Deny => policy,
        Mode::Broker => policy.reachable(&[&listed]).network(NetworkMode::Broker),
        Mode::Allowlist => policy.reachable(&[&listed, &below]),
        Mode::Allow => policy.network(NetworkMode::Allow),
    }
}

fn argv(stage: &Stage, proxy: &str) -> Vec<String> {
    let mut argv =
        vec![probe_program().to_string(), "each".to_owned(), stage.results().to_string()];
    for (index, words) in attempts().map(|(_, words)| words).enumerate() {
        if index > 0 {
            argv.push("::".to_owned());
        }
        argv.extend(words.iter().map(|word| stage.fill_in(word, proxy)));
    }
    argv
}

fn attempts() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    probes::all().filter_map(|probe| match probe.kind {
        Kind::Attempt { words, .. } => Some((probe.number, words)),
        Kind::Test(_) => None,
    })
}

/// Runs it with what a careless host hands down: a descriptor of the keys, a secret, a console.
fn finish(stage: Stage, command: &Command) -> Ran {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec 9<\"$1\"; shift; exec \"$@\"", "sh"]);
    shell.arg(stage.path("home/.ssh")).arg(command.get_program()).args(command.get_args());
    shell.env("HOST_SECRET", "canary").env("TMUX", "canary,1,0");
    let shown = console(&shell).finish();
    let results = std::fs::read_to_string(stage.results()).unwrap_or_default();
    let answers: BTreeMap<_, _> =
        attempts().map(|(number, _)| number).zip(results.lines().map(str::to_owned)).collect();
    let (made, asked) = (answers.len(), attempts().count());
    assert_eq!(
        made,
        asked,
        "the attempts ended early, after {:?}: {shown}",
        results.lines().last()
    );
    stage.settle();
    Ran { answers, stage }
}
