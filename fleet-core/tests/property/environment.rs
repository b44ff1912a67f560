//! P37: the environment of an agent.

use std::collections::BTreeMap;

use fleet_core::environment::{EnvironmentInputs, child_environment};
use fleet_core::launch::Environment;
use fleet_core::redact::Redacted;
use proptest::prelude::*;

use super::{check, holds};
use crate::fleet::base;

/// The function under test.
pub(crate) type Build = fn(&EnvironmentInputs<'_>) -> Environment;

/// Set by fleet or by the harness, whoever else sets them.
const FIXED: &[&str] =
    &["PATH", "HOME", "TERM", "COLORTERM", "OURS_AUTOSTART", "OURS_FLEET_ROLE", "AGENT_HOME"];
/// Taken over from fleet's own environment.
const PASSED: &[&str] = &["USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ"];

/// P37: forced values win, the role's own come next, and nothing else of fleet's own passes.
pub(crate) fn p37(build: Build) -> Result<(), String> {
    let own = "[A-Z_]{1,12}|LC_[A-Z]{1,4}|SSH_AUTH_SOCK|AWS_[A-Z]{1,6}|TMUX|GH_TOKEN|PATH|HOME|TMPDIR|LD_PRELOAD|OURS_FLEET_HOME";
    let declared = "[A-Z_]{1,8}|OURS_AUTOSTART|HOME|AGENT_HOME|GH_TOKEN";
    let input = (
        prop::collection::btree_map(own, "[ -~]{0,8}", 0..24),
        prop::collection::btree_map(declared, "[ -~]{1,8}", 0..6),
        prop::collection::vec("[A-Z_]{1,12}|GH_TOKEN|AGENT_HOME", 0..4),
        any::<bool>(),
    );
    let role = base("roles: {A: {harness: command, harness_options: {argv: [x]}}}").role("A");
    check(&input, |(own, declared, pass, isolated)| {
        let mut role = role.clone();
        role.env = declared.iter().map(|(k, v)| (k.clone(), Redacted::new(v.clone()))).collect();
        role.env_pass.clone_from(&pass);
        let harness = BTreeMap::from([("OURS_FLEET_ROLE".to_owned(), "A".to_owned())]);
        let own = Environment(own);
        let env = build(&EnvironmentInputs {
            own: &own,
            home: "/h",
            path: "/bin",
            term: "tmux-256color",
            harness: &harness,
            harness_home: Some(("AGENT_HOME", "/a")),
            role: &role,
            isolated,
        });
        let forced = [("AGENT_HOME", "/a"), ("OURS_AUTOSTART", "0")];
        for (name, value) in forced {
            prop_assert_eq!(env.0.get(name).map(String::as_str), Some(value), "{}", name);
        }
        for (name, value) in &env.0 {
            let known = FIXED.contains(&name.as_str())
                || PASSED.contains(&name.as_str())
                || name.starts_with("LC_")
                || (!isolated && ["TMPDIR", "XDG_RUNTIME_DIR"].contains(&name.as_str()))
                || declared.contains_key(name)
                || pass.contains(name);
            prop_assert!(known, "{} was not declared", name);
            let is_forced = forced.iter().any(|(forced, _)| forced == name);
            if let Some(wanted) = declared.get(name).filter(|_| !is_forced) {
                prop_assert_eq!(value, wanted, "the role's own value wins");
            }
        }
        for name in pass.iter().filter(|name| !declared.contains_key(*name)) {
            let (here, there) = (env.0.get(name), own.0.get(name));
            prop_assert!(there.is_none() || here.is_some(), "{} was not passed on", name);
        }
        Ok(())
    })
}

#[test]
fn p37_the_environment_holds_only_what_is_declared() {
    holds(p37(child_environment));
}
