//! What a name means on this host, and which addresses are its own.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;

use fleet_core::isolation::network::{HostName, OwnAddresses, hosts_file_addresses};
use tokio::net::lookup_host;

/// No file that is read here is longer.
const LIMIT: u64 = 32 * 1024 * 1024;

/// The addresses of a name: those of `/etc/hosts`, else what the resolver of the host says.
pub(super) async fn name(name: &HostName, port: u16) -> io::Result<Vec<SocketAddr>> {
    // The resolver gets the name with a dot at the end, so that it tries no search domain; but then it
    // does not find it in this file, where it stands without.
    let file = read("/etc/hosts").unwrap_or_default();
    let listed = hosts_file_addresses(&file, name);
    if !listed.is_empty() {
        return Ok(listed.into_iter().map(|address| SocketAddr::new(address, port)).collect());
    }
    let absolute = format!("{}.", name.as_str());
    Ok(lookup_host((absolute.as_str(), port)).await?.collect())
}

/// What the kernel says at this moment.
pub(super) fn own_addresses() -> io::Result<OwnAddresses> {
    let fib_trie = read("/proc/self/net/fib_trie")?;
    let if_inet6 = match read("/proc/self/net/if_inet6") {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    Ok(OwnAddresses::parse(&fib_trie, &if_inet6))
}

fn read(path: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LIMIT).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(LIMIT) >= LIMIT {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Names and addresses are ASCII; a line with anything else says nothing.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
