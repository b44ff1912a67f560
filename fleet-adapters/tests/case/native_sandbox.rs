//! A harness's own sandbox is tried by running it, and what the trial shows decides what a launch may
//! be (01 §3.2 #5).

use std::sync::Arc;

use fleet_adapters::runner::native_sandbox::{NativeSandbox, NativeSandboxes, outer, try_out};
use fleet_adapters::runner::{LoadedFleet, Runtime};
use fleet_core::config::YamlMode;
use fleet_core::harness::Harness;
use fleet_core::harness::command::CommandHarness;
use fleet_core::path::LexicalPath;
use fleet_core::permissions::Outer;
use fleet_core::status::RoleState;
use fleet_core::test_support::fakes::{
    Answer, MemoryTree, ScriptedExec, StubHarness, stub_harnesses,
};

use super::harness::{OneTree, Stage};

const FLEET: &str = "roles:\n  A: {harness: codex, permissions: {approval: allow}}\n  \
                     B: {isolation: {network: allow}}\n";

/// A runtime with stub harnesses, on a machine where programs answer like this.
fn runtime(stage: &mut Stage, programs: &[(&str, Answer)]) -> Arc<ScriptedExec> {
    let exec = Arc::new(ScriptedExec::default());
    for (name, answer) in programs {
        exec.program(name, answer.clone());
    }
    stage.runtime.ports.exec = exec.clone();
    stage.runtime.harnesses = stub_harnesses();
    exec
}

fn loaded(runtime: &Runtime) -> LoadedFleet {
    runtime.load(None, YamlMode::Compat).expect("a good fleet")
}

#[tokio::test]
async fn a_trial_runs_where_roles_live_and_gets_nothing_of_the_operators() {
    let mut stage = Stage::new(FLEET);
    let exec = runtime(&mut stage, &[("codex", Answer::prints(""))]);
    stage.runtime.world.env.0.insert("TMPDIR".into(), "/scratch".into());
    stage.runtime.world.env.0.insert("OPENAI_API_KEY".into(), "s3cr3t".into());
    let works = NativeSandbox::Works { program: "codex".into() };
    assert_eq!(try_out(&stage.runtime, &StubHarness::codex()).await, works);

    let calls = exec.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].program.as_str(), calls[0].args[0].as_str()), ("codex", "sandbox"));
    let scratch = stage.runtime.world.layout.root().join("trial/codex").to_string();
    let env = |name: &str| calls[0].env.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
    assert_eq!((env("HOME"), env("CODEX_HOME")), (Some(&*scratch), Some(&*scratch)));
    assert_eq!((env("TMPDIR"), env("OPENAI_API_KEY")), (Some("/scratch"), None));
}

#[tokio::test]
async fn what_fails_hangs_or_is_missing_counts_as_unusable() {
    let broken = "warning\nbwrap: setting up uid map: Permission denied\n";
    for (answer, part) in [
        (
            Answer::fails(1, broken),
            "`codex` ended with 1: bwrap: setting up uid map: Permission denied",
        ),
        (Answer::fails(1, ""), "it said nothing"),
        (Answer::Timeout, "did not end"),
        (Answer::fails(127, ""), "`codex` was not found"),
    ] {
        let mut stage = Stage::new(FLEET);
        runtime(&mut stage, &[("codex", answer)]);
        let NativeSandbox::Unusable { reason } =
            try_out(&stage.runtime, &StubHarness::codex()).await
        else {
            panic!("usable: {part}")
        };
        assert!(reason.contains(part), "{reason}");
        assert_eq!(outer(&stage.runtime, &StubHarness::codex(), None).await, Outer::OffUnsandboxed);
        assert_eq!(outer(&stage.runtime, &StubHarness::codex(), Some(Outer::On)).await, Outer::On);
    }
}

#[tokio::test]
async fn each_program_that_the_sandbox_needs_must_be_there() {
    let mut stage = Stage::new(FLEET);
    let exec = runtime(&mut stage, &[("bwrap", Answer::prints(""))]);
    stage.runtime.world.path_dirs = vec![LexicalPath::absolute("/usr/bin").expect("absolute")];
    let claude = StubHarness::claude_code();
    let mut tree = MemoryTree::new();
    tree.file_mode("/usr/bin/bwrap", b"\x7fELF", 0o755);
    stage.runtime.ports.paths = Arc::new(OneTree(tree.clone()));
    let missing = try_out(&stage.runtime, &claude).await;
    assert_eq!(missing, NativeSandbox::Unusable { reason: "`socat` was not found on PATH".into() });
    assert!(exec.calls().is_empty(), "nothing was run");
    tree.file_mode("/usr/bin/socat", b"\x7fELF", 0o755);
    stage.runtime.ports.paths = Arc::new(OneTree(tree));
    assert_eq!(outer(&stage.runtime, &claude, None).await, Outer::Off);
}

#[tokio::test]
async fn a_fleet_tries_each_harness_once_and_only_where_a_role_rests_on_it() {
    let mut stage = Stage::new(FLEET);
    let exec = runtime(&mut stage, &[("codex", Answer::fails(1, "no"))]);
    let fleet = loaded(&stage.runtime).fleet;
    let tried = NativeSandboxes::of_fleet(&stage.runtime, &fleet, true).await;
    assert_eq!(exec.calls().len(), 1, "`claude-code` is used with isolation only");
    let (codex, claude) = (StubHarness::codex(), StubHarness::claude_code());
    assert_eq!(tried.outer(codex.id(), None), Outer::OffUnsandboxed);
    assert_eq!(tried.outer(codex.id(), Some(Outer::On)), Outer::On);
    // What cannot be used is not relied on inside the isolation either.
    assert_eq!(tried.outer(codex.id(), Some(Outer::Nested)), Outer::On);
    assert_eq!(tried.get(claude.id()), None);
    assert_eq!(NativeSandboxes::assumed().outer(codex.id(), None), Outer::Off);
    let nested = NativeSandboxes::assumed().outer(codex.id(), Some(Outer::Nested));
    assert_eq!(nested, Outer::Nested);
    let command = CommandHarness::default();
    assert_eq!(try_out(&stage.runtime, &command).await, NativeSandbox::Absent);
    assert_eq!(outer(&stage.runtime, &command, None).await, Outer::Off);
}

#[tokio::test]
async fn a_launch_is_refused_where_nothing_would_bound_it() {
    let mut stage = Stage::new(FLEET);
    runtime(&mut stage, &[("codex", Answer::fails(1, "no namespaces"))]);
    let runner = stage.start();
    let status = stage.until_status(|status| status.state != RoleState::Starting).await;
    let detail = status.detail.expect("a reason");
    assert!(detail.contains("its own sandbox cannot be used on this host"), "{detail}");
    assert!(stage.tmux.opened().is_empty(), "no console was opened");
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}
