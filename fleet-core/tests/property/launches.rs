//! P34, P37, P44, P45 and P46: what becomes of options, values and words on the way to a launch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fleet_core::harness::command::{CommandHarness, CommandOptions};
use fleet_core::harness::prompts::{first_prompt, restart_prompt};
use fleet_core::harness::{
    FileContent, Harness, HarnessLaunch, Harnesses, LaunchContext, Options, StartMode,
};
use fleet_core::isolation::{BackendName, Resources};
use fleet_core::launch::{Environment, LaunchCommand, LaunchFile, LaunchPlan, PlanWord};
use fleet_core::limits::{LimitFacts, LimitRequest, attempts};
use fleet_core::permissions::{Approval, Outer, Supported, Translation, conflicts};
use fleet_core::redact::Redacted;
use proptest::prelude::*;
use serde_json::json;

use super::{briefing, check, holds};
use crate::claude::{Around, around, with_options};
use crate::fleet::base;

/// P34: a row for each key that was written and differs, if permissions were declared at all.
#[test]
fn p34_a_conflict_for_each_key_that_differs() {
    let settings = || prop::collection::btree_map("[a-d]", "[xy]", 0..4);
    holds(check(&(settings(), settings(), any::<bool>()), |(native, overrides, declared)| {
        let translated = Translation::Supported(Supported {
            native: native.clone(),
            exact: true,
            measured: true,
            covered: true,
            notes: Vec::new(),
            warnings: Vec::new(),
            refusals: Vec::new(),
            granted: BTreeSet::new(),
            mode: Approval::Ask,
        });
        let found = conflicts(declared, &overrides, &translated);
        let mut expected = BTreeMap::new();
        if declared {
            for (key, value) in &overrides {
                if native.get(key) != Some(value) {
                    expected.insert(key.clone(), (value.clone(), native.get(key).cloned()));
                }
            }
        }
        prop_assert_eq!(found.len(), expected.len());
        let found: BTreeMap<_, _> =
            found.into_iter().map(|row| (row.key, (row.native, row.neutral))).collect();
        prop_assert_eq!(found, expected);
        let unsupported = Translation::Unsupported { reason: String::new() };
        prop_assert!(conflicts(declared, &overrides, &unsupported).is_empty());
        Ok(())
    }));
}

/// Everything of a launch that reaches the program, values included.
fn shown(launch: &HarnessLaunch) -> String {
    let mut text = format!("{:?} {:?}", launch.argv, launch.env);
    for file in &launch.files {
        let _ = write!(text, " {:?}/{}: ", file.place, file.name);
        match &file.content {
            FileContent::Whole(whole) => text += whole.expose(),
            FileContent::Json(edits) => {
                let _ = write!(text, "{edits:?}");
            }
        }
    }
    text
}

/// P37: no value of `env` and no value that may be secret of the options is an argument.
#[test]
fn p37_no_value_is_an_argument() {
    let value = "S3NT1NEL[ -~é]{0,8}";
    let outers = prop::sample::select(vec![Outer::Off, Outer::OffUnsandboxed, Outer::On]);
    let input = (value, value, "[A-Z]{1,6}", outers, any::<bool>());
    holds(check(&input, |(env, option, name, outer, resume)| {
        let mut it = around("cwd: /srv/project").outer(outer);
        if resume {
            it.mode = StartMode::Resume;
        }
        it.role.env.insert(name.clone(), Redacted::new(env.clone()));
        let servers = json!({
            "local": {"command": "server", "env": {name.as_str(): option}},
            "remote": {"type": "http", "url": "https://h/", "headers": {name.as_str(): option}},
        });
        let options = json!({ "mcp_servers": servers });
        it.role.harness_options = Redacted::new(options.as_object().expect("a map").clone());
        let launch = it.launch();
        prop_assert!(shown(&launch).contains("S3NT1NEL"), "the servers are written somewhere");
        for word in &launch.argv {
            prop_assert!(!word.contains("S3NT1NEL"), "{}", word);
        }
        let debug = format!("{launch:?}");
        prop_assert!(!debug.contains("S3NT1NEL"), "{}", debug);
        let command = command_launch(&base_command(), it.mode, |role| {
            role.env.insert(name.clone(), Redacted::new(env.clone()));
        });
        prop_assert!(command.argv.iter().all(|word| !word.contains("S3NT1NEL")));
        Ok(())
    }));
}

fn base_command() -> Options {
    json!({"argv": ["agent"]}).as_object().expect("a map").clone()
}

fn command_launch(
    options: &Options,
    mode: StartMode,
    change: impl FnOnce(&mut fleet_core::config::Role),
) -> HarnessLaunch {
    let mut role = base("roles: {A: {harness: command, harness_options: {argv: [x]}}}").role("A");
    role.harness_options = Redacted::new(options.clone());
    change(&mut role);
    let dirs = around("cwd: /srv/project").dirs;
    CommandHarness::default().launch(&LaunchContext {
        role: &role,
        dirs: &dirs,
        denied_reads: &[],
        mode,
        session: None,
        outer: Outer::Off,
        root: false,
        version: None,
        operator_files: &BTreeMap::new(),
        own_env: &Environment::default(),
        hook: None,
    })
}

/// Options of `claude-code` whose value is not the default.
const CLAUDE: &[&str] = &[
    "permission_mode: plan",
    "permission_mode: bypassPermissions",
    "effort: high",
    "plugins: {'a@b': true}",
    "plugins: {'a@b': false}",
    "mem_palace: false",
    "mem_palace_midsession_autosave: true",
    "mcp_servers: {x: {command: y}}",
    "mcp_servers: {x: {type: http, url: 'https://h/', headers: {K: v}}}",
    "mcp_servers_only: false",
    "remote_control: true",
    // Changes the launch; the plan refuses it until homes can be shared.
    "config_home: shared",
];
const CLAUDE_REFUSED: &[&str] = &[
    r#"{"permission_mode": "yolo"}"#,
    r#"{"effort": "most"}"#,
    r#"{"plugins": {"a": 1}}"#,
    r#"{"mem_palace": "no"}"#,
    r#"{"mcp_servers": {}}"#,
    r#"{"mcp_servers": {"x": {"command": "y", "headers": {"K": "v"}}}}"#,
    r#"{"config_home": "own"}"#,
    r#"{"nonsense": 1}"#,
];

fn allowed(harness: &dyn Harness) -> Vec<String> {
    let nonsense = json!({"nonsense": 1}).as_object().expect("a map").clone();
    let problems = harness.validate_options(&nonsense);
    let unknown = problems.into_iter().find(|it| it.unknown_key).expect("an unknown key");
    unknown.allowed
}

/// P44: each option of `claude-code` changes the launch, inside and outside of a sandbox, fresh and
/// resumed, or is refused.
#[test]
fn p44_an_option_of_claude_code_changes_the_launch_or_is_refused() {
    let harness = fleet_core::harness::claude_code::ClaudeCodeHarness::default();
    for outer in [Outer::Off, Outer::OffUnsandboxed, Outer::On] {
        for mode in [StartMode::Fresh, StartMode::Resume] {
            let launched = |it: Around| shown(&Around { mode, ..it.outer(outer) }.launch());
            let plain = launched(around("cwd: /srv/project"));
            for option in CLAUDE {
                assert_ne!(launched(with_options(option)), plain, "{option} changes nothing");
            }
        }
    }
    for json in CLAUDE_REFUSED {
        let options = serde_json::from_str(json).expect("a map");
        assert!(!harness.validate_options(&options).is_empty(), "{json}");
    }
    for key in allowed(&harness) {
        assert!(CLAUDE.iter().any(|it| it.starts_with(&format!("{key}:"))), "{key}");
    }
}

/// P44 for `command`: each option changes the command, or how the console is read.
#[test]
fn p44_an_option_of_a_command_changes_the_launch_or_is_refused() {
    let harness = CommandHarness::default();
    let effect = |options: &Options| {
        let fresh = command_launch(options, StartMode::Fresh, |_| {});
        let resume = command_launch(options, StartMode::Resume, |_| {});
        format!("{:?} {:?} {:?}", fresh.argv, resume.argv, harness.driver(options))
    };
    let plain = effect(&base_command());
    for key in allowed(&harness) {
        let mut options = base_command();
        options.insert(key.clone(), json!(["other"]));
        assert!(CommandOptions::parse(&options).is_ok(), "{key}");
        assert_ne!(effect(&options), plain, "{key} changes nothing");
        options.insert(key.clone(), json!("no list"));
        assert!(!harness.validate_options(&options).is_empty(), "{key}");
    }
}

/// P45: what an agent is told when it starts and when it goes on never holds both that it is to watch
/// for mail itself and that it is not to. In this build there is no mail, so it holds neither.
#[test]
fn p45_no_text_both_arms_a_monitor_and_does_not() {
    let dirs = around("cwd: /srv/project").dirs;
    let mut texts = vec![first_prompt(&dirs), restart_prompt(&dirs)];
    for harness in ["claude-code", "codex", "command"] {
        let harnesses = Harnesses::built_in();
        let harness = harnesses.get(harness).expect("built in");
        texts.push((harness.vocabulary().launch_note)("A"));
    }
    texts.push(briefing::real(&briefing::harmless(&briefing::Words {
        persona: String::new(),
        bio: String::new(),
        mission: String::new(),
        coordinator: String::new(),
        curated: None,
        cwd: String::new(),
        user: String::new(),
        degraded: None,
        isolated: true,
    })));
    for text in texts {
        let text = text.to_lowercase();
        let arms = text.contains("arm_monitor") || text.contains("monitor tool");
        let does_not = text.contains("do not arm") || text.contains("arm no monitor");
        assert!(!arms && !does_not, "{text}");
    }
}

/// P46: what is written into a launch file is what is read from it.
#[test]
fn p46_a_command_comes_back_from_its_launch_file() {
    let word = || {
        prop_oneof![
            Just(String::new()),
            Just("--".to_owned()),
            Just("\0\n\r\t\"\\\u{2028}\u{feff}".to_owned()),
            any::<String>(),
        ]
    };
    let words = || prop::collection::vec(word(), 0..8);
    let env = prop::collection::btree_map(word(), word(), 0..5);
    holds(check(&(words(), words(), env, word()), |(argv, plan, env, cwd)| {
        let file = LaunchFile {
            version: LaunchFile::VERSION,
            launch_id: "l-1".parse().expect("an id"),
            role: "A".parse().expect("a name"),
            command: LaunchCommand { argv, cwd: cwd.into() },
            env: Environment(env),
            plan: LaunchPlan {
                backend: BackendName::None,
                argv: plan
                    .into_iter()
                    .map(PlanWord::text)
                    .chain([PlanWord::Descriptor(0)])
                    .collect(),
                descriptors: Vec::new(),
                checks: Vec::new(),
                network: None,
                prepare: Vec::new(),
                cleanup: Vec::new(),
                promise: Vec::new(),
            },
            exit_record: "/c/exit.json".into(),
            observed: "/c/observed.json".into(),
            sandbox_process: Some("/c/sandbox-process.json".into()),
            connections: Some("/c/connections.jsonl".into()),
            limits: Some(LimitRequest {
                resources: Resources { pids: Some(20), ..Resources::default() },
                strict: None,
                group: "ours-fleet-A-00000000-l1".parse().expect("a name"),
                record: "/c/groups.json".into(),
                attempts: attempts(
                    &LimitFacts::default(),
                    Resources { pids: Some(20), ..Resources::default() },
                ),
                runtime_dir: None,
            }),
        };
        let text = serde_json::to_vec(&file).expect("serialises");
        let back: LaunchFile = serde_json::from_slice(&text).expect("a launch file");
        prop_assert_eq!(back, file);
        Ok(())
    }));
}
