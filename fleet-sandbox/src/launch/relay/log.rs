//! The record of connections: lines of JSON in two files of bounded size, and counts beside them.
//!
//! What was served and what was refused lie apart, and refusals are merged (`merge`), so that nothing
//! that a sandbox may do without end takes the place of what it was allowed to do. Where a record is
//! dropped for a newer one, that is counted, and what each rule let through stays in the totals.

use std::fs::{File, OpenOptions, rename};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::id::LaunchId;
use fleet_core::isolation::network::{HostRule, Target};
use fleet_core::launch::{ConnectionDecision, ConnectionFiles, ConnectionRecord, ConnectionTotals};
use rustix::fs::OFlags;

use super::merge::Merger;
use crate::launch::record;

/// A file that has grown this large is set aside; one older part is kept.
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
    launch_id: LaunchId,
    next: AtomicU64,
    state: Mutex<State>,
}

struct State {
    served: Part,
    refusals: Part,
    merger: Merger,
    totals: ConnectionTotals,
    totals_path: Utf8PathBuf,
    /// Whether the totals have changed since they were written.
    changed: bool,
}

impl ConnectionLog {
    /// Opens the files, and goes on with the totals of earlier launches.
    pub(super) fn open(
        path: &Utf8Path,
        launch_id: &LaunchId,
        rules: &[HostRule],
    ) -> io::Result<Self> {
        let files = ConnectionFiles::beside(path);
        // Only launchers write it, whole: one that cannot be read is of no use to anybody.
        let earlier = earlier_totals(&files.totals);
        let mut state = State {
            served: Part::open(files.connections)?,
            refusals: Part::open(files.refusals)?,
            merger: Merger::default(),
            totals: ConnectionTotals::going_on(earlier, rules, record::now()),
            totals_path: files.totals,
            changed: true,
        };
        state.write_totals()?;
        Ok(Self { launch_id: launch_id.clone(), next: AtomicU64::new(1), state: Mutex::new(state) })
    }

    /// The number of a new connection.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Records how a connection begins or ends, with the rule that allows it. A record that cannot be
    /// written is told in the console; the connection is not held up.
    pub(super) fn write(
        &self,
        connection: u64,
        target: Option<&Target>,
        rule: Option<&HostRule>,
        outcome: &Outcome,
    ) {
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
            count: 1,
            since: None,
        };
        tell(self.with(|state| state.add(&record, rule)));
    }

    /// Writes what is due: to be called every second or so.
    pub(super) fn tick(&self) {
        tell(self.with(|state| {
            if state.merger.is_over(record::now()) {
                state.close_window()?;
            }
            state.write_totals()
        }));
    }

    /// Writes all that is left.
    pub(super) fn finish(&self) {
        tell(self.with(|state| {
            state.close_window()?;
            state.write_totals()
        }));
    }

    fn with(&self, act: impl FnOnce(&mut State) -> io::Result<()>) -> io::Result<()> {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn tell(result: io::Result<()>) {
    if let Err(error) = result {
        crate::launch::say(&format!("failed to record a connection: {error}"));
    }
}

impl State {
    fn add(&mut self, record: &ConnectionRecord, rule: Option<&HostRule>) -> io::Result<()> {
        self.changed = true;
        if let Some(counts) = rule.map(|rule| self.totals.of(rule)) {
            match record.decision {
                ConnectionDecision::Allowed if record.open => {
                    counts.served += 1;
                    counts.last = Some(record.at);
                }
                ConnectionDecision::Allowed => {
                    counts.sent = counts.sent.saturating_add(record.sent);
                    counts.received = counts.received.saturating_add(record.received);
                }
                ConnectionDecision::Failed => counts.failed += 1,
                ConnectionDecision::Refused => {}
            }
        }
        match record.decision {
            ConnectionDecision::Allowed => {
                self.totals.dropped.connections += self.served.append(record)?;
                return Ok(());
            }
            ConnectionDecision::Refused => self.totals.refused += 1,
            ConnectionDecision::Failed => {}
        }
        if self.merger.is_over(record.at) {
            self.close_window()?;
        }
        if self.merger.is_first(record) {
            self.totals.dropped.refusals += self.refusals.append(record)?;
        } else {
            self.totals.merged += 1;
        }
        Ok(())
    }

    fn close_window(&mut self) -> io::Result<()> {
        for record in self.merger.close() {
            self.changed = true;
            self.totals.dropped.refusals += self.refusals.append(&record)?;
        }
        Ok(())
    }

    fn write_totals(&mut self) -> io::Result<()> {
        if self.changed {
            self.totals.at = record::now();
            record::publish(&self.totals_path, &self.totals)?;
            self.changed = false;
        }
        Ok(())
    }
}

/// One file, and its older part.
struct Part {
    path: Utf8PathBuf,
    file: File,
}

impl Part {
    fn open(path: Utf8PathBuf) -> io::Result<Self> {
        Ok(Self { file: open(&path)?, path })
    }

    /// Adds a record; returns how many were dropped for it.
    fn append(&mut self, record: &ConnectionRecord) -> io::Result<u64> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut dropped = 0;
        if self.file.metadata()?.len() >= LIMIT {
            let older = ConnectionFiles::older(&self.path);
            dropped = lines(&older)?;
            rename(&self.path, &older)?;
            self.file = open(&self.path)?;
        }
        self.file.write_all(&line)?;
        Ok(dropped)
    }
}

fn lines(path: &Utf8Path) -> io::Result<u64> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        file => {
            file?.take(2 * LIMIT).read_to_end(&mut bytes)?;
        }
    }
    Ok(bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum())
}

fn earlier_totals(path: &Utf8Path) -> Option<ConnectionTotals> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(ConnectionTotals::MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let totals: ConnectionTotals = serde_json::from_slice(&bytes).ok()?;
    (totals.version == ConnectionTotals::VERSION).then_some(totals)
}

fn open(path: &Utf8Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(directory: &tempfile::TempDir) -> (ConnectionLog, Utf8PathBuf, HostRule) {
        let path = Utf8Path::from_path(directory.path()).expect("UTF-8").join("connections.jsonl");
        let rule: HostRule = "a.example".parse().expect("a rule");
        let id = "launch-1".parse().expect("an id");
        let log = ConnectionLog::open(&path, &id, std::slice::from_ref(&rule)).expect("opens");
        (log, path, rule)
    }

    fn size(path: &Utf8Path) -> u64 {
        [path.to_owned(), ConnectionFiles::older(path)]
            .iter()
            .filter_map(|path| File::open(path).ok())
            .map(|file| file.metadata().expect("metadata").len())
            .sum()
    }

    #[test]
    fn refused_requests_displace_no_connection() {
        let directory = tempfile::tempdir().expect("a directory");
        let (log, path, rule) = log(&directory);
        let target: Target = "a.example:443".parse().expect("a target");
        let (address, number) = (IpAddr::from([1, 1, 1, 1]), log.number());
        log.write(number, Some(&target), Some(&rule), &Outcome::opened(address));
        let done = Outcome::allowed(address, 5, 7, String::new());
        log.write(number, Some(&target), Some(&rule), &done);
        let before = lines(&path).expect("lines");
        for index in 0..31_000 {
            let target: Target = format!("h{index}.evil:443").parse().expect("a target");
            log.write(log.number(), Some(&target), None, &Outcome::refused("no rule"));
        }
        log.finish();
        assert_eq!((before, lines(&path).expect("lines")), (2, 2));
        let refusals = ConnectionFiles::beside(&path).refusals;
        // Few in a minute; a slow machine may have seen more than one.
        assert!(lines(&refusals).expect("lines") < 200 && size(&refusals) < 100_000);
        drop(log);
        let totals = earlier_totals(&ConnectionFiles::beside(&path).totals).expect("totals");
        assert_eq!(totals.refused, 31_000);
        assert!(totals.merged > 30_000, "{totals:?}");
        let counts = totals.rules.first().expect("the rule").counts;
        assert_eq!((counts.served, counts.sent, counts.received), (1, 5, 7));
    }

    #[test]
    fn connections_that_are_dropped_are_counted_and_stay_in_the_totals() {
        let directory = tempfile::tempdir().expect("a directory");
        let (log, path, rule) = log(&directory);
        let target: Target = "a.example:443".parse().expect("a target");
        let address = IpAddr::from([1, 1, 1, 1]);
        for _ in 0..12_000 {
            let number = log.number();
            log.write(number, Some(&target), Some(&rule), &Outcome::opened(address));
            let done = Outcome::allowed(address, 1, 2, String::new());
            log.write(number, Some(&target), Some(&rule), &done);
        }
        log.finish();
        let left =
            lines(&path).expect("lines") + lines(&ConnectionFiles::older(&path)).expect("lines");
        assert!(size(&path) < 2 * LIMIT + 4096);
        drop(log);
        // The next launch goes on with them.
        let id = "launch-2".parse().expect("an id");
        drop(ConnectionLog::open(&path, &id, std::slice::from_ref(&rule)).expect("opens"));
        let totals = earlier_totals(&ConnectionFiles::beside(&path).totals).expect("totals");
        assert_eq!(totals.dropped.connections + left, 24_000);
        assert!(totals.dropped.connections > 0, "nothing was dropped: the test proves nothing");
        let counts = totals.rules.first().expect("the rule").counts;
        assert_eq!((counts.served, counts.sent, counts.received), (12_000, 12_000, 24_000));
    }
}
