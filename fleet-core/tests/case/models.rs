//! Models and the variable that pins them (01 §4.4).

use fleet_core::config::Role;
use rstest::rstest;

use crate::fleet::{base, names};

const PIN: &str = "ANTHROPIC_MODEL";

fn said(role: &Role) -> (Option<&str>, Option<&str>) {
    let pin = role.env.get(PIN).map(|it| it.expose().as_str());
    (role.model.as_deref(), pin)
}

#[rstest]
#[case::nothing("", "", None)]
#[case::role_model("", "model: a", Some("a"))]
#[case::role_pin("", "env: {ANTHROPIC_MODEL: a}", Some("a"))]
#[case::both_the_same("", "model: a, env: {ANTHROPIC_MODEL: a}", Some("a"))]
#[case::default_model("model: d", "", Some("d"))]
#[case::default_pin("env: {ANTHROPIC_MODEL: d}", "", Some("d"))]
#[case::default_model_over_default_pin("model: d, env: {ANTHROPIC_MODEL: p}", "", Some("d"))]
#[case::role_model_over_all("model: d, env: {ANTHROPIC_MODEL: p}", "model: a", Some("a"))]
#[case::role_pin_over_defaults("model: d", "env: {ANTHROPIC_MODEL: a}", Some("a"))]
#[case::null_clears_the_model("model: d", "model: null", None)]
#[case::null_clears_the_pin("env: {ANTHROPIC_MODEL: d}", "model: null", None)]
#[case::blank_is_not_written("model: d", "model: ' '", Some("d"))]
fn model_and_pin_always_say_the_same(
    #[case] defaults: &str,
    #[case] role: &str,
    #[case] expected: Option<&str>,
) {
    let text = format!("defaults: {{{defaults}}}\nroles: {{A: {{{role}}}}}");
    assert_eq!(said(&base(text).role("A")), (expected, expected));
}

#[test]
fn a_model_is_inherited_by_the_same_harness_only_and_a_pin_by_every_pinning_one() {
    let fleet = base(
        "defaults: {harness: codex, model: d, env: {ANTHROPIC_MODEL: p}}\n\
         roles: {A: {}, B: {harness: claude-code}}",
    )
    .fleet();
    assert_eq!(said(&fleet.roles["A"]), (Some("d"), Some("p")), "the variable means nothing to it");
    assert_eq!(said(&fleet.roles["B"]), (Some("p"), Some("p")));
}

#[test]
fn a_role_that_names_two_models_is_refused_with_both_places() {
    let line =
        base("roles:\n  A:\n    model: one\n    env:\n      ANTHROPIC_MODEL: s3cr3t\n").only();
    names(
        &line,
        &[
            "fleet.yaml:5:7: role 'A': env.ANTHROPIC_MODEL: ",
            "`model` and `env.ANTHROPIC_MODEL`",
            "see also /home/op/fleet.yaml:3:5",
        ],
    );
    assert!(!line.contains("s3cr3t"), "{line}");
    let text = "roles: {A: {model: null, env: {ANTHROPIC_MODEL: x}}}";
    names(&base(text).only(), &["different models", "write `model` alone"]);
}

#[test]
fn a_pin_is_judged_like_a_model_and_is_not_passed_on() {
    for bad in ["--evil", "''", "\"a\\tb\""] {
        let line = base(format!("roles: {{A: {{env: {{ANTHROPIC_MODEL: {bad}}}}}}}")).only();
        names(&line, &["env.ANTHROPIC_MODEL: is not the name of a model"]);
        assert!(!line.contains("evil"), "{line}");
    }
    let passed = "roles: {A: {env_pass: [ANTHROPIC_MODEL]}}";
    names(&base(passed).only(), &["env_pass", "write `model`"]);
    base("roles: {A: {harness: codex, env_pass: [ANTHROPIC_MODEL]}}").fleet();
}
