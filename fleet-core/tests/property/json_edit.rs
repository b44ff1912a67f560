//! P39, the pure part: what is not named survives, and what is no object is left alone.

use fleet_core::harness::json_edit::edited;
use fleet_core::harness::{JsonChange, JsonEdit};
use fleet_core::redact::Redacted;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{check, holds};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zé\"\\\\]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]|projects", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn edit() -> impl Strategy<Value = JsonEdit> {
    let change = prop_oneof![
        value().prop_map(|value| JsonChange::Set(Redacted::new(value))),
        (0u64..9).prop_map(JsonChange::AtLeast),
        "[a-b]{1,2}".prop_map(|text| JsonChange::Include(Redacted::new(text))),
    ];
    (prop::collection::vec("[a-d]|projects|/w", 1..4), change)
        .prop_map(|(path, change)| JsonEdit { path, change })
}

/// Every leaf with its path, and empty objects and lists.
fn leaves(value: &Value, at: &[String], found: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                leaves(value, &[at, std::slice::from_ref(name)].concat(), found);
            }
        }
        other => found.push((at.to_vec(), other.clone())),
    }
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

#[test]
fn p39_unrelated_members_survive() {
    let object = prop::collection::btree_map("[a-d]|projects", value(), 0..5);
    let edits = prop::collection::vec(edit(), 0..4);
    holds(check(&(object, edits), |(object, edits)| {
        let before = Value::Object(object.into_iter().collect::<Map<_, _>>());
        let bytes = serde_json::to_vec(&before).expect("serialises");
        let Ok(after) = edited(Some(&bytes), &edits) else { return Ok(()) };
        let text = after.unwrap_or(bytes);
        let after: Value = serde_json::from_slice(&text).expect("still JSON");
        let mut kept = Vec::new();
        leaves(&before, &[], &mut kept);
        let touched = |path: &Vec<String>| {
            edits.iter().any(|edit| path.starts_with(&edit.path) || edit.path.starts_with(path))
        };
        for (path, value) in kept.iter().filter(|(path, _)| !touched(path)) {
            prop_assert_eq!(at(&after, path), Some(value), "{:?}", path);
        }
        if let Some(last) = edits.last() {
            let found = at(&after, &last.path);
            let there = match &last.change {
                JsonChange::Set(value) => found == Some(value.expose()),
                JsonChange::AtLeast(least) => found.is_some_and(|it| match it.as_u64() {
                    Some(it) => it >= *least,
                    None => it.as_f64().is_some_and(|it| it >= 0.0),
                }),
                JsonChange::Include(text) => found
                    .and_then(Value::as_array)
                    .is_some_and(|list| list.contains(&Value::from(text.expose().as_str()))),
            };
            prop_assert!(there, "{:?} was not done: {:?}", last.path, found);
        }
        prop_assert_eq!(edited(Some(&text), &edits), edited(Some(&text), &edits));
        Ok(())
    }));
}

#[test]
fn p39_what_is_no_object_is_left_alone() {
    let set = [JsonEdit { path: vec!["a".into()], change: JsonChange::AtLeast(1) }];
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        value().prop_map(|value| serde_json::to_vec(&value).expect("serialises")),
        value().prop_map(|value| format!("{value}}}").into_bytes()),
    ];
    holds(check(&bytes, |bytes| {
        let object = serde_json::from_slice::<Map<String, Value>>(&bytes).is_ok();
        prop_assert_eq!(edited(Some(&bytes), &set).is_ok(), object);
        Ok(())
    }));
}

#[test]
fn what_is_there_already_needs_no_writing() {
    let edits = [
        JsonEdit { path: vec!["a".into()], change: JsonChange::Set(Redacted::new(json!(true))) },
        JsonEdit { path: vec!["n".into(), "c".into()], change: JsonChange::AtLeast(1) },
        JsonEdit { path: vec!["l".into()], change: JsonChange::Include(Redacted::new("x".into())) },
    ];
    let text = edited(None, &edits).expect("made").expect("changed");
    let made: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(made, json!({"a": true, "n": {"c": 1}, "l": ["x"]}));
    assert_eq!(edited(Some(&text), &edits), Ok(None));
    let higher = br#"{"a":true,"n":{"c":7},"l":["y","x"]}"#;
    assert_eq!(edited(Some(higher), &edits), Ok(None));
    let odd = edited(Some(br#"{"n":[]}"#), &edits).expect_err("no object to put it in");
    assert_eq!(odd.to_string(), "its member `n` is not an object");
}
