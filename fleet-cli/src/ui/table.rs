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
        let one_line = |text: String| printable(&text).replace(['\n', '\t'], " ");
        self.rows
            .push(cells.into_iter().map(|(text, tone)| (one_line(text.into()), tone)).collect());
    }

    /// The lines, each without trailing blanks.
    pub fn render(&self, color: bool) -> String {
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
            let mut line = String::new();
            let mut pending = 0;
            for ((text, tone), width) in row.iter().zip(&widths) {
                if !text.is_empty() {
                    line.extend(std::iter::repeat_n(' ', pending));
                    line.push_str(&tone.paint(text, color));
                    pending = 0;
                }
                pending += width - text.chars().count() + 2;
            }
            lines.push_str(&line);
            lines.push('\n');
        }
        lines
    }

    /// Prints the table, with `indent` before each line.
    pub fn print(&self, printer: &Printer, indent: &str) {
        for line in self.render(printer.color()).lines() {
            printer.raw(&format!("{indent}{line}\n"));
        }
    }
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
            table.render(false),
            "NAME       STATE    NOTE\nA          running\nLong-name           x y\n"
        );
    }
}
