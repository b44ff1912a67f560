//! What stands in a composer, and whether it is what was pasted.

use super::text::squashed;

/// What the composer would do with its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ComposerMode {
    /// Send it to the model.
    #[default]
    Message,
    /// Run it in a shell.
    Shell,
}

/// What stands in the composer of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Composer {
    /// The text, without chrome and placeholder. A wrapped line cannot be told from two lines.
    pub text: String,
    /// The places where the program shows a marker for a long paste.
    pub pasted: Vec<PastedMarker>,
    /// What Enter would do with it.
    pub mode: ComposerMode,
}

impl Composer {
    /// A composer for messages with this text; markers are found in it.
    pub fn message(text: String) -> Self {
        Self { pasted: PastedMarker::find(&text), text, mode: ComposerMode::Message }
    }

    /// Whether nobody typed anything: text may be pasted here.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.mode == ComposerMode::Message
    }
}

/// A marker in place of a long paste: `[Pasted text #1 +119 lines]`, `[Pasted text #6]` (one long
/// line) or `[Pasted Content 4329 chars]`, after a second one of the same length ` #2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastedMarker {
    /// The marker as shown.
    pub shown: String,
    /// Its number, if it has one.
    pub number: Option<u64>,
    /// What it says of the length.
    pub length: PastedLength,
}

/// The length of a paste as a marker tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastedLength {
    /// Newlines in the text.
    Newlines(u64),
    /// Characters of the text.
    Chars(u64),
}

impl PastedMarker {
    fn find(text: &str) -> Vec<Self> {
        let mut found = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("[Pasted ") {
            let Some(end) = rest[start..].find(']').map(|end| start + end + 1) else { break };
            found.extend(Self::parse(&rest[start..end]));
            rest = &rest[start + 1..];
        }
        found
    }

    fn parse(shown: &str) -> Option<Self> {
        let words: Vec<&str> =
            shown.strip_prefix('[')?.strip_suffix(']')?.split_whitespace().collect();
        let number = |word: &str| word.strip_prefix('#')?.parse().ok();
        let (number, length) = match words.as_slice() {
            ["Pasted", "text", n] => (Some(number(n)?), PastedLength::Newlines(0)),
            ["Pasted", "text", n, count, "lines" | "line"] => {
                let count = count.strip_prefix('+')?.parse().ok()?;
                (Some(number(n)?), PastedLength::Newlines(count))
            }
            ["Pasted", "Content", count, "chars"] => {
                (None, PastedLength::Chars(count.parse().ok()?))
            }
            _ => return None,
        };
        Some(Self { shown: shown.to_owned(), number, length })
    }

    /// Whether the marker can stand for this text, as far as its length tells.
    fn fits(&self, text: &str) -> bool {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        match self.length {
            PastedLength::Newlines(lines) => lines == count(text.matches('\n').count()),
            PastedLength::Chars(chars) => chars == count(text.chars().count()),
        }
    }
}

/// How a composer's content relates to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nothing but this text, or one marker whose length fits it.
    Exactly,
    /// The text and something else: somebody typed.
    MoreThan,
    /// Not this text.
    Not,
}

/// Whether the composer holds this text. Whitespace is ignored, since wrapping changes it.
///
/// A marker hides the text, so it is accepted on its length alone: let the composer be empty before
/// the paste, so that the marker is new. A composer in shell mode holds no message.
pub fn holds(composer: &Composer, text: &str) -> Held {
    let (shown, wanted) = (squashed(&composer.text), squashed(text));
    if wanted.is_empty() || composer.mode != ComposerMode::Message {
        return Held::Not;
    }
    if shown == wanted {
        return Held::Exactly;
    }
    let fitting = composer.pasted.iter().any(|marker| marker.fits(text));
    let only_marker =
        composer.pasted.first().is_some_and(|marker| squashed(&marker.shown) == shown);
    match (fitting, only_marker) {
        (true, true) => Held::Exactly,
        (true, false) => Held::MoreThan,
        (false, _) if shown.contains(&wanted) => Held::MoreThan,
        (false, _) => Held::Not,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(shown: &str, text: &str) -> Held {
        holds(&Composer::message(shown.to_owned()), text)
    }

    #[test]
    fn wrapping_is_ignored_and_additions_are_not() {
        assert_eq!(held("one two\nthree", "one two three"), Held::Exactly);
        assert_eq!(held("one two three!", "one two three"), Held::MoreThan);
        assert_eq!(held("one two", "one two three"), Held::Not);
        assert_eq!(held("", "x"), Held::Not);
        assert_eq!(held("x", " \n"), Held::Not);
    }

    #[test]
    fn a_marker_counts_if_its_length_fits() {
        let eight = "a\n".repeat(7) + "a";
        assert_eq!(held("[Pasted text #4 +7 lines]", &eight), Held::Exactly);
        assert_eq!(held("[Pasted text\n#4 +7 lines]", &eight), Held::Exactly);
        assert_eq!(held("[Pasted text #4 +8 lines]", &eight), Held::Not);
        assert_eq!(held("[Pasted text #4 +7 lines] and", &eight), Held::MoreThan);
        assert_eq!(
            held("[Pasted text #4 +7 lines][Pasted text #5 +7 lines]", &eight),
            Held::MoreThan
        );
        assert_eq!(held("[Pasted text #6]", &"x".repeat(900)), Held::Exactly);
        assert_eq!(held("[Pasted Content 1100 chars]", &"é".repeat(1100)), Held::Exactly);
        assert_eq!(held("[Pasted Content 1101 chars]", &"é".repeat(1100)), Held::Not);
        assert_eq!(held("[Pasted Content 1100 chars] #2", &"é".repeat(1100)), Held::MoreThan);
        assert_eq!(held("[Pasted nonsense]", "[Pasted nonsense]"), Held::Exactly);
    }

    #[test]
    fn a_shell_command_is_no_message() {
        let shell = Composer { text: "ls".to_owned(), pasted: vec![], mode: ComposerMode::Shell };
        assert_eq!(holds(&shell, "ls"), Held::Not);
        let nothing = Composer { text: String::new(), ..shell };
        assert!(!nothing.is_empty() && Composer::default().is_empty());
    }
}
