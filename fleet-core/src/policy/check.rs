//! The gate for fleet files (01 §1.17): loads, resolves and judges every role by the text alone.
//!
//! Nothing but the fleet files is looked at, and nothing of the machine or the caller's environment
//! is taken in: the account, its home and its `PATH` are nominal, no path exists and no link is
//! followed. So a verdict is the same everywhere, and says nothing about what a machine lacks.

mod judge;
mod lexical;

use camino::Utf8PathBuf;
use serde::Serialize;

pub use self::lexical::{LexicalProbe, NOMINAL_HOME};
use super::order::{Reach, Widening};
use crate::config::{ConfigSources, Fleet, LoadOptions, SourceText, YamlMode, load};
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::harness::Harnesses;
use crate::id::RoleName;
use crate::path::LexicalPath;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The gate is closed.
    Error,
    /// Worth a look.
    Warning,
    /// Good to know.
    Note,
}

/// One finding. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// A stable id, `config/…` or `permissions/…`.
    pub rule: String,
    /// How bad it is.
    pub level: Level,
    /// The role concerned.
    pub role: Option<String>,
    /// The key, below the role where there is one.
    pub path: String,
    /// What was found and what to do, on one line.
    pub message: String,
    /// Where.
    pub place: Option<Place>,
}

/// A fleet, judged.
#[derive(Debug)]
pub struct Checked {
    /// The fleet; `None` if it does not load.
    pub fleet: Option<Fleet>,
    /// Everything that was found, in the order of the files.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Whether nothing closes the gate.
    pub fn is_good(&self) -> bool {
        self.fleet.is_some() && self.findings.iter().all(|it| it.level != Level::Error)
    }
}

/// A role that one version has and the other has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherRole {
    /// The role.
    pub role: String,
    /// Where it is declared.
    pub place: Option<Place>,
}

/// What is other between two versions of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Where a role or the rules of the fleet are wider, and what else changed: rules first, then
    /// roles by name.
    pub widenings: Vec<Widening>,
    /// Roles that the old version did not have. With nothing to compare them with they are listed,
    /// not judged.
    pub new_roles: Vec<OtherRole>,
    /// Roles that the new version has not, with their place in the old one.
    pub removed_roles: Vec<OtherRole>,
}

impl Comparison {
    /// Whether anything is wider than before.
    pub fn widens(&self) -> bool {
        self.widenings.iter().any(Widening::widens)
    }
}

/// Fleet files by their content, as if they lay in the nominal home: where they really lie must not
/// decide what a role may reach. `drop_ins` are names below `fleet.d` with bytes.
pub fn nominal_sources(base: Option<Vec<u8>>, drop_ins: Vec<(String, Vec<u8>)>) -> ConfigSources {
    let path = |name: &str| Utf8PathBuf::from(NOMINAL_HOME).join(name);
    let base_path = path("fleet.yaml");
    let mut drop_ins: Vec<SourceText> = drop_ins
        .into_iter()
        .map(|(name, bytes)| SourceText { path: path("fleet.d").join(name), bytes })
        .collect();
    drop_ins.sort_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
    ConfigSources {
        base: base.map(|bytes| SourceText { path: base_path.clone(), bytes }),
        base_path,
        drop_ins,
    }
}

/// Loads and judges a fleet, lexically. Total: any bytes give a verdict.
pub fn check(sources: &ConfigSources, yaml_mode: YamlMode, harnesses: &Harnesses) -> Checked {
    let home = lexical::home();
    let loaded = load(sources, &LoadOptions { yaml_mode, home: &home, harnesses });
    let mut findings: Vec<Finding> = loaded.diagnostics.iter().map(Finding::of).collect();
    if let Some(fleet) = &loaded.fleet {
        findings.extend(judge::fleet(fleet, harnesses));
        sort(&mut findings, fleet);
    }
    Checked { fleet: loaded.fleet, findings }
}

/// What is wider in `new` than in `old` under the order of [`super::order`].
pub fn compare(old: &Fleet, new: &Fleet, harnesses: &Harnesses) -> Comparison {
    let mut found = Comparison::default();
    let policy = Reach::of_policy(&new.policy);
    found.widenings = policy.widenings(&Reach::of_policy(&old.policy), &new.provenance);
    for widening in &mut found.widenings {
        let base = || new.source_files.first().map(|file| Place::file(file.as_str()));
        widening.place = widening.place.take().or_else(base);
    }
    let mut names: Vec<&RoleName> = new.roles.keys().collect();
    names.sort_by_key(|name| name.as_str());
    for name in names {
        let (Some(role), Some(before)) = (new.roles.get(name), old.roles.get(name)) else {
            found.new_roles.push(other(new, name));
            continue;
        };
        let reach = |role: &crate::config::Role| {
            let harness = harnesses.get(role.harness.as_str())?;
            Some(Reach::of(role, &**harness, &lexical::dirs(role)))
        };
        // Both loaded, so their harnesses are registered.
        if let (Some(before), Some(after)) = (reach(before), reach(role)) {
            found.widenings.extend(after.widenings(&before, &new.provenance));
        }
    }
    let mut gone: Vec<&RoleName> =
        old.roles.keys().filter(|name| !new.roles.contains_key(*name)).collect();
    gone.sort_by_key(|name| name.as_str());
    found.removed_roles = gone.into_iter().map(|name| other(old, name)).collect();
    found
}

fn other(fleet: &Fleet, name: &RoleName) -> OtherRole {
    let place = fleet.provenance.lookup(&format!("roles.{name}")).map(|(_, place)| place);
    OtherRole { role: name.to_string(), place }
}

impl Finding {
    /// A problem of the load or of the resolution.
    fn of(diagnostic: &Diagnostic) -> Self {
        let level = match diagnostic.severity {
            Severity::Error => Level::Error,
            Severity::Warning => Level::Warning,
        };
        let code = serde_json::to_value(diagnostic.code).ok();
        let code = code.as_ref().and_then(|code| code.as_str()).unwrap_or("problem");
        let mut bare = diagnostic.clone();
        (bare.place, bare.role, bare.path) = (None, None, String::new());
        Self {
            rule: format!("config/{code}"),
            level,
            role: diagnostic.role.clone(),
            path: diagnostic.path.clone(),
            message: bare.to_string(),
            place: diagnostic.place.clone(),
        }
    }
}

/// By file, line and column; then by role, rule and text. Equal ones are kept once.
fn sort(findings: &mut Vec<Finding>, fleet: &Fleet) {
    let rank = |place: &Place| {
        fleet.source_files.iter().position(|file| *file == *place.file).unwrap_or(usize::MAX)
    };
    findings.sort_by_cached_key(|it| {
        let place = it.place.as_ref().map(|place| (rank(place), place.line, place.column));
        (place, it.role.clone(), it.level, it.rule.clone(), it.message.clone())
    });
    findings.dedup();
}

/// Homes of accounts that a written path names: the forbidden paths of each hold as well, since the
/// fleet may be meant for that account.
fn named_home(path: &LexicalPath) -> Option<LexicalPath> {
    const PARENTS: &[&str] = &["/home", "/Users", "/var/home"];
    const ROOT: &str = "/root";
    let mut above: Vec<&str> = path.self_and_ancestors().collect();
    above.reverse();
    let below = |parent: &&str| {
        let at = above.iter().position(|place| place == parent)?;
        // The directory of all homes holds that of anybody.
        Some(above.get(at + 1).map_or_else(|| format!("{parent}/operator"), |it| (*it).to_owned()))
    };
    let home =
        if above.contains(&ROOT) { Some(ROOT.to_owned()) } else { PARENTS.iter().find_map(below) };
    LexicalPath::absolute(&home?).ok()
}
