//! The small grammars of the isolation block: numbers of processors, sizes, hosts, secrets.

use core::net::{IpAddr, Ipv6Addr};

use crate::isolation::Cpu;

/// `^(\d+(\.\d+)?|\.\d+)$`, more than 0; what lies below a thousandth is dropped.
pub(super) fn parse_cpu(text: &str) -> Option<Cpu> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None if text.is_empty() => return None,
        None => (text, ""),
    };
    if !(whole.bytes().chain(fraction.bytes())).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let thousandths: u64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    let millis = whole.checked_mul(1000)?.checked_add(thousandths)?;
    (1..=1_000_000_000).contains(&millis).then_some(Cpu { millis })
}

/// `^[1-9]\d*[KMGTPE]?$` in any case, in powers of 1024; what does not fit is the largest number.
pub(super) fn parse_memory(text: &str) -> Option<u64> {
    let last = text.bytes().last()?.to_ascii_uppercase();
    let (number, power) = match b"KMGTPE".iter().position(|&unit| unit == last) {
        Some(power) => (&text[..text.len() - 1], power + 1),
        None => (text, 0),
    };
    if number.starts_with('0') || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if number.is_empty() {
        return None;
    }
    let factor = (0..power).try_fold(1u64, |factor, _| factor.checked_mul(1024))?;
    Some(number.parse::<u64>().ok().and_then(|it| it.checked_mul(factor)).unwrap_or(u64::MAX))
}

/// A DNS name, `*.suffix` or IP literal (IPv6 in brackets where a port follows), optional `:port`.
pub(super) fn is_host(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() {
        return true;
    }
    let port_fits = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, port)| {
            address.parse::<Ipv6Addr>().is_ok()
                && (port.is_empty() || port.strip_prefix(':').is_some_and(port_fits))
        });
    }
    let host = match text.split_once(':') {
        Some((host, port)) if port_fits(port) => host,
        Some(_) => return false,
        None => text,
    };
    let name = host.strip_prefix("*.").unwrap_or(host);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    // A last label of digits would be an IP address with a mistake in it.
    let numeric =
        name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    let address = host == name && name.parse::<IpAddr>().is_ok();
    name.len() <= 253 && name.split('.').all(label) && (address || !numeric)
}

/// Splits at the one unescaped colon and undoes the escapes `\:` and `\\`. `None`: a second
/// unescaped colon, another escape, or an escape at the end.
pub(super) fn split_secret(text: &str) -> Option<(String, Option<String>)> {
    let (mut first, mut second) = (String::new(), None::<String>);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => characters.next().filter(|next| matches!(next, ':' | '\\'))?,
            ':' if second.is_some() => return None,
            ':' => {
                second = Some(String::new());
                continue;
            }
            other => other,
        };
        second.as_mut().unwrap_or(&mut first).push(character);
    }
    Some((first, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_positive_decimals() {
        for (text, millis) in
            [("1", 1000), ("1.5", 1500), (".5", 500), ("0.001", 1), ("2.0009", 2000)]
        {
            assert_eq!(parse_cpu(text), Some(Cpu { millis }), "{text}");
        }
        for text in
            ["", "0", "0.0001", "-1", "+1", "1.", ".", "1e3", "lots", "1.5.5", "99999999999"]
        {
            assert_eq!(parse_cpu(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_digits_and_a_unit() {
        for (text, bytes) in [
            ("1", 1),
            ("64M", 64 << 20),
            ("2g", 2 << 30),
            ("1E", 1 << 60),
            ("99999E", u64::MAX),
            ("99999999999999999999999", u64::MAX),
        ] {
            assert_eq!(parse_memory(text), Some(bytes), "{text}");
        }
        for text in ["", "0", "01M", "M", "banana", "1.5G", "-1G", "1GB", "1 G", "0x10"] {
            assert_eq!(parse_memory(text), None, "{text}");
        }
    }

    #[test]
    fn secrets_split_at_one_colon() {
        let both = |a: &str, b: &str| Some((a.to_owned(), Some(b.to_owned())));
        assert_eq!(split_secret("/a:/b"), both("/a", "/b"));
        assert_eq!(split_secret("/a"), Some(("/a".to_owned(), None)));
        assert_eq!(split_secret("/a\\:x:/b\\\\"), both("/a:x", "/b\\"));
        assert_eq!(split_secret("/a:"), both("/a", ""));
        for text in ["/a:/b:/c", "/a\\", "/a\\n:/b"] {
            assert_eq!(split_secret(text), None, "{text}");
        }
    }

    #[test]
    fn hosts_are_names_suffixes_and_addresses() {
        for good in [
            "a.example",
            "a",
            "*.b.example",
            "a.example:443",
            "127.0.0.1",
            "127.0.0.1:80",
            "::1",
            "[::1]:80",
            "[::1]",
            "x-1.example",
        ] {
            assert!(is_host(good), "{good}");
        }
        for bad in [
            "",
            "*",
            "a..b",
            "-a.b",
            "a_b",
            "http://a",
            "a/b",
            "a:0",
            "a:99999",
            "a:",
            "*.*.a",
            "1.2.3",
            "300.1.1.1",
            "[::1",
            "[a]:1",
            "a b",
            "日本",
        ] {
            assert!(!is_host(bad), "{bad}");
        }
    }
}
