use fleet_core::permissions::DeniedRead;
use fleet_core::plan::DeniedReads;
use fleet_core::test_support::scene::{Scene, path};

use crate::case::denied_reads::denied_to;
use crate::property::denied_reads::{nothing_forbidden_is_forgotten, own_directories_stay_open};

/// Denies the state root as a whole, the role's own directories with it.
fn denies_the_whole_root(scene: &Scene, cwd: &str) -> DeniedReads {
    let mut denied = denied_to(scene, cwd);
    let root = path(scene.layout().root().as_str());
    denied.paths.retain(|it| !it.path.is_within(&root));
    denied.paths.push(DeniedRead { path: root, exists: true });
    denied
}

/// Forgets the siblings.
fn forgets_the_sibling(scene: &Scene, cwd: &str) -> DeniedReads {
    let mut denied = denied_to(scene, cwd);
    denied.paths.retain(|it| it.path.file_name() != Some("B"));
    denied
}

#[test]
fn a_denied_own_directory_is_found() {
    assert!(own_directories_stay_open(denies_the_whole_root).is_err());
}

#[test]
fn a_forgotten_sibling_is_found() {
    assert!(nothing_forbidden_is_forgotten(forgets_the_sibling).is_err());
}
