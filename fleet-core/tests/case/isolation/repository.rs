//! Working directories whose repository lies elsewhere (field report A8).

use super::*;

const COMMON: &str = "/home/u/main/.git";

/// A linked worktree as git makes it.
fn worktree(s: &mut Scene) {
    s.tree
        .dir("/home/u/main/.git/hooks")
        .file("/home/u/main/.git/config", "[core]\n\tbare = false\n");
    s.tree.file("/home/u/main/.git/HEAD", "ref: refs/heads/main\n");
    for name in ["objects", "refs", "logs", "worktrees/other"] {
        s.tree.dir(&format!("{COMMON}/{name}"));
    }
    s.tree.file("/home/u/main/.git/worktrees/w/commondir", "../..\n");
    s.tree.file("/home/u/main/.git/worktrees/w/gitdir", "/home/u/work/.git\n");
    s.tree.file("/home/u/work/.git", "gitdir: /home/u/main/.git/worktrees/w\n");
    s.cwd("/home/u/work");
}

/// A submodule as git makes it.
fn submodule(s: &mut Scene) {
    for name in ["objects", "refs", "hooks"] {
        s.tree.dir(&format!("/home/u/super/.git/modules/m/{name}"));
    }
    let config =
        "[core]\n\tbare = false\n\tworktree = ../../../m\n[remote \"origin\"]\n\turl = x\n";
    s.tree.file("/home/u/super/.git/modules/m/config", config);
    s.tree.file("/home/u/super/m/.git", "gitdir: ../.git/modules/m");
    s.cwd("/home/u/super/m");
}

#[track_caller]
fn modes(policy: &fleet_core::isolation::IsolationPolicy, base: &str, expected: &[(&str, &str)]) {
    for (below, mode) in expected {
        let at = path(base).join(below).expect("a path");
        let found = policy.covering(&at).map_or("absent", |mount| mount.mode.as_str());
        assert_eq!(found, *mode, "{at}");
    }
}

#[test]
fn a8_a_linked_worktree_gets_what_a_commit_writes_and_no_more() {
    let policy = accepted(worktree);
    let expected = [
        ("objects/ab", "rw"),
        ("refs/heads/x", "rw"),
        ("logs/refs/heads/x", "rw"),
        ("worktrees/w/index", "rw"),
        ("worktrees/w/HEAD", "rw"),
        ("worktrees/w/gitdir", "ro"),
        ("worktrees/w/commondir", "ro"),
        ("worktrees/other/gitdir", "ro"),
        ("hooks/pre-commit", "ro"),
        ("config", "ro"),
        ("HEAD", "ro"),
        ("packed-refs", "ro"),
        ("info/attributes", "ro"),
        ("modules/m/config", "ro"),
    ];
    modes(&policy, COMMON, &expected);
    modes(&policy, "/home/u", &[("work/.git", "ro"), ("work/a", "rw"), ("main/a", "absent")]);
    assert!(policy.ephemeral_dirs.is_empty());
    // Git lays down relative pointers where it is told to.
    let relative = accepted(|s| {
        worktree(s);
        s.tree.file("/home/u/work/.git", "gitdir: ../main/.git/worktrees/w\n");
        s.tree.file("/home/u/main/.git/worktrees/w/gitdir", "../../../../work/.git\n");
    });
    modes(&relative, COMMON, &expected);
    // `protect: []` is about the project, not about what decides over the next launch.
    let unprotected = accepted(|s| {
        worktree(s);
        s.block.protect = Some(Vec::new());
    });
    modes(&unprotected, COMMON, &expected);
    modes(&unprotected, "/home/u", &[("work/.git", "ro")]);
}

#[test]
fn a8_a_worktree_that_is_read_only_shows_its_repository_read_only() {
    let policy = accepted(|s| {
        worktree(s);
        s.cwd_mode = MountMode::ReadOnly;
    });
    modes(&policy, COMMON, &[("objects", "ro"), ("worktrees/w/index", "ro"), ("config", "ro")]);
}

#[test]
fn a8_missing_logs_are_made_for_the_launch() {
    let policy = accepted(|s| {
        worktree(s);
        s.tree.remove("/home/u/main/.git/logs");
    });
    assert_eq!(policy.ephemeral_dirs, ["/home/u/main/.git/logs"]);
    modes(&policy, COMMON, &[("logs/refs", "rw")]);
    assert_eq!(policy.missing_sources().count(), 0);
}

#[test]
fn a8_a_submodule_gets_its_git_directory_without_hooks_and_config() {
    let policy = accepted(submodule);
    modes(
        &policy,
        "/home/u/super/.git",
        &[
            ("modules/m/index", "rw"),
            ("modules/m/objects", "rw"),
            ("modules/m/config", "ro"),
            ("modules/m/hooks/x", "ro"),
            ("config", "absent"),
            ("modules/n", "absent"),
        ],
    );
    modes(&policy, "/home/u/super", &[("m/.git", "ro")]);
}

/// A `.git` file is the agent's own writing, and so is all that lies in the working directory.
#[test]
fn a8_a_pointer_alone_grants_nothing() {
    type Change = fn(&mut Scene);
    let changes: &[(&str, Change)] = &[
        ("its working directory is `/home/u/lib`", |s| {
            s.tree.file("/home/u/main/.git/worktrees/w/gitdir", "/home/u/lib/.git\n");
        }),
        ("does not say that it is one of its", |s| {
            s.tree.remove("/home/u/main/.git/worktrees/w/gitdir");
        }),
        // The main repository itself, a made-up administrative directory, and one outside of it.
        ("does not say", |s| no(s.tree.file("/home/u/work/.git", "gitdir: /home/u/main/.git"))),
        ("does not say", |s| {
            s.tree.file("/home/u/work/fake/worktrees/w/commondir", "/home/u/main/.git");
            s.tree.file("/home/u/work/fake/worktrees/w/gitdir", "/home/u/work/.git");
            s.tree.file("/home/u/work/.git", "gitdir: fake/worktrees/w");
        }),
        ("symbolic link", |s| {
            s.tree
                .remove("/home/u/work/.git")
                .file("/home/u/work/git", "gitdir: ../main/.git/worktrees/w");
            s.tree.link("/home/u/work/.git", "git");
        }),
        ("`objects` is not a directory of its own", |s| {
            s.tree.remove("/home/u/main/.git/objects").link("/home/u/main/.git/objects", "/data");
        }),
        ("`refs` is not a directory of its own", |s| no(s.tree.remove("/home/u/main/.git/refs"))),
        ("does not belong to the fleet user", |s| no(s.tree.set_uid(7).dir(COMMON))),
    ];
    for (words, change) in changes {
        let problem = refusal(|s| {
            worktree(s);
            change(s);
        });
        assert_eq!(problem.path, "cwd");
        assert!(problem.message.contains(words), "{words}: {problem}");
        // An operator who follows the advice must not grant what the agent named.
        let hint = problem.hint.as_deref().expect("a hint");
        assert!(!hint.contains("isolation.fs") && !hint.contains("/home/u/main"), "{hint}");
        assert!(hint.contains("grant nothing that it names"), "{hint}");
    }
    let problem = refusal(|s| {
        submodule(s);
        s.tree.file("/home/u/super/.git/modules/m/config", "[core]\nworktree = ../../../n\n");
        s.tree.dir("/home/u/super/n");
    });
    assert!(problem.message.contains("`/home/u/super/n`"), "{problem}");
}

/// What lies in a forbidden place stays there, whatever it says of itself.
#[test]
fn a8_a_repository_in_a_forbidden_place_is_refused() {
    let problems = scene(|s| {
        worktree(s);
        s.forbid_paths.push(path("/home/u/main/.git/worktrees/other"));
    })
    .resolve()
    .expect_err("it would be shown");
    assert!(problems.iter().any(|it| it.path == "cwd" && it.message.contains("worktrees/other")));
}

#[test]
fn a8_a_worktree_inside_its_repository_is_left_to_the_operator() {
    let problem = refusal(|s| {
        worktree(s);
        s.tree.file("/home/u/main/.git/in/.git", "gitdir: ../worktrees/w");
        s.tree.file("/home/u/main/.git/worktrees/w/gitdir", "/home/u/main/.git/in/.git");
        s.cwd("/home/u/main/.git/in");
    });
    assert!(problem.message.contains("in which it lies"), "{problem}");
}

#[test]
fn a8_configuration_of_the_worktree_is_covered_or_asked_for() {
    let per_worktree = |s: &mut Scene| {
        worktree(s);
        s.tree.file("/home/u/main/.git/config", "[extensions]\n\tworktreeConfig = true\n");
    };
    let problem = refusal(per_worktree);
    assert!(problem.to_string().contains("touch /home/u/main/.git/worktrees/w/config.worktree"));
    let policy = accepted(|s| {
        per_worktree(s);
        s.tree.file("/home/u/main/.git/worktrees/w/config.worktree", "");
    });
    modes(&policy, COMMON, &[("worktrees/w/config.worktree", "ro")]);
}

#[test]
fn a8_what_the_operator_grants_is_covered_as_well() {
    let policy = accepted(|s| {
        worktree(s);
        s.tree.remove("/home/u/main/.git/worktrees/w/gitdir");
        s.write("/home/u/main/.git");
    });
    let expected = [
        ("objects", "rw"),
        ("packed-refs", "rw"),
        ("hooks/pre-commit", "ro"),
        ("config", "ro"),
        ("worktrees/w/commondir", "ro"),
        ("worktrees/w/index", "rw"),
    ];
    modes(&policy, COMMON, &expected);
    modes(&policy, "/home/u", &[("work/.git", "ro")]);
    let policy = accepted(|s| {
        worktree(s);
        s.tree.remove("/home/u/main/.git/hooks");
        s.write("/home/u/main/.git");
    });
    assert_eq!(policy.ephemeral_dirs, ["/home/u/main/.git/hooks"]);
}
