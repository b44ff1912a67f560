use std::fmt::Debug;

use camino::{Utf8Path, Utf8PathBuf};

/// What a directory entry is. A link is reported as a link, never followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Other,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// Why a file operation failed. The old content is still in place unless the text says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("failed to {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: Utf8PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The file is larger than the caller accepts.
    #[error("{path} is larger than {limit} bytes")]
    TooLarge {
        /// The file.
        path: Utf8PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// A link or a special file stands where a regular file or directory is expected.
    #[error("{path} is {found}, expected {expected}")]
    WrongKind {
        /// The path.
        path: Utf8PathBuf,
        /// What is there.
        found: &'static str,
        /// What was expected.
        expected: &'static str,
    },
}

impl StoreError {
    /// Whether the reason is that the file or directory does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }
}

/// A kernel lock, held until dropped and released by the kernel when the holder dies.
pub trait StoreLock: Send + Sync + Debug {}

/// Files that other processes read while we write them (02 §2.4).
///
/// All paths are absolute. Files get mode 0600 and directories 0700, set explicitly, unless another
/// mode is given. Every call blocks for the time of the file operation only.
pub trait StateStore: Send + Sync + Debug {
    /// The whole file, or `None` if it does not exist. A link, a special file or more than `limit`
    /// bytes is an error.
    fn read(&self, path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// The first `limit` bytes of a file, or all of it if it is shorter; `None` if it does not exist.
    /// A link or a special file is an error.
    fn read_head(&self, path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces the file atomically: readers see the old content or the new, never a part. On `Ok`
    /// the content is on disk. On an error the old file stands and no temporary file is left.
    fn write(&self, path: &Utf8Path, content: &[u8], mode: u32) -> Result<(), StoreError>;

    /// As [`StateStore::write`], but does not wait for the disk: a power failure may lose the new
    /// content. For what is published often and means nothing after a reboot, such as a status,
    /// where waiting for the disk would cost more than the whole rest of a start.
    fn publish(&self, path: &Utf8Path, content: &[u8], mode: u32) -> Result<(), StoreError>;

    /// Appends one line. The newline is added. A failed append leaves the file as it was; a partial
    /// last line of an earlier crash is ended first, so records never fuse. A line that holds a
    /// newline is refused. One writer a file.
    fn append_line(&self, path: &Utf8Path, line: &[u8]) -> Result<(), StoreError>;

    /// Moves a file that holds at least `limit` bytes to `old`, replacing what stands there; tells
    /// whether it did. A file that is smaller or missing is left alone, a link or a special file is an
    /// error. Both paths are in the same directory.
    fn rotate(&self, path: &Utf8Path, old: &Utf8Path, limit: u64) -> Result<bool, StoreError>;

    /// Removes a file; tells whether it existed.
    fn remove(&self, path: &Utf8Path) -> Result<bool, StoreError>;

    /// The permission bits of a regular file, or `None` if it does not exist. A link or a special file
    /// is an error.
    fn mode(&self, path: &Utf8Path) -> Result<Option<u32>, StoreError>;

    /// Gives a directory, a regular file or a socket the mode that fleet made it with, so that its owner
    /// has all rights to a directory and those to read and write to a file, and nobody else has any;
    /// tells the permission bits of before if anything changed. A link, another special file, what
    /// belongs to another user and what does not exist are left alone, which is no error.
    fn mend(&self, path: &Utf8Path) -> Result<Option<u32>, StoreError>;

    /// Makes a symbolic link that says exactly `target`, in place of another link; tells whether
    /// anything changed. The change is atomic. What stands there and is no link is left, which is an
    /// error, and so is a link in the place of the directory.
    fn link(&self, path: &Utf8Path, target: &Utf8Path) -> Result<bool, StoreError>;

    /// Gives an entry of any kind another name in its directory, following nothing; tells whether it
    /// was there. A file that has that name is replaced, a directory that has it is an error.
    fn set_aside(&self, path: &Utf8Path, name: &str) -> Result<bool, StoreError>;

    /// Removes a directory if it is empty and no link is on the way to it; tells whether it did. One
    /// that is missing, holds something or is behind a link is left alone, which is no error.
    fn remove_empty_dir(&self, path: &Utf8Path) -> Result<bool, StoreError>;

    /// Makes a directory and its missing parents, each with mode 0700, and sets that mode on the
    /// last one if it exists. A link, a file or a directory of another user in the place of the last
    /// one is an error.
    fn ensure_dir(&self, path: &Utf8Path) -> Result<(), StoreError>;

    /// The entries of a directory in bytewise name order, or `None` if it does not exist.
    /// Names that are not UTF-8 are left out.
    fn list(&self, path: &Utf8Path) -> Result<Option<Vec<DirEntry>>, StoreError>;

    /// Takes the lock of a file, creating the file if needed; `None` if another holder has it, also
    /// one in this process.
    fn try_lock(&self, path: &Utf8Path) -> Result<Option<Box<dyn StoreLock>>, StoreError>;

    /// Whether somebody holds the lock of a file, without keeping anybody from taking it. A file that
    /// does not exist is not locked and is not made.
    fn is_locked(&self, path: &Utf8Path) -> Result<bool, StoreError>;
}
