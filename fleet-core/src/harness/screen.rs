//! What can be told about an agent program from outside: its screen, title and session record.
//!
//! Pure: text comes in, a verdict goes out. Everything seen here can be written by the agent
//! itself, so a verdict is a hint and never a proof; where the evidence is doubtful, the answer is
//! the one that keeps hands off the keyboard. The drivers live in each harness's `screen.rs`, the
//! measured screens they are tested against in `tests/fixtures/screens`.

mod composer;
pub(crate) mod dialog;
mod record;
pub(crate) mod text;

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

pub use composer::{Composer, ComposerMode, Held, PastedMarker, holds};
pub use record::SessionRecord;
pub use text::neutral;

/// What was seen of a program from outside. All of it can be written by the agent: hints, never
/// proof.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The visible screen as plain text; rows that the terminal wrapped are joined.
    pub screen: &'a str,
    /// The terminal's title, if it could be read.
    pub title: Option<&'a str>,
    /// The program's own session record, only if the adapter found that it belongs to the live
    /// process of this role.
    pub record: Option<&'a SessionRecord>,
}

/// Whether a program takes input now. Turn occupancy only: says nothing of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readiness {
    /// Not yet on its main screen.
    Starting,
    /// No turn runs.
    Idle,
    /// A turn runs.
    Busy,
    /// A question about a permission, or of the agent, waits for an answer.
    Waiting,
    /// Another dialog is open: at the start, a menu, a picker.
    Dialog,
    /// Nothing certain was seen.
    Unknown,
}

impl Readiness {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Waiting => "waiting",
            Self::Dialog => "dialog",
            Self::Unknown => "unknown",
        }
    }
}

/// What a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceSource {
    /// The program's own session record.
    Record,
    /// A hook that the program ran.
    Hook,
    /// The terminal's title.
    Title,
    /// The visible screen.
    Screen,
    /// Literal texts of the fleet file.
    Patterns,
    /// Nothing.
    None,
}

impl EvidenceSource {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Hook => "hook",
            Self::Title => "title",
            Self::Screen => "screen",
            Self::Patterns => "patterns",
            Self::None => "none",
        }
    }
}

/// The state of an agent program, as far as it can be told from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// Whether it takes input.
    pub readiness: Readiness,
    /// What it waits for; short and without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// Name of the open dialog in the harness's table; none if the dialog is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<String>,
    /// What the verdict rests on.
    pub evidence: EvidenceSource,
    /// The error that the screen shows for the last turn; short and without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl AgentState {
    /// A state with nothing but a readiness.
    pub fn new(readiness: Readiness, evidence: EvidenceSource) -> Self {
        Self { readiness, waiting_for: None, dialog: None, evidence, error: None }
    }

    /// Nothing is known.
    pub fn unknown() -> Self {
        Self::new(Readiness::Unknown, EvidenceSource::None)
    }

    /// The state while this dialog is open.
    pub(crate) fn at_dialog(open: dialog::Open, evidence: EvidenceSource) -> Self {
        let readiness =
            if open.waiting_for.is_some() { Readiness::Waiting } else { Readiness::Dialog };
        Self {
            readiness,
            waiting_for: open.waiting_for.map(str::to_owned),
            dialog: open.name.map(str::to_owned),
            evidence,
            error: None,
        }
    }
}

/// What a program does with text that is sent while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typing {
    /// Keeps it until the turn ends.
    Queues,
    /// Gives it to the running turn, which may drop the answer in flight: don't.
    Steers,
}

/// How much of a program a driver can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    /// Nothing: alive is ready, and a text is typed as it is.
    Nothing,
    /// Whether it takes input, but not that a turn runs.
    Ready,
    /// Also that a turn runs.
    Turns,
    /// Also what stands in its composer, so that Enter is pressed only on a text that was seen.
    Composer,
}

/// How one program shows itself on a terminal. One per built-in harness and pure; tested against
/// screens of the real program.
pub trait TerminalDriver: Send + Sync + Debug {
    /// The state that the evidence shows.
    ///
    /// Never `Idle` while a dialog of the table is at the bottom of the screen.
    fn state(&self, evidence: &Evidence<'_>) -> AgentState;

    /// What stands in the composer; `None` if this screen shows none (a dialog, a start, a draft
    /// taller than the screen, anything unknown).
    ///
    /// Only the bottom-most composer counts, so text of the transcript is never taken for one.
    fn composer(&self, screen: &str) -> Option<Composer>;

    /// Keys, in the order to press, that delete at least a part of what stands before the cursor:
    /// press and look until the composer is empty. Of n lines they take at most 2n - 1 presses.
    fn clear_keys(&self) -> &'static [&'static str];

    /// What happens to text that is sent while a turn runs.
    fn typing(&self) -> Typing;

    /// What to paste so that Enter gives exactly this text to the model, blanks at its ends apart:
    /// the text itself, or with a blank added that the program takes away again.
    ///
    /// # Errors
    /// Why no paste does that, a lower-case fragment.
    ///
    /// # Security
    /// Measured: a pasted text that begins with `!` is run as a shell command, with no question
    /// asked. Paste nothing else than this gives.
    fn as_typed(&self, text: &str) -> Result<String, &'static str>;

    /// How much this driver can read.
    fn sight(&self) -> Sight {
        Sight::Composer
    }
}
