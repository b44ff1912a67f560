//! A2 and A7: names that a multiplexer would rewrite, and typos that would switch protection off.

use rstest::rstest;

use crate::support::TestEnvironment;

const BODY: &str = "{ harness: command, harness_options: { argv: [cat] } }";

#[test]
fn a2_names_that_a_multiplexer_would_rewrite_are_refused() {
    let long = "a".repeat(300);
    for name in
        ["a.b", "a:b", "-q", "=x", "$1", long.as_str(), "日本", "tail ", "", " lead", "a/b", ".."]
    {
        let env =
            TestEnvironment::with_fleet(&format!("roles:\n  Good: {BODY}\n  {name:?}: {BODY}\n"));
        for verb in ["config", "up"] {
            let out = env.run([verb]).expect(1);
            assert!(out.stderr.contains("fleet.yaml:3:3"), "{name:?}: {}", out.stderr);
            assert!(out.stderr.contains("[A-Za-z0-9_-]"), "{name:?}: {}", out.stderr);
        }
        assert!(!env.path(".ours-fleet").exists(), "{name:?}: nothing was started");
        assert_eq!(env.run(["up", "--", name]).code, 64, "{name:?}");
    }
}

#[test]
fn a2_names_that_share_a_directory_are_refused() {
    let env = TestEnvironment::with_fleet(&format!("roles:\n  Rev: {BODY}\n  rev: {BODY}\n"));
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("Rev") && out.stderr.contains("rev"), "{}", out.stderr);
}

/// Each file has one typo; the answer names the line, the key and, where one is near, the right one.
#[rstest]
#[case("rolez:\n  A: {}\n", 1, "rolez", "roles")]
#[case(
    "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolaton: { network: deny }\n",
    5,
    "isolaton",
    "isolation"
)]
#[case(
    "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { netwrok: deny }\n",
    5,
    "netwrok",
    "network"
)]
#[case(
    "roles:\n  A:\n    harness: command\n    harness_options:\n      argv: [cat]\n      isolation: { network: deny }\n",
    6,
    "isolation",
    "argv"
)]
#[case(
    "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { network: deyn }\n",
    5,
    "deyn",
    "deny"
)]
#[case(
    "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { fs: { wirte: [/tmp/x] } }\n",
    5,
    "wirte",
    "write"
)]
#[case("defaults: { isolaton: {} }\nroles: {}\n", 1, "isolaton", "isolation")]
#[case("defaults: { isolation: { netwrok: deny } }\nroles: {}\n", 1, "netwrok", "network")]
#[case("42\n", 1, "mapping", "")]
#[case("[roles]\n", 1, "mapping", "")]
#[case("roles: {}\nroles: {}\n", 2, "roles", "")]
#[case("roles:\n  A: { harness: command, harness: command }\n", 2, "harness", "")]
#[case("roles: {}\nextra: null\n", 2, "extra", "roles")]
#[case("roles: {}\nextra: 1\n", 2, "extra", "roles")]
#[case("roles: {}\nextra: [1]\n", 2, "extra", "roles")]
#[case(
    "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation:\n",
    5,
    "isolation",
    ""
)]
#[case(
    "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { fs: { read: /x } }\n",
    5,
    "isolation.fs.read",
    ""
)]
#[case(
    "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { network: deny, fs: { write: ['/'] } }\n",
    5,
    "isolation.fs.write",
    ""
)]
fn a7_a_typo_does_not_switch_protection_off(
    #[case] yaml: &str,
    #[case] line: u32,
    #[case] key: &str,
    #[case] right: &str,
) {
    let env = TestEnvironment::with_fleet(yaml);
    for verb in ["config", "up"] {
        let out = env.run([verb]).expect(1);
        assert!(out.stderr.contains(&format!("fleet.yaml:{line}:")), "{}", out.stderr);
        assert!(out.stderr.contains(key), "{key}: {}", out.stderr);
        assert!(out.stderr.contains(right), "{right}: {}", out.stderr);
    }
    assert!(!env.path(".ours-fleet").exists(), "nothing was started");
}

#[test]
fn a7_a_typo_in_a_drop_in_names_that_file() {
    let env = TestEnvironment::with_fleet(&format!("roles:\n  A: {BODY}\n"));
    env.write("fleet.d/10-b.yaml", "rolez:\n  B: {}\n");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("fleet.d/10-b.yaml:1:"), "{}", out.stderr);
    env.write("fleet.d/10-b.yaml", "roles:\n  B:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { netwrok: deny }\n");
    let out = env.run(["config"]).expect(1);
    assert!(out.stderr.contains("fleet.d/10-b.yaml:5:"), "{}", out.stderr);
    assert!(out.stderr.contains("network"), "{}", out.stderr);
}

/// A directory that leads to a secret is refused, in each way a link can lead there.
#[test]
fn a7_links_to_secrets_and_the_fleet_file_itself_are_refused() {
    let env = TestEnvironment::new();
    std::fs::create_dir(env.path(".ssh")).expect("directory");
    std::fs::create_dir(env.path("work")).expect("directory");
    std::os::unix::fs::symlink(env.path(".ssh"), env.path("keys")).expect("link");
    std::os::unix::fs::symlink(env.path(".aws"), env.path("cloud")).expect("a dangling link");
    let home = env.home().display();
    let fleet = |isolation: &str, extra: &str| {
        format!(
            "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [cat] }}\n{extra}    isolation: {isolation}\n"
        )
    };
    for (isolation, extra, named) in [
        (format!("{{ network: deny, fs: {{ read: [{home}/keys] }} }}"), String::new(), ".ssh"),
        (format!("{{ network: deny, fs: {{ read: [{home}/cloud] }} }}"), String::new(), ".aws"),
        ("{ network: deny }".to_owned(), format!("    cwd: {home}\n"), "fleet.yaml"),
    ] {
        env.write("fleet.yaml", &fleet(&isolation, &extra));
        for verb in ["config", "up", "doctor"] {
            let out = env.run([verb]).expect(1);
            assert!(out.all().contains(named), "{isolation} {extra} {verb}: {}", out.all());
        }
        assert!(!env.path(".ours-fleet").exists(), "nothing was started");
    }
    // The control: the same shape on a harmless path is fine.
    env.write(
        "fleet.yaml",
        &fleet(&format!("{{ network: deny, fs: {{ read: [{home}/work] }} }}"), ""),
    );
    env.run(["config"]).expect(0);
}
