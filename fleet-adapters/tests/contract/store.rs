use std::os::unix::fs::{PermissionsExt, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_adapters::FileStore;
use fleet_core::contract_tests;
use fleet_core::port::StateStore;
use fleet_core::test_support::contract::store::StoreSubject;
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

use crate::support::{temp, utf8};

struct Real {
    dir: TempDir,
}

impl StoreSubject for Real {
    fn store(&self) -> &dyn StateStore {
        &FileStore
    }

    fn root(&self) -> Utf8PathBuf {
        utf8(&self.dir).join("fleet")
    }

    fn put(&self, path: &Utf8Path, content: &[u8]) {
        std::fs::write(path, content).expect("it is written");
    }

    fn link(&self, path: &Utf8Path, target: &Utf8Path) {
        symlink(target, path).expect("it is made");
    }

    fn special(&self, path: &Utf8Path) {
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, path.as_std_path(), FileType::Fifo, mode, 0).expect("it is made");
    }

    fn mode(&self, path: &Utf8Path) -> u32 {
        path.symlink_metadata().expect("it exists").permissions().mode() & 0o7777
    }
}

fn real() -> Real {
    Real { dir: temp() }
}

contract_tests!(blocking real => store:
    writes_whole_files,
    failed_writes_change_nothing,
    writes_never_follow_links,
    reads_only_regular_files_of_a_size,
    reads_the_head_of_a_file,
    appends_whole_lines,
    rotates_large_files,
    removes_files,
    removes_empty_directories,
    makes_links,
    sets_aside,
    mends_modes,
    tells_modes,
    makes_private_directories,
    lists_in_order,
    locks_have_one_holder,
);
