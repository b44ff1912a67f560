use std::fmt::Debug;
use std::io;

use async_trait::async_trait;
use camino::Utf8Path;

/// One directory under watch.
#[async_trait]
pub trait DirectoryWatch: Send + Debug {
    /// Returns after something in the directory was made, changed or taken away since the watch began
    /// or since the last return. An error ends the watch: the directory is gone, for example.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    async fn changed(&mut self) -> io::Result<()>;
}

/// Tells when directories change, without asking again and again.
pub trait DirectoryWatches: Send + Sync + Debug {
    /// Watches a directory itself, never what a link leads to. It is not entered: what is inside its
    /// subdirectories is not seen.
    fn watch(&self, directory: &Utf8Path) -> io::Result<Box<dyn DirectoryWatch>> {
        self.watch_all(&[directory])
    }

    /// The same of several directories at once, by one watch. One of them that goes ends it.
    fn watch_all(&self, directories: &[&Utf8Path]) -> io::Result<Box<dyn DirectoryWatch>>;
}
