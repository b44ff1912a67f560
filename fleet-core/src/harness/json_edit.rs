//! Changes of a JSON file that its program writes too: what is not named stays as it is.

use serde_json::{Map, Value};

use super::{JsonChange, JsonEdit};

/// Why a file is left as it is. Names members, never values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonEditError {
    /// It is no JSON, or no object.
    #[error("it holds no JSON object")]
    NotAnObject,
    /// A member that must be an object or a list is something else.
    #[error("its member `{member}` is not {expected}")]
    WrongType {
        /// The member, dotted.
        member: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A change that names no member.
    #[error("a change names no member")]
    NoMember,
}

/// The new content of a file, or `None` if it already is as it should be. A missing file counts as an
/// empty object.
///
/// # Errors
/// The file must then be left as it is: it cannot be told what its program would make of a repair.
pub fn edited(
    current: Option<&[u8]>,
    edits: &[JsonEdit],
) -> Result<Option<Vec<u8>>, JsonEditError> {
    let before: Option<Value> = match current {
        None => None,
        Some(bytes) => Some(serde_json::from_slice(bytes).map_err(|_| JsonEditError::NotAnObject)?),
    };
    let mut after = match &before {
        None => Map::new(),
        Some(Value::Object(members)) => members.clone(),
        Some(_) => return Err(JsonEditError::NotAnObject),
    };
    for edit in edits {
        apply(&mut after, edit)?;
    }
    let after = Value::Object(after);
    if before.as_ref() == Some(&after) {
        return Ok(None);
    }
    // A value in memory always serialises.
    let mut text = serde_json::to_vec_pretty(&after).map_err(|_| JsonEditError::NotAnObject)?;
    text.push(b'\n');
    Ok(Some(text))
}

fn apply(root: &mut Map<String, Value>, edit: &JsonEdit) -> Result<(), JsonEditError> {
    let (key, above) = edit.path.split_last().ok_or(JsonEditError::NoMember)?;
    let mut here = root;
    for (depth, name) in above.iter().enumerate() {
        let member = here.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(members) = member else {
            let member = edit.path[..=depth].join(".");
            return Err(JsonEditError::WrongType { member, expected: "an object" });
        };
        here = members;
    }
    match &edit.change {
        JsonChange::Set(value) => {
            here.insert(key.clone(), value.expose().clone());
        }
        JsonChange::AtLeast(least) => {
            let enough =
                here.get(key).and_then(Value::as_f64).is_some_and(|it| it >= as_f64(*least));
            if !enough {
                here.insert(key.clone(), Value::from(*least));
            }
        }
        JsonChange::Include(text) => {
            let list = here.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(list) = list else {
                let member = edit.path.join(".");
                return Err(JsonEditError::WrongType { member, expected: "a list" });
            };
            if !list.iter().any(|entry| entry.as_str() == Some(text.expose())) {
                list.push(Value::from(text.expose().clone()));
            }
        }
    }
    Ok(())
}

/// Counters are small: nothing is lost below 2^32, and above it the comparison is close enough.
fn as_f64(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}
