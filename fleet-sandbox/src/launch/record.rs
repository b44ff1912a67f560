//! Writes what is left behind for the runner: whole files, 0600, never half-written.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::Utf8Path;
use fleet_core::id::Timestamp;
use serde::Serialize;

/// The present moment.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Replaces the file in one step; whoever reads it sees the old content or the new one.
pub(super) fn write<T: Serialize>(path: &Utf8Path, value: &T) -> std::io::Result<()> {
    let directory = path.parent().ok_or(std::io::ErrorKind::InvalidInput)?;
    // A temporary file is made 0600 and without following a link.
    let mut file = tempfile::Builder::new().prefix(".launch-").tempfile_in(directory)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    std::fs::File::open(directory)?.sync_all()
}
