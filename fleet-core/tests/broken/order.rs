//! Comparisons with one classic mistake each.

use fleet_core::config::Fleet;
use fleet_core::policy::order::{Dimension, Widening};

use crate::property::order::{
    agrees_with_every_endpoint, agrees_with_every_path, is_reflexive_whatever_the_order_of_lists,
    is_transitive, reports_nothing_for_what_is_removed, reports_what_is_added, widenings,
};

/// Compares lists entry by entry.
fn by_position(old: &Fleet, new: &Fleet) -> Vec<Widening> {
    let mut found = widenings(old, new);
    let pass = |fleet: &Fleet| fleet.roles["A"].env_pass.clone();
    if pass(old) != pass(new) {
        // Any one will do: the property looks at whether there is one.
        found.extend(widenings(&crate::fleet::base("roles: {A: {}}").fleet(), new));
    }
    found
}

/// Takes what is other for what is wider.
fn any_difference(old: &Fleet, new: &Fleet) -> Vec<Widening> {
    let mut found = widenings(old, new);
    found.extend(widenings(new, old));
    found
}

/// Sees a new mount, but not that one became writable.
fn forgets_modes(old: &Fleet, new: &Fleet) -> Vec<Widening> {
    let mut found = widenings(old, new);
    found.retain(|it| it.from != "ro");
    found
}

/// Compares the entries of a list by their text.
fn only_new_texts(old: &Fleet, new: &Fleet) -> Vec<Widening> {
    let mut found = widenings(old, new);
    let hosts = |fleet: &Fleet| {
        let block = fleet.roles["A"].isolation.clone();
        block.map(|block| block.allow_hosts).unwrap_or_default()
    };
    let more = hosts(new).iter().any(|host| !hosts(old).contains(host));
    if more && found.is_empty() {
        found.extend(any_difference(old, new));
    }
    found
}

fn forgets(dimension: Dimension, old: &Fleet, new: &Fleet) -> Vec<Widening> {
    let mut found = widenings(old, new);
    found.retain(|it| it.dimension != dimension);
    found
}

fn forgets_env_pass(old: &Fleet, new: &Fleet) -> Vec<Widening> {
    forgets(Dimension::EnvPass, old, new)
}

fn forgets_secrets(old: &Fleet, new: &Fleet) -> Vec<Widening> {
    forgets(Dimension::Secrets, old, new)
}

/// Looks at the number of things that a role may do.
fn by_number(old: &Fleet, new: &Fleet) -> Vec<Widening> {
    let (more, less) = (widenings(old, new), widenings(new, old));
    if more.len() > less.len() { more } else { Vec::new() }
}

#[test]
fn reflexivity_finds_a_comparison_by_position() {
    is_reflexive_whatever_the_order_of_lists(by_position).expect_err("a counter-example");
}

#[test]
fn transitivity_finds_a_comparison_by_number() {
    is_transitive(by_number).expect_err("a counter-example");
}

#[test]
fn additions_find_a_forgotten_dimension() {
    reports_what_is_added(forgets_env_pass).expect_err("a counter-example");
    reports_what_is_added(forgets_secrets).expect_err("a counter-example");
}

#[test]
fn removals_find_a_comparison_that_is_no_order() {
    reports_nothing_for_what_is_removed(any_difference).expect_err("a counter-example");
}

#[test]
fn paths_find_a_forgotten_mode() {
    agrees_with_every_path(forgets_modes).expect_err("a counter-example");
}

#[test]
fn endpoints_find_a_comparison_of_texts() {
    agrees_with_every_endpoint(only_new_texts).expect_err("a counter-example");
}
