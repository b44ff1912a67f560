use camino::Utf8PathBuf;
use fleet_adapters::InotifyWatches;
use fleet_core::contract_tests;
use fleet_core::port::DirectoryWatches;
use fleet_core::test_support::contract;
use fleet_core::test_support::contract::watch::WatchSubject;
use tempfile::TempDir;

use crate::support::{temp, utf8};

struct Real {
    dir: TempDir,
}

impl WatchSubject for Real {
    fn watches(&self) -> &dyn DirectoryWatches {
        &InotifyWatches
    }

    fn directory(&self) -> Utf8PathBuf {
        utf8(&self.dir)
    }

    fn change(&self) {
        std::fs::write(self.directory().join("record"), "x").expect("it is written");
    }
}

fn real() -> Real {
    Real { dir: temp() }
}

contract_tests!(real => watch: tells_of_changes);

#[tokio::test]
async fn one_watch_of_several_tells_of_each() {
    let quiet = temp();
    contract::watch::tells_of_changes_in_any(&real(), &utf8(&quiet)).await;
}

/// A link is not followed, and a directory that goes ends its watch.
#[tokio::test]
async fn only_the_directory_itself_is_watched() {
    let dir = temp();
    let (sub, link) = (utf8(&dir).join("sub"), utf8(&dir).join("link"));
    std::fs::create_dir(&sub).expect("it is made");
    std::os::unix::fs::symlink(&sub, &link).expect("it is made");
    assert!(InotifyWatches.watch(&link).is_err());
    assert!(InotifyWatches.watch(&utf8(&dir).join("missing")).is_err());
    let mut watch = InotifyWatches.watch(&sub).expect("it is watched");
    std::fs::remove_dir(&sub).expect("it is removed");
    let end = async { while watch.changed().await.is_ok() {} };
    tokio::time::timeout(std::time::Duration::from_secs(5), end).await.expect("the watch ends");
}
