use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a command writes.
pub struct Io {
    /// Results.
    pub stdout: Box<dyn Write + Send>,
    /// Warnings and errors.
    pub stderr: Box<dyn Write + Send>,
    /// How wide the terminal is that shows results; `None` if none does.
    pub stdout_width: Option<usize>,
    /// Whether results may be coloured.
    pub stdout_color: bool,
    /// Whether warnings and errors may be coloured.
    pub stderr_color: bool,
}

impl std::fmt::Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io")
            .field("stdout_color", &self.stdout_color)
            .field("stderr_color", &self.stderr_color)
            .finish_non_exhaustive()
    }
}

impl Io {
    /// The streams of this process. Colours only on a terminal, and never with `NO_COLOR` or a dumb
    /// terminal.
    pub fn from_process(env: &crate::env_vars::Env) -> Self {
        let wanted = env.get(crate::env_vars::NO_COLOR).is_none()
            && env.get(crate::env_vars::TERM).is_some_and(|term| term != "dumb");
        Self {
            stdout: Box::new(io::BufWriter::new(io::stdout())),
            stderr: Box::new(io::stderr()),
            stdout_width: rustix::termios::tcgetwinsize(io::stdout())
                .ok()
                .map(|size| usize::from(size.ws_col))
                .filter(|columns| *columns > 0),
            stdout_color: wanted && io::stdout().is_terminal(),
            stderr_color: wanted && io::stderr().is_terminal(),
        }
    }
}

/// What a word means, which a terminal shows as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    Plain,
    /// As it should be.
    Good,
    /// Worth a look.
    Attention,
    /// Wrong.
    Bad,
    /// A heading.
    Heading,
}

impl Tone {
    fn escape(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some("32"),
            Self::Attention => Some("33"),
            Self::Bad => Some("31"),
            Self::Heading => Some("1"),
        }
    }

    /// The text in this tone. `text` must be printable.
    pub(super) fn paint(self, text: &str, color: bool) -> Cow<'_, str> {
        match self.escape().filter(|_| color) {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m").into(),
            None => text.into(),
        }
    }
}

/// The text with everything escaped that would steer a terminal or reorder the line. Newlines and
/// tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    // Nearly all texts are plain ASCII, which is told by its bytes.
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(plain) || !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if steers(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

struct Streams {
    io: Io,
    stdout_closed: bool,
    failure: Option<io::Error>,
}

/// The streams of one command.
///
/// A reader that goes away (`| head`) is no failure: what is left is dropped and the command ends
/// with its own result. Any other failure to write results is reported by [`Printer::finish`].
pub struct Printer {
    streams: Mutex<Streams>,
    stdout_width: Option<usize>,
    stdout_color: bool,
    stderr_color: bool,
}

impl std::fmt::Debug for Printer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printer").finish_non_exhaustive()
    }
}

impl Printer {
    /// A printer on these streams.
    pub fn new(io: Io) -> Self {
        Self {
            stdout_width: io.stdout_width,
            stdout_color: io.stdout_color,
            stderr_color: io.stderr_color,
            streams: Mutex::new(Streams { io, stdout_closed: false, failure: None }),
        }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How wide the terminal is that shows results; `None` if none does.
    pub fn width(&self) -> Option<usize> {
        self.stdout_width
    }

    /// Whether results may be coloured.
    pub fn color(&self) -> bool {
        self.stdout_color
    }

    /// Whether warnings and errors may be coloured.
    pub fn stderr_color(&self) -> bool {
        self.stderr_color
    }

    /// One line of results.
    pub fn line(&self, text: impl AsRef<str>) {
        self.raw(&format!("{}\n", printable(text.as_ref())));
    }

    /// A heading.
    pub fn heading(&self, text: impl AsRef<str>) {
        self.raw(&format!(
            "{}\n",
            Tone::Heading.paint(&printable(text.as_ref()), self.stdout_color)
        ));
    }

    /// One JSON document.
    pub fn json(&self, value: &serde_json::Value) {
        // Not by `Display`, which writes a large document several times slower.
        let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.push('\n');
        self.raw(&text);
    }

    /// One JSON document on one line, for streams of them.
    pub fn json_line(&self, value: &serde_json::Value) {
        self.raw(&format!("{value}\n"));
        self.flush();
    }

    /// Results as they are; the caller vouches that nothing in them steers a terminal.
    pub fn raw(&self, text: &str) {
        let mut streams = self.streams();
        if streams.stdout_closed {
            return;
        }
        let result = streams.io.stdout.write_all(text.as_bytes());
        streams.note(result);
    }

    /// Sends what is buffered.
    pub fn flush(&self) {
        let mut streams = self.streams();
        if !streams.stdout_closed {
            let result = streams.io.stdout.flush();
            streams.note(result);
        }
    }

    /// Whether the reader of results has gone away.
    pub fn is_closed(&self) -> bool {
        self.streams().stdout_closed
    }

    /// A line beside the results: progress, a note.
    pub fn note(&self, text: impl AsRef<str>) {
        self.aside("", Tone::Plain, text.as_ref());
    }

    /// A warning.
    pub fn warn(&self, text: impl AsRef<str>) {
        self.aside("warning: ", Tone::Attention, text.as_ref());
    }

    /// An error.
    pub fn error(&self, text: impl AsRef<str>) {
        self.aside("error: ", Tone::Bad, text.as_ref());
    }

    /// What to do about an error.
    pub fn hint(&self, text: impl AsRef<str>) {
        self.aside("  hint: ", Tone::Plain, text.as_ref());
    }

    /// Text of the parser, which brings its own form.
    pub fn usage(&self, text: &str) {
        let mut streams = self.streams();
        // Nobody is left to tell if this fails.
        let _ = streams.io.stderr.write_all(text.as_bytes());
    }

    fn aside(&self, label: &str, tone: Tone, text: &str) {
        let label = tone.paint(label, self.stderr_color);
        self.flush();
        let mut streams = self.streams();
        // Nobody is left to tell if this fails.
        let _ = writeln!(streams.io.stderr, "{label}{}", printable(text));
    }

    /// Ends the output.
    ///
    /// # Errors
    /// The first failure to write results, unless the reader went away.
    pub fn finish(&self) -> io::Result<()> {
        self.flush();
        match self.streams().failure.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Streams {
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.stdout_closed = true;
            if error.kind() != ErrorKind::BrokenPipe {
                self.failure.get_or_insert(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printer(kind: ErrorKind) -> Printer {
        Printer::new(Io {
            stdout: Box::new(Failing(kind)),
            stderr: Box::new(io::sink()),
            stdout_width: None,
            stdout_color: false,
            stderr_color: false,
        })
    }

    #[test]
    fn a_reader_that_goes_away_is_no_failure_and_a_full_disk_is() {
        let piped = printer(ErrorKind::BrokenPipe);
        piped.line("x");
        assert!(piped.is_closed());
        assert!(piped.finish().is_ok());

        let full = printer(ErrorKind::StorageFull);
        full.line("x");
        assert_eq!(full.finish().expect_err("reported").kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn text_cannot_steer_the_terminal() {
        assert_eq!(printable("a\tb\n"), "a\tb\n");
        assert_eq!(printable("a\u{61c}b"), "a\\u{61c}b");
        assert_eq!(printable("\x1b[2Jx\r\u{202e}y"), "\\u{1b}[2Jx\\u{d}\\u{202e}y");
    }
}
