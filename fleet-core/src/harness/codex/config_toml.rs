//! The `config.toml` of a role (01 §4.3): the operator's models, then what fleet decides, then
//! `harness_options.config`. Made as values and printed by the `toml` crate, so that a path or a key
//! cannot end a string or begin a table.

use toml::{Table, Value};

use super::options::{CodexOptions, ConfigEntry};
use super::posture::{Bound, PROFILE, Posture};
use crate::harness::LaunchDirs;
use crate::redact::Redacted;

/// Larger operator files are not read: no list of models is that long.
const LONGEST_OPERATOR_FILE: usize = 1 << 20;
/// Names in one note.
const MOST_NAMES: usize = 12;
/// Model settings that name a file beside the operator's `config.toml`. The role does not see that
/// file, and Codex ends at once where one is missing.
const NAME_FILES: &[&str] = &["model_catalog_json", "model_instructions_file"];

/// What the file is made from.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    /// The operator's `config.toml`, if there is one.
    pub(super) operator: Option<&'a str>,
    pub(super) options: &'a CodexOptions,
    pub(super) posture: &'a Posture,
    pub(super) dirs: &'a LaunchDirs,
    /// Models and what a start dialog offers in their place.
    pub(super) offers: &'a [(&'a str, &'a str)],
}

/// The file, and lines for the launch record.
#[derive(Debug)]
pub(super) struct Generated {
    pub(super) text: Redacted<String>,
    pub(super) notes: Vec<String>,
}

/// Makes the file. A bad operator file costs its models, never the launch.
pub(super) fn generate(sources: &Sources<'_>) -> Generated {
    let mut notes = Vec::new();
    let mut table = Table::new();
    operator(sources, &mut table, &mut notes);
    own(sources, &mut table);
    for ConfigEntry { path, value } in &sources.options.config {
        set(&mut table, path.iter().map(String::as_str), value.expose().clone());
    }
    // Every value here has a form in TOML. Without a file Codex would ask at its start, not do more.
    let text = toml::to_string(&table).unwrap_or_default();
    Generated { text: Redacted::new(text), notes }
}

/// Takes the models of the operator.
fn operator(sources: &Sources<'_>, table: &mut Table, notes: &mut Vec<String>) {
    let profile = sources.options.profile.as_deref();
    let missing = |notes: &mut Vec<String>| {
        if profile.is_some() {
            notes.push("the operator's config.toml has no profile of the wanted name".to_owned());
        }
    };
    let Some(text) = sources.operator else { return missing(notes) };
    let parsed = if text.len() > LONGEST_OPERATOR_FILE { None } else { toml::from_str(text).ok() };
    // The file is not the role's: an error in it, which Codex tells the operator, is no reason to
    // keep a fleet down. What the parser says could quote a key, so it is not passed on.
    let Some(parsed) = parsed else {
        notes.push(
            "the operator's config.toml is not valid TOML or too large: its models are missing"
                .to_owned(),
        );
        return;
    };
    let mut left: Vec<String> = Vec::new();
    models(&parsed, table, &mut left);
    left.retain(|key| key.starts_with("model"));
    if !left.is_empty() {
        notes.push(format!("of the operator's config.toml not taken over: {}", names(&left)));
    }
    if let Some(profile) = profile {
        let found = parsed.get("profiles").and_then(|it| it.get(profile)).and_then(Value::as_table);
        let Some(found) = found else { return missing(notes) };
        let mut left = Vec::new();
        models(found, table, &mut left);
        if !left.is_empty() {
            notes.push(format!("of the operator's profile not taken over: {}", names(&left)));
        }
    }
}

/// Copies `model*` and `model_providers` over what is there; names the rest.
fn models(from: &Table, to: &mut Table, left: &mut Vec<String>) {
    for (key, value) in from {
        match value {
            Value::Table(providers) if key == "model_providers" => {
                let all = to.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
                for (name, provider) in providers.iter().filter(|(_, it)| it.is_table()) {
                    if let Value::Table(all) = all {
                        all.insert(name.clone(), provider.clone());
                    }
                }
            }
            Value::Table(_) => left.push(key.clone()),
            value if key.starts_with("model") && !NAME_FILES.contains(&key.as_str()) => {
                // A text in place of the providers would keep Codex from starting.
                if key == "model_providers" {
                    left.push(key.clone());
                } else {
                    to.insert(key.clone(), value.clone());
                }
            }
            _ => left.push(key.clone()),
        }
    }
}

/// A few names, readable whatever they hold.
fn names(keys: &[String]) -> String {
    let shown = keys.iter().take(MOST_NAMES).map(|key| {
        let short: String = key.chars().take(40).collect();
        format!("`{}`", short.escape_debug())
    });
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if keys.len() > MOST_NAMES {
        list.push_str(", …");
    }
    list
}

/// What fleet decides.
fn own(sources: &Sources<'_>, table: &mut Table) {
    let Sources { posture, dirs, offers, .. } = sources;
    set(table, ["check_for_update_on_startup"], Value::from(false));
    set(table, ["analytics", "enabled"], Value::from(false));
    // The daemon would outlive the console, and with it supervision and isolation.
    set(table, ["features", "daemon_auto_start"], Value::from(false));
    for (model, offered) in *offers {
        set(table, ["notice", "model_migrations", *model], Value::from(*offered));
    }
    // Codex looks for the path without links, or for the one that its sandbox shows.
    for directory in [&dirs.state, dirs.real(&dirs.state), &dirs.cwd, dirs.real(&dirs.cwd)] {
        set(table, ["projects", directory.as_str(), "trust_level"], Value::from("trusted"));
    }
    if let Bound::Profile(filesystem) = &posture.bound {
        set(table, ["default_permissions"], Value::from(PROFILE));
        let filesystem = Value::Table(filesystem.clone());
        set(table, ["permissions", PROFILE, "filesystem"], filesystem);
    }
}

/// Sets one value. What stands in the way and is no table gives way.
fn set<'a>(table: &mut Table, path: impl IntoIterator<Item = &'a str>, value: Value) {
    let mut path = path.into_iter().peekable();
    let mut here = table;
    while let Some(part) = path.next() {
        if path.peek().is_none() {
            here.insert(part.to_owned(), value);
            return;
        }
        let next = here.entry(part.to_owned()).or_insert_with(|| Value::Table(Table::new()));
        if !next.is_table() {
            *next = Value::Table(Table::new());
        }
        let Value::Table(inner) = next else { return };
        here = inner;
    }
}
