//! `explain`: the cases that are easy to get wrong.

use fleet_core::path::LexicalPath;
use fleet_core::policy::explain::{DecidedBy, NativeVerdict, Verdict};
use fleet_core::port::FileKind;
use fleet_core::test_support::scene::Scene;
use rstest::rstest;

use crate::explain::{Judged, judged, judged_in};

const FLEET: &str = "\
policy:
  forbid_paths: [/srv/secret]
roles:
  A:
    harness: command
    harness_options: { argv: [bash] }
    cwd: /home/u/work
    env: { TOKEN: s3cr3t }
    env_pass: [PASSED, ABSENT]
    isolation:
      network: deny
      fs:
        read: [/home/u/work/vendor, /data, /home/u/.gitconfig]
        write: [/home/u/lib]
      secrets: ['/opt/tools/key:/run/secrets/key']
";

fn role() -> Judged {
    judged_in(scene(), FLEET, &[("PASSED", "s3cr3t"), ("GH_TOKEN", "s3cr3t"), ("LANG", "C")])
}

fn scene() -> Scene {
    let mut scene = Scene::new();
    let tree = &mut scene.tree;
    tree.dir("/home/u/work/vendor").dir("/home/u/work/.git/hooks").file("/opt/tools/key", "k");
    tree.file("/home/u/.gitconfig", "x").file("/home/u/.bashrc", "x").dir("/srv/secret");
    tree.link("/home/u/work/out", "/etc/shadow").link("/home/u/work/in", "/data");
    tree.link("/home/u/elsewhere", "/data").link("/home/u/keys", "/home/u/.ssh");
    tree.file("/etc/shadow", "x").file("/etc/passwd", "x").file("/srv/other", "x");
    tree.file("/tmp/there", "x").special("/data/sock", FileKind::Socket);
    tree.dir("/home/u/.claude");
    scene
}

#[rstest]
#[case::cwd("/home/u/work/src", Verdict::ReadWrite, "mount.cwd", "cwd:")]
#[case::deepest_wins("/home/u/work/vendor/x", Verdict::ReadOnly, "mount.fs-read", "read:")]
#[case::overlay("/home/u/work/.git/hooks/x", Verdict::ReadOnly, "mount.overlay", "isolation:")]
#[case::above_an_overlay(
    "/home/u/work/.git/x",
    Verdict::ReadWrite,
    "mount.self-bind",
    "isolation:"
)]
#[case::written("/home/u/lib/new", Verdict::ReadWrite, "mount.fs-write", "write:")]
#[case::tier_b_read("/home/u/.gitconfig", Verdict::ReadOnly, "mount.fs-read", "read:")]
#[case::link("/home/u/work/in/x", Verdict::ReadOnly, "mount.fs-read", "read:")]
#[case::unseen_link("/home/u/elsewhere/x", Verdict::ReadOnly, "mount.fs-read", "read:")]
#[case::secret("/run/secrets/key", Verdict::ReadOnly, "mount.secret", "secrets:")]
#[case::secret_by_its_source("/opt/tools/key", Verdict::ReadOnly, "mount.secret", "secrets:")]
#[case::forbidden_by_policy("/srv/secret/x", Verdict::Hidden, "forbidden.tier-a", "forbid_paths:")]
#[case::not_listed("/srv/other", Verdict::Hidden, "not-listed", "fs:")]
fn a_path_names_its_rule_and_its_line(
    #[case] at: &str,
    #[case] verdict: Verdict,
    #[case] rule: &str,
    #[case] line: &str,
) {
    let role = role();
    let answer = role.at(at);
    assert_eq!((answer.verdict, answer.rule.id), (verdict, rule), "{answer:?}");
    assert!(role.line(&answer).starts_with(line), "{}", role.line(&answer));
    assert_eq!(answer.by, DecidedBy::OuterBoundary);
}

#[rstest]
#[case::tier_a("/home/u/.ssh/id_ed25519", Verdict::Hidden, "forbidden.tier-a")]
#[case::tier_a_by_a_link("/home/u/keys/id_ed25519", Verdict::Hidden, "forbidden.tier-a")]
#[case::sibling("/home/u/.ours-fleet/agents/B", Verdict::Hidden, "forbidden.tier-a")]
#[case::control("/home/u/.ours-fleet/control/A/x", Verdict::Hidden, "forbidden.tier-a")]
#[case::link_out("/home/u/work/out", Verdict::Hidden, "system.hidden")]
#[case::program("/bin/bash", Verdict::ReadOnly, "system.shown")]
#[case::made("/etc/passwd", Verdict::ReadOnly, "system.made")]
#[case::proc("/proc/1/environ", Verdict::Private, "system.own")]
#[case::own_tmp("/tmp", Verdict::Private, "tmpfs")]
#[case::own_tmp_of_the_host("/tmp/there", Verdict::Hidden, "tmpfs")]
#[case::own_home("/home/u/absent", Verdict::Private, "tmpfs")]
#[case::home_of_the_host("/home/u/notes.txt", Verdict::Hidden, "tmpfs")]
#[case::root("/", Verdict::Hidden, "forbidden.root")]
#[case::absent_tier_a("/home/u/.aws/x", Verdict::Hidden, "forbidden.tier-a")]
fn what_is_built_in_says_so(#[case] at: &str, #[case] verdict: Verdict, #[case] rule: &str) {
    let answer = role().at(at);
    assert_eq!((answer.verdict, answer.rule.id), (verdict, rule), "{answer:?}");
    assert_eq!(answer.place, None);
}

#[test]
fn an_alias_of_a_forbidden_directory_is_known_by_its_identity() {
    let mut scene = scene();
    scene.tree.dir("/mnt").bind("/home/u/.ssh", "/mnt/alias");
    let answer = judged(scene, FLEET).at("/mnt/alias/id_ed25519");
    assert_eq!(
        (answer.verdict, answer.rule.id),
        (Verdict::Hidden, "forbidden.tier-a"),
        "{answer:?}"
    );
}

#[test]
fn a_second_name_of_a_mounted_directory_is_found() {
    let mut scene = scene();
    scene.tree.dir("/mnt").bind("/home/u/lib", "/mnt/alias");
    let answer = judged(scene, FLEET).at("/mnt/alias/x");
    assert_eq!((answer.verdict, answer.rule.id), (Verdict::ReadWrite, "mount.fs-write"));
    assert!(answer.says.contains("`/home/u/lib/x`"), "{}", answer.says);
}

#[test]
fn advice_never_offers_what_is_refused() {
    let role = role();
    let change = |at: &str| role.at(at).change.unwrap_or_default();
    assert!(change("/srv/other").contains("`fs.read` or `fs.write`"));
    assert!(
        change("/home/u/.bashrc").contains("never be written"),
        "{}",
        change("/home/u/.bashrc")
    );
    assert!(!change("/home/u/.gitconfig").contains("fs.write"), "{}", change("/home/u/.gitconfig"));
    for at in ["/home/u/.ssh", "/srv/secret"] {
        assert!(!change(at).contains("fs.read"), "{}", change(at));
    }
}

#[test]
fn sockets_and_links_are_explained() {
    let role = role();
    let socket = role.at("/data/sock");
    assert!(socket.facts.iter().any(|fact| fact.contains("Unix socket")), "{socket:?}");
    let link = role.at("/home/u/elsewhere/x");
    assert_eq!(link.leads_to.as_ref().map(LexicalPath::as_str), Some("/data/x"));
    assert!(link.facts.iter().any(|fact| fact.contains("does not see")), "{link:?}");
}

/// Two entries of a list of hosts.
const LISTED: &str = "network: allowlist, allow_hosts: [example.com, '*.example.org:8443']";

#[rstest]
#[case::deny("network: deny", "example.com:443", Verdict::Unreachable, "network.deny")]
#[case::deny_here("network: deny", "localhost:80", Verdict::Unreachable, "network.deny")]
#[case::allow("network: allow", "[::1]:80", Verdict::Reachable, "network.allow")]
#[case::broker("network: broker", "example.com", Verdict::Unreachable, "network.no-rule")]
#[case::default("system: full", "example.com", Verdict::Unreachable, "network.no-rule")]
#[case::list(LISTED, "example.com", Verdict::Reachable, "network.allow-hosts")]
#[case::list_port(LISTED, "example.com:443", Verdict::Reachable, "network.allow-hosts")]
#[case::other_port(LISTED, "example.com:22", Verdict::Unreachable, "network.no-rule")]
#[case::below(LISTED, "a.b.example.org:8443", Verdict::Reachable, "network.allow-hosts")]
#[case::not_below(LISTED, "example.org:8443", Verdict::Unreachable, "network.no-rule")]
#[case::this_host(LISTED, "localhost:80", Verdict::Unreachable, "network.no-rule")]
#[case::none("backend: none", "example.com", Verdict::Account, "isolation.none")]
fn a_network_is_what_this_build_makes_of_it(
    #[case] block: &str,
    #[case] host: &str,
    #[case] verdict: Verdict,
    #[case] rule: &str,
) {
    let text = format!(
        "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [bash] }}\n    isolation: {{ {block} }}\n"
    );
    let judged = judged(Scene::new(), &text);
    let answer = judged.host(host);
    assert_eq!((answer.verdict, answer.rule.id), (verdict, rule), "{answer:?}");
    assert!(judged.line(&answer).starts_with("isolation:"));
    assert!(answer.refusals.is_empty(), "{answer:?}");
}

#[rstest]
#[case::role("TOKEN", Verdict::Set, "env.role", Some("env:"))]
#[case::passed("PASSED", Verdict::Set, "env.env-pass", Some("env_pass:"))]
#[case::named_and_absent("ABSENT", Verdict::Withheld, "env.absent", Some("env_pass:"))]
#[case::list("LANG", Verdict::Set, "env.allowlist", None)]
#[case::list_absent("LC_ALL", Verdict::Withheld, "env.absent", None)]
#[case::forced("OURS_AUTOSTART", Verdict::Set, "env.forced", None)]
#[case::fleet("HOME", Verdict::Set, "env.fleet", None)]
#[case::harness("OURS_FLEET_ROLE", Verdict::Set, "env.harness", None)]
#[case::reserved("OURS_FLEET_X", Verdict::Withheld, "env.reserved", None)]
#[case::withheld("GH_TOKEN", Verdict::Withheld, "env.not-listed", None)]
#[case::isolated("TMPDIR", Verdict::Withheld, "env.isolated", None)]
fn a_variable_names_who_gave_it(
    #[case] name: &str,
    #[case] verdict: Verdict,
    #[case] rule: &str,
    #[case] line: Option<&str>,
) {
    let role = role();
    let answer = role.env(name);
    assert_eq!((answer.verdict, answer.rule.id), (verdict, rule), "{answer:?}");
    assert!(!format!("{answer:?}").contains("s3cr3t"), "a value is shown");
    match line {
        Some(line) => assert!(role.line(&answer).starts_with(line), "{}", role.line(&answer)),
        None => assert_eq!(answer.place, None),
    }
}

/// A model role with these keys.
fn model(harness: &str, keys: &str) -> Judged {
    let text = format!("roles:\n  A:\n    harness: {harness}\n    cwd: /home/u/work\n{keys}");
    judged(scene(), &text)
}

const AUTO: &str = "    permissions: { approval: auto }\n";
const ALLOW: &str = "    permissions: { approval: allow }\n";
const ISOLATED: &str = "    isolation: { network: allow }\n";

#[rstest]
#[case::commands("claude-code", &[AUTO, ISOLATED], "Bash", Verdict::Silent)]
#[case::commands_ask("claude-code", &[ISOLATED], "Bash", Verdict::Asks)]
#[case::own_sandbox("claude-code", &[AUTO], "Bash", Verdict::Silent)]
#[case::edit("claude-code", &[AUTO, ISOLATED], "Edit", Verdict::Depends)]
#[case::read("claude-code", &[AUTO, ISOLATED], "Read", Verdict::Silent)]
#[case::fetch("claude-code", &[AUTO], "WebFetch", Verdict::Asks)]
#[case::fetch_refused("claude-code", &[ALLOW], "WebFetch", Verdict::Refused)]
#[case::peers("claude-code", &[AUTO], "SendMessage", Verdict::Refused)]
#[case::server("claude-code", &[ALLOW], "mcp__x__y", Verdict::Refused)]
#[case::unheard("claude-code", &[AUTO], "TodoWrite", Verdict::Unknown)]
#[case::floor("claude-code", &[AUTO], "workspace-edit", Verdict::Silent)]
#[case::floor_asks("claude-code", &[], "workspace-edit", Verdict::Asks)]
#[case::shell("codex", &[AUTO, ISOLATED], "shell", Verdict::Depends)]
#[case::patch("codex", &[AUTO, ISOLATED], "apply_patch", Verdict::Silent)]
#[case::patch_bound("codex", &[AUTO], "apply_patch", Verdict::Depends)]
#[case::codex_server("codex", &[AUTO], "mcp__x__y", Verdict::Asks)]
#[case::codex_server_refused("codex", &[ALLOW], "mcp__x__y", Verdict::Refused)]
#[case::search("codex", &[AUTO], "web_search", Verdict::Refused)]
fn a_tool_is_what_the_native_settings_make_of_it(
    #[case] harness: &str,
    #[case] keys: &[&str],
    #[case] tool: &str,
    #[case] verdict: Verdict,
) {
    let role = model(harness, &keys.concat());
    let answer = role.tool(tool);
    assert_eq!(answer.verdict, verdict, "{answer:?}");
    let declared =
        answer.sources.iter().find(|it| it.key == "permissions.approval").expect("a key");
    assert_eq!(declared.place.is_some(), keys.iter().any(|key| key.contains("approval")));
}

#[test]
fn a_role_without_permissions_says_that_it_has_none() {
    let answer = role().tool("Bash");
    assert_eq!((answer.verdict, answer.rule.id), (Verdict::Unknown, "native.none"));
}

/// What each part of the program says to one path, in the order of the answers.
fn native(role: &Judged, at: &str) -> Vec<NativeVerdict> {
    role.at(at).native.iter().map(|it| it.verdict).collect()
}

#[test]
fn file_tools_and_commands_are_told_apart() {
    use NativeVerdict::{Asks, Refused, Silent};
    let role = model("claude-code", AUTO);
    assert_eq!(role.at("/srv/other").verdict, Verdict::Account);
    assert_eq!(native(&role, "/home/u/work/x"), [Silent, Silent, Silent, Silent]);
    // Its own sandbox keeps commands from writing elsewhere, and its file tools ask.
    assert_eq!(native(&role, "/srv/other"), [Silent, Asks, Silent, Refused]);
    assert_eq!(native(&role, "/home/u/work/.claude/x"), [Silent, Asks, Silent, Silent]);
    // A link out of the working directory is judged by where it leads as well.
    assert_eq!(native(&role, "/home/u/work/out")[1], Asks);
    let role = model("claude-code", ALLOW);
    assert_eq!(native(&role, "/srv/other"), [Silent, Refused, Silent, Refused]);
    let role = model("codex", AUTO);
    assert_eq!(native(&role, "/home/u/work/.git/x"), [Silent, Silent]);
    assert_eq!(native(&role, "/home/u/work/.codex/x"), [Silent, Asks]);
    assert_eq!(native(&role, "/srv/other"), [Silent, Asks]);
}

#[test]
fn a_model_endpoint_of_the_broker_is_the_harness_s_own() {
    let role = model("claude-code", "    isolation: { network: broker }\n");
    let policy = role.assessment.policy.as_ref().expect("a policy");
    let endpoint = policy.reachable.first().expect("an endpoint").to_string();
    let answer = role.host(&endpoint);
    assert_eq!(
        (answer.verdict, answer.rule.id),
        (Verdict::Reachable, "network.model"),
        "{answer:?}"
    );
    assert!(role.line(&answer).starts_with("isolation:"));
}

#[test]
fn a_refused_role_reaches_nothing_and_says_why() {
    let text = "roles:\n  A:\n    harness: command\n    harness_options: { argv: [bash] }\n    isolation: { network: deny, fs: { read: [/home/u/.ssh] } }\n";
    let answer = judged(scene(), text).at("/srv/other");
    assert_eq!(answer.verdict, Verdict::NotStarted);
    assert!(answer.refusals.iter().any(|line| line.contains("isolation.fs.read[0]")), "{answer:?}");
    assert_eq!(answer.place.map(|place| place.line), Some(5));
}

#[test]
fn a_role_that_may_start_without_its_sandbox_is_said_to() {
    let warns = |answer: &fleet_core::policy::explain::Explanation| {
        answer.facts.iter().any(|fact| fact.contains("UN-ISOLATED"))
    };
    let text = |word: &str| {
        format!(
            "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [bash] }}\n    isolation: {{ network: allow, on_unavailable: {word} }}\n"
        )
    };
    assert!(warns(&judged(scene(), &text("warn")).at("/srv/other")));
    assert!(!warns(&judged(scene(), &text("strict")).at("/srv/other")));
}

/// Without a boundary the settings of the program itself keep its tools from keys.
#[rstest]
#[case::claude("claude-code", "commands, reading", NativeVerdict::Refused)]
#[case::codex("codex", "commands and patches, reading", NativeVerdict::Refused)]
fn keys_are_denied_to_the_tools_of_an_un_isolated_role(
    #[case] harness: &str,
    #[case] action: &str,
    #[case] verdict: NativeVerdict,
) {
    let role = model(harness, "    permissions: { approval: allow }\n");
    let on = |at: &str| {
        let answer = role.at(at);
        assert_eq!(answer.verdict, Verdict::Account, "{answer:?}");
        let native = answer.native.into_iter().find(|it| it.action == action);
        native.expect("an answer of the program").verdict
    };
    assert_eq!(on("/home/u/.ssh/id_ed25519"), verdict);
    assert_eq!(on("/srv/other"), NativeVerdict::Silent, "the probe proves nothing");
}

/// The same role under Landlock, which takes no secret at another path.
fn confined() -> Judged {
    let text = FLEET.replace("      network: deny", "      backend: landlock\n      network: deny");
    let (text, _) = text.split_once("      secrets:").expect("there");
    judged_in(scene(), text, &[])
}

#[rstest]
#[case::cwd("/home/u/work/src", Verdict::ReadWrite, "read and write it")]
#[case::overlay("/home/u/work/.git/hooks/x", Verdict::ReadWrite, "nothing is read-only in")]
#[case::inner("/home/u/work/vendor/x", Verdict::ReadWrite, "nothing is read-only in")]
#[case::read("/data/x", Verdict::ReadOnly, "cannot write it")]
#[case::socket("/data/sock", Verdict::ReadOnly, "cannot write it")]
#[case::key("/home/u/.ssh/id", Verdict::Hidden, "neither read nor write")]
#[case::memory("/tmp", Verdict::Hidden, "neither read nor write")]
#[case::passwd("/etc/passwd", Verdict::ReadOnly, "the host's own")]
#[case::identity("/etc/machine-id", Verdict::Hidden, "cannot read it")]
#[case::shadow("/etc/shadow", Verdict::Hidden, "neither read nor write")]
#[case::processes("/proc/1/status", Verdict::ReadOnly, "all processes")]
#[case::device("/dev/kmsg", Verdict::Hidden, "`null`")]
#[case::program("/usr/bin/sh", Verdict::ReadOnly, "cannot write it")]
fn under_landlock_what_is_said_of_a_path_is_what_holds(
    #[case] asked: &str,
    #[case] verdict: Verdict,
    #[case] says: &str,
) {
    let answer = confined().at(asked);
    assert_eq!(answer.verdict, verdict, "{answer:?}");
    assert!(answer.says.contains(says), "{answer:?}");
    let seen = answer.facts.iter().any(|fact| fact.contains("can be seen"));
    assert_eq!(seen, verdict == Verdict::Hidden, "{answer:?}");
    assert!(!answer.facts.iter().any(|fact| fact.contains("connect to it")), "{answer:?}");
}
