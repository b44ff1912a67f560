//! 07 B: the isolation block.

use fleet_core::config::{Role, Unavailable};
use fleet_core::isolation::{Backend, NetworkMode, OnUnavailable};

use crate::fleet::{Files, base, names};

fn block(text: &str) -> Files {
    base(format!("roles:\n  A:\n    isolation: {text}\n"))
}

fn refusals(role: &Role) -> Vec<&Unavailable> {
    role.unavailable.iter().filter(|it| it.refuses && it.path.starts_with("isolation")).collect()
}

#[test]
fn b1_unknown_keys_name_their_level() {
    names(&block("{netwrok: deny}").only(), &["isolation.netwrok: ", "did you mean `network`?"]);
    names(&block("{fs: {reed: []}}").only(), &["isolation.fs.reed: ", "allowed: read, write"]);
    names(
        &block("{resources: {memory: 1G}}").only(),
        &["isolation.resources.memory: ", "allowed: cpu, mem, pids"],
    );
    names(&block("{secrets: [{frm: /a, from: /a, to: /b}]}").only(), &["isolation.secrets[0].frm"]);
}

#[test]
fn b2_unknown_words_list_the_known_ones() {
    for (text, parts) in [
        (
            "{backend: docker}",
            ["isolation.backend", "`docker`", "auto, bubblewrap, podman, landlock, none"],
        ),
        ("{network: none}", ["isolation.network", "`none`", "broker, deny, allow, allowlist"]),
        ("{on_unavailable: ignore}", ["isolation.on_unavailable", "`ignore`", "warn, strict"]),
        ("{system: all}", ["isolation.system", "`all`", "curated, full"]),
    ] {
        names(&block(text).only(), &parts);
    }
}

#[test]
fn b3_three_problems_come_in_one_report() {
    let lines = block("{backend: docker, network: none, fs: {read: /x}}").refused();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("role 'A': isolation.")));
}

#[test]
fn b4_the_block_is_a_mapping() {
    for value in ["false", "true", "none", "[]", "5"] {
        names(&block(value).only(), &["role 'A': isolation: must be a mapping"]);
    }
}

#[test]
fn b5_paths_come_in_a_list() {
    for key in ["read", "write"] {
        let line = block(&format!("{{fs: {{{key}: /x}}}}")).only();
        names(&line, &[&format!("isolation.fs.{key}: must be a list"), "`/x`", "brackets"]);
    }
    for text in ["{secrets: /x}", "{protect: x}", "{network: broker, allow_hosts: a.b}"] {
        names(&block(text).only(), &["must be a list"]);
    }
}

#[test]
fn b6_a_path_is_a_text() {
    for (value, index) in [("[1]", 0), ("[/a, null]", 1), ("[/a, [/b]]", 1), ("[/a, {b: c}]", 1)] {
        let line = block(&format!("{{fs: {{read: {value}}}}}")).only();
        names(&line, &["role 'A': ", &format!("isolation.fs.read[{index}]: ")]);
    }
    names(&block("{fs: {write: [/a, b]}}").only(), &["isolation.fs.write[1]: ", "relative"]);
    names(&block("{fs: {write: [/a/../b]}}").only(), &["isolation.fs.write[0]: ", "`..`"]);
}

#[test]
fn b7_caps_are_numbers() {
    let lines = block("{resources: {mem: banana, cpu: lots, pids: -4}}").refused();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let all = lines.join("\n");
    names(&all, &["isolation.resources.cpu: must be a number of processors", "`lots`"]);
    names(&all, &["isolation.resources.mem: ", "`banana`", "K, M, G, T, P, E", "64M"]);
    names(&all, &["isolation.resources.pids: ", "`-4`", "16 to"]);
    names(&block("{resources: {mem: 63M}}").only(), &["isolation.resources.mem: ", "64M or more"]);
    names(&block("{resources: {pids: 15}}").only(), &["isolation.resources.pids: "]);
    let role = block("{resources: {mem: 2G, cpu: 1.5, pids: 256}}").role("A");
    let caps = role.isolation.expect("a block").resources;
    assert_eq!(caps.memory.expect("mem").0, 2 << 30);
    assert_eq!(caps.cpu.expect("cpu").millis, 1500);
    assert_eq!(caps.pids, Some(256));
}

#[test]
fn b8_the_default_block_is_a_sandbox_with_a_broker() {
    let role = block("{}").role("A");
    let isolation = role.isolation.as_ref().expect("a block");
    assert_eq!(isolation.backend, Backend::Auto);
    assert_eq!(isolation.network(), NetworkMode::Broker);
    assert_eq!(isolation.on_unavailable, None);
    assert!(refusals(&role).is_empty(), "{:?}", role.unavailable);
}

#[test]
fn b8_no_sandbox_on_purpose_is_not_refused() {
    for text in [
        "{backend: none}",
        "{network: deny}",
        "{network: allow, fs: {read: [/x]}}",
        "{network: deny, resources: {mem: 1G, cpu: 1, pids: 64}}",
        "{network: deny, nested_sandbox: true}",
    ] {
        let role = block(text).role("A");
        assert!(refusals(&role).is_empty(), "{text}: {:?}", role.unavailable);
    }
    let warnings = block("{backend: none, network: deny, fs: {}}").warnings();
    names(&warnings[0], &["role 'A': isolation: ", "`network`, `fs`", "no effect"]);
    // Caps hold from outside, with or without a sandbox.
    assert!(block("{backend: none, resources: {mem: 1G}}").warnings().is_empty());
}

#[test]
fn landlock_takes_the_networks_that_it_can_enforce_and_names_them_for_the_others() {
    for network in ["deny", "allow"] {
        let role = block(&format!("{{backend: landlock, network: {network}}}")).role("A");
        assert!(refusals(&role).is_empty(), "{network}: {:?}", role.unavailable);
    }
    for (rest, key) in [
        (", network: broker", "isolation.network"),
        (", network: allowlist, allow_hosts: [a.example]", "isolation.network"),
        // The default is `broker`.
        ("", "isolation.backend"),
    ] {
        let error = block(&format!("{{backend: landlock{rest}}}")).only();
        names(&error, &[key, "tells ports apart, not hosts", "deny, allow", "bubblewrap"]);
    }
}

#[test]
fn b9_what_this_build_lacks_says_what_to_write() {
    let digest = "0".repeat(64);
    let role =
        block(&format!("{{backend: podman, network: deny, image: 'x@sha256:{digest}'}}")).role("A");
    let refusals = refusals(&role);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert_eq!(refusals[0].path, "isolation.image");
    names(&refusals[0].instead, &["leave `image` out"]);
    assert_eq!(refusals[0].place.as_ref().map(|place| place.line), Some(3));
}

#[test]
fn b9_podman_is_a_backend_where_it_is_named() {
    let role = block("{backend: podman, network: deny}").role("A");
    assert!(refusals(&role).is_empty(), "{:?}", role.unavailable);
}

#[test]
fn b10_the_block_of_the_role_replaces_the_default_whole() {
    let fleet = base(
        "defaults:\n  isolation: {network: deny, on_unavailable: strict, fs: {read: [/d]}}\nroles:\n  \
         A: {}\n  B: {isolation: {network: allow}}\n",
    )
    .fleet();
    let block = |name: &str| fleet.roles[name].isolation.clone().expect("a block");
    assert_eq!(block("A").network, Some(NetworkMode::Deny));
    assert_eq!(block("A").on_unavailable, Some(OnUnavailable::Strict));
    assert_eq!(block("A").fs_read.len(), 1);
    assert_eq!(block("B").network, Some(NetworkMode::Allow));
    assert_eq!(block("B").on_unavailable, None);
    assert!(block("B").fs_read.is_empty());
}

#[test]
fn secrets_take_three_forms_and_are_never_shown() {
    let role = block(
        "{network: deny, secrets: ['/h/a:/run/secrets/a', /h/b, {from: ~/c, to: /run/secrets/c}]}",
    )
    .role("A");
    let secrets = role.isolation.expect("a block").secrets;
    let pairs: Vec<(&str, &str)> =
        secrets.iter().map(|it| (it.from.as_str(), it.to.as_str())).collect();
    assert_eq!(
        pairs,
        [("/h/a", "/run/secrets/a"), ("/h/b", "/h/b"), ("/home/op/c", "/run/secrets/c")]
    );
    for secret in [
        "'/s3cr3t:/b:/c'",
        "'s3cr3t:/b'",
        "'/s3cr3t:b'",
        "':/s3cr3t'",
        "'/s3cr3t:'",
        "''",
        "5",
        "{from: s3cr3t, to: /b}",
        "{from: /s3cr3t}",
        "{from: /s3cr3t, to: 5}",
        "[s3cr3t]",
        "'/s3cr3t/..:/b'",
        "'/s3cr3t\\n:/b'",
    ] {
        let line = block(&format!("{{secrets: [/ok, {secret}]}}")).only();
        names(&line, &["role 'A': isolation.secrets[1]"]);
        assert!(!line.contains("s3cr3t"), "{line}");
    }
}

#[test]
fn hosts_images_and_overlays_follow_their_grammar() {
    for (text, parts) in [
        ("{network: deny, allow_hosts: [a.b]}", ["allow_hosts", "`network: deny`"]),
        ("{network: allowlist}", ["isolation.network", "allow_hosts"]),
        ("{network: allowlist, allow_hosts: ['http://a']}", ["allow_hosts[0]", "is not a host"]),
        ("{network: allowlist, allow_hosts: [a.b, a.b]}", ["allow_hosts[1]", "twice"]),
        ("{backend: podman, image: x}", ["isolation.image", "sha256"]),
        ("{protect: [/x]}", ["isolation.protect[0]", "below `cwd`"]),
        ("{protect: [a/../b]}", ["isolation.protect[0]", "below `cwd`"]),
        ("{protect: ['']}", ["isolation.protect[0]", "below `cwd`"]),
        ("{nested_sandbox: yes}", ["isolation.nested_sandbox", "true or false"]),
    ] {
        names(&block(text).only(), &parts);
    }
    let digest = "0".repeat(64);
    names(
        &block(&format!("{{image: 'x@sha256:{digest}'}}")).only(),
        &["isolation.image", "podman"],
    );
    let role = block("{network: deny, protect: [.git/hooks, .env]}").role("A");
    assert_eq!(role.isolation.expect("a block").protect.expect("written"), [".git/hooks", ".env"]);
}
