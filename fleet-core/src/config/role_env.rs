//! `env` and `env_pass` (01 §1.9). Values are never shown.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::decode::{Cx, Field, Path};
use super::role_keys::Written;
use crate::diagnostic::Code;
use crate::redact::Redacted;

/// Set by fleet; nobody else may. `IS_SANDBOX` lifts a guard of Claude, so that it must be true.
const RESERVED: &[&str] = &["IS_SANDBOX", "OURS_AUTOSTART", "OURS_BIND_IDENTITY"];
const RESERVED_PREFIX: &str = "OURS_FLEET_";

/// Variables that make a program run other code: they would act on the wrapper outside the sandbox.
const HIJACK: &[&str] = &["BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PROMPT_COMMAND"];
/// The dynamic loader's own. The launcher refuses the same.
const HIJACK_PREFIXES: &[&str] = &["LD_", "DYLD_"];

const GRAMMAR: &str = "letters, digits and `_`, the first not a digit";

/// `env` of one layer.
pub(super) type Env = IndexMap<String, Written<Redacted<String>>>;

/// `env_pass` of one layer.
pub(super) type EnvPass = Vec<Written<String>>;

/// Whether a variable is refused where something wraps the agent.
pub(super) fn is_hijack(name: &str) -> bool {
    HIJACK.contains(&name) || HIJACK_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a name is kept by fleet, so that no role may set it (01 §1.9).
pub fn is_reserved_variable(name: &str) -> bool {
    RESERVED.contains(&name) || name.starts_with(RESERVED_PREFIX)
}

pub(super) fn env(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Env> {
    let mut env = IndexMap::new();
    for entry in field.entries(cx)? {
        let child = field.child(entry);
        if let Some((name, _)) = entry.key.split_once('=') {
            // `NAME=value` as the key is a likely slip: the value must not be shown.
            let shown = Field { path: Path::Key(&field.path, name), ..child };
            name_fits(&entry.key, &shown, cx);
            continue;
        }
        if !name_fits(&entry.key, &child, cx) {
            continue;
        }
        let Some(value) = child.text(cx) else { continue };
        if value.contains('\0') {
            child.report(cx, Code::InvalidValue, "holds a NUL character", |it| it);
            continue;
        }
        let value = Redacted::new(value.to_owned());
        env.insert(entry.key.to_string(), Written { value, at: entry.at });
    }
    Some(env)
}

pub(super) fn env_pass(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<EnvPass> {
    let mut seen = HashSet::new();
    let mut names: EnvPass = Vec::new();
    for (index, node) in field.items(cx)?.iter().enumerate() {
        let item = field.item(index, node);
        let Some(name) = item.text(cx) else { continue };
        if name_fits(name, &item, cx) && seen.insert(name) {
            names.push(Written { value: name.to_owned(), at: item.at });
        }
    }
    Some(names)
}

fn name_fits(name: &str, field: &Field<'_, '_>, cx: &mut Cx<'_>) -> bool {
    let grammar = !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let reserved = is_reserved_variable(name);
    if !grammar {
        field.report(cx, Code::InvalidValue, "is not the name of a variable", |it| {
            it.allowed([GRAMMAR])
        });
    } else if reserved {
        field.report(cx, Code::InvalidValue, format!("`{name}` is set by ours-fleet"), |it| {
            it.hint("choose another name")
        });
    }
    grammar && !reserved
}
