//! The matrix as text: `docs/escape-matrix.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use camino::Utf8Path;

use super::probe::{Cell, Kind, MODES, Mode, REASONS, User};
use super::{backends, probes};

type Key = (String, String, String, String);

/// Cells by backend, number, mode and user.
#[derive(Default)]
pub(super) struct Rows(BTreeMap<Key, String>);

const USERS: [User; 2] = [User::Root, User::Plain];
const HEAD: &str = include_str!("head.md");

fn key(backend: &str, number: &str, mode: Mode, user: User) -> Key {
    (backend.to_owned(), number.to_owned(), mode.name().to_owned(), user.name().to_owned())
}

const CHECKED_IN: &str = include_str!("../../../../docs/escape-matrix.md");

impl Rows {
    pub(super) fn add(&mut self, backend: &str, number: &str, mode: Mode, user: User, cell: &Cell) {
        self.0.insert(key(backend, number, mode, user), cell.text());
    }

    /// What differs from the checked-in matrix, for one user.
    pub(super) fn differences(&self, user: User) -> Vec<String> {
        let known = Self::parse(CHECKED_IN);
        let strict = std::env::var("REQUIRE_ALL").is_ok_and(|value| value == "1");
        let mut wrong = Vec::new();
        for (key, cell) in &self.0 {
            let recorded = known.0.get(key).map_or("nothing", String::as_str);
            // Whether there is a control depends on the host: elsewhere that alone is no news.
            let bare = |text: &str| text.starts_with("no control") || text == "blocked";
            if recorded == cell || (!strict && bare(recorded) && bare(cell)) {
                continue;
            }
            let (backend, number, mode, user) = key;
            wrong.push(format!(
                "docs/escape-matrix.md says {recorded} of {backend} {number} {mode} {user}, measured \
                 is {cell}: scripts/escape-matrix.sh --write"
            ));
        }
        for (backend, number, mode, whose) in known.0.keys() {
            let measured = self.0.keys().any(|key| key.0 == *backend);
            let row = (backend.clone(), number.clone(), mode.clone(), whose.clone());
            if whose == user.name() && measured && !self.0.contains_key(&row) {
                wrong.push(format!("docs/escape-matrix.md has a row too many: {backend} {number}"));
            }
        }
        wrong
    }

    /// Reads a matrix back.
    fn parse(text: &str) -> Self {
        let mut rows = Self::default();
        let mut backend = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("## ") {
                backend = name;
            }
            let Some(cells) = line.strip_prefix("| ").and_then(|rest| rest.strip_suffix(" |"))
            else {
                continue;
            };
            let cells: Vec<&str> = cells.split(" | ").collect();
            let known = backends::ALL.iter().any(|entry| entry.name == backend);
            if !known
                || cells.len() != 2 + MODES.len() * USERS.len()
                || ["#", "---"].contains(&cells[0])
            {
                continue;
            }
            let columns = USERS.iter().flat_map(|user| MODES.map(|mode| (mode, *user)));
            for ((mode, user), cell) in columns.zip(&cells[2..]) {
                rows.0.insert(key(backend, cells[0], mode, user), (*cell).to_owned());
            }
        }
        rows
    }

    /// Writes what was measured, with the rest as it is checked in.
    pub(super) fn write(&self, directory: &Path, user: User) {
        let whole = directory.join("escape-matrix.md");
        let before = std::fs::read_to_string(&whole).unwrap_or_else(|_| CHECKED_IN.to_owned());
        let mut rows = Self::parse(&before);
        rows.0.retain(|(.., whose), _| whose != user.name());
        rows.0.extend(self.0.clone());
        std::fs::write(whole, rows.render()).expect("write");
    }

    fn render(&self) -> String {
        let mut text = HEAD.to_owned();
        for (name, why) in REASONS {
            let _ = writeln!(text, "- `{name}`: {why}");
        }
        text.push_str(
            "\n## What is tried\n\n| # | tries | without the protection | refused by |\n",
        );
        text.push_str("| --- | --- | --- | --- |\n");
        for probe in probes::all() {
            let control = match (probe.kind, probe.control) {
                (Kind::Test(path), _) => format!("in the test `{path}`"),
                (_, super::Control::Bare) => "no isolation".to_owned(),
                (_, super::Control::Open) => "a bwrap that keeps everything".to_owned(),
                (_, super::Control::None(reason)) => format!("none: {reason}"),
            };
            let expected = if probe.expected.is_empty() { "–" } else { probe.expected };
            let _ =
                writeln!(text, "| {} | {} | {control} | {expected} |", probe.number, probe.tries);
        }
        for entry in backends::ALL {
            let _ = writeln!(text, "\n## {}\n", entry.name);
            let columns = USERS
                .iter()
                .flat_map(|user| MODES.map(|mode| format!("{} {}", mode.name(), user.name())));
            let columns: Vec<String> = columns.collect();
            let _ = writeln!(text, "| # | tries | {} |", columns.join(" | "));
            let _ = writeln!(text, "|{}", " --- |".repeat(2 + columns.len()));
            for probe in probes::all() {
                let _ = write!(text, "| {} | {} |", probe.number, probe.tries);
                for user in USERS {
                    for mode in MODES {
                        let cell = self.0.get(&key(entry.name, probe.number, mode, user));
                        let _ = write!(text, " {} |", cell.map_or("not measured", String::as_str));
                    }
                }
                text.push('\n');
            }
            let count = |word: &str| {
                let of = |((backend, ..), cell): &(&Key, &String)| {
                    backend == entry.name && cell.starts_with(word)
                };
                self.0.iter().filter(of).count()
            };
            let _ = writeln!(
                text,
                "\nCells: {} blocked with a control that leaks, {} that must work and do, {} leaks as \
                 expected, {} without a control here, {} by tests of their own, {} not measured, {} \
                 of roles that are refused, {} unexpected leaks.",
                count("blocked"),
                count("works"),
                count("leak"),
                count("no control"),
                count("test"),
                count("not measured"),
                count("refused"),
                count("UNEXPECTED") + count("BROKEN"),
            );
        }
        text
    }
}

/// A test that a row names must be there: `file::name`, or `path/of/file.rs::name`.
pub(super) fn assert_exists(path: &str) {
    let (file, name) = path.rsplit_once("::").expect("file::name");
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = match file.strip_suffix(".rs") {
        Some(_) => root.join("..").join(file),
        None => root.join("tests/escape").join(format!("{file}.rs")),
    };
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{file} is not there"));
    assert!(text.contains(&format!("fn {name}(")), "{path} is not there");
}
