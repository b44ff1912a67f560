//! Loads a fleet file from a text and prints every problem, each as one line with its place.
//!
//! Nothing is read from disk: an editor, a server or a CI bot can do the same with a buffer.

use fleet_core::{ConfigSources, Harnesses, LexicalPath, LoadOptions, YamlMode, load};

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
    let sources = ConfigSources::base_only("/srv/fleet/fleet.yaml", text);
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
