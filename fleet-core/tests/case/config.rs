//! 07 A: loading the files. A2, A9 and A23 are judged where files and arguments are read.

use fleet_core::config::Layer;
use fleet_core::harness::Harnesses;
use fleet_core::id::RoleName;

use crate::fleet::{HOME, base, lines, names, no_base};

#[test]
fn a1_no_file_is_an_empty_fleet() {
    let fleet = no_base().fleet();
    assert!(fleet.roles.is_empty());
    assert_eq!(fleet.source_files, [format!("{HOME}/fleet.yaml")]);
}

#[test]
fn a3_an_empty_file_is_an_empty_fleet() {
    for text in ["", "\n", "# only a comment\n", "---\n", "{}"] {
        assert!(base(text).fleet().roles.is_empty(), "{text:?}");
    }
}

#[test]
fn a4_a_duplicate_key_names_both_places_at_every_depth() {
    let line = base("roles:\n  A: {}\n  A: {}\n").only();
    names(&line, &["/home/op/fleet.yaml:3:3: ", "`A` is written twice", "fleet.yaml:2:3"]);
    for text in [
        "roles: {}\nroles: {}\n",
        "roles:\n  A:\n    cwd: /x\n    cwd: /y\n",
        "roles:\n  A:\n    isolation:\n      fs: {read: [], read: []}\n",
        "roles:\n  A:\n    harness: command\n    harness_options: {argv: [x], argv: [y]}\n",
    ] {
        names(&base(text).only(), &["is written twice", "see also"]);
    }
    let many = lines(0..100, |index| format!("  R{index}: {{}}\n"));
    names(&base(format!("roles:\n{many}  R7: {{}}\n")).only(), &["fleet.yaml:102:3", ":9:3"]);
}

#[test]
fn a5_no_yaml_is_one_message_with_a_place() {
    let line = base("roles: [oops\n  x: {\n").only();
    names(&line, &["/home/op/fleet.yaml:", "not valid YAML"]);
    let place = line.trim_start_matches("/home/op/fleet.yaml:").split(':').take(2);
    assert!(place.map(str::parse::<u32>).all(|number| number.is_ok()), "{line}");
    names(&base(b"roles:\n  A: \xff\n").only(), &["fleet.yaml:2:6: ", "UTF-8"]);
    names(&base("roles:\n  A: \0\n").only(), &["fleet.yaml:2:6: ", "NUL"]);
}

#[test]
fn a6_the_top_level_is_a_mapping() {
    for text in ["[a]", "hello", "5", "null"] {
        names(&base(text).only(), &["fleet.yaml:1:1: ", "mapping"]);
    }
    names(&base("").drop_in("b.yaml", "[a]").only(), &["fleet.d/b.yaml:1:1: ", "mapping"]);
}

#[test]
fn a7_roles_is_a_mapping() {
    for text in ["roles: [A]", "roles: hello", "roles:"] {
        names(&base(text).only(), &["fleet.yaml:1:", "roles: ", "mapping"]);
    }
}

#[test]
fn a8_a_role_is_a_mapping_or_nothing() {
    names(&base("roles:\n  A: hello\n").only(), &["role 'A': must be a mapping", "`hello`"]);
    names(&base("roles:\n  A: [x]\n").only(), &["role 'A': must be a mapping", "a list"]);
    assert_eq!(base("roles:\n  A:\n  B: {}\n").fleet().roles.len(), 2);
}

#[test]
fn a10_names_of_roles_follow_the_grammar() {
    let long = "a".repeat(65);
    for name in ["'a b'", "'..'", "'${x}'", "_a", "up", "none", &long] {
        let line = base(format!("vars: {{x: y}}\nroles:\n  {name}: {{}}\n")).only();
        names(&line, &["fleet.yaml:3:3: roles: ", "[A-Za-z0-9_-]", "letter or digit"]);
    }
}

#[test]
fn a11_an_unknown_key_names_the_nearest_and_all() {
    let line = base("roles:\n  A:\n    identty: x\n").only();
    names(
        &line,
        &[
            "/home/op/fleet.yaml:3:5: role 'A': identty: unknown key (allowed: ",
            "harness, ",
            "owner_channel",
            "did you mean `identity`?",
        ],
    );
}

#[test]
fn a12_an_unknown_key_at_the_top() {
    let line = base("rolez:\n  A: {}\n").only();
    names(&line, &["fleet.yaml:1:1: rolez: unknown key", "watchdogs", "did you mean `roles`?"]);
}

#[test]
fn a13_an_unknown_key_of_the_defaults_names_the_base_file() {
    let files = base("defaults: {harnes: codex}").drop_in("b.yaml", "roles: {A: {}}");
    names(&files.only(), &["/home/op/fleet.yaml:1:12: defaults.harnes: ", "`harness`"]);
}

#[test]
fn a14_drop_ins_add_roles() {
    let fleet = base("roles: {A: {}}").drop_in("b.yaml", "roles: {B: {}}").fleet();
    let roles: Vec<(&str, &str)> =
        fleet.roles.values().map(|role| (role.name.as_str(), role.source_file.as_str())).collect();
    assert_eq!(roles, [("A", "/home/op/fleet.yaml"), ("B", "/home/op/fleet.d/b.yaml")]);
}

#[test]
fn a15_a_drop_in_holds_only_roles() {
    let lines = base("").drop_in("b.yaml", "defaults: {}\nvars: {}\nrolez: {}\n").refused();
    assert_eq!(lines.len(), 3, "{lines:?}");
    names(&lines[0], &["fleet.d/b.yaml:1:1: defaults: ", "only `roles`"]);
    names(&lines[2], &["fleet.d/b.yaml:3:1: rolez: ", "allowed: roles"]);
}

#[test]
fn a16_a_role_in_two_files_names_both() {
    let line = base("roles: {A: {}}").drop_in("b.yaml", "roles: {A: {}}").only();
    names(&line, &["fleet.d/b.yaml:1:9: role 'A': ", "declared twice", "/home/op/fleet.yaml:1:9"]);
    let line =
        base("").drop_in("b.yaml", "roles: {A: {}}").drop_in("c.yml", "roles: {A: {}}").only();
    names(&line, &["fleet.d/c.yml", "fleet.d/b.yaml"]);
}

#[test]
fn a17_drop_ins_keep_their_order() {
    let fleet =
        base("").drop_in("a.yml", "roles: {Z: {}}").drop_in("b.yaml", "roles: {A: {}}").fleet();
    let roles: Vec<&str> = fleet.roles.keys().map(RoleName::as_str).collect();
    assert_eq!(roles, ["Z", "A"]);
}

#[test]
fn a18_variables_are_replaced() {
    let role =
        base("vars: {a: /x, n: 5}\nroles: {A: {cwd: '${a}/z', mission: '${n} $${a}'}}").role("A");
    assert_eq!(role.cwd.expect("written").as_str(), "/x/z");
    assert_eq!(role.mission.as_deref(), Some("5 ${a}"));
}

#[test]
fn a19_an_unknown_variable_is_an_error_or_in_prose_a_warning() {
    let text = |key: &str| format!("vars: {{home: /x}}\nroles:\n  A:\n    {key}: ${{hone}}/z\n");
    let line = base(text("cwd")).only();
    names(&line, &["fleet.yaml:4:10: role 'A': cwd: ", "${hone}", "allowed: home", "${home}"]);
    let files = base(text("mission"));
    let warnings = files.warnings();
    assert_eq!(warnings.len(), 1);
    names(&warnings[0], &["role 'A': mission: ", "${hone}"]);
    assert_eq!(files.role("A").mission.as_deref(), Some("${hone}/z"));
}

#[test]
fn a20_variables_reach_the_defaults_and_not_each_other() {
    let files = base("vars: {a: /x}\ndefaults: {env: {P: '${a}/p'}}\nroles: {A: {}}");
    assert_eq!(files.role("A").env["P"].expose(), "/x/p");
    let text = "vars: {a: /x, b: '${a}/y'}\nroles:\n  A:\n    ";
    let line = base(format!("{text}cwd: ${{b}}")).only();
    names(&line, &["cwd: ", "${a}", "inside a variable"]);
    let files = base(format!("{text}persona: ${{b}}"));
    assert_eq!(files.warnings().len(), 1);
    assert_eq!(files.role("A").persona.as_deref(), Some("${a}/y"));
}

#[test]
fn a20_a_wrong_type_after_replacement_names_the_variable() {
    let line = base("vars: {n: 5}\nroles: {A: {max_tokens: '${n}'}}").only();
    names(&line, &["max_tokens", "`${n}`"]);
}

const FEATURES: &str = "roles:\n  A: &a {cwd: !!str /x}\n  B: *a\n";

#[test]
fn a21_anchors_aliases_and_tags_are_warnings() {
    let files = base(FEATURES);
    let warnings = files.warnings();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    names(&warnings[0], &["/home/op/fleet.yaml:2:9: ", "anchor"]);
    names(&warnings[1], &["/home/op/fleet.yaml:2:15: ", "tag"]);
    names(&warnings[2], &["/home/op/fleet.yaml:3:6: ", "alias"]);
    assert_eq!(files.role("B").cwd.expect("copied").as_str(), "/x");
    let second = base("roles: {A: {}}\n---\nroles: {B: {}}\n");
    names(&second.warnings()[0], &["fleet.yaml:2:1: ", "second document"]);
    assert_eq!(second.fleet().roles.len(), 1);
}

#[test]
fn a22_strict_mode_refuses_them() {
    let lines = base(FEATURES).strict().refused();
    assert_eq!(lines.len(), 3, "{lines:?}");
    names(&lines[0], &["/home/op/fleet.yaml:2:9: "]);
    names(&base("roles: {}\n---\n{}\n").strict().only(), &["second document"]);
    names(
        &base("roles:\n  ? [a]\n  : {}\n").strict().refused().join("\n"),
        &["a key that is a list"],
    );
}

/// The rest of the table of 01 §1.2: the same in both modes, or a warning that strict refuses.
#[test]
fn a21_a22_every_feature_of_yaml_in_both_modes() {
    for same in [
        "{}",
        "# nothing\n",
        "roles: {A: {mission: \"a\\n  b\"}}",
        "roles:\n  A:\n    mission: |\n      a\n",
        "roles:\n  A:\n    mission: >\n      a\n",
        "roles:\n  A:\n    mission: a\n      b\n",
        "roles: {A: {mission: yes}}",
    ] {
        base(same).strict().fleet();
        assert_eq!(base(same).warnings(), [""; 0], "{same}");
    }
    assert_eq!(base("roles: {A: {mission: on}}").role("A").mission.as_deref(), Some("on"));
    for (odd, kind) in [
        ("tasks: {? [a] : x}", "a key that is a list or mapping"),
        ("tasks: {? {a: b} : x}", "a key that is a list or mapping"),
        ("tasks: {a: &b x}", "an anchor"),
        ("tasks: {a: !!int 5}", "an explicit tag"),
        ("{}\n---\n{}", "a second document"),
        ("{} #\u{85}roles:", "1:5: U+0085 ends a line"),
        ("roles: {A: {mission: \"a\u{2028}b\"}}", "1:24: U+2028 ends a line"),
    ] {
        names(&base(odd).warnings().join("\n"), &["/home/op/fleet.yaml:", kind]);
        names(&base(odd).strict().only(), &["/home/op/fleet.yaml:", kind]);
    }
    for bad in ["a: [", "tasks: {a: 1, a: 2}", "[]", "tasks: {1: x}", "roles: {A: {<<: {cwd: /x}}}"]
    {
        assert_eq!(base(bad).refused(), base(bad).strict().refused(), "{bad}");
    }
}

#[test]
fn keys_are_texts_and_the_merge_key_is_unknown() {
    for key in ["1", "true", "~", "1.5"] {
        let line = base(format!("vars:\n  {key}: x\n")).only();
        names(&line, &["fleet.yaml:2:3: ", "a key must be a text", "quotes"]);
    }
    let lines = base("roles:\n  A: &a {}\n  B:\n    <<: *a\n").refused();
    names(&lines.join("\n"), &["role 'B': <<: unknown key"]);
    let lines = base("roles:\n  A:\n    ? [isolation]\n    : {}\n").refused();
    names(&lines.join("\n"), &["role 'A': […]: unknown key"]);
}

#[test]
fn a24_start_stagger_is_a_number() {
    for value in ["-1", ".inf", ".nan", "1e300"] {
        let line = base(format!("start_stagger_ms: {value}")).only();
        names(&line, &["fleet.yaml:1:19: start_stagger_ms: ", &format!("`{value}`")]);
    }
    names(&base("start_stagger_ms: soon").only(), &["start_stagger_ms", "`soon`"]);
    assert_eq!(base("start_stagger_ms: 250").fleet().start_stagger_ms, 250);
    assert_eq!(base("start_stagger_ms: null").fleet().start_stagger_ms, 0);
}

#[test]
fn a25_wrong_types_name_role_and_key() {
    let lines =
        base("roles:\n  A:\n    cwd: 5\n    env: {X: 1}\n    identity: ''\n    harness: [x]\n")
            .refused();
    assert_eq!(lines.len(), 4, "{lines:?}");
    names(&lines[0], &[":3:10: role 'A': cwd: must be a text", "quotes"]);
    names(&lines[1], &[":4:14: role 'A': env.X: must be a text"]);
    assert!(!lines[1].contains("got"), "values of env are not shown: {}", lines[1]);
    names(&lines[2], &[":5:15: role 'A': identity: "]);
    names(&lines[3], &[":6:14: role 'A': harness: must be a text"]);
}

#[test]
fn a26_a_tilde_is_the_home() {
    let files = base("roles: {A: {cwd: ~/w}, B: {cwd: '~'}}");
    assert_eq!(files.role("A").cwd.expect("written").as_str(), "/home/op/w");
    assert_eq!(files.role("B").cwd.expect("written").as_str(), "/home/op");
    for cwd in ["~other/w", "w", "/a/../b", "/a//b", "./w"] {
        names(&base(format!("roles: {{A: {{cwd: {cwd}}}}}")).only(), &["role 'A': cwd: ", "path"]);
    }
}

#[test]
fn a27_identities_are_unique() {
    let line = base("roles:\n  A: {identity: x}\n  B: {identity: x}\n").only();
    names(&line, &[":3:7: role 'B': identity: ", "role `A`", "see also /home/op/fleet.yaml:2:7"]);
    names(&base("roles: {A: {}, B: {identity: A}}").only(), &["role 'B'", "role `A`"]);
}

#[test]
fn a28_an_empty_isolation_is_an_error() {
    for text in [
        "roles:\n  A:\n    isolation:\n",
        "roles:\n  A:\n    isolation: null\n",
        "defaults:\n  isolation: ~\nroles: {A: {}}\n",
        "roles:\n  A:\n    isolation:\n    cwd: /x\n",
    ] {
        let line = base(text).only();
        names(&line, &["isolation: is empty", "`{}`", "`{backend: none}`"]);
    }
    assert!(base("roles: {A: {isolation: {}}}").role("A").isolation.is_some());
}

#[test]
fn a28_null_is_never_a_value() {
    for key in [
        "harness",
        "session",
        "permissions",
        "identity",
        "cwd",
        "mission",
        "env",
        "env_pass",
        "monitor",
        "worklog",
        "model_chain",
        "max_tokens",
        "oversee",
        "harness_options",
    ] {
        names(&base(format!("roles:\n  A:\n    {key}:\n")).only(), &[":3:5: role 'A': ", key]);
    }
}

#[test]
fn a29_an_unknown_harness_lists_the_known_ones() {
    let line = base("roles:\n  A: {harness: gemini}\n").only();
    names(
        &line,
        &[
            "role 'A': harness: is not a known harness (got `gemini`; allowed: command, claude-code, codex)",
        ],
    );
    names(&base("roles: {A: {harness: comand}}").only(), &["did you mean `command`?"]);
}

#[test]
fn a30_an_unknown_session_lists_both() {
    let line = base("roles:\n  A: {session: screen}\n").only();
    names(&line, &["role 'A': session: ", "`screen`", "tmux, acp"]);
}

#[test]
fn all_problems_come_in_one_report_in_the_order_of_the_files() {
    let lines = base("nope: 1\nroles:\n  A: {cwd: 5}\n")
        .drop_in("a.yaml", "roles:\n  B: {cwd: 5}\n")
        .drop_in("b.yaml", "other: 1\n")
        .refused();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for (line, place) in lines.iter().zip([
        "/home/op/fleet.yaml:1:1: nope",
        "/home/op/fleet.yaml:3:12: role 'A': cwd",
        "/home/op/fleet.d/a.yaml:2:12: role 'B': cwd",
        "/home/op/fleet.d/b.yaml:1:1: other",
    ]) {
        assert!(line.starts_with(place), "{line}");
    }
}

#[test]
fn every_written_value_has_a_place() {
    let text = "defaults:\n  env: {X: d, Y: d}\n  isolation:\n    fs: {read: [/d]}\nroles:\n  A:\n    \
                cwd: /x\n    env: {X: r}\n";
    let fleet = base(text).fleet();
    let at = |path: &str| {
        let (layer, place) = fleet.provenance.lookup(path).expect("written");
        (layer, place.line)
    };
    assert_eq!(at("roles.A.cwd"), (Layer::Role, 7));
    assert_eq!(at("roles.A.env.X"), (Layer::Role, 8));
    assert_eq!(at("roles.A.env.Y"), (Layer::Default, 2));
    assert_eq!(at("roles.A.isolation.fs.read[0]"), (Layer::Default, 4));
    assert_eq!(at("roles.A.isolation.fs.read[9]"), (Layer::Default, 4), "the nearest around it");
    assert_eq!(at("roles.A.mission"), (Layer::Role, 6));
    assert!(fleet.provenance.lookup("policy").is_none());
    let all: Vec<String> = fleet.provenance.iter().map(|(path, _)| path).collect();
    assert!(all.contains(&"roles.A.isolation.fs.read[0]".to_owned()), "{all:?}");
}

/// Options of the defaults are judged also where every role has another harness.
#[test]
fn options_that_no_role_inherits_are_checked_all_the_same() {
    let with = |defaults: &str| {
        format!(
            "defaults: {{{defaults}}}\nroles: {{A: {{harness: command, harness_options: {{argv: [x]}}}}}}\n"
        )
    };
    let of_codex = with("harness: codex, harness_options: {profil: x}");
    let line = base(of_codex).with(Harnesses::built_in()).only();
    names(&line, &["fleet.yaml:1:", "defaults.harness_options.profil: unknown key"]);
    // Whose options these are nobody said, and no harness has this one.
    let line = base(with("harness_options: {profil: x}")).with(Harnesses::built_in()).only();
    names(&line, &["defaults.harness_options.profil: unknown key"]);
    for fine in [
        // What is missing, a role would write.
        "harness: codex, harness_options: {add_dirs: [/x]}",
        "harness_options: {add_dirs: [/x]}",
        "harness_options: {argv: [y]}",
    ] {
        base(with(fine)).with(Harnesses::built_in()).fleet();
    }
}
