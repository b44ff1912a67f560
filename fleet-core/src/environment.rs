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

/// Who gave a variable its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VariableOrigin {
    /// Fleet sets it for every agent.
    Fleet,
    /// Taken over from fleet's own environment: it is on the short list of those.
    PassedByList,
    /// Taken over from fleet's own environment: `env_pass` names it.
    PassedByRole,
    /// The harness needs it.
    Harness,
    /// `env` of the role, or of the defaults.
    Role,
    /// Fleet sets it last, whatever anybody wrote.
    Forced,
}

/// Whether a variable of fleet's own environment is taken over without being named by the role.
pub fn is_passed(name: &str, isolated: bool) -> bool {
    PASSED.contains(&name)
        || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || (!isolated && is_passed_unisolated_only(name))
}

/// Whether a variable is taken over only without isolation.
pub fn is_passed_unisolated_only(name: &str) -> bool {
    PASSED_UNISOLATED.contains(&name)
}

/// Builds the environment: allowlist, then what the harness adds, then the role's own, then what is
/// forced, such as the config home: what a role writes there names the operator's. Nothing else of
/// fleet's own environment passes.
pub fn child_environment(inputs: &EnvironmentInputs<'_>) -> Environment {
    Environment(variables(inputs).into_iter().map(|(name, (_, value))| (name, value)).collect())
}

/// Who gave each variable of [`child_environment`] its value.
pub fn variable_origins(inputs: &EnvironmentInputs<'_>) -> BTreeMap<String, VariableOrigin> {
    variables(inputs).into_iter().map(|(name, (origin, _))| (name, origin)).collect()
}

fn variables(inputs: &EnvironmentInputs<'_>) -> BTreeMap<String, (VariableOrigin, String)> {
    use VariableOrigin::{Fleet, Forced, Harness, PassedByList, PassedByRole, Role};
    let own = &inputs.own.0;
    let mut env = BTreeMap::new();
    let mut set = |origin, name: &str, value: &str| {
        env.insert(name.to_owned(), (origin, value.to_owned()));
    };
    for (name, value) in own.iter().filter(|(name, _)| is_passed(name, inputs.isolated)) {
        set(PassedByList, name, value);
    }
    for (name, value) in [
        ("PATH", inputs.path),
        ("HOME", inputs.home),
        ("TERM", inputs.term),
        ("COLORTERM", "truecolor"),
    ] {
        set(Fleet, name, value);
    }
    for name in &inputs.role.env_pass {
        if let Some(value) = own.get(name) {
            set(PassedByRole, name, value);
        }
    }
    for (name, value) in inputs.harness {
        set(Harness, name, value);
    }
    for (name, value) in &inputs.role.env {
        set(Role, name, value.expose());
    }
    if let Some((variable, home)) = inputs.harness_home {
        set(Forced, variable, home);
    }
    set(Forced, "OURS_AUTOSTART", "0");
    env
}
