//! The judge of the forbidden paths, question by question (01 §2.6).

use fleet_core::isolation::forbidden::{Cause, Exposure, OwnDirs, Question, Side, Tier};

use super::*;

const READ: &str = "isolation.fs.read[0]";
const WRITE: &str = "isolation.fs.write[0]";

/// Sees the same paths, but no object keeps its number: only names can be compared.
#[derive(Debug)]
struct Restless {
    tree: MemoryTree,
    next: AtomicUsize,
}

impl Restless {
    fn number(&self) -> FileIdentity {
        let ino = self.next.fetch_add(1, Ordering::Relaxed) as u64;
        FileIdentity { dev: 99, ino }
    }
}

impl PathProbe for Restless {
    fn resolve(&self, path: &LexicalPath) -> Result<Resolved, PathProbeError> {
        let mut seen = self.tree.resolve(path)?;
        if let Some(object) = &mut seen.object {
            object.identity = self.number();
        }
        seen.ancestors = seen.ancestors.iter().map(|_| self.number()).collect();
        Ok(seen)
    }

    fn mounts_below(
        &self,
        directory: &LexicalPath,
    ) -> Result<Vec<(LexicalPath, FileIdentity)>, PathProbeError> {
        let found = self.tree.mounts_below(directory)?;
        Ok(found.into_iter().map(|(place, _)| (place, self.number())).collect())
    }

    fn head(&self, file: &LexicalPath, limit: usize) -> Result<Vec<u8>, PathProbeError> {
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
        self.tree.entries(directory, limit)
    }

    fn ignores_case(&self, path: &LexicalPath) -> bool {
        self.tree.ignores_case(path)
    }
}

/// Some network file systems give an object a new number each time. Names alone must do then, those
/// of where a listed link leads as well.
#[test]
fn names_alone_refuse() {
    let make = |wanted: &str| {
        scene(|s| {
            s.tree.dir("/data/keys/deep").link("/home/u/.aws", "/data/keys");
            s.tree.dir("/home/u/.zsh_d").dir("/data/alias").ignore_case("/home/u/.config");
            s.tree.link("/home/v", "/home/u");
            s.write(wanted);
        })
    };
    for wanted in [
        "/home/u/.ssh",
        "/home/u/.ssh/x",
        "/home/u",
        "/home",
        "/home/v/.ssh",
        "/home/u/.aws",
        "/data/keys",
        "/data/keys/deep",
        "/data",
        "/home/u/.zsh_d",
        "/home/u/.zsh_d/x",
        "/home/u/.x_history",
        "/home/u/.Config/GH/x",
        "/home/u/.config",
    ] {
        let scene = make(wanted);
        let probe = Restless { tree: scene.tree.clone(), next: AtomicUsize::new(1) };
        let problems = scene.resolve_by(&probe).expect_err(wanted);
        assert_eq!(problems[0].path, WRITE, "{wanted}");
    }
    // Names come from the root down, so the outermost of equals is named.
    let nested = scene(|s| {
        s.tree.dir("/data/a/b/c");
        s.forbid_paths = ["/data/a/b", "/data/a"].map(path).to_vec();
        s.read("/data/a/b/c");
    });
    let probe = Restless { tree: nested.tree.clone(), next: AtomicUsize::new(1) };
    let problem = nested.resolve_by(&probe).expect_err("inside").remove(0);
    assert!(problem.message.contains("is inside the forbidden path `/data/a` "), "{problem}");
    let scene = make("/data/alias");
    let probe = Restless { tree: scene.tree.clone(), next: AtomicUsize::new(1) };
    scene.resolve_by(&probe).expect("the control");
}

/// Of all that applies the clearest is named: "is" before "is inside" before "would expose", and of
/// equals the outermost.
#[test]
fn the_clearest_reason_is_named() {
    let nested = |s: &mut Scene| {
        s.tree.dir("/data/a/b/c");
        s.forbid_paths = ["/data/a", "/data/a/b", "/data/a/b/c/d"].map(path).to_vec();
    };
    for (wanted, words) in [
        ("/data/a/b", "source `/data/a/b` is the forbidden path `/data/a/b`"),
        ("/data/a/b/c", "source `/data/a/b/c` is inside the forbidden path `/data/a`"),
        ("/data", "source `/data` would expose the forbidden path `/data/a`"),
    ] {
        refused(
            |s| {
                nested(s);
                s.read(wanted);
            },
            READ,
            &[words],
        );
    }
    // The same through another name.
    for (wanted, words) in [
        ("/alias/a/b", "source `/alias/a/b` is the forbidden path `/data/a/b`"),
        ("/alias", "source `/alias` would expose the forbidden path `/data/a`"),
        ("/alias/a/b/c/d", "is the forbidden path `/data/a/b/c/d`"),
    ] {
        refused(
            |s| {
                nested(s);
                s.tree.bind("/data", "/alias");
                s.read(wanted);
            },
            READ,
            &[words],
        );
    }
}

#[test]
fn name_patterns_are_known_through_other_names_too() {
    for (wanted, words) in [
        ("/data/h/.psql_history", "is the forbidden path `/data/h/.psql_history`"),
        ("/data/h/.d_history/x", "is inside the forbidden path `/data/h/.d_history`"),
    ] {
        refused(
            |s| {
                s.tree.file("/home/u/.psql_history", "").file("/home/u/.d_history/x", "");
                s.tree.bind("/home/u", "/data/h");
                s.read(wanted);
            },
            READ,
            &[words],
        );
    }
    for (wanted, words) in [
        ("/home/u/.d_history", "is the forbidden path `/home/u/.d_history`"),
        ("/home/u/.d_history/x", "is inside the forbidden path `/home/u/.d_history`"),
    ] {
        refused(|s| no(s.read(wanted)), READ, &[words]);
    }
    // Beginning and end both count, and only directly in the home.
    for fine in ["/home/u/x_history", "/home/u/.history", "/home/u/work/.x_history", "/home/u/.zs"]
    {
        accepted(|s| no(s.write(fine)));
    }
    // What may be read may be read.
    accepted(|s| no(s.read("/home/u/.zshenv")));
}

/// 01 §2.6.3: what each variable relocates, and nothing beside it.
#[test]
fn each_variable_relocates_what_it_names() {
    let refusals: &[(&str, &str, &str)] = &[
        ("XDG_CONFIG_HOME", "/data/r/gh/x", "keys and credentials"),
        ("XDG_CONFIG_HOME", "/data/r/chromium", "browser and mail profiles"),
        ("XDG_DATA_HOME", "/data/r/keyrings", "keys and credentials"),
        ("XDG_CACHE_HOME", "/data/r/huggingface", "registry logins"),
        ("XDG_STATE_HOME", "/data/r/nvim/shada", "history of commands"),
        ("CARGO_HOME", "/data/r/credentials.toml", "keys and credentials"),
        ("CARGO_HOME", "/data/r/credentials.old", "keys and credentials"),
        ("XDG_RUNTIME_DIR", "/data/r/x", "sockets of the desktop session"),
        ("OURS_STATE_DIR", "/data/r/x", "messaging state"),
        ("OURS_CONFIG", "/data/r", "fleet configuration"),
        ("CLAUDE_CONFIG_DIR", "/data/r/x", "login and sessions of a harness"),
        ("CODEX_HOME", "/data/r/x", "login and sessions of a harness"),
        ("SOMETHING_ELSE", "/data/r/x", "keys and credentials"),
    ];
    let moved = |s: &mut Scene, variable: &str, wanted: &str| {
        s.relocated = vec![(variable.to_owned(), path("/data/r"))];
        s.read(wanted);
    };
    for (variable, wanted, what) in refusals {
        refused(|s| moved(s, variable, wanted), READ, &[&format!("({what})")]);
    }
    for (variable, wanted) in [
        ("XDG_CONFIG_HOME", "/data/r/app"),
        ("XDG_CONFIG_HOME", "/data/r/.x_history"),
        ("XDG_CONFIG_HOME", "/data/r/credentials.old"),
        ("XDG_DATA_HOME", "/data/r/app"),
        ("CARGO_HOME", "/data/r/registry"),
        ("CARGO_HOME", "/data/r/.x_history"),
        ("XDG_CACHE_HOME", "/data/r/app"),
        ("XDG_STATE_HOME", "/data/r/app"),
    ] {
        accepted(|s| moved(s, variable, wanted));
    }
}

/// A path that is listed twice, strictly and less strictly, is as forbidden as the stricter says.
#[test]
fn the_stricter_of_two_entries_holds() {
    accepted(|s| no(s.read("/home/u/.gitconfig")));
    let both = |s: &mut Scene| s.relocated = vec![("NETRC".to_owned(), path("/home/u/.gitconfig"))];
    refused(
        |s| {
            both(s);
            s.read("/home/u/.gitconfig");
        },
        READ,
        &["is the forbidden path `/home/u/.gitconfig` (keys and credentials)"],
    );
    let listed = scene(both).forbidden();
    let tiers: Vec<Tier> = listed
        .entries()
        .iter()
        .filter(|entry| entry.path == path("/home/u/.gitconfig"))
        .map(|entry| entry.tier)
        .collect();
    assert_eq!(tiers, [Tier::NoExposure, Tier::NoWrite]);
}

#[test]
fn the_list_holds_each_entry_once_and_names_the_state_root() {
    let list = scene(|s| {
        s.tree.dir("/data/state").link("/home/v", "/data");
        s.forbid_paths = vec![path("/data/x"), path("/data/x"), path("/home/u/.ssh")];
        s.homes.passwd = Some(HOME.into());
    })
    .forbidden();
    let mut seen: Vec<(&str, Tier)> =
        list.entries().iter().map(|entry| (entry.path.as_str(), entry.tier)).collect();
    let all = seen.len();
    assert!(all > 50, "{all}");
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), all);
    assert!(list.entries().is_sorted_by_key(|entry| entry.tier), "strictest first");
    assert_eq!(list.state_root(), Some(&path("/home/u/.ours-fleet")));
    assert_eq!(list.entries().iter().filter(|entry| entry.state_root).count(), 1);
}

/// `/root` is no system directory where it is the home; all the rest still is one.
#[test]
fn as_root_the_rest_of_the_system_stays_closed() {
    for wanted in ["/proc/1", "/run/x", "/var/spool/cron", "/tmp/tmux-1000/default"] {
        refused(
            |s| {
                s.tree.dir("/root/project");
                s.homes.os = "/root".into();
                s.read(wanted);
            },
            READ,
            &["the forbidden path"],
        );
    }
}

#[test]
fn a_mount_point_inside_is_judged_like_the_mount() {
    let problem = refusal(|s| {
        s.tree.bind("/home/u/.ssh", "/data/d/in");
        s.read("/data");
    });
    assert_eq!(
        problem.message,
        "source `/data`, through the mount point `/data/d/in` inside, is the forbidden path \
         `/home/u/.ssh` (keys and credentials)"
    );
    accepted(|s| {
        s.tree.bind("/home/u/lib", "/data/d/in");
        s.read("/data");
    });
}

/// The exemption of the own directories is from the state root alone.
#[test]
fn own_directories_are_exempt_from_nothing_else() {
    let state = "/home/u/.ours-fleet/agents/A";
    for forbidden in ["/home/u/.ours-fleet/agents", state] {
        let problems = scene(|s| s.forbid_paths.push(path(forbidden))).resolve();
        let problems = problems.expect_err("the operator forbids it");
        assert!(problems.iter().all(|it| it.message.contains("`policy.forbid_paths`")));
    }
    let problems = scene(|s| {
        s.forbid_paths.push(path("/home/u/.ours-fleet/agents/A/x"));
        s.tree.dir("/home/u/.ours-fleet/agents/A/x/y");
        s.read("/home/u/.ours-fleet/agents/A/x/y");
    })
    .resolve()
    .expect_err("forbidden");
    assert!(problems.iter().any(|it| it.path == READ), "{problems:#?}");
}

/// What the harness shares with the role is for the harness: a role that asks for it by itself, as a
/// secret for example, is refused.
#[test]
fn a_shared_item_is_not_the_roles_to_mount() {
    for from in ["/home/u/.claude/.credentials.json", "/home/u/.claude/CLAUDE.md"] {
        refused(
            |s| {
                s.operator_home().share();
                s.secret(from, "/run/secrets/x");
            },
            "isolation.secrets[0]",
            &[&format!("source `{from}`"), "login and sessions of a harness"],
        );
    }
}

/// The login is shared under its own name only: an item that leads to it is no way around.
#[test]
fn the_login_is_shared_under_its_own_name_only() {
    let mut scene = Scene::new();
    scene.operator_home();
    let list = scene.forbidden();
    let login = path("/home/u/.claude/.credentials.json");
    let resolved = scene.tree.resolve(&login).expect("there");
    let judge = |name: &str, target: &LexicalPath, mode, by_user| {
        let own = OwnDirs {
            operator: Some(path("/home/u/.claude")),
            shared: vec![(target.clone(), name.to_owned())],
            ..OwnDirs::default()
        };
        let question = Question {
            side: Side::Source,
            written: login.as_str(),
            resolved: &resolved,
            mode,
            by_user,
            own: &own,
        };
        list.judge(&question, &scene.tree)
    };
    let (ro, name) = (MountMode::ReadOnly, ".credentials.json");
    judge(name, &login, ro, false).expect("the item itself");
    let other = path("/home/u/.claude/CLAUDE.md");
    for (refusal, exposure) in [
        (judge("CLAUDE.md", &login, ro, false), Exposure::Is),
        (judge(name, &other, ro, false), Exposure::Is),
        (judge(name, &login, MountMode::ReadWrite, false), Exposure::Is),
        (judge(name, &login, ro, true), Exposure::Is),
    ] {
        let conflict = refusal.expect_err("no other way");
        assert!(
            matches!(conflict.cause, Cause::Forbidden { exposure: found, .. } if found == exposure),
            "{conflict}"
        );
    }
}

/// A pattern is for names directly in the home, through another name of the home as well.
#[test]
fn what_is_not_yet_there_deeper_in_an_alias_fits_no_pattern() {
    let alias = |s: &mut Scene| no(s.tree.bind("/home/u", "/data/h"));
    let policy = accepted(|s| {
        alias(s);
        s.read("/data/h/sub/.x_history");
    });
    assert_eq!(policy.missing_sources().count(), 1);
}

/// A directory elsewhere, mounted again below a forbidden one, is part of what that holds.
#[test]
fn what_is_mounted_in_a_forbidden_directory_is_forbidden_under_its_other_name() {
    let mounted = |s: &mut Scene| {
        s.tree.dir("/srv/usb/pass");
        s.tree.dir("/srv/other");
        s.tree.dir("/home/u/.ssh/more");
        s.tree.bind("/srv/usb", "/home/u/.ssh/more");
    };
    for asked in ["/srv/usb", "/srv/usb/pass"] {
        refused(
            |s| (mounted(s), no(s.read(asked))).1,
            READ,
            &["is inside the forbidden path `/home/u/.ssh`"],
        );
    }
    accepted(|s| (mounted(s), no(s.read("/srv/other"))).1);
}
