use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::host::{Host, HostName};
use super::rule::{HostPattern, HostRule, Target};

/// Where the CONNECT proxy listens inside the sandbox.
pub const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 76, 1)), 3128);
/// Variables by which programs find a proxy for https. Both cases, since programs differ in which they
/// read. None for plain http: that would go to a proxy which serves `CONNECT` only, also for an exact
/// name that answers by itself.
const PROXY_VARIABLES: &[&str] = &["HTTPS_PROXY", "https_proxy"];
/// Never asked through the proxy: the addresses on which the sandbox itself listens.
const NO_PROXY: &str = "127.0.0.0/8,127.0.0.1,localhost,::1";

/// A socket that the launcher opens inside the sandbox and serves from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// Where it listens inside.
    pub at: SocketAddr,
    /// What a connection to it leads to.
    pub serve: Serve,
}

/// What a connection leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Serve {
    /// One target.
    Target(Target),
    /// Whatever target a `CONNECT` request names, if a rule allows it.
    Proxy,
}

/// How the rules of a role look from inside its sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkLayout {
    /// What to listen on.
    pub listeners: Vec<Listener>,
    /// Lines of the generated `/etc/hosts`.
    pub hosts: Vec<(Ipv4Addr, HostName)>,
    /// Whether some rule can only be used through the proxy, so that programs must be told of it.
    pub proxied: bool,
}

impl NetworkLayout {
    /// Every exact name has an address of its own, on which the real ports answer: programs need no
    /// setting. What has no address inside (`*.suffix`, an address of another machine) is reached
    /// through the proxy.
    ///
    /// Listeners are unique by address, in the order of the rules; beyond 16 000 names the rest is
    /// left to the proxy.
    pub fn of(rules: &[HostRule]) -> Self {
        let mut layout = Self::default();
        for rule in rules {
            match &rule.pattern {
                HostPattern::Exact(Host::Name(name)) => match layout.address_of(name) {
                    Some(address) => layout.listen(address.into(), rule),
                    None => layout.proxied = true,
                },
                HostPattern::Exact(Host::Address(address)) if address.is_loopback() => {
                    layout.listen(*address, rule);
                }
                HostPattern::Exact(Host::Address(_)) | HostPattern::Below(_) => {
                    layout.proxied = true;
                }
            }
        }
        if layout.proxied {
            layout.listeners.push(Listener { at: PROXY, serve: Serve::Proxy });
        }
        layout
    }

    /// The environment that leads programs to the proxy; empty where none is needed.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, String)> {
        let proxy = format!("http://{PROXY}");
        let variables = PROXY_VARIABLES.iter().map(move |name| (*name, proxy.clone()));
        let exceptions = ["NO_PROXY", "no_proxy"].map(|name| (name, NO_PROXY.to_owned()));
        variables.chain(exceptions).filter(move |_| self.proxied)
    }

    fn address_of(&mut self, name: &HostName) -> Option<Ipv4Addr> {
        if let Some((address, _)) = self.hosts.iter().find(|(_, known)| known == name) {
            return Some(*address);
        }
        let index = u8::try_from(self.hosts.len() / 250).ok().filter(|block| *block < 64)?;
        let last = u8::try_from(self.hosts.len() % 250).ok()? + 1;
        let address = Ipv4Addr::new(127, 0, 77 + index, last);
        self.hosts.push((address, name.clone()));
        Some(address)
    }

    fn listen(&mut self, address: IpAddr, rule: &HostRule) {
        let HostPattern::Exact(host) = &rule.pattern else { return };
        for port in rule.ports() {
            let at = SocketAddr::new(address, *port);
            if self.listeners.iter().all(|listener| listener.at != at) {
                let target = Target { host: host.clone(), port: *port };
                self.listeners.push(Listener { at, serve: Serve::Target(target) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(rules: &[&str]) -> NetworkLayout {
        let rules: Vec<HostRule> = rules.iter().map(|text| text.parse().expect(text)).collect();
        NetworkLayout::of(&rules)
    }

    fn listeners(layout: &NetworkLayout) -> Vec<String> {
        let serve = |serve: &Serve| match serve {
            Serve::Target(target) => target.to_string(),
            Serve::Proxy => "proxy".to_owned(),
        };
        layout.listeners.iter().map(|it| format!("{} {}", it.at, serve(&it.serve))).collect()
    }

    #[test]
    fn exact_names_answer_on_their_own_addresses() {
        let layout = layout(&["a.example", "b.example:22", "a.example:8443", "a.example:443"]);
        assert_eq!(
            listeners(&layout),
            [
                "127.0.77.1:80 a.example:80",
                "127.0.77.1:443 a.example:443",
                "127.0.77.2:22 b.example:22",
                "127.0.77.1:8443 a.example:8443",
            ]
        );
        let hosts: Vec<String> =
            layout.hosts.iter().map(|(address, name)| format!("{address} {name}")).collect();
        assert_eq!(hosts, ["127.0.77.1 a.example", "127.0.77.2 b.example"]);
        assert!(!layout.proxied && layout.environment().next().is_none());
    }

    #[test]
    fn what_has_no_address_inside_goes_through_the_proxy() {
        let layout = layout(&["*.example", "10.0.0.1:80", "127.0.0.1:9", "[::1]:9", "localhost:7"]);
        assert_eq!(
            listeners(&layout),
            [
                "127.0.0.1:9 127.0.0.1:9",
                "[::1]:9 [::1]:9",
                "127.0.0.1:7 127.0.0.1:7",
                "127.0.76.1:3128 proxy",
            ]
        );
        let names: Vec<&str> = layout.environment().map(|(name, _)| name).collect();
        assert_eq!(names, ["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"]);
    }

    #[test]
    fn more_names_than_addresses_are_left_to_the_proxy() {
        let names: Vec<String> = (0..16_001).map(|index| format!("h{index}.example:1")).collect();
        let rules: Vec<HostRule> = names.iter().map(|name| name.parse().expect(name)).collect();
        let layout = NetworkLayout::of(&rules);
        assert!(layout.proxied);
        assert_eq!(layout.hosts.len(), 16_000);
        assert_eq!(
            layout.hosts.last().map(|(address, _)| *address),
            Some(Ipv4Addr::new(127, 0, 140, 250))
        );
    }
}
