//! Rows of a screen, and text made safe to show.

/// No text of a state is longer, in characters.
const SHOWN: usize = 120;

/// The rows of a screen without trailing blanks, the empty ones at its end left out.
pub(crate) fn rows(screen: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    while rows.last().is_some_and(|row| row.is_empty()) {
        rows.pop();
    }
    rows
}

/// Text of a foreign program on one line of at most 120 characters, without control characters and
/// without those that hide or turn text.
pub fn neutral(text: &str) -> String {
    let visible = |c: char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let plain: String = text
        .chars()
        .filter(|c| visible(*c))
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SHOWN {
        return line;
    }
    let mut cut: String = line.chars().take(SHOWN - 1).collect();
    cut.push('…');
    cut
}

/// The text without any whitespace: what remains comparable after a program wrapped it.
pub(crate) fn squashed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A row as the composer shows it, without its two columns of margin; `None` if the margin holds
/// something.
pub(crate) fn without_margin(row: &str) -> Option<&str> {
    if row.is_empty() { Some("") } else { row.strip_prefix("  ") }
}

/// Rows of a draft as text: joined by newlines, without empty rows at the end.
pub(crate) fn draft<'a>(rows: impl IntoIterator<Item = &'a str>) -> String {
    rows.into_iter().collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_is_one_short_plain_line() {
        assert_eq!(neutral("a\u{1b}[2J\n\tb\u{202e}c"), "a [2J bc");
        let long = neutral(&"ä ".repeat(200));
        assert_eq!(long.chars().count(), SHOWN);
        assert!(long.ends_with('…'));
        assert_eq!(neutral(&"x".repeat(SHOWN)), "x".repeat(SHOWN));
    }
}
