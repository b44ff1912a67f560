//! Variables (01 §1.5): `${NAME}` in string values, in one pass over the tree before anything is
//! decoded. Keys are never touched; `$${X}` stands for a literal `${X}`.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::decode::{Cx, Field, Path};
use super::scalar::Scalar;
use super::tree::{MAX_REPEATED_BYTES, Node, Value};
use crate::diagnostic::{Code, Diagnostic, nearest};

/// The variables of a fleet: text to insert, escapes undone, with the places of literal `${`.
#[derive(Debug, Default)]
pub(super) struct Vars {
    values: BTreeMap<String, Expanded>,
    /// Bytes put in so far.
    repeated: Cell<usize>,
}

/// A text with variables replaced.
#[derive(Debug, Default, PartialEq)]
struct Expanded {
    text: String,
    /// Where escaped, hence literal, `${` stand.
    literal: Vec<usize>,
    /// The first variable put in.
    variable: Option<String>,
}

impl Vars {
    /// Reads the `vars:` block of the base file.
    pub(super) fn read(base: &Node, cx: &mut Cx<'_>) -> Self {
        let mut vars = Self::default();
        let Some(entry) = base.get("vars") else { return vars };
        let top = Field { node: base, at: base.at, path: Path::Top };
        let block = top.child(entry);
        for entry in block.entries(cx).unwrap_or_default() {
            let field = block.child(entry);
            if !is_name(&entry.key) {
                field.report(cx, Code::InvalidValue, "is not a name for a variable", |it| {
                    it.allowed(["letters, digits and `_`"])
                });
                continue;
            }
            match &field.node.value {
                Value::Scalar(scalar) if !field.node.is_null() => {
                    let mut value = expand(&scalar.text, |_| None);
                    value.variable = None;
                    vars.values.insert(entry.key.to_string(), value);
                }
                _ => field.wrong_type(cx, "a text, number or boolean"),
            }
        }
        vars
    }

    fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.values.keys().map(String::as_str)
    }

    /// Puts variables into every string value of a file. A variable that is left over is an error,
    /// in free text a warning.
    pub(super) fn substitute(&self, root: &mut Node, cx: &mut Cx<'_>) {
        let Value::Map(entries) = &mut root.value else { return };
        for entry in Rc::make_mut(entries).iter_mut().filter(|entry| &*entry.key != "vars") {
            if &*entry.key == "roles"
                && let Value::Map(roles) = &mut entry.value.value
            {
                for role in Rc::make_mut(roles) {
                    let path = Path::Role(&role.key);
                    self.walk(&mut role.value, &path, Prose::Role, cx);
                }
                continue;
            }
            let prose = if &*entry.key == "loops" { Prose::Loops } else { Prose::Nowhere };
            let path = Path::Key(&Path::Top, &entry.key);
            self.walk(&mut entry.value, &path, prose, cx);
        }
    }

    fn walk(&self, node: &mut Node, path: &Path<'_>, prose: Prose, cx: &mut Cx<'_>) {
        match &mut node.value {
            Value::Bad => {}
            Value::Scalar(_) => self.scalar(node, *path, prose == Prose::Here, cx),
            Value::List(items) => {
                for (index, item) in Rc::make_mut(items).iter_mut().enumerate() {
                    self.walk(item, &Path::Index(path, index), Prose::Nowhere, cx);
                }
            }
            Value::Map(entries) => {
                for entry in Rc::make_mut(entries) {
                    let below = prose.below(&entry.key);
                    self.walk(&mut entry.value, &Path::Key(path, &entry.key), below, cx);
                }
            }
        }
    }

    fn scalar(&self, node: &mut Node, path: Path<'_>, prose: bool, cx: &mut Cx<'_>) {
        let Value::Scalar(scalar) = &node.value else { return };
        if !scalar.text.contains("${") {
            return;
        }
        let lookup = |name: &str| {
            let value = self.values.get(name)?;
            self.repeated.set(self.repeated.get().saturating_add(value.text.len()));
            (self.repeated.get() <= MAX_REPEATED_BYTES).then_some(value)
        };
        let expanded = expand(&scalar.text, lookup);
        let field = Field { node, at: node.at, path };
        if self.repeated.get() > MAX_REPEATED_BYTES {
            field.report(cx, Code::Limit, "variables put in more than 16 MiB of text", |it| it);
            node.value = Value::Bad;
            return;
        }
        let left = leftovers(&expanded);
        for name in &left {
            if prose {
                self.left_over(name, field, cx, Diagnostic::warning);
            } else {
                self.left_over(name, field, cx, Diagnostic::error);
            }
        }
        if !left.is_empty() && !prose {
            node.value = Value::Bad;
            return;
        }
        let replaced = Scalar::substituted(expanded.text, expanded.variable.as_deref());
        node.value = Value::Scalar(replaced);
    }
}

impl Vars {
    /// Reports a `${NAME}` that is still there.
    fn left_over(
        &self,
        name: &str,
        field: Field<'_, '_>,
        cx: &mut Cx<'_>,
        severity: fn(Code, String) -> Diagnostic,
    ) {
        let known = self.values.contains_key(name);
        let message = if known {
            format!("`${{{name}}}` stands inside a variable, where it is not replaced")
        } else {
            format!("unknown variable `${{{name}}}`")
        };
        let mut found = field.dress(cx, severity(Code::UnknownVariable, message));
        if !cx.sink.is_crowded() {
            found = found.allowed(self.names().take(50));
            found.hint = Some(match nearest(name, self.names()) {
                Some(near) if !known => format!("did you mean `${{{near}}}`?"),
                _ => format!("for the literal text write `$${{{name}}}`"),
            });
        }
        cx.sink.push(found);
    }
}

/// Where free text stands, in which shell syntax is legitimate.
#[derive(Clone, Copy, PartialEq)]
enum Prose {
    Nowhere,
    /// The map is a role.
    Role,
    /// The map is `loops`.
    Loops,
    /// The map is a loop.
    Loop,
    /// This value is free text.
    Here,
}

impl Prose {
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Role, "mission" | "persona" | "bio") | (Self::Loop, "prompt") => Self::Here,
            (Self::Loops, _) => Self::Loop,
            _ => Self::Nowhere,
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The name of a `${NAME}` at the start of `text`, which begins with `${`.
fn reference(text: &str) -> Option<&str> {
    let rest = text.get(2..)?;
    // Only the characters of a name are looked at, so that many `${` without end stay cheap.
    let end = rest.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || byte == b'_'))?;
    (end > 0 && rest.as_bytes()[end] == b'}').then(|| &rest[..end])
}

/// Replaces variables once; what is put in is not looked at again.
fn expand<'v>(text: &str, lookup: impl Fn(&str) -> Option<&'v Expanded>) -> Expanded {
    let mut out = Expanded::default();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(name) = reference(&rest[start..]) else {
            out.text.push_str(&rest[..start + 2]);
            rest = &rest[start + 2..];
            continue;
        };
        let after = &rest[start + name.len() + 3..];
        if rest[..start].ends_with('$') {
            out.text.push_str(&rest[..start - 1]);
            out.literal.push(out.text.len());
            out.text.push_str(&rest[start..start + name.len() + 3]);
        } else {
            out.text.push_str(&rest[..start]);
            if let Some(value) = lookup(name) {
                let offset = out.text.len();
                out.literal.extend(value.literal.iter().map(|position| offset + position));
                out.text.push_str(&value.text);
                out.variable.get_or_insert_with(|| name.to_owned());
            } else {
                out.text.push_str(&rest[start..start + name.len() + 3]);
            }
        }
        rest = after;
    }
    out.text.push_str(rest);
    out
}

/// Names of the unescaped `${NAME}` in a text that was expanded.
fn leftovers(expanded: &Expanded) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (position, _) in expanded.text.match_indices("${") {
        if expanded.literal.binary_search(&position).is_err()
            && let Some(name) = reference(&expanded.text[position..])
        {
            names.insert(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str, left: &[&str]) {
        let vars = BTreeMap::from([
            ("a", expand("/x", |_| None)),
            ("b", expand("${a}", |_| None)),
            ("c", expand("$${a}", |_| None)),
            ("d", expand("$", |_| None)),
        ]);
        let expanded = expand(text, |name| vars.get(name));
        assert_eq!(expanded.text, expected, "{text}");
        assert!(leftovers(&expanded).iter().eq(left.iter()), "{text}");
    }

    #[test]
    fn one_pass_with_escapes() {
        check("${a}/z", "/x/z", &[]);
        check("${a}${a}", "/x/x", &[]);
        check("$${a}", "${a}", &[]);
        check("$$${a}", "$${a}", &[]);
        check("${nope}", "${nope}", &["nope"]);
        check("${b}", "${a}", &["a"]);
        check("${c}", "${a}", &[]);
        check("${d}{a}", "${a}", &["a"]);
        check("${}", "${}", &[]);
        check("${a-b} ${", "${a-b} ${", &[]);
        check("${${a}}", "${/x}", &[]);
        check("日${a}本", "日/x本", &[]);
    }
}
