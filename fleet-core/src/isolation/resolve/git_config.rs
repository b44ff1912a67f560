//! What a git configuration makes git obey: a small reader of its syntax.
//!
//! It decides nothing about what is shown. It says which other files git reads or runs, so that those
//! can be protected or named. What it can't read is said to be unreadable, never taken for empty.

/// One variable that is set: section in lower case, subsection as written, key in lower case, value.
type Variable = (String, Option<String>, String, String);

/// Something outside of the configuration that git obeys because of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Obeyed {
    /// Another configuration file, `include.path` or `includeIf.*.path`.
    Include(String),
    /// A directory of hooks.
    Hooks(String),
    /// A command: the dotted name of the variable, then its value.
    Command(String, String),
}

/// Whole variables whose value is run, and by subsection: section, key.
const RUN: &[(&str, &str)] = &[
    ("core", "fsmonitor"),
    ("core", "sshcommand"),
    ("core", "gitproxy"),
    ("core", "editor"),
    ("core", "pager"),
    ("core", "askpass"),
    ("core", "alternaterefscommand"),
    ("sequence", "editor"),
    ("diff", "external"),
    ("diff", "command"),
    ("diff", "textconv"),
    ("merge", "driver"),
    ("mergetool", "cmd"),
    ("difftool", "cmd"),
    ("filter", "clean"),
    ("filter", "smudge"),
    ("filter", "process"),
    ("gpg", "program"),
    ("credential", "helper"),
    ("interactive", "difffilter"),
    ("uploadpack", "packobjectshook"),
    ("remote", "uploadpack"),
    ("remote", "receivepack"),
    ("trailer", "command"),
    ("trailer", "cmd"),
];

/// What `text` makes git obey, and whether it was understood to its end.
pub(super) fn obeyed(text: &str) -> (Vec<Obeyed>, bool) {
    let (variables, whole) = variables(text);
    let found = variables.into_iter().filter_map(|(section, below, key, value)| {
        match (section.as_str(), key.as_str()) {
            ("include" | "includeif", "path") => Some(Obeyed::Include(value)),
            ("core", "hookspath") => Some(Obeyed::Hooks(value)),
            // `!` begins a command of a shell; all else is one of git's own.
            ("alias", _) => {
                let command = value.strip_prefix('!')?;
                Some(Obeyed::Command(dotted(&section, below.as_deref(), &key), command.to_owned()))
            }
            pair if RUN.contains(&pair) || section == "pager" => {
                Some(Obeyed::Command(dotted(&section, below.as_deref(), &key), value))
            }
            _ => None,
        }
    });
    (found.collect(), whole)
}

fn dotted(section: &str, below: Option<&str>, key: &str) -> String {
    below.map_or_else(|| format!("{section}.{key}"), |below| format!("{section}.{below}.{key}"))
}

/// Every variable in order, and whether the whole text was understood.
fn variables(text: &str) -> (Vec<Variable>, bool) {
    let mut reader =
        Reader { rest: text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable() };
    let mut found = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    loop {
        reader.space();
        let Some(first) = reader.rest.peek().copied() else { return (found, true) };
        match first {
            '#' | ';' => reader.line(),
            '[' => match reader.section() {
                Some(named) => section = Some(named),
                None => return (found, false),
            },
            _ => match (&section, reader.variable()) {
                (Some((section, below)), Some((key, value))) => {
                    found.push((section.clone(), below.clone(), key, value));
                }
                _ => return (found, false),
            },
        }
    }
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.rest.next_if(char::is_ascii_whitespace).is_some() {}
    }

    fn blank(&mut self) {
        while self.rest.next_if(|it| matches!(it, ' ' | '\t' | '\r')).is_some() {}
    }

    fn line(&mut self) {
        for character in self.rest.by_ref() {
            if character == '\n' {
                return;
            }
        }
    }

    fn word(&mut self, more: &[char]) -> String {
        let mut word = String::new();
        while let Some(next) =
            self.rest.next_if(|it| it.is_ascii_alphanumeric() || *it == '-' || more.contains(it))
        {
            word.push(next);
        }
        word
    }

    /// `[name]`, `[name "below"]`, or the old `[name.below]`.
    fn section(&mut self) -> Option<(String, Option<String>)> {
        self.rest.next_if_eq(&'[')?;
        let name = self.word(&['.']);
        self.blank();
        let mut below = None;
        if self.rest.next_if_eq(&'"').is_some() {
            let mut text = String::new();
            loop {
                match self.rest.next()? {
                    '"' => break,
                    '\n' => return None,
                    '\\' => text.push(self.rest.next()?),
                    other => text.push(other),
                }
            }
            below = Some(text);
        }
        self.rest.next_if_eq(&']')?;
        if name.is_empty() {
            return None;
        }
        Some(match (name.split_once('.'), below) {
            (Some((name, old)), None) => (name.to_ascii_lowercase(), Some(old.to_owned())),
            (_, below) => (name.to_ascii_lowercase(), below),
        })
    }

    /// `key = value` to the end of its last line; a key alone is true.
    fn variable(&mut self) -> Option<(String, String)> {
        let key = self.word(&[]).to_ascii_lowercase();
        if key.is_empty() {
            return None;
        }
        self.blank();
        match self.rest.peek() {
            Some('=') => {
                self.rest.next();
            }
            None | Some('\n') => return Some((key, "true".to_owned())),
            Some('#' | ';') => {
                self.line();
                return Some((key, "true".to_owned()));
            }
            Some(_) => return None,
        }
        self.blank();
        let (mut value, mut kept, mut quoted) = (String::new(), 0, false);
        loop {
            match self.rest.next() {
                None | Some('\n') if quoted => return None,
                None | Some('\n') => break,
                Some('#' | ';') if !quoted => {
                    self.line();
                    break;
                }
                Some('"') => {
                    quoted = !quoted;
                    kept = value.len();
                }
                Some('\\') => {
                    match self.rest.next()? {
                        '\n' => {}
                        '\r' if self.rest.next_if_eq(&'\n').is_some() => {}
                        'n' => value.push('\n'),
                        't' => value.push('\t'),
                        'b' => value.push('\u{8}'),
                        same @ ('\\' | '"') => value.push(same),
                        _ => return None,
                    }
                    kept = value.len();
                }
                Some(other) => {
                    value.push(other);
                    if quoted || !other.is_ascii_whitespace() {
                        kept = value.len();
                    }
                }
            }
        }
        value.truncate(kept);
        Some((key, value))
    }
}

/// The words of a command that could be names of files.
pub(super) fn words(command: &str) -> impl Iterator<Item = &str> {
    command
        .split(|it: char| it.is_whitespace() || "\"'`;|&<>()$=".contains(it))
        .filter(|word| !word.is_empty() && !word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let (found, whole) = obeyed(text);
        let mut lines: Vec<String> = found
            .into_iter()
            .map(|it| match it {
                Obeyed::Include(path) => format!("include {path}"),
                Obeyed::Hooks(path) => format!("hooks {path}"),
                Obeyed::Command(name, value) => format!("{name} {value}"),
            })
            .collect();
        if !whole {
            lines.push("?".to_owned());
        }
        lines
    }

    #[test]
    fn what_git_obeys_is_read_as_git_reads_it() {
        for (text, expected) in [
            ("", &[][..]),
            ("[core]\n\tbare = false\n[user]\n\tname = x", &[]),
            ("[include]\n\tpath = ../team.gitconfig\n", &["include ../team.gitconfig"]),
            ("[INCLUDE]PATH=a b  # c\n", &["include a b"]),
            ("\u{feff}[include]\npath = \"a # b \"\n", &["include a # b "]),
            ("[include]\r\npath = a\r\n", &["include a"]),
            ("[include]\npath = a\\\nb\n", &["include ab"]),
            ("[include]\npath = a\\\r\nb\n", &["include ab"]),
            ("[include]\npath = a\\\rb\n", &["?"]),
            ("[include]\npath = a\\nb\\tc\\bd\n", &["include a\nb\tc\u{8}d"]),
            ("[include]\npath = a\\\\b\\\"c\n", &["include a\\b\"c"]),
            ("[includeIf \"gitdir:~/x\"]\npath = y", &["include y"]),
            (
                "[core]\nhooksPath = .githooks\nfsmonitor = ./w",
                &["hooks .githooks", "core.fsmonitor ./w"],
            ),
            ("[core]\nfsmonitor", &["core.fsmonitor true"]),
            ("[core]\nfsmonitor # yes\nhookspath = h", &["core.fsmonitor true", "hooks h"]),
            ("[filter \"L \\\"F\"]\nclean = t/c %f", &["filter.L \"F.clean t/c %f"]),
            ("[filter.old]\nsmudge = s", &["filter.old.smudge s"]),
            ("[alias]\nst = status\nx = !tools/x", &["alias.x tools/x"]),
            ("# [include]\n; path = x\n", &[]),
            // What is no configuration is read up to there, and that is said.
            ("path = x\n[include]\npath = y", &["?"]),
            ("[include]\npath = x\n[core\nfsmonitor = y", &["include x", "?"]),
            ("[include]\npath = \"x\n", &["?"]),
            ("[include]\npath = \\x\n", &["?"]),
            ("[include]\npath x\n", &["?"]),
            ("[include \"a\nb\"]\n", &["?"]),
            ("[]\n", &["?"]),
            ("[core]\n=x\n", &["?"]),
        ] {
            assert_eq!(of(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_of_a_command_are_names() {
        let found = |text| words(text).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(found("sh -c 'tools/x %f' | y"), ["sh", "tools/x", "%f", "y"]);
        assert_eq!(found("X=a/b \"c d\""), ["X", "a/b", "c", "d"]);
    }
}
