//! The record of connections: one line of JSON each, written when the connection ends.

use std::fs::{File, OpenOptions, rename};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::id::LaunchId;
use fleet_core::isolation::network::Target;
use fleet_core::launch::{ConnectionDecision, ConnectionRecord};
use rustix::fs::OFlags;

use crate::launch::record;

/// A record that has grown this large is set aside; one older part is kept.
const LIMIT: u64 = 1024 * 1024;

/// How a connection went.
pub(super) struct Outcome {
    open: bool,
    decision: ConnectionDecision,
    address: Option<IpAddr>,
    sent: u64,
    received: u64,
    pub(super) reason: String,
}

impl Outcome {
    pub(super) fn refused(reason: &str) -> Self {
        Self::without(ConnectionDecision::Refused, reason)
    }

    pub(super) fn failed(reason: &str) -> Self {
        Self::without(ConnectionDecision::Failed, reason)
    }

    pub(super) fn opened(address: IpAddr) -> Self {
        Self { open: true, ..Self::allowed(address, 0, 0, String::new()) }
    }

    pub(super) fn allowed(address: IpAddr, sent: u64, received: u64, reason: String) -> Self {
        let decision = ConnectionDecision::Allowed;
        Self { open: false, decision, address: Some(address), sent, received, reason }
    }

    fn without(decision: ConnectionDecision, reason: &str) -> Self {
        let reason = reason.to_owned();
        Self { open: false, decision, address: None, sent: 0, received: 0, reason }
    }
}

/// The open record.
pub(super) struct ConnectionLog {
    path: Utf8PathBuf,
    launch_id: LaunchId,
    file: Mutex<File>,
    next: AtomicU64,
}

impl ConnectionLog {
    pub(super) fn open(path: &Utf8Path, launch_id: &LaunchId) -> io::Result<Self> {
        let file = Mutex::new(open(path)?);
        let next = AtomicU64::new(1);
        Ok(Self { path: path.to_owned(), launch_id: launch_id.clone(), file, next })
    }

    /// The number of a new connection.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A record that cannot be written is told in the console; the connection is not held up.
    pub(super) fn write(&self, connection: u64, target: Option<&Target>, outcome: &Outcome) {
        let record = ConnectionRecord {
            version: ConnectionRecord::VERSION,
            launch_id: self.launch_id.clone(),
            connection,
            at: record::now(),
            open: outcome.open,
            target: target.cloned(),
            decision: outcome.decision,
            address: outcome.address,
            sent: outcome.sent,
            received: outcome.received,
            reason: outcome.reason.clone(),
        };
        if let Err(error) = self.append(&record) {
            crate::launch::say(&format!("failed to record a connection: {error}"));
        }
    }

    fn append(&self, record: &ConnectionRecord) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() >= LIMIT {
            rename(&self.path, format!("{}.1", self.path))?;
            *file = open(&self.path)?;
        }
        file.write_all(&line)
    }
}

fn open(path: &Utf8Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)
}
