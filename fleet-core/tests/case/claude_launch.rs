//! 01 §4.2: argv, environment and files of a `claude-code` launch.

use fleet_core::harness::claude_code::ClaudeCodeHarness;
use fleet_core::harness::{
    FileContent, FilePlace, Harness as _, HarnessLaunch, JsonChange, JsonEdit, StartMode,
};
use fleet_core::permissions::Outer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::claude::{Around, SESSION, around, whole, with_options};

const HANDOUT: &str = "/home/op/.ours-fleet/handout/Worker";

#[test]
fn a_fresh_start_passes_everything_and_reads_the_briefing() {
    let it = around("model: opus, permissions: {approval: auto}, harness_options: {effort: high}");
    assert_eq!(
        it.launch().argv,
        [
            "claude",
            "--permission-mode",
            "acceptEdits",
            "--model",
            "opus",
            "--effort",
            "high",
            "--settings",
            &format!("{HANDOUT}/settings-overlay.json"),
            "--mcp-config",
            &format!("{HANDOUT}/mcp-config.json"),
            "--strict-mcp-config",
            "--name",
            "Worker",
            "--session-id",
            SESSION,
            &format!("Read and follow {HANDOUT}/briefing.md now."),
        ]
    );
}

#[test]
fn a_resumed_start_passes_the_same_flags_and_goes_on_from_the_log() {
    let mut it = with_options("mcp_servers_only: false, remote_control: true");
    it.mode = StartMode::Resume;
    let argv = it.launch().argv;
    assert_eq!(argv[..3], ["claude", "--permission-mode", "default"]);
    let tail = &argv[argv.len() - 5..];
    assert_eq!(tail[..4], ["--remote-control", "Worker", "--resume", SESSION]);
    assert!(tail[4].contains("restarted") && tail[4].contains("/agents/Worker/WORKLOG.md"));
    assert!(!argv.contains(&"--strict-mcp-config".to_owned()));
    assert!(!argv.contains(&"--name".to_owned()));
}

/// In its sandbox the agent may have made `.claude` in its working directory: without the sandbox the
/// hooks there would run with all rights.
#[rstest]
#[case::degraded("isolation: {network: allow}", Outer::Off, true)]
#[case::degraded_unsandboxed("isolation: {network: allow}", Outer::OffUnsandboxed, true)]
#[case::isolated("isolation: {network: allow}", Outer::On, false)]
#[case::never_asked_for("cwd: /srv/project", Outer::Off, false)]
#[case::switched_off("isolation: {backend: none}", Outer::Off, false)]
fn a_degraded_start_uses_no_settings_of_the_working_directory(
    #[case] keys: &str,
    #[case] outer: Outer,
    #[case] degraded: bool,
) {
    let keys = format!("{keys}, harness_options: {{mcp_servers_only: false}}");
    let launch = around(&keys).outer(outer).launch();
    let passed = |words: [&str; 2]| launch.argv.windows(2).any(|pair| pair == words);
    assert_eq!(passed(["--setting-sources", "user"]), degraded);
    assert_eq!(launch.argv.contains(&"--strict-mcp-config".to_owned()), degraded);
    assert_eq!(launch.notes.iter().any(|note| note.contains("could have written")), degraded);
}

#[test]
fn the_environment_names_the_home_and_switches_off_what_phones_home() {
    let it = around("model: opus, harness_options: {mem_palace: false}");
    let env = it.launch().env;
    let env: Vec<(&str, &str)> =
        env.iter().map(|(name, it)| (name.as_str(), it.as_str())).collect();
    assert_eq!(
        env,
        [
            ("ANTHROPIC_MODEL", "opus"),
            ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CONFIG_DIR", "/home/op/.ours-fleet/harness/Worker/claude-code"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("MEMPALACE_DISABLED", "true"),
            ("MEMPALACE_HOOKS_AUTO_SAVE", "false"),
            ("MEMPALACE_MIDSESSION_AUTOSAVE", "false"),
        ]
    );
}

#[rstest]
#[case::root_inside(true, Outer::On, true)]
#[case::root_outside(true, Outer::Off, false)]
#[case::root_unsandboxed(true, Outer::OffUnsandboxed, false)]
#[case::user(false, Outer::On, false)]
fn only_root_of_a_sandbox_says_that_it_is_in_one(
    #[case] root: bool,
    #[case] outer: Outer,
    #[case] said: bool,
) {
    let mut it = around("cwd: /srv/project").outer(outer);
    it.root = root;
    assert_eq!(it.launch().env.contains_key("IS_SANDBOX"), said);
}

#[rstest]
#[case::none(None, None, "50")]
#[case::percent(Some(80), Some(100_000), "80")]
#[case::over(Some(150), None, "100")]
#[case::under(Some(0), None, "1")]
#[case::budget(None, Some(200_000), "20")]
#[case::half(None, Some(205_000), "21")]
#[case::small(None, Some(1), "1")]
#[case::huge(None, Some(u64::MAX), "100")]
fn the_budget_says_when_to_compact(
    #[case] percent: Option<u32>,
    #[case] tokens: Option<u64>,
    #[case] expected: &str,
) {
    let mut it = around("cwd: /srv/project");
    (it.role.autocompact_pct, it.role.max_tokens) = (percent, tokens);
    assert_eq!(it.launch().env["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"], expected);
}

fn edits(launch: &HarnessLaunch) -> &[JsonEdit] {
    let file = launch.files.iter().find(|file| file.place == FilePlace::Home).expect("the file");
    assert_eq!(file.name, ".claude.json");
    match &file.content {
        FileContent::Json(edits) => edits,
        FileContent::Whole(_) => panic!("the program writes it too"),
    }
}

fn is_set(edits: &[JsonEdit], path: &[&str]) -> bool {
    let here = |edit: &&JsonEdit| edit.path == path;
    match edits.iter().find(here).map(|edit| &edit.change) {
        Some(JsonChange::Set(value)) => value.expose() == &Value::Bool(true),
        Some(JsonChange::AtLeast(1)) => true,
        _ => false,
    }
}

#[test]
fn every_question_at_the_start_is_answered() {
    let mut it = around("cwd: /srv/project");
    it.dirs.aliases.insert("/srv/project".into(), "/data/project".into());
    let launch = it.launch();
    let edits = edits(&launch);
    for answered in
        ["hasCompletedOnboarding", "hasSeenAutoDefaultNudge", "hasAcknowledgedCostThreshold"]
    {
        assert!(is_set(edits, &[answered]), "{answered}");
    }
    for dir in [it.dirs.state.as_str(), "/srv/project", "/data/project"] {
        for key in [
            "hasTrustDialogAccepted",
            "hasCompletedProjectOnboarding",
            "projectOnboardingSeenCount",
        ] {
            assert!(is_set(edits, &["projects", dir, key]), "{dir} {key}");
        }
    }
    assert_eq!(edits.len(), 12, "nothing else is trusted");
}

fn approved(it: &Around) -> Option<String> {
    let launch = it.launch();
    edits(&launch).iter().find_map(|edit| match &edit.change {
        JsonChange::Include(tail) if edit.path == ["customApiKeyResponses", "approved"] => {
            Some(tail.expose().clone())
        }
        _ => None,
    })
}

#[rstest]
#[case::none("cwd: /srv/project", None)]
#[case::own("env: {ANTHROPIC_API_KEY: sk-own-0123456789abcdefghij}", Some("0123456789abcdefghij"))]
#[case::short("env: {ANTHROPIC_API_KEY: short}", Some("short"))]
#[case::empty("env: {ANTHROPIC_API_KEY: ''}", None)]
#[case::passed("env_pass: [ANTHROPIC_API_KEY]", Some("passed-ABCDEFGHIJKLM"))]
#[case::both("env_pass: [ANTHROPIC_API_KEY], env: {ANTHROPIC_API_KEY: own}", Some("own"))]
fn the_key_of_the_role_is_approved(#[case] keys: &str, #[case] tail: Option<&str>) {
    let mut it = around(keys);
    let key = "sk-passed-ABCDEFGHIJKLM".to_owned();
    it.own_env.0.insert("ANTHROPIC_API_KEY".to_owned(), key);
    assert_eq!(approved(&it).as_deref(), tail);
}

#[test]
fn the_operators_own_home_is_never_edited() {
    let launch = with_options("config_home: shared").launch();
    assert!(!launch.env.contains_key("CLAUDE_CONFIG_DIR"));
    assert!(launch.files.iter().all(|file| file.place == FilePlace::Handout));
    assert_eq!(launch.notes.len(), 1);
    let isolated = with_options("config_home: shared").outer(Outer::On).effective();
    assert_eq!(isolated.refusals.len(), 1, "{:?}", isolated.refusals);
}

fn overlay(it: &Around) -> Value {
    serde_json::from_str(&whole(&it.launch(), "settings-overlay.json")).expect("JSON")
}

#[rstest]
#[case::mode("permission_mode: bypassPermissions", true)]
#[case::row("effort: low", false)]
fn only_a_bypassing_role_answers_the_question_about_it(#[case] options: &str, #[case] said: bool) {
    let it = with_options(options);
    assert_eq!(overlay(&it)["skipDangerousModePermissionPrompt"] == true, said);
    assert!(it.launch().replaced.is_empty(), "the operator's settings stay a link");
}

#[test]
fn plugins_are_switched_in_the_overlay() {
    let it = with_options("plugins: {'a@b': true}, mem_palace: false");
    assert_eq!(
        overlay(&it)["enabledPlugins"],
        json!({ "a@b": true, "mempalace@mempalace": false })
    );
    assert_eq!(overlay(&around("cwd: /srv/project"))["enabledPlugins"], Value::Null);
}

#[test]
fn tools_that_reach_other_sessions_are_denied_in_every_mode() {
    for outer in [Outer::Off, Outer::OffUnsandboxed, Outer::On] {
        for options in ["permission_mode: bypassPermissions", "effort: low"] {
            let deny = &overlay(&with_options(options).outer(outer))["permissions"]["deny"];
            assert_eq!(deny[0], "ListAgents");
            assert_eq!(deny[1], "SendMessage");
        }
    }
}

#[rstest]
#[case::ours_alone(Outer::On, json!(false), Value::Null)]
#[case::its_own_alone(Outer::Off, json!(true), Value::Null)]
#[case::both(Outer::Nested, json!(true), json!(true))]
fn its_own_sandbox_is_on_unless_ours_stands_in_for_it(
    #[case] outer: Outer,
    #[case] enabled: Value,
    #[case] weaker: Value,
) {
    let it = around("permissions: {approval: allow}, isolation: {nested_sandbox: true}");
    let sandbox = overlay(&it.outer(outer))["sandbox"].clone();
    assert_eq!((&sandbox["enabled"], &sandbox["enableWeakerNestedSandbox"]), (&enabled, &weaker));
}

#[test]
fn servers_stand_in_their_file_and_the_name_of_the_bridge_gives_way() {
    let it = with_options(
        "mcp_servers: {local: {command: srv, args: [-v], env: {K: v}}, \
         far: {type: http, url: 'http://h', headers: {A: b}}, ours: {command: mine}}",
    );
    let launch = it.launch();
    let file: Value = serde_json::from_str(&whole(&launch, "mcp-config.json")).expect("JSON");
    assert_eq!(
        file,
        json!({ "mcpServers": {
            "local": { "type": "stdio", "command": "srv", "args": ["-v"], "env": { "K": "v" } },
            "far": { "type": "http", "url": "http://h", "headers": { "A": "b" } },
        }})
    );
    assert!(launch.notes.iter().any(|note| note.contains("`mcp_servers.ours` gives way")));
}

/// P37, P40: values of variables and servers stand in files of mode 0600 and nowhere else.
#[test]
fn no_value_leaves_its_file() {
    let it = around(
        "env: {A: sentinel-1, ANTHROPIC_API_KEY: sentinel-2}, permissions: {approval: allow}, \
         harness_options: {mcp_servers: {s: {command: sentinel-3, args: [sentinel-4], \
         env: {K: sentinel-5}}, t: {type: sse, url: 'http://sentinel-6', \
         headers: {H: sentinel-7}}}}",
    );
    let (launch, said) = (it.launch(), it.effective());
    let seen = format!(
        "{:?} {:?} {:?} {:?} {}",
        launch.argv,
        launch.env,
        launch.notes,
        launch,
        serde_json::to_string(&said).expect("JSON")
    );
    assert!(!seen.contains("sentinel"), "{seen}");
    let servers = whole(&launch, "mcp-config.json");
    for number in 3..=7 {
        assert!(servers.contains(&format!("sentinel-{number}")), "the test sees values");
    }
}

/// P44: each option changes a launch.
#[rstest]
#[case("permission_mode: plan")]
#[case("effort: low")]
#[case("plugins: {'a@b': false}")]
#[case("mem_palace: false")]
#[case("mem_palace_midsession_autosave: true")]
#[case("mcp_servers: {s: {command: srv}}")]
#[case("mcp_servers_only: false")]
#[case("remote_control: true")]
#[case("config_home: shared")]
fn every_option_changes_a_launch(#[case] options: &str) {
    // Files hide their content from `Debug`.
    let shown = |it: &Around| {
        let launch = it.launch();
        let files = ["settings-overlay.json", "mcp-config.json"].map(|name| whole(&launch, name));
        format!("{:?} {:?} {:?} {files:?}", launch.argv, launch.env, launch.files.len())
    };
    for outer in [Outer::Off, Outer::OffUnsandboxed, Outer::On] {
        for mode in [StartMode::Fresh, StartMode::Resume] {
            let mut plain = around("cwd: /srv/project").outer(outer);
            let mut with = with_options(options).outer(outer);
            (plain.mode, with.mode) = (mode, mode);
            assert_ne!(shown(&plain), shown(&with));
        }
    }
}

/// P36: the pin is the model.
#[test]
fn the_pin_is_the_model() {
    let launch = around("model: sonnet").launch();
    assert_eq!(launch.env["ANTHROPIC_MODEL"], "sonnet");
    let plain = around("cwd: /srv/project").launch();
    assert!(!plain.env.contains_key("ANTHROPIC_MODEL"));
    assert!(!plain.argv.contains(&"--model".to_owned()));
}

#[test]
fn the_home_and_the_program_are_described() {
    let harness = ClaudeCodeHarness::default();
    let home = harness.home().expect("a home");
    assert_eq!((home.variable, home.operator), ("CLAUDE_CONFIG_DIR", ".claude"));
    let login: Vec<_> = home.shared.iter().filter(|it| it.login).map(|it| it.name).collect();
    assert_eq!(login, [".credentials.json"]);
    let program = harness.prerequisite().expect("a program");
    assert!(program.is_qualified("2.1.332") && !program.is_qualified("2.1.333"));
    assert_eq!((program.version)("2.1.332 (Claude Code)\n").as_deref(), Some("2.1.332"));
    assert!(harness.session_ids().are_chosen());
    let options = fleet_core::harness::Options::new();
    assert!(harness.supports_resume(&options) && harness.validate_options(&options).is_empty());
    assert!(harness.exit_policy().clean_exit_is_fresh);
}
