//! The model of a role and the variable that pins it (01 §4.4): whichever of the two was written, both
//! say the same afterwards.

use super::decode::{Cx, Field, Path};
use super::merge::{conflict, find};
use super::role_env::Env;
use super::role_keys::{RoleKeys, Said, Written, is_model_name, model_names};
use super::tree::At;
use crate::diagnostic::{Code, Diagnostic};
use crate::id::HarnessId;
use crate::redact::Redacted;

/// What came out.
pub(super) struct Models {
    pub(super) model: Option<String>,
    pub(super) chain: Vec<String>,
    /// The environment with the pin in it, or without.
    pub(super) env: Env,
}

/// Model, chain and environment. `model` and `model_chain` of the defaults count only where the
/// effective harness is that of the defaults; their `env` always does.
pub(super) fn resolve(
    keys: &mut RoleKeys<'_>,
    base: &RoleKeys<'_>,
    harness: &HarnessId,
    same: bool,
    field: &Field<'_, '_>,
    cx: &mut Cx<'_>,
) -> Models {
    let variable = cx.options.harnesses.get(harness.as_str()).and_then(|it| it.model_variable());
    let own_env = std::mem::take(&mut keys.env);
    let inherited = base.model.as_ref().filter(|_| same).cloned();
    let model = match variable {
        None => keys.model.clone().or(inherited).and_then(Said::value),
        Some(variable) => {
            passed_pin(keys, variable, field, cx);
            let own_pin = own_env.get(variable);
            let own = own(keys, own_pin, variable, field, cx);
            let chosen = own.or(inherited).or_else(|| {
                let pin = base.env.get(variable)?;
                pinned(pin, variable, field, cx).map(Said::Value)
            });
            chosen.and_then(Said::value)
        }
    };
    let chain = keys.model_chain.as_ref().or_else(|| base.model_chain.as_ref().filter(|_| same));
    if let (Some(model), Some(chain)) = (&model, chain)
        && chain.value.first().is_some_and(|first| first != model)
    {
        conflict(field, "model_chain", chain.at, "must begin with `model`", cx);
    }
    let mut env = environment(own_env, &base.env);
    if let Some(variable) = variable {
        pin(&mut env, variable, model.as_deref(), field.at);
    }
    Models { model, chain: chain.map(|it| it.value.clone()).unwrap_or_default(), env }
}

/// What the role itself says: its `model`, or the pin in its own `env`.
fn own(
    keys: &RoleKeys<'_>,
    own_pin: Option<&Written<Redacted<String>>>,
    variable: &str,
    field: &Field<'_, '_>,
    cx: &mut Cx<'_>,
) -> Option<Said<String>> {
    let Some(pin) = own_pin else { return keys.model.clone() };
    let value = pinned(pin, variable, field, cx)?;
    let differs = match &keys.model {
        None => return Some(Said::Value(value)),
        Some(Said::Nothing) => true,
        Some(Said::Value(model)) => *model != value,
    };
    if differs {
        let env = Path::Key(&field.path, "env");
        let here = Field { path: Path::Key(&env, variable), ..*field };
        let message = format!("`model` and `env.{variable}` of this role name different models");
        let mut found = here
            .dress(cx, Diagnostic::error(Code::Conflict, message))
            .at(cx.place(pin.at))
            .hint("write `model` alone");
        if let Some(model) = find(field.node, "model") {
            found = found.other(cx.place(model.at));
        }
        cx.sink.push(found);
    }
    keys.model.clone()
}

/// The model that a pin names. The value is never shown.
fn pinned(
    pin: &Written<Redacted<String>>,
    variable: &str,
    field: &Field<'_, '_>,
    cx: &mut Cx<'_>,
) -> Option<String> {
    let text = pin.value.expose().trim();
    if is_model_name(text) {
        return Some(text.to_owned());
    }
    let env = Path::Key(&field.path, "env");
    let here = Field { path: Path::Key(&env, variable), ..*field };
    let found = here
        .dress(cx, Diagnostic::error(Code::InvalidValue, "is not the name of a model"))
        .at(cx.place(pin.at))
        .allowed([model_names()])
        .hint("write `model`, or `model: null` for none");
    cx.sink.push(found);
    None
}

/// A pin passed on from fleet's own environment would be a model that no file names.
fn passed_pin(keys: &RoleKeys<'_>, variable: &str, field: &Field<'_, '_>, cx: &mut Cx<'_>) {
    if let Some(passed) = keys.env_pass.iter().find(|it| it.value == variable) {
        let message = format!("`{variable}` is the model of the role: write `model`");
        conflict(field, "env_pass", passed.at, &message, cx);
    }
}

/// Role over defaults, name by name.
fn environment(own: Env, base: &Env) -> Env {
    if base.is_empty() {
        return own;
    }
    let mut env = base.clone();
    env.extend(own);
    env
}

/// Makes the environment say what `model` says.
fn pin(env: &mut Env, variable: &str, model: Option<&str>, at: At) {
    match (model, env.get_mut(variable)) {
        (Some(model), Some(written)) => written.value = Redacted::new(model.to_owned()),
        (Some(model), None) => {
            let value = Redacted::new(model.to_owned());
            env.insert(variable.to_owned(), Written { value, at });
        }
        (None, _) => {
            env.shift_remove(variable);
        }
    }
}
