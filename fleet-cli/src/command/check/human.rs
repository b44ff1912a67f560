//! Lines for people. None begins with a text of a fleet file: a line that begins with `::` would be
//! an order to a runner of GitHub Actions.

use fleet_core::policy::check::{Level, NOMINAL_HOME};

use super::report::{Report, finding_words, one_line, place_words, words};
use crate::ui::Printer;

pub(super) fn print(out: &Printer, report: &Report) {
    let absent = if report.base_exists { "" } else { " (does not exist)" };
    for (index, source) in report.sources.iter().enumerate() {
        out.line(format!("source: {}{}", one_line(source), if index == 0 { absent } else { "" }));
    }
    out.line(format!(
        "judged by the text alone: no other file was looked at, `~` is {NOMINAL_HOME}"
    ));
    for finding in &report.findings {
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let place = finding.place.as_ref().map(|it| format!("{}: ", place_words(it)));
        let place = place.unwrap_or_default();
        out.line(format!("{level}: {place}{} [{}]", finding_words(finding), finding.rule));
    }
    if let Some(against) = &report.against {
        let commit = against.commit.as_ref().map(|id| format!(" ({})", &id[..12]));
        out.line(format!("against: {}{}", one_line(&against.old), commit.unwrap_or_default()));
    }
    if let Some(found) = report.comparison() {
        for widening in &found.widenings {
            let place = widening.place.as_ref().map(|it| format!(" ({})", place_words(it)));
            let kind = if widening.widens() { "wider" } else { "changed" };
            out.line(format!("{kind}: {}{}", words(widening), place.unwrap_or_default()));
        }
        for (what, roles) in
            [("new role", &found.new_roles), ("removed role", &found.removed_roles)]
        {
            for role in roles {
                let place = role.place.as_ref().map(|it| format!(" ({})", place_words(it)));
                out.line(format!("{what}: {}{}", role.role, place.unwrap_or_default()));
            }
        }
    }
    out.line(report.verdict());
}
