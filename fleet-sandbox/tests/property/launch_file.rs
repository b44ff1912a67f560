//! P46: the launch file on a real disk.

use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::BackendName;
use fleet_core::launch::{Environment, LaunchCommand, LaunchFile, LaunchPlan, PlanWord};
use fleet_sandbox::launch::{Refusal, take};
use proptest::prelude::*;

use crate::cases;
use crate::support::{Host, skip};

/// The function under test.
pub(crate) type Take = fn(&Utf8Path) -> Result<LaunchFile, Refusal>;

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("--".to_owned()),
        Just("two words".to_owned()),
        Just("\0\n\r\t\"\\\u{2028}".to_owned()),
        any::<String>(),
    ]
}

fn launch_file(argv: Vec<String>, env: Vec<(String, String)>) -> LaunchFile {
    LaunchFile {
        version: LaunchFile::VERSION,
        launch_id: "l-1".parse().expect("an id"),
        role: "A".parse().expect("a name"),
        plan: LaunchPlan {
            backend: BackendName::None,
            argv: argv.iter().map(PlanWord::text).collect(),
            descriptors: Vec::new(),
            checks: Vec::new(),
            network: None,
            prepare: Vec::new(),
            cleanup: Vec::new(),
            promise: Vec::new(),
        },
        command: LaunchCommand { argv, cwd: "/".into() },
        env: Environment(env.into_iter().collect()),
        exit_record: "/c/exit.json".into(),
        observed: "/c/observed.json".into(),
        sandbox_process: None,
        connections: None,
        limits: None,
    }
}

/// A file of this content and mode in a directory of its own.
fn written(content: &LaunchFile, mode: u32) -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = Utf8Path::from_path(dir.path()).expect("utf-8").join("launch.json");
    std::fs::write(&path, serde_json::to_vec(content).expect("serialises")).expect("write");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
    (dir, path)
}

/// P46: a command comes back word by word, once; a file of another mode is refused and stays.
pub(crate) fn p46(take: Take) -> Result<(), String> {
    let words = prop::collection::vec(word(), 0..8);
    let env = prop::collection::vec((word(), word()), 0..4);
    let mode = prop_oneof![1 => Just(0o600), 1 => 0_u32..0o1000];
    cases::run(cases::real_files(), &(words, env, mode), |(argv, env, mode)| {
        let wanted = launch_file(argv, env);
        let (_dir, path) = written(&wanted, mode);
        let found = take(&path);
        if mode == 0o600 {
            prop_assert_eq!(found.ok(), Some(wanted));
            prop_assert!(!path.exists(), "it could be used again");
        } else {
            prop_assert!(found.is_err(), "mode {:o}", mode);
            prop_assert!(path.exists(), "what was refused was removed");
        }
        Ok(())
    })
}

#[test]
fn p46_a_command_comes_back_and_another_mode_is_refused() {
    cases::holds(p46(take));
}

/// The same for a file that another user owns, whatever its mode.
pub(crate) fn p46_owner(take: Take) -> Result<(), String> {
    cases::run(cases::real_files(), &(1_u32..65_000, 0_u32..0o1000), |(owner, mode)| {
        let (_dir, path) = written(&launch_file(vec!["x".to_owned()], Vec::new()), mode);
        std::os::unix::fs::chown(&path, Some(owner), None).expect("chown");
        prop_assert!(take(&path).is_err(), "of user {}, mode {:o}", owner, mode);
        Ok(())
    })
}

#[test]
fn p46_a_file_of_another_user_is_refused_as_root() {
    if !Host::is_root() {
        skip!("only root can give a file away");
    }
    cases::holds(p46_owner(take));
}
