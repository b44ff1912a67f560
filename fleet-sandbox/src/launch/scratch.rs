//! The launch's own directory: what a sandbox program keeps in files, beside the exit record.
//!
//! One a launch, below `boxes`, made new and locked while the launcher lives. What a killed one left is
//! cleared away by its runner, and by the next launch of the same role.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fleet_core::launch::{LaunchFile, Preparation, ScratchEntry};
use rustix::fs::{FlockOperation, flock};

use super::Refusal;
use crate::podman;

/// Below the directory of the exit record, which is the role's control directory.
const BOXES: &str = "boxes";
/// Held by the launcher.
const LOCK: &str = "lock";

/// Where it is, whether or not this launch has one.
pub(super) fn path(launch: &LaunchFile) -> Utf8PathBuf {
    boxes(launch).join(launch.launch_id.to_string())
}

fn boxes(launch: &LaunchFile) -> Utf8PathBuf {
    let control = launch.exit_record.parent().unwrap_or_else(|| Utf8Path::new("/"));
    control.join(BOXES)
}

/// The directory of this launch, while it lives.
#[derive(Debug, Default)]
pub(super) struct Scratch(Option<(Utf8PathBuf, File)>);

impl Scratch {
    /// Makes it with its entries, if the plan has any, after what earlier launches left is gone.
    pub(super) fn make(launch: &LaunchFile) -> Result<Self, Refusal> {
        let entries: Vec<(&Utf8PathBuf, &ScratchEntry)> = launch
            .plan
            .prepare
            .iter()
            .filter_map(|prepare| match prepare {
                Preparation::Scratch { path, entry } => Some((path, entry)),
                Preparation::MakeDir { .. } => None,
            })
            .collect();
        if entries.is_empty() {
            return Ok(Self::default());
        }
        let (boxes, at) = (boxes(launch), path(launch));
        let refuse = |path: &Utf8Path, why: String| Refusal::Prepare { path: path.to_owned(), why };
        if at.as_str().contains(|c: char| ":,\"\\".contains(c) || c.is_whitespace()) {
            let why =
                "podman cannot be told of a path with a blank, colon, comma or quote".to_owned();
            return Err(refuse(&at, why));
        }
        private(&boxes, true).map_err(|error| refuse(&boxes, error.to_string()))?;
        clear_boxes(&boxes);
        let lock = private(&at, false)
            .and_then(|()| {
                let lock = File::create_new(at.join(LOCK))?;
                flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
                Ok(lock)
            })
            .map_err(|error| refuse(&at, error.to_string()))?;
        let made = Self(Some((at.clone(), lock)));
        for (path, entry) in entries {
            let inside = path.components().all(|part| matches!(part, Utf8Component::Normal(_)));
            if !inside {
                return Err(Refusal::Plan { why: format!("{path} leads out of its directory") });
            }
            let path = at.join(path);
            fill(&path, entry).map_err(|error| refuse(&path, error.to_string()))?;
        }
        Ok(made)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.0 {
            podman::clear(path);
        }
    }
}

/// A directory of this user alone.
fn private(path: &Utf8Path, may_exist: bool) -> std::io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if may_exist && error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => return other,
    }
    let about = std::fs::symlink_metadata(path)?;
    if !about.is_dir() || about.uid() != rustix::process::getuid().as_raw() {
        return Err(std::io::Error::other("something else than a directory of this user is there"));
    }
    Ok(())
}

/// Clears away what launches of a role left whose launcher lives no longer, by the role's control
/// directory. Tells whether there was anything. Blocks while what runs is ended.
pub(crate) fn clear_left(control: &Utf8Path) -> bool {
    clear_boxes(&control.join(BOXES))
}

fn clear_boxes(boxes: &Utf8Path) -> bool {
    let mut found = false;
    for entry in boxes.read_dir_utf8().into_iter().flatten().flatten() {
        let lock = File::open(entry.path().join(LOCK));
        let lives = lock.is_ok_and(|lock| {
            flock(&lock, FlockOperation::NonBlockingLockExclusive)
                .is_err_and(|errno| errno == rustix::io::Errno::WOULDBLOCK)
        });
        if !lives {
            found = true;
            podman::clear(entry.path());
        }
    }
    found
}

fn fill(path: &Utf8Path, entry: &ScratchEntry) -> std::io::Result<()> {
    let above = path.parent().unwrap_or(path);
    DirBuilder::new().recursive(true).mode(0o755).create(above)?;
    match entry {
        ScratchEntry::Directory { mode } => {
            DirBuilder::new().recursive(true).create(path)?;
            // The umask has no say in it.
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))
        }
        ScratchEntry::File { content } => {
            std::fs::write(path, content)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
        }
        ScratchEntry::Link { target } => symlink(target, path),
    }
}
