//! What becomes of a permission question.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::permissions::Unattended;

/// Who is at the console at the moment of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    /// A terminal is attached.
    Attached,
    /// None is.
    Nobody,
    /// It could not be told.
    Unknown,
}

/// Why a question was denied by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenyReason {
    /// Nobody is attached.
    Nobody,
    /// Whether somebody is attached could not be told.
    Unreadable,
    /// The runner gave no answer.
    NoRunner,
}

/// The decision about a question. Nothing is ever allowed here: only a person does that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The dialog opens.
    Ask,
    /// It is denied at once.
    Deny(DenyReason),
}

/// Decides. Where it cannot be told who is there, nobody is.
pub fn decide(unattended: Unattended, attendance: Attendance) -> Decision {
    match (unattended, attendance) {
        (Unattended::Wait, _) | (Unattended::Deny, Attendance::Attached) => Decision::Ask,
        (Unattended::Deny, Attendance::Nobody) => Decision::Deny(DenyReason::Nobody),
        (Unattended::Deny, Attendance::Unknown) => Decision::Deny(DenyReason::Unreadable),
    }
}

impl DenyReason {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Unreadable => "unreadable",
            Self::NoRunner => "no-runner",
        }
    }

    /// What the agent is told: why, and what it may do.
    pub fn message(self) -> String {
        let why = match self {
            Self::Nobody => "nobody is at this console to answer",
            Self::Unreadable => "whether somebody is at this console could not be found out",
            Self::NoRunner => "the fleet could not be asked whether somebody is at this console",
        };
        format!(
            "ours-fleet denied this by itself: {why}, and the role says `unattended: deny`. Do not \
             ask again for the same thing. Go on with what your permissions allow, or end the turn; \
             say what you could not do and why, so that an operator sees it."
        )
    }
}

/// What a hook prints to deny. Both programs read the same (measured); nothing printed means that the
/// dialog opens.
pub fn deny_output(message: &str) -> String {
    json!({
        "hookSpecificOutput": {
            "hookEventName": "PermissionRequest",
            "decision": { "behavior": "deny", "message": message },
        },
    })
    .to_string()
}
