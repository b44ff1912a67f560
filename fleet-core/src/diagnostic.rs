//! Problems found in a fleet file, collected rather than thrown at the first.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

/// The kind of a problem (01 §1.16); stable, part of the JSON output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Not YAML.
    Syntax,
    /// A key twice in one mapping.
    DuplicateKey,
    /// A mapping was expected.
    NotAMapping,
    /// A key that does not exist there.
    UnknownKey,
    /// A value of another type.
    WrongType,
    /// A value of the right type that is not allowed.
    InvalidValue,
    /// A number outside its range.
    OutOfRange,
    /// A required key is absent.
    MissingKey,
    /// A name used twice.
    DuplicateName,
    /// Two names that would share a directory.
    NameCollision,
    /// A name that refers to nothing.
    UnknownReference,
    /// A variable that is not defined.
    UnknownVariable,
    /// Two settings that contradict each other.
    Conflict,
    /// Known to the product, not built into this build.
    Unsupported,
    /// A path that no role may reach.
    ForbiddenMount,
    /// A file that others may change.
    FileTrust,
    /// A file that cannot be read.
    Io,
    /// A limit on size or depth was exceeded.
    Limit,
    /// A mapping key that is not a scalar.
    NonScalarKey,
    /// An anchor.
    Anchor,
    /// An alias.
    Alias,
    /// An explicit tag.
    ExplicitTag,
    /// More than one document in a file.
    MultipleDocuments,
    /// A character that ends a line for some readers of YAML and not for others.
    LineSeparator,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The fleet does not load.
    Error,
    /// Worth a look.
    Warning,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file, as it was opened.
    pub file: String,
    /// Line, counted from 1; 0 if the whole file is meant.
    pub line: u32,
    /// Column, counted from 1; 0 if the whole line is meant.
    pub column: u32,
}

impl Place {
    /// A whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

/// One problem. Prints as one line:
/// `FILE:LINE:COL: role 'NAME': PATH: WHAT (got FOUND; allowed: A, B, C); HINT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// The kind.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Where; `None` only if no file is concerned.
    pub place: Option<Place>,
    /// The role concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Dotted path of the key, for example `isolation.fs.write[2]`; below the role, where there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What is wrong, a lower-case fragment.
    pub message: String,
    /// What was found, short; redacted where the place may hold a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The other place, for duplicates and collisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<Place>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message.into())
    }

    /// A warning.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, message.into())
    }

    fn new(code: Code, severity: Severity, message: String) -> Self {
        Self {
            code,
            severity,
            place: None,
            role: None,
            path: String::new(),
            message,
            found: None,
            allowed: Vec::new(),
            hint: None,
            other: None,
        }
    }

    /// With a place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// With the role concerned.
    #[must_use]
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.role = Some(role.into());
        self
    }

    /// With the path of the key.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// With what was found: shortened to 60 characters, control characters escaped.
    #[must_use]
    pub fn found(mut self, found: &str) -> Self {
        let mut short: String = found.chars().take(60).collect();
        if found.chars().count() > 60 {
            short.push('…');
        }
        self.found = Some(format!("`{}`", short.escape_debug()));
        self
    }

    /// With the kind of what was found, in words.
    #[must_use]
    pub fn found_kind(mut self, kind: &str) -> Self {
        self.found = Some(kind.to_owned());
        self
    }

    /// With what is allowed.
    #[must_use]
    pub fn allowed<S: Into<String>>(mut self, allowed: impl IntoIterator<Item = S>) -> Self {
        self.allowed = allowed.into_iter().map(Into::into).collect();
        self
    }

    /// With what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the other place concerned.
    #[must_use]
    pub fn other(mut self, place: Place) -> Self {
        self.other = Some(place);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(role) = &self.role {
            write!(f, "role '{}': ", role.escape_debug())?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path.escape_debug())?;
        }
        f.write_str(&self.message)?;
        match (&self.found, self.allowed.is_empty()) {
            (Some(found), true) => write!(f, " (got {found})")?,
            (Some(found), false) => {
                write!(f, " (got {found}; allowed: {})", self.allowed.join(", "))?;
            }
            (None, false) => write!(f, " (allowed: {})", self.allowed.join(", "))?,
            (None, true) => {}
        }
        if let Some(other) = &self.other {
            write!(f, "; see also {other}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

/// Problems kept by one [`Sink`]; the rest is only counted, so that a hostile file cannot fill the
/// memory with messages.
const MAX_PROBLEMS: usize = 2000;

/// Collects problems of one load.
#[derive(Debug, Default)]
pub struct Sink {
    found: Vec<Diagnostic>,
    /// Positions in `found` by kind and place, so that looking for an equal one stays cheap.
    seen: HashMap<(Code, u32, u32), Vec<usize>>,
    errors: bool,
    left_out: usize,
}

impl Sink {
    /// Adds a problem, unless the same one is already noted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors |= diagnostic.severity == Severity::Error;
        let (line, column) =
            diagnostic.place.as_ref().map_or((0, 0), |place| (place.line, place.column));
        let near = self.seen.entry((diagnostic.code, line, column)).or_default();
        let same = |other: &Diagnostic| {
            other.place == diagnostic.place
                && other.path == diagnostic.path
                && other.role == diagnostic.role
                && other.message == diagnostic.message
        };
        if near.iter().any(|&index| same(&self.found[index])) {
            return;
        }
        if self.found.len() == MAX_PROBLEMS {
            self.left_out += 1;
            return;
        }
        near.push(self.found.len());
        self.found.push(diagnostic);
    }

    /// Whether the next problem will only be counted, so that there is no need to word it.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() == MAX_PROBLEMS
    }

    /// Whether there are so many problems that looking for near words is not worth its time.
    pub(crate) fn is_crowded(&self) -> bool {
        self.found.len() >= MAX_PROBLEMS / 20
    }

    /// Counts an error that nobody worded.
    pub(crate) fn leave_out_error(&mut self) {
        self.errors = true;
        self.left_out += 1;
    }

    /// The errors kept so far.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter().filter(|it| it.severity == Severity::Error)
    }

    /// Whether an error was found.
    pub fn has_errors(&self) -> bool {
        self.errors
    }

    /// All problems, ordered by file, line and column; files in the order of `files`. Of very many
    /// problems the first 2000 are kept and the rest is counted in a last one.
    pub fn finish(self, files: &[String]) -> Vec<Diagnostic> {
        let ranks: HashMap<&str, usize> =
            files.iter().enumerate().map(|(rank, file)| (file.as_str(), rank)).collect();
        let mut found = self.found;
        found.sort_by_cached_key(|diagnostic| {
            diagnostic.place.as_ref().map(|place| {
                let rank = ranks.get(place.file.as_str()).copied().unwrap_or(files.len());
                (rank, place.line, place.column)
            })
        });
        if self.left_out > 0 {
            let message = format!("{} more problems are not listed", self.left_out);
            found.push(Diagnostic::new(
                Code::Limit,
                if self.errors { Severity::Error } else { Severity::Warning },
                message,
            ));
        }
        found
    }
}

/// The candidate nearest to `word` at an edit distance of at most two (adjacent transposition counts
/// one), case ignored; the first of equals. Looks at 1000 candidates at most, and at no word longer
/// than 100 bytes: a hostile file must not make this slow.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 100 {
        return None;
    }
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .take(1000)
        .filter(|candidate| candidate.len() <= 110)
        .map(|candidate| (edit_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 2 && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let width = b.len() + 1;
    let mut table = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let best = if i == 0 {
                j
            } else if j == 0 {
                i
            } else {
                let change = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (table[(i - 1) * width + j] + 1)
                    .min(table[i * width + j - 1] + 1)
                    .min(table[(i - 1) * width + j - 1] + change);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(table[(i - 2) * width + j - 2] + 1);
                }
                best
            };
            table[i * width + j] = best;
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_names_everything() {
        let diagnostic = Diagnostic::error(Code::UnknownKey, "unknown key")
            .at(Place { file: "fleet.yaml".into(), line: 3, column: 5 })
            .role("A")
            .path("identty")
            .allowed(["cwd", "identity"])
            .hint("did you mean `identity`?");
        assert_eq!(
            diagnostic.to_string(),
            "fleet.yaml:3:5: role 'A': identty: unknown key (allowed: cwd, identity); did you mean `identity`?"
        );
    }

    fn at_line(line: u32) -> Diagnostic {
        Diagnostic::warning(Code::Anchor, "anchor").at(Place { file: "f".into(), line, column: 1 })
    }

    #[test]
    fn equal_problems_are_kept_once_and_sorted_by_place() {
        let mut sink = Sink::default();
        for line in [3, 1, 3, 2] {
            sink.push(at_line(line));
        }
        let lines: Vec<u32> = sink
            .finish(&["f".to_owned()])
            .iter()
            .map(|found| found.place.as_ref().expect("a place").line)
            .collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn problems_beyond_the_limit_are_counted_and_an_error_among_them_stays_an_error() {
        let mut sink = Sink::default();
        for line in 0..2010 {
            sink.push(at_line(line));
        }
        sink.push(Diagnostic::error(Code::Syntax, "bad"));
        assert!(sink.has_errors());
        let found = sink.finish(&[]);
        assert_eq!(found.len(), 2001);
        let last = found.last().expect("a last one");
        assert_eq!(last.severity, Severity::Error);
        assert!(last.message.starts_with("11 more"), "{last}");
    }

    #[test]
    fn nearest_finds_typos_and_nothing_far() {
        let keys = ["isolation", "identity", "roles"];
        assert_eq!(nearest("isolaton", keys), Some("isolation"));
        assert_eq!(nearest("idnetity", keys), Some("identity"));
        assert_eq!(nearest("rolez", keys), Some("roles"));
        assert_eq!(nearest("network", keys), None);
    }
}
