//! Paths judged by their text alone.
//!
//! A [`LexicalPath`] is absolute and has no `.`, `..` or empty component, so two of them can be
//! compared component by component. It says nothing about links: that is what
//! [`PathProbe`](crate::port::PathProbe) is for.

use std::cmp::Ordering;
use std::fmt;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

/// An absolute, normalised path. Being normalised, two are equal exactly if their texts are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LexicalPath(String);

/// Why a text is not an acceptable path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LexicalPathError {
    /// The text is empty.
    #[error("the path is empty")]
    Empty,
    /// A NUL or another control character.
    #[error("the path holds a control character")]
    ControlCharacter,
    /// `~user`, which would need another account's home.
    #[error("`~user` is not supported: write the absolute path")]
    OtherUsersHome,
    /// Not absolute after `~` expansion.
    #[error("the path is relative: write an absolute path, or one that starts with `~/`")]
    Relative,
    /// A `.`, `..` or empty component.
    #[error("the path has a `.`, `..` or empty component: write the plain path")]
    DotComponent,
}

/// How two paths lie to each other. Exactly one holds for any pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The same path.
    Equal,
    /// The first lies inside the second.
    Inside,
    /// The first contains the second.
    Contains,
    /// Neither.
    Disjoint,
}

impl LexicalPath {
    /// The root directory.
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// The lexical gate of 01 §2.6.2: expands a leading `~`, then demands an absolute path without
    /// control characters and without `.`, `..` or empty components. One trailing `/` is dropped.
    pub fn parse(text: &str, home: &LexicalPath) -> Result<Self, LexicalPathError> {
        if text.is_empty() {
            return Err(LexicalPathError::Empty);
        }
        if has_control(text) {
            return Err(LexicalPathError::ControlCharacter);
        }
        if let Some(rest) = text.strip_prefix('~') {
            return match rest.strip_prefix('/') {
                None if rest.is_empty() => Ok(home.clone()),
                None => Err(LexicalPathError::OtherUsersHome),
                Some(below) => {
                    let mut path = home.clone();
                    if !below.is_empty() {
                        let below = below.strip_suffix('/').unwrap_or(below);
                        for component in below.split('/') {
                            path = path.child(component)?;
                        }
                    }
                    Ok(path)
                }
            };
        }
        Self::absolute(text)
    }

    /// As [`LexicalPath::parse`], without `~`.
    pub fn absolute(text: &str) -> Result<Self, LexicalPathError> {
        if text.is_empty() {
            return Err(LexicalPathError::Empty);
        }
        if has_control(text) {
            return Err(LexicalPathError::ControlCharacter);
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(LexicalPathError::Relative);
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if text.len() > 1 && rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(LexicalPathError::DotComponent);
        }
        Ok(Self(["/", rest].concat()))
    }

    /// The path of an entry directly below this one.
    pub fn child(&self, component: &str) -> Result<Self, LexicalPathError> {
        if matches!(component, "" | "." | "..") || component.contains('/') {
            return Err(LexicalPathError::DotComponent);
        }
        if has_control(component) {
            return Err(LexicalPathError::ControlCharacter);
        }
        let separator = if self.0.len() > 1 { "/" } else { "" };
        Ok(Self([self.as_str(), separator, component].concat()))
    }

    /// The path as text, without a trailing `/` except for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as a `camino` path.
    pub fn as_path(&self) -> &Utf8Path {
        Utf8Path::new(&self.0)
    }

    /// The directory that holds this path; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        parent(&self.0).map(|parent| Self(parent.to_owned()))
    }

    /// The last component; `None` for the root.
    pub fn file_name(&self) -> Option<&str> {
        self.components().next_back()
    }

    /// The components from the root down, without the root itself.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// Number of components; 0 for the root.
    pub fn depth(&self) -> usize {
        let slashes = self.0.bytes().filter(|byte| *byte == b'/').count();
        if self.0.len() > 1 { slashes } else { 0 }
    }

    /// This path and every directory above it, the root last.
    pub fn self_and_ancestors(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self.as_str()), |path| parent(path))
    }

    /// Every directory above this path and the path itself, the root first.
    pub fn from_root_to_self(&self) -> impl Iterator<Item = &str> {
        let text = self.as_str();
        let ends = text.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'/');
        let ends = ends.map(|(end, _)| end);
        let own = (text.len() > 1).then_some(text.len());
        std::iter::once("/").chain(ends.chain(own).map(|end| &text[..end]))
    }

    /// The path at `relative` below this one, for example `a/b`; no leading or trailing `/`.
    pub fn join(&self, relative: &str) -> Result<Self, LexicalPathError> {
        relative.split('/').try_fold(self.clone(), |path, component| path.child(component))
    }

    /// What follows `base` in this path: empty if equal, `None` if this path is not within it.
    pub fn below(&self, base: &LexicalPath) -> Option<&str> {
        let rest = match base.as_str() {
            "/" => self.as_str(),
            text => self.as_str().strip_prefix(text)?,
        };
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    /// How this path lies to `other`, compared by whole components.
    pub fn relation(&self, other: &LexicalPath) -> Relation {
        // Plain paths end in a whole component, so a prefix followed by `/` is an ancestor.
        fn holds(outer: &str, inner: &str) -> bool {
            outer == "/" || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
        }
        let (mine, theirs) = (self.as_str(), other.as_str());
        if mine == theirs {
            Relation::Equal
        } else if holds(theirs, mine) {
            Relation::Inside
        } else if holds(mine, theirs) {
            Relation::Contains
        } else {
            Relation::Disjoint
        }
    }

    /// Whether this path is `other` or lies inside it.
    pub fn is_within(&self, other: &LexicalPath) -> bool {
        matches!(self.relation(other), Relation::Equal | Relation::Inside)
    }
}

/// The directory that holds a normalised path; `None` for the root.
fn parent(path: &str) -> Option<&str> {
    let end = path.bytes().rposition(|byte| byte == b'/')?;
    (path.len() > 1).then(|| &path[..end.max(1)])
}

/// Most paths are plain ASCII, which is told by the bytes alone.
fn has_control(text: &str) -> bool {
    !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.chars().any(char::is_control)
}

/// By components, so that what lies in a directory follows it at once.
impl Ord for LexicalPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.components().cmp(other.components())
    }
}

impl PartialOrd for LexicalPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for LexicalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<String> for LexicalPath {
    type Error = LexicalPathError;

    fn try_from(text: String) -> Result<Self, LexicalPathError> {
        Self::absolute(&text)
    }
}

impl From<LexicalPath> for String {
    fn from(path: LexicalPath) -> String {
        path.0
    }
}

impl AsRef<Utf8Path> for LexicalPath {
    fn as_ref(&self) -> &Utf8Path {
        self.as_path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> LexicalPath {
        LexicalPath::absolute(text).expect(text)
    }

    #[test]
    fn the_gate_expands_home_and_refuses_the_rest() {
        let home = path("/home/u");
        let parse = |text| LexicalPath::parse(text, &home);
        assert_eq!(parse("~").expect("home"), home);
        assert_eq!(parse("~/").expect("home"), home);
        assert_eq!(parse("~/a/b/").expect("below"), path("/home/u/a/b"));
        assert_eq!(parse("/").expect("root"), LexicalPath::root());
        for (text, error) in [
            ("", LexicalPathError::Empty),
            ("~root/x", LexicalPathError::OtherUsersHome),
            ("x/y", LexicalPathError::Relative),
            ("/a/../b", LexicalPathError::DotComponent),
            ("/a/./b", LexicalPathError::DotComponent),
            ("/a//b", LexicalPathError::DotComponent),
            ("//", LexicalPathError::DotComponent),
            ("~/../x", LexicalPathError::DotComponent),
            ("/a\nb", LexicalPathError::ControlCharacter),
            ("/a\0", LexicalPathError::ControlCharacter),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn walks_and_joins_keep_to_whole_components() {
        let walk = |text| path(text).from_root_to_self().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(walk("/"), ["/"]);
        assert_eq!(walk("/a/bc"), ["/", "/a", "/a/bc"]);
        assert_eq!(path("/").join("a/b"), Ok(path("/a/b")));
        assert_eq!(path("/a/bc").self_and_ancestors().collect::<Vec<_>>(), ["/a/bc", "/a", "/"]);
        assert_eq!(path("/").self_and_ancestors().collect::<Vec<_>>(), ["/"]);
        assert_eq!((path("/a").parent(), path("/").parent()), (Some(path("/")), None));
        assert_eq!((path("/a/b").file_name(), path("/").file_name()), (Some("b"), None));
        assert_eq!((path("/a/b").depth(), path("/").depth()), (2, 0));
        assert!(path("/a") < path("/a/b") && path("/a/b") < path("/a-b"));
        assert_eq!(path("/a").join("../b"), Err(LexicalPathError::DotComponent));
        assert_eq!(path("/a").join("/b"), Err(LexicalPathError::DotComponent));
        assert_eq!(path("/a/b/c").below(&path("/a")), Some("b/c"));
        assert_eq!(path("/a/b").below(&path("/")), Some("a/b"));
        assert_eq!(path("/a").below(&path("/a")), Some(""));
        assert_eq!(path("/ab").below(&path("/a")), None);
    }

    #[test]
    fn relations_compare_whole_components() {
        assert_eq!(path("/a/.ours").relation(&path("/a/.ours-fleet")), Relation::Disjoint);
        assert_eq!(path("/").relation(&path("/a")), Relation::Contains);
        assert_eq!(path("/a/b").relation(&path("/")), Relation::Inside);
        assert_eq!(path("/").relation(&path("/")), Relation::Equal);
    }
}
