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
    fn watch_all(&self, directories: &[&Utf8Path]) -> io::Result<Box<dyn DirectoryWatch>> {
        let mut counts = lock(&self.inner.counts);
        let directories: Vec<Utf8PathBuf> =
            directories.iter().map(|directory| (*directory).to_owned()).collect();
        let seen =
            directories.iter().map(|directory| *counts.entry(directory.clone()).or_default()).sum();
        drop(counts);
        Ok(Box::new(MemoryWatch { inner: Arc::clone(&self.inner), directories, seen }))
    }
}

#[derive(Debug)]
struct MemoryWatch {
    inner: Arc<Inner>,
    directories: Vec<Utf8PathBuf>,
    /// How often they had changed together.
    seen: u64,
}

#[async_trait]
impl DirectoryWatch for MemoryWatch {
    async fn changed(&mut self) -> io::Result<()> {
        let (inner, directories, seen) = (&self.inner, &self.directories, self.seen);
        let look = || {
            let counts = lock(&inner.counts);
            let now = directories.iter().filter_map(|directory| counts.get(directory)).sum();
            (now != seen).then_some(now)
        };
        self.seen = inner.changes.wait(look).await;
        Ok(())
    }
}
