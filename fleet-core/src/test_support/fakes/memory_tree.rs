//! A file system in memory that answers [`PathProbe`].

use std::collections::{BTreeMap, BTreeSet};

use crate::path::LexicalPath;
use crate::port::{
    FileFacts, FileIdentity, FileKind, FollowedLink, PathProbe, PathProbeError, Resolved,
};

const MAX_LINKS: usize = 40;

#[derive(Debug, Clone)]
enum Content {
    Directory(BTreeMap<String, usize>),
    File(Vec<u8>),
    Link(String),
    Other(FileKind),
}

#[derive(Debug, Clone)]
struct Node {
    content: Content,
    uid: u32,
    mode: u32,
    links: u64,
}

/// A tree of directories, files, links, special files and bind mounts.
///
/// Building methods take absolute paths, make missing parents and follow links in them. They panic
/// on nonsense (a path that is relative, a file where a directory is needed), because a broken
/// fixture must not pass for a finding.
#[derive(Debug, Clone)]
pub struct MemoryTree {
    nodes: Vec<Node>,
    mounts: BTreeMap<LexicalPath, usize>,
    denied: BTreeSet<LexicalPath>,
    case_blind: Vec<LexicalPath>,
    uid: u32,
}

impl Default for MemoryTree {
    fn default() -> Self {
        Self::new()
    }
}

fn absolute(path: &str) -> LexicalPath {
    match LexicalPath::absolute(path) {
        Ok(path) => path,
        Err(error) => panic!("fixture path {path:?}: {error}"),
    }
}

impl MemoryTree {
    /// An empty root directory; everything made later belongs to uid 1000.
    pub fn new() -> Self {
        let root =
            Node { content: Content::Directory(BTreeMap::new()), uid: 0, mode: 0o755, links: 1 };
        Self {
            nodes: vec![root],
            mounts: BTreeMap::new(),
            denied: BTreeSet::new(),
            case_blind: Vec::new(),
            uid: 1000,
        }
    }

    /// Sets the owner of everything made from now on.
    pub fn set_uid(&mut self, uid: u32) -> &mut Self {
        self.uid = uid;
        self
    }

    /// Makes a directory of mode 0755; keeps an existing one.
    pub fn dir(&mut self, path: &str) -> &mut Self {
        self.dir_mode(path, 0o755)
    }

    /// Makes a directory, or sets the mode of an existing one.
    pub fn dir_mode(&mut self, path: &str, mode: u32) -> &mut Self {
        let node = self.make_dirs(&absolute(path));
        self.nodes[node].mode = mode;
        self.nodes[node].uid = self.uid;
        self
    }

    /// Makes a file of mode 0644.
    pub fn file(&mut self, path: &str, content: impl AsRef<[u8]>) -> &mut Self {
        self.file_mode(path, content, 0o644)
    }

    /// Makes a file.
    pub fn file_mode(&mut self, path: &str, content: impl AsRef<[u8]>, mode: u32) -> &mut Self {
        self.insert(path, Content::File(content.as_ref().to_vec()), mode)
    }

    /// Makes a symbolic link; the target is kept as written and need not exist.
    pub fn link(&mut self, path: &str, target: &str) -> &mut Self {
        self.insert(path, Content::Link(target.to_owned()), 0o777)
    }

    /// Makes a socket, FIFO or device.
    ///
    /// # Panics
    /// If `kind` is none of these.
    pub fn special(&mut self, path: &str, kind: FileKind) -> &mut Self {
        assert!(!matches!(kind, FileKind::File | FileKind::Directory), "not special: {kind:?}");
        self.insert(path, Content::Other(kind), 0o600)
    }

    /// Gives the object at `existing` a second name.
    pub fn hard_link(&mut self, existing: &str, path: &str) -> &mut Self {
        let node = self.existing(existing);
        let (parent, name) = self.place(path);
        self.nodes[node].links += 1;
        self.entries(parent).insert(name, node);
        self
    }

    /// Makes the object at `from` appear at `to` as well, as a mount point of its own.
    pub fn bind(&mut self, from: &str, to: &str) -> &mut Self {
        let node = self.existing(from);
        let to = absolute(to);
        if self.lookup(&to).is_none() {
            self.make_dirs(&to);
        }
        self.mounts.insert(to, node);
        self
    }

    /// Makes every look at or below `path` fail for want of permission.
    pub fn deny(&mut self, path: &str) -> &mut Self {
        self.denied.insert(absolute(path));
        self
    }

    /// Names at and below `path` differ only by case from now on.
    pub fn ignore_case(&mut self, path: &str) -> &mut Self {
        self.case_blind.push(absolute(path));
        self
    }

    /// Removes the name at `path`, and what is below it.
    pub fn remove(&mut self, path: &str) -> &mut Self {
        let (parent, name) = self.place(path);
        self.entries(parent).remove(&name);
        self
    }

    /// Every object at and below `path`, mount points entered, links not followed.
    pub fn reachable(&self, path: &LexicalPath) -> Vec<(LexicalPath, FileIdentity)> {
        let mut found = Vec::new();
        let mut todo = vec![(path.clone(), self.lookup(path))];
        while let Some((place, node)) = todo.pop() {
            let Some(node) = node else { continue };
            found.push((place.clone(), Self::identity(node)));
            let Content::Directory(entries) = &self.nodes[node].content else { continue };
            for name in entries.keys() {
                if let Ok(below) = place.child(name) {
                    let node = self.step(&below, node, name);
                    let link = |node: &usize| matches!(self.nodes[*node].content, Content::Link(_));
                    todo.push((below, node.filter(|node| !link(node))));
                }
            }
        }
        found
    }

    fn insert(&mut self, path: &str, content: Content, mode: u32) -> &mut Self {
        let (parent, name) = self.place(path);
        self.nodes.push(Node { content, uid: self.uid, mode, links: 1 });
        let node = self.nodes.len() - 1;
        self.entries(parent).insert(name, node);
        self
    }

    fn place(&mut self, path: &str) -> (usize, String) {
        let path = absolute(path);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            panic!("fixture path {path} has no name");
        };
        let name = name.to_owned();
        (self.make_dirs(&parent), name)
    }

    fn entries(&mut self, node: usize) -> &mut BTreeMap<String, usize> {
        match &mut self.nodes[node].content {
            Content::Directory(entries) => entries,
            other => panic!("fixture needs a directory, found {other:?}"),
        }
    }

    fn existing(&self, path: &str) -> usize {
        match self.lookup(&absolute(path)) {
            Some(node) => node,
            None => panic!("fixture path {path} does not exist"),
        }
    }

    fn lookup(&self, path: &LexicalPath) -> Option<usize> {
        let walk = self.walk(path).ok()?;
        walk.object
    }

    fn make_dirs(&mut self, path: &LexicalPath) -> usize {
        let resolved = match self.walk(path) {
            Ok(walk) => walk.path,
            Err(error) => panic!("fixture path {path}: {error}"),
        };
        let (mut here, mut at) = (LexicalPath::root(), 0);
        for component in resolved.components() {
            here = absolute(&format!("{}/{component}", here.as_str().trim_end_matches('/')));
            at = if let Some(node) = self.step(&here, at, component) {
                node
            } else {
                self.nodes.push(Node {
                    content: Content::Directory(BTreeMap::new()),
                    uid: self.uid,
                    mode: 0o755,
                    links: 1,
                });
                let node = self.nodes.len() - 1;
                self.entries(at).insert(component.to_owned(), node);
                node
            };
        }
        self.entries(at);
        at
    }

    /// The node called `name` in `parent`; `place` is the path it has.
    fn step(&self, place: &LexicalPath, parent: usize, name: &str) -> Option<usize> {
        if let Some(node) = self.mounts.get(place) {
            return Some(*node);
        }
        let Content::Directory(entries) = &self.nodes[parent].content else { return None };
        entries.get(name).copied().or_else(|| {
            if !self.ignores_case(place) {
                return None;
            }
            entries
                .iter()
                .find(|(entry, _)| entry.eq_ignore_ascii_case(name))
                .map(|(_, node)| *node)
        })
    }

    fn identity(node: usize) -> FileIdentity {
        FileIdentity { dev: 1, ino: node as u64 + 2 }
    }

    fn facts(&self, node: usize) -> FileFacts {
        let it = &self.nodes[node];
        let kind = match &it.content {
            Content::Directory(_) => FileKind::Directory,
            Content::File(_) => FileKind::File,
            Content::Other(kind) => *kind,
            Content::Link(_) => unreachable!("a walk never ends at a link"),
        };
        FileFacts {
            identity: Self::identity(node),
            kind,
            uid: it.uid,
            mode: it.mode,
            links: it.links,
        }
    }

    fn walk(&self, asked: &LexicalPath) -> Result<Walk, PathProbeError> {
        let mut todo: Vec<String> = asked.components().map(str::to_owned).collect();
        todo.reverse();
        let mut here = Walk::at_root();
        let mut links: Vec<FollowedLink> = Vec::new();
        while let Some(component) = todo.pop() {
            if component == ".." {
                here = self.up(&here);
                continue;
            }
            let place = here
                .path
                .child(&component)
                .map_err(|reason| PathProbeError::BadTarget { path: asked.to_string(), reason })?;
            if self.denied.contains(&place) {
                return Err(PathProbeError::Denied { path: asked.to_string() });
            }
            let found = match here.object {
                Some(at) if !matches!(self.nodes[at].content, Content::Directory(_)) => {
                    return Err(PathProbeError::NotADirectory { path: asked.to_string() });
                }
                Some(at) => self.step(&place, at, &component),
                None => None,
            };
            if let Some(Content::Link(target)) = found.map(|node| &self.nodes[node].content) {
                if links.len() == MAX_LINKS {
                    return Err(PathProbeError::Loop { path: asked.to_string() });
                }
                let above = here.trail.iter().chain(&here.object).rev();
                links.push(FollowedLink {
                    at: place,
                    above: above.map(|node| Self::identity(*node)).collect(),
                });
                if target.starts_with('/') {
                    here = Walk::at_root();
                }
                let parts = target.split('/').filter(|part| !matches!(*part, "" | "."));
                todo.extend(parts.rev().map(str::to_owned));
                continue;
            }
            let above = here.object;
            here.trail.extend(above);
            here = Walk { path: place, object: found, ..here };
        }
        here.links = links;
        Ok(here)
    }

    fn up(&self, here: &Walk) -> Walk {
        let Some(parent) = here.path.parent() else {
            return Walk::at_root();
        };
        // Links are gone from `here.path`, so its parent is where `..` leads.
        self.walk(&parent).unwrap_or(Walk { path: parent, object: None, ..Walk::at_root() })
    }
}

/// How far a walk has come: `trail` holds the existing directories above, the root first.
struct Walk {
    path: LexicalPath,
    object: Option<usize>,
    trail: Vec<usize>,
    links: Vec<FollowedLink>,
}

impl Walk {
    fn at_root() -> Self {
        let path = LexicalPath::root();
        Self { path, object: Some(0), trail: Vec::new(), links: Vec::new() }
    }
}

impl PathProbe for MemoryTree {
    fn resolve(&self, path: &LexicalPath) -> Result<Resolved, PathProbeError> {
        let walk = self.walk(path)?;
        Ok(Resolved {
            path: walk.path,
            object: walk.object.map(|node| self.facts(node)),
            ancestors: walk.trail.iter().rev().map(|node| Self::identity(*node)).collect(),
            links: walk.links,
        })
    }

    fn mounts_below(
        &self,
        directory: &LexicalPath,
    ) -> Result<Vec<(LexicalPath, FileIdentity)>, PathProbeError> {
        Ok(self
            .mounts
            .iter()
            .filter(|(place, _)| *place != directory && place.is_within(directory))
            .map(|(place, node)| (place.clone(), Self::identity(*node)))
            .collect())
    }

    fn head(&self, file: &LexicalPath, limit: usize) -> Result<Vec<u8>, PathProbeError> {
        let io =
            |detail: &str| PathProbeError::Io { path: file.to_string(), detail: detail.to_owned() };
        let node = self.walk(file)?.object.ok_or_else(|| io("no such file"))?;
        match &self.nodes[node].content {
            Content::File(bytes) => Ok(bytes[..bytes.len().min(limit)].to_vec()),
            _ => Err(io("not a regular file")),
        }
    }

    fn content(
        &self,
        file: &LexicalPath,
        identity: FileIdentity,
        limit: usize,
    ) -> Result<Vec<u8>, PathProbeError> {
        let seen = self.resolve(file)?;
        if seen.path != *file || seen.object.map(|object| object.identity) != Some(identity) {
            let detail = "replaced meanwhile".to_owned();
            return Err(PathProbeError::Io { path: file.to_string(), detail });
        }
        self.head(file, limit)
    }

    fn entries(
        &self,
        directory: &LexicalPath,
        limit: usize,
    ) -> Result<Vec<String>, PathProbeError> {
        match self.walk(directory)?.object.map(|node| &self.nodes[node].content) {
            Some(Content::Directory(entries)) => Ok(entries.keys().take(limit).cloned().collect()),
            _ => Err(PathProbeError::NotADirectory { path: directory.to_string() }),
        }
    }

    fn ignores_case(&self, path: &LexicalPath) -> bool {
        self.case_blind.iter().any(|blind| path.is_within(blind))
    }
}
