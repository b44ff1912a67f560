//! Reads what `bwrap --json-status-fd` reports.

use std::os::fd::OwnedFd;

use serde::Deserialize;

use super::pipe::{ReadPipe, State};

/// One report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Report {
    /// The sandbox's first process, as this side sees it.
    pub(super) child_pid: Option<u32>,
    /// Status of the command: written only if it really ran.
    pub(super) exit_code: Option<i32>,
}

/// Reports are short; more than this without a line end is not one.
const LINE_LIMIT: usize = 64 * 1024;

/// The read end of the status pipe.
#[derive(Debug)]
pub(super) struct StatusPipe(ReadPipe);

impl StatusPipe {
    pub(super) fn new(end: OwnedFd) -> std::io::Result<Self> {
        ReadPipe::new(end, LINE_LIMIT).map(Self)
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.state == State::Open
    }

    /// Waits until something has arrived.
    ///
    /// # Cancel safety
    /// As [`ReadPipe::more`].
    pub(super) async fn next(&mut self) -> Vec<Report> {
        self.0.more().await;
        self.reports()
    }

    /// What is in the pipe right now.
    pub(super) fn drain(&mut self) -> Vec<Report> {
        self.0.drain();
        self.reports()
    }

    fn reports(&mut self) -> Vec<Report> {
        let mut reports = Vec::new();
        while let Some(end) = self.0.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.0.text.drain(..=end).collect();
            reports.extend(serde_json::from_slice::<Report>(&line));
        }
        reports
    }
}
