//! The run marker (02 §3.9): which process is the runner of a role, in a way that survives pid reuse
//! and reboots.

use serde::{Deserialize, Serialize};

use crate::id::Timestamp;
use crate::port::ProcessIdentity;

/// The format that this build writes and reads.
const VERSION: u32 = 1;

/// No marker is longer.
pub const RUN_MARKER_LIMIT: u64 = 4096;

/// The content of `supervisor-run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunMarker {
    version: u32,
    #[serde(flatten)]
    runner: ProcessIdentity,
    started_at: Timestamp,
}

/// Why a file is no run marker.
#[derive(Debug, thiserror::Error)]
pub enum RunMarkerError {
    /// Nothing in it.
    #[error("the run marker is empty")]
    Empty,
    /// Not the JSON of a marker.
    #[error("the run marker cannot be read: {source}")]
    Syntax {
        /// The parser's reason.
        #[source]
        source: serde_json::Error,
    },
    /// Written by another version of the program.
    #[error("the run marker has format version {found}; this build reads {VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
}

impl RunMarker {
    /// The marker of a runner.
    pub fn new(runner: ProcessIdentity, started_at: Timestamp) -> Self {
        Self { version: VERSION, runner, started_at }
    }

    /// The runner's process.
    pub fn runner(&self) -> &ProcessIdentity {
        &self.runner
    }

    /// When it started.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Reads a marker. Whether the process still runs is another question.
    pub fn parse(content: &[u8]) -> Result<Self, RunMarkerError> {
        if content.trim_ascii().is_empty() {
            return Err(RunMarkerError::Empty);
        }
        let marker: Self =
            serde_json::from_slice(content).map_err(|source| RunMarkerError::Syntax { source })?;
        if marker.version == VERSION {
            Ok(marker)
        } else {
            Err(RunMarkerError::Version { found: marker.version })
        }
    }

    /// The marker as the file holds it, with a final newline.
    pub fn to_json(&self) -> String {
        format!(
            "{}\n",
            serde_json::json!({
                "version": self.version,
                "pid": self.runner.pid,
                "startTime": self.runner.start_time,
                "bootId": self.runner.boot_id,
                "startedAt": self.started_at.to_string(),
            })
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_comes_back_as_it_was_written() {
        let runner = ProcessIdentity { pid: 42, start_time: 9_000, boot_id: "b-1".into() };
        let marker = RunMarker::new(runner, Timestamp::from_millis(1_795_973_400_123));
        assert_eq!(RunMarker::parse(marker.to_json().as_bytes()).expect("own text"), marker);
        let json: serde_json::Value = serde_json::from_str(&marker.to_json()).expect("JSON");
        assert_eq!(
            json,
            serde_json::json!({
                "version": 1, "pid": 42, "startTime": 9000, "bootId": "b-1",
                "startedAt": "2026-11-29T17:30:00.123Z",
            })
        );
    }

    #[test]
    fn anything_else_is_no_marker() {
        for bad in [
            "",
            " \n",
            "42",
            "{}",
            "[1]",
            "\u{0}",
            r#"{"version":1,"pid":"42","startTime":1,"bootId":"b","startedAt":"2026-11-29T17:30:00.123Z"}"#,
            r#"{"version":1,"pid":-1,"startTime":1,"bootId":"b","startedAt":"2026-11-29T17:30:00.123Z"}"#,
            r#"{"version":2,"pid":42,"startTime":1,"bootId":"b","startedAt":"2026-11-29T17:30:00.123Z"}"#,
            r#"{"version":1,"pid":42,"startTime":1,"bootId":"b","startedAt":"yesterday"}"#,
        ] {
            assert!(RunMarker::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
