//! Directories that a launch makes in a project so that they can be covered, such as an absent
//! `.git/hooks` (01 §2.3). The launcher removes them after an orderly end; this is for every other
//! end: they are recorded in control before the launch and removed, while empty, after it.

use camino::Utf8PathBuf;
use fleet_core::launch::{Cleanup, LaunchPlan};
use fleet_core::layout::RoleTrees;
use fleet_core::port::{StateStore, StoreError};
use serde::{Deserialize, Serialize};

/// Records are not larger.
const MAX_RECORD: u64 = 64 * 1024;

/// `control/overlays.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    version: u32,
    directories: Vec<Utf8PathBuf>,
}

/// Notes what the launcher will make, before it does.
pub(super) fn record(
    store: &dyn StateStore,
    trees: &RoleTrees,
    plan: &LaunchPlan,
) -> Result<(), StoreError> {
    let directories: Vec<Utf8PathBuf> =
        plan.cleanup.iter().map(|Cleanup::RemoveEmptyDir { path }| path.clone()).collect();
    if directories.is_empty() {
        return store.remove(&trees.overlays()).map(drop);
    }
    let bytes = serde_json::to_vec(&Record { version: 1, directories }).unwrap_or_default();
    store.write(&trees.overlays(), &bytes, 0o600)
}

/// Removes what the last launch made and left, deepest first. What cannot be removed stays recorded
/// for the next time.
pub(super) fn undo(store: &dyn StateStore, trees: &RoleTrees) {
    let Ok(Some(bytes)) = store.read(&trees.overlays(), MAX_RECORD) else { return };
    let record: Record = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut failed = false;
    for directory in record.directories.iter().rev() {
        failed |= store.remove_empty_dir(directory).is_err();
    }
    if !failed {
        drop(store.remove(&trees.overlays()));
    }
}
