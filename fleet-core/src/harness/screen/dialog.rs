//! Dialogs at the bottom of a screen. The tables are data of each harness.
//!
//! A numbered list in prose, a pointer alone or a question alone is no dialog: it takes a pointer
//! directly before a numbered option, a text of the table with its options, or the key hint with
//! which a program ends its dialogs (02 §7.3). The caller asks only when no composer stands at the
//! bottom.

/// A dialog of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// Its name in `status`.
    pub(crate) name: &'static str,
    /// Texts that stand on it, all of them; wrapping does not matter.
    pub(crate) texts: &'static [&'static str],
    /// Whether it offers options; one that offers none counts by its texts alone.
    pub(crate) options: bool,
    /// For a question about a permission or of the agent: what is asked for.
    pub(crate) waiting_for: Option<&'static str>,
}

impl Mark {
    /// Where its first text stands last, if all its texts stand here. What stands lowest names the
    /// dialog, so that words of the transcript above it don't.
    fn found_at(&self, text: &str) -> Option<usize> {
        let all = self.texts.iter().all(|part| text.contains(part));
        all.then(|| self.texts.first().and_then(|first| text.rfind(first))).flatten()
    }
}

/// How the dialogs of one program look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// The pointer before the chosen option.
    pub(crate) pointer: char,
    /// The known dialogs; the one that stands lowest counts.
    pub(crate) marks: &'static [Mark],
    /// Texts of the key hints with which a dialog ends.
    pub(crate) hints: &'static [&'static str],
}

/// A dialog that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    /// Its name, if the table has it.
    pub(crate) name: Option<&'static str>,
    /// What is asked for, if it is a question.
    pub(crate) waiting_for: Option<&'static str>,
}

/// Rows from the bottom in which a dialog is looked for.
const DEPTH: usize = 60;

/// An option stands at most so many rows after its text.
const REACH: usize = 10;

impl Table {
    /// The dialog at the bottom of these rows.
    pub(crate) fn open(&self, rows: &[&str]) -> Option<Open> {
        let rows: Vec<&str> = rows[rows.len().saturating_sub(DEPTH)..]
            .iter()
            .copied()
            .filter(|row| !row.trim().is_empty())
            .collect();
        let hint = rows.iter().rev().take(2).any(|row| self.is_hint(row));
        let pointed = rows.iter().rev().take(REACH * 2).any(|row| self.points_at_number(row));
        let text = one_line(&rows);
        let named = self
            .marks
            .iter()
            .filter(|mark| !mark.options || hint || pointed || numbered_after(&rows, mark))
            .filter_map(|mark| Some((mark.found_at(&text)?, mark)))
            .max_by_key(|(at, _)| *at);
        if let Some((_, mark)) = named {
            return Some(Open { name: Some(mark.name), waiting_for: mark.waiting_for });
        }
        (hint || pointed).then_some(Open { name: None, waiting_for: None })
    }

    /// Whether a row is a key hint of a dialog.
    pub(crate) fn is_hint(&self, row: &str) -> bool {
        self.hints.iter().any(|hint| row.contains(hint))
    }

    fn points_at_number(&self, row: &str) -> bool {
        row.trim_start()
            .strip_prefix(self.pointer)
            .is_some_and(|rest| rest.starts_with(char::is_whitespace) && numbered(rest))
    }
}

/// Whether a row begins with a number and a full stop.
fn numbered(row: &str) -> bool {
    let rest = row.trim_start();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    after.len() < rest.len() && after.starts_with(". ")
}

/// Rows as one line, so that a text is found although it was wrapped.
fn one_line(rows: &[&str]) -> String {
    rows.iter().flat_map(|row| row.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// Whether at least two numbered options follow the first text of a mark closely.
fn numbered_after(rows: &[&str], mark: &Mark) -> bool {
    let Some(text) = mark.texts.first() else { return false };
    rows.iter().enumerate().filter(|(_, row)| row.contains(text)).any(|(at, _)| {
        rows[at..].iter().skip(1).take(REACH).filter(|row| numbered(row)).count() >= 2
    })
}
