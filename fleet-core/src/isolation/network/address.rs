use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

/// Where an address leads. Only a public one may be the answer for a listed name; any other must be
/// listed itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// The public internet.
    Public,
    /// This machine.
    Loopback,
    /// A private network: RFC 1918, unique local, or the shared space of carriers.
    Private,
    /// The local link; cloud metadata services live there.
    LinkLocal,
    /// This host, by an address that would be public.
    Own,
    /// No single host: multicast, broadcast, unspecified, reserved or for documentation.
    Reserved,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Own => "host's own",
            Self::Reserved => "reserved",
        })
    }
}

/// The class of an address by its number alone, so never [`AddressClass::Own`]. One that carries an IPv4
/// address (mapped, NAT64, 6to4) is of that one's class, since that is where a packet may end.
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(four) => classify_v4(four),
        IpAddr::V6(six) => carried(six).map_or_else(|| classify_v6(six), classify_v4),
    }
}

/// Network, prefix length, class: IANA's special-purpose registry for IPv4, first match.
const V4: &[(Ipv4Addr, u32, AddressClass)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, AddressClass::Reserved),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressClass::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressClass::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressClass::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressClass::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressClass::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressClass::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressClass::Reserved),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(224, 0, 0, 0), 3, AddressClass::Reserved),
];

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    let bits = address.to_bits();
    let hit = |&&(network, length, _): &&(Ipv4Addr, u32, AddressClass)| {
        (bits ^ network.to_bits()).leading_zeros() >= length
    };
    V4.iter().find(hit).map_or(AddressClass::Public, |(_, _, class)| *class)
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        [first, ..] if first & 0xfe00 == 0xfc00 => AddressClass::Private,
        [first, ..] if first & 0xffc0 == 0xfe80 => AddressClass::LinkLocal,
        // Formerly site-local.
        [first, ..] if first & 0xffc0 == 0xfec0 => AddressClass::Private,
        // Teredo, benchmarking, ORCHID and the other special blocks of 2001::/23; documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => AddressClass::Reserved,
        [0x3fff, second, ..] if second < 0x1000 => AddressClass::Reserved,
        // Only 2000::/3 is given out as global unicast. What a translator of an organisation's own
        // (64:ff9b:1::/48) does is its own matter.
        [first, ..] if first & 0xe000 == 0x2000 => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

/// The IPv4 address inside an IPv6 one, where a gateway may translate it.
pub(super) fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(four(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_internet_routes_is_public() {
        use AddressClass::{LinkLocal, Loopback, Private, Public, Reserved};
        for (text, class) in [
            ("8.8.8.8", Public),
            ("172.15.255.255", Public),
            ("172.32.0.1", Public),
            ("2606:4700::1", Public),
            ("127.0.0.1", Loopback),
            ("127.255.0.9", Loopback),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("64:ff9b::7f00:1", Loopback),
            ("2002:7f00:1::", Loopback),
            ("10.0.0.1", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("100.127.255.255", Private),
            ("100.128.0.0", Public),
            ("fd00::1", Private),
            ("fec0::1", Private),
            ("64:ff9b::a00:1", Private),
            ("169.254.169.254", LinkLocal),
            ("fe80::1", LinkLocal),
            ("::ffff:169.254.169.254", LinkLocal),
            ("0.0.0.0", Reserved),
            ("::", Reserved),
            ("::7f00:1", Reserved),
            ("224.0.0.1", Reserved),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Reserved),
            ("192.0.2.1", Reserved),
            ("198.19.0.1", Reserved),
            ("ff02::1", Reserved),
            ("2001::1", Reserved),
            ("2001:1ff:ffff::1", Reserved),
            ("2001:200::1", Public),
            ("3fff:fff:ffff::1", Reserved),
            ("3fff:1000::1", Public),
            ("2001:db8::1", Reserved),
            ("64:ff9b:1::1", Reserved),
            ("4000::1", Reserved),
        ] {
            assert_eq!(classify(text.parse().expect(text)), class, "{text}");
        }
    }

    #[test]
    fn each_class_has_a_word_for_people() {
        use AddressClass::{LinkLocal, Loopback, Own, Private, Public, Reserved};
        let words = [Public, Loopback, Private, LinkLocal, Own, Reserved].map(|it| it.to_string());
        assert_eq!(
            words,
            ["public", "loopback", "private", "link-local", "host's own", "reserved"]
        );
    }
}
