//! Finds a grant that covers another without asking each: a hostile file may hold a hundred thousand.

use std::collections::HashMap;

use super::{Endpoint, Grant, Value};
use crate::isolation::network::{Host, HostPattern};

/// The grants of one side, by what they are about.
pub(super) struct Index<'a> {
    by_key: HashMap<String, Vec<&'a Grant>>,
    by_subject: HashMap<&'a str, &'a Grant>,
}

impl<'a> Index<'a> {
    pub(super) fn new(grants: &'a [Grant]) -> Self {
        let mut index = Self { by_key: HashMap::new(), by_subject: HashMap::new() };
        for grant in grants {
            index.by_key.entry(key(grant)).or_default().push(grant);
            index.by_subject.entry(&grant.subject).or_insert(grant);
        }
        index
    }

    /// Whether any grant covers this one.
    pub(super) fn covers(&self, grant: &Grant) -> bool {
        let candidates = wider_keys(grant).into_iter().filter_map(|key| self.by_key.get(&key));
        candidates.flatten().any(|candidate| candidate.covers(grant))
    }

    /// The first grant with the same subject.
    pub(super) fn same_subject(&self, grant: &Grant) -> Option<&'a Grant> {
        self.by_subject.get(grant.subject.as_str()).copied()
    }
}

/// Grants that cover one another have keys that [`wider_keys`] leads to.
fn key(grant: &Grant) -> String {
    match &grant.value {
        Value::Word | Value::Level { .. } => grant.subject.clone(),
        Value::Exact { value, .. } => format!("{}\0{}", grant.subject, value.expose()),
        Value::Path { path, .. } => path.as_str().to_owned(),
        Value::Endpoint(endpoint) => endpoint_key(endpoint),
    }
}

fn wider_keys(grant: &Grant) -> Vec<String> {
    match &grant.value {
        Value::Word | Value::Level { .. } | Value::Exact { .. } => vec![key(grant)],
        Value::Path { path, .. } => path.self_and_ancestors().map(str::to_owned).collect(),
        Value::Endpoint(endpoint) => {
            let mut keys = vec![ANY.to_owned(), endpoint_key(endpoint)];
            if let Endpoint::Rule(rule) = endpoint {
                let patterns =
                    std::iter::once(pattern_key(&rule.pattern)).chain(above(&rule.pattern));
                let ports = [None, rule.port];
                keys.extend(patterns.flat_map(|host| ports.map(|port| with_port(&host, port))));
            }
            keys
        }
    }
}

/// The keys of every suffix that holds the pattern.
fn above(pattern: &HostPattern) -> impl Iterator<Item = String> {
    let name = match pattern {
        HostPattern::Exact(Host::Name(name)) | HostPattern::Below(name) => name.as_str(),
        HostPattern::Exact(Host::Address(_)) => "",
    };
    name.match_indices('.').map(|(dot, _)| format!("below {}", &name[dot + 1..]))
}

const ANY: &str = "any";

fn endpoint_key(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Any => ANY.to_owned(),
        Endpoint::Rule(rule) => with_port(&pattern_key(&rule.pattern), rule.port),
    }
}

fn pattern_key(pattern: &HostPattern) -> String {
    match pattern {
        HostPattern::Exact(host) => format!("host {host}"),
        HostPattern::Below(suffix) => format!("below {suffix}"),
    }
}

fn with_port(host: &str, port: Option<u16>) -> String {
    port.map_or_else(|| host.to_owned(), |port| format!("{host} {port}"))
}
