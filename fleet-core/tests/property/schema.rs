//! The schema accepts what the loader accepts, and knows no other keys.

use fleet_core::config::SchemaOf;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use super::config::closed_maps;
use super::{check, fleets, holds};
use crate::fleet::base;
use crate::schema::{document, remarks, with_stubs};

#[test]
fn the_schema_accepts_what_the_loader_accepts() {
    holds(check(&fleets::base_file(), |file| {
        prop_assert!(base(file.to_string()).load().fleet.is_some(), "the generator is wrong");
        let found = remarks(with_stubs(SchemaOf::Base), &file);
        prop_assert!(found.is_empty(), "{:?}", found);
        // As YAML in the words of an editor it is the same.
        prop_assert_eq!(document(file.to_string().as_bytes()), Some(file));
        Ok(())
    }));
}

#[test]
fn the_schema_refuses_an_unknown_key_at_any_level() {
    holds(check(&(fleets::base_file(), any::<Index>()), |(file, index)| {
        let mut maps = Vec::new();
        closed_maps(&file, "", &mut maps);
        // The options of the stubs are not listed anywhere.
        maps.retain(|place| !place.contains("harness_options"));
        let place = &maps[index.index(maps.len())];
        let mut file = file;
        let map = file.pointer_mut(place).and_then(|it| it.as_object_mut()).expect("a map");
        map.insert("zzqq".into(), json!("x"));
        let found = remarks(with_stubs(SchemaOf::Base), &file);
        prop_assert!(!found.is_empty(), "accepted at {}", place);
        Ok(())
    }));
}
