//! Finds a grant that covers another without asking each: a hostile file may hold a hundred thousand.

use std::collections::HashMap;

use super::{Endpoint, Grant, Host, Value};

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
        Value::Endpoint(endpoint) => with_port(&host_key(&endpoint.host), endpoint.port),
    }
}

fn wider_keys(grant: &Grant) -> Vec<String> {
    match &grant.value {
        Value::Word | Value::Level { .. } | Value::Exact { .. } => vec![key(grant)],
        Value::Path { path, .. } => path.self_and_ancestors().map(str::to_owned).collect(),
        Value::Endpoint(Endpoint { host, port }) => {
            let mut hosts = vec![host_key(&Host::Any), host_key(host)];
            if let Host::Name(name) | Host::Below(name) = host {
                let above = name.match_indices('.').map(|(dot, _)| &name[dot + 1..]);
                hosts.extend(above.map(|suffix| host_key(&Host::Below(suffix.to_owned()))));
            }
            let ports = [None, *port];
            hosts.iter().flat_map(|host| ports.map(|port| with_port(host, port))).collect()
        }
    }
}

fn host_key(host: &Host) -> String {
    match host {
        Host::Any => "any".to_owned(),
        Host::Below(suffix) => format!("below {suffix}"),
        Host::Name(name) => format!("name {name}"),
        Host::Address(address) => format!("address {address}"),
        Host::Broker(harness) => format!("broker {harness}"),
    }
}

fn with_port(host: &str, port: Option<u16>) -> String {
    port.map_or_else(|| host.to_owned(), |port| format!("{host} {port}"))
}
