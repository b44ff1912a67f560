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

#[test]
fn follow_the_list_that_is_written() {
    let policy = accepted(|s| {
        project(s);
        s.block.protect = Some(Vec::new());
    });
    assert_eq!(shown(&policy).len(), 1);
    let policy = accepted(|s| {
        project(s);
        s.tree.file("/home/u/work/a/b/Makefile", "all:");
        s.block.protect = Some(vec!["a/b/Makefile".to_owned()]);
    });
    assert_eq!(
        shown(&policy).iter().map(|(at, _)| at.as_str()).collect::<Vec<_>>(),
        ["/home/u/work", "/home/u/work/a", "/home/u/work/a/b", "/home/u/work/a/b/Makefile"]
    );
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
