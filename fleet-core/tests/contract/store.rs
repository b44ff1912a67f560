use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::contract_tests;
use fleet_core::port::StateStore;
use fleet_core::test_support::contract::store::StoreSubject;
use fleet_core::test_support::fakes::{Fault, MemoryStore, Planted};

struct Memory {
    store: MemoryStore,
}

impl StoreSubject for Memory {
    fn store(&self) -> &dyn StateStore {
        &self.store
    }

    fn root(&self) -> Utf8PathBuf {
        "/fleet".into()
    }

    fn put(&self, path: &Utf8Path, content: &[u8]) {
        self.store.put(path, content);
    }

    fn link(&self, path: &Utf8Path, _: &Utf8Path) {
        self.store.plant(path, Planted::Symlink);
    }

    fn special(&self, path: &Utf8Path) {
        self.store.plant(path, Planted::Special);
    }

    fn mode(&self, path: &Utf8Path) -> u32 {
        self.store.mode(path).expect("it exists")
    }
}

fn memory() -> Memory {
    Memory { store: MemoryStore::default() }
}

contract_tests!(blocking memory => store:
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

#[test]
fn each_fault_leaves_the_old_file_and_nothing_else() {
    let store = MemoryStore::default();
    let (dir, file) = (Utf8Path::new("/fleet"), Utf8Path::new("/fleet/ledger.json"));
    store.ensure_dir(dir).expect("it is made");
    store.write(file, b"old", 0o600).expect("it is written");
    for fault in [Fault::Write, Fault::Fsync, Fault::Close, Fault::Rename] {
        store.fail_next(Some(file), fault);
        assert!(store.write(file, b"new content", 0o600).is_err(), "{fault:?}");
        assert_eq!(store.content(file).as_deref(), Some(&b"old"[..]), "{fault:?}");
        assert_eq!(store.paths(), [dir, file], "{fault:?}");
        store.fail_next(None, fault);
        assert!(store.append_line(file, b"new").is_err(), "{fault:?}");
        assert_eq!(store.content(file).as_deref(), Some(&b"old"[..]), "{fault:?}");
    }
    // A publish waits for no disk, so only the other steps can fail.
    store.fail_next(None, Fault::Fsync);
    store.publish(file, b"new", 0o600).expect("no disk was asked");
    store.write(file, b"newer", 0o600).expect("the fault was used up");
}
