//! Workflow commands of GitHub Actions: `::error file=…,line=…,col=…,title=…::message`.

use fleet_core::diagnostic::Place;
use fleet_core::policy::check::Level;

use super::report::{Report, finding_words, one_line, words};

/// Every finding as a command, and the verdict as a plain line at the end.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let kind = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "notice",
        };
        let place = finding.place.as_ref();
        text.push_str(&command(kind, place, &finding.rule, &finding_words(finding)));
    }
    if let Some(found) = report.comparison() {
        for widening in &found.widenings {
            let (kind, title) =
                if widening.widens() { ("error", "wider") } else { ("notice", "changed") };
            text.push_str(&command(kind, widening.place.as_ref(), title, &words(widening)));
        }
        for role in &found.new_roles {
            let message = format!("role {} is new: there is nothing to compare it with", role.role);
            text.push_str(&command("notice", role.place.as_ref(), "new role", &message));
        }
        for role in &found.removed_roles {
            let message = format!("role {} is gone", role.role);
            text.push_str(&command("notice", None, "removed role", &message));
        }
    }
    // Begins with our own word, so it is no command whatever follows.
    text.push_str("ours-fleet check: ");
    text.push_str(&one_line(&report.verdict()));
    text.push('\n');
    text
}

fn command(kind: &str, place: Option<&Place>, title: &str, message: &str) -> String {
    let mut properties = Vec::new();
    if let Some(place) = place {
        properties.push(format!("file={}", property(&place.file)));
        if place.line > 0 {
            properties.push(format!("line={}", place.line));
        }
        if place.column > 0 {
            properties.push(format!("col={}", place.column));
        }
    }
    properties.push(format!("title={}", property(title)));
    format!("::{kind} {}::{}\n", properties.join(","), data(message))
}

/// The text of a command.
fn data(text: &str) -> String {
    one_line(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_text_stays_one_command() {
        let place = Place { file: "a,b:c%\r\n::error::x".into(), line: 3, column: 0 };
        let message = "50 %\n::set-output name=x::y\u{1b}[31m";
        assert_eq!(
            command("error", Some(&place), "t:1,2", message),
            "::error file=a%2Cb%3Ac%25\\u{d}\\n%3A%3Aerror%3A%3Ax,line=3,title=t%3A1%2C2::\
             50 %25\\n::set-output name=x::y\\u{1b}[31m\n"
        );
        assert_eq!(command("notice", None, "t", "m"), "::notice title=t::m\n");
    }
}
