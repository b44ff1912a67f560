//! What the operator's own settings add to the rules of a role (01 §3.2 #8). Rules of all settings
//! files are united by the program, so an entry of the operator's can open what fleet left closed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::home::SETTINGS;
use crate::permissions::Capability;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// One line each: what makes the effect differ from the neutral words.
    pub(super) warnings: Vec<String>,
    /// What a deny entry takes away.
    pub(super) lost: BTreeSet<Capability>,
}

/// Keys of `sandbox` that open it further than fleet's own settings.
const OPENING: &[&[&str]] = &[
    &["sandbox", "excludedCommands"],
    &["sandbox", "filesystem", "allowWrite"],
    &["sandbox", "network", "allowedDomains"],
    &["sandbox", "network", "allowUnixSockets"],
    &["sandbox", "network", "allowAllUnixSockets"],
    &["sandbox", "network", "allowLocalBinding"],
    &["sandbox", "enableWeakerNestedSandbox"],
];

/// Compares the operator's settings with the allow entries of a role. `all` is whether the role is
/// allowed everything anyway.
pub(super) fn inspect(text: Option<&str>, row: &[String], all: bool, sandboxed: bool) -> Findings {
    let mut found = Findings::default();
    let Some(text) = text else { return found };
    let Some(settings) = serde_json::from_str(text).ok().filter(Value::is_object) else {
        found.warnings.push(format!(
            "the operator's `{SETTINGS}` is no JSON object, so what it opens is not known"
        ));
        return found;
    };
    let permissions = &settings["permissions"];
    if !all {
        let beyond = tools(entries(&permissions["allow"]).filter(|entry| !covered(entry, row)));
        if !beyond.is_empty() {
            found
                .warnings
                .push(format!("the operator's `{SETTINGS}` allows more: {}", beyond.join(", ")));
        }
        if entries(&permissions["additionalDirectories"]).next().is_some() {
            found.warnings.push(format!(
                "the operator's `{SETTINGS}` adds directories by `permissions.additionalDirectories`"
            ));
        }
    }
    for path in OPENING.iter().filter(|_| sandboxed) {
        let value = path.iter().fold(&settings, |value, key| &value[*key]);
        let empty = match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if !empty {
            let key = path.join(".");
            found.warnings.push(format!("the operator's `{SETTINGS}` sets `{key}`"));
        }
    }
    for entry in entries(&permissions["deny"]) {
        found.lost.extend(taken_by(entry));
    }
    if !found.lost.is_empty() {
        let taking = entries(&permissions["deny"]).filter(|entry| !taken_by(entry).is_empty());
        let denied = tools(taking);
        found.warnings.push(format!("the operator's `{SETTINGS}` denies: {}", denied.join(", ")));
    }
    found
}

fn entries(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The tool of a rule, without what stands in parentheses.
fn tool(rule: &str) -> &str {
    rule.split('(').next().unwrap_or(rule).trim()
}

/// Whether the row allows this entry already: the same one, or all of its tool.
fn covered(entry: &str, row: &[String]) -> bool {
    row.iter().any(|own| own == entry || own == tool(entry))
}

/// Rules by the names of their tools: what stands in parentheses may be private.
fn tools<'a>(rules: impl Iterator<Item = &'a str>) -> Vec<String> {
    const MOST: usize = 8;
    let names: BTreeSet<String> = rules
        .map(|rule| {
            let name: String = tool(rule).chars().take(60).collect();
            let more = if rule.contains('(') { "(…)" } else { "" };
            format!("`{}{more}`", name.escape_debug())
        })
        .collect();
    let rest = names.len().saturating_sub(MOST);
    let mut names: Vec<String> = names.into_iter().take(MOST).collect();
    if rest > 0 {
        names.push(format!("and {rest} more"));
    }
    names
}

/// What a deny entry takes away. One with something in parentheses closes a part of its tool only.
fn taken_by(rule: &str) -> &'static [Capability] {
    match rule.strip_suffix("(*)").or(rule.strip_suffix("(**)")).unwrap_or(rule) {
        "Read" => &[Capability::ReadState],
        "Edit" | "Write" => &[Capability::WriteState, Capability::WorkspaceEdit],
        "Bash" => &[Capability::StatusCommands, Capability::WorkspaceEdit],
        "Monitor" => &[Capability::Monitor],
        "mcp__ours" => &[Capability::Messaging],
        other if other.starts_with("mcp__ours__") => &[Capability::Messaging],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn found(text: &str, all: bool) -> Findings {
        let row = ["Read", "Edit(//s/**)", "mcp__ours"].map(str::to_owned);
        inspect(Some(text), &row, all, true)
    }

    #[rstest]
    #[case::nothing("{}", &[])]
    #[case::same(r#"{"permissions": {"allow": ["Edit(//s/**)", "Read(~/x)", "mcp__ours"]}}"#, &[])]
    #[case::more(
        r#"{"permissions": {"allow": ["Bash(curl -H s3cr3t *)", "WebFetch"]}}"#,
        &["the operator's `settings.json` allows more: `Bash(…)`, `WebFetch`"]
    )]
    #[case::other_dir(
        r#"{"permissions": {"allow": ["Edit(//t/**)"]}}"#,
        &["the operator's `settings.json` allows more: `Edit(…)`"]
    )]
    #[case::dirs(
        r#"{"permissions": {"additionalDirectories": ["/srv"]}}"#,
        &["the operator's `settings.json` adds directories by `permissions.additionalDirectories`"]
    )]
    #[case::sandbox(
        r#"{"sandbox": {"excludedCommands": ["docker"], "network": {"allowUnixSockets": []}}}"#,
        &["the operator's `settings.json` sets `sandbox.excludedCommands`"]
    )]
    #[case::broken("{", &["the operator's `settings.json` is no JSON object, so what it opens is not known"])]
    #[case::list("[]", &["the operator's `settings.json` is no JSON object, so what it opens is not known"])]
    #[case::strange(r#"{"permissions": 1, "sandbox": [1]}"#, &[])]
    fn entries_beyond_the_row_are_named(#[case] text: &str, #[case] warnings: &[&str]) {
        assert_eq!(found(text, false).warnings, warnings);
    }

    #[test]
    fn a_role_that_may_do_everything_is_given_nothing_more() {
        let text = r#"{"permissions": {"allow": ["Bash"], "additionalDirectories": ["/"]}}"#;
        assert_eq!(found(text, true), Findings::default());
    }

    #[test]
    fn a_denied_tool_is_lost() {
        let found = found(r#"{"permissions": {"deny": ["Bash", "Read(./.env)"]}}"#, true);
        assert_eq!(found.lost, [Capability::WorkspaceEdit, Capability::StatusCommands].into());
        assert_eq!(found.warnings, ["the operator's `settings.json` denies: `Bash`"]);
    }
}
