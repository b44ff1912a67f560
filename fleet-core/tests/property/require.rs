//! `policy.require` is monotone: more or narrower rules never let a role through, and the levels are
//! cumulative.

use std::collections::BTreeSet;

use fleet_core::config::Role;
use fleet_core::harness::Harnesses;
use fleet_core::isolation::NetworkMode;
use fleet_core::permissions::Approval;
use fleet_core::policy::require::{
    Cap, Judged, Level, Require, Violation, effective_approval, violations,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::fleets::{isolation, permissions};
use super::{check, holds};
use crate::fleet::base;

const NETWORKS: [NetworkMode; 4] =
    [NetworkMode::Deny, NetworkMode::Broker, NetworkMode::Allowlist, NetworkMode::Allow];

fn require() -> impl Strategy<Value = Require> {
    (
        prop::option::of(select(vec![Level::L1, Level::L2, Level::L3])),
        prop::option::of(subsequence(NETWORKS.to_vec(), 1..=4)),
        prop::option::of(select(vec![Approval::Ask, Approval::Auto, Approval::Allow])),
        subsequence(Cap::ALL.to_vec(), 0..=3),
    )
        .prop_map(|(isolation, network, approval, resources)| Require {
            isolation,
            network,
            approval,
            resources,
        })
}

/// Both together: each key as narrow as the narrower of the two. `None` where no mode is left, which a
/// file cannot say.
fn both(a: &Require, b: &Require) -> Option<Require> {
    let network = match (&a.network, &b.network) {
        (Some(a), Some(b)) => {
            let left: Vec<_> = a.iter().filter(|mode| b.contains(mode)).copied().collect();
            if left.is_empty() {
                return None;
            }
            Some(left)
        }
        (one, other) => one.clone().or_else(|| other.clone()),
    };
    let approval = match (a.approval, b.approval) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    };
    let caps: BTreeSet<Cap> = a.resources.iter().chain(&b.resources).copied().collect();
    Some(Require {
        isolation: a.isolation.max(b.isolation),
        network,
        approval,
        resources: caps.into_iter().collect(),
    })
}

fn options() -> impl Strategy<Value = (&'static str, Value)> {
    select(vec![
        ("claude-code", json!({})),
        ("claude-code", json!({"permission_mode": "bypassPermissions"})),
        ("claude-code", json!({"permission_mode": "plan"})),
        ("claude-code", json!({"permission_mode": "dontAsk"})),
        ("codex", json!({})),
        ("codex", json!({"approval": "never"})),
        ("codex", json!({"sandbox": "danger-full-access"})),
        ("codex", json!({"config": {"default_permissions": ":workspace"}})),
        ("command", json!({"argv": ["sh"]})),
    ])
}

fn caps() -> impl Strategy<Value = Value> {
    subsequence(vec![("cpu", json!(1)), ("mem", json!("1G")), ("pids", json!(64))], 0..=3)
        .prop_map(|caps| caps.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A role as a file gives it, with any isolation, permissions and native options.
fn written() -> impl Strategy<Value = Value> {
    (prop::option::of((isolation(), caps())), permissions(), options()).prop_map(
        |(isolation, permissions, (harness, options))| {
            let mut role = json!({"harness": harness, "harness_options": options});
            if harness != "command" {
                role["permissions"] = permissions;
            }
            if let Some((mut block, caps)) = isolation {
                block["resources"] = caps;
                role["isolation"] = block;
            }
            role
        },
    )
}

fn read(role: &Value) -> Role {
    base(json!({"roles": {"A": role}}).to_string()).with(Harnesses::built_in()).role("A")
}

fn role() -> impl Strategy<Value = Role> {
    written().prop_map(|role| read(&role))
}

fn judge(require: &Require, role: &Role) -> Vec<Violation> {
    let harnesses = Harnesses::built_in();
    let harness = harnesses.get(role.harness.as_str()).map(|it| &**it);
    let approval = effective_approval(role, harness);
    violations(require, Judged { role, approval: &approval })
}

#[test]
fn adding_a_requirement_never_turns_refuse_into_accept() {
    holds(check(&(role(), require(), require()), |(role, one, more)| {
        let Some(both) = both(&one, &more) else { return Ok(()) };
        let refused = |require: &Require| !judge(require, &role).is_empty();
        prop_assert!(!refused(&one) || refused(&both), "{one:?} refuses, {both:?} does not");
        // And nothing is refused that both accept.
        prop_assert_eq!(refused(&both), refused(&one) || refused(&more));
        Ok(())
    }));
}

#[test]
fn what_meets_a_level_meets_those_below() {
    holds(check(&role(), |role| {
        let meets = |level| {
            let require = Require { isolation: Some(level), ..Require::default() };
            judge(&require, &role).is_empty()
        };
        prop_assert!(!meets(Level::L3) || meets(Level::L2));
        prop_assert!(!meets(Level::L2) || meets(Level::L1));
        Ok(())
    }));
}

#[test]
fn a_fleet_loads_exactly_if_no_role_violates_a_rule() {
    holds(check(&(written(), require()), |(role, require)| {
        let mut rules = json!({});
        if let Some(level) = require.isolation {
            rules["isolation"] = json!(level.as_str());
        }
        if let Some(modes) = &require.network {
            rules["network"] = json!(modes.iter().map(|mode| mode.as_str()).collect::<Vec<_>>());
        }
        if let Some(approval) = require.approval {
            rules["approval"] = json!(approval.as_str());
        }
        if !require.resources.is_empty() {
            rules["resources"] = json!(require.resources);
        }
        let never = require.isolation == Some(Level::L3)
            && require.network.as_deref() == Some(&[NetworkMode::Allow]);
        let text = json!({"policy": {"require": rules}, "roles": {"A": &role}}).to_string();
        let loaded = base(text).with(Harnesses::built_in()).load();
        let refused = never || !judge(&require, &read(&role)).is_empty();
        prop_assert_eq!(loaded.fleet.is_none(), refused, "{:?}", loaded.diagnostics);
        Ok(())
    }));
}
