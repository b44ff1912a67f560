//! Hooks: commands that an agent program runs at events of its own. Fleet installs one at the events
//! of a table; it tells the runner what happens, and asks it whether a permission question may open
//! or is denied because nobody is there (02 §7.6).
//!
//! Pure: what the settings hold, what a hook reads, what is decided, what a hook prints. What a hook
//! says comes from the agent's side, so it is a hint and never a proof.

mod decision;
mod input;

use std::fmt;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value, json};

use crate::permissions::{Outer, Unattended};

pub use decision::{Attendance, Decision, DenyReason, decide, deny_output};
pub use input::{HookInput, HookSeen, MAX_INPUT, token, tool_name};

/// The hidden verb of the fleet program that runs as a hook.
pub const VERB: &str = "_hook";
/// How long a harness waits for a hook, in seconds; longer than the hook itself ever takes.
const HARNESS_PATIENCE: u64 = 15;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// An event of an agent program, by the name that both programs use.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum HookEvent {
            $($(#[$doc])* $name,)*
        }

        impl HookEvent {
            /// Every event.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name that the programs use.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

events! {
    /// A conversation begins or goes on.
    SessionStart = "SessionStart";
    /// A turn begins.
    UserPromptSubmit = "UserPromptSubmit";
    /// A permission is asked for; the hook may answer.
    PermissionRequest = "PermissionRequest";
    /// The program wants attention.
    Notification = "Notification";
    /// A turn ended.
    Stop = "Stop";
    /// A turn ended because the provider failed.
    StopFailure = "StopFailure";
    /// The conversation ends.
    SessionEnd = "SessionEnd";
}

/// No event of the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no event that fleet listens to")]
pub struct UnknownEvent;

impl FromStr for HookEvent {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        Self::ALL.iter().copied().find(|event| event.as_str() == text).ok_or(UnknownEvent)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What Claude Code is asked to tell.
pub const CLAUDE_EVENTS: &[HookEvent] = &[
    HookEvent::SessionStart,
    HookEvent::UserPromptSubmit,
    HookEvent::PermissionRequest,
    HookEvent::Notification,
    HookEvent::Stop,
    HookEvent::StopFailure,
];

/// What Codex is asked to tell.
pub const CODEX_EVENTS: &[HookEvent] = &[
    HookEvent::SessionStart,
    HookEvent::UserPromptSubmit,
    HookEvent::PermissionRequest,
    HookEvent::Stop,
    HookEvent::SessionEnd,
];

/// When a harness is given the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookUse {
    /// Never: it has none.
    Never,
    /// Only inside the role's own isolation, because the switch that lets it run lets the hooks of a
    /// project run too.
    Isolated,
    /// Always.
    Always,
}

impl HookUse {
    /// What is known of the built-in harnesses.
    pub fn of(harness: &str) -> Self {
        match harness {
            "claude-code" => Self::Always,
            "codex" => Self::Isolated,
            _ => Self::Never,
        }
    }

    /// Whether a launch inside this boundary ships the hook.
    pub fn ships(self, outer: Outer) -> bool {
        match self {
            Self::Never => false,
            Self::Isolated => outer.is_on(),
            Self::Always => true,
        }
    }
}

/// What the analysis says of `unattended` for a harness that asks questions; `None` where the promise
/// is kept. `shipped`: whether the launch has the hook.
pub fn unattended_note(unattended: Unattended, shipped: bool) -> Option<&'static str> {
    (unattended == Unattended::Deny && !shipped).then_some(
        "`unattended: deny` is not enforced here: a question stays open until somebody answers it",
    )
}

/// A path that no hook command can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} of the hook {problem}")]
pub struct HookPathError {
    what: &'static str,
    problem: &'static str,
}

/// The command that a harness runs as a hook: the fleet program and the socket of the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    binary: Utf8PathBuf,
    socket: Utf8PathBuf,
}

impl HookCommand {
    /// A hook of this fleet program that reaches the runner at this socket.
    ///
    /// # Errors
    /// A path is not absolute or holds a control character.
    pub fn new(binary: &Utf8Path, socket: &Utf8Path) -> Result<Self, HookPathError> {
        for (what, path) in [("program", binary), ("socket", socket)] {
            let problem = if !path.is_absolute() {
                "is not absolute"
            } else if path.as_str().chars().any(char::is_control) {
                "has a control character in its path"
            } else {
                continue;
            };
            return Err(HookPathError { what, problem });
        }
        Ok(Self { binary: binary.to_owned(), socket: socket.to_owned() })
    }

    /// The fleet program, which must be executable where the harness runs.
    pub fn binary(&self) -> &Utf8Path {
        &self.binary
    }

    /// The runner's socket.
    pub fn socket(&self) -> &Utf8Path {
        &self.socket
    }

    /// The command for one event, as text for a POSIX shell.
    pub fn shell(&self, event: HookEvent) -> String {
        let (binary, socket) = (quoted(self.binary.as_str()), quoted(self.socket.as_str()));
        format!("{binary} {VERB} {event} {socket}")
    }

    /// The `hooks` object of Claude Code's settings.
    pub fn claude_hooks(&self) -> Map<String, Value> {
        self.hooks(CLAUDE_EVENTS)
    }

    /// The text of Codex's `hooks.json`.
    pub fn codex_file(&self) -> String {
        json!({ "hooks": self.hooks(CODEX_EVENTS) }).to_string()
    }

    fn hooks(&self, events: &[HookEvent]) -> Map<String, Value> {
        let entry = |event: HookEvent| {
            let hook = json!({
                "type": "command",
                "command": self.shell(event),
                "timeout": HARNESS_PATIENCE,
            });
            (event.as_str().to_owned(), json!([{ "hooks": [hook] }]))
        };
        events.iter().copied().map(entry).collect()
    }
}

/// One word for a POSIX shell: nothing in it is special.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
