use camino::Utf8PathBuf;
use fleet_core::contract_tests;
use fleet_core::port::DirectoryWatches;
use fleet_core::test_support::contract::watch::WatchSubject;
use fleet_core::test_support::fakes::MemoryWatches;

struct Memory(MemoryWatches);

impl WatchSubject for Memory {
    fn watches(&self) -> &dyn DirectoryWatches {
        &self.0
    }

    fn directory(&self) -> Utf8PathBuf {
        "/sessions".into()
    }

    fn change(&self) {
        self.0.touch(&self.directory());
    }
}

fn memory() -> Memory {
    Memory(MemoryWatches::default())
}

contract_tests!(memory => watch: tells_of_changes);
