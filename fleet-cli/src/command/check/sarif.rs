//! SARIF 2.1.0, the format of code scanning.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fleet_core::diagnostic::Place;
use fleet_core::policy::check::Level;
use serde_json::{Map, Value, json};

use super::report::{Report, finding_words, words};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// One result.
struct Outcome<'a> {
    rule: String,
    level: &'static str,
    text: String,
    place: Option<&'a Place>,
    role: Option<&'a str>,
}

/// The verdict as one run of the tool.
pub(super) fn document(report: &Report) -> Value {
    let outcomes = outcomes(report);
    let names = outcomes.iter().map(|it| (it.rule.clone(), 0));
    let mut rules: BTreeMap<String, usize> = names.collect();
    for (number, index) in rules.values_mut().enumerate() {
        *index = number;
    }
    let described: Vec<Value> = rules
        .keys()
        .map(|id| json!({ "id": id, "shortDescription": { "text": description(id) } }))
        .collect();
    let results: Vec<Value> = outcomes.iter().map(|it| result(it, &rules)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "ours-fleet",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": described,
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{ "executionSuccessful": true }],
            "results": results,
            "properties": { "verdict": report.verdict(), "ok": report.is_good() },
        }],
    })
}

fn outcomes(report: &Report) -> Vec<Outcome<'_>> {
    let mut outcomes: Vec<Outcome<'_>> = report
        .findings
        .iter()
        .map(|finding| Outcome {
            rule: finding.rule.clone(),
            level: match finding.level {
                Level::Error => "error",
                Level::Warning => "warning",
                Level::Note => "note",
            },
            text: finding_words(finding),
            place: finding.place.as_ref(),
            role: finding.role.as_deref(),
        })
        .collect();
    let Some(found) = report.comparison() else { return outcomes };
    for widening in &found.widenings {
        let (level, kind) =
            if widening.widens() { ("error", "wider") } else { ("note", "changed") };
        let dimension = widening.dimension.row().word.replace([' ', '.'], "-");
        outcomes.push(Outcome {
            rule: format!("comparison/{kind}/{dimension}"),
            level,
            text: words(widening),
            place: widening.place.as_ref(),
            role: widening.role.as_deref(),
        });
    }
    for (kind, roles) in [("new", &found.new_roles), ("removed", &found.removed_roles)] {
        for role in roles {
            outcomes.push(Outcome {
                rule: format!("comparison/{kind}-role"),
                level: "note",
                text: format!("role {}: {kind}", role.role),
                // A place in the old version is none in these files.
                place: role.place.as_ref().filter(|_| kind == "new"),
                role: Some(&role.role),
            });
        }
    }
    outcomes
}

fn result(outcome: &Outcome<'_>, rules: &BTreeMap<String, usize>) -> Value {
    let mut result = json!({
        "ruleId": outcome.rule,
        "ruleIndex": rules.get(&outcome.rule),
        "level": outcome.level,
        "message": { "text": outcome.text },
    });
    if let Some(place) = outcome.place {
        result["locations"] = json!([{ "physicalLocation": location(place) }]);
    }
    if let Some(role) = outcome.role {
        result["properties"] = json!({ "role": role });
    }
    result
}

fn location(place: &Place) -> Value {
    let mut artifact = Map::new();
    if place.file.starts_with('/') {
        artifact.insert("uri".to_owned(), format!("file://{}", encoded(&place.file)).into());
    } else {
        artifact.insert("uri".to_owned(), encoded(&place.file).into());
        artifact.insert("uriBaseId".to_owned(), "%SRCROOT%".into());
    }
    let mut location = json!({ "artifactLocation": artifact });
    if place.line > 0 {
        location["region"] = json!({ "startLine": place.line });
        if place.column > 0 {
            location["region"]["startColumn"] = place.column.into();
        }
    }
    location
}

/// A path as part of a URI. A colon is encoded too: before the first `/` it would end a scheme.
fn encoded(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// What a rule is about.
fn description(rule: &str) -> String {
    let parts: Vec<&str> = rule.split('/').collect();
    match parts.as_slice() {
        ["permissions", "floor"] => "What the role needs does not work without a person".to_owned(),
        ["permissions", "conflict"] => "An option of the harness overrules permissions".to_owned(),
        ["permissions", "refused"] => "The permissions cannot be kept".to_owned(),
        ["permissions", what] => format!("The native settings are {what}"),
        ["comparison", "wider", dimension] => format!("Wider than before: {dimension}"),
        ["comparison", "changed", dimension] => format!("Other than before: {dimension}"),
        ["comparison", what] => format!("Compared with the old version: {what}"),
        ["config", code] => format!("The fleet file: {code}"),
        _ => rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_become_uris() {
        assert_eq!(encoded("a b/ä:%.yaml"), "a%20b/%C3%A4%3A%25.yaml");
        let place = Place { file: "/h/f.yaml".into(), line: 0, column: 0 };
        assert_eq!(location(&place), json!({ "artifactLocation": { "uri": "file:///h/f.yaml" } }));
    }
}
