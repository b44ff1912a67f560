//! Generators of valid fleet files, as JSON, which is YAML too.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

type Field = BoxedStrategy<Option<(String, Value)>>;

fn field(key: &'static str, value: impl Strategy<Value = Value> + 'static) -> Field {
    prop_oneof![
        2 => Just(None),
        1 => value.prop_map(move |value| Some((key.to_owned(), value))),
    ]
    .boxed()
}

fn block(fields: Vec<Field>) -> BoxedStrategy<Value> {
    fields
        .prop_map(|fields| Value::Object(fields.into_iter().flatten().collect::<Map<_, _>>()))
        .boxed()
}

fn one_of(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(words).prop_map(Value::from).boxed()
}

pub(crate) fn path() -> impl Strategy<Value = Value> {
    "(~/|/)[a-z.][a-z]{1,5}(/[a-z]{1,5}){0,2}".prop_map(Value::from)
}

fn paths() -> impl Strategy<Value = Value> {
    prop::collection::vec(path(), 0..3).prop_map(Value::from)
}

fn text() -> impl Strategy<Value = Value> {
    "[a-zA-Z][a-zA-Z .,é]{0,20}".prop_map(Value::from)
}

pub(crate) fn env() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[A-D]", "[a-z:=#'\" ]{0,6}", 0..4).prop_map(|env| json!(env))
}

pub(crate) fn permissions() -> BoxedStrategy<Value> {
    block(vec![
        field("approval", one_of(&["ask", "auto", "allow"])),
        field("filesystem", one_of(&["read-only", "workspace", "unrestricted"])),
        field("unattended", one_of(&["deny", "wait"])),
    ])
}

pub(crate) fn monitor() -> BoxedStrategy<Value> {
    block(vec![
        field("mode", one_of(&["fleet", "native"])),
        field("batch_ms", (0..5000u32).prop_map(Value::from)),
        field("turn_fail_threshold", (1..9u32).prop_map(Value::from)),
        field("interrupt", select(vec![json!(true), json!(false), json!("after_tool")])),
    ])
}

pub(crate) fn isolation() -> BoxedStrategy<Value> {
    block(vec![
        field("backend", one_of(&["auto", "bubblewrap", "none"])),
        field("on_unavailable", one_of(&["warn", "strict"])),
        field("network", one_of(&["broker", "deny", "allow"])),
        field("fs", block(vec![field("read", paths()), field("write", paths())])),
        field("resources", block(vec![field("pids", (16..999u32).prop_map(Value::from))])),
        field("secrets", Just(json!([{"from": "/a", "to": "/run/secrets/a"}, "/b:/tmp/b"]))),
        field("system", one_of(&["curated", "full"])),
        field("nested_sandbox", any::<bool>().prop_map(Value::from)),
    ])
}

fn worklog() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(json!(false)),
        block(vec![
            field("max_kb", (1000..2000u32).prop_map(Value::from)),
            field("max_archives", (1..1000u32).prop_map(Value::from)),
        ])
    ]
    .boxed()
}

fn shared() -> Vec<Field> {
    vec![
        field("harness", one_of(&["claude-code", "codex"])),
        field("session", one_of(&["tmux", "acp"])),
        field(
            "session_options",
            Just(json!({"tmux": {"boot_grace_ms": 5}, "acp": {"command": ["x"]}})),
        ),
        field("permissions", permissions()),
        field("model", text()),
        field("max_tokens", (1..9999u32).prop_map(Value::from)),
        field("env", env()),
        field("harness_options", Just(json!({"permission_mode": "ask", "config_home": "shared"}))),
        field("isolation", isolation()),
        field("monitor", monitor()),
        field("worklog", worklog()),
    ]
}

/// A valid `defaults` block.
pub(crate) fn defaults() -> BoxedStrategy<Value> {
    block(shared())
}

/// A valid role.
pub(crate) fn role() -> BoxedStrategy<Value> {
    let mut fields = shared();
    fields.extend([
        field("cwd", path()),
        field("coordinator", text()),
        field("mission", text()),
        field("persona", text()),
        field("bio", text()),
        field("autocompact_pct", (1..=100u32).prop_map(Value::from)),
        field("env_pass", Just(json!(["P", "Q"]))),
        field("managed_cli", Just(json!(["task-workflow"]))),
    ]);
    block(fields)
}

/// Some valid roles, by name.
pub(crate) fn roles() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(role(), 1..5).prop_map(|roles| {
        let named = roles.into_iter().enumerate();
        named.map(|(index, role)| (format!("R{index}"), role)).collect()
    })
}

/// A valid base file that holds a block of every kind.
pub(crate) fn base_file() -> impl Strategy<Value = Value> {
    (defaults(), roles()).prop_map(|(defaults, mut roles)| {
        roles.insert(
            "Full".into(),
            json!({
                "session": "acp",
                "harness": "claude-code",
                "session_options": {"tmux": {"boot_grace_ms": 1}, "acp": {"command": "x"}},
                "permissions": {"approval": "ask"},
                "isolation": {
                    "fs": {"read": ["/x"]},
                    "resources": {"mem": "1G"},
                    "secrets": [{"from": "/a", "to": "/b"}],
                },
                "monitor": {"batch_ms": 1},
                "worklog": {"max_kb": 1000},
                "oversee": [{"role": "R0", "interval": "1h"}],
                "auth_proxy": {"kind": "anthropic", "base_url": "http://localhost:1"},
                "owner_channel": {"identity": "own", "owners": ["x"], "attachments": {"enabled": true}},
                "harness_options": {"effort": "low"},
            }),
        );
        json!({
            "defaults": defaults,
            "roles": roles,
            "policy": {"forbid_paths": ["/k"], "require": {"approval": "allow"}},
            "messaging": {"backend": "embedded"},
            "loops": {"l": {"roles": ["Full"], "interval": "1h", "prompt": "x"}},
            "watchdogs": {"w": {"coordinator": "c"}},
        })
    })
}

/// Text made of the building blocks of YAML and of fleet files.
pub(crate) fn yaml_noise() -> impl Strategy<Value = Vec<u8>> {
    let tokens = vec![
        "roles:",
        "defaults:",
        "vars:",
        "A",
        "isolation:",
        "fs:",
        "read:",
        "env:",
        "harness:",
        "command",
        " ",
        "  ",
        "    ",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "? ",
        ": ",
        ":",
        "&a ",
        "*a",
        "!!str ",
        "!x ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "'",
        "\"",
        "|\n",
        ">-\n",
        "<<",
        "${x}",
        "$${",
        "}",
        "null",
        "~",
        "5",
        "-1",
        ".inf",
        "true",
        "\t",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "#",
        "é",
        "\u{feff}",
        "\u{85}",
        "\u{2028}",
        "\\",
        "@",
        "`",
        "\0",
    ];
    prop::collection::vec(select(tokens), 0..60).prop_map(|tokens| tokens.concat().into_bytes())
}
