//! Project overlays (01 §2.3), field reports A8 and A9.

use super::*;

fn project(s: &mut Scene) {
    s.tree.file("/home/u/work/.git/config", "[core]").dir("/home/u/work/.git/hooks");
    s.tree.file("/home/u/work/.mcp.json", "{}");
    s.cwd("/home/u/work");
}

fn shown(policy: &fleet_core::isolation::IsolationPolicy) -> Vec<(String, MountMode)> {
    policy
        .mounts
        .iter()
        .filter(|m| m.destination.is_within(&path("/home/u/work")))
        .map(|m| (m.destination.to_string(), m.mode))
        .collect()
}

#[test]
fn cover_what_is_present_and_hold_its_parents() {
    let policy = accepted(project);
    let (rw, ro) = (MountMode::ReadWrite, MountMode::ReadOnly);
    let expected = [
        ("/home/u/work", rw),
        ("/home/u/work/.mcp.json", ro),
        ("/home/u/work/.git", rw),
        ("/home/u/work/.git/config", ro),
        ("/home/u/work/.git/hooks", ro),
    ];
    assert_eq!(shown(&policy), expected.map(|(at, mode)| (at.to_owned(), mode)));
    let risks = policy.residual_risks.join("\n");
    assert!(risks.contains(".claude") && risks.contains(".codex"), "{risks}");
    assert!(policy.ephemeral_dirs.is_empty());
}

#[test]
fn a9_absent_hooks_are_made_for_the_launch_only() {
    let policy = accepted(|s| {
        project(s);
        s.tree.remove("/home/u/work/.git/hooks");
    });
    assert_eq!(policy.ephemeral_dirs, ["/home/u/work/.git/hooks"]);
    let hooks = policy.covering(&path("/home/u/work/.git/hooks")).expect("mounted");
    assert_eq!((hooks.mode, hooks.identity), (MountMode::ReadOnly, None));
    assert_eq!(policy.missing_sources().count(), 0);
    // No repository: nothing is made.
    let policy = accepted(|s| no(s.cwd("/home/u/work")));
    assert!(policy.ephemeral_dirs.is_empty());
}

/// Who protects one more file must not lose the protection of the others.
#[test]
fn a_written_list_adds_to_the_default_one() {
    let default = shown(&accepted(project));
    let more = accepted(|s| {
        project(s);
        s.tree.file("/home/u/work/a/b/Makefile", "all:");
        s.block.protect = Some(vec!["a/b/Makefile".to_owned()]);
    });
    let at = |below: &str| format!("/home/u/work/{below}");
    let mut expected = default.clone();
    expected.push((at("a"), MountMode::ReadWrite));
    expected.push((at("a/b"), MountMode::ReadWrite));
    expected.push((at("a/b/Makefile"), MountMode::ReadOnly));
    let (mut found, mut wanted) = (shown(&more), expected);
    found.sort_by_key(|(at, _)| at.clone());
    wanted.sort_by_key(|(at, _)| at.clone());
    assert_eq!(found, wanted);
    // A default that is written as well, what lies around one, and what lies in one.
    for written in [".git/config", ".mcp.json", ".git", ".git/hooks/pre-commit"] {
        let policy = accepted(|s| {
            project(s);
            s.tree.file("/home/u/work/.git/hooks/pre-commit", "");
            s.block.protect = Some(vec![written.to_owned()]);
        });
        for below in [".git/config", ".git/hooks/pre-commit", ".git/hooks/new", ".mcp.json"] {
            let mount = policy.covering(&path(&at(below))).expect("mounted");
            assert_eq!(mount.mode, MountMode::ReadOnly, "{written}: {below}");
        }
        let risks = policy.residual_risks.join("\n");
        assert!(risks.contains(": .claude, .codex"), "{risks}");
    }
}

#[test]
fn an_empty_list_protects_nothing_and_says_so() {
    let nothing = |s: &mut Scene| {
        project(s);
        s.block.protect = Some(Vec::new());
    };
    let policy = accepted(nothing);
    assert_eq!(shown(&policy).len(), 1);
    assert_eq!(policy.residual_risks.len(), 1, "{:?}", policy.residual_risks);
    for default in fleet_core::isolation::resolve::DEFAULT_PROTECT {
        assert!(policy.residual_risks[0].contains(default), "{:?}", policy.residual_risks);
    }
    let reading = accepted(|s| {
        nothing(s);
        s.cwd_mode = MountMode::ReadOnly;
    });
    assert!(reading.residual_risks.is_empty(), "{:?}", reading.residual_risks);
}

#[test]
fn what_is_no_path_below_the_cwd_is_refused() {
    for bad in ["../x", "/etc/x", "a//b", "", "a/./b"] {
        refused(
            |s| {
                project(s);
                s.block.protect = Some(vec![bad.to_owned()]);
            },
            "isolation.protect[0]",
            &["not a path below the cwd"],
        );
    }
}

#[test]
fn never_go_through_links() {
    let linked = |s: &mut Scene| {
        project(s);
        s.tree.remove("/home/u/work/.mcp.json").link("/home/u/work/.mcp.json", "/home/u/lib");
    };
    let policy = accepted(linked);
    assert!(policy.mounts.iter().all(|mount| mount.source != path("/home/u/lib")));
    assert!(policy.residual_risks.iter().any(|risk| risk.contains("symbolic link")));
    refused(
        |s| {
            linked(s);
            s.block.protect = Some(vec![".mcp.json".to_owned()]);
        },
        "isolation.protect[0]",
        &["symbolic link"],
    );
}

#[test]
fn a_repository_that_sends_git_elsewhere_is_refused() {
    let policy = accepted(project);
    let named = |risk: &&String| risk.contains("/home/u/work/.git/commondir");
    assert_eq!(policy.residual_risks.iter().filter(named).count(), 1, "it can appear meanwhile");
    for target in [None, Some("nowhere")] {
        let planted = |s: &mut Scene| {
            project(s);
            match target {
                None => s.tree.file("/home/u/work/.git/commondir", "../evil"),
                Some(target) => s.tree.link("/home/u/work/.git/commondir", target),
            };
        };
        refused(planted, "cwd", &["/home/u/work/.git/commondir", "kept elsewhere"]);
        // Read-only it was not the agent that planted it.
        accepted(|s| {
            planted(s);
            s.cwd_mode = MountMode::ReadOnly;
        });
    }
}
