use core::net::IpAddr;

use super::host::HostName;

/// What a file such as `/etc/hosts` says of a name, in its order and without repetition. A line of another
/// form says nothing.
pub fn hosts_file_addresses(text: &str, name: &HostName) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let entry = line.split('#').next().unwrap_or_default();
        let mut words = entry.split_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
            continue;
        };
        let is_it =
            |word: &str| word.strip_suffix('.').unwrap_or(word).eq_ignore_ascii_case(name.as_str());
        if !found.contains(&address) && words.any(is_it) {
            found.push(address);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_name_is_found() {
        let text = "127.0.0.1 localhost\n\
            10.0.0.1\ta.example alias # b.example\n\
            #10.0.0.2 a.example\n\
            fe80::1%eth0 a.example\n\
            10.0.0.x a.example\n\
            2606:4700::1 other A.Example.\n\
            10.0.0.1 a.example\n\
            10.0.0.3 a.example.org xa.example\n";
        let find = |name: &str| -> Vec<String> {
            let name = HostName::parse(name).expect(name);
            hosts_file_addresses(text, &name).iter().map(ToString::to_string).collect()
        };
        assert_eq!(find("a.example"), ["10.0.0.1", "2606:4700::1"]);
        assert_eq!(find("alias"), ["10.0.0.1"]);
        assert!(find("b.example").is_empty() && find("example").is_empty());
    }
}
