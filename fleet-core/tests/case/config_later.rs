//! Keys that this build cannot serve (01 §1.3): recognised, checked, and said.

use fleet_core::path::LexicalPath;
use rstest::rstest;

use crate::fleet::{base, names, only_command};

const COMMAND: &str = "harness: command, harness_options: {argv: [sh]}";

fn refusing(text: &str, role: &str) -> Vec<String> {
    let role = base(text).role(role);
    role.unavailable.iter().filter(|it| it.refuses).map(|it| it.path.clone()).collect()
}

#[rstest]
#[case("session: acp", "session")]
#[case("session_options: {acp: {command: x}}", "session_options.acp")]
#[case("monitor: {batch_ms: 5}", "monitor")]
#[case("worklog: {max_kb: 2048}", "worklog")]
#[case("managed_cli: [task-workflow]", "managed_cli")]
#[case("oversee: [{role: B, interval: 1h}]", "oversee")]
fn a_written_key_refuses_the_role(#[case] key: &str, #[case] path: &str) {
    let text = format!("roles: {{A: {{{COMMAND}, {key}}}, B: {{{COMMAND}}}}}");
    assert_eq!(refusing(&text, "A"), [path]);
    assert_eq!(refusing(&text, "B"), [""; 0]);
    let role = base(&text).role("A");
    assert!(role.unavailable[0].place.is_some());
    names(&role.unavailable[0].reason, &["not available in this build"]);
    assert!(!role.unavailable[0].instead.is_empty());
}

#[test]
fn an_inherited_key_refuses_every_heir() {
    let text = format!("defaults: {{monitor: {{batch_ms: 5}}}}\nroles: {{A: {{{COMMAND}}}}}");
    assert_eq!(refusing(&text, "A"), ["monitor"]);
}

#[rstest]
#[case("monitor: {}")]
#[case("worklog: false")]
#[case("permissions: {approval: allow}")]
#[case("managed_cli: []")]
fn what_asks_for_nothing_missing_is_not_refused(#[case] key: &str) {
    let text = format!("roles: {{A: {{{COMMAND}, {key}}}}}");
    assert_eq!(refusing(&text, "A"), [""; 0]);
}

#[test]
fn a_registered_harness_serves_every_role_that_writes_nothing_else() {
    for text in [
        "roles: {A: {}}",
        "roles: {A: {harness: codex}}",
        "defaults: {harness: codex}\nroles: {A: {permissions: {approval: allow}}}",
        "roles: {A: {model: m, max_tokens: 200000, autocompact_pct: 62.4}}",
    ] {
        assert_eq!(refusing(text, "A"), [""; 0], "{text}");
    }
    assert_eq!(base("roles: {A: {}}").role("A").harness.as_str(), "claude-code");
    assert_eq!(base("roles: {A: {autocompact_pct: 62.4}}").role("A").autocompact_pct, Some(62));
    names(&base("roles: {A: {autocompact_pct: 100.5}}").only(), &["autocompact_pct", "1 to 100"]);
}

#[test]
fn a_credential_proxy_is_refused_and_is_for_one_harness_only() {
    let text = "roles: {A: {auth_proxy: {kind: anthropic, base_url: 'http://127.0.0.1:1'}}}";
    assert_eq!(refusing(text, "A"), ["auth_proxy"]);
    let text = format!(
        "roles: {{A: {{{COMMAND}, auth_proxy: {{kind: anthropic, base_url: 'http://127.0.0.1:1'}}}}}}"
    );
    names(&base(text).only(), &["auth_proxy: is for the harness `claude-code` only"]);
}

#[test]
fn a_chain_of_models_refuses_where_it_is_in_force() {
    let text = "defaults: {harness: codex, model_chain: [a, b]}\n\
                roles: {A: {}, B: {harness: claude-code}, C: {model_chain: [c]}}";
    assert_eq!(refusing(text, "A"), ["model_chain"]);
    assert_eq!(refusing(text, "B"), [""; 0]);
    assert_eq!(refusing(text, "C"), ["model_chain"]);
    names(&base(text).role("A").unavailable[0].instead, &["the first of them as `model`"]);
}

#[test]
fn without_the_default_harness_a_role_must_name_one() {
    let load = |text: &str| {
        let line = base(text).with(only_command()).refused();
        assert_eq!(line.len(), 1, "{line:?}");
        line.into_iter().next().expect("one")
    };
    names(&load("roles:\n  A: {}\n"), &[":2:6: role 'A': ", "`claude-code`", "allowed: command"]);
}

#[test]
fn top_level_keys_are_said_and_refuse_only_whom_they_name() {
    let fleet = base(format!(
        "messaging: {{backend: embedded}}\ntasks: {{}}\nrooms: {{}}\nloops:\n  l: {{roles: [A], interval: 1h, prompt: x}}\n\
         roles: {{A: {{{COMMAND}}}, B: {{{COMMAND}}}}}"
    ))
    .fleet();
    let written: Vec<&str> = fleet
        .unavailable
        .iter()
        .filter(|it| it.place.is_some())
        .map(|it| it.path.as_str())
        .collect();
    assert_eq!(written, ["messaging", "tasks", "rooms", "loops"]);
    assert!(fleet.unavailable.iter().all(|it| !it.refuses));
    assert_eq!(fleet.roles["A"].unavailable[0].path, "loops.l");
    assert!(fleet.roles["B"].unavailable.is_empty());
}

#[test]
fn a_loop_for_all_refuses_everybody() {
    let roles = format!("roles: {{A: {{{COMMAND}}}, B: {{{COMMAND}}}}}");
    let text = format!("loops: {{l: {{roles: ['*'], interval: 1h, prompt: x}}}}\n{roles}");
    assert_eq!(refusing(&text, "B"), ["loops.l"]);
    let text = format!("watchdogs: {{w: {{coordinator: c, watch: [B]}}}}\n{roles}");
    assert_eq!(refusing(&text, "A"), [""; 0]);
    assert_eq!(refusing(&text, "B"), ["watchdogs.w"]);
}

#[rstest]
#[case("messaging: x", "messaging: must be a mapping")]
#[case(
    "messaging: {backend: nats}",
    "messaging.backend: is not a known value (got `nats`; allowed: embedded, ours-daemon)"
)]
#[case("tasks: []", "tasks: must be a mapping")]
#[case("policy: {forbid: []}", "policy.forbid: unknown key")]
#[case("policy: {forbid_paths: [x]}", "policy.forbid_paths[0]: ")]
#[case("policy: {require: {isolation: L9}}", "policy.require.isolation: ")]
#[case(
    "loops: {l: {roles: [X], interval: 1h, prompt: x}}",
    "loops.l.roles[0]: there is no such role (got `X`"
)]
#[case("loops: {l: {roles: [A], prompt: x}}", "loops.l: `interval` is missing")]
#[case("loops: {'a b': {roles: [A], interval: 1h, prompt: x}}", "loops.a b: is not a valid name")]
#[case("watchdogs: {A: {coordinator: c}}", "watchdogs.A: is also the name of a role")]
#[case("vars: {'a-b': x}", "vars.a-b: is not a name for a variable")]
#[case("vars: {a: [s3cr3t]}", "vars.a: must be a text, number or boolean")]
#[case("vars: {a: null}", "vars.a: is empty")]
#[case("defaults: {identity: x}", "defaults.identity: unknown key")]
#[case("defaults: []", "defaults: must be a mapping")]
#[case("defaults: {session: x}", "defaults.session: ")]
fn top_level_blocks_are_checked(#[case] block: &str, #[case] part: &str) {
    let line = base(format!("{block}\nroles: {{A: {{}}}}")).only();
    names(&line, &["/home/op/fleet.yaml:1:", part]);
    assert!(!line.contains("s3cr3t"), "{line}");
}

#[test]
fn forbidden_paths_of_the_policy_are_kept() {
    let fleet = base("policy: {forbid_paths: [/srv/keys, ~/keys]}").fleet();
    let paths: Vec<&str> = fleet.policy.forbid_paths.iter().map(LexicalPath::as_str).collect();
    assert_eq!(paths, ["/srv/keys", "/home/op/keys"]);
}
