//! The real agent programs, unmodified, each in a throw-away home, against the scripted provider: no
//! model, no account, no network.

use std::path::Path;
use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use crate::scripted_provider::record::Entry;
use crate::support::harnesses::pinned;
use crate::support::{Outage, Provider, TestEnvironment, needs_harness};

/// A home with an empty directory to work in.
fn home() -> TestEnvironment {
    let env = TestEnvironment::new();
    std::fs::create_dir(env.path("work")).expect("a directory");
    env
}

fn command(program: &Path, env: &TestEnvironment) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").expect("PATH"))
        .env("HOME", env.home())
        .current_dir(env.path("work"))
        .stdin(std::process::Stdio::null());
    command
}

fn claude(program: &Path, env: &TestEnvironment, provider: &Provider, prompt: &str) -> Command {
    let mut command = command(program, env);
    command
        .env("ANTHROPIC_BASE_URL", &provider.url)
        .env("ANTHROPIC_AUTH_TOKEN", "canary-of-the-token")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env("IS_SANDBOX", "1")
        .args(["-p", "--permission-mode", "bypassPermissions", prompt]);
    command
}

fn codex(
    program: &Path,
    env: &TestEnvironment,
    provider: &Provider,
    model: &str,
    prompt: &str,
) -> Command {
    let config = format!(
        "model = \"{model}\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\nrequest_max_retries = 3\n\
         stream_max_retries = 3\n[analytics]\nenabled = false\n\
         [features]\ndaemon_auto_start = false\n",
        provider.url
    );
    env.write("codex/config.toml", &config);
    let mut command = command(program, env);
    command.env("CODEX_HOME", env.path("codex")).env("SCRIPTED_KEY", "canary-of-the-token").args([
        "exec",
        "--skip-git-repo-check",
        "--sandbox",
        "danger-full-access",
        prompt,
    ]);
    command
}

/// Runs a program to its end; its standard output. Nothing that it started may outlive it.
#[track_caller]
fn finish(env: &TestEnvironment, mut command: Command) -> String {
    let output = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
    env.expect_no_process();
    text
}

fn version(program: &Path) -> String {
    let env = home();
    let mut command = command(program, &env);
    command.arg("--version");
    finish(&env, command)
}

/// Runs a command, writes a file, changes it, reads it, ends.
fn script(env: &TestEnvironment) -> Value {
    let file = env.path("work/written.txt");
    json!([
        { "run": "printf 'it%ss done' \"'\" > ran.txt; echo said" },
        { "write": { "path": file, "content": "one\ntwo\n" } },
        { "edit": { "path": file, "old": "two", "new": "changed" } },
        { "read": file },
        { "say": "all done" },
    ])
}

fn turns(provider: &Provider) -> Vec<Entry> {
    provider.log().into_iter().filter(|entry| !entry.side).collect()
}

/// What the script did lies on disk, and the model was told what each tool answered.
#[track_caller]
fn was_done(env: &TestEnvironment, provider: &Provider, output: &str) {
    assert!(output.contains("all done"), "{output}");
    let read = |path: &str| String::from_utf8(env.read(path).expect("a file")).expect("UTF-8");
    assert_eq!(read("work/ran.txt"), "it's done");
    assert_eq!(read("work/written.txt"), "one\nchanged\n");
    let turns = turns(provider);
    assert_eq!(turns.len(), 5, "{:?}", turns.iter().map(|turn| &turn.answer).collect::<Vec<_>>());
    assert!(turns[0].told.is_empty());
    for turn in &turns[1..] {
        assert_eq!(turn.told.len(), 1, "{turn:?}");
        assert!(!turn.told[0].error, "{turn:?}");
    }
    let told = |index: usize| turns[index].told[0].text.as_str();
    assert!(told(1).contains("said"), "{}", told(1));
    assert!(told(4).contains("one") && told(4).contains("changed"), "{}", told(4));
    let log = serde_json::to_string(&turns).expect("JSON");
    assert!(!log.contains("canary-of-the-token"), "a secret is in the log");
}

#[test]
fn the_programs_are_the_versions_they_are_said_to_be() {
    let (claude, codex) = (needs_harness!(claude), needs_harness!(codex));
    assert_eq!(version(&claude).split(' ').next(), Some(pinned("claude")));
    assert_eq!(version(&codex).trim(), format!("codex-cli {}", pinned("codex")));
}

#[test]
fn claude_does_what_the_script_says() {
    let program = needs_harness!(claude);
    let (env, provider) = (home(), Provider::start());
    let prompt = format!("@@{}", script(&env));
    let output = finish(&env, claude(&program, &env, &provider, &prompt));
    was_done(&env, &provider, &output);
}

/// The three ways in which Codex offers tools.
#[rstest]
#[case::functions("scripted-1")]
#[case::freeform_patch("gpt-5.5")]
#[case::code_mode("gpt-6-sol")]
fn codex_does_what_the_script_says(#[case] model: &str) {
    let program = needs_harness!(codex);
    let (env, provider) = (home(), Provider::start());
    let prompt = format!("@@{}", script(&env));
    let output = finish(&env, codex(&program, &env, &provider, model, &prompt));
    was_done(&env, &provider, &output);
    let offered = &turns(&provider)[0].tools;
    let code_mode = offered.iter().any(|tool| tool == "exec");
    assert_eq!(code_mode, model.starts_with("gpt-6"), "{offered:?}");
    assert_eq!(offered.iter().any(|tool| tool == "apply_patch"), model == "gpt-5.5", "{offered:?}");
}

fn briefing(env: &TestEnvironment) -> String {
    let script = json!([{ "run": "echo mission > mission.txt" }, { "say": "all done" }]);
    let path = env.write("hand out/briefing.md", &format!("# Mission\n\nDo this: @@{script}\n"));
    format!("Read and follow `{}` now.", path.display())
}

#[track_caller]
fn mission_was_done(env: &TestEnvironment, provider: &Provider, output: &str) {
    assert!(output.contains("all done"), "{output}");
    assert_eq!(env.read("work/mission.txt").as_deref(), Some(b"mission\n".as_slice()));
    let turns = turns(provider);
    assert_eq!(turns.len(), 3, "read, run, say");
    assert!(turns[1].told[0].text.contains("# Mission"), "{:?}", turns[1].told);
}

#[test]
fn claude_follows_the_script_in_its_briefing() {
    let program = needs_harness!(claude);
    let (env, provider) = (home(), Provider::start_following());
    let output = finish(&env, claude(&program, &env, &provider, &briefing(&env)));
    mission_was_done(&env, &provider, &output);
}

#[rstest]
#[case::functions("scripted-1")]
#[case::code_mode("gpt-6-sol")]
fn codex_follows_the_script_in_its_briefing(#[case] model: &str) {
    let program = needs_harness!(codex);
    let (env, provider) = (home(), Provider::start_following());
    let output = finish(&env, codex(&program, &env, &provider, model, &briefing(&env)));
    mission_was_done(&env, &provider, &output);
}

/// A read-only tool and one that writes, of a server that the agent itself starts.
fn mcp_script() -> String {
    let tool =
        |tool: &str, args: Value| json!({ "mcp": { "server": "s", "tool": tool, "args": args } });
    let script = json!([
        tool("note", json!({ "text": "of the model" })),
        tool("look", json!({})),
        { "say": "all done" },
    ]);
    format!("@@{script}")
}

#[track_caller]
fn mcp_was_called(env: &TestEnvironment, provider: &Provider) {
    assert_eq!(env.read("notes").as_deref(), Some(b"of the model\n".as_slice()));
    let turns = turns(provider);
    let told = |index: usize| turns[index].told[0].text.as_str();
    assert!(told(1).contains("noted: of the model"), "{}", told(1));
    assert!(told(2).contains("1 notes"), "{}", told(2));
}

#[test]
fn claude_calls_tools_of_an_mcp_server() {
    let program = needs_harness!(claude);
    let (env, provider) = (home(), Provider::start());
    let server = json!({ "command": Provider::program(), "args": ["mcp", env.path("notes")] });
    let servers = env.write("mcp.json", &json!({ "mcpServers": { "s": server } }).to_string());
    let mut command = claude(&program, &env, &provider, &mcp_script());
    command.arg("--mcp-config").arg(servers).arg("--strict-mcp-config");
    finish(&env, command);
    mcp_was_called(&env, &provider);
}

/// As functions in a namespace, and as functions of JavaScript.
#[rstest]
#[case::namespace("scripted-1")]
#[case::code_mode("gpt-6-sol")]
fn codex_calls_tools_of_an_mcp_server(#[case] model: &str) {
    let program = needs_harness!(codex);
    let (env, provider) = (home(), Provider::start());
    let mut command = codex(&program, &env, &provider, model, &mcp_script());
    command.arg("-c").arg(format!(
        "mcp_servers.s={{command={:?},args=[\"mcp\",{:?}],default_tools_approval_mode=\"approve\"}}",
        Provider::program(),
        env.path("notes")
    ));
    finish(&env, command);
    mcp_was_called(&env, &provider);
}

fn outcomes(provider: &Provider) -> Vec<String> {
    turns(provider).into_iter().map(|turn| turn.outcome).collect()
}

#[rstest]
#[case::overloaded(Outage::status(529), "status 529")]
#[case::too_many(Outage::status(429).retry_after(0), "status 429")]
#[case::refused(Outage::refuse(), "refused")]
#[case::cut(Outage::cut(), "cut")]
fn claude_gets_over_an_outage(#[case] outage: Outage, #[case] outcome: &str) {
    let program = needs_harness!(claude);
    let (env, provider) = (home(), Provider::start());
    provider.set_outage(outage.count(1));
    let output = finish(&env, claude(&program, &env, &provider, r#"@@[{"say":"all done"}]"#));
    assert!(output.contains("all done"), "{output}");
    assert_eq!(outcomes(&provider), [outcome, "answered"]);
}

#[rstest]
#[case::overloaded(Outage::status(529), "status 529")]
#[case::refused(Outage::refuse(), "refused")]
#[case::cut(Outage::cut(), "cut")]
fn codex_gets_over_an_outage(#[case] outage: Outage, #[case] outcome: &str) {
    let program = needs_harness!(codex);
    let (env, provider) = (home(), Provider::start());
    provider.set_outage(outage.count(1));
    let prompt = r#"@@[{"say":"all done"}]"#;
    let output = finish(&env, codex(&program, &env, &provider, "scripted-1", prompt));
    assert!(output.contains("all done"), "{output}");
    assert_eq!(outcomes(&provider), [outcome, "answered"]);
}
