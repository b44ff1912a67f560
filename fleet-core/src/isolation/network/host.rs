use core::net::{IpAddr, Ipv4Addr};
use std::fmt;

/// A DNS name: ASCII labels in lower case, without a trailing dot. Never an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text names no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The text, or what stands before the port, is empty.
    #[error("the name is empty")]
    Empty,
    /// A name with letters of other scripts; two of them can look the same.
    #[error("the name is not ASCII: write its `xn--` form")]
    NotAscii,
    /// A label is empty, too long, or holds another character.
    #[error("a label must be 1 to 63 letters, digits or `-`, and not begin or end with `-`")]
    Label,
    /// The whole name is longer than DNS allows.
    #[error("the name is longer than 253 characters")]
    TooLong,
    /// The last label is a number, so the text is an address with a mistake in it.
    #[error("it looks like an IP address but is none")]
    NotAnAddress,
    /// The port is missing, 0 or too large.
    #[error("the port must be 1 to 65535")]
    Port,
    /// An IPv6 address with a port, without brackets or with half of them.
    #[error("write an IPv6 address with a port as `[address]:port`")]
    Brackets,
}

/// What a connection asks for: a name or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// To be resolved, after the decision.
    Name(HostName),
    /// An address, the IPv4 form where IPv6 only wraps one.
    Address(IpAddr),
}

impl HostName {
    /// Accepts one trailing dot and any case.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(HostError::Empty);
        }
        if !name.is_ascii() {
            return Err(HostError::NotAscii);
        }
        if name.len() > 253 {
            return Err(HostError::TooLong);
        }
        if !name.split('.').all(is_label) {
            return Err(HostError::Label);
        }
        // Resolvers take `1.2.3` and `0x7f.1` for addresses.
        let last = name.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return Err(HostError::NotAnAddress);
        }
        Ok(Self(name.to_ascii_lowercase()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name lies below `suffix`; a name does not lie below itself.
    pub fn is_below(&self, suffix: &HostName) -> bool {
        self.0.strip_suffix(suffix.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// What a C library's resolver may read as a number: decimal, or hexadecimal after `0x`.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"))
        && label.bytes().skip(2).all(|byte| byte.is_ascii_hexdigit());
    hexadecimal || label.bytes().all(|byte| byte.is_ascii_digit())
}

impl Host {
    /// A name or an address without a port; an IPv6 address without brackets. `localhost` is
    /// 127.0.0.1: it needs no resolver, and none may say otherwise.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(plain(address)));
        }
        Ok(match HostName::parse(text)? {
            name if name.as_str() == "localhost" => Self::Address(Ipv4Addr::LOCALHOST.into()),
            name => Self::Name(name),
        })
    }
}

/// The IPv4 address that an IPv6 one only wraps: a rule for one of them is a rule for the other.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// A port in digits.
pub(super) fn parse_port(text: &str) -> Result<u16, HostError> {
    match text.parse::<u16>() {
        Ok(number) if number > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ => Err(HostError::Port),
    }
}

/// Splits `host[:port]`; an IPv6 address with a port stands in brackets.
pub(super) fn split_port(text: &str) -> Result<(Host, Option<u16>), HostError> {
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or(HostError::Brackets)?;
        let address = address.parse().map_err(|_| HostError::NotAnAddress)?;
        let number = match after {
            "" => None,
            _ => Some(parse_port(after.strip_prefix(':').ok_or(HostError::Brackets)?)?),
        };
        return Ok((Host::Address(plain(IpAddr::V6(address))), number));
    }
    match text.split_once(':') {
        None => Ok((Host::parse(text)?, None)),
        Some((_, rest)) if rest.contains(':') => match Host::parse(text)? {
            address @ Host::Address(_) => Ok((address, None)),
            Host::Name(_) => Err(HostError::Brackets),
        },
        Some((host, port)) => Ok((Host::parse(host)?, Some(parse_port(port)?))),
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_and_numbers_are_no_names() {
        let name = |text: &str| HostName::parse(text).map(|name| name.to_string());
        assert_eq!(name("API.Example.COM."), Ok("api.example.com".to_owned()));
        assert_eq!(name("xn--fiqs8s"), Ok("xn--fiqs8s".to_owned()));
        for (text, error) in [
            ("", HostError::Empty),
            (".", HostError::Empty),
            ("a..b", HostError::Label),
            ("a.b..", HostError::Label),
            ("-a.b", HostError::Label),
            ("a_b", HostError::Label),
            ("a b", HostError::Label),
            ("a\0b", HostError::Label),
            ("a\nb", HostError::Label),
            ("日本", HostError::NotAscii),
            ("1.2.3", HostError::NotAnAddress),
            ("0x7f.1", HostError::NotAnAddress),
            ("a.0X7F", HostError::NotAnAddress),
            ("2130706433", HostError::NotAnAddress),
        ] {
            assert_eq!(name(text), Err(error), "{text:?}");
        }
        assert_eq!(name(&"a".repeat(64)), Err(HostError::Label));
        assert_eq!(name(&"ab.".repeat(85)), Err(HostError::TooLong));
        let longest = format!("{}a", "ab.".repeat(84));
        assert_eq!(name(&longest), Ok(longest));
    }

    #[test]
    fn below_is_by_whole_labels() {
        let name = |text| HostName::parse(text).expect(text);
        assert!(name("a.b.example").is_below(&name("b.example")));
        assert!(!name("b.example").is_below(&name("b.example")));
        assert!(!name("ab.example").is_below(&name("b.example")));
    }

    #[test]
    fn ports_and_brackets() {
        let split = |text: &str| split_port(text).map(|(host, port)| (host.to_string(), port));
        assert_eq!(split("a.b:443"), Ok(("a.b".to_owned(), Some(443))));
        assert_eq!(split("::1"), Ok(("::1".to_owned(), None)));
        assert_eq!(split("[::1]:80"), Ok(("::1".to_owned(), Some(80))));
        assert_eq!(split("[::1]"), Ok(("::1".to_owned(), None)));
        assert_eq!(split("::ffff:10.0.0.1"), Ok(("10.0.0.1".to_owned(), None)));
        for (text, error) in [
            ("a:0", HostError::Port),
            ("a:", HostError::Port),
            ("a:99999", HostError::Port),
            ("a:+1", HostError::Port),
            (":80", HostError::Empty),
            ("[::1", HostError::Brackets),
            ("[::1]80", HostError::Brackets),
            ("[a]:1", HostError::NotAnAddress),
            ("a:b:c", HostError::Label),
            ("fe80::1%eth0", HostError::Label),
        ] {
            assert_eq!(split(text), Err(error), "{text:?}");
        }
    }
}
