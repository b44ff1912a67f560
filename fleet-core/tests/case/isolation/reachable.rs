//! What a mode of the network lets through (01 §2.8).

use fleet_core::isolation::NetworkMode;
use rstest::rstest;

use super::accepted;

#[rstest]
#[case(NetworkMode::Broker, &["model.example:443", "a.example:443", "b.example:22"])]
#[case(NetworkMode::Allowlist, &["a.example:443", "model.example:443", "b.example:22"])]
#[case(NetworkMode::Deny, &[])]
#[case(NetworkMode::Allow, &[])]
fn each_listed_host_once_and_the_models_with_broker_only(
    #[case] network: NetworkMode,
    #[case] expected: &[&str],
) {
    let policy = accepted(|scene| {
        scene.block.network = Some(network);
        scene.endpoints = vec!["model.example:443".parse().expect("a rule")];
        scene.block.allow_hosts =
            ["a.example:443", "model.example:443", "b.example:22", "a.example:443"]
                .map(|rule| rule.parse().expect("a rule"))
                .to_vec();
    });
    let found: Vec<String> = policy.reachable.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}
