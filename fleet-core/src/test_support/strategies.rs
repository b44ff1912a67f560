//! Generators for property tests: machines with links and bind mounts, and what a role asks of them.
//!
//! The pools are small so that paths meet: a random path over a large alphabet is never forbidden.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::scene::{Scene, path};
use crate::isolation::{FsPath, MountMode, SecretEntry};
use crate::path::LexicalPath;
use crate::port::{FileKind, PathProbe};

/// Directories that a role may well ask for.
const HARMLESS: &[&str] = &[
    "/data",
    "/data/a",
    "/data/a/b",
    "/data/l0",
    "/data/l1",
    "/data/m0",
    "/home/u/work",
    "/home/u/work/a",
    "/home/u/work/l0",
    "/home/u/work/l1",
    "/home/u/work/m0",
    "/home/u/lib",
    "/home/u/.sshx",
    "/home/u/absent",
    "/opt/tools",
    "/tmp/x",
    "/usr/lib",
    "/home/u/.ours-fleet/agents/A",
    "/home/u/.ours-fleet/agents/A/x",
];

/// Paths that no role may reach, and paths around and below them.
const HARMFUL: &[&str] = &[
    "/",
    "/home",
    "/home/u",
    "/home/u/.ssh",
    "/home/u/.ssh/id_ed25519",
    "/home/u/.aws",
    "/home/u/.aws/x",
    "/home/u/.claude",
    "/home/u/fleet.yaml",
    "/home/u/.ours-fleet",
    "/home/u/.ours-fleet/agents",
    "/home/u/.ours-fleet/agents/B",
    "/home/u/.ours-fleet/control/A",
    "/home/u/.ours-fleet/control/B",
    "/home/u/.ours-fleet/handout/A",
    "/home/u/.ours-fleet/harness/A/command",
    "/home/u/.ours-fleet/harness/B/command",
    "/home/u/.ours-fleet/.tmp",
    "/etc",
    "/tmp",
    "/run",
    "/usr",
];

/// Where links and bind mounts are put.
const PLACES: &[&str] = &["/data", "/home/u/work", "/data/a", "/home/u/.ours-fleet/agents/A"];

/// A path of the pools, perhaps with a name more: harmless three times in four.
pub fn asked_path() -> impl Strategy<Value = LexicalPath> {
    let base = prop_oneof![3 => select(HARMLESS), 1 => select(HARMFUL)];
    (base, option::weighted(0.3, select(vec!["a", "b", "l0", "l1", ".ssh", ".aws", "m0"])))
        .prop_map(|(base, name)| {
            let base = path(base);
            name.and_then(|name| base.child(name).ok()).unwrap_or(base)
        })
}

/// A path that no role may reach, or one around or below it.
pub fn harmful_path() -> impl Strategy<Value = LexicalPath> {
    select(HARMFUL).prop_map(path)
}

/// A plain absolute path over few names, some with a common beginning.
pub fn any_path() -> impl Strategy<Value = LexicalPath> {
    vec(select(vec!["a", "ab", ".ours", ".ours-fleet", "é"]), 0..4)
        .prop_map(|names| path(&format!("/{}", names.join("/"))))
}

/// A change of the machine.
#[derive(Debug, Clone)]
pub enum Change {
    /// A directory.
    Dir(String),
    /// A symbolic link.
    Link(String, String),
    /// A bind mount of what is at the first path.
    Bind(String, String),
}

impl Change {
    /// Carries it out where that is possible.
    pub fn apply(&self, scene: &mut Scene) {
        let tree = &mut scene.tree;
        let kind = |tree: &super::fakes::MemoryTree, at: &str| {
            tree.resolve(&path(at)).map(|seen| seen.object.map(|object| object.kind))
        };
        match self {
            Self::Dir(at) if kind(tree, at) == Ok(None) => drop(tree.dir(at)),
            Self::Link(at, target) if kind(tree, at) == Ok(None) => drop(tree.link(at, target)),
            Self::Bind(from, to)
                if kind(tree, from) == Ok(Some(FileKind::Directory))
                    && kind(tree, to) == Ok(None) =>
            {
                tree.bind(from, to);
            }
            _ => {}
        }
    }
}

/// A change of the machine: links lead anywhere, also to nothing; bind mounts show homes, secrets and
/// harmless directories elsewhere.
pub fn change() -> impl Strategy<Value = Change> {
    let place = |names: &'static [&'static str]| {
        (select(PLACES), select(names)).prop_map(|(dir, name)| format!("{dir}/{name}"))
    };
    let target = prop_oneof![
        2 => asked_path().prop_map(String::from),
        1 => select(vec!["..", "../..", ".", "l1", "l0", "../.ssh", "../.aws/new", "a/../l1"])
            .prop_map(str::to_owned),
    ];
    // Not what lies below a forbidden directory: such a mount cannot be told from any other.
    let shown = select(vec!["/", "/home", "/home/u", "/home/u/.ssh", "/home/u/lib", "/opt"]);
    prop_oneof![
        1 => place(&["a", "b", ".git"]).prop_map(Change::Dir),
        3 => (place(&["l0", "l1"]), target).prop_map(|(at, target)| Change::Link(at, target)),
        2 => (shown, place(&["m0"])).prop_map(|(from, to)| Change::Bind(from.to_owned(), to)),
    ]
}

/// A link in the place of a shared item: to an item, to a conversation, to other logins and keys, to
/// where the role may write, to nothing.
fn shared_change() -> impl Strategy<Value = (&'static str, &'static str)> {
    let item = select(vec![
        "/home/u/.claude/CLAUDE.md",
        "/home/u/.claude/plugins",
        "/home/u/.claude/rules",
        "/home/u/.claude/rules/a.rules",
        "/home/u/.claude/.credentials.json",
        "/home/u/.agents",
    ]);
    let target = select(vec![
        "/home/u/notes.txt",
        "/home/u/lib",
        "/home/u/work",
        "/data/a",
        "/home/u",
        "/home/u/.ssh",
        "/home/u/.ssh/id_ed25519",
        "/home/u/.codex/auth.json",
        "/home/u/.codex",
        "/home/u/.claude/history.jsonl",
        "/home/u/.claude/projects",
        "/home/u/.claude/plugins",
        "/home/u/.claude/.credentials.json",
        "/home/u/.ours-fleet/agents/B",
        "/home/u/.ours-fleet/agents/A",
        "/home/u/absent",
    ]);
    (item, target)
}

/// A machine and a role's wishes, of which some hundred in a thousand are granted.
pub fn scene() -> impl Strategy<Value = Scene> {
    let wishes = (
        option::of(asked_path()),
        any::<bool>(),
        vec(asked_path(), 0..3),
        vec(asked_path(), 0..3),
        vec(
            (asked_path(), select(vec!["/run/secrets/s", "/tmp/s", "/data/s", "/home/u/.aws"])),
            0..2,
        ),
    );
    (vec(change(), 0..6), wishes).prop_map(|(changes, wishes)| {
        let mut scene = Scene::new();
        for change in &changes {
            change.apply(&mut scene);
        }
        let (cwd, writable, reads, writes, secrets) = wishes;
        scene.cwd = cwd;
        scene.cwd_mode = if writable { MountMode::ReadWrite } else { MountMode::ReadOnly };
        let listed = |path: LexicalPath| FsPath { written: path.to_string(), path };
        scene.block.fs_read = reads.into_iter().map(listed).collect();
        scene.block.fs_write = writes.into_iter().map(listed).collect();
        scene.block.secrets = secrets
            .into_iter()
            .map(|(from, to)| SecretEntry { from, to: path(to), map_form: true })
            .collect();
        scene
    })
}

/// As [`scene`], for a role whose harness shares items of the operator's home.
pub fn shared_scene() -> impl Strategy<Value = Scene> {
    (scene(), option::of(shared_change())).prop_map(|(mut scene, link)| {
        scene.operator_home();
        if let Some((item, target)) = link {
            scene.tree.remove(item).link(item, target);
        }
        scene.share();
        scene
    })
}
