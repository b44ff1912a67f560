//! What a hook is told on its standard input.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookEvent;
use crate::harness::screen::{AgentState, EvidenceSource, Readiness};
use crate::id::{SessionId, Timestamp};

/// A hook reads no more than this, in bytes. A longer input tells nothing.
pub const MAX_INPUT: usize = 1024 * 1024;
/// Names of tools and errors are not longer.
const LONGEST: usize = 96;

/// What a hook takes from its input: names only, never what a tool was given or what was said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookInput {
    /// The conversation, if its id is a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The tool that a permission is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The kind of failure that ended the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<String>,
}

/// The members of the input that are looked at. Each may be missing or of another type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Raw {
    session_id: Value,
    tool_name: Value,
    error: Value,
    notification_type: Value,
}

impl HookInput {
    /// Reads an input. What is not there, not of the right kind or too long is left out: the event is
    /// known without it.
    pub fn parse(bytes: &[u8]) -> Self {
        if bytes.len() > MAX_INPUT {
            return Self::default();
        }
        let raw: Raw = serde_json::from_slice(bytes).unwrap_or_default();
        Self {
            session_id: raw.session_id.as_str().and_then(uuid),
            tool: raw.tool_name.as_str().and_then(tool_name),
            error: raw.error.as_str().and_then(token),
            notification: raw.notification_type.as_str().and_then(token),
        }
    }

    /// The same, for an input that may have been built by somebody else.
    #[must_use]
    pub fn checked(self) -> Self {
        let Self { session_id, tool, error, notification } = self;
        Self {
            session_id: session_id.filter(|id| is_uuid(id.as_str())),
            tool: tool.as_deref().and_then(tool_name),
            error: error.as_deref().and_then(token),
            notification: notification.as_deref().and_then(token),
        }
    }
}

fn uuid(text: &str) -> Option<SessionId> {
    is_uuid(text).then(|| text.parse().ok()).flatten()
}

fn is_uuid(text: &str) -> bool {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == LENGTHS.len()
        && parts.iter().zip(LENGTHS).all(|(part, length)| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

/// A name of a tool, made safe to show: printable ASCII without quotes, cut.
pub fn tool_name(text: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '`' | '"' | '\\');
    let name: String = text.chars().take(LONGEST).map(|c| if fits(c) { c } else { '?' }).collect();
    (!name.is_empty()).then_some(name)
}

/// A word of a program, such as `rate_limit`; `None` if it is anything else.
pub fn token(text: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (!text.is_empty() && text.len() <= LONGEST && text.bytes().all(plain)).then(|| text.to_owned())
}

/// The last thing that a program told through its hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSeen {
    /// What happened.
    pub event: HookEvent,
    /// When the runner heard of it.
    pub at: Timestamp,
    /// What was said of it.
    pub input: HookInput,
    /// Whether a permission question was let through to the screen.
    pub asked: bool,
}

impl HookSeen {
    /// The state that this event shows; `None` where it shows none. It is that of the moment of the
    /// event: no event tells that a person interrupted a turn or answered a question, so a later look
    /// at the session record, the title or the screen counts for more.
    pub fn state(&self) -> Option<AgentState> {
        let state = |readiness| Some(AgentState::new(readiness, EvidenceSource::Hook));
        match self.event {
            HookEvent::Stop => state(Readiness::Idle),
            HookEvent::StopFailure => {
                let error = self.input.error.clone().or_else(|| Some("unknown".to_owned()));
                Some(AgentState { error, ..AgentState::new(Readiness::Idle, EvidenceSource::Hook) })
            }
            HookEvent::PermissionRequest if self.asked => {
                let tool = self.input.tool.as_deref();
                let waiting_for = Some(tool.unwrap_or("permission").to_owned());
                let waiting = AgentState::new(Readiness::Waiting, EvidenceSource::Hook);
                Some(AgentState { waiting_for, ..waiting })
            }
            // A turn began, or goes on after a denial.
            HookEvent::UserPromptSubmit | HookEvent::PermissionRequest => state(Readiness::Busy),
            HookEvent::Notification => match self.input.notification.as_deref() {
                Some("permission_prompt") => state(Readiness::Waiting),
                _ => None,
            },
            HookEvent::SessionStart | HookEvent::SessionEnd => None,
        }
    }

    /// What a look saw, completed by this event. A look that saw anything certain counts for more: it
    /// is newer. Where it saw nothing, the event counts unless something certain was seen after it,
    /// at `known`. What a failed turn failed with is added to a look that saw the turn's end and no
    /// words for it.
    #[must_use]
    pub fn complete(&self, seen: AgentState, known: Option<Timestamp>) -> AgentState {
        let Some(told) = self.state() else { return seen };
        match seen.readiness {
            Readiness::Unknown if known.is_none_or(|known| known <= self.at) => told,
            Readiness::Idle if seen.error.is_none() && self.event == HookEvent::StopFailure => {
                AgentState { error: told.error, ..seen }
            }
            _ => seen,
        }
    }
}
