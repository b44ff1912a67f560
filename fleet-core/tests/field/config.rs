//! 08 A2 and A7: names that a multiplexer rewrites, typos that switch protection off.

use crate::fleet::{base, names};

#[test]
fn a2_names_that_a_multiplexer_rewrites_are_refused_at_load() {
    let long = "a".repeat(300);
    for name in ["a.b", "a:b", "-q", "=x", "$1", &long, "日本", "a ", ""] {
        let line = base(format!("roles:\n  \"{name}\": {{}}\n")).only();
        names(&line, &["/home/op/fleet.yaml:2:3: roles: ", "[A-Za-z0-9_-]"]);
    }
}

/// What an unknown key may hold.
const VALUES: &[&str] = &["deny", "5", "true", "null", "''", "[a]", "{a: b}", "[]", "{}"];

#[test]
fn a7_a_typo_never_switches_protection_off() {
    for value in VALUES {
        for (text, place, key, near) in [
            (
                "roles:\n  A:\n    isolaton: @\n",
                "fleet.yaml:3:5: role 'A'",
                "isolaton",
                "`isolation`",
            ),
            (
                "roles:\n  A:\n    isolation: {netwrok: @}\n",
                "fleet.yaml:3:17: role 'A'",
                "isolation.netwrok",
                "`network`",
            ),
            (
                "roles:\n  A:\n    harness_options: {isolation: @}\n",
                "fleet.yaml:3:23: role 'A'",
                "harness_options.isolation",
                "directly below the role",
            ),
            ("rolez: @\n", "fleet.yaml:1:1", "rolez", "`roles`"),
            ("defaults: {isolaton: @}\n", "fleet.yaml:1:12", "defaults.isolaton", "`isolation`"),
            ("polcy: @\n", "fleet.yaml:1:1", "polcy", "`policy`"),
            ("isolation: @\n", "fleet.yaml:1:1", "isolation", "directly below the role"),
        ] {
            let text = text.replace('@', value);
            let lines = base(&text).refused();
            let line = lines.iter().find(|line| line.contains("unknown key"));
            let line = line.unwrap_or_else(|| panic!("{text}: {lines:?}"));
            names(line, &[&format!("/home/op/{place}: {key}: "), near]);
            if key == "rolez" || text.starts_with("defaults") {
                continue;
            }
            let drop_in = base("").drop_in("b.yaml", &text).refused();
            assert!(drop_in.iter().any(|line| line.contains("fleet.d/b.yaml:")), "{drop_in:?}");
        }
    }
}

#[test]
fn a7_a_scalar_or_list_where_nothing_belongs_is_refused() {
    for text in ["isolation\n", "- isolation\n", "roles: {A: {}}\nisolation\n"] {
        base(text).refused();
    }
}
