//! P40 and P41: the resolved plan.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cases;
use crate::support::TestEnvironment;

/// What every value that must not be shown has in it.
const SENTINEL: &str = "S3NT1NEL";

/// A fleet with a secret in every place that may hold one.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    /// What stands around the sentinel in each value.
    around: (String, String),
    /// A name without a hint that its value is secret.
    name: String,
    isolated: bool,
    by_default: bool,
}

impl Fleet {
    fn secret(&self) -> String {
        format!("{}{SENTINEL}{}", self.around.0, self.around.1)
    }

    /// The file, as JSON, which is YAML too.
    fn file(&self) -> Value {
        let (secret, name) = (self.secret(), self.name.as_str());
        let mut defaults = json!({});
        let mut claude = json!({
            "harness": "claude-code",
            "harness_options": {"mcp_servers": {
                "local": {"command": "server", "env": {name: secret}},
                "remote": {"type": "http", "url": format!("https://u:{SENTINEL}@h/?api_key={SENTINEL}"),
                    "headers": {name: secret}},
            }},
        });
        let owner = if self.by_default { &mut defaults } else { &mut claude };
        owner["env"] = json!({name: secret});
        let mut command = json!({
            "harness": "command",
            "env": {"OWN": secret},
            "env_pass": ["PASSED"],
            "harness_options": {"argv": [
                "agent", format!("--token={SENTINEL}"), "--api-key", secret,
                format!("https://u:{SENTINEL}@h/"),
            ]},
        });
        if self.isolated {
            command["isolation"] = json!({
                "network": "deny",
                "secrets": [
                    {"from": format!("~/{SENTINEL}-there"), "to": "/run/secrets/there"},
                    {"from": format!("~/{SENTINEL}-missing"), "to": "/run/secrets/missing"},
                ],
            });
        }
        let codex = json!({
            "harness": "codex",
            "harness_options": {"config": {
                "model_providers.p.experimental_bearer_token": secret,
                "model_providers.p.http_headers.X": secret,
            }},
        });
        json!({"defaults": defaults, "roles": {"Claude": claude, "Codex": codex, "Command": command}})
    }

    /// The home of this fleet, the secret of a file in its place.
    fn environment(&self) -> TestEnvironment {
        let mut env = TestEnvironment::with_fleet(&self.file().to_string());
        env.write(&format!("{SENTINEL}-there"), "key");
        env.set("PASSED", SENTINEL);
        env
    }
}

fn fleet() -> impl Strategy<Value = Fleet> {
    let piece = || "[ -~é]{0,6}";
    let name = "[A-Z][A-Z_]{2,6}".prop_filter("its own meaning", |name| {
        !["ENV", "OURS"].iter().any(|known| name.starts_with(known))
    });
    ((piece(), piece()), name, any::<bool>(), any::<bool>()).prop_map(
        |(around, name, isolated, by_default)| Fleet { around, name, isolated, by_default },
    )
}

/// The function under test: what is shown of a fleet, in text and as JSON.
pub(crate) type Show = fn(&Fleet, &TestEnvironment) -> String;

/// The real program.
pub(crate) fn real(_: &Fleet, env: &TestEnvironment) -> String {
    env.run(["config"]).all() + &env.run(["config", "--json"]).all()
}

/// The text of the file, for wrong implementations.
pub(crate) fn as_written(fleet: &Fleet) -> Value {
    fleet.file()
}

/// P40: no value that may be secret is shown, in no form of the plan.
pub(crate) fn p40(show: Show) -> Result<(), String> {
    cases::run(cases::real_files(), &fleet(), |fleet| {
        let env = fleet.environment();
        let text = show(&fleet, &env);
        for role in ["Claude", "Codex", "Command"] {
            prop_assert!(text.contains(role), "nothing is shown: {text}");
        }
        prop_assert!(text.contains("<redacted>"), "nothing is hidden: {text}");
        let at = text.find(SENTINEL);
        let around = at.map(|at| text.get(at.saturating_sub(200)..at + 20).unwrap_or_default());
        prop_assert_eq!(around, None, "shown");
        Ok(())
    })
}

#[test]
fn p40_the_plan_shows_no_secret() {
    cases::holds(p40(real));
}

fn sorted(value: &Value, at: &str) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            let keys: Vec<&String> = map.keys().collect();
            if !keys.is_sorted() {
                return Err(format!("{at}: {keys:?}"));
            }
            map.iter().try_for_each(|(key, value)| sorted(value, &format!("{at}.{key}")))
        }
        Value::Array(items) => items.iter().try_for_each(|item| sorted(item, at)),
        _ => Ok(()),
    }
}

/// Keys of the plan (02 §1.4, 01 §1.18).
const TOP: &[&str] = &[
    "schemaVersion",
    "sourceFiles",
    "startStaggerMs",
    "diagnostics",
    "roles",
    "loops",
    "watchdogs",
];
const ROLE: &[&str] = &[
    "name",
    "sourceFile",
    "identity",
    "harness",
    "session",
    "sessionOptions",
    "model",
    "modelChain",
    "cwd",
    "coordinator",
    "maxTokens",
    "autocompactPct",
    "permissions",
    "monitor",
    "ownerChannel",
    "loops",
    "isolation",
    "worklog",
    "authProxy",
    "oversee",
    "harnessOptions",
    "env",
    "managedCli",
    "envPass",
];
const PERMISSIONS: &[&str] = &[
    "common",
    "effectiveNative",
    "supported",
    "exact",
    "capabilities",
    "floor",
    "severity",
    "warnings",
    "notes",
];
const PROMISE: &[&str] = &["mounts", "endpoints", "enforcement", "blocklistVersion"];

/// P41: the same file gives the same bytes, keys are sorted, and every documented key is there.
#[test]
fn p41_the_plan_is_stable_sorted_and_complete() {
    cases::holds(cases::run(cases::real_files(), &fleet(), |fleet| {
        let env = fleet.environment();
        let first = env.run(["config", "--json"]);
        prop_assert_eq!(&first.stdout, &env.run(["config", "--json"]).stdout);
        let plan = first.json();
        prop_assert_eq!(sorted(&plan, "plan"), Ok(()));
        let text = first.stdout.trim_end();
        let again: Value = serde_json::from_str(text).expect("JSON");
        prop_assert_eq!(&again, &plan);
        let has = |value: &Value, keys: &[&str], at: &str| {
            let missing: Vec<_> = keys.iter().filter(|key| value.get(**key).is_none()).collect();
            prop_assert!(missing.is_empty(), "{}: {:?}", at, missing);
            Ok(())
        };
        has(&plan, TOP, "the plan")?;
        for role in plan["roles"].as_array().expect("roles") {
            has(role, ROLE, "a role")?;
            has(&role["permissions"], PERMISSIONS, "permissions")?;
            if !role["isolation"].is_null() {
                has(&role["isolation"]["promise"], PROMISE, "the promise")?;
            }
        }
        Ok(())
    }));
}
