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

/// The launcher in a network namespace and with an `/etc/hosts` of its own. There the host has an address
/// of the public internet, which two names lead to, and so does a third name to an address that nobody has.
#[test]
fn a_listed_name_does_not_lead_to_the_host_itself_as_root() {
    need_bwrap!();
    crate::support::need_root!();
    let launch = Launch::new();
    let probe = crate::support::probe_program();
    let hosts = launch.base.join("hosts");
    let text = "93.184.216.34 own.example\n2606:4700::1111 six.example\n1.1.1.1 far.example\n";
    std::fs::write(&hosts, text).expect("write");
    let script = format!(
        "mount --bind {hosts} /etc/hosts && ip link set lo up && \
         ip addr add 93.184.216.34/32 dev lo && ip addr add 2606:4700::1111/128 dev lo && \
         {{ {probe} greet 8080 >/dev/null 2>&1 & greeter=$!; {probe} pane $0; code=$?; \
         kill $greeter; exit $code; }}"
    );
    let attempts = |policy: &crate::support::PolicyBuilder| -> Vec<String> {
        let names = ["own.example:8080", "six.example:8080", "far.example:8080"];
        let mut argv = vec![probe.to_string()];
        for name in names {
            argv.extend(["talk", name, "::"].map(str::to_owned));
        }
        argv.pop();
        // Writes the launch file; its own command is not used.
        drop(launch.launcher(launch.plan(policy, &argv), &argv));
        let outcome = std::process::Command::new("unshare")
            .args(["--mount", "--net", "sh", "-c", &script])
            .arg(launch.control.join("launch.json"))
            .stdin(std::process::Stdio::null())
            .output()
            .expect("unshare");
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert_eq!(said.lines().count(), 3, "{said}{}", String::from_utf8_lossy(&outcome.stderr));
        said.lines().map(str::to_owned).collect()
    };
    let names = ["own.example:8080", "six.example:8080", "far.example:8080"];
    let seen = attempts(&launch.policy().reachable(&names));
    assert!(seen.iter().all(|answer| answer.starts_with("error")), "{seen:?}");
    let record = crate::support::records(&launch.control);
    for (name, reason) in [
        (names[0], "the host's own address 93.184.216.34,"),
        (names[1], "the host's own address 2606:4700::1111,"),
        (names[2], "unreachable"),
    ] {
        let told = record.lines().any(|line| line.contains(name) && line.contains(reason));
        assert!(told, "{name} {reason}: {record}");
    }
    // The control: where the address is listed itself, the same name reaches the host.
    let listed = [&names[..], &["93.184.216.34:8080"]].concat();
    let seen = attempts(&launch.policy().reachable(&listed));
    assert_eq!(seen[0], "ok greetings", "{seen:?}");
    assert!(seen[1].starts_with("error"), "{seen:?}");
}
