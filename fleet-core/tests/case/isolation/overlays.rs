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
fn a8_a_linked_worktree_is_refused_until_its_repository_is_granted() {
    let worktree = |s: &mut Scene| {
        s.tree.dir("/home/u/main/.git/hooks").file("/home/u/main/.git/config", "[core]");
        s.tree.file("/home/u/main/.git/worktrees/w/commondir", "../..\n");
        s.tree.file("/home/u/work/.git", "gitdir: /home/u/main/.git/worktrees/w\n");
        s.cwd("/home/u/work");
    };
    let problem = refusal(worktree);
    assert_eq!(problem.path, "cwd");
    assert!(problem.to_string().contains("add /home/u/main/.git to isolation.fs.write"));
    let policy = accepted(|s| {
        worktree(s);
        s.write("/home/u/main/.git");
    });
    for (below, mode) in [
        ("objects", MountMode::ReadWrite),
        ("hooks/pre-commit", MountMode::ReadOnly),
        ("config", MountMode::ReadOnly),
        ("worktrees/w/commondir", MountMode::ReadOnly),
        ("worktrees/w/index", MountMode::ReadWrite),
    ] {
        let at = path("/home/u/main/.git").join(below).expect("a path");
        assert_eq!(policy.covering(&at).map(|mount| mount.mode), Some(mode), "{below}");
    }
    let pointer = policy.covering(&path("/home/u/work/.git")).expect("mounted");
    assert_eq!(pointer.mode, MountMode::ReadOnly, "else the agent points git elsewhere");
    let policy = accepted(|s| {
        worktree(s);
        s.tree.remove("/home/u/main/.git/hooks");
        s.write("/home/u/main/.git");
    });
    assert_eq!(policy.ephemeral_dirs, ["/home/u/main/.git/hooks"]);
    // A submodule, with a relative pointer.
    let problem = refusal(|s| {
        s.tree.dir("/home/u/super/.git/modules/m");
        s.tree.file("/home/u/super/m/.git", "gitdir: ../.git/modules/m");
        s.cwd("/home/u/super/m");
    });
    assert!(problem.to_string().contains("/home/u/super/.git/modules/m"), "{problem}");
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
