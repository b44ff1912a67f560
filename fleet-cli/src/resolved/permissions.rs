//! The words of `config` and `doctor` about permissions: both say the same.

use fleet_core::config::Role;
use fleet_core::harness::FilePlace;
use fleet_core::permissions::{
    Capability, Conflict, DENIED_READS_KEY, Floor, Outer, Supported, Unattended,
};

use super::ResolvedRole;

/// The neutral words.
pub fn asked(role: &Role) -> String {
    let asked = role.permissions;
    format!(
        "approval={} filesystem={} unattended={}",
        asked.approval.as_str(),
        asked.filesystem.as_str(),
        asked.unattended.as_str()
    )
}

/// The native settings.
pub fn native(supported: &Supported) -> String {
    let short = |(key, value): (&String, &String)| {
        if key == DENIED_READS_KEY {
            // As long as a home is full; `--json` names them all.
            let paths: Vec<String> = serde_json::from_str(value).unwrap_or_default();
            return format!("{key}={} paths", paths.len());
        }
        format!("{key}={value}")
    };
    supported.native.iter().map(short).collect::<Vec<_>>().join(" ")
}

/// How sure it is that the native settings do what the neutral words mean.
pub fn exactness(supported: &Supported) -> &'static str {
    match (supported.exact, supported.measured) {
        (true, true) => "exact",
        (true, false) => "exact, not qualified",
        (false, true) => "not exact",
        (false, false) => "not exact, not qualified",
    }
}

/// What stands around the harness.
pub fn boundary(outer: Outer) -> &'static str {
    match outer {
        Outer::On => "isolation on, the harness's own sandbox off",
        Outer::Nested => "isolation on, the harness's own sandbox inside it",
        Outer::Off => "isolation off, the harness's own sandbox where it has one",
        Outer::OffUnsandboxed => "isolation off, the harness's own sandbox cannot be used here",
    }
}

/// A native option against the neutral words.
pub fn conflict(conflict: &Conflict) -> String {
    let neutral = match &conflict.neutral {
        Some(neutral) => format!("mean `{neutral}`"),
        None => "set no such thing".to_owned(),
    };
    format!(
        "`{}` is `{}` in `harness_options`, the permissions {neutral}: the option wins",
        conflict.key, conflict.native
    )
}

/// What works without a person, and what happens with the rest.
pub fn floor(floor: &Floor) -> String {
    let granted = words(floor.granted.iter());
    if floor.is_met() {
        return format!("met: {granted}");
    }
    let consequence = match floor.unattended {
        Unattended::Deny => "such a question is denied",
        Unattended::Wait => "such a question waits for a person and blocks the turn",
    };
    let granted = if granted.is_empty() { "nothing".to_owned() } else { granted };
    format!("asks before {} ({consequence}); granted: {granted}", words(floor.missing.iter()))
}

fn words<'c>(capabilities: impl Iterator<Item = &'c Capability>) -> String {
    capabilities.map(|it| it.as_str()).collect::<Vec<_>>().join(", ")
}

/// The config home and what lies in it, as rows.
pub fn home(resolved: &ResolvedRole<'_>) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(home) = &resolved.home {
        rows.push(("home", format!("{}={}", home.variable, home.path)));
        if !home.shared.is_empty() {
            rows.push(("shared", format!("{} (read-only)", home.shared.join(", "))));
        }
    }
    if !resolved.files.is_empty() {
        let files: Vec<String> =
            resolved.files.iter().map(|(place, name)| format!("{}/{name}", tree(*place))).collect();
        rows.push(("written", files.join(", ")));
    }
    rows
}

/// The tree of a file, in a word.
pub fn tree(place: FilePlace) -> &'static str {
    match place {
        FilePlace::Home => "home",
        FilePlace::Handout => "handout",
    }
}
