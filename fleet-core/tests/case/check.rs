//! `check`: the verdict by the text alone (01 §1.17).

use fleet_core::config::YamlMode;
use fleet_core::harness::Harnesses;
use fleet_core::policy::check::{Checked, Level, check, nominal_sources};
use rstest::rstest;

fn judged(text: &str) -> Checked {
    let sources = nominal_sources(Some(text.as_bytes().to_vec()), Vec::new());
    check(&sources, YamlMode::Compat, &Harnesses::built_in())
}

fn role(text: &str) -> Checked {
    judged(&format!("roles:\n  A: {text}\n"))
}

fn lines(checked: &Checked, level: Level) -> Vec<String> {
    let of_level = checked.findings.iter().filter(|it| it.level == level);
    of_level.map(|it| format!("{} {}: {}", it.rule, it.path, it.message)).collect()
}

#[rstest]
#[case::key("~/.ssh/id_ed25519")]
#[case::home("~")]
#[case::other_home("/home/alice/.ssh")]
#[case::whole_other_home("/home/alice")]
#[case::mac_home("/Users/bob/.aws")]
#[case::root("/root/.claude")]
#[case::all_homes("/Users")]
#[case::homes("/home")]
#[case::everything("/")]
#[case::system("/etc/shadow")]
#[case::fleet_file("~/fleet.yaml")]
#[case::state("~/.ours-fleet/agents/B")]
fn forbidden_paths_are_judged_by_their_text(#[case] path: &str) {
    let checked = role(&format!("{{isolation: {{network: deny, fs: {{read: ['{path}']}}}}}}"));
    let found = lines(&checked, Level::Error);
    assert!(found.iter().any(|it| it.contains("isolation.fs.read[0]")), "{path}: {found:?}");
    assert!(!checked.is_good());
    let place = checked.findings[0].place.as_ref().expect("a place");
    assert_eq!(place.line, 2);
}

#[rstest]
#[case::own("~/project")]
#[case::other("/home/alice/project")]
#[case::root("/root/project")]
#[case::elsewhere("/srv/project")]
fn a_project_of_any_account_may_be_a_working_directory(#[case] cwd: &str) {
    let checked = role(&format!("{{cwd: '{cwd}', isolation: {{network: deny}}}}"));
    assert_eq!(lines(&checked, Level::Error), [""; 0], "{cwd}");
}

#[test]
fn a_file_that_names_very_many_accounts_is_refused_at_once() {
    let paths = crate::fleet::lines(0..20_000, |n| format!("/home/u{n}/x, "));
    let checked = role(&format!("{{isolation: {{network: deny, fs: {{read: [{paths}]}}}}}}"));
    let found = lines(&checked, Level::Error);
    assert!(found[0].starts_with("config/limit isolation.fs.read["), "{}", found[0]);
}

#[test]
fn a_briefing_is_judged_by_its_name_like_a_mount() {
    for (file, why) in [
        ("~/.ssh/id_ed25519", "keys and credentials"),
        ("/home/else/.aws/credentials", "keys and credentials"),
        ("/root/.ssh/id_rsa", "keys and credentials"),
        ("~/.ours-fleet/handout/B/briefing.md", "state of the fleet"),
    ] {
        for isolation in ["", "isolation: {network: deny}, "] {
            let checked = role(&format!("{{{isolation}briefing_file: {file}}}"));
            let found = lines(&checked, Level::Error);
            assert!(
                found.iter().any(|it| it.contains(" briefing_file: ") && it.contains(why)),
                "{file}: {found:?}"
            );
        }
    }
    assert!(role("{isolation: {network: deny}, briefing_file: ~/team/brief.md}").is_good());
}

#[test]
fn what_only_a_machine_can_tell_is_not_asked() {
    let checked = role(
        "{harness: command, harness_options: {argv: [no-such-program]}, cwd: /no/such/directory, \
         briefing_file: /no/such/briefing.md, isolation: {network: deny, fs: {read: [/no/data]}, \
         secrets: ['/no/key:/run/secrets/key']}}",
    );
    assert_eq!(checked.findings, []);
    assert!(checked.is_good());
}

#[test]
fn what_this_build_cannot_serve_closes_the_gate_as_it_stops_a_start() {
    let image = format!("x@sha256:{}", "0".repeat(64));
    let checked =
        role(&format!("{{isolation: {{network: deny, backend: podman, image: '{image}'}}}}"));
    let found = lines(&checked, Level::Error);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("config/not-built isolation.image: "), "{found:?}");
    let note = judged("tasks: {}\nroles:\n  A: {isolation: {network: deny}}\n");
    assert!(note.is_good());
    assert!(
        lines(&note, Level::Warning).iter().any(|it| it.starts_with("config/not-built tasks:"))
    );
}

#[test]
fn the_floor_and_the_overrides_are_warnings() {
    let checked = role(
        "{permissions: {approval: auto}, harness_options: {permission_mode: default}, \
         isolation: {network: deny}}",
    );
    let found = lines(&checked, Level::Warning);
    for rule in ["permissions/floor permissions: ", "permissions/conflict harness_options: "] {
        assert!(found.iter().any(|it| it.starts_with(rule)), "{rule}: {found:?}");
    }
    assert!(checked.is_good(), "{found:?}");
}

#[test]
fn a_broken_file_gives_all_its_problems_and_no_fleet() {
    let checked = judged("roles:\n  A: {cwdd: /x}\n  B: {harness: nope}\nrolez: {}\n");
    assert!(checked.fleet.is_none() && !checked.is_good());
    assert_eq!(lines(&checked, Level::Error).len(), 3, "{:?}", checked.findings);
    assert!(!judged("a: [").is_good());
}

#[test]
fn drop_ins_belong_to_the_fleet_in_the_order_of_their_names() {
    let drop_in = |name: &str, role: &str| {
        (
            name.to_owned(),
            format!("roles: {{{role}: {{isolation: {{network: deny}}}}}}").into_bytes(),
        )
    };
    let sources = nominal_sources(None, vec![drop_in("b.yaml", "B"), drop_in("a.yaml", "A")]);
    let checked = check(&sources, YamlMode::Strict, &Harnesses::built_in());
    let fleet = checked.fleet.expect("a fleet");
    assert_eq!(fleet.roles.keys().map(ToString::to_string).collect::<Vec<_>>(), ["A", "B"]);
}

#[test]
fn a_verdict_is_the_same_each_time() {
    let text = "roles:\n  B: {cwd: /home/x/p, isolation: {network: deny, fs: {write: [/home/y/.ssh]}}}\n  A: {permissions: {approval: allow}}\n";
    assert_eq!(judged(text).findings, judged(text).findings);
}
