//! Shared items of a harness home (01 §2.5).

use fleet_core::harness::HomeSpec;
use fleet_core::harness::shared::SharedItems;
use fleet_core::isolation::{MountMode, MountOrigin};
use fleet_core::test_support::scene::{SPEC, Scene, path};

/// Ends a chain of changes.
fn no<T>(_: &mut T) {}

fn home() -> Scene {
    let mut scene = Scene::new();
    scene.operator_home();
    scene
}

fn found(change: impl FnOnce(&mut Scene)) -> SharedItems {
    let mut scene = home();
    change(&mut scene);
    scene.shared_by(&SPEC)
}

fn names(shared: &SharedItems) -> Vec<&str> {
    shared.items.iter().map(|item| item.name.as_str()).collect()
}

#[track_caller]
fn absent(shared: &SharedItems, name: &str, words: &str) {
    assert!(shared.get(name).is_none(), "{name} is shared: {shared:#?}");
    let reason = shared.absent.iter().find(|item| item.name == name).expect("it is named");
    assert!(reason.reason.contains(words), "{reason:?}");
}

#[test]
fn every_item_is_found_and_linked_under_its_own_name() {
    let shared = found(|_| ());
    let all =
        ["CLAUDE.md", "plugins", "rules/a.rules", "rules/b.rules", ".credentials.json", ".agents"];
    assert_eq!(names(&shared), all);
    assert_eq!(shared.home, Some(path("/home/u/.claude")));
    assert!(shared.absent.is_empty());
    let rule = shared.get("rules/a.rules").expect("found");
    assert_eq!(rule.target, path("/home/u/.claude/rules/a.rules"));
    assert_eq!((rule.link.as_deref(), rule.login), (Some("rules/a.rules"), false));
    assert!(shared.get(".credentials.json").is_some_and(|item| item.login));
    let agents = shared.get(".agents").expect("found");
    assert_eq!((&agents.link, &agents.destination), (&None, &path("/home/u/.agents")));
}

#[test]
fn an_item_behind_a_link_that_an_agent_can_change_is_left_out() {
    let behind = |s: &mut Scene| {
        s.tree.file("/home/u/dots/team/notes", "rules").link("/home/u/dots/c", "team");
        s.tree.file("/home/u/lib/notes", "private").remove("/home/u/.claude/CLAUDE.md");
        s.tree.link("/home/u/.claude/CLAUDE.md", "/home/u/dots/c/notes");
        s.tree.remove("/home/u/dots/c").link("/home/u/dots/c", "/home/u/lib");
    };
    let shared = found(|s| {
        behind(s);
        s.agent_dirs = vec![path("/home/u/dots")];
    });
    absent(&shared, "CLAUDE.md", "where an agent may write");
    // The control: the same links, where no agent writes.
    assert!(found(behind).get("CLAUDE.md").is_some());
}

#[test]
fn links_of_the_operator_are_followed_to_harmless_places() {
    let shared = found(|s| {
        s.tree
            .remove("/home/u/.claude/CLAUDE.md")
            .link("/home/u/.claude/CLAUDE.md", "/home/u/notes.txt");
        s.tree.remove("/home/u/.agents").link("/home/u/.agents", "/home/u/lib");
    });
    let item = shared.get("CLAUDE.md").expect("found");
    assert_eq!(
        (&item.target, &item.destination),
        (&path("/home/u/notes.txt"), &path("/home/u/notes.txt"))
    );
    let agents = shared.get(".agents").expect("found");
    assert_eq!(
        (&agents.target, &agents.destination),
        (&path("/home/u/lib"), &path("/home/u/.agents"))
    );
    // The whole home elsewhere.
    let shared = found(|s| {
        s.tree.remove("/home/u/.claude").link("/home/u/.claude", "/data/dots");
        s.tree.file("/data/dots/CLAUDE.md", "x").file("/data/dots/history.jsonl", "x");
    });
    assert_eq!(names(&shared), ["CLAUDE.md", ".agents"]);
    assert_eq!(shared.items[0].target, path("/data/dots/CLAUDE.md"));
}

#[test]
fn links_to_what_is_not_shared_are_not_followed() {
    for (target, words) in [
        ("/home/u/.claude/history.jsonl", "is not shared"),
        ("/home/u/.claude/.credentials.json", "is not shared"),
        ("/home/u/.ssh/id_ed25519", "forbidden path"),
        ("/home/u/.codex/auth.json", "forbidden path"),
        ("/home/u/.ours-fleet/agents/B/x", "does not exist"),
        ("/home/u/absent", "does not exist"),
        ("/home/u/lib", "is not a regular file"),
    ] {
        let shared = found(|s| {
            s.tree.remove("/home/u/.claude/CLAUDE.md").link("/home/u/.claude/CLAUDE.md", target);
        });
        absent(&shared, "CLAUDE.md", words);
    }
    for target in ["/home/u/.claude/projects", "/home/u/.codex", "/home/u", "/home/u/.ssh"] {
        let shared = found(|s| {
            s.tree.remove("/home/u/.claude/plugins").link("/home/u/.claude/plugins", target);
        });
        absent(
            &shared,
            "plugins",
            if target.contains("projects") { "is not" } else { "forbidden" },
        );
    }
    // A second name of a key, which no path shows.
    let shared = found(|s| {
        s.tree.remove("/home/u/.claude/CLAUDE.md");
        s.tree.hard_link("/home/u/.ssh/id_ed25519", "/home/u/.claude/CLAUDE.md");
    });
    absent(&shared, "CLAUDE.md", "id_ed25519");
}

#[test]
fn what_is_missing_of_another_kind_or_of_others_is_named() {
    let shared = found(|s| {
        s.tree.remove("/home/u/.claude/plugins").file("/home/u/.claude/plugins", "x");
        s.tree.remove("/home/u/.claude/.credentials.json");
        s.tree.dir("/home/u/.claude/rules/d").file("/home/u/.claude/rules/.hidden", "x");
        s.tree.set_uid(7).file("/home/u/.claude/CLAUDE.md", "x");
    });
    assert_eq!(names(&shared), ["rules/a.rules", "rules/b.rules", ".agents"]);
    absent(&shared, "plugins", "is not a directory");
    absent(&shared, ".credentials.json", "does not exist");
    absent(&shared, "rules/d", "is not a regular file");
    absent(&shared, "CLAUDE.md", "belongs to uid 7");
}

#[test]
fn a_path_that_the_operator_forbids_is_not_shared() {
    let shared = found(|s| s.forbid_paths.push(path("/home/u/.claude/plugins")));
    absent(&shared, "plugins", "policy.forbid_paths");
    let shared = found(|s| s.forbid_paths.push(path("/home/u/.claude")));
    assert_eq!(names(&shared), [".agents"]);
}

/// A home whose items a role of another harness asks for, or one that spans everything, opens nothing.
#[test]
fn a_home_of_another_harness_stays_closed() {
    const OTHER: HomeSpec = HomeSpec { operator: "dots", ..SPEC };
    let mut scene = home();
    scene.tree.link("/home/u/plugins", "/home/u/.codex");
    scene.tree.link("/home/u/CLAUDE.md", ".claude/CLAUDE.md");
    scene.tree.link("/home/u/dots", "/home/u");
    let shared = scene.shared_by(&OTHER);
    assert_eq!(names(&shared), [".agents"], "{shared:#?}");
}

#[test]
fn mounts_are_read_only_at_their_own_places() {
    let mut scene = home();
    scene.share();
    let policy = scene.resolve().expect("accepted");
    for at in
        [".claude/CLAUDE.md", ".claude/plugins/p", ".claude/.credentials.json", ".agents/skills"]
    {
        let at = path(&format!("/home/u/{at}"));
        let mount = policy.covering(&at).expect("mounted");
        assert_eq!(mount.mode, MountMode::ReadOnly, "{at}");
        assert!(matches!(mount.origin, MountOrigin::SharedItem { .. }));
    }
    for hidden in
        [".claude/history.jsonl", ".claude/projects/p", ".codex/auth.json", ".claude.json"]
    {
        assert!(policy.covering(&path(&format!("/home/u/{hidden}"))).is_none(), "{hidden}");
    }
}

#[test]
fn a_role_may_not_mount_over_around_or_inside_them() {
    type Change = fn(&mut Scene);
    let changes: &[Change] = &[
        |s| no(s.write("/home/u/.claude/plugins")),
        |s| no(s.read("/home/u/.claude/CLAUDE.md")),
        |s| no(s.read("/home/u/.claude/history.jsonl")),
        |s| no(s.write("/data/dots/shared")),
        |s| no(s.write("/data/dots")),
        |s| no(s.cwd("/data")),
        |s| no(s.secret("/home/u/notes.txt", "/data/dots/shared/x")),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut scene = home();
        scene.tree.remove("/home/u/.claude/plugins").dir("/data/dots/shared");
        scene
            .tree
            .file("/data/dots/shared/x", "")
            .link("/home/u/.claude/plugins", "/data/dots/shared");
        scene.share();
        assert!(scene.resolve().is_ok(), "the control");
        change(&mut scene);
        assert!(scene.resolve().is_err(), "change {number}");
    }
}
