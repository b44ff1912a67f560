//! Reading values off the tree: a field knows its path and place, reports what is wrong with it, and
//! reading goes on. Nothing here knows what a fleet is.

use std::fmt;

use super::keys::{Key, Kind, names};
use super::load::LoadOptions;
use super::scalar::Core;
use super::tree::{At, Entry, Node, Value};
use crate::diagnostic::{Code, Diagnostic, Place, Sink, nearest};
use crate::redact::is_secret_key;

/// What reading needs: files, options, and where problems go.
pub(super) struct Cx<'a> {
    pub(super) files: &'a [String],
    pub(super) options: &'a LoadOptions<'a>,
    pub(super) sink: Sink,
}

impl Cx<'_> {
    pub(super) fn place(&self, at: At) -> Place {
        let file = self.files.get(at.file as usize).cloned().unwrap_or_default();
        Place { file, line: at.line, column: at.column }
    }
}

/// Where a value stands, as a chain on the stack; becomes text only in a message.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Top,
    Role(&'p str),
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl<'p> Path<'p> {
    /// The role that the path is below.
    fn role(&self) -> Option<&'p str> {
        match self {
            Self::Top => None,
            Self::Role(name) => Some(name),
            Self::Key(parent, _) | Self::Index(parent, _) => parent.role(),
        }
    }

    /// Whether values there must never be shown.
    fn is_secret(&self) -> bool {
        match self {
            Self::Top | Self::Role(_) => false,
            Self::Key(parent, key) => {
                matches!(*key, "env" | "secrets" | "harness_options" | "vars" | "headers")
                    || key.ends_with("_url")
                    || (is_secret_key(key) && *key != "max_tokens")
                    || parent.is_secret()
            }
            Self::Index(parent, _) => parent.is_secret(),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top | Self::Role(_) => Ok(()),
            Self::Key(parent, key) => {
                if !matches!(parent, Path::Top | Path::Role(_)) {
                    write!(f, "{parent}.")?;
                }
                // A key of a hostile file may be as long as the file.
                match key.char_indices().nth(100) {
                    Some((end, _)) => write!(f, "{}…", &key[..end]),
                    None => f.write_str(key),
                }
            }
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A value with its key.
#[derive(Clone, Copy)]
pub(super) struct Field<'n, 'p> {
    pub(super) node: &'n Node,
    /// Where the key, or the list item, starts.
    pub(super) at: At,
    pub(super) path: Path<'p>,
}

/// A mapping whose keys are known.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'n, 'p> {
    pub(super) field: Field<'n, 'p>,
    entries: &'n [Entry],
    table: &'static [Key],
}

impl<'n> Cursor<'n, '_> {
    /// The value of a key, if it is written and belongs here.
    pub(super) fn opt<'q>(&'q self, key: &str) -> Option<Field<'n, 'q>> {
        if self.entries.is_empty() || names(self.table).all(|name| name != key) {
            return None;
        }
        let entry = self.entries.iter().find(|entry| &*entry.key == key)?;
        Some(self.field.child(entry))
    }

    /// The value of a key that must be there.
    pub(super) fn req<'q>(&'q self, key: &str, cx: &mut Cx<'_>) -> Option<Field<'n, 'q>> {
        let found = self.opt(key);
        if found.is_none() {
            self.field.report(cx, Code::MissingKey, format!("`{key}` is missing"), |it| it);
        }
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every written key.
    pub(super) fn written(&self) -> impl Iterator<Item = &'n str> {
        self.entries.iter().map(|entry| &*entry.key)
    }
}

impl<'n, 'p> Field<'n, 'p> {
    /// The field of an entry below this one.
    pub(super) fn child<'q>(&'q self, entry: &'n Entry) -> Field<'n, 'q> {
        Field { node: &entry.value, at: entry.at, path: Path::Key(&self.path, &entry.key) }
    }

    /// The field of an item of this list.
    pub(super) fn item<'q>(&'q self, index: usize, node: &'n Node) -> Field<'n, 'q> {
        Field { node, at: node.at, path: Path::Index(&self.path, index) }
    }

    /// Reports a problem with this value. `more` adds what is allowed or a hint.
    pub(super) fn report(
        &self,
        cx: &mut Cx<'_>,
        code: Code,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        if cx.sink.is_full() {
            cx.sink.leave_out_error();
            return;
        }
        let diagnostic = more(self.dress(cx, Diagnostic::error(code, message)));
        cx.sink.push(diagnostic);
    }

    /// As [`Field::report`], and says what was found.
    pub(super) fn reject(
        &self,
        cx: &mut Cx<'_>,
        code: Code,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let variable = match &self.node.value {
            Value::Scalar(scalar) => scalar.variable.as_deref(),
            _ => None,
        };
        self.report(cx, code, message, |mut diagnostic| {
            diagnostic = self.found(diagnostic);
            if let Some(variable) = variable {
                diagnostic = diagnostic.hint(format!("the value comes from `${{{variable}}}`"));
            }
            more(diagnostic)
        });
    }

    /// A warning about this value.
    pub(super) fn warn(&self, cx: &mut Cx<'_>, code: Code, message: &str, hint: &str) {
        let diagnostic = self.dress(cx, Diagnostic::warning(code, message)).hint(hint);
        cx.sink.push(diagnostic);
    }

    /// Puts place, role and path on a diagnostic.
    pub(super) fn dress(&self, cx: &Cx<'_>, diagnostic: Diagnostic) -> Diagnostic {
        let nothing = matches!(&self.node.value, Value::Scalar(scalar) if scalar.nothing);
        let at = if nothing { self.at } else { self.node.at };
        self.dress_at(cx, at, diagnostic)
    }

    fn dress_at(&self, cx: &Cx<'_>, at: At, diagnostic: Diagnostic) -> Diagnostic {
        let mut diagnostic = diagnostic.at(cx.place(at)).path(self.path.to_string());
        if let Some(role) = self.path.role() {
            diagnostic = diagnostic.role(role);
        }
        diagnostic
    }

    /// Adds what was found, unless it may be a secret.
    fn found(&self, diagnostic: Diagnostic) -> Diagnostic {
        match &self.node.value {
            Value::Bad => diagnostic,
            Value::List(_) => diagnostic.found_kind("a list"),
            Value::Map(_) => diagnostic.found_kind("a mapping"),
            Value::Scalar(scalar) => {
                let secret =
                    self.path.is_secret() || scalar.variable.as_deref().is_some_and(is_secret_key);
                let shown = || scalar.text.chars().take(80).collect::<String>();
                if secret { diagnostic } else { diagnostic.found(&shown()) }
            }
        }
    }

    /// Reports a value of another type, unless that was done already.
    pub(super) fn wrong_type(&self, cx: &mut Cx<'_>, expected: &str) {
        match &self.node.value {
            Value::Bad => {}
            _ if self.node.is_null() => {
                let message = format!("is empty, {expected} is expected");
                let tilde =
                    matches!(&self.node.value, Value::Scalar(scalar) if &*scalar.text == "~");
                self.report(cx, Code::WrongType, message, |it| {
                    it.hint(if tilde {
                        "`~` alone is YAML for nothing: write `~/`, or quote it"
                    } else {
                        "write a value or leave the key out"
                    })
                });
            }
            _ => self.reject(cx, Code::WrongType, format!("must be {expected}"), |it| it),
        }
    }

    pub(super) fn core(&self) -> Option<Core<'n>> {
        match &self.node.value {
            Value::Scalar(scalar) => Some(scalar.core()),
            _ => None,
        }
    }

    /// The text of this value.
    pub(super) fn text(&self, cx: &mut Cx<'_>) -> Option<&'n str> {
        match self.core() {
            Some(Core::Text(text)) => return Some(text),
            Some(Core::Bool(_) | Core::Int(_) | Core::Float(_)) => {
                self.reject(cx, Code::WrongType, "must be a text", |it| {
                    it.hint("put it in quotes")
                });
            }
            Some(Core::Null) | None => self.wrong_type(cx, "a text"),
        }
        None
    }

    pub(super) fn boolean(&self, cx: &mut Cx<'_>) -> Option<bool> {
        match self.core() {
            Some(Core::Bool(value)) => return Some(value),
            _ => self.wrong_type(cx, "true or false"),
        }
        None
    }

    /// A whole number in a range.
    pub(super) fn integer(
        &self,
        cx: &mut Cx<'_>,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let Some(Core::Int(value)) = self.core() else {
            let too_large = matches!(self.core(), Some(Core::Float(value)) if value.fract() == 0.0);
            if too_large {
                self.out_of_range(cx, &range);
            } else {
                self.wrong_type(cx, "a whole number");
            }
            return None;
        };
        let value = u64::try_from(value).ok().filter(|value| range.contains(value));
        if value.is_none() {
            self.out_of_range(cx, &range);
        }
        value
    }

    fn out_of_range(&self, cx: &mut Cx<'_>, range: &std::ops::RangeInclusive<u64>) {
        let allowed = if *range.end() >= LARGEST {
            format!("{} or more", range.start())
        } else {
            format!("{} to {}", range.start(), range.end())
        };
        self.reject(cx, Code::OutOfRange, "is out of range", |it| it.allowed([allowed]));
    }

    /// A finite number of milliseconds, at least 0, rounded.
    pub(super) fn millis(&self, cx: &mut Cx<'_>) -> Option<u64> {
        let value = match self.core() {
            #[expect(clippy::cast_precision_loss, reason = "the range check below bounds it")]
            Some(Core::Int(value)) => value as f64,
            Some(Core::Float(value)) => value,
            _ => {
                self.wrong_type(cx, "a number of milliseconds");
                return None;
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact")]
        let fits = (0.0..=LARGEST as f64).contains(&value);
        if !fits {
            self.reject(cx, Code::OutOfRange, "is out of range", |it| {
                it.allowed(["a finite number, 0 or more"])
            });
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be between 0 and 2^53 - 1"
        )]
        Some(value.round() as u64)
    }

    /// A percentage from 1 to 100, rounded.
    pub(super) fn percent(&self, cx: &mut Cx<'_>) -> Option<u32> {
        let value = match self.core() {
            #[expect(clippy::cast_precision_loss, reason = "the range check below bounds it")]
            Some(Core::Int(value)) => value as f64,
            Some(Core::Float(value)) => value,
            _ => {
                self.wrong_type(cx, "a number");
                return None;
            }
        };
        if !(1.0..=100.0).contains(&value) {
            self.reject(cx, Code::OutOfRange, "is out of range", |it| it.allowed(["1 to 100"]));
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be between 1 and 100"
        )]
        Some(value.round() as u32)
    }

    /// One of several words.
    pub(super) fn word<T>(
        &self,
        cx: &mut Cx<'_>,
        words: &[&'static str],
        from_word: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let Some(Core::Text(text)) = self.core() else {
            if let Value::Bad = self.node.value {
                return None;
            }
            let expected = format!("one of {}", words.join(", "));
            match self.only_word_inside(words) {
                Some(instead) => {
                    self.reject(cx, Code::WrongType, format!("must be {expected}"), |it| {
                        it.hint(format!("write `{instead}`"))
                    });
                }
                None => self.wrong_type(cx, &expected),
            }
            return None;
        };
        let value = from_word(text);
        if value.is_none() {
            self.reject(cx, Code::InvalidValue, "is not a known value", |mut it| {
                it = it.allowed(words.iter().copied());
                match nearest(text, words.iter().copied()) {
                    Some(word) => it.hint(format!("did you mean `{word}`?")),
                    None => it,
                }
            });
        }
        value
    }

    /// `KEY: WORD`, where a mapping or a list holds one value and that is one of these words.
    fn only_word_inside(&self, words: &[&'static str]) -> Option<String> {
        let Path::Key(_, key) = self.path else { return None };
        let inner = match &self.node.value {
            Value::Map(entries) if entries.len() == 1 => &entries[0].value,
            Value::List(items) if items.len() == 1 => &items[0],
            _ => return None,
        };
        let Value::Scalar(scalar) = &inner.value else { return None };
        let Core::Text(text) = scalar.core() else { return None };
        words.iter().find(|word| **word == text).map(|word| format!("{key}: {word}"))
    }

    /// The items of a list.
    pub(super) fn items(&self, cx: &mut Cx<'_>) -> Option<&'n [Node]> {
        if let Value::List(items) = &self.node.value {
            return Some(items);
        }
        if matches!(self.core(), Some(Core::Text(_) | Core::Int(_) | Core::Bool(_))) {
            self.reject(cx, Code::WrongType, "must be a list", |it| {
                it.hint("put it in brackets: `[…]`")
            });
        } else {
            self.wrong_type(cx, "a list");
        }
        None
    }

    pub(super) fn is_empty_list(&self) -> bool {
        matches!(&self.node.value, Value::List(items) if items.is_empty())
    }

    /// A list of texts.
    pub(super) fn texts(&self, cx: &mut Cx<'_>) -> Option<Vec<&'n str>> {
        let items = self.items(cx)?;
        let texts: Vec<&str> = items
            .iter()
            .enumerate()
            .filter_map(|(index, node)| self.item(index, node).text(cx))
            .collect();
        (texts.len() == items.len()).then_some(texts)
    }

    /// The entries of a mapping with free keys.
    pub(super) fn entries(&self, cx: &mut Cx<'_>) -> Option<&'n [Entry]> {
        match &self.node.value {
            Value::Map(entries) => return Some(entries),
            _ => self.wrong_type(cx, "a mapping"),
        }
        None
    }

    /// A mapping with known keys; any other key is reported.
    pub(super) fn cursor(&self, cx: &mut Cx<'_>, table: &'static [Key]) -> Option<Cursor<'n, 'p>> {
        let entries = self.entries(cx)?;
        for entry in entries {
            if names(table).all(|name| name != &*entry.key) {
                self.unknown_key(cx, entry, table);
            }
        }
        Some(Cursor { field: *self, entries, table })
    }

    /// Reports an entry whose key does not exist here.
    pub(super) fn unknown_key(&self, cx: &mut Cx<'_>, entry: &'n Entry, table: &'static [Key]) {
        if cx.sink.is_full() {
            cx.sink.leave_out_error();
            return;
        }
        let child = self.child(entry);
        let hint = nested(&entry.key, table)
            .map(|nested| format!("write `{nested}`"))
            .or_else(|| {
                nearest(&entry.key, names(table)).map(|key| format!("did you mean `{key}`?"))
            })
            .or_else(|| elsewhere(&entry.key));
        let mut found = Diagnostic::error(Code::UnknownKey, "unknown key").allowed(names(table));
        found.hint = hint;
        let found = child.dress_at(cx, entry.at, found);
        cx.sink.push(found);
    }

    /// Checks the shape of a value that nothing in this build reads.
    pub(super) fn shape(&self, cx: &mut Cx<'_>, kind: &'static Kind) {
        match kind {
            Kind::Any => {}
            Kind::Text => _ = self.text(cx),
            Kind::Bool => _ = self.boolean(cx),
            Kind::Number => _ = self.millis(cx),
            Kind::Integer => _ = self.integer(cx, 0..=LARGEST),
            Kind::Words(words) => {
                let known = |text: &str| words.contains(&text).then_some(());
                self.word(cx, words, known);
            }
            Kind::List(kind) => {
                for (index, node) in self.items(cx).unwrap_or_default().iter().enumerate() {
                    self.item(index, node).shape(cx, kind);
                }
            }
            Kind::Names(kind) => {
                for entry in self.entries(cx).unwrap_or_default() {
                    self.child(entry).shape(cx, kind);
                }
            }
            Kind::Block(table) => self.block_shape(cx, table, true),
            Kind::Either(kinds) => match kinds.iter().find(|kind| self.resembles(kind)) {
                Some(kind) => self.shape(cx, kind),
                None => self.wrong_type(cx, "a value of another type"),
            },
        }
    }

    /// As [`Field::shape`], for a block; `whole` demands its required keys.
    pub(super) fn block_shape(&self, cx: &mut Cx<'_>, table: &'static [Key], whole: bool) {
        let Some(cursor) = self.cursor(cx, table) else { return };
        for key in table {
            if let Some(field) = cursor.opt(key.name) {
                field.shape(cx, &key.kind);
            } else if whole && key.default == "required" {
                cursor.req(key.name, cx);
            }
        }
    }

    fn resembles(&self, kind: &Kind) -> bool {
        match (kind, &self.node.value) {
            (Kind::Any, _)
            | (Kind::List(_), Value::List(_))
            | (Kind::Names(_) | Kind::Block(_), Value::Map(_)) => true,
            (_, Value::Scalar(scalar)) => matches!(
                (kind, scalar.core()),
                (Kind::Text | Kind::Words(_), Core::Text(_))
                    | (Kind::Bool, Core::Bool(_))
                    | (Kind::Integer, Core::Int(_))
                    | (Kind::Number, Core::Int(_) | Core::Float(_))
            ),
            _ => false,
        }
    }
}

/// The largest number of the file format: 2^53 - 1, which every JSON reader holds exactly.
pub(super) const LARGEST: u64 = (1 << 53) - 1;

/// A key such as `fs.read` written as blocks, if its first part is a block here.
fn nested(key: &str, table: &'static [Key]) -> Option<String> {
    let (first, rest) = key.split_once('.').filter(|(_, rest)| rest.len() <= 100)?;
    let kind = &table.iter().find(|known| known.name == first)?.kind;
    let Kind::Block(below) = kind else { return None };
    let inner = nested(rest, below).unwrap_or_else(|| {
        let list =
            below.iter().any(|known| known.name == rest && matches!(known.kind, Kind::List(_)));
        format!("{rest}: {}", if list { "[…]" } else { "…" })
    });
    Some(format!("{first}: {{{inner}}}"))
}

/// Where a misplaced key belongs.
pub(super) fn elsewhere(key: &str) -> Option<String> {
    use super::keys::{ISOLATION, PERMISSIONS, ROLE, TOP};
    let place = [
        (ROLE, "directly below the role"),
        (TOP, "at the top level"),
        (ISOLATION, "below `isolation`"),
        (PERMISSIONS, "below `permissions`"),
    ];
    let (_, place) = place.into_iter().find(|(table, _)| names(table).any(|name| name == key))?;
    Some(format!("`{key}` belongs {place}"))
}
