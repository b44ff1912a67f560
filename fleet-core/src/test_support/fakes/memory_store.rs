use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};

use crate::port::{DirEntry, EntryKind, StateStore, StoreError, StoreLock};
use crate::test_support::sync::lock;

/// A step of a write that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The disk fills up in the middle of the content.
    Write,
    /// The disk does not confirm the content.
    Fsync,
    /// Closing the file reports a late error.
    Close,
    /// The new file cannot take the place of the old one.
    Rename,
}

/// What stands at a path that is no file made by the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A symbolic link.
    Symlink,
    /// A FIFO, a socket or a device.
    Special,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File { content: Vec<u8>, mode: u32 },
    Directory { mode: u32 },
    Planted(Planted),
    Link(Utf8PathBuf),
}

impl Node {
    fn kind(&self) -> EntryKind {
        match self {
            Self::File { .. } => EntryKind::File,
            Self::Directory { .. } => EntryKind::Directory,
            Self::Planted(Planted::Symlink) | Self::Link(_) => EntryKind::Symlink,
            Self::Planted(Planted::Special) => EntryKind::Other,
        }
    }

    fn in_words(&self) -> &'static str {
        match self.kind() {
            EntryKind::File => "a regular file",
            EntryKind::Directory => "a directory",
            EntryKind::Symlink => "a symbolic link",
            EntryKind::Other => "a special file",
        }
    }
}

/// Files in memory. Copies share everything.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    nodes: BTreeMap<Utf8PathBuf, Node>,
    locked: BTreeSet<Utf8PathBuf>,
    /// Faults of the next write to a path, or of the next write at all.
    faults: Vec<(Option<Utf8PathBuf>, Fault)>,
    temporaries: u64,
}

impl Default for MemoryStore {
    /// An empty root directory.
    fn default() -> Self {
        let nodes = BTreeMap::from([(Utf8PathBuf::from("/"), Node::Directory { mode: 0o755 })]);
        let state = State { nodes, locked: BTreeSet::new(), faults: Vec::new(), temporaries: 0 };
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

impl MemoryStore {
    /// Lets the next write or append fail at this step, of this file or of any.
    pub fn fail_next(&self, path: Option<&Utf8Path>, fault: Fault) {
        lock(&self.state).faults.push((path.map(Utf8Path::to_owned), fault));
    }

    /// Puts content there as somebody else would, its directories included.
    pub fn put(&self, path: &Utf8Path, content: &[u8]) {
        self.put_node(path, Node::File { content: content.to_vec(), mode: 0o600 });
    }

    /// Puts something there that is neither a file nor a directory.
    pub fn plant(&self, path: &Utf8Path, what: Planted) {
        self.put_node(path, Node::Planted(what));
    }

    fn put_node(&self, path: &Utf8Path, node: Node) {
        let mut state = lock(&self.state);
        for directory in path.ancestors().skip(1) {
            let fresh = Node::Directory { mode: 0o700 };
            state.nodes.entry(directory.to_owned()).or_insert(fresh);
        }
        state.nodes.insert(path.to_owned(), node);
    }

    /// The content of a file, if it is one.
    pub fn content(&self, path: &Utf8Path) -> Option<Vec<u8>> {
        match lock(&self.state).nodes.get(path) {
            Some(Node::File { content, .. }) => Some(content.clone()),
            _ => None,
        }
    }

    /// The mode of a file or directory.
    pub fn mode(&self, path: &Utf8Path) -> Option<u32> {
        match lock(&self.state).nodes.get(path) {
            Some(Node::File { mode, .. } | Node::Directory { mode }) => Some(*mode),
            _ => None,
        }
    }

    /// What a link says, if the store made it.
    pub fn target(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        match lock(&self.state).nodes.get(path) {
            Some(Node::Link(target)) => Some(target.clone()),
            _ => None,
        }
    }

    /// Every path but the root, in order.
    pub fn paths(&self) -> Vec<Utf8PathBuf> {
        lock(&self.state).nodes.keys().filter(|path| path.as_str() != "/").cloned().collect()
    }

    fn replace(
        &self,
        path: &Utf8Path,
        content: &[u8],
        mode: u32,
        durable: bool,
    ) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        let failed = |kind: io::ErrorKind| io_error("write", path, kind);
        let Some((parent, name)) = path.parent().zip(path.file_name()) else {
            return Err(failed(io::ErrorKind::InvalidInput));
        };
        state.check_directory("write", path, parent)?;
        state.temporaries += 1;
        let temporary = parent.join(format!(".{name}.1000.{}.tmp", state.temporaries));
        let fault = state.take_fault(path);
        let steps = [Fault::Write, Fault::Fsync, Fault::Close, Fault::Rename];
        for step in steps.into_iter().filter(|step| durable || *step != Fault::Fsync) {
            if step == Fault::Write {
                let half = if fault == Some(step) { content.len() / 2 } else { content.len() };
                let content = content.get(..half).unwrap_or_default().to_vec();
                state.nodes.insert(temporary.clone(), Node::File { content, mode });
            }
            if fault == Some(step) {
                state.nodes.remove(&temporary);
                return Err(failed(step.error()));
            }
        }
        if let Some(Node::Directory { .. }) = state.nodes.get(path) {
            state.nodes.remove(&temporary);
            return Err(failed(io::ErrorKind::IsADirectory));
        }
        if let Some(node) = state.nodes.remove(&temporary) {
            state.nodes.insert(path.to_owned(), node);
        }
        Ok(())
    }
}

impl Fault {
    fn error(self) -> io::ErrorKind {
        match self {
            Self::Write => io::ErrorKind::StorageFull,
            Self::Fsync | Self::Close => io::ErrorKind::Other,
            Self::Rename => io::ErrorKind::PermissionDenied,
        }
    }
}

fn io_error(action: &'static str, path: &Utf8Path, kind: io::ErrorKind) -> StoreError {
    StoreError::Io { action, path: path.to_owned(), source: kind.into() }
}

fn wrong_kind(path: &Utf8Path, found: &Node, expected: &'static str) -> StoreError {
    StoreError::WrongKind { path: path.to_owned(), found: found.in_words(), expected }
}

impl State {
    fn take_fault(&mut self, path: &Utf8Path) -> Option<Fault> {
        let meant = |(only, _): &(Option<Utf8PathBuf>, Fault)| {
            only.as_ref().is_none_or(|only| only == path)
        };
        let at = self.faults.iter().position(meant)?;
        Some(self.faults.remove(at).1)
    }

    fn check_directory(
        &self,
        action: &'static str,
        path: &Utf8Path,
        directory: &Utf8Path,
    ) -> Result<(), StoreError> {
        match self.nodes.get(directory) {
            Some(Node::Directory { .. }) => Ok(()),
            Some(_) => Err(io_error(action, path, io::ErrorKind::NotADirectory)),
            None => Err(io_error(action, path, io::ErrorKind::NotFound)),
        }
    }

    /// The content of a regular file, made if asked for.
    fn file(
        &mut self,
        action: &'static str,
        path: &Utf8Path,
        make: bool,
    ) -> Result<Option<&mut Vec<u8>>, StoreError> {
        if make && !self.nodes.contains_key(path) {
            let parent = path.parent().unwrap_or(Utf8Path::new("/"));
            self.check_directory(action, path, parent)?;
            let fresh = Node::File { content: Vec::new(), mode: 0o600 };
            self.nodes.insert(path.to_owned(), fresh);
        }
        match self.nodes.get_mut(path) {
            None => Ok(None),
            Some(Node::File { content, .. }) => Ok(Some(content)),
            Some(other) => Err(wrong_kind(path, other, "a regular file")),
        }
    }
}

#[derive(Debug)]
struct MemoryLock {
    state: Arc<Mutex<State>>,
    path: Utf8PathBuf,
}

impl StoreLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        lock(&self.state).locked.remove(&self.path);
    }
}

impl StateStore for MemoryStore {
    fn read(&self, path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match lock(&self.state).file("read", path, false)? {
            Some(content) if content.len() as u64 > limit => {
                Err(StoreError::TooLarge { path: path.to_owned(), limit })
            }
            content => Ok(content.cloned()),
        }
    }

    fn read_head(&self, path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut state = lock(&self.state);
        let content = state.file("read", path, false)?;
        Ok(content.map(|content| content[..content.len().min(wanted)].to_vec()))
    }

    fn write(&self, path: &Utf8Path, content: &[u8], mode: u32) -> Result<(), StoreError> {
        self.replace(path, content, mode, true)
    }

    fn publish(&self, path: &Utf8Path, content: &[u8], mode: u32) -> Result<(), StoreError> {
        self.replace(path, content, mode, false)
    }

    fn append_line(&self, path: &Utf8Path, line: &[u8]) -> Result<(), StoreError> {
        let action = "append to";
        if line.contains(&b'\n') {
            return Err(io_error(action, path, io::ErrorKind::InvalidInput));
        }
        let mut state = lock(&self.state);
        let fault = state.take_fault(path);
        let Some(content) = state.file(action, path, true)? else {
            return Err(io_error(action, path, io::ErrorKind::NotFound));
        };
        let before = content.len();
        if content.last().is_some_and(|last| *last != b'\n') {
            content.push(b'\n');
        }
        content.extend_from_slice(line);
        content.push(b'\n');
        if let Some(fault) = fault {
            content.truncate(before);
            return Err(io_error(action, path, fault.error()));
        }
        Ok(())
    }

    fn rotate(&self, path: &Utf8Path, old: &Utf8Path, limit: u64) -> Result<bool, StoreError> {
        let mut state = lock(&self.state);
        match state.file("rotate", path, false)? {
            Some(content) if content.len() as u64 >= limit => {}
            _ => return Ok(false),
        }
        if let Some(Node::Directory { .. }) = state.nodes.get(old) {
            return Err(io_error("rotate", path, io::ErrorKind::IsADirectory));
        }
        if let Some(node) = state.nodes.remove(path) {
            state.nodes.insert(old.to_owned(), node);
        }
        Ok(true)
    }

    fn remove(&self, path: &Utf8Path) -> Result<bool, StoreError> {
        let mut state = lock(&self.state);
        if let Some(Node::Directory { .. }) = state.nodes.get(path) {
            return Err(io_error("remove", path, io::ErrorKind::IsADirectory));
        }
        Ok(state.nodes.remove(path).is_some())
    }

    fn mode(&self, path: &Utf8Path) -> Result<Option<u32>, StoreError> {
        match lock(&self.state).nodes.get(path) {
            None => Ok(None),
            Some(Node::File { mode, .. }) => Ok(Some(*mode)),
            Some(other) => Err(wrong_kind(path, other, "a regular file")),
        }
    }

    fn link(&self, path: &Utf8Path, target: &Utf8Path) -> Result<bool, StoreError> {
        let mut state = lock(&self.state);
        let parent = path.parent().unwrap_or(Utf8Path::new("/"));
        state.check_directory("link", path, parent)?;
        match state.nodes.get(path) {
            Some(Node::Link(there)) if there == target => return Ok(false),
            None | Some(Node::Link(_) | Node::Planted(Planted::Symlink)) => {}
            Some(other) => return Err(wrong_kind(path, other, "a symbolic link")),
        }
        state.nodes.insert(path.to_owned(), Node::Link(target.to_owned()));
        Ok(true)
    }

    fn mend(&self, path: &Utf8Path) -> Result<Option<u32>, StoreError> {
        let mut state = lock(&self.state);
        let (mode, wanted) = match state.nodes.get_mut(path) {
            Some(Node::Directory { mode }) => (mode, 0o700),
            Some(Node::File { mode, .. }) => (mode, 0o600),
            _ => return Ok(None),
        };
        let before = *mode;
        *mode = wanted;
        Ok((before != *mode).then_some(before))
    }

    fn set_aside(&self, path: &Utf8Path, name: &str) -> Result<bool, StoreError> {
        let mut state = lock(&self.state);
        let aside = path.with_file_name(name);
        if let Some(Node::Directory { .. }) = state.nodes.get(&aside) {
            return Err(io_error("set aside", path, io::ErrorKind::IsADirectory));
        }
        let moved: Vec<Utf8PathBuf> =
            state.nodes.keys().filter(|other| other.starts_with(path)).cloned().collect();
        for from in &moved {
            let to = from.strip_prefix(path).map_or_else(
                |_| aside.clone(),
                |rest| if rest.as_str().is_empty() { aside.clone() } else { aside.join(rest) },
            );
            if let Some(node) = state.nodes.remove(from) {
                state.nodes.insert(to, node);
            }
        }
        Ok(!moved.is_empty())
    }

    fn remove_empty_dir(&self, path: &Utf8Path) -> Result<bool, StoreError> {
        let mut state = lock(&self.state);
        let linked = path.ancestors().skip(1).any(|above| {
            state.nodes.get(above).is_some_and(|node| !matches!(node, Node::Directory { .. }))
        });
        let filled = state.nodes.keys().any(|other| other != path && other.starts_with(path));
        if linked || filled || !matches!(state.nodes.get(path), Some(Node::Directory { .. })) {
            return Ok(false);
        }
        Ok(state.nodes.remove(path).is_some())
    }

    fn ensure_dir(&self, path: &Utf8Path) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        let missing: Vec<Utf8PathBuf> = path
            .ancestors()
            .take_while(|directory| !state.nodes.contains_key(*directory))
            .map(Utf8Path::to_owned)
            .collect();
        if let Some(parent) = missing.last().and_then(|top| top.parent()) {
            state.check_directory("create directory", path, parent)?;
        }
        for directory in missing {
            state.nodes.insert(directory, Node::Directory { mode: 0o700 });
        }
        match state.nodes.get_mut(path) {
            Some(Node::Directory { mode }) => {
                *mode = 0o700;
                Ok(())
            }
            Some(other) => Err(wrong_kind(path, other, "a directory")),
            None => Err(io_error("create directory", path, io::ErrorKind::NotFound)),
        }
    }

    fn list(&self, path: &Utf8Path) -> Result<Option<Vec<DirEntry>>, StoreError> {
        let state = lock(&self.state);
        match state.nodes.get(path) {
            None => return Ok(None),
            Some(Node::Directory { .. }) => {}
            Some(other) => return Err(wrong_kind(path, other, "a directory")),
        }
        let mut entries: Vec<DirEntry> = state
            .nodes
            .iter()
            .filter(|(entry, _)| entry.parent() == Some(path))
            .filter_map(|(entry, node)| {
                Some(DirEntry { name: entry.file_name()?.to_owned(), kind: node.kind() })
            })
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(entries))
    }

    fn try_lock(&self, path: &Utf8Path) -> Result<Option<Box<dyn StoreLock>>, StoreError> {
        let mut state = lock(&self.state);
        state.file("lock", path, true)?;
        if !state.locked.insert(path.to_owned()) {
            return Ok(None);
        }
        let held = MemoryLock { state: Arc::clone(&self.state), path: path.to_owned() };
        Ok(Some(Box::new(held)))
    }

    fn is_locked(&self, path: &Utf8Path) -> Result<bool, StoreError> {
        let mut state = lock(&self.state);
        state.file("look at the lock", path, false)?;
        Ok(state.locked.contains(path))
    }
}
