//! The order of policies as an order. A body takes the comparison under test.

use std::collections::{BTreeMap, BTreeSet};

use fleet_core::config::Fleet;
use fleet_core::harness::Harnesses;
use fleet_core::policy::check::compare;
use fleet_core::policy::order::{Dimension, Widening};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use super::{check, holds};
use crate::fleet::base;

/// What is wider in the second fleet than in the first.
pub(crate) type Compare = fn(&Fleet, &Fleet) -> Vec<Widening>;

pub(crate) fn widenings(old: &Fleet, new: &Fleet) -> Vec<Widening> {
    let mut found = compare(old, new, &Harnesses::built_in()).widenings;
    found.retain(Widening::widens);
    found
}

fn load(role: &Value) -> Fleet {
    base(json!({"roles": {"A": role}}).to_string()).with(Harnesses::built_in()).fleet()
}

fn lines(found: &[Widening]) -> String {
    let line = |it: &Widening| format!("{}: {}: {} -> {}", it.key, it.subject, it.from, it.to);
    found.iter().map(line).collect::<Vec<_>>().join("; ")
}

const PATHS: &[&str] = &["/d", "/d/a", "/d/a/b", "/d/c", "/e", "/e/f", "/g"];
const HOSTS: &[&str] = &[
    "a.example",
    "a.example:443",
    "x.a.example",
    "*.a.example",
    "*.example",
    "*.example:80",
    "10.0.0.1",
    "[::1]:80",
    "b.example",
];

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(of.to_vec(), 0..=of.len()).prop_shuffle()
}

/// Paths with modes, each path once.
fn mounts() -> impl Strategy<Value = BTreeMap<&'static str, bool>> {
    prop::collection::btree_map(select(PATHS), any::<bool>(), 0..5)
}

fn fs(mounts: &BTreeMap<&str, bool>) -> Value {
    let list = |rw: bool| -> Vec<&str> {
        mounts.iter().filter(|(_, it)| **it == rw).map(|(path, _)| *path).collect()
    };
    json!({"read": list(false), "write": list(true)})
}

fn isolation() -> impl Strategy<Value = Value> {
    let network = prop_oneof![
        Just(json!({"network": "deny"})),
        Just(json!({"network": "allow"})),
        some(HOSTS).prop_map(|hosts| json!({"network": "broker", "allow_hosts": hosts})),
        some(&HOSTS[..3]).prop_map(|mut hosts| {
            hosts.push("c.example");
            json!({"network": "allowlist", "allow_hosts": hosts})
        }),
    ];
    let cap = prop::option::of(select(vec![16, 20, 99]));
    (
        network,
        mounts(),
        some(&["one", "two", "three"]),
        cap,
        some(&[".git", ".git/hooks", "x"]),
        any::<(bool, bool)>(),
    )
        .prop_map(|(network, mounts, secrets, pids, protect, (full, nested))| {
            let mut block = network;
            let secrets: Vec<String> =
                secrets.iter().map(|name| format!("/k/{name}:/run/secrets/{name}")).collect();
            block["on_unavailable"] = "strict".into();
            block["fs"] = fs(&mounts);
            block["secrets"] = secrets.into();
            block["protect"] = protect.into();
            block["system"] = if full { "full" } else { "curated" }.into();
            block["nested_sandbox"] = nested.into();
            if let Some(pids) = pids {
                block["resources"] = json!({"pids": pids});
            }
            block
        })
}

fn options() -> impl Strategy<Value = Value> {
    let mode = prop::option::of(select(vec!["plan", "acceptEdits", "bypassPermissions"]));
    (mode, some(&["one", "two"]), some(&["p@q", "r@s"]), any::<bool>()).prop_map(
        |(mode, servers, plugins, only)| {
            let mut options = json!({"mcp_servers_only": only});
            if let Some(mode) = mode {
                options["permission_mode"] = mode.into();
            }
            for name in servers {
                options["mcp_servers"][name] = json!({"command": format!("run-{name}")});
            }
            for id in plugins {
                options["plugins"][id] = only.into();
            }
            options
        },
    )
}

/// A valid role that says something in every dimension.
fn role() -> impl Strategy<Value = Value> {
    let isolation = prop_oneof![1 => Just(None), 5 => isolation().prop_map(Some)];
    (
        isolation,
        options(),
        super::fleets::permissions(),
        some(&["P", "Q", "R"]),
        some(&["E", "F"]),
        prop::option::of(select(vec!["/w", "/w/x", "/v"])),
    )
        .prop_map(|(isolation, options, permissions, pass, env, cwd)| {
            let mut role = json!({
                "harness_options": options,
                "permissions": permissions,
                "env_pass": pass,
                "env": env.iter().map(|name| ((*name).to_owned(), json!("x"))).collect::<Map<_, _>>(),
            });
            if let Some(isolation) = isolation {
                role["isolation"] = isolation;
            }
            if let Some(cwd) = cwd {
                role["cwd"] = cwd.into();
            }
            role
        })
}

/// Nothing is wider than itself, and the order of lists means nothing.
pub(crate) fn is_reflexive_whatever_the_order_of_lists(compare: Compare) -> Result<(), String> {
    let shuffled = role().prop_flat_map(|role| {
        let rotated = (Just(role), any::<u8>());
        rotated.prop_map(|(role, by)| (role.clone(), rotate(role, usize::from(by))))
    });
    check(&shuffled, |(old, new)| {
        let found = compare(&load(&old), &load(&new));
        prop_assert!(found.is_empty(), "{}", lines(&found));
        Ok(())
    })
}

/// The same with every list turned, backwards where the number is odd.
fn rotate(value: Value, by: usize) -> Value {
    match value {
        Value::Array(mut items) => {
            if by % 2 == 1 {
                items.reverse();
            }
            let steps = by.checked_rem(items.len()).unwrap_or(0);
            items.rotate_left(steps);
            Value::Array(items)
        }
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, rotate(value, by))).collect())
        }
        other => other,
    }
}

/// What is within what is within something is within it.
pub(crate) fn is_transitive(compare: Compare) -> Result<(), String> {
    // Independent roles are hardly ever comparable: the second and third take from the one before.
    let chain = (role(), role(), role(), any::<[u8; 2]>());
    check(&chain, |(a, b, c, keep)| {
        let b = mix(&a, &b, keep[0]);
        let c = mix(&b, &c, keep[1]);
        let (a, b, c) = (load(&a), load(&b), load(&c));
        let all = [&a, &b, &c];
        for first in all {
            for second in all {
                for third in all {
                    let within = |old, new| compare(old, new).is_empty();
                    prop_assert!(
                        !(within(first, second) && within(second, third)) || within(first, third),
                        "{}",
                        lines(&compare(first, third))
                    );
                }
            }
        }
        Ok(())
    })
}

/// `from` with one of its keys as in `other`.
fn mix(from: &Value, other: &Value, choice: u8) -> Value {
    let mut mixed = from.clone();
    let keys = ["isolation", "permissions", "env_pass", "cwd", "harness_options"];
    let key = keys[usize::from(choice) % keys.len()];
    match other.get(key) {
        Some(value) => mixed[key] = value.clone(),
        None => drop(mixed.as_object_mut().expect("a role").remove(key)),
    }
    mixed
}

/// One thing more, and where it must be reported.
type Addition = (Dimension, fn(&mut Value));

fn additions() -> Vec<Addition> {
    fn push(list: &mut Value, entry: Value) {
        if !list.is_array() {
            *list = json!([]);
        }
        list.as_array_mut().expect("a list").push(entry);
    }
    vec![
        (Dimension::Paths, |role| push(&mut role["isolation"]["fs"]["read"], "/new/r".into())),
        (Dimension::Paths, |role| push(&mut role["isolation"]["fs"]["write"], "/new/w".into())),
        (Dimension::Secrets, |role| {
            push(&mut role["isolation"]["secrets"], "/k/new:/run/secrets/new".into());
        }),
        (Dimension::EnvPass, |role| push(&mut role["env_pass"], "NEW".into())),
        (Dimension::Env, |role| role["env"]["NEW"] = "x".into()),
        (Dimension::Mcp, |role| {
            role["harness_options"]["mcp_servers"]["new"] = json!({"command": "new"});
        }),
        (Dimension::Options, |role| role["harness_options"]["plugins"]["new@new"] = true.into()),
        (Dimension::ManagedCli, |role| role["managed_cli"] = json!(["task-workflow"])),
    ]
}

/// Whatever is added is reported.
pub(crate) fn reports_what_is_added(compare: Compare) -> Result<(), String> {
    check(&(role(), select(additions())), |(old, (dimension, add))| {
        prop_assume!(old.get("isolation").is_some());
        let mut new = old.clone();
        add(&mut new);
        let found = compare(&load(&old), &load(&new));
        prop_assert!(found.iter().any(|it| it.dimension == dimension), "{dimension:?} of {new}");
        Ok(())
    })
}

/// What is taken away is not.
pub(crate) fn reports_nothing_for_what_is_removed(compare: Compare) -> Result<(), String> {
    check(&(role(), select(additions())), |(new, (_, add))| {
        prop_assume!(new.get("isolation").is_some());
        let mut old = new.clone();
        add(&mut old);
        let found = compare(&load(&old), &load(&new));
        prop_assert!(found.is_empty(), "{}", lines(&found));
        Ok(())
    })
}

/// A fleet is within another exactly if it allows no more at any path: judged by walking up from each
/// path, not by comparing mounts.
pub(crate) fn agrees_with_every_path(compare: Compare) -> Result<(), String> {
    check(&(mounts(), mounts()), |(old, new)| {
        let role = |mounts| json!({"isolation": {"network": "deny", "on_unavailable": "strict", "fs": fs(mounts)}});
        let found = compare(&load(&role(&old)), &load(&role(&new)));
        let below = PATHS.iter().map(|path| format!("{path}/zz"));
        let probes: Vec<String> =
            PATHS.iter().map(|path| (*path).to_owned()).chain(below).collect();
        let mode = |mounts: &BTreeMap<&str, bool>, path: &str| -> u8 {
            let mut place = path;
            loop {
                if let Some(rw) = mounts.get(place) {
                    return if *rw { 2 } else { 1 };
                }
                match place.rsplit_once('/') {
                    Some((above, _)) => place = above,
                    None => return 0,
                }
            }
        };
        let wider = probes.iter().any(|path| mode(&new, path) > mode(&old, path));
        prop_assert_eq!(
            wider,
            !found.is_empty(),
            "{} to {}: {}",
            fs(&old),
            fs(&new),
            lines(&found)
        );
        Ok(())
    })
}

/// The same for endpoints.
pub(crate) fn agrees_with_every_endpoint(compare: Compare) -> Result<(), String> {
    let hosts = || prop::collection::btree_set(select(HOSTS), 1..6);
    check(&(hosts(), hosts()), |(old, new)| {
        let role = |hosts: &BTreeSet<&str>| json!({"isolation": {"network": "allowlist", "allow_hosts": hosts}});
        let found = compare(&load(&role(&old)), &load(&role(&new)));
        let names = [
            "a.example",
            "x.a.example",
            "z.a.example",
            "b.example",
            "z.example",
            "10.0.0.1",
            "::1",
        ];
        let reachable = |hosts: &BTreeSet<&str>, name: &str, port: &str| {
            hosts.iter().any(|entry| {
                let (host, only) = match entry.strip_prefix("[::1]") {
                    Some(rest) => ("::1", rest.strip_prefix(':')),
                    None => {
                        entry.split_once(':').map_or((*entry, None), |(host, it)| (host, Some(it)))
                    }
                };
                let same = host.strip_prefix('*').map_or(host == name, |it| name.ends_with(it));
                same && only.is_none_or(|only| only == port)
            })
        };
        let wider = names.iter().any(|name| {
            let mut ports = ["443", "80", "9"].into_iter();
            ports.any(|port| reachable(&new, name, port) && !reachable(&old, name, port))
        });
        prop_assert_eq!(wider, !found.is_empty(), "{:?} to {:?}: {}", old, new, lines(&found));
        Ok(())
    })
}

#[test]
fn order_is_reflexive_whatever_the_order_of_lists() {
    holds(is_reflexive_whatever_the_order_of_lists(widenings));
}

#[test]
fn order_is_transitive() {
    holds(is_transitive(widenings));
}

#[test]
fn order_reports_what_is_added() {
    holds(reports_what_is_added(widenings));
}

#[test]
fn order_reports_nothing_for_what_is_removed() {
    holds(reports_nothing_for_what_is_removed(widenings));
}

#[test]
fn order_agrees_with_every_path() {
    holds(agrees_with_every_path(widenings));
}

#[test]
fn order_agrees_with_every_endpoint() {
    holds(agrees_with_every_endpoint(widenings));
}
