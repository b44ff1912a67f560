//! Sockets of the host under `network: deny`; the control is the same sandbox with `allow`.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use fleet_core::isolation::NetworkMode;

use crate::support::{Launch, need_bwrap};

#[test]
fn w23_d2_loopback_and_abstract_sockets_are_unreachable_under_deny() {
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

/// Answers every connection with its greeting and what was said to it; counts them.
pub(super) struct Greeter {
    port: u16,
    met: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Greeter {
    pub(super) fn new(greeting: &'static str) -> Self {
        Self::at("127.0.0.1:0", greeting).expect("bind")
    }

    /// `None` where the address cannot be had.
    pub(super) fn at(address: &str, greeting: &'static str) -> Option<Self> {
        use std::io::{Read as _, Write as _};
        let listener = TcpListener::bind(address).ok()?;
        let port = listener.local_addr().expect("address").port();
        let met = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
        let count = std::sync::Arc::clone(&met);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let mut said = String::new();
                let _ = stream.read_to_string(&mut said);
                let _ = write!(stream, "{greeting}{said}");
            }
        });
        Some(Self { port, met })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn met(&self) -> usize {
        self.met.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[test]
fn only_what_is_listed_answers_and_the_record_says_so() {
    need_bwrap!();
    let launch = Launch::new();
    let (listed, other) = (Greeter::new("listed:"), Greeter::new("other:"));
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("bind");
    udp.set_nonblocking(true).expect("set");
    let udp_port = udp.local_addr().expect("address").port().to_string();
    let at = |host: &str, port: u16| format!("{host}:{port}");
    let (good, wrong) = (at("127.0.0.1", listed.port), at("127.0.0.1", other.port));
    let by_name = at("localhost", listed.port);
    let attempts: &[&[&str]] = &[
        &["talk", &good],
        &["talk", &by_name],
        &["talk", &wrong],
        &["send-udp", &udp_port],
        &["talk", "unlisted.example:80"],
        &["talk", "93.184.216.34:80"],
        &["read", "/proc/net/dev"],
        &["env", "HTTPS_PROXY"],
    ];
    let policy = launch.policy().reachable(&[&good]);
    let seen = launch.attempts(&policy, attempts);
    assert_eq!(seen[0], "ok listed:hello\\n", "{seen:?}");
    assert_eq!(seen[1], seen[0], "{seen:?}");
    assert!(seen[2].starts_with("error 111"), "{seen:?}");
    assert!(seen[4].starts_with("error"), "{seen:?}");
    assert!(seen[5].starts_with("error 101"), "{seen:?}");
    assert_eq!(seen[6].matches(": ").count(), 1, "only lo: {seen:?}");
    assert!(seen[7].starts_with("error"), "{seen:?}");
    assert_eq!((listed.met(), other.met()), (2, 0));
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram got out");
    let record =
        std::fs::read_to_string(launch.control.join("connections.jsonl")).expect("a record");
    // Each of the two begins and ends; which of them ends first is not given.
    assert_eq!(record.lines().count(), 4, "{record}");
    for line in record.lines() {
        let line: fleet_core::launch::ConnectionRecord = serde_json::from_str(line).expect("JSON");
        assert_eq!(line.target.map(|target| target.to_string()), Some(good.clone()));
        let bytes = if line.open { (0, 0) } else { (6, 13) };
        assert_eq!((line.sent, line.received), bytes);
    }

    let open = launch.attempts(&launch.policy().network(NetworkMode::Allow), attempts);
    assert_eq!(open[2], "ok other:hello\\n", "the probe proves nothing: {open:?}");
    assert!(udp.recv(&mut [0; 8]).is_ok(), "the probe proves nothing: {open:?}");
}

#[test]
fn the_proxy_leads_to_listed_targets_only() {
    need_bwrap!();
    let launch = Launch::new();
    let (listed, other) = (Greeter::new("listed:"), Greeter::new("other:"));
    let good = format!("127.0.0.1:{}", listed.port);
    let wrong = format!("127.0.0.1:{}", other.port);
    let below = format!("a.localhost:{}", other.port);
    let proxy = "127.0.76.1:3128";
    let attempts: &[&[&str]] = &[
        &["talk-by-proxy", proxy, &good],
        &["talk-by-proxy", proxy, &wrong],
        &["talk-by-proxy", proxy, &below],
        &["talk-by-proxy", proxy, "a.example:443"],
        &["talk-by-proxy", proxy, "a b"],
        &["talk", &wrong],
    ];
    // The rule below `localhost` is listed, but leads to an address that is not.
    let rule = format!("*.localhost:{}", other.port);
    let seen = launch.attempts(&launch.policy().reachable(&[&good, &rule]), attempts);
    assert_eq!(
        seen,
        ["ok listed:hello\\n", "error 403", &seen[2], "error 403", "error 400", &seen[5],]
    );
    assert!(["error 403", "error 502"].contains(&seen[2].as_str()), "{seen:?}");
    assert!(seen[5].starts_with("error 111"), "{seen:?}");
    assert_eq!((listed.met(), other.met()), (1, 0));
}

#[test]
fn what_is_observed_of_the_network_comes_from_the_kernel() {
    need_bwrap!();
    let launch = Launch::new();
    let listed = Greeter::new("listed:");
    let good = format!("127.0.0.1:{}", listed.port);
    let outcome = launch
        .run(&launch.policy().reachable(&[&good, "a.example", "*.b.example"]), &["sleep", "0.3"]);
    let rows = outcome.rows();
    let network = rows.iter().find(|(item, ..)| *item == fleet_core::isolation::Item::Network);
    let (_, level, evidence) = network.expect("a row");
    assert_eq!(*level, fleet_core::isolation::EnforcementLevel::Enforced, "{evidence}");
    assert!(evidence.contains("4 sockets of the launcher"), "{evidence}");
}
