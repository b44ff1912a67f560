//! A verdict with the names that the files really have, and its JSON form.

use fleet_core::diagnostic::Place;
use fleet_core::policy::check::{Checked, Comparison, Finding, Level, NOMINAL_HOME, OtherRole};
use fleet_core::policy::order::Widening;
use serde_json::{Value, json};

use super::sources::Fileset;
use crate::ui::document;

/// Everything that is printed.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) sources: Vec<String>,
    pub(super) base_exists: bool,
    /// Names of the roles; `None` if the fleet does not load.
    pub(super) roles: Option<Vec<String>>,
    pub(super) findings: Vec<Finding>,
    pub(super) against: Option<Against>,
}

/// The comparison with an older version.
#[derive(Debug)]
pub(super) struct Against {
    /// As it was asked for.
    pub(super) old: String,
    /// The commit, where it is a revision.
    pub(super) commit: Option<String>,
    /// `None` if one side does not load.
    pub(super) comparison: Option<Comparison>,
}

impl Report {
    pub(super) fn new(files: &Fileset, checked: &Checked) -> Self {
        let roles = checked.fleet.as_ref().map(|fleet| {
            let mut names: Vec<String> = fleet.roles.keys().map(ToString::to_string).collect();
            names.sort_unstable();
            names
        });
        let findings = checked.findings.iter().cloned().map(|finding| Finding {
            place: files.place(finding.place),
            message: files.message(&finding.message),
            ..finding
        });
        // A gate at the wrong place must not look like one that is open.
        let nothing = (!files.base_exists).then(|| Finding {
            rule: "config/no-file".to_owned(),
            level: Level::Warning,
            role: None,
            path: String::new(),
            message: "there is no fleet file, so nothing was judged; name one with `-c FILE`"
                .to_owned(),
            place: None,
        });
        Self {
            sources: files.shown().map(str::to_owned).collect(),
            base_exists: files.base_exists,
            roles,
            findings: findings.chain(nothing).collect(),
            against: None,
        }
    }

    /// Nothing can be compared, which must not pass for "nothing is wider".
    pub(super) fn old_does_not_load(&mut self, old: &str, files: &Fileset, checked: &Checked) {
        let first = checked.findings.iter().find(|it| it.level == Level::Error);
        let problem = first.map(|it| {
            let place = files.place(it.place.clone());
            let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
            format!(" ({place}{})", files.message(&it.message))
        });
        self.findings.push(Finding {
            rule: "comparison/old-does-not-load".to_owned(),
            level: Level::Error,
            role: None,
            path: String::new(),
            message: format!(
                "`{old}` does not load, so nothing can be compared with it{}; compare with a version that loads",
                problem.unwrap_or_default()
            ),
            place: None,
        });
    }

    pub(super) fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|it| it.level == level).count()
    }

    pub(super) fn comparison(&self) -> Option<&Comparison> {
        self.against.as_ref().and_then(|against| against.comparison.as_ref())
    }

    /// Whether the gate is open.
    pub(super) fn is_good(&self) -> bool {
        let wider = self.comparison().is_some_and(Comparison::widens);
        self.roles.is_some() && self.count(Level::Error) == 0 && !wider
    }

    /// One line: the verdict and why.
    pub(super) fn verdict(&self) -> String {
        let mut parts = Vec::new();
        match &self.roles {
            Some(roles) => parts.push(number(roles.len(), "role")),
            None => parts.push("the fleet does not load".to_owned()),
        }
        for (level, word) in [(Level::Error, "error"), (Level::Warning, "warning")] {
            if self.count(level) > 0 {
                parts.push(number(self.count(level), word));
            }
        }
        if let Some(against) = &self.against {
            let old = &against.old;
            parts.push(match &against.comparison {
                None => format!("not compared with {old}"),
                Some(found) => match found.widenings.iter().filter(|it| it.widens()).count() {
                    0 => format!("nothing is wider than in {old}"),
                    wider => format!("{} against {old}", number(wider, "widening")),
                },
            });
        }
        format!("{}: {}", if self.is_good() { "ok" } else { "refused" }, parts.join(", "))
    }

    pub(super) fn json(&self) -> Value {
        let against = self.against.as_ref().map(|against| {
            json!({
                "old": against.old,
                "commit": against.commit,
                "compared": against.comparison.is_some(),
                "widenings": against.listed(true),
                "changes": against.listed(false),
                "newRoles": against.comparison.as_ref().map_or(&[][..], |it| &it.new_roles),
                "removedRoles": against.comparison.as_ref().map_or(&[][..], |it| &it.removed_roles),
            })
        });
        document(json!({
            "ok": self.is_good(),
            "lexical": true,
            "nominalHome": NOMINAL_HOME,
            "sources": self.sources,
            "loads": self.roles.is_some(),
            "roles": self.roles.as_deref().unwrap_or_default(),
            "findings": self.findings,
            "against": against,
        }))
    }
}

impl Against {
    pub(super) fn new(old: &str, files: &Fileset) -> Self {
        Self { old: old.to_owned(), commit: files.commit.clone(), comparison: None }
    }

    pub(super) fn compare(&mut self, files: &Fileset, old: &Fileset, mut found: Comparison) {
        for widening in &mut found.widenings {
            widening.place = files.place(widening.place.take());
        }
        let rename = |roles: &mut Vec<OtherRole>, files: &Fileset| {
            for role in roles {
                role.place = files.place(role.place.take());
            }
        };
        rename(&mut found.new_roles, files);
        rename(&mut found.removed_roles, old);
        self.comparison = Some(found);
    }

    fn listed(&self, widening: bool) -> Vec<&Widening> {
        let all = self.comparison.iter().flat_map(|it| &it.widenings);
        all.filter(|it| it.widens() == widening).collect()
    }
}

fn number(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A widening in words, without its place.
pub(super) fn words(widening: &Widening) -> String {
    let whose =
        widening.role.as_ref().map_or_else(|| "fleet".to_owned(), |it| format!("role {it}"));
    let dimension = widening.dimension.row().word;
    let what = if widening.subject == dimension {
        dimension.to_owned()
    } else {
        format!("{dimension}: {}", widening.subject)
    };
    let (from, to) = (&widening.from, &widening.to);
    let change =
        if from == to { format!("another one ({to})") } else { format!("{from} → {to}") };
    one_line(&format!("{whose}: {what}: {change}"))
}

/// A finding in words, without its place.
pub(super) fn finding_words(finding: &Finding) -> String {
    let role = finding.role.as_ref().map(|role| format!("role {role}: ")).unwrap_or_default();
    let path = if finding.path.is_empty() { String::new() } else { format!("{}: ", finding.path) };
    one_line(&format!("{role}{path}{}", finding.message))
}

/// Nothing that could end a line: what follows would pass for a line of ours.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in crate::ui::printable(text).chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            // Ends a line for some readers.
            '\u{2028}' | '\u{2029}' => line.extend(c.escape_unicode()),
            _ => line.push(c),
        }
    }
    line
}

/// A place as it is shown: on one line, whatever the name of the file.
pub(super) fn place_words(place: &Place) -> String {
    one_line(&place.to_string())
}
