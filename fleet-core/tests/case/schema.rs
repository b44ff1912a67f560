//! The schema of a fleet file against a real validator.

use fleet_core::config::SchemaOf;
use rstest::rstest;

use crate::fleet::base;
use crate::schema::{built_in, document, remarks};
use fleet_core::harness::Harnesses;

fn found(yaml: &str) -> Vec<String> {
    remarks(built_in(SchemaOf::Base), &document(yaml.as_bytes()).expect("YAML"))
}

/// Each is refused by the loader as well, so that the schema is no judge of its own.
#[rstest]
#[case::top("rolez: {}")]
#[case::role("roles: {A: {harnes: command}}")]
#[case::defaults("defaults: {cwd: /x}")]
#[case::isolation("roles: {A: {isolation: {netwrok: deny}}}")]
#[case::fs("roles: {A: {isolation: {fs: {reed: []}}}}")]
#[case::secret("roles: {A: {isolation: {secrets: [{from: /a, to: /b, mode: rw}]}}}")]
#[case::secret_without_a_side("roles: {A: {isolation: {secrets: [{from: /a}]}}}")]
#[case::list("roles: {A: {isolation: {fs: {read: /x}}}}")]
#[case::word("roles: {A: {isolation: {network: open}}}")]
#[case::empty_isolation("roles: {A: {isolation: }}")]
#[case::number("roles: {A: {max_tokens: lots}}")]
#[case::negative("start_stagger_ms: -1")]
#[case::boolean("roles: {A: {isolation: {nested_sandbox: 'yes'}}}")]
#[case::env("roles: {A: {env: {A: 1}}}")]
#[case::harness("roles: {A: {harness: cursor}}")]
#[case::claude_option("roles: {A: {harness: claude-code, harness_options: {effrot: low}}}")]
#[case::claude_value("roles: {A: {harness: claude-code, harness_options: {effort: most}}}")]
#[case::claude_server(
    "roles: {A: {harness: claude-code, harness_options: {mcp_servers: {s: {command: x, cmd: y}}}}}"
)]
#[case::codex_option("roles: {A: {harness: codex, harness_options: {effort: low}}}")]
#[case::command_option(
    "roles: {A: {harness: command, harness_options: {argv: [x], sandbox: read-only}}}"
)]
#[case::option_of_no_harness("roles: {A: {harness_options: {zzqq: 1}}}")]
#[case::policy("policy: {require: {isolation: L4}}")]
#[case::list_of_roles("roles: [A]")]
#[case::top_list("[]")]
fn what_is_wrong_is_refused(#[case] yaml: &str) {
    assert!(base(yaml).with(Harnesses::built_in()).load().fleet.is_none(), "the loader accepts it");
    assert!(!found(yaml).is_empty(), "accepted");
}

#[rstest]
#[case::empty("")]
#[case::empty_role("roles: {A: }")]
#[case::no_model("roles: {A: {model: null}}")]
#[case::no_stagger("start_stagger_ms: null")]
#[case::variable("{vars: {N: deny}, roles: {A: {isolation: {network: '${N}'}}}}")]
#[case::old_word("roles: {A: {permissions: {approval: deny}}}")]
#[case::partial(
    "{defaults: {harness: command, harness_options: {argv: [x]}}, roles: {A: {harness_options: {ready: [y]}}}}"
)]
#[case::worklog("roles: {A: {worklog: false}}")]
#[case::interrupt("roles: {A: {monitor: {interrupt: after_tool}}}")]
#[case::options(
    "roles: {A: {harness: codex, harness_options: {sandbox: read-only, config: {a.b: [1]}}}}"
)]
fn what_is_good_is_accepted(#[case] yaml: &str) {
    assert!(base(yaml).with(Harnesses::built_in()).load().fleet.is_some(), "the loader refuses it");
    assert_eq!(found(yaml), [""; 0]);
}

#[test]
fn a_drop_in_holds_roles_only() {
    let remarks_on = |yaml: &str| {
        remarks(built_in(SchemaOf::DropIn), &document(yaml.as_bytes()).expect("YAML")).len()
    };
    assert_eq!(remarks_on("roles: {A: {harness: codex}}"), 0);
    assert_ne!(remarks_on("defaults: {}"), 0);
}
