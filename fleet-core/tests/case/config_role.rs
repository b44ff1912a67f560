//! 07 E and the rules of 01 §1.6 to §1.9 for the keys of a role.

use fleet_core::config::{Session, Worklog};
use fleet_core::permissions::{Approval, Filesystem, Unattended};
use rstest::rstest;

use crate::fleet::{Files, base, names};

fn role(keys: &str) -> Files {
    base(format!("roles:\n  A: {{{keys}}}\n"))
}

fn command(keys: &str) -> Files {
    role(&format!("harness: command, harness_options: {{argv: [sh]}}, {keys}"))
}

#[test]
fn e5_permissions_list_keys_and_values() {
    names(
        &role("permissions: {approval: yolo}").only(),
        &["role 'A': permissions.approval: ", "`yolo`", "allowed: ask, auto, allow"],
    );
    names(
        &role("permissions: {filesystem: all}").only(),
        &["permissions.filesystem: ", "read-only, workspace, unrestricted"],
    );
    names(
        &role("permissions: {aproval: ask}").only(),
        &["permissions.aproval: ", "approval, filesystem, unattended", "did you mean `approval`?"],
    );
}

#[test]
fn e5_deny_is_an_alias_with_a_warning() {
    let files = command("permissions: {approval: deny, filesystem: unrestricted}");
    names(&files.warnings()[0], &["permissions.approval: ", "deprecated", "read-only"]);
    let permissions = files.role("A").permissions;
    assert_eq!(permissions.approval, Approval::Ask);
    assert_eq!(permissions.filesystem, Filesystem::ReadOnly);
    assert_eq!(permissions.unattended, Unattended::Deny);
}

#[test]
fn e8_an_unknown_option_is_refused_at_load() {
    let line = role("harness: command, harness_options: {argv: [sh], foo: s3cr3t}").only();
    names(&line, &["fleet.yaml:2:55: role 'A': harness_options.foo: unknown key", "resume_argv"]);
    assert!(!line.contains("s3cr3t"), "{line}");
    names(&role("harness_options: {foo: 1}").only(), &["harness_options.foo", "permission_mode"]);
    names(&role("harness: codex, harness_options: {sandbx: x}").only(), &["`sandbox`"]);
    names(&role("harness: command").only(), &["role 'A': harness_options.argv", "is required"]);
    names(&role("harness: command, harness_options: {argv: sh}").only(), &["harness_options.argv"]);
    names(
        &role("harness: command, harness_options: {argv: [sh, 5]}").only(),
        &["fleet.yaml:2:54: ", "harness_options.argv[1]"],
    );
    names(&role("harness_options: [x]").only(), &["harness_options: must be a mapping"]);
}

#[test]
fn options_of_a_harness_that_is_not_written_or_not_known_are_one_problem() {
    let argv = "harness_options: {argv: [sh], resume_argv: [s3cr3t]}";
    let line = role(argv).only();
    names(
        &line,
        &[
            "fleet.yaml:2:7: role 'A': harness_options: `argv` belongs to `harness: command`",
            "write `harness: command`",
        ],
    );
    assert!(!line.contains("s3cr3t"), "{line}");
    let line = base(format!("defaults: {{{argv}}}\nroles: {{A: {{}}, B: {{}}}}")).only();
    names(&line, &["fleet.yaml:1:12: defaults.harness_options: `argv` belongs to"]);

    let line = role(&format!("harness: comand, {argv}")).only();
    names(&line, &["role 'A': harness: is not a known harness", "did you mean `command`?"]);
    let line =
        base(format!("defaults: {{harness: comand, {argv}}}\nroles: {{A: {{}}, B: {{}}}}")).only();
    names(&line, &["defaults.harness: is not a known harness", "did you mean `command`?"]);
}

#[test]
fn e8_a_wrong_option_of_the_defaults_names_the_defaults() {
    let line = base("defaults:\n  harness: command\n  harness_options: {argv: [sh], foo: 1}\n")
        .drop_in("b.yaml", "roles: {A: {}, B: {}}")
        .only();
    names(&line, &["/home/op/fleet.yaml:3:33: defaults.harness_options.foo: "]);
}

#[rstest]
#[case("isolation: {network: deny, fs.read: /x}", "isolation.fs.read", "`fs: {read: […]}`")]
#[case("isolation.fs.write: [/x]", "isolation.fs.write", "`isolation: {fs: {write: […]}}`")]
#[case("permissions.approval: ask", "permissions.approval", "`permissions: {approval: …}`")]
fn a_key_with_dots_is_shown_as_blocks(#[case] keys: &str, #[case] key: &str, #[case] hint: &str) {
    names(&role(keys).only(), &[&format!("{key}: unknown key"), &format!("; write {hint}")]);
}

#[rstest]
#[case("cwd: ~", "cwd: is empty, a text is expected; `~` alone is YAML for nothing: write `~/`")]
#[case("cwd: null", "cwd: is empty, a text is expected; write a value or leave the key out")]
#[case("cwd: {a: b}", "cwd: must be a text (got a mapping)")]
#[case("cwd: [b]", "cwd: must be a text (got a list)")]
#[case(
    "isolation: {network: {mode: deny}}",
    "isolation.network: must be one of broker, deny, allow, allowlist (got a mapping); write `network: deny`"
)]
#[case("isolation: {network: {deny: 1}}", "allowlist (got a mapping)")]
#[case("session: [tmux]", "session: must be one of tmux, acp (got a list); write `session: tmux`")]
#[case(
    "harness: command, harness_options: {argv: sh -c x}",
    "harness_options.argv: must be a list of texts, for example `argv: [sh, -c,"
)]
fn a_value_of_another_type_says_what_to_write(#[case] keys: &str, #[case] part: &str) {
    names(&role(keys).only(), &[part]);
}

#[test]
fn e11_a_chain_begins_with_the_model_and_repeats_nothing() {
    let line = role("model: a, model_chain: [b, a]").only();
    names(&line, &["role 'A': model_chain: ", "begin with `model`"]);
    names(&role("model_chain: [b, b]").only(), &["role 'A': model_chain[1]: ", "twice"]);
    names(&role("model_chain: []").only(), &["model_chain", "empty"]);
    names(&role("model_chain: [' ']").only(), &["model_chain[0]", "blank"]);
    assert_eq!(role("model: a, model_chain: [a, b]").role("A").model_chain, ["a", "b"]);
}

const CHANNEL: &str = "owner_channel: {identity: owner, owners: [x]}";

#[test]
fn e12_an_owner_channel_needs_acp() {
    names(&role(CHANNEL).only(), &["role 'A': owner_channel: needs `session: acp`"]);
    let role = role(&format!("session: acp, {CHANNEL}")).role("A");
    assert_eq!(role.session, Session::Acp);
    assert!(role.unavailable.iter().any(|it| it.path == "owner_channel" && it.refuses));
    names(
        &base("roles: {A: {session: acp, owner_channel: {owners: [x]}}}").only(),
        &["owner_channel: `identity` is missing"],
    );
    names(
        &base(format!("roles: {{owner: {{}}, B: {{session: acp, {CHANNEL}}}}}")).only(),
        &["role 'B': owner_channel.identity: ", "role `owner`"],
    );
}

#[rstest]
#[case("env: {'A-B': x}", "env.A-B")]
#[case("env: {'TOKEN=s3cr3t': x}", "env.TOKEN: is not the name")]
#[case("env: {OURS_FLEET_HOME: s3cr3t}", "env.OURS_FLEET_HOME")]
#[case("env: {OURS_AUTOSTART: s3cr3t}", "env.OURS_AUTOSTART")]
#[case("env: {IS_SANDBOX: s3cr3t}", "env.IS_SANDBOX: `IS_SANDBOX` is set by ours-fleet")]
#[case("env_pass: [IS_SANDBOX]", "env_pass[0]: `IS_SANDBOX` is set by ours-fleet")]
#[case("env: {X: [s3cr3t]}", "env.X: must be a text")]
#[case("env: {X: {a: s3cr3t}}", "env.X: must be a text")]
#[case("env: {X: null}", "env.X: is empty")]
#[case("env: {X: true}", "env.X: must be a text")]
#[case("env: {X: \"s3cr3t\\0\"}", "env.X: holds a NUL")]
#[case("env_pass: ['A=s3cr3t']", "env_pass[0]: is not the name")]
#[case("env_pass: [OURS_FLEET_X]", "env_pass[0]")]
#[case("isolation: {}, env: {LD_PRELOAD: s3cr3t}", "env: `LD_PRELOAD`")]
#[case("isolation: {}, env: {LD_DEBUG: s3cr3t}", "env: `LD_DEBUG`")]
#[case("isolation: {}, env: {DYLD_X: s3cr3t}", "env: `DYLD_X`")]
#[case("isolation: {}, env_pass: [NODE_OPTIONS]", "env_pass: `NODE_OPTIONS`")]
fn env_is_checked_and_never_shown(#[case] keys: &str, #[case] part: &str) {
    let line = role(keys).only();
    names(&line, &["role 'A': ", part]);
    assert!(!line.contains("s3cr3t"), "{line}");
}

#[test]
fn env_of_the_defaults_lies_under_the_role() {
    let role = base(
        "defaults: {env: {X: d, Y: d}}\nroles: {A: {env: {X: r, LD_PRELOAD: ok}, env_pass: [P, Q, P]}}",
    )
    .role("A");
    assert_eq!(role.env["X"].expose(), "r");
    assert_eq!(role.env["Y"].expose(), "d");
    assert_eq!(role.env["LD_PRELOAD"].expose(), "ok", "nothing wraps the agent");
    assert_eq!(role.env_pass, ["P", "Q"]);
    let line = base("defaults:\n  env: {ENV: x}\nroles:\n  A: {isolation: {}}\n").only();
    names(&line, &["/home/op/fleet.yaml:2:9: role 'A': env: `ENV`"]);
}

#[rstest]
#[case("coordinator: ' '", "coordinator")]
#[case("coordinator: \"a\\nb\"", "coordinator")]
#[case("mission: \"a\\0\"", "mission: holds a NUL")]
#[case("model: -x", "model: ")]
#[case("model: \"a\\tb\"", "model: ")]
#[case("max_tokens: 0", "max_tokens: is out of range (got `0`")]
#[case("max_tokens: 1.5", "max_tokens: must be a whole number")]
#[case("max_tokens: '5'", "max_tokens: must be a whole number")]
#[case("max_tokens: 99999999999999999999", "max_tokens: is out of range")]
#[case("autocompact_pct: 101", "autocompact_pct: is out of range (got `101`; allowed: 1 to 100)")]
#[case("identity: a/b", "identity: is not an identity")]
#[case("identity: contact-book", "identity: is not an identity")]
#[case("briefing_file: ../x", "briefing_file: ")]
#[case("session_options: {tmux: {boot_grace_ms: -1}}", "session_options.tmux.boot_grace_ms: ")]
#[case("session_options: {tmux: {x: 1}}", "session_options.tmux.x: unknown key")]
#[case("session_options: {screen: {}}", "session_options.screen: unknown key")]
#[case("session_options: x", "session_options: must be a mapping")]
#[case("session_options: {acp: {command: []}}", "session_options.acp.command: ")]
#[case("oversee: [{role: A, interval: 1h}]", "oversee: a role cannot look after itself")]
#[case("oversee: [{role: B, interval: 1h}]", "oversee: there is no role `B`")]
#[case(
    "oversee: [{role: B, interval: 9s}]",
    "oversee[0].interval: is too short (got `9s`; allowed: 10s or more)"
)]
#[case(
    "oversee: [{role: B, interval: 1.5h}]",
    "oversee[0].interval: is not a duration (got `1.5h`"
)]
#[case("oversee: [{role: B}]", "oversee[0]: `interval` is missing")]
#[case("monitor: {mode: fleet, enabled: false}", "monitor.enabled: contradicts `mode`")]
#[case("monitor: {wake_sources: []}", "monitor.wake_sources: is an empty list")]
#[case(
    "monitor: {wake_sources: [mail]}",
    "monitor.wake_sources[0]: is not a known value (got `mail`"
)]
#[case(
    "monitor: {inject: full}",
    "monitor.inject: is not a known value (got `full`; allowed: notification)"
)]
#[case("monitor: {turn_fail_threshold: 0}", "monitor.turn_fail_threshold: ")]
#[case("worklog: true", "worklog: must be a mapping, or false")]
#[case("worklog: {max_kb: 10}", "worklog: `keep_tail_kb` must be less than `max_kb`")]
#[case("worklog: {max_archives: 1001}", "worklog.max_archives: is out of range")]
#[case(
    "managed_cli: [x]",
    "managed_cli[0]: is not a known value (got `x`; allowed: task-workflow)"
)]
#[case("managed_cli: [task-workflow, task-workflow]", "managed_cli[1]: is listed twice")]
#[case("auth_proxy: {kind: anthropic}", "auth_proxy: `base_url` is missing")]
fn one_line_per_wrong_value(#[case] keys: &str, #[case] part: &str) {
    names(&role(keys).only(), &["/home/op/fleet.yaml:2:", "role 'A': ", part]);
}

#[test]
fn a_proxy_url_is_never_shown() {
    let line =
        role("auth_proxy: {kind: anthropic, base_url: 'http://user:s3cr3t@localhost'}").only();
    names(&line, &["auth_proxy.base_url: is not a URL of this host"]);
    assert!(!line.contains("s3cr3t"), "{line}");
}

#[test]
fn a_command_role_has_no_model() {
    for key in ["model: x", "model_chain: [x]", "max_tokens: 5", "autocompact_pct: 5"] {
        let line = command(key).only();
        names(&line, &["role 'A': ", "no meaning for the harness `command`"]);
    }
    let options = "harness_options: {argv: [sh]}";
    let line = base(format!(
        "defaults: {{harness: command, {options}, model: x}}\nroles: {{A: {{}}, B: {{}}}}"
    ))
    .only();
    names(&line, &["fleet.yaml:1:", "defaults.model: "]);
    let files = base(format!(
        "defaults: {{model: x, max_tokens: 5}}\nroles: {{A: {{harness: command, {options}}}, B: {{}}}}"
    ));
    assert_eq!((files.role("A").model, files.role("A").max_tokens), (None, None));
    assert_eq!((files.role("B").model, files.role("B").max_tokens), (Some("x".into()), Some(5)));
}

#[test]
fn model_and_options_are_inherited_by_the_same_harness_only() {
    let fleet = base(
        "defaults: {harness: codex, model: m, model_chain: [m], harness_options: {search: true}}\nroles:\n  \
         A: {}\n  B: {harness: claude-code}\n  C: {model: null, model_chain: [c]}\n  \
         D: {harness_options: {profile: p}}\n  E: {model: ' '}\n",
    )
    .fleet();
    let role = |name: &str| &fleet.roles[name];
    assert_eq!(role("A").model.as_deref(), Some("m"));
    assert_eq!(role("A").model_chain, ["m"]);
    assert_eq!(role("A").harness_options.expose().len(), 1);
    assert_eq!((role("B").model.as_deref(), role("B").model_chain.len()), (None, 0));
    assert!(role("B").harness_options.expose().is_empty());
    assert_eq!(role("C").model, None);
    assert_eq!(role("D").harness_options.expose().len(), 2);
    assert_eq!(role("E").model.as_deref(), Some("m"), "a blank model is not written");
}

#[test]
fn texts_have_limits_and_paths_are_made_absolute() {
    let long = |bytes: usize| "x".repeat(bytes);
    for (key, limit) in [("mission", 16384), ("persona", 16384), ("bio", 4096)] {
        role(&format!("{key}: {}", long(limit))).fleet();
        names(&role(&format!("{key}: {}", long(limit + 1))).only(), &[key, "KiB"]);
    }
    for (written, path) in [
        ("/b.md", "/b.md"),
        ("~/b.md", "/home/op/b.md"),
        ("b.md", "/home/op/fleet.d/b.md"),
        ("./sub/b.md", "/home/op/fleet.d/sub/b.md"),
    ] {
        let role = base("")
            .drop_in("x.yaml", format!("roles: {{A: {{briefing_file: {written}}}}}"))
            .role("A");
        assert_eq!(role.briefing_file.expect("written").as_str(), path);
    }
}

#[test]
fn names_that_share_a_directory_collide() {
    let line = base("roles:\n  Rev: {}\n  rev: {}\n").only();
    names(&line, &[":3:3: role 'rev': ", "`Rev`", "see also /home/op/fleet.yaml:2:3"]);
}

#[test]
fn the_log_of_a_role_starts_from_defaults_and_built_ins() {
    let fleet = base(
        "defaults: {worklog: {max_kb: 2048}}\nroles:\n  A: {}\n  B: {worklog: {max_archives: 3}}\n  \
         C: {worklog: false}\n",
    )
    .fleet();
    let built_in = Worklog::default();
    assert_eq!(fleet.roles["A"].worklog, Some(Worklog { max_kb: 2048, ..built_in }));
    assert_eq!(
        fleet.roles["B"].worklog,
        Some(Worklog { max_kb: 2048, max_archives: 3, ..built_in })
    );
    assert_eq!(fleet.roles["C"].worklog, None);
}
