//! 01 §3.4, §3.5, §4.3 and 07 E3, E4: what a `codex` role is started with.

use std::fmt::Write as _;

use std::collections::BTreeMap;

use fleet_core::harness::codex::CodexHarness;
use fleet_core::harness::{Harness, SessionIds, SessionMeta, StartMode};
use fleet_core::permissions::{Approval, Capability, Filesystem, Outer, Translation, conflicts};
use rstest::rstest;

use crate::codex::{Case, SESSION, config, config_text, options, problems};

/// Every cell of the table: the settings, what they amount to, the argv and the file.
#[test]
fn e3_e4_every_cell() {
    let mut text = String::new();
    for mut case in Case::all() {
        case.model = Some("gpt-5.5".to_owned());
        let found = case.effective();
        let launch = case.launch();
        let (approval, filesystem) = (case.permissions.approval, case.permissions.filesystem);
        let _ = writeln!(
            text,
            "=== {} x {}, outer {:?}\n{found:#?}\n{}\n{}",
            approval.as_str(),
            filesystem.as_str(),
            case.outer,
            launch.argv.join(" | "),
            config_text(&launch)
        );
    }
    insta::assert_snapshot!(text);
}

#[rstest]
#[case::a_cell_asks_or_not(Approval::Allow, "never")]
#[case::auto(Approval::Auto, "on-request")]
#[case::ask(Approval::Ask, "on-request")]
fn e3_the_approval_is_always_passed(#[case] approval: Approval, #[case] word: &str) {
    for outer in [Outer::Off, Outer::On] {
        let case = Case::new(approval, Filesystem::Workspace, outer);
        let argv = case.launch().argv;
        let at = argv.iter().position(|it| it == "--ask-for-approval").expect("passed");
        assert_eq!(argv[at + 1], word);
        assert_eq!(case.translate().exact, approval != Approval::Ask);
    }
}

#[test]
fn a_resume_names_its_conversation_and_nothing_else_is_ever_resumed() {
    let mut case = Case::workspace();
    case.model = Some("m".to_owned());
    case.options = options(r#"{"search": true}"#);
    let prompt = "Read and follow /home/u/.ours-fleet/handout/A/briefing.md now.";
    let flags = ["--no-daemon", "--model", "m", "--ask-for-approval", "never", "--search"];
    assert_eq!(case.launch().argv, [&["codex"][..], &flags, &[prompt]].concat());

    case.mode = StartMode::Resume;
    case.session = Some(SESSION);
    let launch = case.launch();
    assert_eq!(launch.argv[..9], [&["codex", "resume", SESSION][..], &flags].concat()[..9]);
    assert!(launch.argv.last().expect("a prompt").contains("agents/A/WORKLOG.md"));
    assert_eq!(launch.notes, [""; 0]);

    // A name, or something that looks like a flag, is not looked up.
    for session in [None, Some("work"), Some("-c")] {
        case.session = session;
        let launch = case.launch();
        assert_eq!(launch.argv.last().map(String::as_str), Some(prompt));
        assert!(!launch.argv.iter().any(|word| word == "resume" || word == "--last"));
        assert_eq!(launch.notes, ["no conversation is recorded: a fresh start"]);
    }
}

#[test]
fn the_home_is_the_role_s_and_links_are_followed_for_trust() {
    let mut case = Case::workspace();
    case.dirs.aliases = BTreeMap::from([
        (case.dirs.cwd.clone(), "/mnt/disk/x.y".into()),
        (case.dirs.state.clone(), "/mnt/disk/state".into()),
    ]);
    let launch = case.launch();
    assert_eq!(
        launch.env.into_iter().collect::<Vec<_>>(),
        [("CODEX_HOME".to_owned(), case.dirs.harness_home.to_string())]
    );
    let config = config(&case.launch());
    let trusted: Vec<&String> = config["projects"].as_table().expect("a table").keys().collect();
    let expected =
        ["/home/u/.ours-fleet/agents/A", "/home/u/my work/x.y", "/mnt/disk/state", "/mnt/disk/x.y"];
    assert_eq!(trusted, expected);
    let filesystem = &config["permissions"]["fleet"]["filesystem"];
    assert_eq!(filesystem["/mnt/disk/state"].as_str(), Some("write"));
    assert!(filesystem.get("/mnt/disk/x.y").is_none(), "the workspace roots cover it");
}

#[test]
fn a_linked_worktree_writes_its_repository_only_where_it_writes_at_all() {
    for (filesystem, expected) in
        [(Filesystem::Workspace, Some("write")), (Filesystem::ReadOnly, None)]
    {
        let mut case = Case::new(Approval::Allow, filesystem, Outer::Off);
        case.dirs.git = vec!["/r/.git/worktrees/x".into(), "/r/.git".into()];
        let config = config(&case.launch());
        let table = &config["permissions"]["fleet"]["filesystem"];
        for git in &case.dirs.git {
            assert_eq!(table.get(git.as_str()).and_then(toml::Value::as_str), expected);
        }
    }
}

#[test]
fn models_of_the_operator_and_nothing_else() {
    let operator = r#"
        model = "m"
        model_provider = "p"
        model_reasoning_effort = "high"
        model_instructions_file = "mine.md"
        model_strange = { a = 1 }
        approval_policy = "never"
        sandbox_mode = "danger-full-access"
        notify = ["x"]
        [model_providers.p]
        base_url = "u"
        [model_providers.p.http_headers]
        "X-Key" = "k"
        [mcp_servers.x]
        command = "y"
        [projects."/"]
        trust_level = "trusted"
        [profiles.work]
        model = "w"
        approval_policy = "never"
        [profiles.work.model_providers.q]
        base_url = "v"
    "#;
    let case = Case::workspace().operator(operator);
    let launch = case.launch();
    let config_ = config(&launch);
    let models: Vec<&String> = config_.keys().filter(|key| key.starts_with("model")).collect();
    assert_eq!(models, ["model", "model_provider", "model_providers", "model_reasoning_effort"]);
    assert_eq!(config_["model_providers"]["p"]["http_headers"]["X-Key"].as_str(), Some("k"));
    for key in ["mcp_servers", "notify", "profiles", "approval_policy", "sandbox_mode"] {
        assert!(!config_.contains_key(key), "{key}");
    }
    assert!(config_["projects"].get("/").is_none());
    let left = "of the operator's config.toml not taken over: `model_instructions_file`, \
                `model_strange`";
    assert_eq!(launch.notes, [left]);

    let launch = case.clone().options(r#"{"profile": "work"}"#).launch();
    let config_ = config(&launch);
    assert_eq!(config_["model"].as_str(), Some("w"));
    assert_eq!(config_["model_providers"].as_table().map(toml::Table::len), Some(2));
    assert_eq!(launch.notes[1], "of the operator's profile not taken over: `approval_policy`");

    let launch = case.options(r#"{"profile": "other"}"#).launch();
    assert_eq!(launch.notes[1], "the operator's config.toml has no profile of the wanted name");
}

#[test]
fn an_operator_file_that_is_no_toml_costs_its_models_and_is_named() {
    let deep = format!("x = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let large = format!("# {}", "x".repeat(1 << 20));
    for text in ["model = ", "s3cr3t\u{0}", "[a]\n[a]", &deep, &large] {
        let launch = Case::workspace().operator(text).launch();
        let [note] = launch.notes.as_slice() else { panic!("{:?}", launch.notes) };
        assert!(note.contains("not valid TOML") && !note.contains("s3cr3t"), "{note}");
        assert_eq!(config_text(&launch), config_text(&Case::workspace().launch()));
    }
    let long = "y".repeat(100);
    let text: String = (0..30).fold(format!("\"model\\u001b{long}\" = {{}}\n"), |mut text, n| {
        let _ = writeln!(text, "model_{n:02} = {{}}");
        text
    });
    let launch = Case::workspace().operator(&text).launch();
    assert!(launch.notes[0].len() < 400, "{:?}", launch.notes);
    assert!(!launch.notes[0].contains('\u{1b}'));
}

#[test]
fn config_keys_come_last() {
    let json = r#"{"config": {
        "model": "c", "features.daemon_auto_start": true, "permissions.fleet.network.enabled": true,
        "mcp_servers.s.command": "x", "mcp_servers.s.args": ["a", 1.5, true],
        "projects.\"/home/u/my work/x.y\".trust_level": "untrusted", "analytics": 3
    }}"#;
    let case = Case::workspace().operator("model = \"o\"").options(json);
    let launch = case.launch();
    let config = config(&launch);
    assert_eq!(config["model"].as_str(), Some("c"));
    assert_eq!(config["features"]["daemon_auto_start"].as_bool(), Some(true));
    assert_eq!(config["permissions"]["fleet"]["network"]["enabled"].as_bool(), Some(true));
    assert!(config["permissions"]["fleet"].get("filesystem").is_some());
    assert_eq!(config["mcp_servers"]["s"]["args"].as_array().map(Vec::len), Some(3));
    let trust = config["projects"]["/home/u/my work/x.y"]["trust_level"].as_str();
    assert_eq!(trust, Some("untrusted"));
    assert_eq!(config["analytics"].as_integer(), Some(3));
    // The flag holds whatever the file says.
    assert!(launch.argv.iter().any(|word| word == "--no-daemon"));
    let overrides = CodexHarness::default().native_overrides(&case.options);
    let overrides: Vec<String> = overrides.iter().map(|(key, it)| format!("{key}={it}")).collect();
    assert_eq!(
        overrides,
        [
            "features.daemon_auto_start=true",
            "mcp_servers.s.args=(set)",
            "mcp_servers.s.command=(set)",
            "permissions.fleet.network.enabled=true",
            "projects.\"/home/u/my work/x.y\".trust_level=(set)",
        ]
    );
    let judged = case.effective();
    assert!(judged.exact && judged.granted.len() == 6, "{judged:?}");
    assert!(judged.notes.iter().any(|note| note.contains("opens the network")));
}

/// Options, boundary, then: exact, measured, mode, what is not granted, whether refused.
#[rstest]
#[case::same_as_the_row(r#"{"sandbox": "danger-full-access"}"#, Outer::On, (true, true, Approval::Allow, 0, false))]
#[case::wider(r#"{"sandbox": "danger-full-access"}"#, Outer::Off, (false, true, Approval::Allow, 0, false))]
#[case::wider_by_hand_without_a_sandbox(r#"{"sandbox": "danger-full-access"}"#, Outer::OffUnsandboxed, (false, true, Approval::Allow, 0, false))]
#[case::no_git(r#"{"sandbox": "workspace-write"}"#, Outer::Off, (false, true, Approval::Allow, 0, false))]
#[case::nothing_written(r#"{"sandbox": "read-only"}"#, Outer::Off, (false, true, Approval::Allow, 2, false))]
#[case::by_config(r#"{"config": {"sandbox_mode": "read-only"}}"#, Outer::Off, (false, true, Approval::Allow, 2, false))]
#[case::two_sandboxes(r#"{"sandbox": "workspace-write"}"#, Outer::On, (false, true, Approval::Allow, 0, true))]
#[case::two_sandboxes_asked_for(r#"{"sandbox": "workspace-write"}"#, Outer::Nested, (false, false, Approval::Allow, 0, false))]
#[case::its_own_inside_ours("{}", Outer::Nested, (true, false, Approval::Allow, 0, false))]
#[case::two_sandboxes_by_name(r#"{"config": {"default_permissions": "x"}}"#, Outer::On, (false, false, Approval::Allow, 5, true))]
#[case::no_sandbox_here(r#"{"sandbox": "read-only"}"#, Outer::OffUnsandboxed, (false, true, Approval::Allow, 2, true))]
#[case::asks(r#"{"approval": "on-request"}"#, Outer::Off, (false, true, Approval::Auto, 0, false))]
#[case::own_profile(r#"{"config": {"permissions.fleet.filesystem.\":root\"": "write"}}"#, Outer::Off, (false, false, Approval::Allow, 5, false))]
#[case::profile_of_no_effect(r#"{"config": {"permissions.fleet.filesystem.\":root\"": "write"}}"#, Outer::On, (true, true, Approval::Allow, 0, false))]
#[case::more_roots(r#"{"sandbox": "workspace-write", "config": {"sandbox_workspace_write.writable_roots": ["/x"]}}"#, Outer::Off, (false, false, Approval::Allow, 0, false))]
fn overrides_are_judged(
    #[case] json: &str,
    #[case] outer: Outer,
    #[case] expected: (bool, bool, Approval, usize, bool),
) {
    assert_eq!(problems(json), []);
    let case = Case::new(Approval::Allow, Filesystem::Workspace, outer).options(json);
    let found = case.effective();
    let missing = Capability::ALL.len() - found.granted.len();
    let refused = !found.refusals.is_empty();
    assert_eq!((found.exact, found.measured, found.mode, missing, refused), expected, "{found:?}");
    assert_eq!(found.exact, found.warnings.is_empty());
}

#[test]
fn a_written_never_warns_where_the_words_ask() {
    let case = Case::new(Approval::Auto, Filesystem::Workspace, Outer::Off)
        .options(r#"{"permission_mode": "never"}"#);
    let found = case.effective();
    assert!(!found.exact && found.refusals.is_empty());
    assert!(found.warnings[0].contains("asks less"), "{:?}", found.warnings);
    assert_eq!(found.native["approval"], "never");
    let overrides = CodexHarness::default().native_overrides(&case.options);
    let translated = Translation::Supported(case.translate());
    let [conflict] = &conflicts(true, &overrides, &translated)[..] else { panic!("one conflict") };
    assert_eq!(conflict.native, "never");
    assert_eq!(conflict.neutral.as_deref(), Some("on-request"));
}

#[test]
fn state_is_writable_in_workspace_write_and_no_directory_is_added_to_read_only() {
    let added = |json: &str| {
        let argv = Case::workspace().options(json).launch().argv;
        argv.windows(2)
            .filter(|it| it[0] == "--add-dir")
            .map(|it| it[1].clone())
            .collect::<Vec<_>>()
    };
    let state = "/home/u/.ours-fleet/agents/A";
    assert_eq!(added(r#"{"sandbox": "workspace-write", "add_dirs": ["/d"]}"#), [state, "/d"]);
    assert_eq!(added(r#"{"sandbox": "read-only"}"#), [""; 0]);
    assert_eq!(added(r#"{"add_dirs": ["/d"]}"#), [""; 0], "the profile lists it");
    let found = &problems(r#"{"sandbox": "read-only", "add_dirs": ["/d"]}"#)[0];
    assert_eq!(found.path, "add_dirs");
}

#[rstest]
#[case(r#"{"approval": "untrusted"}"#, "approval", "write `on-request`")]
#[case(r#"{"permission_mode": "on-failure"}"#, "permission_mode", "write `on-request`")]
#[case(
    r#"{"config": {"approval_policy": "untrusted"}}"#,
    "config.approval_policy",
    "write `on-request`"
)]
#[case(r#"{"approval": 5}"#, "approval", "is not a value")]
#[case(
    r#"{"approval": "never", "permission_mode": "on-request"}"#,
    "permission_mode",
    "`approval`"
)]
#[case(
    r#"{"approval": "never", "config": {"approval_policy": "on-request"}}"#,
    "config.approval_policy",
    "`approval`"
)]
#[case(r#"{"sandbox": "off"}"#, "sandbox", "is not a value")]
#[case(
    r#"{"sandbox": "read-only", "config": {"default_permissions": "x"}}"#,
    "config.default_permissions",
    "no effect beside"
)]
#[case(r#"{"config": {"default_permissions": 1}}"#, "config.default_permissions", "must name")]
#[case(r#"{"search": "yes"}"#, "search", "true or false")]
#[case(r#"{"profile": ""}"#, "profile", "not blank")]
#[case(r#"{"add_dirs": "/x"}"#, "add_dirs", "must be a list")]
#[case(r#"{"add_dirs": ["/x", "/a/../b"]}"#, "add_dirs[1]", "component")]
#[case(r#"{"add_dirs": ["~/x"]}"#, "add_dirs[0]", "path")]
#[case(r#"{"add_dirs": [1]}"#, "add_dirs[0]", "quote it")]
#[case(r#"{"config": []}"#, "config", "must be a mapping")]
#[case(r#"{"config": {"a": {"b": 1}}}"#, "config.a", "must not be a mapping")]
#[case(r#"{"config": {"a": [[1]]}}"#, "config.a", "list of lists")]
#[case(r#"{"config": {"a": null}}"#, "config.a", "must be a text")]
#[case(r#"{"config": {"a": 18446744073709551615}}"#, "config.a", "cannot hold")]
#[case(r#"{"config": {"a b": 1}}"#, "config.a b", "not a dotted key")]
#[case(r#"{"config": {"a.b": 1, "a": 2}}"#, "config.a.b", "another key")]
#[case(r#"{"config": {"a": 1, "\"a\"": 2}}"#, "config.a", "another key")]
#[case(
    r#"{"config": {"mcp_servers.ours.command": "x"}}"#,
    "config.mcp_servers.ours.command",
    "`ours`"
)]
#[case(r#"{"launcher": "ours-codex"}"#, "launcher", "ours daemon")]
#[case(r#"{"monitor": true}"#, "monitor", "not available")]
#[case(r#"{"config_home": "shared"}"#, "config_home", "not available")]
#[case(r#"{"sandbx": 1}"#, "sandbx", "unknown key")]
fn one_problem_per_bad_option(#[case] json: &str, #[case] path: &str, #[case] says: &str) {
    let found = problems(json);
    let [problem] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(problem.path, path);
    assert!(problem.message.contains(says), "{}", problem.message);
}

#[test]
fn defaults_and_agreeing_aliases_are_fine() {
    let json = r#"{"launcher": "auto", "monitor": false, "search": false, "approval": "never",
        "permission_mode": "never", "config": {"approval_policy": "never"}, "add_dirs": []}"#;
    assert_eq!(problems(json), []);
}

fn parse(name: &str, line: &str) -> Option<SessionMeta> {
    match CodexHarness::default().session_ids() {
        SessionIds::Recorded(files) => {
            assert_eq!((files.directory, files.depth), ("sessions", 3));
            (files.parse)(name, line)
        }
        SessionIds::Chosen => panic!("Codex chooses its ids"),
    }
}

fn line(change: impl Fn(&mut serde_json::Value)) -> String {
    let mut line = serde_json::json!({
        "timestamp": "2026-11-29T21:11:03.493Z", "ordinal": 0, "type": "session_meta",
        "payload": {
            "id": SESSION, "session_id": SESSION, "cwd": "/w", "source": "cli",
            "thread_source": "user", "cli_version": "0.171.0", "git": {},
            "base_instructions": {"text": "x".repeat(20_000)},
        },
    });
    change(&mut line);
    line.to_string()
}

#[test]
fn conversations_of_the_console_are_found() {
    let name = format!("rollout-2026-11-29T21-11-03-{SESSION}.jsonl");
    let meta = parse(&name, &line(|_| {})).expect("a conversation");
    assert_eq!((meta.id.as_str(), meta.cwd.as_str()), (SESSION, "/w"));
    let old = line(|it| {
        it["payload"].as_object_mut().expect("an object").remove("thread_source");
    });
    assert!(parse(&name, &old).is_some());
}

#[test]
fn whatever_is_odd_is_no_conversation() {
    use serde_json::json;
    let name = format!("rollout-2026-11-29T21-11-03-{SESSION}.jsonl");
    let set = |key: &'static str, value: serde_json::Value| {
        line(move |it| it["payload"][key] = value.clone())
    };
    for bad in [
        set("source", json!({"subagent": "review"})),
        set("source", json!("exec")),
        set("thread_source", json!("subagent")),
        set("id", json!("11111111-2222-4333-8444-555555555555")),
        set("id", json!("--last")),
        set("id", json!(5)),
        set("cwd", json!("w")),
        set("cwd", json!("/w\n/x")),
        set("cwd", json!(format!("/{}", "w".repeat(5000)))),
        set("base_instructions", json!("x".repeat(2 << 20))),
        line(|it| it["type"] = json!("response_item")),
        line(|it| it["payload"] = json!(null)),
        line(|_| {})[..500].to_owned(),
        "[".repeat(100_000),
        String::new(),
    ] {
        assert_eq!(parse(&name, &bad), None, "{}", &bad[..bad.len().min(200)]);
    }
    for bad in [
        "",
        "rollout-.jsonl",
        &format!("{SESSION}.jsonl"),
        &format!("rollout-x-{SESSION}.json"),
        &format!("rollout-ä{}.jsonl", &SESSION[1..]),
        "rollout-2026-11-29T21-11-03-11111111-2222-4333-8444-555555555555.jsonl",
    ] {
        assert_eq!(parse(bad, &line(|_| {})), None, "{bad}");
    }
}
