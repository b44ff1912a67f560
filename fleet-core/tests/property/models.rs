//! P36: the model of a role and the variable that pins it.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::{check, holds};
use crate::fleet::base;

const PIN: &str = "ANTHROPIC_MODEL";

/// P36: with a harness that is pinned, the variable says what `model` says, or nothing starts; `null`
/// leaves neither.
#[test]
fn p36_pin_and_model_say_the_same_or_the_role_is_refused() {
    let name = || select(vec![None, Some(json!("a")), Some(json!("b")), Some(json!(" "))]);
    let with_null = || prop_oneof![4 => name(), 1 => Just(Some(Value::Null))];
    let harness = || select(vec![None, Some("claude-code"), Some("codex")]);
    let layer = || (harness(), with_null(), name());
    let counts = std::cell::Cell::new([0_u32; 3]);
    holds(check(&(layer(), layer()), |(defaults, role)| {
        let block = |(harness, model, pin): &(Option<&str>, Option<Value>, Option<Value>), own| {
            let mut map = Map::new();
            if let Some(harness) = harness {
                map.insert("harness".into(), json!(harness));
            }
            // Only a role may say that it has no model.
            if let Some(model) = model.as_ref().filter(|it| own || !it.is_null()) {
                map.insert("model".into(), model.clone());
            }
            if let Some(pin) = pin {
                map.insert("env".into(), json!({ PIN: pin }));
            }
            Value::Object(map)
        };
        let file = json!({"defaults": block(&defaults, false), "roles": {"A": block(&role, true)}});
        let loaded = base(file.to_string()).load();
        let mut now = counts.get();
        let Some(fleet) = loaded.fleet else {
            now[0] += 1;
            counts.set(now);
            prop_assert!(!loaded.diagnostics.is_empty());
            return Ok(());
        };
        let found = &fleet.roles["A"];
        if found.harness.as_str() == "claude-code" {
            let pin = found.env.get(PIN).map(|pin| pin.expose().as_str());
            prop_assert_eq!(found.model.as_deref(), pin);
            now[if pin.is_some() { 1 } else { 2 }] += 1;
            if role.1 == Some(Value::Null) {
                prop_assert_eq!(pin, None);
            }
        }
        counts.set(now);
        Ok(())
    }));
    let counts = counts.into_inner();
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}
