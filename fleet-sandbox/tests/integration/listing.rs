//! A file below `tests/` that no module list names would silently not run.

use camino::Utf8Path;

#[test]
fn every_file_below_tests_is_listed() {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let main = std::fs::read_to_string(root.join("main.rs")).expect("main.rs");
    let mut seen = 0;
    for tier in root.read_dir_utf8().expect("tests").flatten() {
        let directory = tier.file_name();
        if !tier.path().is_dir() || ["programs", "support"].contains(&directory) {
            continue;
        }
        let listed = main.split_once(&format!("mod {directory} {{")).map(|(_, rest)| rest);
        let listed = listed.and_then(|rest| rest.split_once("\n}")).map(|(block, _)| block);
        let block = listed.unwrap_or_else(|| panic!("{directory} is not listed"));
        for file in tier.path().read_dir_utf8().expect("tier").flatten() {
            if let Some(name) = file.file_name().strip_suffix(".rs") {
                assert!(block.contains(&format!("mod {name};")), "{directory}/{name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 10);
}
