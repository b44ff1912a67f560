//! What would stop a launch although the file is sound, each in one line with its place.

use std::collections::BTreeMap;

use crate::config::{Fleet, Role, Unavailable};
use crate::diagnostic::{Code, Diagnostic};
use crate::harness::Harness;
use crate::isolation::closure::ClosureError;
use crate::isolation::{IsolationPolicy, MountOrigin};
use crate::port::{FileKind, PathProbe};
use crate::redact::Redacted;

/// One line for each key of a role that this build cannot serve and that refuses the role.
pub fn refusals(fleet: &Fleet, role: &Role) -> Vec<String> {
    let line = |key: &Unavailable| {
        let line = blocker(fleet, role, &key.path, &key.reason, Some(&key.instead));
        match &key.place {
            Some(place) => line.at(place.clone()),
            None => line,
        }
        .to_string()
    };
    role.unavailable.iter().filter(|key| key.refuses).map(line).collect()
}

/// One line about a key that this build cannot serve: place, key, reason, what to write instead.
pub fn unavailable_line(key: &Unavailable) -> String {
    let place = key.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
    format!("{place}`{}` {}: {}", key.path, key.reason, key.instead)
}

/// Gives each problem of a role its place in the file that says so.
pub(super) fn placed(fleet: &Fleet, role: &Role, problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    problems
        .into_iter()
        .map(|problem| {
            let path = format!("roles.{}.{}", role.name, problem.path);
            let problem = problem.role(role.name.as_str());
            match fleet.provenance.lookup(&path) {
                Some((_, place)) => problem.at(place.clone()),
                None => problem,
            }
        })
        .collect()
}

/// The last gate of 01 §4.4: the environment that the program will get names the model of the role.
pub(super) fn pin_blocker(
    fleet: &Fleet,
    role: &Role,
    harness: &dyn Harness,
    added: &BTreeMap<String, String>,
) -> Option<String> {
    let (model, variable) = (role.model.as_ref()?, harness.model_variable()?);
    // As the environment is composed: the role's own over what the harness adds.
    let pin = role.env.get(variable).map(Redacted::expose).or_else(|| added.get(variable));
    (pin != Some(model)).then(|| {
        let message = format!("`{variable}` does not name the model of the role");
        let hint = format!("write `model` and leave `env.{variable}` out");
        blocker(fleet, role, "model", &message, Some(&hint)).to_string()
    })
}

/// A problem of a role that its file does not show; its place is that of the key, else of the role.
pub(super) fn blocker(
    fleet: &Fleet,
    role: &Role,
    path: &str,
    message: &str,
    hint: Option<&str>,
) -> Diagnostic {
    let mut line = Diagnostic::error(Code::Io, message).role(role.name.as_str()).path(path);
    line.hint = hint.map(ToOwned::to_owned);
    let written = fleet.provenance.lookup(&format!("roles.{}.{path}", role.name));
    match written.or_else(|| fleet.provenance.lookup(&format!("roles.{}", role.name))) {
        Some((_, place)) => line.at(place),
        None => line,
    }
}

pub(super) fn cwd_blocker(fleet: &Fleet, role: &Role, probe: &dyn PathProbe) -> Option<String> {
    const CREATE: &str = "create it, or change `cwd`";
    let cwd = role.cwd.as_ref()?;
    let (message, hint) = match probe.resolve(cwd) {
        Ok(resolved) => match resolved.object {
            Some(object) if object.kind == FileKind::Directory => return None,
            Some(_) => (format!("`{cwd}` is not a directory"), Some("name a directory")),
            None => (format!("`{cwd}` does not exist"), Some(CREATE)),
        },
        Err(error) => (error.to_string(), None),
    };
    Some(blocker(fleet, role, "cwd", &message, hint).to_string())
}

pub(super) fn program_blocker(fleet: &Fleet, role: &Role, error: &ClosureError) -> String {
    // Only `command` has its program written in the file.
    let written = role.harness_options.expose().contains_key("argv");
    let (path, hint) = if written {
        ("harness_options.argv[0]", "install it, or write the absolute path of another program")
    } else {
        ("harness", "install it (`ours-fleet doctor` says how), or put its directory on `PATH`")
    };
    let hint = matches!(error, ClosureError::NotFound { .. }).then_some(hint);
    blocker(fleet, role, path, &error.to_string(), hint).to_string()
}

/// Sources that the file names and that are not there: the mounts are hard, so the launch would fail.
/// Where a secret lies is not said.
pub(super) fn source_blockers(fleet: &Fleet, role: &Role, policy: &IsolationPolicy) -> Vec<String> {
    policy
        .missing_sources()
        .filter_map(|mount| {
            let message = match mount.origin {
                MountOrigin::FsRead { .. } | MountOrigin::FsWrite { .. } => {
                    format!("`{}` does not exist", mount.source)
                }
                MountOrigin::Secret { .. } => "the file does not exist".to_owned(),
                _ => return None,
            };
            let hint = Some("create it, or leave it out");
            Some(blocker(fleet, role, &mount.origin.key(), &message, hint).to_string())
        })
        .collect()
}
