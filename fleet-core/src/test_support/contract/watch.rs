//! The contract of [`DirectoryWatches`].
#![expect(
    clippy::missing_panics_doc,
    reason = "a contract suite panics where the contract is broken"
)]
#![expect(clippy::expect_used, reason = "a contract suite panics where the contract is broken")]

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use camino::Utf8PathBuf;

use crate::port::{DirectoryWatch, DirectoryWatches};

/// What the suite needs besides the port.
pub trait WatchSubject: Sync {
    /// The port under test.
    fn watches(&self) -> &dyn DirectoryWatches;

    /// A directory for this test alone. It exists.
    fn directory(&self) -> Utf8PathBuf;

    /// Writes a file in it.
    fn change(&self);
}

async fn is_quiet(watch: &mut dyn DirectoryWatch) -> bool {
    let mut change = pin!(watch.changed());
    !poll_fn(|context| Poll::Ready(change.as_mut().poll(context).is_ready())).await
}

/// A change after the beginning of the watch is told, also one before anybody waits.
pub async fn tells_of_changes(subject: &impl WatchSubject) {
    let mut watch = subject.watches().watch(&subject.directory()).expect("it is watched");
    assert!(is_quiet(&mut *watch).await, "nothing happened yet");
    for _ in 0..3 {
        subject.change();
        watch.changed().await.expect("a change");
    }
}

/// One watch of several directories tells of each of them.
pub async fn tells_of_changes_in_any(subject: &impl WatchSubject, quiet: &camino::Utf8Path) {
    let directory = subject.directory();
    for directories in [[quiet, &*directory], [&*directory, quiet]] {
        let mut watch = subject.watches().watch_all(&directories).expect("they are watched");
        assert!(is_quiet(&mut *watch).await, "nothing happened yet");
        subject.change();
        watch.changed().await.expect("a change");
    }
}
