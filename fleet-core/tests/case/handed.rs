//! Files that fleet reads for a role are judged as if they were mounted.

use fleet_core::diagnostic::Code;
use fleet_core::isolation::handed::Handed;
use fleet_core::port::PathProbe as _;
use fleet_core::test_support::scene::{Scene, path};
use rstest::rstest;

const BRIEFING: &str = "briefing_file";

fn judged(scene: &Scene, file: &str) -> Result<Handed, String> {
    let policy = scene.resolve().expect("the role itself is sound");
    let forbidden = scene.forbidden();
    Handed::judge(&path(file), BRIEFING, Some(&policy), &forbidden, &scene.tree).map_err(
        |problem| {
            assert_eq!(problem.path, BRIEFING);
            problem.to_string()
        },
    )
}

#[track_caller]
fn refused(scene: &Scene, file: &str, words: &[&str]) {
    let told = judged(scene, file).expect_err("must be refused");
    for word in words {
        assert!(told.contains(word), "{word}: {told}");
    }
}

/// Two roles: `A` is told, an agent of the fleet writes in `/home/u/grant`.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.tree.file("/home/u/grant/team/letter", "Be kind.");
    scene.tree.file("/home/u/papers/letter", "private");
    scene.agent_dirs = vec![path("/home/u/grant")];
    scene
}

#[rstest]
#[case::a_key("/home/u/.ssh/id_ed25519", "keys and credentials")]
#[case::the_fleet_file("/home/u/fleet.yaml", "fleet configuration")]
#[case::state_of_its_own("/home/u/.ours-fleet/agents/A/x.md", "state of the fleet")]
#[case::handout_of_another("/home/u/.ours-fleet/handout/B/briefing.md", "state of the fleet")]
#[case::control_of_its_own("/home/u/.ours-fleet/control/A/token.md", "state of the fleet")]
#[case::the_system("/proc/1/environ", "part of the system")]
fn what_may_not_be_mounted_is_not_handed_over_either(#[case] file: &str, #[case] why: &str) {
    refused(&scene(), file, &[why]);
    // The control: an ordinary file.
    let handed = judged(&scene(), "/home/u/notes.txt").expect("nothing is wrong with it");
    assert_eq!(handed.read(&scene().tree, 99).expect("it is there"), b"notes");
}

#[test]
fn a_second_name_of_a_key_is_the_key() {
    let mut scene = scene();
    scene.tree.hard_link("/home/u/.ssh/id_ed25519", "/home/u/lib/brief.md");
    refused(&scene, "/home/u/lib/brief.md", &["keys and credentials"]);
}

#[test]
fn no_agent_chooses_by_a_link_what_is_read_for_another() {
    let mut scene = scene();
    let file = "/home/u/grant/team/letter";
    // The control: no link yet.
    assert_eq!(judged(&scene, file).expect("a plain file").path, path(file));
    scene.tree.remove("/home/u/grant/team").link("/home/u/grant/team", "../papers");
    refused(&scene, file, &["/home/u/papers/letter", "/home/u/grant/team", "an agent may write"]);
    // The same link where no agent writes, and one that leads to something of the same directory.
    scene.agent_dirs.clear();
    assert_eq!(judged(&scene, file).expect("the operator's").path, path("/home/u/papers/letter"));
    scene.agent_dirs = vec![path("/home/u/grant")];
    scene.tree.remove("/home/u/grant/team").link("/home/u/grant/team", "real");
    scene.tree.file("/home/u/grant/real/letter", "Be kind.");
    assert_eq!(judged(&scene, file).expect("its own").path, path("/home/u/grant/real/letter"));
}

#[test]
fn what_the_role_itself_may_write_counts_as_well() {
    let mut scene = scene();
    scene.agent_dirs.clear();
    scene.tree.remove("/home/u/grant/team").link("/home/u/grant/team", "../papers");
    assert!(judged(&scene, "/home/u/grant/team/letter").is_ok(), "nobody writes there");
    scene.write("/home/u/grant");
    refused(&scene, "/home/u/grant/team/letter", &["an agent may write"]);
}

#[test]
fn only_texts_beside_the_drop_ins_are_no_configuration() {
    let mut scene = scene();
    for name in ["brief.md", "x.yaml", "x.yaml.bak", ".brief.md", "below/brief.md"] {
        scene.tree.file(&format!("/home/u/fleet.d/{name}"), "text");
    }
    assert!(judged(&scene, "/home/u/fleet.d/brief.md").is_ok());
    for name in ["x.yaml", "x.yaml.bak", ".brief.md", "below/brief.md"] {
        refused(&scene, &format!("/home/u/fleet.d/{name}"), &["fleet configuration"]);
    }
    scene.tree.hard_link("/home/u/fleet.yaml", "/home/u/fleet.d/other.md");
    refused(&scene, "/home/u/fleet.d/other.md", &["fleet configuration"]);
    scene.forbid_paths = vec![path("/home/u/fleet.d/brief.md")];
    refused(&scene, "/home/u/fleet.d/brief.md", &["policy.forbid_paths"]);
}

#[test]
fn what_took_the_place_of_the_judged_file_is_not_read() {
    let mut scene = scene();
    let file = "/home/u/grant/team/letter";
    let handed = judged(&scene, file).expect("a plain file");
    scene.tree.remove("/home/u/grant/team").link("/home/u/grant/team", "../papers");
    let told = handed.read(&scene.tree, 99).expect_err("a link now").to_string();
    assert!(told.contains("replaced meanwhile"), "{told}");
    // Another file under the very name.
    scene.tree.remove("/home/u/grant/team").file(file, "other");
    assert!(scene.tree.resolve(&path(file)).expect("there").object.is_some());
    assert!(handed.read(&scene.tree, 99).is_err());
    let missing = judged(&scene, "/home/u/none.md").expect("nothing to refuse");
    assert!(missing.read(&scene.tree, 99).is_err());
}

#[test]
fn a_directory_is_no_text() {
    let told = judged(&scene(), "/home/u/lib").expect_err("a directory");
    assert!(told.contains("not a regular file"), "{told}");
    let problem =
        Handed::judge(&path("/home/u/lib"), BRIEFING, None, &scene().forbidden(), &scene().tree);
    assert_eq!(problem.expect_err("refused").code, Code::InvalidValue);
}
