//! Where each written value came from. Kept as a tree beside the fleet, not as one text per value: a
//! large fleet has tens of thousands of them and few are ever asked for.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;

use super::tree::{At, Entry, Node, Value};
use crate::diagnostic::Place;

/// Which layer a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Built into fleet.
    BuiltIn,
    /// `defaults:`.
    Default,
    /// The role itself.
    Role,
    /// The top level of the base file.
    Top,
}

/// Where each written value came from, by dotted path (`roles.A.cwd`, `roles.A.isolation.fs.read[0]`).
/// What a role inherits is listed below the role too, with the place of the default.
/// A path that is absent was not written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provenance {
    files: Vec<String>,
    root: IndexMap<Box<str>, Spot>,
}

/// One written value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    at: At,
    layer: Layer,
    below: Below,
}

/// What is written below a value. Shared, since many roles inherit the same.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Below {
    Nothing,
    List(Arc<Vec<Spot>>),
    Map(Arc<IndexMap<Box<str>, Spot>>),
}

impl Spot {
    /// The spots of an entry and everything below it.
    pub(super) fn of(entry: &Entry, layer: Layer) -> Self {
        Self::new(entry.at, &entry.value, layer)
    }

    fn new(at: At, node: &Node, layer: Layer) -> Self {
        let below = match &node.value {
            Value::Bad | Value::Scalar(_) => Below::Nothing,
            Value::List(items) => {
                Below::List(Arc::new(items.iter().map(|it| Self::new(it.at, it, layer)).collect()))
            }
            Value::Map(entries) => Below::Map(Arc::new(
                entries.iter().map(|it| (it.key.clone(), Self::of(it, layer))).collect(),
            )),
        };
        Self { at, layer, below }
    }

    /// A mapping made of these parts.
    pub(super) fn map(at: At, layer: Layer, below: IndexMap<Box<str>, Spot>) -> Self {
        Self { at, layer, below: Below::Map(Arc::new(below)) }
    }

    /// This value over an inherited one: mappings are united key by key, `levels` deep.
    pub(super) fn over(self, inherited: &Self, levels: usize) -> Self {
        let (Below::Map(mine), Below::Map(theirs)) = (&self.below, &inherited.below) else {
            return self;
        };
        if levels == 0 {
            return self;
        }
        let mut united = IndexMap::clone(mine);
        for (key, spot) in theirs.iter() {
            let spot = match united.get(key) {
                Some(own) => own.clone().over(spot, levels - 1),
                None => spot.clone(),
            };
            united.insert(key.clone(), spot);
        }
        Self::map(self.at, self.layer, united)
    }
}

impl Provenance {
    pub(super) fn new(files: Vec<String>, root: IndexMap<Box<str>, Spot>) -> Self {
        Self { files, root }
    }

    /// Where the value at `path` itself was written; `None` if it was not.
    pub fn written(&self, path: &str) -> Option<(Layer, Place)> {
        let (spot, rest) = self.find(path)?;
        rest.is_empty().then(|| self.entry(spot))
    }

    /// Where the value at `path`, or else the nearest value around it, was written.
    pub fn lookup(&self, path: &str) -> Option<(Layer, Place)> {
        Some(self.entry(self.find(path)?.0))
    }

    /// The value at the path, or the nearest around it, and the part of the path that it lacks.
    fn find<'p>(&self, path: &'p str) -> Option<(&Spot, &'p str)> {
        let (mut spot, mut rest) = step(&self.root, path)?;
        loop {
            let next = match (&spot.below, rest.strip_prefix('[')) {
                (Below::List(items), Some(index)) => {
                    index.split_once(']').and_then(|(index, rest)| {
                        Some((items.get(index.parse::<usize>().ok()?)?, rest))
                    })
                }
                (Below::Map(entries), None) => {
                    rest.strip_prefix('.').and_then(|rest| step(entries, rest))
                }
                _ => None,
            };
            match next {
                Some(next) => (spot, rest) = next,
                None => return Some((spot, rest)),
            }
        }
    }

    /// Every written value with its path, in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = (String, (Layer, Place))> {
        let mut found = Vec::new();
        for (key, spot) in &self.root {
            self.collect(key.to_string(), spot, &mut found);
        }
        found.into_iter()
    }

    fn collect(&self, path: String, spot: &Spot, found: &mut Vec<(String, (Layer, Place))>) {
        let below = path.clone();
        found.push((path, self.entry(spot)));
        match &spot.below {
            Below::Nothing => {}
            Below::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.collect(format!("{below}[{index}]"), item, found);
                }
            }
            Below::Map(entries) => {
                for (key, spot) in entries.iter() {
                    self.collect(format!("{below}.{key}"), spot, found);
                }
            }
        }
    }

    fn entry(&self, spot: &Spot) -> (Layer, Place) {
        let file = self.files.get(spot.at.file as usize).cloned().unwrap_or_default();
        (spot.layer, Place { file, line: spot.at.line, column: spot.at.column })
    }
}

/// The entry that `path` starts with, and what follows. A key may hold dots: the shortest prefix that
/// is a key counts.
fn step<'s, 'p>(
    entries: &'s IndexMap<Box<str>, Spot>,
    path: &'p str,
) -> Option<(&'s Spot, &'p str)> {
    let ends = path.match_indices(['.', '[']).map(|(end, _)| end).chain([path.len()]);
    ends.into_iter().find_map(|end| Some((entries.get(&path[..end])?, &path[end..])))
}
