use core::net::{IpAddr, Ipv6Addr};

use super::address::carried;

/// The addresses that this host answers on itself. A listed name that leads to one of them leads to
/// services of the host, from the host itself, so no packet filter at its outer side sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnAddresses(Vec<(IpAddr, u32)>);

impl OwnAddresses {
    /// From what the kernel says in `/proc/net`: `fib_trie` for IPv4, where every route of type
    /// `LOCAL` counts, and `if_inet6`. A line of another form says nothing.
    pub fn parse(fib_trie: &str, if_inet6: &str) -> Self {
        let mut own = Vec::new();
        let mut network = None;
        for line in fib_trie.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("|--") => {
                    network = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                }
                Some(word) => {
                    let length = word.strip_prefix('/').and_then(|length| length.parse().ok());
                    if let (Some(network), Some(length), Some("LOCAL")) =
                        (network, length, words.nth(1))
                        && !own.contains(&(network, length))
                    {
                        own.push((network, length));
                    }
                }
                None => {}
            }
        }
        own.extend(if_inet6.lines().filter_map(|line| {
            let digits = line.split_whitespace().next().filter(|word| word.len() == 32)?;
            let bits = u128::from_str_radix(digits, 16).ok()?;
            Some((Ipv6Addr::from_bits(bits).into(), 128))
        }));
        Self(own)
    }

    /// Whether the host answers on this address, also where it only carries one that it does.
    pub fn contains(&self, address: IpAddr) -> bool {
        let carried = match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(six) => carried(six).map(IpAddr::V4),
        };
        let holds = |address: IpAddr| {
            self.0.iter().any(|(network, length)| match (network, address) {
                (IpAddr::V4(mine), IpAddr::V4(theirs)) => {
                    (mine.to_bits() ^ theirs.to_bits()).leading_zeros() >= *length
                }
                (IpAddr::V6(mine), IpAddr::V6(theirs)) => {
                    (mine.to_bits() ^ theirs.to_bits()).leading_zeros() >= *length
                }
                _ => false,
            })
        };
        holds(address) || carried.is_some_and(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIB_TRIE: &str = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 93.184.216.0/24 2 0 2
        |-- 93.184.216.0
           /24 link UNICAST
        |-- 93.184.216.34
           /32 host LOCAL
        |-- 93.184.216.255
           /32 link BROADCAST
Local:
     |-- 93.184.216.34
        /32 host LOCAL
     |-- 127.0.0.0
        /8 host LOCAL tos=0
     |-- 8.8.8.0
        /24 host LOCAL
     |-- nonsense
        /32 host LOCAL
";
    const IF_INET6: &str = "\
00000000000000000000000000000001 01 80 10 80       lo
26064700000000000000000000001111 02 40 00 80     eth0
short 02 40 00 80     eth0
";

    #[test]
    fn what_the_kernel_calls_local_is_our_own() {
        let own = OwnAddresses::parse(FIB_TRIE, IF_INET6);
        for (text, expected) in [
            ("93.184.216.34", true),
            ("::ffff:93.184.216.34", true),
            ("64:ff9b::5db8:d822", true),
            ("2002:5db8:d822::1", true),
            ("93.184.216.35", false),
            ("93.184.216.0", false),
            ("93.184.216.255", false),
            ("127.9.9.9", true),
            ("8.8.8.8", true),
            ("8.8.9.8", false),
            ("1.1.1.1", false),
            ("2606:4700::1111", true),
            ("2606:4700::1112", false),
            ("::1", true),
        ] {
            assert_eq!(own.contains(text.parse().expect(text)), expected, "{text}");
        }
        assert!(!OwnAddresses::parse("", "").contains([93, 184, 216, 34].into()));
    }
}
