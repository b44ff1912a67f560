//! Checks of the repository itself.

use std::path::{Path, PathBuf};

/// Files that only test binaries of other crates include.
const ELSEWHERE: &[&str] = &["support/skip.rs"];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            rust_files(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

/// A file that no `mod` names is never compiled, and its tests never run.
#[test]
fn every_test_file_is_listed() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
    let mut files = Vec::new();
    rust_files(root, &mut files);
    assert!(files.len() > 5, "the folder of tests was not found");
    let main = std::fs::read_to_string(root.join("main.rs")).expect("main.rs");
    for file in files.iter().filter(|file| **file != root.join("main.rs")) {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let folder = file.parent().expect("a folder");
        let relative = file.strip_prefix(root).expect("below tests").display().to_string();
        if ELSEWHERE.contains(&relative.as_str()) {
            continue;
        }
        let (name, listing) = if stem == "mod" {
            let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
            (name, main.clone())
        } else if folder == root {
            (stem, main.clone())
        } else if let Ok(listing) = std::fs::read_to_string(folder.join("mod.rs")) {
            (stem, listing)
        } else if let Ok(listing) = std::fs::read_to_string(folder.with_extension("rs")) {
            (stem, listing)
        } else {
            assert!(
                main.contains(&format!("#[path = \"{relative}\"]")),
                "{relative} is not listed"
            );
            continue;
        };
        let listed = |line: &str| {
            line == format!("mod {name};") || line == format!("pub(crate) mod {name};")
        };
        assert!(listing.lines().any(|line| listed(line.trim())), "{relative} is not listed");
    }
}
