//! Ways out of the network of a role.

use super::super::probe::{MODES, Mode, Probe, probe, test};
use super::super::stage::Stage;
use super::got;

const SERVED: &[Mode] = &[Mode::Broker, Mode::Allowlist, Mode::Allow];
const EVERYWHERE: &[Mode] = &MODES;

/// Somebody who is not listed answered.
fn other(answer: &str, _: &Stage) -> bool {
    answer.contains("other:")
}

fn listed(answer: &str, _: &Stage) -> bool {
    answer.contains("listed:")
}

pub(super) const ALL: &[Probe] = &[
    probe("30", "an abstract socket of the host", "ECONNREFUSED", &["connect-abstract", "ofe-s-{id}"], got)
        .allow(),
    probe(
        "31",
        "sockets of the host in `/tmp` and in the control directory",
        "ENOENT",
        &["connect-any", "{base}/control/tmux.sock", "/tmp/ofe-{id}.sock"],
        got,
    ),
    probe("36", "the declared port", "ECONNREFUSED", &["say", "127.0.0.1:{listed}"], listed).works(SERVED),
    probe("37", "another port of the host", "ECONNREFUSED", &["say", "127.0.0.1:{other}"], other).allow(),
    probe("38", "a datagram to the host", "not received", &["send-to", "127.0.0.1:{udp}", "out-{id}"], |_, stage| {
        stage.received(&stage.fill_in("out-{id}", ""))
    })
    .allow(),
    probe("38b", "a datagram to the host by IPv6", "not received", &["send-to", "[::1]:{udp6}", "six-{id}"], |_, stage| {
        stage.received(&stage.fill_in("six-{id}", ""))
    })
    .lack("host")
    .allow(),
    probe("39", "an address on the internet", "ENETUNREACH", &["route", "192.0.2.1:9"], got).lack("host").allow(),
    probe("40", "the declared port by name", "refused", &["say", "localhost:{listed}"], listed).works(SERVED),
    probe("40b", "another port by the declared name", "ECONNREFUSED", &["say", "localhost:{other}"], other).allow(),
    probe("40c", "the declared port of another host", "ECONNREFUSED", &["say", "127.0.0.2:{listed}"], other).allow(),
    probe(
        "41",
        "a listed target through the proxy",
        "no proxy",
        &["proxy", "{proxy}", "CONNECT 127.0.0.1:{listed} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        listed,
    )
    .works(&[Mode::Allowlist]),
    probe(
        "41b",
        "another target through the proxy",
        "403/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT 127.0.0.1:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe("42", "interfaces of the host", "only lo", &["read", "/proc/net/dev"], |a, _| a.matches(": ").count() > 1)
        .lack("host")
        .allow(),
    test("52", "the holder of the listeners killed", "kills::nothing_is_left_after_a_kill_at_any_moment"),
    probe("o49", "the host's loopback by IPv6", "ECONNREFUSED", &["say", "[::1]:{six}"], other).lack("host").allow(),
    probe("o50", "another port by an IPv4-mapped address", "ECONNREFUSED", &["say", "[::ffff:127.0.0.1]:{other}"], other)
        .allow(),
    probe("o51", "another port by 0.0.0.0", "ECONNREFUSED", &["say", "0.0.0.0:{other}"], other).allow(),
    probe("o52", "a datagram to an abstract socket of the host", "ECONNREFUSED", &["send-abstract", "ofe-d-{id}", "abs-{id}"], |_, stage| {
        stage.received(&stage.fill_in("abs-{id}", ""))
    })
    .allow(),
    probe("o53", "interfaces by netlink", "only lo", &["interfaces"], got).lack("host").allow(),
    probe("o54", "an IPv6 address on the internet", "ENETUNREACH", &["route", "[2001:db8::1]:9"], got)
        .lack("host")
        .allow(),
    probe("o55", "the metadata service of a cloud", "ENETUNREACH", &["route", "169.254.169.254:80"], got)
        .lack("host")
        .allow(),
    probe("o56", "a socket of the host in the working directory", "", &["connect-any", "{cwd}/socket"], got)
        .always(&[(EVERYWHERE, "granted")]),
    probe(
        "o57",
        "proxy: an allowed name in front of another",
        "403/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT a.allowed.example.evil.example:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o58",
        "proxy: an allowed name with an encoded zero behind it",
        "400/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT a.allowed.example%00.evil:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o59",
        "proxy: an allowed name with a real zero behind it",
        "400/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT a.allowed.example\\0.evil:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o60",
        "proxy: an allowed suffix without its dot",
        "403/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT evilallowed.example:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o61",
        "proxy: a trailing dot and capitals",
        "403/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT LOCALHOST.:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o62",
        "proxy: an address as one number",
        "400/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT 2130706433:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o63",
        "proxy: an IPv4-mapped address",
        "403/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT [::ffff:127.0.0.1]:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o64",
        "proxy: a listed target as user name of another",
        "400/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT 127.0.0.1:{listed}@127.0.0.1:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o65",
        "proxy: a header of 100 KB",
        "no answer",
        &[
            "proxy",
            "{proxy}",
            "CONNECT 127.0.0.1:{other} HTTP/1.1\\r\\nX: \\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\x\\r\\n\\r\\nhello\\n",
        ],
        other,
    ),
    probe(
        "o66",
        "proxy: a plain request instead of CONNECT",
        "400/ECONNREFUSED",
        &["proxy", "{proxy}", "GET http://127.0.0.1:{other}/ HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o67",
        "proxy: a Host header that differs",
        "403/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT 127.0.0.1:{other} HTTP/1.1\\r\\nHost: a.allowed.example\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o68",
        "proxy: a line that ends with a line feed only",
        "400/ECONNREFUSED",
        &["proxy", "{proxy}", "CONNECT 127.0.0.1:{listed}\\nX: 127.0.0.1:{other} HTTP/1.1\\r\\n\\r\\nhello\\n"],
        other,
    ),
    probe(
        "o69",
        "proxy: a second request behind the first",
        "goes to the first",
        &[
            "proxy",
            "{proxy}",
            "CONNECT 127.0.0.1:{listed} HTTP/1.1\\r\\n\\r\\nCONNECT 127.0.0.1:{other} HTTP/1.1\\r\\n\\r\\nhello\\n",
        ],
        other,
    )
    .no_control("proxy"),
];
