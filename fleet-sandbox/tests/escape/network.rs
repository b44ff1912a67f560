//! Sockets of the host under `network: deny`; the control is the same sandbox with `allow`.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use fleet_core::isolation::NetworkMode;

use crate::support::{Launch, need_bwrap};

#[test]
fn loopback_and_abstract_sockets_are_unreachable_under_deny() {
    need_bwrap!();
    let launch = Launch::new();
    let tcp = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = tcp.local_addr().expect("address").port().to_string();
    let name = format!("fleet-sandbox-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("name");
    let _abstract = UnixListener::bind_addr(&address).expect("bind");
    let attempts: &[&[&str]] =
        &[&["connect-tcp", &port], &["connect-abstract", &name], &["read", "/proc/net/dev"]];

    let denied = launch.attempts(&launch.policy(), attempts);
    assert!(denied[0].starts_with("error 111") || denied[0].starts_with("error 101"), "{denied:?}");
    assert!(denied[1].starts_with("error 111"), "{denied:?}");
    assert_eq!(denied[2].matches(": ").count(), 1, "only lo: {denied:?}");
    let allowed = launch.attempts(&launch.policy().network(NetworkMode::Allow), attempts);
    assert_eq!(&allowed[..2], ["ok ", "ok "], "the probe proves nothing");
}
