//! Endpoints as sets: `*.a` holds `x.a`, no port holds every port.

use core::net::{IpAddr, Ipv6Addr};
use std::fmt;

/// The hosts of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Every host.
    Any,
    /// Every name that ends in this suffix, itself not included. Lower case.
    Below(String),
    /// This name. Lower case.
    Name(String),
    /// This address.
    Address(IpAddr),
    /// What fleet itself lets through for the harness of this name: its model and the messaging.
    Broker(String),
}

/// A set of endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its hosts.
    pub host: Host,
    /// Its port; `None` is every one.
    pub port: Option<u16>,
}

impl Endpoint {
    /// Everything.
    pub const ANY: Self = Self { host: Host::Any, port: None };

    /// An entry of `allow_hosts`: a name, `*.suffix` or address with an optional port, IPv6 in
    /// brackets where a port follows. `None` if it is none of them.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self { host: Host::Address(address.to_canonical()), port: None });
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let address = IpAddr::V6(address.parse::<Ipv6Addr>().ok()?).to_canonical();
            let port = if port.is_empty() { None } else { Some(port.strip_prefix(':')?) };
            let port = port.map(str::parse).transpose().ok()?;
            return Some(Self { host: Host::Address(address), port });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text, None),
        };
        if host.is_empty() {
            return None;
        }
        let host = match (host.parse::<IpAddr>(), host.strip_prefix("*.")) {
            (Ok(address), _) => Host::Address(address.to_canonical()),
            (Err(_), Some(suffix)) => Host::Below(suffix.to_ascii_lowercase()),
            (Err(_), None) => Host::Name(host.to_ascii_lowercase()),
        };
        Some(Self { host, port })
    }

    /// Whether every endpoint of `other` is one of this set.
    pub fn covers(&self, other: &Self) -> bool {
        let port = self.port.is_none() || self.port == other.port;
        let host = match (&self.host, &other.host) {
            (Host::Any, _) => true,
            (Host::Below(suffix), Host::Below(name)) if suffix == name => true,
            (Host::Below(suffix), Host::Below(name) | Host::Name(name)) => {
                name.strip_suffix(suffix.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (mine, theirs) => mine == theirs,
        };
        port && host
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Any => f.write_str("every host")?,
            Host::Below(suffix) => write!(f, "*.{suffix}")?,
            Host::Name(name) => f.write_str(name)?,
            Host::Address(IpAddr::V6(address)) if self.port.is_some() => write!(f, "[{address}]")?,
            Host::Address(address) => write!(f, "{address}")?,
            Host::Broker(harness) => write!(f, "messaging and the model of `{harness}`")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        if text == "any" { Endpoint::ANY } else { Endpoint::parse(text).expect(text) }
    }

    #[rstest]
    #[case("any", "a.example:80", true)]
    #[case("a.example", "any", false)]
    #[case("a.example", "A.Example:443", true)]
    #[case("a.example:443", "a.example", false)]
    #[case("a.example:443", "a.example:80", false)]
    #[case("*.example", "a.example", true)]
    #[case("*.example", "b.a.example:1", true)]
    #[case("*.example", "example", false)]
    #[case("*.example", "badexample", false)]
    #[case("*.example", "*.example", true)]
    #[case("*.example", "*.a.example", true)]
    #[case("*.a.example", "*.example", false)]
    #[case("a.example", "*.a.example", false)]
    #[case("::1", "[0:0::1]:80", true)]
    #[case("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true)]
    #[case("127.0.0.1:80", "127.0.0.1", false)]
    #[case("*.0.0.1", "127.0.0.1", false)]
    fn a_set_of_endpoints_holds_another(
        #[case] wide: &str,
        #[case] narrow: &str,
        #[case] holds: bool,
    ) {
        assert_eq!(endpoint(wide).covers(&endpoint(narrow)), holds);
    }

    #[test]
    fn endpoints_print_as_they_are_written() {
        for text in ["a.example", "*.a.example:80", "127.0.0.1:80", "[::1]:80", "::1"] {
            assert_eq!(endpoint(text).to_string(), text);
        }
        for text in ["", ":80", "[::1", "[::1]x", "a:b"] {
            assert_eq!(Endpoint::parse(text), None, "{text}");
        }
    }
}
