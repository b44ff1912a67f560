//! Paths with modes as a function from path to mode: the deepest grant around a path decides, as it
//! does for mounts. So a read-only grant inside a writable one takes something away, and a writable
//! one inside a writable one adds nothing.

use std::collections::{BTreeMap, HashMap};

use super::{Grant, Value, rank};
use crate::isolation::MountMode;
use crate::path::LexicalPath;

/// A path at which more is allowed than before.
pub(super) struct Gain<'a> {
    pub(super) path: LexicalPath,
    pub(super) from: Option<MountMode>,
    pub(super) to: MountMode,
    /// The grant that decides there now.
    pub(super) grant: &'a Grant,
}

type Modes<'a> = BTreeMap<&'a LexicalPath, (MountMode, &'a Grant)>;

/// Of grants at the same path the widest counts.
fn modes(grants: &[Grant]) -> Modes<'_> {
    let mut modes = Modes::new();
    for grant in grants {
        let Value::Path { path, mode } = &grant.value else { continue };
        let there = modes.entry(path).or_insert((*mode, grant));
        if rank(*mode) > rank(there.0) {
            *there = (*mode, grant);
        }
    }
    modes
}

/// The grants of one side, to be asked by path.
struct Side<'a> {
    modes: Modes<'a>,
    by_text: BTreeMap<&'a str, &'a LexicalPath>,
}

impl<'a> Side<'a> {
    fn new(grants: &'a [Grant]) -> Self {
        let modes = modes(grants);
        let by_text = modes.keys().map(|path| (path.as_str(), *path)).collect();
        Self { modes, by_text }
    }

    fn at(&self, path: &LexicalPath) -> Option<(MountMode, &'a Grant)> {
        let deepest = path.self_and_ancestors().find_map(|place| self.by_text.get(place))?;
        self.modes.get(*deepest).copied()
    }
}

/// Where `new` allows more than `old`. Both functions are constant between the paths that they name,
/// so looking at those is looking at every path there is. One gain a new grant: the highest path.
pub(super) fn wider<'a>(new: &'a [Grant], old: &[Grant]) -> Vec<Gain<'a>> {
    let (new, old) = (Side::new(new), Side::new(old));
    let mut paths: Vec<&LexicalPath> =
        new.modes.keys().copied().chain(old.modes.keys().copied()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut gains: Vec<Gain<'a>> = Vec::new();
    // The last gain of each new grant. Paths come in the order of the tree, so if one lies in an
    // earlier gain of its grant, then in the last.
    let mut last: HashMap<*const Grant, &LexicalPath> = HashMap::new();
    for path in paths {
        let Some((to, grant)) = new.at(path) else { continue };
        let from = old.at(path).map(|(mode, _)| mode);
        if from.is_some_and(|from| rank(to) <= rank(from)) {
            continue;
        }
        let grant_key = std::ptr::from_ref(grant);
        if !last.get(&grant_key).is_some_and(|said| path.is_within(said)) {
            last.insert(grant_key, path);
            gains.push(Gain { path: path.clone(), from, to, grant });
        }
    }
    gains
}
