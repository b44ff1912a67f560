//! The small files of git that decide about a linked repository (field report A8), byte by byte.

use super::*;

const ADMIN: &str = "/home/u/super/.git/modules/m";

/// A submodule whose configuration is `config`.
fn submodule(s: &mut Scene, config: &str) {
    for name in ["objects", "refs", "hooks"] {
        s.tree.dir(&format!("{ADMIN}/{name}"));
    }
    s.tree.file(&format!("{ADMIN}/config"), config);
    s.tree.file("/home/u/super/m/.git", "gitdir: ../.git/modules/m").dir("/home/u/super/n");
    s.cwd("/home/u/super/m");
}

/// A linked worktree as git makes it.
fn worktree(s: &mut Scene) {
    let common = "/home/u/main/.git";
    for name in ["objects", "refs", "logs", "hooks"] {
        s.tree.dir(&format!("{common}/{name}"));
    }
    s.tree.file("/home/u/main/.git/config", "[core]\n\tbare = false\n");
    s.tree.file("/home/u/main/.git/worktrees/w/commondir", "../..\n");
    s.tree.file("/home/u/main/.git/worktrees/w/gitdir", "/home/u/work/.git\n");
    s.tree.file("/home/u/work/.git", "gitdir: /home/u/main/.git/worktrees/w\n");
    s.cwd("/home/u/work");
}

#[test]
fn a8_the_working_directory_of_a_submodule_is_what_git_would_read() {
    let here = "../../../m";
    for config in [
        format!("[core]\nworktree = {here}\n"),
        format!("[CORE]\n\tWorkTree={here}"),
        format!("[core]\n  worktree = \"{here}\"\n"),
        format!("[core]\nworktree = ../../../n\nworktree = {here}\n"),
        format!("[core]\nbare = false\n[user]\nworktree = ../../../n\n[core]\nworktree = {here}\n"),
    ] {
        accepted(|s| submodule(s, &config));
    }
    for config in [
        format!("[user]\nworktree = {here}\n"),
        format!("[core]\n[user]\nworktree = {here}\n"),
        format!("worktree = {here}\n"),
        format!("[core \"x\"]\nworktree = {here}\n"),
        format!("[core]\nworktrees = {here}\n"),
        // Whatever git would unescape or cut off is not understood.
        format!("[core]\nworktree = {here} # here\n"),
        format!("[core]\nworktree = {here} ; here\n"),
        format!("[core]\nworktree = \"{here}\\\\\"\n"),
        format!("[core]\nworktree = {here}\"\n"),
        "[core]\nworktree\n".to_owned(),
        String::new(),
    ] {
        let problem = refusal(|s| submodule(s, &config));
        let words = "does not say that it is one of its working directories";
        assert!(problem.message.contains(words), "{config}: {problem}");
    }
}

#[test]
fn a8_a_configuration_is_read_up_to_64_kib() {
    let padded = |length: usize| {
        let config = "[core]\nworktree = ../../../m\n";
        format!("{config}{}", "#".repeat(length - config.len()))
    };
    accepted(|s| submodule(s, &padded(64 * 1024 - 1)));
    let problem = refusal(|s| submodule(s, &padded(64 * 1024)));
    assert!(problem.message.contains("does not say"), "{problem}");
}

#[test]
fn a8_a_pointer_is_read_up_to_4_kib() {
    let padded = |length: usize| {
        let pointer = "gitdir: /home/u/main/.git/worktrees/w\n";
        format!("{pointer}{}", " ".repeat(length - pointer.len()))
    };
    let shown = |length| {
        let policy = accepted(|s| {
            worktree(s);
            s.tree.file("/home/u/work/.git", padded(length));
        });
        policy.covering(&path("/home/u/main/.git/HEAD")).is_some()
    };
    assert!(shown(4095));
    assert!(!shown(4096), "a longer file is no pointer of git, and leads nowhere");
}

type Change = fn(&mut Scene);

#[test]
fn a8_logs_are_a_directory_of_their_own_or_are_made() {
    let logs = "/home/u/main/.git/logs";
    let made = accepted(|s| {
        worktree(s);
        s.tree.remove(logs);
    });
    let mount = made.covering(&path(logs)).expect("mounted");
    assert_eq!(
        (mount.kind, mount.identity, mount.mode),
        (Some(fleet_core::port::FileKind::Directory), None, MountMode::ReadWrite)
    );
    let changes: [Change; 4] = [
        |s| no(s.tree.link("/home/u/main/.git/logs", "/home/u/lib")),
        |s| no(s.tree.link("/home/u/main/.git/logs", "/home/u/absent")),
        |s| no(s.tree.link("/home/u/main/.git/logs", "refs")),
        |s| no(s.tree.file("/home/u/main/.git/logs", "x")),
    ];
    for change in changes {
        refused(
            |s| {
                worktree(s);
                s.tree.remove(logs);
                change(s);
            },
            "cwd",
            &["`/home/u/main/.git/logs` is not a directory"],
        );
    }
}

/// What the operator shows read-only is enough for a working directory that is read-only as well,
/// whatever the repository says of it; one that is written needs more.
#[test]
fn a8_a_shown_repository_is_enough_where_nothing_is_written() {
    let broken = |s: &mut Scene| {
        worktree(s);
        s.tree.remove("/home/u/main/.git/worktrees/w/gitdir");
        s.read("/home/u/main/.git");
    };
    let policy = accepted(|s| {
        broken(s);
        s.cwd_mode = MountMode::ReadOnly;
    });
    assert!(policy.mounts.iter().all(|it| !matches!(it.origin, MountOrigin::Repository { .. })));
    let problem = refusal(broken);
    assert!(problem.message.contains("does not let it write it"), "{problem}");
    let problem = refusal(|s| {
        broken(s);
        s.block.fs_read.clear();
        s.cwd_mode = MountMode::ReadOnly;
    });
    assert!(problem.message.contains("does not show it"), "{problem}");
}

/// The deepest mount around the repository counts, not the first one.
#[test]
fn a8_the_deepest_mount_around_the_repository_decides() {
    let problem = refusal(|s| {
        worktree(s);
        s.tree.remove("/home/u/main/.git/worktrees/w/gitdir");
        s.write("/home/u/main").read("/home/u/main/.git");
    });
    assert!(problem.message.contains("does not let it write it"), "{problem}");
    accepted(|s| {
        worktree(s);
        s.tree.remove("/home/u/main/.git/worktrees/w/gitdir");
        s.read("/home/u/main").write("/home/u/main/.git");
    });
}

#[test]
fn a8_optional_parts_are_shown_where_they_are_directories() {
    for part in ["reftable", "rr-cache", "lfs"] {
        let place = format!("/home/u/main/.git/{part}");
        let policy = accepted(|s| {
            worktree(s);
            s.tree.dir(&place);
        });
        let mount = policy.covering(&path(&place)).expect("mounted");
        assert_eq!(mount.mode, MountMode::ReadWrite, "{part}");
        let policy = accepted(worktree);
        let around = policy.covering(&path(&place)).expect("the common directory");
        assert_eq!(around.mode, MountMode::ReadOnly, "{part}");
        let problem = refusal(|s| {
            worktree(s);
            s.tree.file(&place, "x");
        });
        assert!(problem.message.contains("is not a directory of its own"), "{problem}");
    }
}

/// A file `commondir` can appear where the role may write, and only there it is a risk.
#[test]
fn a8_a_redirection_is_named_where_the_role_could_make_it() {
    let named = |policy: &fleet_core::isolation::IsolationPolicy, file: &str| {
        policy.residual_risks.iter().any(|risk| risk.contains(&format!("`{file}` does not exist")))
    };
    assert!(!named(&accepted(worktree), "/home/u/main/.git/commondir"));
    let config = "[core]\nworktree = ../../../m\n";
    assert!(named(&accepted(|s| submodule(s, config)), &format!("{ADMIN}/commondir")));
    let granted = |s: &mut Scene| {
        worktree(s);
        s.write("/home/u/main/.git");
    };
    assert!(named(&accepted(granted), "/home/u/main/.git/commondir"));
    // What the operator grants and does not want covered is not covered, and nothing is said.
    let bare = accepted(|s| {
        granted(s);
        s.block.protect = Some(Vec::new());
    });
    assert!(!named(&bare, "/home/u/main/.git/commondir"));
    let hooks = bare.covering(&path("/home/u/main/.git/hooks")).expect("mounted");
    assert_eq!(hooks.mode, MountMode::ReadWrite);
}

#[test]
fn a8_configuration_per_worktree_is_asked_for_only_where_it_is_obeyed() {
    let file = "/home/u/main/.git/config";
    accepted(|s| {
        worktree(s);
        s.tree.file(file, "[core]\n");
    });
    for config in ["[extensions]\nworktreeconfig = true\n", "[extensions]\nWORKTREECONFIG\n"] {
        let problem = refusal(|s| {
            worktree(s);
            s.tree.file(file, config);
        });
        assert!(problem.message.contains("config.worktree`, does not exist"), "{problem}");
    }
    // A configuration that cannot be read is taken for one that is obeyed.
    let problem = refusal(|s| {
        worktree(s);
        s.tree.file(file, "#".repeat(64 * 1024));
    });
    assert!(problem.message.contains("config.worktree`, does not exist"), "{problem}");
}

#[test]
fn a8_whose_the_repository_is_counts_for_both_directories() {
    for directory in ["/home/u/main/.git", "/home/u/main/.git/worktrees/w"] {
        let problem = refusal(|s| {
            worktree(s);
            s.tree.set_uid(7).dir(directory);
        });
        let words = format!("`{directory}` does not belong to the fleet user");
        assert!(problem.message.contains(&words), "{problem}");
    }
}

/// Every mount of a linked worktree, in order: nothing is covered twice, nothing is left out.
#[test]
fn a8_the_mounts_of_a_linked_worktree() {
    let policy = accepted(worktree);
    let mounts: Vec<String> = policy
        .mounts
        .iter()
        .filter(|it| !it.destination.as_str().contains(".ours-fleet"))
        .map(|it| format!("{} {} ({})", it.mode, it.destination, it.origin))
        .collect();
    let of_cwd = "of the repository of `cwd`";
    let expected = [
        "rw /home/u/work (`cwd`)".to_owned(),
        format!("ro /home/u/main/.git (the common directory {of_cwd})"),
        "ro /home/u/work/.git (the protected path `.git`)".to_owned(),
        format!("rw /home/u/main/.git/logs (the logs {of_cwd})"),
        format!("rw /home/u/main/.git/objects (the objects {of_cwd})"),
        format!("rw /home/u/main/.git/refs (the refs {of_cwd})"),
        format!("rw /home/u/main/.git/worktrees/w (the administrative directory {of_cwd})"),
        "ro /home/u/main/.git/worktrees/w/commondir (the protected path `commondir`)".to_owned(),
        "ro /home/u/main/.git/worktrees/w/gitdir (the protected path `gitdir`)".to_owned(),
    ];
    assert_eq!(mounts, expected);
}
