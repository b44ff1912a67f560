use fleet_core::config::Loaded;
use fleet_core::diagnostic::{Code, Severity};

use crate::fleet::{Files, base};
use crate::property::config::{p19, p20, p21, p22};

/// Takes a scalar for a list of one, as the predecessor did in its way.
fn forgiving_lists(files: &Files) -> Loaded {
    let loaded = files.load();
    let no_list = loaded.diagnostics.iter().any(|it| it.message == "must be a list");
    if no_list { base("roles: {A: {isolation: {fs: {read: [/x]}}}}").load() } else { loaded }
}

/// Leaves out entries that are no paths.
fn drops_entries(files: &Files) -> Loaded {
    let loaded = files.load();
    let bad = loaded.diagnostics.iter().any(|it| it.path.ends_with(']'));
    if bad { base("roles: {A: {isolation: {}}}").load() } else { loaded }
}

fn silent(files: &Files) -> Loaded {
    Loaded { diagnostics: Vec::new(), ..files.load() }
}

fn panics_on_bad_syntax(files: &Files) -> Loaded {
    let loaded = files.load();
    assert!(loaded.diagnostics.iter().all(|it| it.code != Code::Syntax), "a panic");
    loaded
}

fn ignores_unknown_keys(files: &Files) -> Loaded {
    let mut loaded = files.load();
    loaded.diagnostics.retain(|it| it.code != Code::UnknownKey || it.severity != Severity::Error);
    loaded
}

fn forgets_the_role(files: &Files) -> Loaded {
    let mut loaded = files.load();
    loaded.diagnostics.iter_mut().for_each(|it| it.role = None);
    loaded
}

#[test]
fn p19_finds_a_scalar_taken_for_a_list() {
    p19(forgiving_lists).expect_err("a counter-example");
}

#[test]
fn p19_finds_a_lost_entry() {
    p19(drops_entries).expect_err("a counter-example");
}

#[test]
fn p20_finds_a_refusal_without_a_reason() {
    p20(silent).expect_err("a counter-example");
}

#[test]
fn p20_finds_a_panic() {
    p20(panics_on_bad_syntax).expect_err("a counter-example");
}

#[test]
fn p21_finds_an_ignored_key() {
    p21(ignores_unknown_keys).expect_err("a counter-example");
}

#[test]
fn p21_finds_a_problem_without_its_role() {
    p21(forgets_the_role).expect_err("a counter-example");
}

#[test]
fn p22_finds_a_problem_without_its_role() {
    p22(forgets_the_role).expect_err("a counter-example");
}

fn forgets_the_file(files: &Files) -> Loaded {
    let mut loaded = files.load();
    loaded.diagnostics.iter_mut().for_each(|it| it.place = None);
    loaded
}

#[test]
fn p22_finds_a_problem_without_its_file() {
    p22(forgets_the_file).expect_err("a counter-example");
}
