use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::address::{AddressClass, classify};
use super::host::{Host, HostError, HostName, parse_port, split_port};
use super::own::OwnAddresses;

/// The ports of a rule that names none.
pub const DEFAULT_PORTS: &[u16] = &[80, 443];

/// Which hosts a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// Exactly this host.
    Exact(Host),
    /// Every name below this one (`*.suffix`), but not the name itself.
    Below(HostName),
}

/// One entry of `allow_hosts`, or an endpoint that a mode brings along.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule {
    /// The hosts.
    pub pattern: HostPattern,
    /// The port; `None` stands for [`DEFAULT_PORTS`].
    pub port: Option<u16>,
}

/// What a connection asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

impl HostRule {
    /// The ports, never empty.
    pub fn ports(&self) -> &[u16] {
        match &self.port {
            Some(port) => std::slice::from_ref(port),
            None => DEFAULT_PORTS,
        }
    }

    /// Whether the rule allows the target.
    pub fn admits(&self, target: &Target) -> bool {
        let host = match (&self.pattern, &target.host) {
            (HostPattern::Exact(mine), theirs) => mine == theirs,
            (HostPattern::Below(suffix), Host::Name(name)) => name.is_below(suffix),
            (HostPattern::Below(_), Host::Address(_)) => false,
        };
        host && self.ports().contains(&target.port)
    }

    /// Whether everything that `other` allows is allowed by this rule.
    pub fn covers(&self, other: &HostRule) -> bool {
        let hosts = match (&self.pattern, &other.pattern) {
            (HostPattern::Exact(mine), HostPattern::Exact(theirs)) => mine == theirs,
            (HostPattern::Below(suffix), HostPattern::Exact(Host::Name(name))) => {
                name.is_below(suffix)
            }
            (HostPattern::Below(mine), HostPattern::Below(theirs)) => {
                mine == theirs || theirs.is_below(mine)
            }
            (HostPattern::Exact(_), HostPattern::Below(_))
            | (HostPattern::Below(_), HostPattern::Exact(Host::Address(_))) => false,
        };
        hosts && other.ports().iter().all(|port| self.ports().contains(port))
    }
}

/// The first rule that allows the target.
pub fn decide<'a>(rules: &'a [HostRule], target: &Target) -> Option<&'a HostRule> {
    rules.iter().find(|rule| rule.admits(target))
}

/// Judges an address that a listed name resolved to: a public one is fine unless it is the host's own;
/// any other only if it is listed itself, with the port.
///
/// # Errors
/// The class of the refused address.
pub fn judge_answer(
    rules: &[HostRule],
    answer: IpAddr,
    port: u16,
    own: &OwnAddresses,
) -> Result<(), AddressClass> {
    let class = match classify(answer) {
        AddressClass::Public if own.contains(answer) => AddressClass::Own,
        AddressClass::Public => return Ok(()),
        class => class,
    };
    // Through `Host`, which unwraps an IPv4 address that IPv6 only carries.
    let host = Host::parse(&answer.to_string()).unwrap_or(Host::Address(answer));
    match decide(rules, &Target { host, port }) {
        Some(_) => Ok(()),
        None => Err(class),
    }
}

impl FromStr for HostRule {
    type Err = HostError;

    /// `NAME`, `*.SUFFIX` or an address, each with an optional `:PORT`.
    fn from_str(text: &str) -> Result<Self, HostError> {
        let Some(below) = text.strip_prefix("*.") else {
            let (host, port) = split_port(text)?;
            return Ok(Self { pattern: HostPattern::Exact(host), port });
        };
        let (name, port) = match below.split_once(':') {
            Some((name, port)) => (name, Some(parse_port(port)?)),
            None => (below, None),
        };
        Ok(Self { pattern: HostPattern::Below(HostName::parse(name)?), port })
    }
}

impl FromStr for Target {
    type Err = HostError;

    /// `HOST:PORT`; the port must be there.
    fn from_str(text: &str) -> Result<Self, HostError> {
        match split_port(text)? {
            (host, Some(port)) => Ok(Self { host, port }),
            (_, None) => Err(HostError::Port),
        }
    }
}

macro_rules! by_text {
    ($($name:ident)*) => { $(
        impl TryFrom<String> for $name {
            type Error = HostError;

            fn try_from(text: String) -> Result<Self, HostError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }
    )* };
}
by_text!(HostRule Target);

fn with_port(f: &mut fmt::Formatter<'_>, host: &Host, port: Option<u16>) -> fmt::Result {
    match (host, port) {
        (host, None) => write!(f, "{host}"),
        (Host::Address(IpAddr::V6(address)), Some(port)) => write!(f, "[{address}]:{port}"),
        (host, Some(port)) => write!(f, "{host}:{port}"),
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            HostPattern::Exact(host) => with_port(f, host, self.port),
            HostPattern::Below(suffix) => {
                f.write_str("*.")?;
                with_port(f, &Host::Name(suffix.clone()), self.port)
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_port(f, &self.host, Some(self.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> HostRule {
        text.parse().expect(text)
    }

    fn target(text: &str) -> Target {
        text.parse().expect(text)
    }

    #[test]
    fn rules_are_typed_once() {
        for (text, canonical) in [
            ("API.Example.com.", "api.example.com"),
            ("*.Example.com:443", "*.example.com:443"),
            ("[::FFFF:10.0.0.1]:80", "10.0.0.1:80"),
            ("[2606:4700::1]:443", "[2606:4700::1]:443"),
            ("2606:4700:0::1", "2606:4700::1"),
        ] {
            assert_eq!(rule(text).to_string(), canonical);
            assert_eq!(rule(canonical), rule(text));
        }
        for text in ["*", "*.", "*.*.a", "a.*", "*.1.2.3.4", "*a.b", "http://a", "a/b", "u@a"] {
            assert!(text.parse::<HostRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rule_admits_its_hosts_and_ports_only() {
        for (allowed, asked, admitted) in [
            ("a.example", "A.example.:443", true),
            ("a.example", "a.example:80", true),
            ("a.example", "a.example:22", false),
            ("a.example:22", "a.example:22", true),
            ("a.example:22", "a.example:443", false),
            ("a.example", "b.a.example:443", false),
            ("*.a.example", "b.a.example:443", true),
            ("*.a.example", "c.b.a.example:443", true),
            ("*.a.example", "a.example:443", false),
            ("*.a.example", "xa.example:443", false),
            ("10.0.0.1:80", "[::ffff:10.0.0.1]:80", true),
            ("10.0.0.1", "10.0.0.2:80", false),
        ] {
            assert_eq!(rule(allowed).admits(&target(asked)), admitted, "{allowed} {asked}");
        }
    }

    #[test]
    fn a_listed_name_leads_into_no_private_network() {
        let rules = [rule("a.example"), rule("10.0.0.7:443"), rule("[::1]:8080")];
        let own = OwnAddresses::parse(
            "|-- 93.184.216.1\n/32 host LOCAL\n|-- 127.0.0.0\n/8 host LOCAL\n",
            "26064700000000000000000000001111 02 40 00 80 eth0",
        );
        let judge =
            |answer: &str, port| judge_answer(&rules, answer.parse().expect(answer), port, &own);
        assert_eq!(judge("93.184.216.34", 443), Ok(()));
        assert_eq!(judge("93.184.216.1", 443), Err(AddressClass::Own));
        assert_eq!(judge("2606:4700::1111", 443), Err(AddressClass::Own));
        assert_eq!(judge("2606:4700::1112", 443), Ok(()));
        // Listed itself, so meant.
        let listed = [rule("a.example"), rule("93.184.216.1:443")];
        let answer = "93.184.216.1".parse().expect("an address");
        assert_eq!(judge_answer(&listed, answer, 443, &own), Ok(()));
        assert_eq!(judge_answer(&listed, answer, 80, &own), Err(AddressClass::Own));
        assert_eq!(judge("127.0.0.1", 443), Err(AddressClass::Loopback));
        assert_eq!(judge("169.254.169.254", 80), Err(AddressClass::LinkLocal));
        assert_eq!(judge("10.0.0.7", 443), Ok(()));
        assert_eq!(judge("::ffff:10.0.0.7", 443), Ok(()));
        assert_eq!(judge("10.0.0.7", 80), Err(AddressClass::Private));
        assert_eq!(judge("::1", 8080), Ok(()));
    }

    #[test]
    fn covering_is_by_hosts_and_ports() {
        for (wide, narrow, covers) in [
            ("a.example", "a.example:443", true),
            ("a.example:443", "a.example", false),
            ("a.example", "a.example:22", false),
            ("*.example", "a.example", true),
            ("*.example", "*.a.example", true),
            ("*.a.example", "*.example", false),
            ("*.example:443", "a.example", false),
            ("a.example", "*.a.example", false),
            ("*.example", "10.0.0.1", false),
        ] {
            assert_eq!(rule(wide).covers(&rule(narrow)), covers, "{wide} {narrow}");
        }
    }
}
