//! A real validator with the schema of a fleet file.

use std::sync::OnceLock;

use fleet_core::config::{SchemaOf, schema};
use fleet_core::harness::Harnesses;
use fleet_core::test_support::fakes::stub_harnesses;
use jsonschema::Validator;
use serde_json::Value;

fn validator(of: SchemaOf, harnesses: &Harnesses) -> Validator {
    jsonschema::draft202012::new(&schema(of, harnesses)).expect("a schema of the draft")
}

/// With the stubs of most tests, whose options no table lists.
pub(crate) fn with_stubs(of: SchemaOf) -> &'static Validator {
    static BASE: OnceLock<Validator> = OnceLock::new();
    static DROP_IN: OnceLock<Validator> = OnceLock::new();
    let place = if of == SchemaOf::Base { &BASE } else { &DROP_IN };
    place.get_or_init(|| validator(of, &stub_harnesses()))
}

/// With the harnesses of the product.
pub(crate) fn built_in(of: SchemaOf) -> &'static Validator {
    static BASE: OnceLock<Validator> = OnceLock::new();
    static DROP_IN: OnceLock<Validator> = OnceLock::new();
    let place = if of == SchemaOf::Base { &BASE } else { &DROP_IN };
    place.get_or_init(|| validator(of, &Harnesses::built_in()))
}

/// A file as an editor reads it; `None` for what only our own reader takes, or what means something
/// else to another version of YAML.
pub(crate) fn document(bytes: &[u8]) -> Option<Value> {
    let separators = ["\u{85}", "\u{2028}", "\u{2029}"].map(str::as_bytes);
    if separators.iter().any(|it| bytes.windows(it.len()).any(|window| window == *it)) {
        return None;
    }
    serde_yaml::from_slice(bytes).ok()
}

/// Every remark of the validator on a file.
pub(crate) fn remarks(validator: &Validator, file: &Value) -> Vec<String> {
    validator.iter_errors(file).map(|it| format!("{}: {it}", it.instance_path())).collect()
}
