//! The environment of an agent, built from nothing (01 §1.9, §2.11).

use std::collections::BTreeMap;

use crate::config::Role;
use crate::launch::Environment;

/// Variables taken over from fleet's own environment.
const PASSED: &[&str] = &["USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ"];
/// Families of variables taken over.
const PASSED_PREFIXES: &[&str] = &["LC_"];
/// Taken over only without isolation: they name places that a sandbox does not show.
const PASSED_UNISOLATED: &[&str] = &["TMPDIR", "XDG_RUNTIME_DIR"];

/// What an environment is made from.
#[derive(Debug, Clone, Copy)]
pub struct EnvironmentInputs<'a> {
    /// Fleet's own environment.
    pub own: &'a Environment,
    /// `HOME` of the agent.
    pub home: &'a str,
    /// `PATH` of the agent.
    pub path: &'a str,
    /// `TERM` inside the console.
    pub term: &'a str,
    /// What the harness adds.
    pub harness: &'a BTreeMap<String, String>,
    /// The variable that names the harness's config home, and that home.
    pub harness_home: Option<(&'a str, &'a str)>,
    /// The role, for `env` and `env_pass`.
    pub role: &'a Role,
    /// Whether the agent is isolated.
    pub isolated: bool,
}

/// Builds the environment: allowlist, then what the harness adds, then the role's own, then what is
/// forced, such as the config home: what a role writes there names the operator's. Nothing else of fleet's own environment passes.
pub fn child_environment(inputs: &EnvironmentInputs<'_>) -> Environment {
    let own = &inputs.own.0;
    let mut env: BTreeMap<String, String> = own
        .iter()
        .filter(|(name, _)| {
            PASSED.contains(&name.as_str())
                || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || (!inputs.isolated && PASSED_UNISOLATED.contains(&name.as_str()))
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in [
        ("PATH", inputs.path),
        ("HOME", inputs.home),
        ("TERM", inputs.term),
        ("COLORTERM", "truecolor"),
    ] {
        env.insert(name.to_owned(), value.to_owned());
    }
    for name in &inputs.role.env_pass {
        if let Some(value) = own.get(name) {
            env.insert(name.clone(), value.clone());
        }
    }
    env.extend(inputs.harness.clone());
    for (name, value) in &inputs.role.env {
        env.insert(name.clone(), value.expose().clone());
    }
    if let Some((variable, home)) = inputs.harness_home {
        env.insert(variable.to_owned(), home.to_owned());
    }
    env.insert("OURS_AUTOSTART".to_owned(), "0".to_owned());
    Environment(env)
}
