//! YAML out. What is written is read again by the one reader of this crate and compared, so that a file
//! never means something else than what was meant.

use serde::Serialize;
use serde_json::Value as Json;

use super::load::YamlMode;
use super::scalar::Core;
use super::tree::{Node, Value, read};
use crate::diagnostic::Sink;

/// Why a value was not written.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// It has no JSON form, for example a map whose keys are not texts.
    #[error("the value cannot be written as YAML")]
    Form(#[source] serde_json::Error),
    /// The writer refused it.
    #[error("the value cannot be written as YAML")]
    Write(#[source] serde_yaml::Error),
    /// What was written would be read as something else.
    #[error("the value would not be read back as it is")]
    Changed,
}

/// YAML text of a value that reads back, strictly, as the same value.
pub fn write_checked<T: Serialize>(value: &T) -> Result<String, EmitError> {
    let value = serde_json::to_value(value).map_err(EmitError::Form)?;
    let text = serde_yaml::to_string(&value).map_err(EmitError::Write)?;
    let mut sink = Sink::default();
    let tree = read(text.as_bytes(), 0, "", YamlMode::Strict, &mut sink);
    match tree {
        Some(tree) if !sink.has_errors() && same(&tree, &value) => Ok(text),
        _ => Err(EmitError::Changed),
    }
}

fn same(node: &Node, json: &Json) -> bool {
    match (&node.value, json) {
        (Value::Scalar(scalar), json) => match (scalar.core(), json) {
            (Core::Null, Json::Null) => true,
            (Core::Bool(read), Json::Bool(meant)) => read == *meant,
            (Core::Int(read), Json::Number(meant)) => meant.as_i64() == Some(read),
            (Core::Float(read), Json::Number(meant)) => meant.as_f64() == Some(read),
            (Core::Text(read), Json::String(meant)) => read == meant,
            _ => false,
        },
        (Value::List(read), Json::Array(meant)) => {
            read.len() == meant.len()
                && read.iter().zip(meant).all(|(read, meant)| same(read, meant))
        }
        (Value::Map(read), Json::Object(meant)) => {
            read.len() == meant.len()
                && read
                    .iter()
                    .all(|entry| meant.get(&*entry.key).is_some_and(|it| same(&entry.value, it)))
        }
        _ => false,
    }
}
