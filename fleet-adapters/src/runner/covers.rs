//! Watches what a launch covers in a project: where an entry is replaced on the host, the cover is gone
//! inside, and the role's report says so.

use std::time::Duration;

use camino::Utf8Path;
use fleet_core::isolation::covers::Covers;
use fleet_core::layout::RoleTrees;
use fleet_core::port::{DirectoryWatch, RunState};

use super::agent::Observer;
use super::{Runtime, leftovers};

/// A burst of changes is one: the agent works in the directory that is watched.
const COALESCE: Duration = Duration::from_millis(200);
/// How often to look where nothing can be watched.
const SELDOM: Duration = Duration::from_secs(5);

/// Tells the observer what is not covered any more, as it happens. Returns at once where nothing is
/// covered, otherwise never.
///
/// # Cancel safety
/// Reads only.
pub(super) async fn follow(
    runtime: &Runtime,
    trees: &RoleTrees,
    mut covers: Covers,
    observer: &Observer,
) {
    if covers.directories().is_empty() {
        return;
    }
    let directories: Vec<_> =
        covers.directories().iter().map(|it| it.as_path().to_owned()).collect();
    let directories: Vec<&Utf8Path> = directories.iter().map(|it| &**it).collect();
    let mut watch: Option<Box<dyn DirectoryWatch>> = None;
    loop {
        // Before the look, so that nothing happens between the two unseen.
        if watch.is_none() {
            watch = runtime.ports.watches.watch_all(&directories).ok();
        }
        let lost = covers.look(&*runtime.ports.paths.fresh());
        // A launcher takes away what it made to cover it, when its sandbox has ended.
        if lost.is_empty() || leftovers::sandbox(runtime, trees) != RunState::Stopped {
            observer.set_uncovered(&lost);
        }
        match &mut watch {
            Some(told) => {
                if told.changed().await.is_err() {
                    watch = None;
                }
                runtime.ports.clock.sleep(COALESCE).await;
            }
            None => runtime.ports.clock.sleep(SELDOM).await,
        }
    }
}
