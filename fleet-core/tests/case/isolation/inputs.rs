//! What a policy is made from: paths, and what the operator's harness home holds.

use std::collections::BTreeMap;

use fleet_core::harness::shared::{MAX_FILES, operator_home};
use fleet_core::launch::Environment;
use fleet_core::programs::ProgramTrust;
use fleet_core::test_support::scene::SPEC;
use fleet_core::world::World;

use super::*;

#[test]
fn a_path_may_hold_any_letter_and_no_control_character() {
    for fine in ["/home/ü/日本", "/a b/~c/$d", "/-", "/…"] {
        let path = LexicalPath::absolute(fine).expect(fine);
        assert_eq!(String::from(path.clone()), fine);
        assert_eq!(serde_json::to_value(&path).expect("text"), fine);
    }
    for bad in ["/a\u{7f}", "/a\u{85}", "/ü\u{9b}1m", "/a\tb", "/\u{1b}"] {
        let refused = LexicalPath::absolute(bad);
        assert_eq!(refused, Err(LexicalPathError::ControlCharacter), "{bad:?}");
    }
}

/// A directory that is shared file by file is shared up to a limit, and what is left out is said.
#[test]
fn shared_files_end_at_the_limit_and_it_is_said() {
    let shared = |files: usize| {
        let mut scene = Scene::new();
        scene.operator_home();
        // Two are there already.
        for number in 2..files {
            scene.tree.file(&format!("/home/u/.claude/rules/r{number:04}"), "x");
        }
        let found = scene.shared_by(&SPEC);
        let count = found.items.iter().filter(|item| item.name.starts_with("rules/")).count();
        let said: Vec<String> = found.absent.into_iter().map(|item| item.reason).collect();
        (count, said)
    };
    assert_eq!(shared(MAX_FILES), (MAX_FILES, Vec::new()));
    let (count, said) = shared(MAX_FILES + 1);
    assert_eq!(count, MAX_FILES);
    assert_eq!(said, ["holds more than 256 entries: the others are not shared"]);
}

#[test]
fn the_operators_home_is_what_the_variable_names_or_the_usual_place() {
    let scene = Scene::new();
    let home = |own: Option<&str>, role_env: &str| {
        let own = own.map(|value| (SPEC.variable.to_owned(), value.to_owned()));
        let world = World {
            homes: scene.homes.clone(),
            layout: scene.layout(),
            uid: scene.uid,
            user: "u".to_owned(),
            env: Environment(own.into_iter().collect::<BTreeMap<_, _>>()),
            path_dirs: Vec::new(),
            relocated: Vec::new(),
            sockets: Vec::new(),
            binary: "/usr/bin/ours-fleet".into(),
            version: "0".to_owned(),
            passed_over: Vec::new(),
            trust: ProgramTrust::default(),
        };
        let role = crate::claude::around(role_env).role;
        operator_home(&SPEC, &world, &role).map(|path| path.to_string())
    };
    let none = "cwd: /srv/project";
    assert_eq!(home(None, none).as_deref(), Ok("/home/u/.claude"));
    assert_eq!(home(Some(""), none).as_deref(), Ok("/home/u/.claude"), "empty is not set");
    assert_eq!(home(Some("/data/dots"), none).as_deref(), Ok("/data/dots"));
    let of_role = "env: {AGENT_HOME: /data/own}";
    assert_eq!(home(Some("/data/dots"), of_role).as_deref(), Ok("/data/own"), "the role's wins");
    let refused = home(Some("../dots"), none).expect_err("relative");
    assert!(refused.contains("`AGENT_HOME` in fleet's own environment"), "{refused}");
    assert!(!refused.contains("dots"), "the value is not shown: {refused}");
}
