//! One line of JSON each way.

use fleet_core::harness::hooks::{Decision, DenyReason, HookEvent, HookInput};
use serde::{Deserialize, Serialize};

/// A longer request is not read.
pub const MAX_FRAME: usize = 64 * 1024;
const VERSION: u32 = 1;

/// All that can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum HookRequest {
    /// A permission is asked for: may the dialog open?
    Attended {
        /// What the hook was told.
        input: HookInput,
    },
    /// Something else happened.
    Event {
        /// What.
        event: HookEvent,
        /// What the hook was told.
        input: HookInput,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Frame {
    version: u32,
    #[serde(flatten)]
    request: HookRequest,
}

/// No request of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused;

pub(super) fn parse(line: &[u8]) -> Result<HookRequest, Refused> {
    let frame: Frame = serde_json::from_slice(line).map_err(|_| Refused)?;
    match frame.request {
        // Only what is decided about counts as a question.
        HookRequest::Event { event: HookEvent::PermissionRequest, .. } => Err(Refused),
        request if frame.version == VERSION => Ok(request),
        _ => Err(Refused),
    }
}

/// The line that makes a request.
pub(super) fn request_line(request: HookRequest) -> Vec<u8> {
    // Our own types always serialise.
    let mut line = serde_json::to_vec(&Frame { version: VERSION, request }).unwrap_or_default();
    line.push(b'\n');
    line
}

/// What is done with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The dialog opens.
    Ask,
    /// It is denied.
    Deny,
}

/// The answer to a request. Carries no text: what the agent is told is the hook's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// The protocol's version.
    pub version: u32,
    /// Whether the request was one of the two.
    pub ok: bool,
    /// What is done with a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Verdict>,
    /// Why it is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DenyReason>,
}

impl HookAnswer {
    pub(super) fn decided(decision: Decision) -> Self {
        let (decision, reason) = match decision {
            Decision::Ask => (Verdict::Ask, None),
            Decision::Deny(reason) => (Verdict::Deny, Some(reason)),
        };
        Self { decision: Some(decision), reason, ..Self::heard() }
    }

    pub(super) fn heard() -> Self {
        Self { version: VERSION, ok: true, decision: None, reason: None }
    }

    pub(super) fn refused() -> Self {
        Self { ok: false, ..Self::heard() }
    }

    /// The decision. Anything that is not plainly "ask" denies.
    pub(super) fn decision(self) -> Decision {
        match self {
            Self { version: VERSION, ok: true, decision: Some(Verdict::Ask), .. } => Decision::Ask,
            _ => Decision::Deny(self.reason.unwrap_or(DenyReason::NoRunner)),
        }
    }
}
