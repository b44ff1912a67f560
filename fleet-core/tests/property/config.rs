//! P19 to P29: the configuration.

use fleet_core::config::{Duration, Loaded, Role};
use fleet_core::diagnostic::{Code, Severity};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use super::{check, fleets};
use crate::fleet::{Files, base};

/// The function under test.
pub(crate) type Load = fn(&Files) -> Loaded;

fn errors(loaded: &Loaded) -> Vec<String> {
    let errors = loaded.diagnostics.iter().filter(|it| it.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

/// Any text in a list of paths becomes an absolute path or an error; what is no list is an error.
pub(crate) fn p19(load: Load) -> Result<(), String> {
    let scalar = prop_oneof![
        any::<String>().prop_map(Value::from),
        "[~/a.:\\\\ -]{0,8}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let value = prop_oneof![
        prop::collection::vec(scalar.clone(), 0..3).prop_map(Value::from),
        scalar,
        Just(json!({"a": "/x"})),
    ];
    check(&(select(vec!["read", "write", "secrets"]), value), |(key, value)| {
        let block = match key {
            "secrets" => json!({"secrets": value}),
            _ => json!({"fs": {key: value}}),
        };
        let loaded = load(&base(json!({"roles": {"A": {"isolation": block}}}).to_string()));
        let Some(fleet) = loaded.fleet else {
            prop_assert!(!errors(&loaded).is_empty(), "refused without a reason");
            return Ok(());
        };
        let written = value.as_array().map(Vec::len);
        prop_assert!(written.is_some(), "accepted, and is no list: {value}");
        let block = fleet.roles["A"].isolation.clone().expect("a block");
        let reads = block.fs_read.iter().chain(&block.fs_write).map(|it| &it.path);
        let paths: Vec<_> = reads.chain(block.secrets.iter().map(|it| &it.from)).collect();
        prop_assert_eq!(Some(paths.len()), written, "an entry was lost");
        for path in paths.into_iter().chain(block.secrets.iter().map(|it| &it.to)) {
            prop_assert!(path.as_str().starts_with('/'), "not absolute: {path}");
            prop_assert!(path.components().all(|part| part != ".." && part != "."));
        }
        Ok(())
    })
}

/// Any bytes give a fleet or an error, never both, neither, or a panic.
pub(crate) fn p20(load: Load) -> Result<(), String> {
    let bytes = prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..200),
        4 => fleets::yaml_noise(),
        2 => (fleets::base_file(), any::<Index>(), any::<u8>()).prop_map(|(file, index, byte)| {
            let mut bytes = file.to_string().into_bytes();
            let index = index.index(bytes.len());
            bytes[index] = byte;
            bytes
        }),
    ];
    check(&bytes, |bytes| {
        for files in [base(&bytes), base("").drop_in("a.yaml", &bytes), base(&bytes).strict()] {
            let loaded = load(&files);
            prop_assert_eq!(loaded.fleet.is_none(), !errors(&loaded).is_empty());
        }
        Ok(())
    })
}

/// Where in a file a mapping with known keys stands.
pub(crate) fn closed_maps(value: &Value, path: &str, found: &mut Vec<String>) {
    let open = ["/roles", "/env", "/vars", "/loops", "/watchdogs"];
    if let Value::Object(map) = value {
        if !open.iter().any(|end| path.ends_with(end)) {
            found.push(path.to_owned());
        }
        for (key, value) in map {
            closed_maps(value, &format!("{path}/{key}"), found);
        }
    } else if let Value::Array(items) = value {
        for (index, value) in items.iter().enumerate() {
            closed_maps(value, &format!("{path}/{index}"), found);
        }
    }
}

/// An unknown key at any level of any block is an error whose path holds it; it names file and, below a
/// role, the role (P22).
pub(crate) fn p21(load: Load) -> Result<(), String> {
    check(&(fleets::base_file(), any::<Index>()), |(file, index)| {
        let mut maps = Vec::new();
        closed_maps(&file, "", &mut maps);
        let place = &maps[index.index(maps.len())];
        let mut file = file;
        let map = file.pointer_mut(place).and_then(Value::as_object_mut).expect("a map");
        map.insert("zzqq".into(), json!("x"));
        let loaded = load(&base(file.to_string()));
        prop_assert!(loaded.fleet.is_none(), "accepted at {place}");
        let found = loaded.diagnostics.iter().find(|it| it.path.ends_with("zzqq"));
        prop_assert!(found.is_some(), "not named at {}: {:?}", place, errors(&loaded));
        let found = found.expect("just checked");
        prop_assert_eq!(found.code, Code::UnknownKey);
        prop_assert_eq!(&found.place.as_ref().expect("a place").file, "/home/op/fleet.yaml");
        let role = place.strip_prefix("/roles/").and_then(|rest| rest.split('/').next());
        prop_assert_eq!(found.role.as_deref(), role, "at {}", place);
        Ok(())
    })
}

/// Every value of a file, by its place.
fn values(value: &Value, path: &str, found: &mut Vec<String>) {
    if !path.is_empty() {
        found.push(path.to_owned());
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                values(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                values(value, &format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// P22: whatever is wrong, every error names the file, and the role that holds what is wrong.
pub(crate) fn p22(load: Load) -> Result<(), String> {
    let wrong = select(vec![
        json!(null),
        json!(-1),
        json!([]),
        json!({}),
        json!([[1]]),
        json!("${nope}"),
        json!(1e300),
        json!(true),
        json!({"zzqq": 1}),
        json!("\u{0}"),
    ]);
    let refused = std::cell::Cell::new(0_u32);
    check(
        &(fleets::base_file(), any::<Index>(), wrong, any::<bool>()),
        |(file, index, wrong, apart)| {
            let mut places = Vec::new();
            values(&file, "", &mut places);
            let place = &places[index.index(places.len())];
            let mut file = file;
            *file.pointer_mut(place).expect("a value") = wrong;
            let role = place.strip_prefix("/roles/").and_then(|rest| rest.split('/').next());
            // In a drop-in as well as in the base file.
            let (files, name) = match role.filter(|_| apart) {
                Some(role) => {
                    let roles = file["roles"].as_object_mut().expect("roles");
                    let moved = roles.remove(role).expect("the role");
                    let drop_in = json!({"roles": {role: moved}}).to_string();
                    (base(file.to_string()).drop_in("x.yaml", drop_in), "/home/op/fleet.d/x.yaml")
                }
                None => (base(file.to_string()), "/home/op/fleet.yaml"),
            };
            let loaded = load(&files);
            let problems = loaded.diagnostics.iter().filter(|it| it.severity == Severity::Error);
            for problem in problems {
                refused.set(refused.get() + 1);
                let at = problem.place.as_ref().map(|place| place.file.as_str());
                prop_assert!(at.is_some(), "no file: {problem}");
                // What refers to the role is said where it refers.
                let about = problem.role.as_deref();
                if role.is_some() && about == role {
                    prop_assert_eq!(at, Some(name), "{}", problem);
                }
                if let Some(role) = role {
                    let elsewhere = about.is_some_and(|about| about != role)
                        || problem.path.starts_with("loops")
                        || problem.path.starts_with("watchdogs");
                    prop_assert!(
                        about == Some(role) || elsewhere,
                        "no role, at {place}: {problem}"
                    );
                }
            }
            Ok(())
        },
    )?;
    assert!(refused.get() > 100, "hardly anything is refused");
    Ok(())
}

#[test]
fn p22_every_error_names_its_file_and_role() {
    p22(Files::load).expect("holds");
}

#[test]
fn p19_lists_of_paths() {
    p19(Files::load).expect("holds");
}

#[test]
fn p20_any_bytes() {
    p20(Files::load).expect("holds");
}

#[test]
fn p21_unknown_keys_and_p22_places() {
    p21(Files::load).expect("holds");
}

fn file(defaults: &Value, roles: &Map<String, Value>) -> String {
    json!({"defaults": defaults, "roles": roles}).to_string()
}

/// A role without what depends on the file that declares it.
fn bare(role: &Role) -> Role {
    let mut role = role.clone();
    role.source_file = "".into();
    for unavailable in &mut role.unavailable {
        unavailable.place = None;
    }
    role
}

fn bare_role(defaults: &Value, role: &Value) -> Role {
    let roles = json!({"A": role});
    bare(&base(file(defaults, roles.as_object().expect("a map"))).role("A"))
}

/// Debug output hides what must not be shown, so the hidden parts are compared by themselves.
fn same(a: &Role, b: &Role) -> bool {
    a == b && a.env == b.env && a.harness_options.expose() == b.harness_options.expose()
}

#[test]
fn p23_splitting_roles_over_files_changes_nothing() {
    let input = (fleets::defaults(), fleets::roles(), any::<u8>());
    check(&input, |(defaults, roles, split)| {
        let whole = base(file(&defaults, &roles)).fleet();
        let (mut main, mut rest) = (Map::new(), Map::new());
        for (index, (name, role)) in roles.into_iter().enumerate() {
            let target = if split >> index & 1 == 0 { &mut main } else { &mut rest };
            target.insert(name, role);
        }
        let parts =
            base(file(&defaults, &main)).drop_in("x.yaml", json!({"roles": rest}).to_string());
        let parts = parts.fleet();
        prop_assert_eq!(whole.roles.len(), parts.roles.len());
        for (name, role) in &whole.roles {
            prop_assert!(same(&bare(role), &bare(&parts.roles[name])), "{name}");
        }
        Ok(())
    })
    .expect("holds");
}

#[test]
fn p24_a_role_in_any_two_files_names_both() {
    let files = ["base", "a.yaml", "b.yml", "c.yaml"];
    for first in 0..files.len() {
        for second in first + 1..files.len() {
            let text =
                |index| if index == first || index == second { "roles: {A: {}}" } else { "" };
            let mut fleet = base(text(0));
            for (index, name) in files.iter().enumerate().skip(1) {
                fleet = fleet.drop_in(name, text(index));
            }
            let line = fleet.only();
            let shown = |index: usize| match index {
                0 => "/home/op/fleet.yaml:1:".to_owned(),
                index => format!("/home/op/fleet.d/{}:1:", files[index]),
            };
            assert!(line.starts_with(&shown(second)), "{line}");
            assert!(line.contains(&shown(first)), "{line}");
        }
    }
}

#[test]
fn p25_a_written_scalar_makes_the_default_irrelevant() {
    let key = select(vec!["harness", "session", "max_tokens", "model", "isolation"]);
    check(&(key, fleets::defaults(), fleets::role()), |(key, defaults, role)| {
        let mut role = role;
        let fill = match key {
            "harness" => json!("codex"),
            "session" => json!("tmux"),
            "max_tokens" => json!(7),
            "model" => json!("m"),
            _ => json!({"network": "deny"}),
        };
        role.as_object_mut().expect("a map").entry(key).or_insert(fill);
        let mut without = defaults.clone();
        without.as_object_mut().expect("a map").remove(key);
        let (with, without) = (bare_role(&defaults, &role), bare_role(&without, &role));
        // Which other defaults are inherited depends on the harness of the defaults.
        if key == "harness" {
            prop_assert_eq!(with.harness, without.harness);
        } else {
            prop_assert!(same(&with, &without));
        }
        Ok(())
    })
    .expect("holds");
}

/// Role over defaults, key by key.
fn right_bias(defaults: &Value, role: &Value) -> Value {
    let mut united = defaults.as_object().expect("a map").clone();
    united.extend(role.as_object().expect("a map").clone());
    Value::Object(united)
}

#[test]
fn p25_maps_merge_key_by_key_with_the_role_winning() {
    let options = prop::collection::btree_map(
        select(vec!["effort", "plugins", "config_home"]).prop_map(str::to_owned),
        "[a-z]{1,3}",
        0..3,
    );
    let options = options.prop_map(|options| json!(options)).boxed();
    let pair = prop_oneof![
        (Just("env"), fleets::env().boxed(), fleets::env().boxed()),
        (Just("permissions"), fleets::permissions(), fleets::permissions()),
        (Just("monitor"), fleets::monitor(), fleets::monitor()),
        (Just("harness_options"), options.clone(), options),
    ];
    // Flattened, since the members of a tuple strategy are drawn together.
    check(&pair, |(key, defaults, role)| {
        let merged = bare_role(&json!({key: defaults}), &json!({key: role}));
        let expected = bare_role(&json!({}), &json!({key: right_bias(&defaults, &role)}));
        prop_assert!(same(&merged, &expected), "{merged:?}\n{expected:?}");
        let identity = bare_role(&json!({key: defaults}), &json!({key: {}}));
        let expected = bare_role(&json!({}), &json!({key: defaults}));
        prop_assert!(same(&identity, &expected));
        Ok(())
    })
    .expect("holds");
}

#[test]
fn p26_isolation_never_merges() {
    let input = (fleets::isolation(), fleets::isolation());
    check(&input, |(default, own)| {
        let block = |defaults: Value, role: Value| bare_role(&defaults, &role).isolation;
        let replaced = block(json!({"isolation": default}), json!({"isolation": own}));
        prop_assert_eq!(replaced, block(json!({}), json!({"isolation": own})));
        let inherited = block(json!({"isolation": default}), json!({}));
        prop_assert_eq!(inherited, block(json!({}), json!({"isolation": default})));
        Ok(())
    })
    .expect("holds");
}

/// What a text becomes, said in another way than the code says it.
fn replaced(text: &str, value: Option<&str>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let escaped = rest.strip_prefix("$${").and_then(|inner| inner.split_once('}'));
        let name = |it: &str| !it.is_empty() && it.chars().all(|c| c.is_ascii_alphanumeric());
        if let Some((of, after)) = escaped.filter(|(of, _)| name(of)) {
            out.extend(["${", of, "}"]);
            rest = after;
        } else if let (Some(after), Some(value)) = (rest.strip_prefix("${a}"), value) {
            out.push_str(value);
            rest = after;
        } else {
            out.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    out
}

#[test]
fn p27_variables_are_replaced_once_and_keys_never() {
    let token = select(vec!["$", "{", "}", "a", "${a}", "$${a}", "${", " ", "é", "${a b}"]);
    let text = prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat());
    check(&(text.clone(), text), |(text, value)| {
        let role = |vars: Value| {
            let file = json!({"vars": vars, "roles": {"A": {"mission": text}}});
            base(file.to_string()).role("A").mission.expect("written")
        };
        prop_assert_eq!(role(json!({})), replaced(&text, None));
        let inserted = replaced(&value, None);
        prop_assert_eq!(role(json!({"a": value})), replaced(&text, Some(&inserted)));
        Ok(())
    })
    .expect("holds");
    let line = base("vars: {a: cwd}\nroles: {A: {'${a}': /x}}").only();
    assert!(line.contains("role 'A': ${a}: unknown key"), "{line}");
}

#[test]
fn p28_durations_round_trip_and_follow_the_grammar() {
    check(&(0..=9_007_199_254_740u64), |seconds| {
        let duration = Duration(seconds * 1000);
        prop_assert_eq!(duration.to_string().parse::<Duration>(), Ok(duration));
        Ok(())
    })
    .expect("holds");
    check(&prop_oneof!["[0-9]{0,17}[smhd]", "[-+ 0-9.smhdx]{0,6}", any::<String>()], |text| {
        let digits = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or_default();
        let grammar = !digits.is_empty() && digits.chars().all(|it| it.is_ascii_digit());
        match text.parse::<Duration>() {
            Ok(_) => prop_assert!(grammar, "{text}"),
            Err(error) => prop_assert!(!grammar || error.to_string() == "is too large", "{text}"),
        }
        Ok(())
    })
    .expect("holds");
    for (millis, text) in
        [(90_000, "90s"), (60_000, "1m"), (7_200_000, "2h"), (86_400_000, "1d"), (0, "0s")]
    {
        assert_eq!(Duration(millis).to_string(), text);
    }
    assert_eq!("007m".parse(), Ok(Duration(420_000)));
}

#[test]
fn p29_the_mode_of_the_monitor_follows_its_precedence() {
    let setting = || (prop::option::of(any::<bool>()), prop::option::of(any::<bool>()));
    check(&(setting(), setting()), |(role, defaults)| {
        let block = |(mode, enabled): (Option<bool>, Option<bool>)| {
            let mut block = Map::new();
            if let Some(fleet) = mode {
                block.insert("mode".into(), json!(if fleet { "fleet" } else { "native" }));
            }
            if let Some(enabled) = enabled {
                block.insert("enabled".into(), json!(enabled));
            }
            json!({"monitor": block})
        };
        let file = json!({"defaults": block(defaults), "roles": {"A": block(role)}}).to_string();
        let disagrees = |(mode, enabled): (Option<bool>, Option<bool>)| {
            matches!((mode, enabled), (Some(mode), Some(enabled)) if mode != enabled)
        };
        if disagrees(role) || disagrees(defaults) {
            prop_assert!(base(file).load().fleet.is_none());
            return Ok(());
        }
        let expected = role.0.or(role.1).or(defaults.0).or(defaults.1).unwrap_or(true);
        let (first, again) = (base(&file).role("A"), base(&file).role("A"));
        prop_assert_eq!(first.monitor.fleet, expected);
        prop_assert_eq!(first.monitor, again.monitor);
        Ok(())
    })
    .expect("holds");
}
