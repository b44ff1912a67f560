//! What Claude Code's screen, title and session record tell (05 §7), and what stands in its
//! composer.

use super::dialogs::{
    BUSY_TITLE, DIALOG_OPEN, ERROR, INPUT, INTERRUPT, PENDING, PERMISSION, PLACEHOLDERS,
    QUIET_TITLE, RETRYING, SUGGESTION, TABLE,
};
use crate::harness::screen::dialog::Open;
use crate::harness::screen::text::{draft, rows, without_margin};
use crate::harness::screen::{
    AgentState, Composer, ComposerMode, Evidence, EvidenceSource, Readiness, TerminalDriver,
    Typing, neutral,
};

/// The driver of Claude Code, measured with 2.1.332.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClaudeDriver;

/// The prompt of the composer is followed by this no-break space; a prompt in the transcript or a
/// menu by an ordinary one.
const AFTER_PROMPT: char = '\u{a0}';

/// No footer is taller, in rows that are not empty.
const FOOTER: usize = 12;

/// A rule has at least this many columns.
const RULE: usize = 10;

/// The pending row stands at most this many rows above the composer.
const NOTES: usize = 6;

/// The bottom of a screen with a composer.
#[derive(Debug)]
struct Bottom<'a> {
    above: &'a [&'a str],
    prompt: char,
    draft: Vec<&'a str>,
    footer: &'a [&'a str],
}

impl<'a> Bottom<'a> {
    /// Finds the composer: the last two rules that begin in the first column, the prompt directly
    /// below the first, and nothing but a footer below the second. Drafts, answers and dialogs are
    /// indented, so what is drawn in them is no such rule.
    fn find(rows: &'a [&'a str]) -> Option<Self> {
        let lower = rows.iter().rposition(|row| is_rule(row))?;
        let footer = &rows[lower + 1..];
        let shown = footer.iter().filter(|row| !row.is_empty());
        let calm = |row: &&&str| row.starts_with("  ") && !TABLE.is_hint(row);
        if shown.clone().count() > FOOTER || !shown.clone().all(|row| calm(&row)) {
            return None;
        }
        let upper = rows[..lower].iter().rposition(|row| is_titled_rule(row))?;
        let (first, others) = rows[upper + 1..lower].split_first()?;
        let mut chars = first.chars();
        let prompt = chars.next().filter(|c| matches!(c, '❯' | '!'))?;
        // Trailing blanks were cut, so an empty composer may have lost its no-break space.
        if !chars.as_str().is_empty() && chars.next() != Some(AFTER_PROMPT) {
            return None;
        }
        let mut draft = vec![chars.as_str()];
        for row in others {
            draft.push(without_margin(row)?);
        }
        Some(Self { above: &rows[..upper], prompt, draft, footer })
    }

    fn composer(&self) -> Composer {
        let text = draft(self.draft.iter().copied());
        if self.prompt == '!' {
            return Composer { text, pasted: Vec::new(), mode: ComposerMode::Shell };
        }
        let (start, end) = SUGGESTION;
        let suggestion = |text: &str| {
            text.strip_prefix(start)
                .and_then(|text| text.strip_suffix(end))
                .is_some_and(|text| !text.contains(['"', '\n']))
        };
        if PLACEHOLDERS.contains(&text.as_str()) || suggestion(&text) {
            return Composer::default();
        }
        Composer::message(text)
    }

    /// Whether a permission question is about to be drawn.
    fn pending(&self) -> bool {
        let notes = self.above.iter().rev().filter(|row| !row.is_empty()).take(NOTES);
        notes.take_while(|row| row.starts_with(' ')).any(|row| row.trim() == PENDING)
    }

    fn busy(&self) -> bool {
        self.footer.iter().any(|row| row.contains(INTERRUPT))
    }

    /// The error below the last message of the transcript.
    fn error(&self) -> Option<String> {
        let start = self.above.iter().rposition(|row| row.starts_with("❯ ")).unwrap_or(0);
        let turn = &self.above[start..];
        let at = turn.iter().rposition(|row| is_error(row))?;
        // A long message is wrapped behind a margin of two; what stands further right is a note.
        let wrapped = |row: &&&str| row.starts_with("  ") && !row.starts_with("   ");
        let mut text = vec![turn[at]];
        text.extend(turn[at + 1..].iter().take_while(wrapped));
        Some(neutral(text.join(" ").trim_start_matches(|c: char| !c.is_alphanumeric())))
    }
}

/// Whether the program may put another character in place of this one: it composes what is pasted
/// (normalization form C). Marks that compose with letters of Latin, Greek and Cyrillic, the pieces of
/// Hangul, signs that are another letter. Of other scripts nearly everything is composed already;
/// what is changed all the same is not seen in the composer, so no Enter follows.
fn recomposed(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1100}'..='\u{11ff}' | '\u{212a}' | '\u{212b}')
        || matches!(c, '\u{2126}' | '\u{f900}'..='\u{faff}')
}

fn is_rule(row: &str) -> bool {
    row.starts_with('─') && row.chars().all(|c| c == '─') && row.chars().count() >= RULE
}

/// The upper rule may carry the name of the session.
fn is_titled_rule(row: &str) -> bool {
    row.starts_with('─') && row.ends_with('─') && row.chars().filter(|c| *c == '─').count() >= RULE
}

fn is_error(row: &str) -> bool {
    row.starts_with(ERROR)
        || (!row.starts_with([' ', '❯', '●']) && RETRYING.iter().all(|part| row.contains(part)))
}

/// What the title tells: a turn runs, or none runs (or it waits). Before the first turn tmux shows
/// a piece of a graphics query in place of a title.
fn title_is_busy(title: Option<&str>) -> Option<bool> {
    let first = title?.chars().next()?;
    if BUSY_TITLE.contains(&first) {
        return Some(true);
    }
    (first == QUIET_TITLE).then_some(false)
}

impl ClaudeDriver {
    /// What the record says; none for a status that is not known.
    fn by_record(evidence: &Evidence<'_>, seen: Option<Open>) -> Option<AgentState> {
        let record = evidence.record?;
        let source = EvidenceSource::Record;
        match record.status.as_deref()? {
            "waiting" => {
                let waiting_for = record.waiting_for.as_deref().map(neutral);
                let question = !matches!(waiting_for.as_deref(), Some(DIALOG_OPEN) | None);
                let name = seen.and_then(|open| open.name).or(match waiting_for.as_deref() {
                    Some(PERMISSION) => Some("permission"),
                    Some(INPUT) => Some("question"),
                    _ => None,
                });
                let readiness = if question { Readiness::Waiting } else { Readiness::Dialog };
                Some(AgentState {
                    waiting_for,
                    dialog: name.map(str::to_owned),
                    ..AgentState::new(readiness, source)
                })
            }
            // A dialog on the screen is believed over the record, which may be older or forged.
            "idle" | "shell" | "busy" if seen.is_some() => None,
            "idle" | "shell" => Some(AgentState::new(Readiness::Idle, source)),
            "busy" => Some(AgentState::new(Readiness::Busy, source)),
            _ => None,
        }
    }

    fn by_title_and_screen(
        title: Option<bool>,
        seen: Option<Open>,
        bottom: Option<&Bottom<'_>>,
        blank: bool,
    ) -> AgentState {
        let screen = EvidenceSource::Screen;
        if let Some(open) = seen {
            return AgentState::at_dialog(open, screen);
        }
        if title == Some(true) {
            return AgentState::new(Readiness::Busy, EvidenceSource::Title);
        }
        match bottom {
            Some(bottom) if bottom.busy() => AgentState::new(Readiness::Busy, screen),
            Some(_) if title == Some(false) => {
                AgentState::new(Readiness::Idle, EvidenceSource::Title)
            }
            // With text in the composer the footer of a busy screen is that of an idle one.
            Some(bottom) if bottom.composer().is_empty() => {
                AgentState::new(Readiness::Idle, screen)
            }
            None if blank => AgentState::new(Readiness::Starting, screen),
            _ => AgentState::unknown(),
        }
    }
}

impl TerminalDriver for ClaudeDriver {
    fn state(&self, evidence: &Evidence<'_>) -> AgentState {
        let rows = rows(evidence.screen);
        let bottom = Bottom::find(&rows);
        let seen = match &bottom {
            Some(bottom) if bottom.pending() => {
                Some(Open { name: Some("permission"), waiting_for: Some(PERMISSION) })
            }
            Some(_) => None,
            None => TABLE.open(&rows),
        };
        let mut state = Self::by_record(evidence, seen).unwrap_or_else(|| {
            let title = title_is_busy(evidence.title);
            Self::by_title_and_screen(title, seen, bottom.as_ref(), rows.is_empty())
        });
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
        Typing::Queues
    }

    fn as_typed(&self, text: &str) -> Result<String, &'static str> {
        if text.trim_start().starts_with('!') {
            return Err("a text that begins with `!` may be run in a shell");
        }
        if text.trim_start().starts_with('/') {
            return Err("a text that begins with `/` would be run as a command of the program");
        }
        if text.contains('\t') {
            return Err("a tab would arrive as four spaces");
        }
        if text.chars().any(recomposed) {
            return Err("a letter with an accent of its own would arrive as another character");
        }
        // After a backslash Enter is a newline.
        Ok(if text.ends_with('\\') { format!("{text} ") } else { text.to_owned() })
    }
}
