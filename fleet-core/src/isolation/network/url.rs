use super::host::{Host, split_port};
use super::rule::{HostPattern, HostRule};

/// The rule that lets a program reach the server of an `http` or `https` address, on its port only.
/// `None` for any other text, and for one that holds a user name: then what is meant is not certain.
pub fn rule_of_url(url: &str) -> Option<HostRule> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let default = match scheme.to_ascii_lowercase().as_str() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    if authority.contains(['@', '\\']) {
        return None;
    }
    let (host, port): (Host, Option<u16>) = split_port(authority).ok()?;
    Some(HostRule { pattern: HostPattern::Exact(host), port: port.or(Some(default)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_an_address() {
        for (url, rule) in [
            ("https://api.example.com", Some("api.example.com:443")),
            ("http://127.0.0.1:8080/v1?x=1", Some("127.0.0.1:8080")),
            ("HTTPS://[::1]/v1", Some("[::1]:443")),
            ("http://localhost:9", Some("127.0.0.1:9")),
            ("https://user@example.com", None),
            ("https://a.example\\@b.example", None),
            ("ftp://example.com", None),
            ("example.com", None),
            ("https://", None),
            ("https://a b", None),
        ] {
            assert_eq!(rule_of_url(url).map(|rule| rule.to_string()).as_deref(), rule, "{url}");
        }
    }
}
