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

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_schema_that_is_checked_in_is_that_of_the_program() {
    use fleet_core::config::{SchemaOf, schema};
    use fleet_core::harness::Harnesses;

    for (name, of, flag) in [
        ("fleet.schema.json", SchemaOf::Base, ""),
        ("fleet.d.schema.json", SchemaOf::DropIn, " --drop-in"),
    ] {
        let file = repository().join("docs").join(name);
        let there = std::fs::read_to_string(&file).expect("the schema");
        let text = serde_json::to_string_pretty(&schema(of, &Harnesses::built_in()));
        let made = text.expect("JSON") + "\n";
        assert!(there == made, "run `ours-fleet schema{flag} > docs/{name}`");
        let schema = serde_json::from_str(&there).expect("JSON");
        jsonschema::meta::validate(&schema).expect("a schema of the draft that it names");
    }
}

#[test]
fn the_schema_accepts_every_example() {
    fn fleets(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in
            folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            if entry.is_dir() {
                fleets(&entry, found);
            } else if entry.extension().is_some_and(|extension| extension == "yaml") {
                found.push(entry);
            }
        }
    }
    let text = std::fs::read_to_string(repository().join("docs/fleet.schema.json"));
    let schema = serde_json::from_str(&text.expect("the schema")).expect("JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let mut found = Vec::new();
    fleets(&repository().join("examples"), &mut found);
    found.retain(|file| !file.components().any(|part| part.as_os_str() == "workflows"));
    assert!(found.len() >= 7, "{found:?}");
    for file in found {
        let bytes = std::fs::read(&file).expect("a file");
        let document = crate::schema::document(&bytes).expect("YAML");
        // Other tools have files of this kind in the examples too.
        if document.get("roles").is_none() {
            continue;
        }
        assert_eq!(crate::schema::remarks(&validator, &document), [""; 0], "{}", file.display());
    }
}
