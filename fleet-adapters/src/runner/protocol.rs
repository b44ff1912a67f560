//! The operator protocol, version 1 (02 §7.4, 03 B.1): one JSON object a line, one request a line.

use fleet_core::status::AgentStatus;
use serde::{Deserialize, Serialize};

/// The only version.
pub const VERSION: u32 = 1;
/// A longer request line closes the connection.
pub const MAX_REQUEST: usize = 64 * 1024;
/// A client reads no longer answer.
pub const MAX_RESPONSE: usize = 8 * 1024 * 1024;

/// A request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// Chosen by the client, repeated in the answer.
    pub id: String,
    /// The operator token.
    pub token: String,
    /// What is asked.
    #[serde(flatten)]
    pub command: Command,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Command {
    /// The published status.
    Status,
    /// Type a text into the console.
    SubmitPrompt {
        /// The text.
        text: String,
        /// Whether a running turn is interrupted first.
        #[serde(default)]
        interrupt: bool,
        /// How long to wait for a state in which typing is allowed, in milliseconds.
        timeout_ms: u64,
    },
    /// Press a key.
    SendKey {
        /// The tmux name of the key.
        key: String,
    },
    /// The text of the console.
    Peek {
        /// How many lines from the end.
        lines: u32,
    },
    /// End the streak of failures and start now.
    Release,
}

/// Why a request failed. Only `Offline` proves anything about the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The session is confirmed gone.
    Offline,
    /// Understood and refused; the agent is alive.
    Rejected,
    /// The transport or a program below failed.
    Backend,
    /// Wrong version, id or token.
    Unauthorized,
    /// No answer in time.
    Timeout,
    /// No socket, no token, or nobody listening.
    ControlUnavailable,
}

impl FailureKind {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::Rejected => "rejected",
            Self::Backend => "backend",
            Self::Unauthorized => "unauthorized",
            Self::Timeout => "timeout",
            Self::ControlUnavailable => "control-unavailable",
        }
    }
}

/// An answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Response {
    /// [`VERSION`].
    pub version: u32,
    /// The id of the request, `?` if it could not be read.
    pub id: String,
    /// Whether it was done.
    pub ok: bool,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// Why a text was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<RefusalReason>,
}

/// How far a text is known to have got (02 §1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receipt {
    /// It was sent to the program; a submit was not seen.
    Typed,
    /// Seen in the composer, Enter sent, gone from the composer.
    Submitted,
    /// After that the agent turned busy.
    TurnStarted,
}

impl Receipt {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Typed => "typed",
            Self::Submitted => "submitted",
            Self::TurnStarted => "turn-started",
        }
    }
}

/// Why a text was refused: no Enter was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// A dialog is open.
    Modal,
    /// Somebody's draft stands in the composer.
    Draft,
    /// A turn is running.
    Busy,
    /// The program is not ready yet.
    Starting,
    /// The composer, or the text in it, was not seen.
    NotSeen,
    /// The console could not be read.
    CaptureFailed,
    /// The text cannot be typed unchanged.
    BadText,
    /// The session is confirmed gone.
    Offline,
}

impl RefusalReason {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Modal => "modal",
            Self::Draft => "draft",
            Self::NotSeen => "not-seen",
            Self::Busy => "busy",
            Self::Starting => "starting",
            Self::CaptureFailed => "capture-failed",
            Self::BadText => "bad-text",
            Self::Offline => "offline",
        }
    }

    /// Plain words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Modal => "a dialog is open in its console",
            Self::Draft => "somebody's draft stands in its composer",
            Self::NotSeen => "the text was not seen in its composer",
            Self::Busy => "it is busy",
            Self::Starting => "it is not ready yet",
            Self::CaptureFailed => "its console could not be read",
            Self::BadText => "the text holds control characters",
            Self::Offline => "its session is gone",
        }
    }
}

/// Result of [`Command::SubmitPrompt`] and [`Command::SendKey`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivered {
    /// What was observed.
    pub receipt: Receipt,
    /// Whether more than [`Receipt::Typed`] could have been observed for this role.
    pub observable: bool,
}

/// Result of [`Command::Peek`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Peeked {
    /// The text, lines separated by newlines, trailing blank lines removed.
    pub text: String,
    /// What the agent is doing, as far as it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentStatus>,
}
