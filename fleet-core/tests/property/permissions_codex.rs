//! P30, P31, P32, P44 for `codex`, and that no value leaves the file that holds it.

use std::collections::BTreeSet;

use fleet_core::harness::codex::CodexHarness;
use fleet_core::harness::{Harness, StartMode};
use fleet_core::permissions::{Approval, Capability, Filesystem, Outer};
use proptest::prelude::*;
use proptest::sample::select;

use super::{check, holds};
use crate::codex::{
    APPROVALS, Case, FILESYSTEMS, OUTERS, SESSION, config, config_text, options, problems,
};

fn granted(approval: Approval, filesystem: Filesystem, outer: Outer) -> BTreeSet<Capability> {
    Case::new(approval, filesystem, outer).translate().granted
}

#[test]
fn p30_more_permission_never_grants_less() {
    for outer in OUTERS {
        for filesystem in FILESYSTEMS {
            for pair in APPROVALS.windows(2) {
                let [less, more] = [pair[0], pair[1]].map(|it| granted(it, filesystem, outer));
                assert!(less.is_subset(&more), "{pair:?} {filesystem:?} {outer:?}");
            }
        }
        for approval in APPROVALS {
            for pair in FILESYSTEMS.windows(2) {
                let [less, more] = [pair[0], pair[1]].map(|it| granted(approval, it, outer));
                assert!(less.is_subset(&more), "{approval:?} {pair:?} {outer:?}");
            }
        }
    }
}

#[test]
fn p31_only_allow_never_asks_and_nothing_is_wider_without_a_word() {
    for case in Case::all() {
        let found = case.translate();
        let never = found.native["approval"] == "never";
        assert_eq!(never, case.permissions.approval == Approval::Allow, "{case:?}");
        let argv = case.launch().argv;
        assert_eq!(argv.iter().any(|word| word == "never"), never);
        // Codex bounds nothing only where something else does, or where nothing was to be bounded.
        let unbounded = found.native.contains_key("sandbox");
        let bounded_elsewhere =
            case.outer.is_on() || case.permissions.filesystem == Filesystem::Unrestricted;
        assert_eq!(unbounded, bounded_elsewhere, "{case:?}");
        // Where it has to bound and cannot, the role does not start.
        let hopeless = case.outer == Outer::OffUnsandboxed && !unbounded;
        assert_eq!(found.refusals.is_empty(), !hopeless, "{case:?}");
        // What the bound lets be written is what the words say.
        let config = config(&case.launch());
        let Some(table) = config.get("permissions") else { continue };
        let filesystem = table["fleet"]["filesystem"].as_table().expect("a table");
        let written: Vec<&str> = filesystem
            .iter()
            .filter(|(_, value)| value.as_str() != Some("read"))
            .map(|(key, _)| key.as_str())
            .collect();
        let state = case.dirs.state.as_str();
        if case.permissions.filesystem == Filesystem::ReadOnly {
            assert_eq!(written, [state]);
        } else {
            assert_eq!(written, [state, ":workspace_roots"]);
        }
    }
}

#[test]
fn p32_exact_has_no_warning_and_without_overrides_nothing_changes() {
    for mut case in Case::all() {
        for version in [None, Some("0.171.0"), Some("0.172.0")] {
            case.version = version;
            let (translated, effective) = (case.translate(), case.effective());
            assert_eq!(translated.exact, translated.warnings.is_empty());
            assert_eq!(translated, effective);
            assert_eq!(translated.measured, version != Some("0.172.0"));
        }
    }
}

/// Options whose value is not the default, each with what else must be written.
const HONOURED: &[&str] = &[
    r#"{"sandbox": "danger-full-access"}"#,
    r#"{"sandbox": "workspace-write"}"#,
    r#"{"sandbox": "read-only"}"#,
    r#"{"approval": "on-request"}"#,
    r#"{"permission_mode": "on-request"}"#,
    r#"{"search": true}"#,
    r#"{"add_dirs": ["/data/x"]}"#,
    r#"{"add_dirs": ["/data/x"], "sandbox": "workspace-write"}"#,
    r#"{"add_dirs": ["/data/x"], "sandbox": "danger-full-access"}"#,
    r#"{"add_dirs": ["/data/x"], "config": {"default_permissions": ":workspace"}}"#,
    r#"{"profile": "work"}"#,
    r#"{"config": {"model_verbosity": "low"}}"#,
    r#"{"config": {"sandbox_mode": "read-only"}}"#,
    r#"{"config": {"approval_policy": "on-request"}}"#,
    r#"{"config": {"default_permissions": ":workspace"}}"#,
    r#"{"config": {"features.daemon_auto_start": true}}"#,
];
/// Values that this build cannot honour, or that mean nothing.
const REFUSED: &[&str] = &[
    r#"{"launcher": "ours-codex"}"#,
    r#"{"launcher": "x"}"#,
    r#"{"monitor": true}"#,
    r#"{"config_home": "shared"}"#,
    r#"{"profile": " "}"#,
    r#"{"add_dirs": ["x"]}"#,
];

#[test]
fn p44_an_option_changes_the_launch_or_is_refused() {
    for (mode, session) in [(StartMode::Fresh, None), (StartMode::Resume, Some(SESSION))] {
        let operator = "[profiles.work]\nmodel = \"m\"\n";
        let plain = Case { mode, session, ..Case::workspace() }.operator(operator);
        for json in HONOURED {
            assert_eq!(problems(json), [], "{json}");
            let with = plain.clone().options(json);
            let mut seen = with.launch();
            let before = plain.launch();
            assert!(
                (&seen.argv, &seen.env, config_text(&seen))
                    != (&before.argv, &before.env, config_text(&before)),
                "{json} changes nothing"
            );
            seen.notes.clear();
            if json.contains("/data/x") {
                let place = format!("{seen:?}") + &config_text(&seen);
                assert!(place.contains("/data/x"), "{json}");
            }
        }
    }
    for json in REFUSED {
        assert!(!problems(json).is_empty(), "{json}");
    }
    // Every key that is accepted stands in one of the lists.
    let allowed = &problems(r#"{"nonsense": 1}"#)[0].allowed;
    for key in allowed {
        let quoted = format!("\"{key}\"");
        assert!(HONOURED.iter().chain(REFUSED).any(|json| json.contains(&quoted)), "{key}");
    }
}

const SENTINEL: &str = "s3nt1nel-value";

fn config_key() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        select(vec!["mcp_servers", "x", "env", "TOKEN", "permissions", "hooks", "features"])
            .prop_map(str::to_owned),
        "[a-z_]{1,8}",
        r#""[a-z./ ]{0,8}""#,
    ];
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("."))
}

/// A value of `config` can be a key of a server: it stands in the file of mode 0600 and nowhere else.
#[test]
fn sentinel_values_stay_in_the_file() {
    let strategy = (
        prop::collection::vec(config_key(), 1..4),
        select(OUTERS.to_vec()),
        select(APPROVALS.to_vec()),
        select(FILESYSTEMS.to_vec()),
        any::<bool>(),
    );
    holds(check(&strategy, |(keys, outer, approval, filesystem, list)| {
        let value = if list { format!("[\"{SENTINEL}\"]") } else { format!("\"{SENTINEL}\"") };
        let pairs: Vec<String> = keys
            .iter()
            .map(|key| format!("{}: {value}", serde_json::to_string(key).expect("a text")))
            .collect();
        let json = format!("{{\"config\": {{{}}}}}", pairs.join(","));
        let found = problems(&json);
        let shown = format!("{found:?}");
        prop_assert!(!shown.contains(SENTINEL));
        if !found.is_empty() {
            return Ok(());
        }
        let operator = format!("[model_providers.p]\nexperimental_bearer_token = \"{SENTINEL}\"\n");
        let case = Case::new(approval, filesystem, outer).options(&json).operator(&operator);
        let launch = case.launch();
        prop_assert!(config_text(&launch).contains(SENTINEL));
        let shown = format!("{launch:?}");
        prop_assert!(!shown.contains(SENTINEL), "{}", shown);
        let judged = (
            case.translate(),
            case.effective(),
            CodexHarness::default().native_overrides(&options(&json)),
        );
        let shown = format!("{judged:?}");
        prop_assert!(!shown.contains(SENTINEL), "{}", shown);
        Ok(())
    }));
}

/// Whatever the operator's file holds, the settings that keep the role bound and quiet are there.
#[test]
fn no_operator_file_undoes_what_fleet_decides() {
    let line = prop_oneof![
        Just("[mcp_servers.x]\ncommand = \"evil\"".to_owned()),
        Just("default_permissions = \":danger-full-access\"".to_owned()),
        Just("sandbox_mode = \"danger-full-access\"".to_owned()),
        Just("[hooks]\nx = 1".to_owned()),
        Just("model_providers = 5".to_owned()),
        Just("model = \"m\"".to_owned()),
        Just("notice = 1".to_owned()),
        Just("[model_providers.\"a.b\"]\nbase_url = \"u\"".to_owned()),
        Just("[projects.\"/\"]\ntrust_level = \"trusted\"".to_owned()),
        Just("[features]\ndaemon_auto_start = true".to_owned()),
        "[ -~]{0,20}",
        any::<String>(),
    ];
    let strategy = (prop::collection::vec(line, 0..6), select(OUTERS.to_vec()));
    holds(check(&strategy, |(lines, outer)| {
        let case = Case::new(Approval::Auto, Filesystem::Workspace, outer);
        let written = config(&case.clone().operator(&lines.join("\n")).launch());
        let mut own = config(&case.launch());
        for (key, value) in &written {
            if let Some(expected) = own.remove(key) {
                prop_assert_eq!(value, &expected, "{}", key);
            } else {
                prop_assert!(key.starts_with("model"), "{} was taken over", key);
            }
        }
        prop_assert!(own.is_empty(), "missing: {:?}", own);
        Ok(())
    }));
}

/// No path ends its string: what the directories are called never adds a setting.
#[test]
fn no_directory_name_adds_a_setting() {
    let name = prop_oneof!["[ -~]{1,20}", any::<String>(), Just("\"]\n[x]\ny = \"".to_owned())];
    holds(check(&name, |name| {
        let mut case = Case::workspace();
        let cwd = format!("/home/u/{name}");
        case.dirs.cwd = cwd.clone().into();
        let config = config(&case.launch());
        let plain = crate::codex::config(&Case::workspace().launch());
        prop_assert_eq!(config.keys().collect::<Vec<_>>(), plain.keys().collect::<Vec<_>>());
        let projects = config["projects"].as_table().expect("a table");
        prop_assert_eq!(projects.len(), 2);
        prop_assert_eq!(projects[&cwd]["trust_level"].as_str(), Some("trusted"));
        Ok(())
    }));
}
