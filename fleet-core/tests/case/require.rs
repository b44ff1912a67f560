//! `policy.require` (01 §1.3, §2.14): the rules themselves, and what each of them refuses.

use fleet_core::harness::Harnesses;
use fleet_core::isolation::NetworkMode;
use fleet_core::permissions::Approval;
use fleet_core::policy::require::{Cap, Judged, Level, Require, effective_approval, violations};
use rstest::rstest;

use crate::fleet::{Files, base, names};

const COMMAND: &str = "harness: command, harness_options: {argv: [sh]}";

fn fleet(require: &str, role: &str) -> Files {
    base(format!("policy:\n  require: {{{require}}}\nroles:\n  A: {{{role}}}\n"))
        .with(Harnesses::built_in())
}

#[rstest]
#[case("isolation: L9", "isolation: is not a known value (got `L9`; allowed: L1, L2, L3)")]
#[case("isolation: l1", "isolation: is not a known value (got `l1`; allowed: L1, L2, L3); did")]
#[case("isolation: [L1]", "isolation: must be one of L1, L2, L3 (got a list); write `isolation:")]
#[case("isolation: 1", "isolation: must be one of L1, L2, L3 (got `1`)")]
#[case("isolation: null", "isolation: is empty")]
#[case("isolaton: L1", "isolaton: unknown key (allowed: isolation, network, approval, resources)")]
#[case("isolaton: L1", "did you mean `isolation`?")]
#[case("network: deny", "network: must be a list (got `deny`); put it in brackets")]
#[case("network: []", "network: is an empty list (allowed: broker, deny, allow, allowlist)")]
#[case("network: [deny, none]", "network[1]: is not a known value (got `none`")]
#[case("network: [alow]", "network[0]: is not a known value (got `alow`")]
#[case("network: [alow]", "did you mean `allow`?")]
#[case("network: [deny, deny]", "network[1]: is listed twice (got `deny`)")]
#[case("network: null", "network: is empty")]
#[case("network: [null]", "network[0]: is empty")]
#[case("approval: deny", "approval: is not a known value (got `deny`; allowed: ask, auto, allow)")]
#[case("approval: [ask]", "approval: must be one of ask, auto, allow (got a list)")]
#[case("approval: true", "approval: must be one of ask, auto, allow (got `true`)")]
#[case("resources: mem", "resources: must be a list (got `mem`)")]
#[case("resources: []", "resources: is an empty list (allowed: cpu, mem, pids)")]
#[case("resources: [memory]", "resources[0]: is not a known value (got `memory`; allowed: cpu,")]
#[case("resources: [mem, mem]", "resources[1]: is listed twice (got `mem`)")]
#[case("resources: {mem: 1G}", "resources: must be a list (got a mapping)")]
#[case("isolation: L3, network: [allow]", "network: no role can meet this and `isolation: L3`")]
fn a_rule_follows_the_error_contract(#[case] require: &str, #[case] part: &str) {
    let line = base(format!("policy:\n  require: {{{require}}}\n")).only();
    names(&line, &["/home/op/fleet.yaml:2:", "policy.require.", part]);
}

#[test]
fn the_block_itself_is_a_mapping_of_the_base_file() {
    for text in ["policy: {require: L1}", "policy: {require: [L1]}", "policy: {require:}"] {
        names(&base(text).only(), &["/home/op/fleet.yaml:1:", "policy.require: ", "a mapping"]);
    }
    names(
        &base("policy: {require: {isolation: L1, isolation: L2}}").only(),
        &["`isolation` is written twice"],
    );
    names(
        &base("").drop_in("b.yaml", "policy: {require: {isolation: L1}}").only(),
        &["fleet.d/b.yaml:1:1: policy: a drop-in may hold only `roles`"],
    );
    names(&base("require: {isolation: L1}").only(), &["require: unknown key"]);
}

#[test]
fn what_is_required_is_typed_and_has_a_place() {
    let fleet = base(
        "policy:\n  require:\n    isolation: L2\n    network: [deny, allowlist]\n    \
         approval: auto\n    resources: [pids, mem]\n",
    )
    .fleet();
    let expected = Require {
        isolation: Some(Level::L2),
        network: Some(vec![NetworkMode::Deny, NetworkMode::Allowlist]),
        approval: Some(Approval::Auto),
        resources: vec![Cap::Pids, Cap::Mem],
    };
    assert_eq!(fleet.policy.require, expected);
    let line = |path: &str| fleet.provenance.written(path).map(|(_, place)| place.line);
    assert_eq!(line("policy.require.isolation"), Some(3));
    assert_eq!(line("policy.require.network[1]"), Some(4));
    assert_eq!(line("policy.require.resources"), Some(6));
    assert_eq!(line("policy.require.pids"), None, "only what is written");
    assert!(base("policy: {require: {}}").fleet().policy.require.is_empty());
    assert!(base("roles: {A: {}}").fleet().policy.require.is_empty());
}

const CAPS: &str = "resources: {cpu: 1, mem: 1G, pids: 64}";

/// A rule, a role, and what the refusal says; nothing where the role meets it.
#[rstest]
#[case("isolation: L1", "", &["role 'A': isolation: does not meet `policy.require.isolation: L1` (got no sandbox", "see also /home/op/fleet.yaml:2:13", "write an `isolation` block"])]
#[case("isolation: L1", "isolation: {backend: none}", &["isolation.backend: does not meet", "got `none`"])]
#[case("isolation: L1", "isolation: {network: allow}", &[])]
#[case("isolation: L1", "isolation: {}", &[])]
#[case("isolation: L1", "isolation: {network: allow, on_unavailable: warn}", &[])]
#[case("isolation: L2", "isolation: {network: allow}", &["isolation.resources: does not meet `policy.require.isolation: L2` (got no cap on cpu, mem, pids", "`isolation.resources.cpu`, `isolation.resources.mem`"])]
#[case("isolation: L2", "isolation: {network: allow, resources: {cpu: 1, mem: 1G}}", &["no cap on pids", "`pids: 512`"])]
#[case("isolation: L2", "isolation: {network: allow, resources: {cpu: 1, mem: 1G, pids: 64}}", &[])]
#[case("isolation: L3", "isolation: {network: allow, resources: {cpu: 1, mem: 1G, pids: 64}}", &["isolation.network: does not meet `policy.require.isolation: L3` (got `allow`; allowed: deny, broker, allowlist)", "write `network: deny`"])]
#[case("isolation: L3", "isolation: {network: deny, resources: {cpu: 1, mem: 1G, pids: 64}}", &[])]
#[case("isolation: L3", "isolation: {resources: {cpu: 1, mem: 1G, pids: 64}}", &[])]
#[case("isolation: L3", "isolation: {network: allowlist, allow_hosts: [a.example], resources: {cpu: 1, mem: 1G, pids: 64}}", &[])]
#[case("isolation: L3", "", &["isolation: does not meet `policy.require.isolation: L3` (got no sandbox"])]
#[case("network: [deny, broker]", "isolation: {network: allow}", &["4:19: role 'A': isolation.network: does not meet `policy.require.network` (got `allow`; allowed: deny, broker)", "see also /home/op/fleet.yaml:2:13", "write `network: deny`"])]
#[case("network: [deny]", "isolation: {}", &["got `broker`, which nobody wrote; allowed: deny)"])]
#[case("network: [deny]", "isolation: {network: deny}", &[])]
#[case("network: [deny]", "", &["isolation: does not meet `policy.require.network` (got no sandbox: the network of the host", "write `isolation: {network: deny}`"])]
#[case("network: [deny]", "isolation: {backend: none}", &["isolation.backend: ", "`none`: the network of the host"])]
#[case("network: [deny, allow]", "", &[])]
#[case("network: [allow]", "isolation: {backend: none}", &[])]
#[case("resources: [mem]", "isolation: {network: allow, resources: {mem: 1G}}", &[])]
#[case("resources: [mem, pids]", "isolation: {network: allow, resources: {mem: 1G}}", &["isolation.resources: does not meet `policy.require.resources` (got no cap on pids)", "`isolation.resources.pids`, for example `pids: 512`"])]
#[case("resources: [mem]", "isolation: {network: allow}", &["no cap on mem, which nobody wrote"])]
#[case("resources: [mem]", "", &["isolation: does not meet `policy.require.resources` (got no sandbox, so no cap on mem"])]
#[case("approval: ask", "", &[])]
#[case("approval: ask", "permissions: {approval: auto}", &["permissions.approval: does not meet `policy.require.approval: ask` (got `auto`; allowed: ask)", "write `approval: ask`"])]
#[case("approval: auto", "permissions: {approval: auto}", &[])]
#[case("approval: auto", "permissions: {approval: allow}", &["4:21: role 'A': permissions.approval: does not meet `policy.require.approval: auto` (got `allow`; allowed: ask, auto)"])]
#[case("approval: allow", "permissions: {approval: allow, filesystem: unrestricted}", &[])]
#[case("approval: allow", "harness_options: {permission_mode: bypassPermissions}", &[])]
#[case("approval: auto", "harness_options: {permission_mode: bypassPermissions}", &["harness_options: does not meet `policy.require.approval: auto` (got `permission_mode: bypassPermissions`: it amounts to `allow`; allowed: ask, auto)", "leave it out"])]
#[case("approval: ask", "harness_options: {permission_mode: dontAsk}", &["it amounts to `auto`"])]
#[case("approval: ask", "harness_options: {permission_mode: acceptEdits}", &["it amounts to `auto`"])]
#[case("approval: ask", "harness_options: {permission_mode: plan}", &[])]
#[case("approval: ask", "permissions: {approval: allow}, harness_options: {permission_mode: plan}", &["permissions.approval: ", "got `allow`"])]
#[case("approval: auto", "harness: codex", &[])]
#[case("approval: ask", "harness: codex", &["permissions.approval: ", "`ask`, which amounts to `auto` on `codex`", "another harness"])]
#[case("approval: auto", "harness: codex, harness_options: {approval: never}", &["`approval: never`: it amounts to `allow`"])]
#[case("approval: auto", "harness: codex, harness_options: {permission_mode: never}", &["`approval: never`"])]
#[case("approval: auto", "harness: codex, harness_options: {config: {approval_policy: never}}", &["`approval: never`"])]
#[case("approval: auto", "harness: codex, harness_options: {sandbox: read-only}", &[])]
#[case("approval: auto", "harness: codex, harness_options: {config: {default_permissions: mine, permissions.mine.extends: ':read-only'}}", &["effect on what is asked is not known", "leave it out"])]
#[case("approval: auto", "harness: codex, harness_options: {config: {hooks.PermissionRequest: []}}", &["effect on what is asked is not known"])]
#[case("approval: auto", "harness: codex, harness_options: {config: {mcp_servers.x.command: x, mcp_servers.x.default_tools_approval_mode: approve}}", &["effect on what is asked is not known"])]
#[case("approval: auto", "harness: codex, harness_options: {config: {mcp_servers.x.command: x}}", &[])]
#[case("approval: auto", "harness: command, harness_options: {argv: [sh]}", &["harness: does not meet `policy.require.approval: auto` (got `command`, which asks nothing by itself: it amounts to `allow`"])]
#[case("approval: allow", "harness: command, harness_options: {argv: [sh]}", &[])]
fn a_role_meets_a_rule_or_is_refused(
    #[case] require: &str,
    #[case] role: &str,
    #[case] parts: &[&str],
) {
    let files = fleet(require, role);
    if parts.is_empty() {
        files.fleet();
    } else {
        let line = files.only();
        names(&line, parts);
        names(&line, &["/home/op/fleet.yaml:4:", "see also /home/op/fleet.yaml:2:"]);
    }
}

#[test]
fn every_role_is_judged_wherever_it_is_declared() {
    let lines = base(
        "policy:\n  require: {isolation: L1}\ndefaults:\n  harness: command\n  \
         harness_options: {argv: [sh]}\n  isolation: {backend: none}\nroles:\n  A: {}\n  \
         B: {isolation: {network: deny}}\n",
    )
    .drop_in("c.yaml", "roles:\n  C: {isolation: {backend: none}}\n  D: {isolation: {}}\n")
    .refused();
    assert_eq!(lines.len(), 2, "{lines:?}");
    names(&lines[0], &["/home/op/fleet.yaml:6:15: role 'A'", "`none`, from `defaults`"]);
    names(&lines[1], &["/home/op/fleet.d/c.yaml:2:19: role 'C'", "(got `none`)"]);
}

#[test]
fn each_rule_that_is_not_met_has_a_line_of_its_own() {
    let lines = fleet(
        "isolation: L3, network: [deny], approval: ask, resources: [mem]",
        "permissions: {approval: allow}, isolation: {network: allow}",
    )
    .refused();
    assert_eq!(lines.len(), 5, "{lines:?}");
    for rule in ["isolation: L3", "network", "approval: ask", "resources"] {
        assert!(lines.iter().any(|it| it.contains(&format!("policy.require.{rule}`"))), "{rule}");
    }
}

#[test]
fn a_role_that_was_not_read_whole_is_not_judged() {
    let line = fleet("isolation: L1", &format!("{COMMAND}, isolation: {{netwrok: deny}}")).only();
    names(&line, &["isolation.netwrok: unknown key"]);
    let text = "policy: {require: {isolation: L1}}\ndefaults: {isolation: {netwrok: deny}}\n";
    let line = base(format!("{text}roles: {{A: {{}}}}")).only();
    names(&line, &["defaults.isolation.netwrok: unknown key"]);
    // Another role's error hides nothing.
    let lines = base("policy: {require: {isolation: L1}}\nroles: {A: {cwd: 5}, B: {}}").refused();
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn a_requirement_forbids_a_start_without_isolation() {
    let rule = |require: &str| {
        let fleet = base(format!("policy:\n  require: {{{require}}}\n")).fleet();
        fleet.policy.require.forbids_unisolated(&fleet.provenance)
    };
    for require in ["isolation: L1", "isolation: L2", "isolation: L3", "network: [deny, broker]"] {
        let found = rule(require).expect(require);
        let key = require.split(": ").next().expect("a key");
        names(&found, &[&format!("`policy.require.{key}"), "(/home/op/fleet.yaml:2:13)"]);
    }
    for require in ["", "network: [deny, allow]", "approval: ask", "resources: [mem]"] {
        assert_eq!(rule(require), None, "{require}");
    }
}

#[test]
fn caps_that_are_required_are_in_this_build_and_must_hold() {
    for (require, key) in [
        ("isolation: L2", Some("isolation")),
        ("isolation: L3", Some("isolation")),
        ("resources: [mem]", Some("resources")),
        ("isolation: L1", None),
        ("network: [deny]", None),
        ("", None),
    ] {
        let fleet = base(format!("policy:\n  require: {{{require}}}\n")).fleet();
        let found = fleet.unavailable.iter().find(|it| it.path.starts_with("policy.require"));
        assert_eq!(found, None, "{require}");
        let rule = fleet.policy.require.needs_caps(&fleet.provenance);
        assert_eq!(rule.is_some(), key.is_some(), "{require}");
        if let (Some(rule), Some(key)) = (rule, key) {
            names(&rule, &[&format!("`policy.require.{key}"), "(/home/op/fleet.yaml:2:13)"]);
        }
    }
}

#[test]
fn a_role_from_elsewhere_is_judged_alike() {
    let role = base("roles: {A: {isolation: {network: allow}}}").role("A");
    let require = Require { network: Some(vec![NetworkMode::Deny]), ..Require::default() };
    let approval = effective_approval(&role, None);
    assert_eq!((approval.widest, approval.supported), (Approval::Allow, false));
    let found = violations(&require, Judged { role: &role, approval: &approval });
    assert_eq!(found.len(), 1);
    // A harness that nobody knows is the widest.
    let require = Require { approval: Some(Approval::Auto), ..Require::default() };
    assert_eq!(violations(&require, Judged { role: &role, approval: &approval }).len(), 1);
}

#[test]
fn the_example_of_caps_is_a_block_that_loads() {
    fleet("isolation: L2", &format!("isolation: {{network: deny, {CAPS}}}")).fleet();
}
