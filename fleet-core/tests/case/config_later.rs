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
         roles: {{A: {{{COMMAND}, session: acp}}, B: {{{COMMAND}}}}}"
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
    assert_eq!(fleet.roles["A"].unavailable[1].path, "loops.l");
    assert!(fleet.roles["B"].unavailable.is_empty());
}

#[test]
fn a_loop_for_all_refuses_everybody() {
    let acp = format!("roles: {{A: {{{COMMAND}, session: acp}}, B: {{{COMMAND}, session: acp}}}}");
    let text = format!("loops: {{l: {{roles: ['*'], interval: 1h, prompt: x}}}}\n{acp}");
    assert_eq!(refusing(&text, "B"), ["session", "loops.l"]);
    let roles = format!("roles: {{A: {{{COMMAND}}}, B: {{{COMMAND}}}}}");
    let off = "{roles: ['*'], interval: 1h, prompt: x, enabled: false}";
    assert_eq!(refusing(&format!("loops: {{l: {off}}}\n{roles}"), "B"), [""; 0], "it never runs");
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
#[case("loops: {l: {roles: [A], prompt: x, enabled: false}}", "loops.l: `interval` is missing")]
#[case(
    "loops: {'a b': {roles: [A], interval: 1h, prompt: x, enabled: false}}",
    "loops.a b: is not a valid name"
)]
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

const LOOP: &str = "roles: [A], interval: 1h, prompt: x";

#[rstest]
#[case("roles: [], interval: 1h, prompt: x", "loops.l.roles: is an empty list")]
#[case("roles: A, interval: 1h, prompt: x", "loops.l.roles: must be a list")]
#[case("roles: [A, A], interval: 1h, prompt: x", "loops.l.roles[1]: is listed twice")]
#[case("roles: [A, '*'], interval: 1h, prompt: x", "loops.l.roles[1]: stands for all roles")]
#[case(
    "roles: [B], interval: 1h, prompt: x",
    "loops.l.roles[0]: a loop needs a role with `session: acp`, and `B` has `tmux`"
)]
#[case(
    "roles: ['*'], interval: 1h, prompt: x",
    "loops.l.roles: a loop needs a role with `session: acp`, and `B` has `tmux`"
)]
#[case(
    "roles: [A], prompt: x, interval: 59s",
    "loops.l.interval: is too short (got `59s`; allowed: 1m or more)"
)]
#[case(
    "roles: [A], prompt: x, interval: 31d",
    "loops.l.interval: is too long (got `31d`; allowed: 30d or less)"
)]
#[case("roles: [A], prompt: x, interval: 1h 5m", "loops.l.interval: is not a duration")]
#[case("roles: [A], prompt: x, interval: 9999999999999999d", "loops.l.interval: is too large")]
#[case("roles: [A], interval: 1h, prompt: ' '", "loops.l.prompt: is blank")]
#[case("roles: [A], interval: 1h, prompt: \"a\\0\"", "loops.l.prompt: holds a NUL")]
#[case("LOOP, initial_delay: 31d", "loops.l.initial_delay: is too long")]
#[case("LOOP, jitter: 61m", "loops.l.jitter: is too long (got `61m`; allowed: 1h or less)")]
#[case(
    "LOOP, jitter: 1h",
    "loops.l.jitter: must be less than `interval` (got `1h`; allowed: less than 1h)"
)]
#[case("LOOP, enabled: 1", "loops.l.enabled: must be true or false")]
#[case("LOOP, promt: x", "loops.l.promt: unknown key")]
fn a_loop_follows_its_rules(#[case] keys: &str, #[case] part: &str) {
    let keys = keys.replace("LOOP", LOOP);
    let line =
        base(format!("loops: {{l: {{{keys}}}}}\nroles: {{A: {{session: acp}}, B: {{}}}}")).only();
    names(&line, &["/home/op/fleet.yaml:1:", part]);
}

#[test]
fn the_prompt_of_a_loop_has_an_end() {
    let with = |prompt: &str| {
        let text = format!("loops: {{l: {{roles: [A], interval: 1h, prompt: \"{prompt}\"}}}}\n");
        base(format!("{text}roles: {{A: {{session: acp}}}}"))
    };
    with(&"x".repeat(12_000)).fleet();
    with(&"x\\r\\n".repeat(6_000)).fleet();
    names(&with(&"x".repeat(12_001)).only(), &["loops.l.prompt: is too long: 12001 bytes"]);
    names(&with(&"é".repeat(8_193)).only(), &["is too long: 16386 bytes, 8193 characters"]);
}

#[rstest]
#[case("coordinator: ' '", "watchdogs.w.coordinator: must be a name")]
#[case("watch: [A]", "watchdogs.w: `coordinator` is missing")]
#[case("coordinator: c, watch: [A, A]", "watchdogs.w.watch[1]: is listed twice")]
#[case(
    "coordinator: c, watch: [Bilder]",
    "watchdogs.w.watch[0]: there is no such role (got `Bilder`); did you mean `Builder`?"
)]
#[case(
    "coordinator: c, identity: A",
    "watchdogs.w.identity: `A` is also the identity of role `A`: it binds only once; see also /home/op/fleet.yaml:2:9"
)]
#[case("coordinator: c, identity: a/b", "watchdogs.w.identity: is not an identity")]
#[case("coordinator: c, harness: gemini", "watchdogs.w.harness: is not a known harness")]
#[case("coordinator: c, model: -x", "watchdogs.w.model: is not the name of a model")]
#[case("coordinator: c, session: screen", "watchdogs.w.session: ")]
#[case(
    "coordinator: c, interval: 30s",
    "watchdogs.w.interval: is too short (got `30s`; allowed: 1m or more)"
)]
#[case(
    "coordinator: c, timeout: soon",
    "watchdogs.w.timeout: is not a duration (got `soon`; allowed: digits and one of s, m, h, d, for example 10m)"
)]
#[case(
    "coordinator: c, keep_reports: 0",
    "watchdogs.w.keep_reports: is out of range (got `0`; allowed: 1 or more)"
)]
#[case("coordinator: c, alert_cooldown: 1.5h", "watchdogs.w.alert_cooldown: is not a duration")]
#[case("coordinator: c, prompt_file: p.md", "watchdogs.w.prompt_file: ")]
#[case("coordinator: c, isolation: {netwrok: deny}", "watchdogs.w.isolation.netwrok: unknown key")]
#[case("coordinator: c, isolation: null", "watchdogs.w.isolation: is empty")]
fn a_watchdog_follows_its_rules(#[case] keys: &str, #[case] part: &str) {
    let line =
        base(format!("watchdogs: {{w: {{{keys}}}}}\nroles: {{A: {{}}, Builder: {{}}}}")).only();
    names(&line, &["/home/op/fleet.yaml:1:", part]);
}

#[test]
fn watchdogs_have_identities_of_their_own() {
    let line =
        base("watchdogs: {a: {coordinator: c, identity: x}, b: {coordinator: c, identity: x}}");
    names(&line.only(), &["watchdogs.b.identity: ", "watchdog `a`"]);
    let line = base("watchdogs: {w: {coordinator: c}}\nroles: {A: {identity: Watchdog-w}}").only();
    names(&line, &["watchdogs.w: `Watchdog-w` is also the identity of role `A`"]);
    base("watchdogs: {w: {coordinator: c}, v: {coordinator: c}}\nroles: {A: {}}").fleet();
}

const ID: &str = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";

#[rstest]
#[case("identity: ' ', owners: [x]", "owner_channel.identity: is not an identity")]
#[case("identity: o, owners: []", "owner_channel.owners: is an empty list")]
#[case("identity: o, owners: x", "owner_channel.owners: must be a list")]
#[case("identity: o, owners: [' ']", "owner_channel.owners[0]: must be the id of a contact")]
#[case("identity: o, owners: [x, x]", "owner_channel.owners[1]: is listed twice")]
#[case("identity: o, owners: [ID, id]", "owner_channel.owners[1]: is listed twice")]
#[case(
    "identity: o, owners: [x], agent: y",
    "owner_channel.agent: is not the id of a contact (got `y`; allowed: 64"
)]
#[case(
    "identity: o, owners: [x], agent: ID",
    "owner_channel.owners[0]: is not the id of a contact"
)]
#[case("identity: o, owners: [id], agent: ID", "owner_channel.owners[0]: is `agent` itself")]
#[case(
    "identity: o, owners: [x], interrupt: 'true'",
    "owner_channel.interrupt: must be true or false"
)]
#[case(
    "identity: o, owners: [x], progress_interval_ms: -1",
    "owner_channel.progress_interval_ms: "
)]
#[case(
    "identity: o, owners: [x], attachments: {max_files_per_request: 33}",
    "attachments.max_files_per_request: is out of range (got `33`; allowed: 1 to 32)"
)]
#[case(
    "identity: o, owners: [x], attachments: {max_file_bytes: 104857601}",
    "attachments.max_file_bytes: is out of range"
)]
#[case(
    "identity: o, owners: [x], attachments: {max_request_bytes: 268435457}",
    "attachments.max_request_bytes: is out"
)]
#[case(
    "identity: o, owners: [x], attachments: {max_file_bytes: 9, max_request_bytes: 8}",
    "attachments.max_request_bytes: is less than `max_file_bytes`"
)]
#[case(
    "identity: o, owners: [x], attachments: {retention_ms: 59999}",
    "attachments.retention_ms: is out of range"
)]
#[case(
    "identity: o, owners: [x], attachments: {allowed_mime: []}",
    "attachments.allowed_mime: holds 0 types"
)]
#[case(
    "identity: o, owners: [x], attachments: {allowed_mime: [Text/plain]}",
    "attachments.allowed_mime[0]: is not a media type"
)]
#[case(
    "identity: o, owners: [x], attachments: {allowed_mime: [a/b, a/b]}",
    "attachments.allowed_mime[1]: is listed twice"
)]
#[case("identity: o, owners: [x], attachments: {enabld: true}", "attachments.enabld: unknown key")]
fn e12_an_owner_channel_follows_its_rules(#[case] keys: &str, #[case] part: &str) {
    let keys = keys.replace("ID", ID).replace("[id]", &format!("[{}]", ID.to_lowercase()));
    let keys = keys.replace(", id]", &format!(", {}]", ID.to_lowercase()));
    let text = format!("roles: {{A: {{session: acp, owner_channel: {{{keys}}}}}}}");
    names(&base(text).only(), &["/home/op/fleet.yaml:1:", "role 'A': owner_channel", part]);
}

#[test]
fn forbidden_paths_of_the_policy_are_kept() {
    let fleet = base("policy: {forbid_paths: [/srv/keys, ~/keys]}").fleet();
    let paths: Vec<&str> = fleet.policy.forbid_paths.iter().map(LexicalPath::as_str).collect();
    assert_eq!(paths, ["/srv/keys", "/home/op/keys"]);
}
