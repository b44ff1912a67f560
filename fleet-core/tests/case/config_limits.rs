//! 01 §1.2: hostile files end in an error, soon and in little memory. Nothing here is timed: a test
//! that does not end is the failure.

use fleet_core::config::emit::write_checked;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fleet::{base, lines, names};
use crate::property::check;

const MIB: usize = 1024 * 1024;

#[test]
fn a_file_has_at_most_4_mib() {
    let comment = |bytes: usize| "#".repeat(bytes);
    base(comment(4 * MIB)).fleet();
    names(&base(comment(4 * MIB + 1)).only(), &["/home/op/fleet.yaml: ", "4 MiB"]);
}

#[test]
fn nesting_ends_at_32_levels() {
    let nested =
        |levels: usize| format!("tasks: {{a: {}{}}}", "[".repeat(levels), "]".repeat(levels));
    base(nested(30)).fleet();
    names(&base(nested(31)).only(), &["fleet.yaml:1:", "32 levels"]);
    // The parser itself gives up first.
    names(&base("[".repeat(100_000)).only(), &["recursion limit"]);
    let deep = lines(0..2000, |level| format!("{}a:\n", " ".repeat(level)));
    names(&base(deep).only(), &["32 levels"]);
}

#[test]
fn values_end_at_500_000() {
    let list = |items: usize| format!("tasks: {{a: [{}]}}", "1,".repeat(items));
    base(list(499_000)).fleet();
    names(&base(list(500_001)).only(), &["500000 values"]);
}

/// An anchored list.
fn entry(level: usize, items: &str) -> String {
    format!("  a{level}: &a{level} [{items}]\n")
}

#[test]
fn aliases_cost_what_they_name() {
    let hundred = format!("tasks:\n  a: &a x\n  b: [{}]\n", "*a,".repeat(100));
    assert_eq!(base(hundred).warnings().len(), 101);
    let more = format!("tasks:\n  a: &a x\n  b: [{}]\n", "*a,".repeat(101));
    names(&base(more).refused().join("\n"), &["more than 100 aliases"]);

    // 80 aliases that stand for 10^9 values and more.
    let mut bomb = format!("tasks:\n  a0: &a0 [{}]\n", "x,".repeat(10));
    for level in 1..=10 {
        let names = format!("*a{},", level - 1).repeat(8);
        bomb.push_str(&entry(level, &names));
    }
    names(&base(bomb).refused().join("\n"), &["500000 values"]);

    // Levels add up too.
    let mut tower = "tasks:\n  a0: &a0 [x]\n".to_owned();
    for level in 1..=40 {
        tower.push_str(&entry(level, &format!("*a{}", level - 1)));
    }
    names(&base(tower).refused().join("\n"), &["32 levels"]);
    names(&base("tasks: &a [*a]\n").refused().join("\n"), &["inside the value that it names"]);
    names(&base("tasks: *nope\n").only(), &["not valid YAML", "anchor"]);
}

#[test]
fn large_files_of_every_odd_kind_end() {
    let fill = |part: &str| part.repeat(2 * MIB / part.len());
    for part in [
        "[", "{", "- ", "? ", ": ", "a: ", "&a ", "*a ", "!a ", "'", "\"", "\\", "|\n", "${",
        "$${a}", "\n", "\t", "%a\n", "---\n", "é", ",", "[],", "a\n", " ", "<<: ",
    ] {
        base(fill(part)).load();
        base(format!("roles: {{A: {{mission: '{}'}}}}", fill(part).replace(['\'', '\n'], "")))
            .load();
    }
    let keys = lines(0..100_000, |index| format!("k{index}: 1\n"));
    names(&base(&keys).refused().join("\n"), &["98000 more problems are not listed"]);
    let anchors = lines(0..100_000, |index| format!("- &a{index} x\n"));
    base(format!("tasks: {{a: 1}}\nrooms:\n  r:\n{anchors}")).load();
}

#[test]
fn text_cannot_be_repeated_without_end() {
    let long = "x".repeat(MIB);
    let aliases = format!("tasks:\n  a: &a {long}\n  b: [{}]\n", "*a,".repeat(20));
    names(&base(aliases).refused().join("\n"), &["16 MiB"]);
    let uses = "'${a}',".repeat(20);
    let refused = base(format!("vars: {{a: {long}}}\ntasks: {{b: [{uses}]}}")).refused();
    names(&refused.join("\n"), &["16 MiB"]);
    let roles = lines(0..20, |index| format!("  R{index}:\n"));
    let refused = base(format!("defaults: {{env: {{A: {long}}}}}\nroles:\n{roles}")).refused();
    names(&refused.join("\n"), &["fleet.yaml:1:", "20 roles cannot inherit so much"]);
    let roles = lines(0..20_000, |index| format!("  R{index}:\n"));
    let paths = "/a,".repeat(1000);
    let defaults = format!("defaults: {{isolation: {{fs: {{read: [{paths}]}}}}}}\n");
    names(&base(format!("{defaults}roles:\n{roles}")).only(), &["20000 roles cannot inherit"]);
}

#[test]
fn many_variables_and_many_mistakes_end() {
    let vars = lines(0..60_000, |index| format!("  v{index}: x\n"));
    let uses = lines(0..60_000, |index| format!("    - ${{u{index}}}\n"));
    let refused = base(format!("vars:\n{vars}tasks:\n  a:\n{uses}")).refused();
    assert_eq!(refused.len(), 2001);
}

#[test]
fn many_roles_load() {
    let roles = lines(0..5_000, |index| {
        format!("  R{index}: {{isolation: {{fs: {{read: [/a, /b, /c]}}}}}}\n")
    });
    assert_eq!(base(format!("roles:\n{roles}")).fleet().roles.len(), 5_000);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[-?:,#&*!|>'\"%@`{}\\[\\] ~a5.\n\t]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z: #'-]{0,5}", inner, 0..5).prop_map(|map| json!(map)),
        ]
    })
}

/// What is written is read back as the same or refused; ordinary text is not refused.
#[test]
fn written_yaml_reads_back() {
    let text =
        write_checked(&json!({"a": ["x: y", "- z", "null", "5", "é\n  b\n", ""], "b": null}));
    assert!(text.expect("ordinary").contains("'5'"));
    check(&json_value(), |value| {
        if let Ok(text) = write_checked(&json!({"tasks": {"a": value}})) {
            prop_assert!(base(text).load().fleet.is_some());
        }
        Ok(())
    })
    .expect("holds");
}
