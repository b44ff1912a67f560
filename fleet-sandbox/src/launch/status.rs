//! Reads what `bwrap --json-status-fd` reports.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Deserialize;
use tokio::net::unix::pipe::Receiver;

/// One report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Report {
    /// The sandbox's first process, as this side sees it.
    pub(super) child_pid: Option<u32>,
    /// Status of the command: written only if it really ran.
    pub(super) exit_code: Option<i32>,
}

/// The read end of the status pipe.
#[derive(Debug)]
pub(super) struct StatusPipe {
    pipe: Receiver,
    text: Vec<u8>,
    open: bool,
}

/// Reports are short; more than this without a line end is not one.
const LINE_LIMIT: usize = 64 * 1024;

impl StatusPipe {
    pub(super) fn new(end: OwnedFd) -> std::io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&end)?;
        rustix::fs::fcntl_setfl(&end, flags | OFlags::NONBLOCK)?;
        Ok(Self { pipe: Receiver::from_owned_fd(end)?, text: Vec::new(), open: true })
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Waits until something has arrived.
    ///
    /// # Cancel safety
    /// Nothing is read before the only wait is over.
    pub(super) async fn next(&mut self) -> Vec<Report> {
        if self.pipe.readable().await.is_err() {
            self.open = false;
        }
        let mut chunk = [0; 1024];
        while self.open {
            match self.pipe.try_read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => self.take_in(&chunk[..count]),
                Err(_) => self.open = false,
            }
        }
        self.reports()
    }

    /// What is in the pipe right now, whether or not the runtime has been told of it.
    pub(super) fn drain(&mut self) -> Vec<Report> {
        let mut chunk = [0; 1024];
        while self.open {
            match rustix::io::read(&self.pipe, &mut chunk) {
                Ok(count) => self.take_in(&chunk[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.open = false,
            }
        }
        self.reports()
    }

    fn take_in(&mut self, bytes: &[u8]) {
        self.open = !bytes.is_empty() && self.text.len() < LINE_LIMIT;
        self.text.extend_from_slice(bytes);
    }

    fn reports(&mut self) -> Vec<Report> {
        let mut reports = Vec::new();
        while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            reports.extend(serde_json::from_slice::<Report>(&line));
        }
        reports
    }
}
