//! What Codex's title and screen tell (05 §7), and what stands in its composer.

use super::dialogs::{
    ACTION_TITLES, APPROVAL, ERROR, INTERRUPT, NO_ERROR, PLACEHOLDERS, RECONNECTING, SEARCH,
    STARTING, TABLE,
};
use crate::harness::screen::text::{draft, rows, without_margin};
use crate::harness::screen::{
    AgentState, Composer, ComposerMode, Evidence, EvidenceSource, Readiness, TerminalDriver,
    Typing, neutral,
};

/// The driver of Codex, measured with 0.171.0.
#[derive(Debug, Clone, Copy, Default)]
pub struct CodexDriver;

/// The status line and what stands below it are not taller; a long path wraps.
const STATUS: usize = 6;

/// The bottom of a screen with a composer.
#[derive(Debug)]
struct Bottom<'a> {
    above: &'a [&'a str],
    prompt: char,
    draft: Vec<&'a str>,
}

impl<'a> Bottom<'a> {
    /// Finds the composer: the last rows are the status line, which names the directory, with an
    /// empty row above it; above that the draft, from the last prompt in the first column. Before
    /// the main screen is up the status line names no directory, and a dialog has none.
    fn find(rows: &'a [&'a str]) -> Option<Self> {
        let blank = rows.iter().rposition(|row| row.is_empty())?;
        let status = &rows[blank + 1..];
        if status.len() > STATUS || !is_status(status) {
            return None;
        }
        let start =
            rows[..blank].iter().rposition(|row| !row.is_empty() && !row.starts_with("  "))?;
        let (first, others) = rows[start..blank].split_first()?;
        let mut chars = first.chars();
        let prompt = chars.next().filter(|c| matches!(c, '›' | '!'))?;
        if !chars.as_str().is_empty() && chars.next() != Some(' ') {
            return None;
        }
        let mut draft = vec![chars.as_str()];
        for row in others {
            draft.push(without_margin(row)?);
        }
        Some(Self { above: &rows[..start], prompt, draft })
    }

    fn composer(&self) -> Composer {
        let text = draft(self.draft.iter().copied());
        if self.prompt == '!' {
            return Composer { text, pasted: Vec::new(), mode: ComposerMode::Shell };
        }
        if PLACEHOLDERS.contains(&text.as_str()) {
            return Composer::default();
        }
        Composer::message(text)
    }

    /// The row that tells of a running turn: the last one above the composer that begins in the
    /// first column and is no heading of queued messages.
    fn working(&self) -> Option<&'a str> {
        let column = |row: &&&str| !row.is_empty() && !row.starts_with(' ');
        let mut last = self.above.iter().rev().filter(column);
        let row = last.next()?;
        let heading = row.starts_with("• Queued") || row.starts_with("• Messages to be");
        let row = if heading { last.next()? } else { row };
        (row.starts_with(['•', '◦']) && row.ends_with(INTERRUPT) && !self.turn_ended(row))
            .then_some(row)
    }

    /// Whether the row is followed by the closing line of a turn: then the agent wrote it.
    fn turn_ended(&self, row: &str) -> bool {
        let below = self.above.iter().rev().take_while(|other| **other != row);
        below.into_iter().any(|other| other.starts_with("  Worked for "))
    }

    /// The error below the last message of the transcript.
    fn error(&self) -> Option<String> {
        let working = self.working().map(|row| row.trim_start_matches(['•', '◦', ' ']));
        if let Some(row) = working.filter(|row| row.starts_with(RECONNECTING)) {
            return Some(neutral(row.split(" (").next().unwrap_or(row)));
        }
        let start = self.above.iter().rposition(|row| row.starts_with("› ")).unwrap_or(0);
        let error = |row: &&&str| {
            row.starts_with(ERROR) && !NO_ERROR.iter().any(|other| row.starts_with(other))
        };
        let row = self.above[start..].iter().rev().find(error)?;
        let text = row.trim_start_matches(ERROR);
        Some(neutral(text.split(", url:").next().unwrap_or(text)))
    }
}

/// `  MODEL … · DIRECTORY`, possibly wrapped, with hints below it.
fn is_status(rows: &[&str]) -> bool {
    let Some(first) = rows.first() else { return false };
    let names_directory = first.contains(" · /") || first.contains(" · ~");
    let indented = |row: &&str| row.starts_with("  ");
    let searching = rows.iter().any(|row| row.trim_start().starts_with(SEARCH));
    names_directory && rows.iter().all(indented) && !first.starts_with("   ") && !searching
}

/// Whether the title begins with a spinner: a turn runs.
fn title_spins(title: &str) -> bool {
    let mut chars = title.chars();
    matches!(chars.next(), Some('\u{2800}'..='\u{28ff}')) && chars.next() == Some(' ')
}

impl TerminalDriver for CodexDriver {
    fn state(&self, evidence: &Evidence<'_>) -> AgentState {
        let rows = rows(evidence.screen);
        let bottom = Bottom::find(&rows);
        let seen = if bottom.is_some() { None } else { TABLE.open(&rows) };
        let title = evidence.title.unwrap_or_default();
        let mut state = if ACTION_TITLES.iter().any(|start| title.starts_with(start)) {
            let waiting_for = seen.and_then(|open| open.waiting_for).unwrap_or(APPROVAL);
            AgentState {
                waiting_for: Some(waiting_for.to_owned()),
                dialog: Some(APPROVAL.to_owned()),
                ..AgentState::new(Readiness::Waiting, EvidenceSource::Title)
            }
        } else if let Some(open) = seen {
            AgentState::at_dialog(open, EvidenceSource::Screen)
        } else if title_spins(title) {
            AgentState::new(Readiness::Busy, EvidenceSource::Title)
        } else if let Some(bottom) = &bottom {
            let readiness =
                if bottom.working().is_some() { Readiness::Busy } else { Readiness::Idle };
            AgentState::new(readiness, EvidenceSource::Screen)
        } else if rows.is_empty()
            || STARTING.iter().all(|text| rows.iter().any(|row| row.contains(text)))
        {
            AgentState::new(Readiness::Starting, EvidenceSource::Screen)
        } else {
            AgentState::unknown()
        };
        state.error = bottom.as_ref().and_then(Bottom::error);
        state
    }

    fn composer(&self, screen: &str) -> Option<Composer> {
        Some(Bottom::find(&rows(screen))?.composer())
    }

    fn clear_keys(&self) -> &'static [&'static str] {
        &["C-u"]
    }

    fn typing(&self) -> Typing {
        Typing::Steers
    }

    fn as_typed(&self, text: &str) -> Result<String, &'static str> {
        // In the first column these begin a shell command and a command of the program; after a
        // blank they are text, and the blank is taken away.
        let first = if text.starts_with(['!', '/']) { " " } else { "" };
        // A last word like these opens a menu, and Enter takes its first line instead.
        let last_word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
        let last = if last_word.starts_with(['@', '$']) { " " } else { "" };
        Ok(format!("{first}{text}{last}"))
    }
}
