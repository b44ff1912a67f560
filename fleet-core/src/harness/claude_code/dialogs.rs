//! Texts on the screens of Claude Code, measured with 2.1.332.

use crate::harness::screen::dialog::{Mark, Table};

/// A dialog whose options end with a key hint.
const fn dialog(name: &'static str, texts: &'static [&'static str]) -> Mark {
    Mark { name, texts, options: true, waiting_for: None }
}

/// A question that the agent's turn waits for.
const fn question(
    name: &'static str,
    texts: &'static [&'static str],
    waiting_for: &'static str,
) -> Mark {
    Mark { name, texts, options: true, waiting_for: Some(waiting_for) }
}

/// A screen at which the start stops, without options.
const fn stop(name: &'static str, texts: &'static [&'static str]) -> Mark {
    Mark { name, texts, options: false, waiting_for: None }
}

/// The record's words for a permission question.
pub(super) const PERMISSION: &str = "permission prompt";

/// The record's words for a question of the agent.
pub(super) const INPUT: &str = "input needed";

/// The record's words for any other dialog.
pub(super) const DIALOG_OPEN: &str = "dialog open";

/// The dialogs. The pointer of the trust and bypass dialogs stands on "No, exit".
pub(super) const TABLE: Table = Table {
    pointer: '❯',
    marks: &[
        stop("offline", &["Unable to connect to Anthropic services"]),
        stop("onboarding", &["Choose the text style that looks best with your terminal"]),
        stop("onboarding", &["Security notes:", "Press Enter to continue"]),
        dialog("trust", &["Accessing workspace:", "Quick safety check"]),
        dialog("add-dir", &["Adding a new directory:"]),
        dialog("api-key", &["Detected a custom API key in your environment"]),
        dialog("bypass", &["WARNING: Claude Code running in Bypass Permissions mode"]),
        dialog("project-mcp", &["New MCP server found in this project"]),
        dialog("project-mcp", &["new MCP servers found in this project"]),
        dialog("auto-mode", &["Auto mode can't check actions in this session"]),
        question("question", &["Enter to select", "to navigate", "Esc to cancel"], INPUT),
        question("permission", &["Do you want to proceed?"], PERMISSION),
        question("permission", &["Do you want to make this edit"], PERMISSION),
        question("permission", &["Do you want to create"], PERMISSION),
        question("permission", &["Do you want to overwrite"], PERMISSION),
        question("permission", &["Do you want to", "Esc to cancel · Tab to amend"], PERMISSION),
        question("permission", &["Exit plan mode?"], PERMISSION),
        question("permission", &["Would you like to proceed?"], PERMISSION),
        dialog("rewind", &["Restore the code and/or conversation"]),
        dialog("model", &["Select model"]),
        dialog("history-search", &["Search prompts"]),
        dialog("transcript", &["Showing detailed transcript"]),
    ],
    hints: &["Esc to ", "Enter to ", "Showing detailed transcript"],
};

/// What the empty composer may show, exactly. One that offers to go on with Enter is left out: it
/// is not empty for us.
pub(super) const PLACEHOLDERS: &[&str] = &[
    "Press up to edit queued messages",
    "Press up to edit queued messages, Enter to send them now",
    "Press up to select a queued message, then Enter to edit it",
    "Press up to select a queued message to edit, or Enter to send them now",
    "Resend your message to try again",
    "Once fixed, resend your message",
    "Run /rewind to go back",
    "Describe something to build, change, or fix",
];

/// Beginning and end of the suggestion in a new session's composer.
pub(super) const SUGGESTION: (&str, &str) = ("Try \"", "\"");

/// The row that shows for half a second before a permission question is drawn, while the composer
/// still stands: measured, a paste would land in it.
pub(super) const PENDING: &str = "Waiting for permission…";

/// In the footer while a turn runs and the composer is empty.
pub(super) const INTERRUPT: &str = "esc to interrupt";

/// First characters of the title while a turn runs.
pub(super) const BUSY_TITLE: &[char] = &['◐', '◑', '◒', '◓'];

/// First character of the title while no turn runs or one waits.
pub(super) const QUIET_TITLE: char = '✳';

/// How an error row begins, and what marks one that is retried.
pub(super) const ERROR: &str = "● API Error";

/// What stands in a row of an error that is being retried.
pub(super) const RETRYING: &[&str] = &[" · retrying in ", " · attempt "];
