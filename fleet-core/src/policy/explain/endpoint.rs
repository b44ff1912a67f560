//! Hosts and ports.

use std::fmt;
use std::str::FromStr;

use super::native::{self, NativeQuestion};
use super::{DecidedBy, ExplainRequest, Explanation, Verdict, answer, rule};
use crate::diagnostic::Place;
use crate::isolation::network::{Host, HostError, HostPattern, HostRule, Target};
use crate::isolation::{IsolationBlock, NetworkMode};

/// A host, perhaps with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: Host,
    port: Option<u16>,
}

impl FromStr for Endpoint {
    type Err = HostError;

    /// Reads what `allow_hosts` takes, but for a pattern.
    fn from_str(text: &str) -> Result<Self, HostError> {
        let rule = text.parse::<HostRule>()?;
        match rule.pattern {
            HostPattern::Exact(host) => Ok(Self { host, port: rule.port }),
            HostPattern::Below(_) => Err(HostError::Label),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_rule().fmt(f)
    }
}

impl Endpoint {
    fn as_rule(&self) -> HostRule {
        HostRule { pattern: HostPattern::Exact(self.host.clone()), port: self.port }
    }

    fn is_this_host(&self) -> bool {
        match &self.host {
            Host::Address(address) => address.is_loopback() || address.is_unspecified(),
            Host::Name(name) => {
                name.as_str() == "localhost" || name.as_str().ends_with(".localhost")
            }
        }
    }

    /// The first rule that lets this endpoint through, and the ports of it. Without a port in the
    /// question any port counts.
    fn admitted<'r>(&self, rules: &'r [HostRule]) -> Option<(&'r HostRule, Vec<u16>)> {
        rules.iter().find_map(|rule| {
            let asked = self.port.map_or(rule.ports().to_vec(), |port| vec![port]);
            let admits = |port: &u16| rule.admits(&Target { host: self.host.clone(), port: *port });
            let ports: Vec<u16> = asked.into_iter().filter(admits).collect();
            (!ports.is_empty()).then_some((rule, ports))
        })
    }
}

pub(super) fn explain(request: &ExplainRequest<'_>, endpoint: &Endpoint) -> Explanation {
    let mut answer = by_boundary(request, endpoint);
    answer.native = native::ask(request, NativeQuestion::Network);
    if !answer.native.is_empty() {
        answer.sources = native::sources(request);
    }
    answer
}

fn by_boundary(request: &ExplainRequest<'_>, endpoint: &Endpoint) -> Explanation {
    let subject = endpoint.to_string();
    let block = match &request.role.isolation {
        Some(block) if request.isolated() => block,
        _ => {
            let (rule, place) = request.unisolated();
            let mut it = answer("endpoint", subject, Verdict::Account, DecidedBy::Nothing, rule);
            it.place = place;
            "the role uses the network of this host as you do".clone_into(&mut it.says);
            it.facts.extend(on_the_host(endpoint));
            it.change =
                Some("give the role `isolation: { network: deny }` to close the network".into());
            return it;
        }
    };
    let mode = block.network();
    let place = request.written("isolation.network").map(|(_, place)| place);
    let written = if place.is_some() { "" } else { ", the default" };
    let words = format!("`isolation.network: {mode}`{written}");
    let make = |verdict, id| {
        answer("endpoint", subject, verdict, DecidedBy::OuterBoundary, rule(id, words.clone()))
    };
    let mut it = match mode {
        NetworkMode::Deny => {
            let mut it = make(Verdict::Unreachable, "network.deny");
            it.says = if endpoint.is_this_host() {
                "the role has a network of its own, in which only it is `localhost`: services of this \
                 host are out of reach"
                    .to_owned()
            } else {
                "the role has a network of its own, which leads nowhere".to_owned()
            };
            it.facts.push(
                "Unix sockets are files: a socket in a directory that the role sees can be used, also \
                 where the directory is read-only; ask about its path"
                    .to_owned(),
            );
            it.change = Some(request.in_block("write `network: allow`"));
            it
        }
        NetworkMode::Allow => {
            let mut it = make(Verdict::Reachable, "network.allow");
            "the role uses the network of this host, and no host is closed to it"
                .clone_into(&mut it.says);
            it.facts.extend(on_the_host(endpoint));
            it.change = Some(request.in_block("write `network: deny`"));
            it
        }
        NetworkMode::Broker | NetworkMode::Allowlist => {
            return by_rule(request, block, endpoint, &words);
        }
    };
    it.place = place.or_else(|| request.around("isolation.network"));
    it
}

impl ExplainRequest<'_> {
    /// Each rule of the network that lets something through, in words and with the line that says so.
    /// Empty where the mode says it all.
    pub fn reachable(&self) -> Vec<(&HostRule, String, Option<Place>)> {
        let (Some(policy), Some(block)) = (&self.assessment.policy, &self.role.isolation) else {
            return Vec::new();
        };
        let sourced = |rule| {
            let (_, words, place) = self.rule_source(block, rule);
            (rule, words, place)
        };
        policy.reachable.iter().map(sourced).collect()
    }

    fn rule_source(
        &self,
        block: &IsolationBlock,
        rule: &HostRule,
    ) -> (&'static str, String, Option<Place>) {
        if let Some(index) = block.allow_hosts.iter().position(|it| it == rule) {
            let key = format!("isolation.allow_hosts[{index}]");
            return ("network.allow-hosts", format!("`{key}`: {rule}"), self.around(&key));
        }
        let words = format!("the harness `{}` needs {rule} for its model", self.role.harness);
        ("network.model", words, self.around("isolation.network"))
    }
}

/// An endpoint that is let through by a rule, or by none.
fn by_rule(
    request: &ExplainRequest<'_>,
    block: &IsolationBlock,
    endpoint: &Endpoint,
    mode: &str,
) -> Explanation {
    let policy = request.assessment.policy.as_ref();
    let rules = policy.map_or(&[][..], |policy| &policy.reachable);
    let subject = endpoint.to_string();
    let found = endpoint.admitted(rules);
    let key = "isolation.network";
    let mode_place = request.written(key).map(|(_, place)| place).or_else(|| request.around(key));
    let Some((rule_found, ports)) = found else {
        let (verdict, says) = match policy {
            Some(_) => (Verdict::Unreachable, "no rule of the role lets it through"),
            None => (Verdict::NotStarted, "the role is not started as it is written"),
        };
        let because = rule("network.no-rule", format!("{mode} lets through only what is listed"));
        let mut it = answer("endpoint", subject, verdict, DecidedBy::OuterBoundary, because);
        says.clone_into(&mut it.says);
        it.place = mode_place;
        let listed: Vec<String> = rules.iter().map(ToString::to_string).collect();
        it.facts.push(if listed.is_empty() {
            "nothing is listed".to_owned()
        } else {
            format!("listed: {}", listed.join(", "))
        });
        it.change = Some(request.in_block(&format!("add `{endpoint}` to `allow_hosts`")));
        return it;
    };
    let (id, words, place) = request.rule_source(block, rule_found);
    let index = block.allow_hosts.iter().position(|it| it == rule_found);
    let verdict = Verdict::Reachable;
    let mut it = answer("endpoint", subject, verdict, DecidedBy::OuterBoundary, rule(id, words));
    it.place = place;
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let many = if ports.len() == 1 { "port" } else { "ports" };
    it.says = format!("the role reaches it on {many} {}, through fleet", ports.join(", "));
    if let Host::Name(_) = endpoint.host {
        it.facts.push(
            "a name that leads into a private network is refused unless its address is listed too"
                .to_owned(),
        );
    }
    it.change =
        index.map(|index| format!("leave `isolation.allow_hosts[{index}]` out to close it"));
    it
}

/// What comes with the network of the host.
fn on_the_host(endpoint: &Endpoint) -> Vec<String> {
    let mut facts = vec![
        "services that listen on `localhost`, abstract Unix sockets and a cloud's metadata service \
         are part of that network"
            .to_owned(),
    ];
    if endpoint.is_this_host() {
        facts.push("this one is of this host itself".to_owned());
    }
    facts
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::name("Example.com", "example.com")]
    #[case::port("example.com:443", "example.com:443")]
    #[case::v4("127.0.0.1:80", "127.0.0.1:80")]
    #[case::v6("::1", "::1")]
    #[case::v6_port("[::1]:443", "[::1]:443")]
    #[case::v6_brackets("[2001:db8::1]", "2001:db8::1")]
    #[case::single("localhost", "127.0.0.1")]
    fn an_endpoint_is_read(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(text.parse::<Endpoint>().map(|it| it.to_string()).as_deref(), Ok(shown));
    }

    #[rstest]
    #[case::empty("")]
    #[case::space("a b")]
    #[case::control("a\u{1b}[31m")]
    #[case::path("src/main.rs")]
    #[case::address("256.1.1.1")]
    #[case::url("https://example.com")]
    #[case::port_zero("a:0")]
    #[case::port_large("a:65536")]
    #[case::port_sign("a:+80")]
    #[case::port_empty("a:")]
    #[case::after_brackets("[::1]x")]
    #[case::open_bracket("[::1")]
    #[case::pattern("*.example.com")]
    fn what_is_none_is_refused(#[case] text: &str) {
        assert!(text.parse::<Endpoint>().is_err());
    }

    #[test]
    fn this_host_is_known_by_its_names() {
        for text in ["localhost", "LOCALHOST.", "a.localhost", "127.9.9.9", "::1", "0.0.0.0"] {
            assert!(text.parse::<Endpoint>().unwrap().is_this_host(), "{text}");
        }
        assert!(!"example.com".parse::<Endpoint>().unwrap().is_this_host());
    }
}
