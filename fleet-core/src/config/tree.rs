//! YAML text to one spanned tree (01 §1.2). Limits, duplicate keys, anchors, aliases, tags and
//! documents are judged here, so that everything after it sees a plain tree. Total: any bytes give
//! a tree or an error, in time and memory bounded by the limits.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};

use super::load::YamlMode;
use super::scalar::{Core, Scalar};
use crate::diagnostic::{Code, Diagnostic, Place, Sink};

const MAX_BYTES: usize = 4 * 1024 * 1024;
const MAX_NODES: usize = 500_000;
const MAX_DEPTH: usize = 32;
const MAX_ALIASES: usize = 100;
/// Text that aliases, variables or defaults may repeat in one load. Without it a large text could be
/// repeated until the memory is full.
pub(super) const MAX_REPEATED_BYTES: usize = 16 * 1024 * 1024;

/// What may follow one of these is part of a comment in YAML 1.2 and a key in YAML 1.1.
const LINE_SEPARATORS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// A place in one of the files of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    /// Position in the list of files.
    pub(super) file: u32,
    /// Line, from 1; 0 means the whole file.
    pub(super) line: u32,
    /// Column, from 1.
    pub(super) column: u32,
}

/// A value and where it starts.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) value: Value,
}

/// Lists and maps are shared: an alias costs no copy.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// Already reported; everybody passes over it in silence.
    Bad,
    Scalar(Scalar),
    List(Rc<Vec<Node>>),
    Map(Rc<Vec<Entry>>),
}

/// One entry of a map.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: Box<str>,
    /// Where the key starts.
    pub(super) at: At,
    pub(super) value: Node,
}

impl Node {
    /// The entry with this key, if the node is a map.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries()?.iter().find(|entry| &*entry.key == key)
    }

    /// The entries, if the node is a map.
    pub(super) fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// How many values it holds, itself included, and how many bytes of text.
    pub(super) fn size(&self) -> (usize, usize) {
        let sum = |sizes: &mut dyn Iterator<Item = (usize, usize)>| {
            sizes.fold((1, 0), |(nodes, bytes), (more, text)| (nodes + more, bytes + text))
        };
        match &self.value {
            Value::Bad => (1, 0),
            Value::Scalar(scalar) => (1, scalar.text.len()),
            Value::List(items) => sum(&mut items.iter().map(Self::size)),
            Value::Map(entries) => sum(&mut entries.iter().map(|entry| {
                let (nodes, bytes) = entry.value.size();
                (nodes + 1, bytes + entry.key.len())
            })),
        }
    }

    /// Whether it is an explicit or implied `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.core() == Core::Null)
    }
}

/// Reads the first document of a file. `None` means that there is no usable tree; then an error is
/// in `sink`. An empty document is an empty map.
pub(super) fn read(
    bytes: &[u8],
    file: u32,
    name: &str,
    mode: YamlMode,
    sink: &mut Sink,
) -> Option<Node> {
    let mut reader = Reader {
        file,
        name,
        mode,
        sink,
        open: Vec::new(),
        root: None,
        anchors: HashMap::new(),
        nodes: 0,
        aliases: 0,
        repeated: 0,
    };
    let text = reader.text(bytes)?;
    reader.run(text).ok()?;
    let nothing =
        Node { at: At { file, line: 1, column: 1 }, value: Value::Map(Rc::new(Vec::new())) };
    let written = |node: &Node| !matches!(&node.value, Value::Scalar(it) if it.nothing);
    Some(reader.root.filter(written).unwrap_or(nothing))
}

/// The pass cannot go on; the problem is reported.
struct Stop;

/// A finished node with its cost, for an alias to it.
#[derive(Clone)]
struct Anchored {
    node: Node,
    nodes: usize,
    levels: usize,
}

/// A list or map that is being read.
struct Open {
    at: At,
    anchor: usize,
    /// Nodes below and including it.
    nodes: usize,
    /// Levels below and including it.
    levels: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, keys: Keys, pending: Pending },
}

/// The key that waits for its value.
enum Pending {
    None,
    Key(Box<str>, At),
    /// A key that was refused: its value is dropped, so that one mistake gives one message.
    Dropped,
}

/// Finds equal keys: by looking through a small map, by a set in a large one.
#[derive(Default)]
struct Keys(Option<HashSet<Box<str>>>);

impl Keys {
    const LARGE: usize = 24;

    fn contains(&mut self, entries: &[Entry], key: &str) -> bool {
        if entries.len() < Self::LARGE {
            return entries.iter().any(|entry| &*entry.key == key);
        }
        let all = || entries.iter().map(|entry| entry.key.clone()).collect();
        let set = self.0.get_or_insert_with(all);
        // The set lags behind by at most the entry that was added last.
        if let Some(last) = entries.last() {
            set.insert(last.key.clone());
        }
        set.contains(key)
    }
}

struct Reader<'a> {
    file: u32,
    name: &'a str,
    mode: YamlMode,
    sink: &'a mut Sink,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    aliases: usize,
    /// Bytes that aliases repeat.
    repeated: usize,
}

impl Reader<'_> {
    /// Judges the bytes as text.
    fn text<'t>(&mut self, bytes: &'t [u8]) -> Option<&'t str> {
        if bytes.len() > MAX_BYTES {
            let message = format!("the file is larger than {} MiB", MAX_BYTES / 1024 / 1024);
            self.error(Code::Limit, At { file: self.file, line: 0, column: 0 }, message);
            return None;
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let at = self.at_byte(bytes, error.valid_up_to());
                self.error(Code::Syntax, at, "the file is not valid UTF-8");
                return None;
            }
        };
        if let Some(position) = bytes.iter().position(|&byte| byte == 0) {
            let at = self.at_byte(bytes, position);
            self.error(Code::Syntax, at, "the file holds a NUL byte");
            return None;
        }
        if let Some((position, separator)) =
            text.char_indices().find(|(_, character)| LINE_SEPARATORS.contains(character))
        {
            let message = format!(
                "U+{:04X} ends a line for readers of YAML 1.1 and for people, and not in YAML 1.2, \
                 which is read here: write it as an escape in double quotes, or leave it out",
                u32::from(separator)
            );
            self.feature(Code::LineSeparator, self.at_byte(bytes, position), &message);
        }
        Some(text)
    }

    fn run(&mut self, text: &str) -> Result<(), Stop> {
        let options = granit_parser::options! { emit_comments: false };
        let mut parser = Parser::new_from_str_with_options(text, options);
        let mut documents = 0;
        while let Some(next) = parser.next_event() {
            let (event, span) = match next {
                Ok(next) => next,
                Err(error) => {
                    let at = self.at(error.marker());
                    let info = error.info();
                    return Err(self.error(Code::Syntax, at, format!("not valid YAML: {info}")));
                }
            };
            match event {
                Event::DocumentStart(..) => {
                    documents += 1;
                    if documents == 2 {
                        self.feature(
                            Code::MultipleDocuments,
                            self.at(&span.start),
                            "a second document: only the first is read",
                        );
                        break;
                    }
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let at = self.properties(anchor, tag.as_deref(), &span);
                    self.count(1, at)?;
                    self.fits(1, at)?;
                    let is_text = tag.as_deref().is_some_and(is_text_tag);
                    let plain = matches!(style, ScalarStyle::Plain) && !is_text;
                    let nothing = plain && span.start.index() == span.end.index();
                    let value = Value::Scalar(Scalar::new(text.into(), plain, nothing));
                    let node = Node { at, value };
                    self.finish(anchor, Anchored { node, nodes: 1, levels: 1 });
                }
                Event::SequenceStart(_, anchor, tag) => {
                    let at = self.properties(anchor, tag.as_deref(), &span);
                    self.begin(at, anchor, Content::List(Vec::new()))?;
                }
                Event::MappingStart(_, anchor, tag) => {
                    let at = self.properties(anchor, tag.as_deref(), &span);
                    let pending = Pending::None;
                    let content =
                        Content::Map { entries: Vec::new(), keys: Keys::default(), pending };
                    self.begin(at, anchor, content)?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.end(),
                Event::Alias(target) => self.alias(target, self.at(&span.start))?,
                // Stream marks, and what the options switch off.
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes an anchor and a tag, and gives the place of the node.
    fn properties(&mut self, anchor: usize, tag: Option<&Tag>, span: &Span) -> At {
        let at = self.at(&span.start);
        if anchor != 0 {
            self.feature(Code::Anchor, at, "an anchor: write the value out");
        }
        if tag.is_some() {
            let at = span.tag_start.as_ref().map_or(at, |start| self.at(start));
            self.feature(Code::ExplicitTag, at, "an explicit tag: leave it out");
        }
        at
    }

    fn begin(&mut self, at: At, anchor: usize, content: Content) -> Result<(), Stop> {
        self.count(1, at)?;
        self.fits(1, at)?;
        self.open.push(Open { at, anchor, nodes: 1, levels: 1, content });
        Ok(())
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let value = match open.content {
            Content::List(items) => Value::List(Rc::new(items)),
            Content::Map { entries, .. } => Value::Map(Rc::new(entries)),
        };
        let node = Node { at: open.at, value };
        let done = Anchored { node, nodes: open.nodes, levels: open.levels };
        self.finish(open.anchor, done);
    }

    /// Puts a finished node where it belongs.
    fn finish(&mut self, anchor: usize, done: Anchored) {
        if anchor != 0 {
            self.anchors.insert(anchor, done.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(done.node);
            return;
        };
        parent.nodes += done.nodes;
        parent.levels = parent.levels.max(done.levels + 1);
        match &mut parent.content {
            Content::List(items) => items.push(done.node),
            Content::Map { entries, pending, .. } => {
                match std::mem::replace(pending, Pending::None) {
                    Pending::Key(key, at) => entries.push(Entry { key, at, value: done.node }),
                    Pending::Dropped => {}
                    Pending::None => self.key(&done.node),
                }
            }
        }
    }

    /// Takes a node as the next key of the innermost map.
    fn key(&mut self, node: &Node) {
        let at = node.at;
        let mut refused = false;
        let key: Box<str> = match &node.value {
            Value::Scalar(scalar) => {
                if !matches!(scalar.core(), Core::Text(_)) {
                    refused = true;
                    let shown = &scalar.text;
                    let found = Diagnostic::error(Code::WrongType, "a key must be a text")
                        .found(shown)
                        .hint(format!("put it in quotes: \"{}\"", shown.escape_debug()));
                    self.push(found, at);
                }
                scalar.text.clone()
            }
            // The text cannot be a known key or a name, so a closed map refuses it later.
            Value::List(_) => "[…]".into(),
            Value::Map(_) | Value::Bad => "{…}".into(),
        };
        let scalar = matches!(node.value, Value::Scalar(_));
        if !scalar {
            self.feature(Code::NonScalarKey, at, "a key that is a list or mapping");
        }
        let Some(Open { content: Content::Map { entries, keys, pending }, .. }) =
            self.open.last_mut()
        else {
            return;
        };
        if refused {
            *pending = Pending::Dropped;
        } else if scalar && keys.contains(entries, &key) {
            let first = entries.iter().find(|entry| entry.key == key).map(|entry| entry.at);
            *pending = Pending::Dropped;
            let message = format!("key `{}` is written twice", key.escape_debug());
            let mut found = Diagnostic::error(Code::DuplicateKey, message);
            if let Some(first) = first {
                found = found.other(self.place(first));
            }
            self.push(found, at);
        } else {
            *pending = Pending::Key(key, at);
        }
    }

    fn alias(&mut self, target: usize, at: At) -> Result<(), Stop> {
        self.aliases += 1;
        self.feature(Code::Alias, at, "an alias: write the value out");
        if self.aliases > MAX_ALIASES {
            return Err(self.error(Code::Limit, at, format!("more than {MAX_ALIASES} aliases")));
        }
        let Some(anchored) = self.anchors.get(&target).cloned() else {
            return Err(self.error(Code::Syntax, at, "an alias inside the value that it names"));
        };
        self.count(anchored.nodes, at)?;
        self.repeated = self.repeated.saturating_add(anchored.node.size().1);
        if self.repeated > MAX_REPEATED_BYTES {
            return Err(self.error(Code::Limit, at, "aliases repeat more than 16 MiB of text"));
        }
        self.fits(anchored.levels, at)?;
        self.finish(0, anchored);
        Ok(())
    }

    fn count(&mut self, nodes: usize, at: At) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(self.error(Code::Limit, at, format!("more than {MAX_NODES} values")));
        }
        Ok(())
    }

    fn fits(&mut self, levels: usize, at: At) -> Result<(), Stop> {
        if self.open.len() + levels > MAX_DEPTH {
            return Err(self.error(
                Code::Limit,
                at,
                format!("nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        Ok(())
    }

    fn error(&mut self, code: Code, at: At, message: impl Into<String>) -> Stop {
        self.push(Diagnostic::error(code, message), at);
        Stop
    }

    /// A feature that compat mode lets pass and strict mode refuses.
    fn feature(&mut self, code: Code, at: At, message: &str) {
        let found = match self.mode {
            YamlMode::Compat => Diagnostic::warning(code, message),
            YamlMode::Strict => Diagnostic::error(code, message),
        };
        self.push(found, at);
    }

    fn push(&mut self, diagnostic: Diagnostic, at: At) {
        let place = self.place(at);
        self.sink.push(diagnostic.at(place));
    }

    fn place(&self, at: At) -> Place {
        Place { file: self.name.to_owned(), line: at.line, column: at.column }
    }

    fn at(&self, marker: &Marker) -> At {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        At { file: self.file, line: number(marker.line()), column: number(marker.col() + 1) }
    }

    fn at_byte(&self, bytes: &[u8], position: usize) -> At {
        let before = &bytes[..position];
        let line = before.split(|&byte| byte == b'\n').count();
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |index| index + 1);
        let characters = String::from_utf8_lossy(&before[start..]).chars().count();
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        At { file: self.file, line: number(line), column: number(characters + 1) }
    }
}

/// `!!str` and the non-specific `!` make a text of a plain scalar.
fn is_text_tag(tag: &Tag) -> bool {
    tag.is_yaml_core_schema_tag("str") || (tag.handle().is_empty() && tag.suffix() == "!")
}
