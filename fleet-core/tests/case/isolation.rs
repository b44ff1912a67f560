//! Conformance cases 07 C: what a role may not reach, named after the case.

mod degraded;
mod destinations;
mod git_tree;
mod inputs;
mod judge;
mod links;
mod overlay_kinds;
mod overlays;
mod own;
mod programs;
mod promised_kinds;
mod reachable;
mod repository;
mod repository_config;
mod secret_places;
mod secrets;
mod words;

use std::sync::atomic::{AtomicUsize, Ordering};

use fleet_core::diagnostic::{Code, Diagnostic};
use fleet_core::isolation::{Backend, MountMode, MountOrigin};
use fleet_core::path::{LexicalPath, LexicalPathError};
use fleet_core::port::{FileIdentity, PathProbe, PathProbeError, Resolved};
use fleet_core::test_support::fakes::MemoryTree;
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

/// Counts what is asked of the file system.
#[derive(Debug)]
struct Counting {
    tree: MemoryTree,
    looks: AtomicUsize,
}

impl PathProbe for Counting {
    fn resolve(&self, path: &LexicalPath) -> Result<Resolved, PathProbeError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.tree.resolve(path)
    }

    fn mounts_below(
        &self,
        directory: &LexicalPath,
    ) -> Result<Vec<(LexicalPath, FileIdentity)>, PathProbeError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.tree.mounts_below(directory)
    }

    fn head(&self, file: &LexicalPath, limit: usize) -> Result<Vec<u8>, PathProbeError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.tree.head(file, limit)
    }

    fn content(
        &self,
        file: &LexicalPath,
        identity: FileIdentity,
        limit: usize,
    ) -> Result<Vec<u8>, PathProbeError> {
        self.tree.content(file, identity, limit)
    }

    fn entries(
        &self,
        directory: &LexicalPath,
        limit: usize,
    ) -> Result<Vec<String>, PathProbeError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.tree.entries(directory, limit)
    }

    fn ignores_case(&self, path: &LexicalPath) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.tree.ignores_case(path)
    }
}

/// A role with many mounts must not cost many looks each: one to resolve, one at the mount table.
#[test]
fn each_mount_costs_two_looks() {
    let looks = |mounts: usize| {
        let scene = scene(|s| {
            for number in 0..mounts {
                let at = format!("/data/d{number}");
                s.tree.dir(&at);
                s.read(&at);
            }
        });
        let probe = Counting { tree: scene.tree.clone(), looks: AtomicUsize::new(0) };
        assert!(scene.resolve_by(&probe).is_ok());
        probe.looks.into_inner()
    };
    assert_eq!(looks(60) - looks(10), 100);
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
