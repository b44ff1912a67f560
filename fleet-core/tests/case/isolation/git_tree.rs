//! What git obeys inside the repository of the working directory, beside its own configuration.

use super::*;

const GIT: &str = "/home/u/work/.git";

/// A repository with a linked worktree, a submodule, and one with a name of two parts that has another.
fn project(s: &mut Scene) {
    s.tree.dir(&format!("{GIT}/hooks")).file(&format!("{GIT}/config"), "[core]\n\tbare = false\n");
    s.tree.file(&format!("{GIT}/worktrees/w/commondir"), "../..\n");
    s.tree.file(&format!("{GIT}/worktrees/w/gitdir"), "/home/u/work/trees/w/.git\n");
    s.tree.file("/home/u/work/trees/w/.git", "gitdir: ../../.git/worktrees/w\n");
    for (module, up) in [
        ("m", "../../../m"),
        ("a/b", "../../../../a/b"),
        ("a/b/modules/n", "../../../../../../a/b/n"),
    ] {
        let at = format!("{GIT}/modules/{module}");
        for name in ["objects/ab", "refs/heads", "logs", "hooks"] {
            s.tree.dir(&format!("{at}/{name}"));
        }
        s.tree.file(&format!("{at}/config"), format!("[core]\n\tworktree = {up}\n"));
        s.tree.file(&format!("{at}/HEAD"), "ref: refs/heads/main\n");
    }
    for tree in ["m", "a/b", "a/b/n"] {
        s.tree.file(&format!("/home/u/work/{tree}/.git"), "gitdir: x\n");
    }
    s.cwd("/home/u/work");
}

#[track_caller]
fn modes(policy: &fleet_core::isolation::IsolationPolicy, expected: &[(&str, MountMode)]) {
    for (below, mode) in expected {
        let at = path("/home/u/work").join(below).expect("a path");
        assert_eq!(policy.covering(&at).map(|mount| mount.mode), Some(*mode), "{at}");
    }
}

const RW: MountMode = MountMode::ReadWrite;
const RO: MountMode = MountMode::ReadOnly;

#[test]
fn each_part_with_a_configuration_of_its_own_is_protected() {
    let expected = |mode| {
        [
            (".git/modules/m/config", mode),
            (".git/modules/m/hooks/x", mode),
            (".git/modules/a/b/config", mode),
            (".git/modules/a/b/hooks/x", mode),
            (".git/modules/a/b/modules/n/config", mode),
            (".git/worktrees/w/commondir", mode),
            (".git/worktrees/w/gitdir", mode),
            ("m/.git", mode),
            ("a/b/.git", mode),
            ("a/b/n/.git", mode),
            ("trees/w/.git", mode),
            // What work in a submodule or a worktree writes.
            (".git/modules/m/index", RW),
            (".git/modules/m/HEAD", RW),
            (".git/modules/m/objects/ab", RW),
            (".git/modules/m/refs/heads", RW),
            (".git/modules/m/logs", RW),
            (".git/modules/new", RW),
            (".git/worktrees/w/index", RW),
            (".git/index", RW),
        ]
    };
    let policy = accepted(project);
    modes(&policy, &expected(RO));
    // No way around by renaming what lies above.
    for held in [".git/modules", ".git/modules/m", ".git/modules/a", ".git/worktrees/w", "m", "a/b"]
    {
        let at = path("/home/u/work").join(held).expect("a path");
        assert!(policy.mounts.iter().any(|mount| mount.destination == at), "{held}");
    }
    let risk = policy.residual_risks.iter().find(|risk| risk.contains("in one of these"));
    let risk = risk.expect("a `commondir` can be made");
    assert!(risk.contains("modules/m") && risk.contains("modules/a/b/modules/n"), "{risk}");
    // The control.
    let open = accepted(|s| {
        project(s);
        s.block.protect = Some(Vec::new());
    });
    modes(&open, &expected(RW));
}

/// A directory is a repository of its own, not a pointer to one.
#[test]
fn only_a_file_is_a_pointer() {
    let policy = accepted(|s| {
        project(s);
        s.tree.remove("/home/u/work/m/.git");
        s.tree.dir("/home/u/work/m/.git");
    });
    modes(&policy, &[("m/.git", RW), ("a/b/.git", RO)]);
}

#[test]
fn hooks_of_a_submodule_are_made_for_the_launch() {
    let policy = accepted(|s| {
        project(s);
        s.tree.remove(&format!("{GIT}/modules/m/hooks"));
    });
    assert_eq!(policy.ephemeral_dirs, [format!("{GIT}/modules/m/hooks")]);
}

/// An agent that could hide a submodule from fleet would have its configuration at the next launch.
#[test]
fn what_cannot_be_looked_through_is_refused() {
    let words = &["cannot be looked through"];
    for hidden in ["modules", "modules/a", "worktrees", "worktrees/w"] {
        let hide = |s: &mut Scene| {
            project(s);
            s.tree.deny(&format!("{GIT}/{hidden}"));
        };
        refused(hide, "cwd", words);
    }
    let crowd = |s: &mut Scene, count: usize| {
        project(s);
        for number in 0..count {
            s.tree.dir(&format!("{GIT}/modules/x/{number}"));
        }
    };
    accepted(|s| crowd(s, 300));
    refused(|s| crowd(s, 4200), "cwd", words);
    let crowd_of_files = |s: &mut Scene| {
        project(s);
        for number in 0..4200 {
            s.tree.file(&format!("{GIT}/modules/x/{number}"), "");
        }
    };
    refused(crowd_of_files, "cwd", words);
    // Over several directories, to the last one that is allowed.
    let spread = |s: &mut Scene, more: usize| {
        s.tree.dir(&format!("{GIT}/hooks")).file(&format!("{GIT}/config"), "");
        for number in 0..2047 {
            s.tree.dir(&format!("{GIT}/modules/a/{number}"));
            s.tree.dir(&format!("{GIT}/modules/b/{number}"));
        }
        for number in 0..more {
            s.tree.dir(&format!("{GIT}/modules/b/more{number}"));
        }
        s.cwd("/home/u/work");
    };
    accepted(|s| spread(s, 0));
    refused(|s| spread(s, 1), "cwd", words);
    refused(|s| spread(s, 1000), "cwd", words);
    let deep = |s: &mut Scene, levels: usize| {
        project(s);
        s.tree.dir(&format!("{GIT}/modules/{}", vec!["d"; levels].join("/")));
    };
    accepted(|s| deep(s, 32));
    refused(|s| deep(s, 33), "cwd", words);
    // Said once, and beside what is wrong elsewhere.
    let two = |s: &mut Scene| {
        project(s);
        s.tree.deny(&format!("{GIT}/modules")).deny(&format!("{GIT}/worktrees"));
    };
    refused(two, "cwd", words);
    let problems = scene(|s| {
        two(s);
        s.tree.file_mode("/home/u/open", "", 0o666);
        s.secret("/home/u/open", "/run/secrets/open");
    });
    let problems = problems.resolve().expect_err("must be refused");
    let keys: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert!(keys.contains(&"cwd") && keys.contains(&"isolation.secrets[0]"), "{problems:#?}");
    let redirected = |s: &mut Scene| {
        project(s);
        s.tree.file(&format!("{GIT}/modules/m/commondir"), "../evil");
    };
    refused(redirected, "cwd", &["modules/m/commondir", "kept elsewhere"]);
}

#[test]
fn a_link_in_the_way_is_named() {
    for name in ["modules/l", "worktrees/l"] {
        let policy = accepted(|s| {
            project(s);
            s.tree.dir("/home/u/work/evil").link(&format!("{GIT}/{name}"), "/home/u/work/evil");
        });
        let named = format!("`{GIT}/{name}` is a symbolic link");
        assert!(policy.residual_risks.iter().any(|risk| risk.contains(&named)), "{named}");
    }
    // Also where all of them would be.
    for name in ["modules", "worktrees"] {
        let policy = accepted(|s| {
            s.tree.dir(&format!("{GIT}/hooks")).file(&format!("{GIT}/config"), "");
            s.tree.dir("/home/u/work/evil/d").link(&format!("{GIT}/{name}"), "/home/u/work/evil");
            s.cwd("/home/u/work");
        });
        let named = format!("`{GIT}/{name}` is a symbolic link");
        assert!(policy.residual_risks.iter().any(|risk| risk.contains(&named)), "{named}");
    }
}

#[test]
fn configuration_of_each_worktree_is_covered_or_asked_for() {
    let per_worktree = |s: &mut Scene| {
        project(s);
        s.tree.file(&format!("{GIT}/config"), "[extensions]\n\tworktreeConfig = true\n");
        s.tree.file(&format!("{GIT}/config.worktree"), "");
    };
    let problem = refusal(per_worktree);
    let asked = format!("touch {GIT}/worktrees/w/config.worktree");
    assert!(problem.to_string().contains(&asked), "{problem}");
    let policy = accepted(|s| {
        per_worktree(s);
        s.tree.file(&format!("{GIT}/worktrees/w/config.worktree"), "");
    });
    modes(&policy, &[(".git/config.worktree", RO), (".git/worktrees/w/config.worktree", RO)]);
}

#[test]
fn files_that_a_configuration_includes_are_protected() {
    let config = "[include]\n\tpath = ../team.gitconfig\n\tpath = /data/x\n\tpath = ../absent\n";
    let policy = accepted(|s| {
        project(s);
        s.tree.file(&format!("{GIT}/config"), config);
        s.tree.file("/home/u/work/team.gitconfig", "[include]\npath = more/rest\n");
        s.tree.file("/home/u/work/more/rest", "[core]\nfsmonitor = tools/watch\n");
        s.tree.file("/home/u/work/tools/watch", "");
    });
    modes(&policy, &[("team.gitconfig", RO), ("more/rest", RO), ("more/other", RW)]);
    let risks = policy.residual_risks.join("\n");
    assert!(
        risks.contains("includes `/home/u/work/absent`, which the agent can create"),
        "{risks}"
    );
    assert!(risks.contains("run `/home/u/work/tools/watch` (core.fsmonitor)"), "{risks}");
    assert!(!risks.contains("/data/x"), "{risks}");
}

#[test]
fn what_is_included_from_elsewhere_or_behind_a_link_is_protected() {
    let config = "[include]\npath = /home/u/lib/x\n[include]\npath = /srv/inc\n";
    let policy = accepted(|s| {
        project(s);
        s.tree.file(&format!("{GIT}/config"), config).file("/home/u/lib/x", "");
        s.tree.file("/home/u/work/team", "").link("/srv/inc", "/home/u/work/team");
        s.write("/home/u/lib");
    });
    modes(&policy, &[("team", RO)]);
    let lib = |name| policy.covering(&path(name)).map(|mount| mount.mode);
    assert_eq!((lib("/home/u/lib/x"), lib("/home/u/lib/y")), (Some(RO), Some(RW)));
}

#[test]
fn a_chain_of_files_without_end_is_said_to_be_too_long() {
    let chain = |length: usize| {
        let policy = accepted(|s| {
            project(s);
            s.tree.file(&format!("{GIT}/config"), "[include]\npath = /data/c0\n");
            for number in 0..length {
                let next = format!("[include]\npath = /data/c{}\n", number + 1);
                s.tree.file(&format!("/data/c{number}"), next);
            }
        });
        policy.residual_risks.join("\n").contains("is not understood")
    };
    assert!(!chain(60));
    assert!(chain(70));
}

#[test]
fn programs_that_a_configuration_names_are_named_where_the_role_can_write_them() {
    let risks = |config: &str, protect: &[&str]| {
        let policy = accepted(|s| {
            project(s);
            s.tree.file(&format!("{GIT}/config"), config).file("/home/u/work/tools/x", "");
            s.tree.dir("/home/u/work/.githooks").link("/srv/hooks", "/home/u/work/.githooks");
            if !protect.is_empty() {
                s.block.protect = Some(protect.iter().map(|it| (*it).to_owned()).collect());
            }
        });
        policy.residual_risks.join("\n")
    };
    for (config, named) in [
        ("[core]\nhooksPath = .githooks\n", "run `/home/u/work/.githooks` (core.hooksPath)"),
        ("[core]\nfsmonitor = tools/x\n", "run `/home/u/work/tools/x` (core.fsmonitor)"),
        ("[filter \"f\"]\nclean = sh tools/x %f\n", "run `/home/u/work/tools/x` (filter.f.clean)"),
        ("[diff \"d\"]\ntextconv = ./absent\n", "run `/home/u/work/absent` (diff.d.textconv)"),
        (
            "[diff \"d\"]\ntextconv = ./no/absent\n",
            "run `/home/u/work/no/absent` (diff.d.textconv)",
        ),
        ("[core]\nhooksPath = /srv/hooks\n", "run `/srv/hooks` (core.hooksPath)"),
        ("[merge \"m\"]\ndriver = tools/new %A\n", "run `/home/u/work/tools/new` (merge.m.driver)"),
    ] {
        assert!(risks(config, &[]).contains(named), "{config}: {}", risks(config, &[]));
        let shut = risks(config, &[".githooks", "tools", "absent"]);
        assert_eq!(shut.contains(named), named.contains("absent"), "{config}: {shut}");
    }
    for config in [
        "[core]\nhooksPath = /usr/share/hooks\nfsmonitor = true\n",
        "[filter \"lfs\"]\nclean = git-lfs clean -- %f\nsmudge = git-lfs smudge -- %f\n",
        "[diff \"d\"]\ntextconv = /usr/bin/strings\n",
    ] {
        assert!(!risks(config, &[]).contains("makes git outside the sandbox run"), "{config}");
    }
    assert!(risks("[core\n", &[]).contains(&format!("`{GIT}/config` is not understood")));
}
