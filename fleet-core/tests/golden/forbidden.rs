//! The whole list of forbidden paths: a changed entry is seen in review, and asks for a new version.

use std::fmt::Write as _;

use fleet_core::isolation::forbidden::ForbiddenList;
use fleet_core::test_support::scene::Scene;

#[test]
fn the_list_of_forbidden_paths() {
    let list = Scene::new().forbidden();
    let mut text = format!("version {}\n", ForbiddenList::VERSION);
    for entry in list.entries() {
        writeln!(text, "{} {} ({})", entry.tier.letter(), entry.path, entry.what).expect("a text");
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(text) });
}
