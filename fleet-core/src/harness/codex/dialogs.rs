//! Texts on the screens of Codex, measured with 0.171.0.

use crate::harness::screen::dialog::{Mark, Table};

/// A dialog that is no question of the agent.
const fn dialog(name: &'static str, texts: &'static [&'static str]) -> Mark {
    Mark { name, texts, options: true, waiting_for: None }
}

/// A question about a permission.
const fn approval(texts: &'static [&'static str], waiting_for: &'static str) -> Mark {
    Mark { name: "approval", texts, options: true, waiting_for: Some(waiting_for) }
}

/// The dialogs. The pointer of the model offer stands on the option that switches the model and
/// saves it.
pub(super) const TABLE: Table = Table {
    pointer: '›',
    marks: &[
        dialog("trust", &["Trust this folder?"]),
        dialog("model-offer", &["Try new model", "Use existing model"]),
        dialog("hooks", &["Hooks need review"]),
        dialog("model", &["Select Model and Effort"]),
        dialog("warnings", &["Warnings ·"]),
        dialog("agents", &["esc back", "enter open"]),
        dialog("history-search", &[SEARCH]),
        approval(&["Would you like to run the following command?"], "command"),
        approval(&["Would you like to make the following edits?"], "edit"),
        approval(&["MCP server to run tool", "enter to submit"], "tool"),
    ],
    hints: &[
        "esc to cancel",
        "esc back",
        "esc dismiss",
        "esc skip",
        "enter confirm",
        "enter select",
        "enter continue",
        "enter/esc confirm",
        "enter to submit",
        SEARCH,
    ],
};

/// In the footer while what is typed goes into a search, although the composer seems empty.
pub(super) const SEARCH: &str = "reverse-i-search:";

/// What the empty composer may show, exactly.
pub(super) const PLACEHOLDERS: &[&str] = &["Ask Codex to do anything", "Ask a follow-up question"];

/// How the title begins at an approval.
pub(super) const ACTION_TITLES: &[&str] = &["[ ! ] Action Required", "[ . ] Action Required"];

/// What an approval is called while its text is not on the screen.
pub(super) const APPROVAL: &str = "approval";

/// How the row above the composer ends while a turn runs.
pub(super) const INTERRUPT: &str = "esc to interrupt)";

/// How that row begins while the program tries again after an error.
pub(super) const RECONNECTING: &str = "Reconnecting...";

/// Texts of the program's own screen before its main screen is up.
pub(super) const STARTING: &[&str] = &[">_ OpenAI Codex", "loading"];

/// How an error row begins.
pub(super) const ERROR: &str = "■ ";

/// Rows that begin so and are no error.
pub(super) const NO_ERROR: &[&str] = &["■ Conversation interrupted"];
