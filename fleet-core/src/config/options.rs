//! `harness_options`: united with those of the defaults, turned into JSON form, and judged by the
//! harness itself (01 §4). No option value is ever shown.

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::{Map, Number, Value as Json};

use super::decode::{Cx, Field, Path, elsewhere};
use super::scalar::Core;
use super::tree::{Entry, Node, Value};
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::harness::{OptionProblem, Options};
use crate::id::HarnessId;

const KEY: &str = "harness_options";

/// The options in force, each from the role or, where `true`, from the defaults.
pub(super) struct Effective<'n>(IndexMap<&'n str, (&'n Entry, bool)>);

impl<'n> Effective<'n> {
    /// Role keys replace keys of the defaults whole.
    pub(super) fn new(own: &'n [Entry], defaults: &'n [Entry]) -> Self {
        let defaults = defaults.iter().map(|entry| (&*entry.key, (entry, true)));
        Self(defaults.chain(own.iter().map(|entry| (&*entry.key, (entry, false)))).collect())
    }

    /// Reports, once, options of `harness: command` where nobody wrote a harness; tells whether it did.
    pub(super) fn lacks_command(
        &self,
        harness: &HarnessId,
        role: &Field<'n, '_>,
        defaults: Option<&'n Node>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let Some((_, inherited)) = self.0.get("argv") else { return false };
        let top = Path::Top;
        let (node, parent) = match defaults.filter(|_| *inherited) {
            Some(node) => (node, Path::Key(&top, "defaults")),
            None => (role.node, role.path),
        };
        let Some(block) = node.get(KEY) else { return false };
        let field = Field { node: &block.value, at: block.at, path: Path::Key(&parent, KEY) };
        let message = "`argv` belongs to `harness: command`, which is not written";
        let place = cx.place(block.at);
        field.report(cx, Code::MissingKey, message, |it| {
            it.at(place).hint(format!(
                "write `harness: command` beside it; without it the harness is `{harness}`"
            ))
        });
        true
    }

    /// Checks the options and gives them in JSON form.
    pub(super) fn check(
        &self,
        harness: &HarnessId,
        role: &Field<'n, '_>,
        cx: &mut Cx<'_>,
    ) -> Options {
        let (options, unfit) = self.in_json();
        // A harness that is not registered is reported elsewhere.
        let registered = cx.options.harnesses.get(harness.as_str());
        let mut problems = registered.map(|it| it.validate_options(&options)).unwrap_or_default();
        let judged: HashSet<String> =
            problems.iter().map(|found| first_key(&found.path).to_owned()).collect();
        for key in unfit {
            if !judged.contains(key) {
                problems.push(problem(key, "holds a number that is not finite, or an empty value"));
            }
        }
        for problem in &problems {
            self.report(role, problem, cx);
        }
        options
    }

    /// Checks options of the defaults that no role has. Where the defaults name no harness, what is an
    /// option of any of `harnesses` is let be.
    pub(super) fn check_unused(
        &self,
        harnesses: &[&str],
        defaults: &Field<'n, '_>,
        cx: &mut Cx<'_>,
    ) {
        let (options, _) = self.in_json();
        let registered = harnesses.iter().filter_map(|id| cx.options.harnesses.get(id));
        let judged: Vec<Vec<OptionProblem>> =
            registered.map(|harness| harness.validate_options(&options)).collect();
        let Some((first, others)) = judged.split_first() else { return };
        for problem in first {
            let unknown = |them: &Vec<OptionProblem>| {
                them.iter().any(|it| it.unknown_key && it.path == problem.path)
            };
            // What is missing, a role would write.
            let written = self.0.contains_key(first_key(&problem.path));
            let sure = others.is_empty() || (problem.unknown_key && others.iter().all(unknown));
            if written && sure {
                self.report(defaults, problem, cx);
            }
        }
    }

    /// The options in JSON form, and those that have none.
    fn in_json(&self) -> (Options, Vec<&'n str>) {
        let mut options = Map::new();
        let mut unfit = Vec::new();
        for (entry, _) in self.0.values() {
            let value = json(&entry.value);
            if value.is_none() {
                unfit.push(&*entry.key);
            }
            // The key is handed on in any case: it may not exist at all.
            options.insert(entry.key.to_string(), value.unwrap_or_default());
        }
        (options, unfit)
    }

    fn report(&self, role: &Field<'n, '_>, found: &OptionProblem, cx: &mut Cx<'_>) {
        if cx.sink.is_full() {
            cx.sink.leave_out_error();
            return;
        }
        let key = first_key(&found.path);
        let entry = self.0.get(key).copied();
        let defaults = Path::Key(&Path::Top, "defaults");
        let (node, at, parent) = match entry {
            Some((entry, inherited)) => {
                let node = below(&entry.value, &found.path[key.len()..]);
                let at =
                    if std::ptr::eq(node, &raw const entry.value) { entry.at } else { node.at };
                (node, at, if inherited { defaults } else { role.path })
            }
            None => match role.node.get(KEY) {
                Some(block) => (&block.value, block.at, role.path),
                None => (role.node, role.at, role.path),
            },
        };
        let code = match (found.unknown_key, entry) {
            (true, _) => Code::UnknownKey,
            (false, Some(_)) => Code::InvalidValue,
            (false, None) => Code::MissingKey,
        };
        let field = Field { node, at, path: Path::Key(&parent, KEY) };
        let mut diagnostic = field.dress(
            cx,
            Diagnostic::error(code, found.message.clone()).allowed(found.allowed.iter().cloned()),
        );
        diagnostic.place = Some(cx.place(at));
        diagnostic.path = format!("{}.{}", diagnostic.path, found.path);
        if found.unknown_key {
            diagnostic.hint = match nearest(&found.path, found.allowed.iter().map(String::as_str)) {
                Some(near) => Some(format!("did you mean `{near}`?")),
                None => elsewhere(&found.path),
            };
        }
        cx.sink.push(diagnostic);
    }
}

fn first_key(path: &str) -> &str {
    &path[..path.find(['.', '[']).unwrap_or(path.len())]
}

fn problem(path: &str, message: &str) -> OptionProblem {
    OptionProblem {
        path: path.to_owned(),
        message: message.to_owned(),
        allowed: Vec::new(),
        unknown_key: false,
    }
}

/// The node at a path such as `.a[1]`, or the nearest one around it.
fn below<'n>(node: &'n Node, path: &str) -> &'n Node {
    let mut node = node;
    for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
        let next = match (&node.value, part.strip_suffix(']')) {
            (Value::List(items), Some(index)) => {
                index.parse::<usize>().ok().and_then(|index| items.get(index))
            }
            (Value::Map(_), _) => node.get(part).map(|entry| &entry.value),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node
}

/// JSON form; `None` for what JSON cannot hold and for a `null`.
fn json(node: &Node) -> Option<Json> {
    Some(match &node.value {
        Value::Bad => Json::Null,
        Value::List(items) => Json::Array(items.iter().map(json).collect::<Option<_>>()?),
        Value::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|entry| Some((entry.key.to_string(), json(&entry.value)?)))
                .collect::<Option<_>>()?,
        ),
        Value::Scalar(scalar) => match scalar.core() {
            Core::Null => return None,
            Core::Bool(value) => Json::Bool(value),
            Core::Int(value) => Json::Number(value.into()),
            Core::Float(value) => Json::Number(Number::from_f64(value)?),
            Core::Text(text) => Json::String(text.to_owned()),
        },
    })
}
