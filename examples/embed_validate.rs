//! Loads a fleet file from a text and prints every problem, each as one line with its place.
//!
//! Nothing is read from disk: an editor, a server or a CI bot can do the same with a buffer.

use camino::Utf8PathBuf;
use fleet_core::config::{ConfigSources, LoadOptions, SourceText, YamlMode, load};
use fleet_core::harness::Harnesses;
use fleet_core::path::LexicalPath;

const FLEET: &str = "\
defaults:
  harness: command
roles:
  writer:
    mision: Keep a notebook.
    harness_options: { argv: [cat] }
  reviewer:
    harness_options: { argv: [cat] }
    isolation: { network: denied }
";

/// Every problem of a fleet file, one line each.
pub(crate) fn problems(text: &str) -> Vec<String> {
    let path = Utf8PathBuf::from("/srv/fleet/fleet.yaml");
    let sources = ConfigSources {
        base_path: path.clone(),
        base: Some(SourceText { path, bytes: text.as_bytes().to_vec() }),
        drop_ins: Vec::new(),
    };
    let harnesses = Harnesses::built_in();
    let home = LexicalPath::root();
    let options = LoadOptions { yaml_mode: YamlMode::Strict, home: &home, harnesses: &harnesses };
    load(&sources, &options).diagnostics.iter().map(ToString::to_string).collect()
}

/// The lines this program prints.
pub(crate) fn run() -> Vec<String> {
    problems(FLEET)
}

#[expect(clippy::print_stdout, reason = "a program for the terminal")]
fn main() {
    for line in run() {
        println!("{line}");
    }
}
