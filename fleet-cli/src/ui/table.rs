use std::borrow::Cow;

use super::printer::{Printer, Tone, printable};

/// A plain table: columns are as wide as their widest cell, two spaces apart, no rules.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<(String, Tone)>>,
}

impl Table {
    /// A table with this heading.
    pub fn new<'a>(heading: impl IntoIterator<Item = &'a str>) -> Self {
        let heading = heading.into_iter().map(|text| (text.to_owned(), Tone::Heading)).collect();
        Self { rows: vec![heading] }
    }

    /// A table without heading.
    pub fn plain() -> Self {
        Self::default()
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.toned(cells.into_iter().map(|cell| (cell, Tone::Plain)));
    }

    /// Adds a row whose cells have tones.
    pub fn toned<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = (S, Tone)>) {
        self.rows
            .push(cells.into_iter().map(|(text, tone)| (one_line(text.into()), tone)).collect());
    }

    /// The lines, each without trailing blanks. With a `width`, the last cell of a row that would be
    /// wider goes on below itself.
    pub fn render(&self, color: bool, width: Option<usize>) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let width = |row: &Vec<(String, Tone)>| {
                    row.get(column).map_or(0, |(text, _)| text.chars().count())
                };
                self.rows.iter().map(width).max().unwrap_or(0)
            })
            .collect();
        let mut lines = String::new();
        for row in &self.rows {
            let (mut column, mut pending) = (0, 0);
            let last = row.iter().rposition(|(text, _)| !text.is_empty());
            for (index, ((text, tone), cell)) in row.iter().zip(&widths).enumerate() {
                if !text.is_empty() {
                    lines.extend(std::iter::repeat_n(' ', pending));
                    column += pending;
                    let room = width.filter(|_| last == Some(index));
                    let parts = wrapped(text, room.and_then(|width| width.checked_sub(column)));
                    for (number, part) in parts.into_iter().enumerate() {
                        if number > 0 {
                            lines.push('\n');
                            lines.extend(std::iter::repeat_n(' ', column));
                        }
                        lines.push_str(&tone.paint(part, color));
                    }
                    column += text.chars().count();
                    pending = 0;
                }
                pending += cell - text.chars().count() + 2;
            }
            lines.push('\n');
        }
        lines
    }

    /// Prints the table, with `indent` before each line.
    pub fn print(&self, printer: &Printer, indent: &str) {
        let width = printer.width().map(|width| width.saturating_sub(indent.len()));
        let mut text = String::new();
        for line in self.render(printer.color(), width).lines() {
            text.push_str(indent);
            text.push_str(line);
            text.push('\n');
        }
        printer.raw(&text);
    }
}

/// The text in parts of at most `room` characters, cut at blanks. A word is never cut, and a column
/// that is too narrow to read is left to the terminal.
fn wrapped(text: &str, room: Option<usize>) -> Vec<&str> {
    const NARROW: usize = 16;
    let Some(room) = room.filter(|room| *room >= NARROW) else { return vec![text] };
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while let Some((limit, _)) = rest.char_indices().nth(room) {
        let (head, tail) = rest.split_at(limit);
        let cut = if tail.starts_with(' ') { Some(limit) } else { head.rfind(' ') };
        let Some(cut) = cut.or_else(|| rest.find(' ')) else { break };
        parts.push(rest[..cut].trim_end());
        rest = rest[cut..].trim_start();
    }
    parts.push(rest);
    parts
}

/// The text as a cell shows it. Most texts are shown as they are, without a copy.
fn one_line(text: String) -> String {
    if !text.contains(['\n', '\t'])
        && let Cow::Borrowed(_) = printable(&text)
    {
        return text;
    }
    printable(&text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_clean() {
        let mut table = Table::new(["NAME", "STATE", "NOTE"]);
        table.row(["A", "running", ""]);
        table.row(["Long-name", "", "x\ny"]);
        assert_eq!(
            table.render(false, None),
            "NAME       STATE    NOTE\nA          running\nLong-name           x y\n"
        );
    }

    #[test]
    fn a_long_last_cell_goes_on_below_itself() {
        let mut table = Table::plain();
        table.row(["network", "one two three four five six seven", ""]);
        table.row(["x", "/a/path/that/is/longer/than/the/line and more words", ""]);
        assert_eq!(
            table.render(false, Some(34)),
            "network  one two three four five\n         six seven\n\
             x        /a/path/that/is/longer/than/the/line\n         and more words\n"
        );
        assert_eq!(table.render(false, Some(20)), table.render(false, None), "too narrow to read");
    }
}
