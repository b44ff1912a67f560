use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use crate::path::{LexicalPath, LexicalPathError};

/// Names one file system object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A Unix socket.
    Socket,
    /// A FIFO.
    Fifo,
    /// A block or character device.
    Device,
}

/// What is known of an existing object. Never describes a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Device and inode.
    pub identity: FileIdentity,
    /// What it is.
    pub kind: FileKind,
    /// Owner.
    pub uid: u32,
    /// Permission bits, `mode & 0o7777`.
    pub mode: u32,
    /// Number of hard links.
    pub links: u64,
}

/// A symbolic link that was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedLink {
    /// Where it lies, links above it followed.
    pub at: LexicalPath,
    /// Identities of the directories above it, nearest first, the root last.
    pub above: Vec<FileIdentity>,
}

/// A path after all links were followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Where the path leads, also when nothing is there (a dangling link gives its target).
    pub path: LexicalPath,
    /// The object, if it exists.
    pub object: Option<FileFacts>,
    /// Identities of every existing directory above the object, nearest first, the root last.
    pub ancestors: Vec<FileIdentity>,
    /// The links that were followed, in their order. Who can change one of them decides where the path
    /// leads.
    pub links: Vec<FollowedLink>,
}

impl Resolved {
    /// A path of which nothing is known: no link, and nothing there.
    pub fn nothing_at(path: LexicalPath) -> Self {
        Self { path, object: None, ancestors: Vec::new(), links: Vec::new() }
    }
}

/// Why a path could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathProbeError {
    /// More than 40 links.
    #[error("too many symbolic links at {path}")]
    Loop {
        /// The path asked for.
        path: String,
    },
    /// A component that must be a directory is not one.
    #[error("a component of {path} is not a directory")]
    NotADirectory {
        /// The path asked for.
        path: String,
    },
    /// The fleet user may not look there.
    #[error("no permission to look at {path}")]
    Denied {
        /// The path asked for.
        path: String,
    },
    /// A link leads to a name that is not UTF-8 or otherwise not a plain path.
    #[error("a link on the way to {path} leads to an unusable name: {reason}")]
    BadTarget {
        /// The path asked for.
        path: String,
        /// What is wrong with the target.
        reason: LexicalPathError,
    },
    /// Any other failure of the system.
    #[error("failed to look at {path}: {detail}")]
    Io {
        /// The path asked for.
        path: String,
        /// The system's words.
        detail: String,
    },
}

/// Looks at the file system without changing anything.
///
/// Answers describe the moment of the call: the launcher asks again right before it uses a path and
/// refuses when an identity has changed. Blocking, but only for a few system calls.
pub trait PathProbe: Send + Sync + Debug {
    /// Follows every link of `path`, component by component. A link whose target is missing
    /// contributes the target's path and resolution goes on; a missing component is no error.
    fn resolve(&self, path: &LexicalPath) -> Result<Resolved, PathProbeError>;

    /// Mount points strictly inside `directory`, which must be resolved, each with the identity of
    /// what is mounted there.
    fn mounts_below(
        &self,
        directory: &LexicalPath,
    ) -> Result<Vec<(LexicalPath, FileIdentity)>, PathProbeError>;

    /// The first `limit` bytes of a regular file, which must be resolved: enough for a `#!` line.
    fn head(&self, file: &LexicalPath, limit: usize) -> Result<Vec<u8>, PathProbeError>;

    /// At most the first `limit` bytes of a regular file that was looked at before.
    ///
    /// # Security
    /// They are read from one descriptor, opened by a path without links, and only if the object behind
    /// it is the one of `identity`: what was put in its place meanwhile is an error.
    fn content(
        &self,
        file: &LexicalPath,
        identity: FileIdentity,
        limit: usize,
    ) -> Result<Vec<u8>, PathProbeError>;

    /// The names in a directory, which must be resolved: at most `limit`, in bytewise order, without
    /// those that are not UTF-8. Which ones are left out beyond the limit is not defined.
    fn entries(&self, directory: &LexicalPath, limit: usize)
    -> Result<Vec<String>, PathProbeError>;

    /// Whether names on the file system of `path` differ only by case from one another.
    /// `false` where that cannot be told.
    fn ignores_case(&self, path: &LexicalPath) -> bool;
}

/// Makes a [`PathProbe`] for one judgement or one launch: what a probe remembers of the file system is
/// never older than that.
pub trait PathProbes: Send + Sync + Debug {
    /// A probe that remembers nothing yet.
    fn fresh(&self) -> Box<dyn PathProbe>;
}
