//! Writes what is left behind for the runner: whole files, 0600, never half-written.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8Path;
use fleet_core::id::Timestamp;
use fleet_core::launch::{LaunchFile, SandboxProcess};
use serde::Serialize;

use crate::procfs;

/// The present moment.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Replaces the file in one step; whoever reads it sees the old content or the new one, also after
/// the host went down.
pub(super) fn write<T: Serialize>(path: &Utf8Path, value: &T) -> std::io::Result<()> {
    let directory = directory(path)?;
    let file = temporary(directory, value)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    std::fs::File::open(directory)?.sync_all()
}

/// As [`write`], for what means nothing after the host went down: does not wait for the disk.
pub(crate) fn publish<T: Serialize>(path: &Utf8Path, value: &T) -> std::io::Result<()> {
    temporary(directory(path)?, value)?.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Records the first process of the sandbox, where whoever cleans up after this one finds it.
pub(super) fn sandbox_process(launch: &LaunchFile, pid: u32) {
    let Some((path, process)) = launch.sandbox_process.as_ref().zip(procfs::identity(pid)) else {
        return;
    };
    let launch_id = launch.launch_id.clone();
    let record = SandboxProcess { version: LaunchFile::VERSION, launch_id, process };
    if let Err(error) = publish(path, &record) {
        super::say(&format!("failed to record the sandbox's first process: {error}"));
    }
}

/// Removes that record when the process is gone; otherwise it is still needed.
pub(super) fn sandbox_gone(launch: &LaunchFile, pid: u32) {
    if let Some(path) = launch.sandbox_process.as_ref().filter(|_| procfs::identity(pid).is_none())
    {
        let _ = std::fs::remove_file(path);
    }
}

fn directory(path: &Utf8Path) -> std::io::Result<&Utf8Path> {
    path.parent().ok_or_else(|| std::io::ErrorKind::InvalidInput.into())
}

fn temporary<T: Serialize>(
    directory: &Utf8Path,
    value: &T,
) -> std::io::Result<tempfile::NamedTempFile> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    // A temporary file is made 0600 and without following a link.
    let mut file = tempfile::Builder::new().prefix(".launch-").tempfile_in(directory)?;
    file.write_all(&bytes)?;
    Ok(file)
}
