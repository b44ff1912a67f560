//! What a rule of `allow_hosts` lets through.

use std::net::IpAddr;

use fleet_core::isolation::network::{
    AddressClass, Host, HostPattern, HostRule, OwnAddresses, Target, classify, decide, judge_answer,
};
use proptest::prelude::*;

/// Few labels and ports, so that rules and targets meet often.
fn names() -> impl Strategy<Value = String> {
    let label = proptest::sample::select(vec!["a", "b", "Example", "x-1"]);
    proptest::collection::vec(label, 1..4).prop_map(|labels| labels.join("."))
}

fn addresses() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        proptest::sample::select(vec![
            "127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "8.8.8.8",
            "::1",
            "fd00::1",
        ])
        .prop_map(|text| text.parse().expect("an address")),
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 4]>().prop_map(|four| std::net::Ipv4Addr::from(four).to_ipv6_mapped().into()),
        any::<[u8; 16]>().prop_map(IpAddr::from),
    ]
}

fn rules() -> impl Strategy<Value = HostRule> {
    let host = prop_oneof![
        3 => names(),
        2 => names().prop_map(|name| format!("*.{name}")),
        1 => addresses().prop_map(|address| match address {
            IpAddr::V4(four) => four.to_string(),
            IpAddr::V6(six) => format!("[{six}]"),
        }),
    ];
    let port = prop_oneof![Just(String::new()), Just(":443".to_owned()), Just(":22".to_owned())];
    (host, port).prop_map(|(host, port)| format!("{host}{port}").parse().expect("a rule"))
}

fn targets() -> impl Strategy<Value = Target> {
    let host = prop_oneof![
        3 => names().prop_map(|name| Host::parse(&name).expect("a name")),
        1 => addresses().prop_map(|address| Host::parse(&address.to_string()).expect("an address")),
    ];
    (host, prop_oneof![Just(80), Just(443), Just(22)])
        .prop_map(|(host, port)| Target { host, port })
}

proptest! {
    #[test]
    fn rules_and_targets_print_what_they_parse(rule in rules(), target in targets()) {
        prop_assert_eq!(rule.to_string().parse::<HostRule>(), Ok(rule));
        prop_assert_eq!(target.to_string().parse::<Target>(), Ok(target));
    }

    #[test]
    fn whatever_is_no_host_is_an_error_and_no_text_panics(text in "\\PC{0,24}|[a-z0-9.:*\\[\\]-]{0,24}") {
        if let Ok(rule) = text.parse::<HostRule>() {
            let shown = rule.to_string();
            prop_assert!(shown.bytes().all(|byte| byte.is_ascii_graphic()), "{shown}");
        }
    }

    #[test]
    fn covering_means_to_admit_all_that_the_other_admits(
        wide in rules(), narrow in rules(), target in targets(),
    ) {
        prop_assert!(wide.covers(&wide));
        if wide.covers(&narrow) && narrow.admits(&target) {
            prop_assert!(wide.admits(&target), "{wide} {narrow} {target}");
        }
        if wide.covers(&narrow) && narrow.covers(&wide) {
            // Two ways to write the same: only the exact default ports could differ, and do not.
            prop_assert_eq!(wide, narrow);
        }
    }

    #[test]
    fn covering_is_transitive(a in rules(), b in rules(), c in rules()) {
        if a.covers(&b) && b.covers(&c) {
            prop_assert!(a.covers(&c), "{a} {b} {c}");
        }
    }

    #[test]
    fn more_rules_never_allow_less(
        list in proptest::collection::vec(rules(), 0..5), more in rules(), target in targets(),
    ) {
        let before = decide(&list, &target).is_some();
        let mut longer = list;
        longer.push(more.clone());
        prop_assert_eq!(decide(&longer, &target).is_some(), before || more.admits(&target));
    }

    #[test]
    fn no_answer_leads_into_an_unlisted_private_network(
        list in proptest::collection::vec(rules(), 0..5), answer in addresses(),
        port in prop_oneof![Just(80u16), Just(443), Just(22)],
    ) {
        let listed = list.iter().any(|rule| match &rule.pattern {
            HostPattern::Exact(Host::Address(address)) => {
                let unwrap = |ip: IpAddr| match ip {
                    IpAddr::V6(six) => six.to_ipv4_mapped().map_or(ip, IpAddr::V4),
                    IpAddr::V4(_) => ip,
                };
                unwrap(*address) == unwrap(answer) && rule.ports().contains(&port)
            }
            _ => false,
        });
        let public = classify(answer) == AddressClass::Public;
        let others = OwnAddresses::default();
        prop_assert_eq!(judge_answer(&list, answer, port, &others).is_ok(), public || listed);
        // As the address of this host, it must be listed in any case.
        let own = match answer {
            IpAddr::V4(four) => OwnAddresses::parse(&format!("|-- {four}\n/32 host LOCAL\n"), ""),
            IpAddr::V6(six) => OwnAddresses::parse("", &format!("{:032x}", six.to_bits())),
        };
        prop_assert_eq!(judge_answer(&list, answer, port, &own).is_ok(), listed);
    }
}
