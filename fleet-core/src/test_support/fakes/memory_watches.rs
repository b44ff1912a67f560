use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};

use crate::port::{DirectoryWatch, DirectoryWatches};
use crate::test_support::sync::{Changes, lock};

/// Watches that a test sets off. Copies share everything.
#[derive(Debug, Clone, Default)]
pub struct MemoryWatches {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// How often each watched directory changed.
    counts: Mutex<BTreeMap<Utf8PathBuf, u64>>,
    changes: Changes,
}

impl MemoryWatches {
    /// Says that a directory changed.
    pub fn touch(&self, directory: &Utf8Path) {
        *lock(&self.inner.counts).entry(directory.to_owned()).or_default() += 1;
        self.inner.changes.announce();
    }

    /// Whether somebody watches or watched a directory.
    pub fn is_watched(&self, directory: &Utf8Path) -> bool {
        lock(&self.inner.counts).contains_key(directory)
    }
}

impl DirectoryWatches for MemoryWatches {
    fn watch(&self, directory: &Utf8Path) -> io::Result<Box<dyn DirectoryWatch>> {
        let seen = *lock(&self.inner.counts).entry(directory.to_owned()).or_default();
        let inner = Arc::clone(&self.inner);
        Ok(Box::new(MemoryWatch { inner, directory: directory.to_owned(), seen }))
    }
}

#[derive(Debug)]
struct MemoryWatch {
    inner: Arc<Inner>,
    directory: Utf8PathBuf,
    seen: u64,
}

#[async_trait]
impl DirectoryWatch for MemoryWatch {
    async fn changed(&mut self) -> io::Result<()> {
        let (inner, directory, seen) = (&self.inner, &self.directory, self.seen);
        let look = || lock(&inner.counts).get(directory).copied().filter(|now| *now != seen);
        self.seen = inner.changes.wait(look).await;
        Ok(())
    }
}
