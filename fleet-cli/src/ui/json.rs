use serde_json::{Map, Value};

/// Version of every JSON document that this program prints.
pub const SCHEMA_VERSION: u32 = 1;

/// A document: the version first, then the fields as given.
pub fn document(fields: Value) -> Value {
    let mut document = Map::new();
    document.insert("schemaVersion".to_owned(), SCHEMA_VERSION.into());
    match fields {
        Value::Object(fields) => document.extend(fields),
        other => {
            document.insert("value".to_owned(), other);
        }
    }
    Value::Object(document)
}
