//! The fake against the suite; the real probe runs it in `fleet-sandbox`.

use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PathProbe};
use fleet_core::test_support::contract::path_probe::{NotRun, TreeFixture, path_probe_contract};
use fleet_core::test_support::fakes::MemoryTree;
use fleet_core::test_support::scene::path;

struct Memory(MemoryTree);

fn below(place: &str) -> String {
    format!("/base/{place}")
}

impl TreeFixture for Memory {
    fn root(&self) -> LexicalPath {
        path("/base")
    }
    fn dir(&mut self, at: &str, mode: u32) {
        self.0.dir_mode(&below(at), mode);
    }
    fn file(&mut self, at: &str, content: &[u8], mode: u32) {
        self.0.file_mode(&below(at), content, mode);
    }
    fn link(&mut self, at: &str, target: &str) {
        self.0.link(&below(at), target);
    }
    fn hard_link(&mut self, existing: &str, at: &str) {
        self.0.hard_link(&below(existing), &below(at));
    }
    fn special(&mut self, at: &str, kind: FileKind) {
        self.0.special(&below(at), kind);
    }
    fn bind(&mut self, from: &str, to: &str) -> bool {
        self.0.bind(&below(from), &below(to));
        true
    }
    fn closed_dir(&mut self, at: &str) -> bool {
        self.0.dir(&below(at)).deny(&below(&format!("{at}/x")));
        true
    }
    fn uid(&self) -> u32 {
        1000
    }
    fn probe(&self) -> Box<dyn PathProbe> {
        Box::new(self.0.clone())
    }
}

#[test]
fn memory_tree_keeps_the_contract() {
    let mut tree = MemoryTree::new();
    tree.dir("/base");
    assert_eq!(path_probe_contract(&mut Memory(tree)), NotRun::default());
}
