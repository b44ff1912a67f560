//! Conformance cases 07 C: what a role may not reach, named after the case.

use fleet_core::diagnostic::{Code, Diagnostic};
use fleet_core::isolation::{Backend, MountMode, MountOrigin};
use fleet_core::path::{LexicalPath, LexicalPathError};
use fleet_core::test_support::scene::{HOME, Scene, path};

pub(crate) fn scene(change: impl FnOnce(&mut Scene)) -> Scene {
    let mut scene = Scene::new();
    change(&mut scene);
    scene
}

/// Ends a chain of changes.
pub(crate) fn no<T>(_: &mut T) {}

/// The one problem of a scene that must be refused for exactly one reason.
pub(crate) fn refusal(change: impl FnOnce(&mut Scene)) -> Diagnostic {
    let mut problems = scene(change).resolve().expect_err("must be refused");
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

#[track_caller]
pub(crate) fn refused(change: impl FnOnce(&mut Scene), key: &str, words: &[&str]) {
    let problem = refusal(change);
    assert_eq!(problem.path, key, "{problem}");
    for word in words {
        assert!(problem.message.contains(word), "{word:?} is not in: {}", problem.message);
    }
}

#[track_caller]
pub(crate) fn accepted(change: impl FnOnce(&mut Scene)) -> fleet_core::isolation::IsolationPolicy {
    match scene(change).resolve() {
        Ok(policy) => policy,
        Err(problems) => panic!("must be accepted: {problems:#?}"),
    }
}

#[test]
fn c1_the_forbidden_path_itself() {
    refused(
        |s| no(s.read("/home/u/.ssh")),
        "isolation.fs.read[0]",
        &["source `/home/u/.ssh` is the forbidden path `/home/u/.ssh`"],
    );
}

#[test]
fn c2_inside_a_forbidden_path() {
    refused(
        |s| no(s.read("/home/u/lib").read("/home/u/.ssh/keys")),
        "isolation.fs.read[1]",
        &["source `/home/u/.ssh/keys` is inside the forbidden path `/home/u/.ssh`"],
    );
}

#[test]
fn c3_around_a_forbidden_path() {
    refused(|s| no(s.write(HOME)), "isolation.fs.write[0]", &["would expose the forbidden path"]);
    refused(|s| no(s.cwd(HOME)), "cwd", &["source `/home/u` would expose the forbidden path"]);
}

#[test]
fn c4_a_link_to_a_forbidden_path_dangling_ones_too() {
    let link = |s: &mut Scene, target| no(s.tree.link("/home/u/work/l", target));
    refused(
        |s| {
            link(s, "/home/u/.ssh");
            s.read("/home/u/work/l");
        },
        "isolation.fs.read[0]",
        &["`/home/u/work/l` (resolves to `/home/u/.ssh`) is the forbidden path `/home/u/.ssh`"],
    );
    refused(
        |s| {
            link(s, "/home/u");
            s.read("/home/u/work/l/.ssh/x");
        },
        "isolation.fs.read[0]",
        &["(resolves to `/home/u/.ssh/x`) is inside"],
    );
    refused(
        |s| {
            link(s, "../.aws");
            s.read("/home/u/work/l");
        },
        "isolation.fs.read[0]",
        &["(resolves to `/home/u/.aws`) is the forbidden path"],
    );
}

#[test]
fn c5_whole_components_are_compared() {
    let policy = accepted(|s| no(s.read("/home/u/.sshx")));
    assert_eq!(policy.missing_sources().count(), 1);
}

#[test]
fn c6_the_destination_is_judged_too() {
    refused(
        |s| no(s.secret("/home/u/notes.txt", "/home/u/.aws/c")),
        "isolation.secrets[0]",
        &["destination `/home/u/.aws/c` is inside the forbidden path `/home/u/.aws`"],
    );
}

#[test]
fn c7_a_siblings_directory_in_any_tree_but_own_state() {
    for tree in ["agents", "harness", "handout", "control"] {
        for tail in ["B", "B/x"] {
            let wanted = format!("/home/u/.ours-fleet/{tree}/{tail}");
            refused(|s| no(s.read(&wanted)), "isolation.fs.read[0]", &["`/home/u/.ours-fleet`"]);
        }
    }
    let policy = accepted(|s| {
        s.tree.dir("/home/u/.ours-fleet/agents/A/x");
        s.read("/home/u/.ours-fleet/agents/A/x");
    });
    let inner = policy.covering(&path("/home/u/.ours-fleet/agents/A/x")).expect("mounted");
    assert_eq!(inner.mode, MountMode::ReadOnly);
    for tree in ["harness", "handout", "control"] {
        let wanted = format!("/home/u/.ours-fleet/{tree}/A/x");
        refused(|s| no(s.read(&wanted)), "isolation.fs.read[0]", &["is inside"]);
    }
}

#[test]
fn c8_a_forbidden_path_that_does_not_exist() {
    refused(|s| no(s.read("/home/u/.gnupg")), "isolation.fs.read[0]", &["is the forbidden"]);
}

#[test]
fn c9_the_root_directory() {
    for write in [false, true] {
        let key = if write { "isolation.fs.write[0]" } else { "isolation.fs.read[0]" };
        refused(
            |s| no(if write { s.write("/") } else { s.read("/") }),
            key,
            &["source `/` is the root directory"],
        );
    }
    refused(|s| no(s.cwd("/")), "cwd", &["is the root directory"]);
    refused(
        |s| {
            s.tree.link("/home/u/work/r", "/");
            s.read("/home/u/work/r");
        },
        "isolation.fs.read[0]",
        &["(resolves to `/`) is the root directory"],
    );
}

#[test]
fn c10_the_shared_home_of_a_harness() {
    for home in ["/home/u/.claude", "/home/u/.codex", "/home/u/.claude/plugins"] {
        refused(|s| no(s.write(home)), "isolation.fs.write[0]", &["login and sessions"]);
    }
}

#[test]
fn c11_dot_components() {
    let home = path(HOME);
    assert_eq!(
        LexicalPath::parse("/home/u/.claude/./.credentials.json", &home),
        Err(LexicalPathError::DotComponent)
    );
    refused(
        |s| no(s.write("/home/u/.claude/.credentials.json")),
        "isolation.fs.write[0]",
        &["is the forbidden path `/home/u/.claude/.credentials.json`"],
    );
}

#[test]
fn c12_the_resolved_path_is_what_is_mounted() {
    let mut scene = Scene::new();
    scene.tree.link("/home/u/work/l", "/home/u/lib");
    scene.read("/home/u/work/l");
    let before = scene.resolve().expect("accepted");
    let mount = before.covering(&path("/home/u/lib")).expect("mounted");
    assert_eq!(mount.source, path("/home/u/lib"));
    assert!(mount.identity.is_some());
    // Re-pointed later: the mount still names the old place, and a new look refuses.
    scene.tree.remove("/home/u/work/l").link("/home/u/work/l", "/home/u/.ssh");
    assert!(scene.resolve().is_err());
}

#[test]
fn c13_c14_the_whole_state_root() {
    for below in ["agents", "tmp/T", "agents/.tmp/T", "web", "messaging", "locks"] {
        let wanted = format!("/home/u/.ours-fleet/{below}");
        refused(|s| no(s.read(&wanted)), "isolation.fs.read[0]", &["`/home/u/.ours-fleet`"]);
    }
}

#[test]
fn c15_home_is_expanded_and_relative_paths_are_refused() {
    let home = path(HOME);
    let expanded = LexicalPath::parse("~/.ssh", &home).expect("a path");
    refused(|s| no(s.read(expanded.as_str())), "isolation.fs.read[0]", &["is the forbidden"]);
    assert_eq!(LexicalPath::parse(".ssh", &home), Err(LexicalPathError::Relative));
}

#[test]
fn c16_system_and_credential_stores() {
    for (wanted, word) in [
        ("/etc", "part of the system"),
        ("/var/run/docker.sock", "container engines"),
        ("/home/u/.kube", "keys and credentials"),
        ("/home/u/.netrc", "keys and credentials"),
        ("/home/u/.config/gh", "keys and credentials"),
        ("/home/u/.git-credentials", "keys and credentials"),
        ("/home/u/.cargo/credentials.bak", "keys and credentials"),
        ("/home/u/.psql_history", "history of commands"),
    ] {
        refused(|s| no(s.write(wanted)), "isolation.fs.write[0]", &[word]);
        refused(|s| no(s.read(wanted)), "isolation.fs.read[0]", &[word]);
    }
    for wanted in ["/home/u/.bashrc", "/home/u/.zshrc.local", "/home/u/.local/bin/x"] {
        refused(|s| no(s.write(wanted)), "isolation.fs.write[0]", &["which no role may write"]);
        accepted(|s| no(s.read(wanted)));
    }
}

#[test]
fn c17_a_secret_over_a_program() {
    refused(
        |s| no(s.secret("/home/u/notes.txt", "/usr/bin/claude")),
        "isolation.secrets[0]",
        &["destination `/usr/bin/claude`", "inside, the protected path `/usr`"],
    );
}

#[test]
fn c20_no_isolation_resolves_to_no_mounts() {
    let policy = accepted(|s| {
        s.block.backend = Backend::None;
        s.cwd("/home/u/work").write("/");
    });
    assert!(policy.mounts.is_empty() && policy.tmpfs.is_empty());
    assert_eq!(policy.cwd, path("/home/u/work"));
}

#[test]
fn c20_the_same_scene_gets_the_same_verdict_and_words_each_time() {
    let scene = scene(|s| no(s.write("/").read("/home/u/.ssh").cwd("/home/u")));
    let (first, second) = (scene.resolve(), scene.resolve());
    assert_eq!(first, second);
    assert_eq!(first.expect_err("refused").len(), 3);
}

#[test]
fn the_policy_shows_own_directories_and_home_is_in_memory() {
    let policy = accepted(|s| no(s.cwd("/home/u/work")));
    let shown: Vec<(String, MountMode, &MountOrigin)> =
        policy.mounts.iter().map(|m| (m.destination.to_string(), m.mode, &m.origin)).collect();
    let (rw, ro) = (MountMode::ReadWrite, MountMode::ReadOnly);
    assert_eq!(
        shown,
        [
            ("/home/u/work".to_owned(), rw, &MountOrigin::Cwd),
            ("/home/u/.ours-fleet/agents/A".to_owned(), rw, &MountOrigin::State),
            ("/home/u/.ours-fleet/handout/A".to_owned(), ro, &MountOrigin::Handout),
            ("/home/u/.ours-fleet/harness/A/command".to_owned(), rw, &MountOrigin::HarnessHome),
        ]
    );
    let memory: Vec<String> = policy.tmpfs.iter().map(|t| t.destination.to_string()).collect();
    assert_eq!(memory, ["/tmp", "/run", "/var/tmp", "/dev/shm", "/home/u", "/home/u/.cache"]);
    assert!(policy.tmpfs.iter().all(|tmpfs| tmpfs.size > 0));
    assert_eq!((policy.home, policy.cwd), (path(HOME), path("/home/u/work")));
}

#[test]
fn own_directories_must_be_as_fleet_made_them() {
    let state = "/home/u/.ours-fleet/agents/A";
    refused(
        |s| {
            s.tree.remove(state).link(state, "/home/u/.ours-fleet/agents/B");
        },
        "isolation",
        &["must not be a link"],
    );
    refused(|s| no(s.tree.dir_mode(state, 0o770)), "isolation", &["mode 0770"]);
    refused(|s| no(s.tree.set_uid(7).dir_mode(state, 0o700)), "isolation", &["uid 7"]);
}

#[test]
fn a_fleet_home_behind_a_link_works() {
    let policy = accepted(|s| {
        s.tree.dir("/data/h").link("/home/v", "/data/h");
        s.homes.fleet = "/home/v".into();
        for tree in s.trees().all() {
            s.tree.dir_mode(tree.as_str(), 0o700);
        }
        let home = s.trees().harness.join("command");
        s.tree.dir_mode(home.as_str(), 0o700);
    });
    let state = policy.covering(&path("/home/v/.ours-fleet/agents/A")).expect("mounted");
    assert_eq!(state.source, path("/data/h/.ours-fleet/agents/A"));
}

#[test]
fn equal_mounts_are_kept_once_and_unequal_ones_are_named() {
    let policy = accepted(|s| {
        s.cwd("/home/u/work").write("/home/u/work").read("/home/u/lib").read("/home/u/lib");
    });
    assert_eq!(policy.mounts.iter().filter(|m| m.source == path("/home/u/work")).count(), 1);
    assert_eq!(policy.mounts.iter().filter(|m| m.source == path("/home/u/lib")).count(), 1);
    refused(
        |s| no(s.write("/home/u/lib").read("/home/u/lib")),
        "isolation.fs.read[0]",
        &["mounted twice", "`isolation.fs.write[0]`", "`isolation.fs.read[0]`"],
    );
    refused(
        |s| {
            s.secret("/home/u/notes.txt", "/run/secrets/x").secret("/opt/tools", "/run/secrets/x");
            s.tree.remove("/opt/tools").file("/opt/tools", "t");
        },
        "isolation.secrets[1]",
        &["mounted twice"],
    );
}

#[test]
fn the_working_directory_is_read_only_when_asked() {
    let policy = accepted(|s| {
        s.cwd("/home/u/work").cwd_mode = MountMode::ReadOnly;
        s.tree.dir("/home/u/work/.git/hooks");
    });
    let cwd = policy.covering(&path("/home/u/work/.git/hooks")).expect("mounted");
    assert_eq!((cwd.mode, &cwd.origin), (MountMode::ReadOnly, &MountOrigin::Cwd));
    refused(
        |s| s.cwd("/home/u/work").write("/home/u/work").cwd_mode = MountMode::ReadOnly,
        "isolation.fs.write[0]",
        &["mounted twice"],
    );
}

#[test]
fn policy_paths_and_directories_on_path_are_guarded() {
    refused(
        |s| {
            s.forbid_paths = vec![path("/data/private")];
            s.read("/data");
        },
        "isolation.fs.read[0]",
        &["would expose", "`/data/private` (listed in `policy.forbid_paths`)"],
    );
    let on_path = |s: &mut Scene| s.path_dirs = vec![path("/home/u/work/bin"), LexicalPath::root()];
    refused(
        |s| {
            on_path(s);
            s.cwd("/home/u/work");
        },
        "cwd",
        &["`/home/u/work/bin`, which no role may write (a directory of fleet's own PATH)"],
    );
    accepted(|s| {
        on_path(s);
        s.read("/home/u/work/bin");
    });
}

#[test]
fn the_home_of_root_is_no_system_directory() {
    let as_root = |s: &mut Scene| {
        s.tree.dir("/root/project");
        s.homes.os = "/root".into();
        s.cwd("/root/project");
    };
    refused(|s| no(s.cwd("/root/project")), "cwd", &["part of the system"]);
    accepted(as_root);
    refused(
        |s| {
            as_root(s);
            s.read("/root/.ssh");
        },
        "isolation.fs.read[0]",
        &["keys and credentials"],
    );
    refused(|s| s.homes.os = "/".into(), "isolation", &["HOME is `/`"]);
}

#[test]
fn what_cannot_be_judged_is_refused() {
    refused(
        |s| {
            s.tree.deny("/data/closed");
            s.read("/data/closed/x");
        },
        "isolation.fs.read[0]",
        &["source `/data/closed/x` cannot be judged: no permission"],
    );
    let problems = scene(|s| {
        s.config_files.push("relative.yaml".into());
        s.read("/home/u/lib");
    })
    .resolve()
    .expect_err("a list with a hole");
    assert!(problems.iter().all(|problem| problem.message.contains("`relative.yaml`")));
}

#[test]
fn below_usr_only_what_is_there_or_owned() {
    let below = |s: &mut Scene, uid| {
        s.tree.set_uid(uid).dir("/usr/src/mine");
        s.cwd("/usr/src/mine");
    };
    accepted(|s| below(s, 1000));
    refused(|s| below(s, 7), "cwd", &["is inside the protected path `/usr`"]);
}

#[test]
fn a_missing_source_is_left_to_the_launch() {
    let policy = accepted(|s| no(s.cwd("/home/u/gone").read("/home/u/absent")));
    let missing: Vec<String> = policy.missing_sources().map(|mount| mount.origin.key()).collect();
    assert_eq!(missing, ["cwd", "isolation.fs.read[0]"]);
}

mod secrets {
    use super::*;

    #[test]
    fn go_below_run_secrets_or_tmp() {
        let policy = accepted(|s| {
            s.secret("/home/u/notes.txt", "/run/secrets/n").secret("/home/u/notes.txt", "/tmp/n");
        });
        let count = policy.mounts.iter().filter(|m| m.mode == MountMode::ReadOnly).count();
        assert_eq!(count, 3, "two secrets and the handout");
        for (to, word) in [
            ("/home/u/n", "not a place for a secret"),
            ("/run/n", "protected path `/run`"),
            ("/run/secrets", "protected path `/run`"),
            ("/tmp", "not a place for a secret"),
            ("/etc/passwd", "protected path `/etc`"),
            ("/home", "would cover"),
            ("/", "root directory"),
        ] {
            let problem = refusal(|s| no(s.secret("/home/u/notes.txt", to)));
            let named = problem.message.contains(word) || problem.message.contains("would expose");
            assert!(named, "{to}: {problem}");
        }
    }

    #[test]
    fn go_over_what_exists_in_a_read_only_mount() {
        let base = |s: &mut Scene| {
            s.tree.file("/opt/tools/cfg", "old");
            s.read("/opt/tools");
        };
        accepted(|s| {
            base(s);
            s.secret("/home/u/notes.txt", "/opt/tools/cfg");
        });
        refused(
            |s| {
                base(s);
                s.secret("/home/u/notes.txt", "/opt/tools/new");
            },
            "isolation.secrets[0]",
            &["no such mount point exists"],
        );
    }

    #[test]
    fn must_be_files_that_not_everybody_writes() {
        refused(
            |s| no(s.secret("/home/u/lib", "/run/secrets/l")),
            "isolation.secrets[0]",
            &["is a directory"],
        );
        accepted(|s| {
            s.secret("/home/u/lib", "/run/secrets/l").block.secrets[0].map_form = true;
        });
        let problem = refusal(|s| {
            s.tree.file_mode("/home/u/open", "x", 0o666);
            s.secret("/home/u/open", "/run/secrets/o");
        });
        assert_eq!(problem.code, Code::FileTrust);
    }

    #[test]
    fn in_a_writable_mount_are_noted() {
        let policy = accepted(|s| {
            s.tree.file_mode("/home/u/work/token", "x", 0o600);
            s.cwd("/home/u/work").secret("/home/u/work/token", "/run/secrets/t");
        });
        assert!(policy.residual_risks.iter().any(|risk| risk.contains("/home/u/work/token")));
    }
}

mod overlays {
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
        ] {
            let at = path("/home/u/main/.git").join(below).expect("a path");
            assert_eq!(policy.covering(&at).map(|mount| mount.mode), Some(mode), "{below}");
        }
        // A submodule, with a relative pointer.
        let problem = refusal(|s| {
            s.tree.dir("/home/u/super/.git/modules/m");
            s.tree.file("/home/u/super/m/.git", "gitdir: ../.git/modules/m");
            s.cwd("/home/u/super/m");
        });
        assert!(problem.to_string().contains("/home/u/super/.git/modules/m"), "{problem}");
    }
}
