//! What of `/etc` a curated view makes up, whatever the backend.

use std::fmt::Write as _;

use fleet_core::isolation::network::NetworkLayout;
use fleet_core::isolation::{IsolationPolicy, NetworkMode};

use super::system::HostView;

const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 sandbox\n";
/// Made up: the real one identifies the machine.
const MACHINE_ID: &str = "5a9db0c5a9db0c5a9db0c5a9db0c5a9d\n";

/// Path and content of each.
pub(crate) fn etc(
    host: &HostView,
    policy: &IsolationPolicy,
    layout: &NetworkLayout,
) -> [(&'static str, String); 5] {
    let HostView { uid, gid, .. } = host;
    // A name that would break the format is not worth a failed launch.
    let plain = host.user.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let user = if plain && !host.user.is_empty() { host.user.as_str() } else { "agent" };
    let home = policy.home.as_str().replace(':', "_");
    let mut passwd = String::new();
    let mut group = String::new();
    if *uid != 0 {
        passwd.push_str("root:x:0:0:root:/root:/usr/sbin/nologin\n");
    }
    if *gid != 0 {
        group.push_str("root:x:0:\n");
    }
    // Writing into a text cannot fail.
    let _ = writeln!(passwd, "{user}:x:{uid}:{gid}::{home}:/bin/sh");
    passwd.push_str("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
    let _ = writeln!(group, "{user}:x:{gid}:\nnogroup:x:65534:");
    let mut hosts = HOSTS.to_owned();
    for (address, name) in &layout.hosts {
        let _ = writeln!(hosts, "{address} {name}");
    }
    let resolver = match policy.network {
        NetworkMode::Allow => host.resolv_conf.clone().unwrap_or_default(),
        _ => "# no network\n".to_owned(),
    };
    [
        ("/etc/passwd", passwd),
        ("/etc/group", group),
        ("/etc/hosts", hosts),
        ("/etc/machine-id", MACHINE_ID.to_owned()),
        ("/etc/resolv.conf", resolver),
    ]
}
