//! Generators for property tests: machines with links and bind mounts, and what a role asks of them.
//!
//! The pools are small so that paths meet: a random path over a large alphabet is never forbidden.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

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
    "/home/u/WORK",
    "/home/u/work/A",
    "/home/u/absent",
    "/data/key",
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
    "/home/u/.SSH",
    "/HOME/u/.Aws",
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
    "/home/u/.ours-fleet/agents/.tmp/T",
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
    /// A link to a link beside it, which leads to the second path.
    Chain(String, String),
    /// A bind mount of what is at the first path.
    Bind(String, String),
    /// A second name of the file at the first path.
    HardLink(String, String),
    /// A socket, FIFO or device.
    Special(String, FileKind),
    /// Names below differ by case only.
    IgnoreCase(String),
}

impl Change {
    /// The path that is changed.
    fn place(&self) -> &str {
        match self {
            Self::Dir(at)
            | Self::Link(at, _)
            | Self::Chain(at, _)
            | Self::Bind(_, at)
            | Self::HardLink(_, at)
            | Self::Special(at, _)
            | Self::IgnoreCase(at) => at,
        }
    }

    /// Carries it out where that is possible.
    pub fn apply(&self, scene: &mut Scene) {
        let tree = &mut scene.tree;
        let kind = |tree: &super::fakes::MemoryTree, at: &str| {
            tree.resolve(&path(at)).map(|seen| seen.object.map(|object| object.kind))
        };
        match self {
            Self::Dir(at) if kind(tree, at) == Ok(None) => drop(tree.dir(at)),
            Self::Chain(at, target) if kind(tree, at) == Ok(None) => {
                let beside = format!("{at}1");
                if kind(tree, &beside) == Ok(None) {
                    let name = beside.rsplit('/').next().unwrap_or_default().to_owned();
                    tree.link(at, &name).link(&beside, target);
                }
            }
            Self::Link(at, target) if kind(tree, at) == Ok(None) => drop(tree.link(at, target)),
            Self::Bind(from, to)
                if kind(tree, from) == Ok(Some(FileKind::Directory))
                    && kind(tree, to) == Ok(None) =>
            {
                tree.bind(from, to);
            }
            Self::HardLink(from, to)
                if kind(tree, from) == Ok(Some(FileKind::File)) && kind(tree, to) == Ok(None) =>
            {
                tree.hard_link(from, to);
            }
            Self::Special(at, special) if kind(tree, at) == Ok(None) => {
                tree.special(at, *special);
            }
            Self::IgnoreCase(at) => drop(tree.ignore_case(at)),
            _ => {}
        }
    }
}

/// A change of the machine: links lead anywhere, also to nothing; bind mounts show homes, secrets and
/// harmless directories elsewhere; keys get second names, directories forget the case of names.
pub fn change() -> impl Strategy<Value = Change> {
    let place = |names: &'static [&'static str]| {
        (select(PLACES), select(names)).prop_map(|(dir, name)| format!("{dir}/{name}"))
    };
    let target = prop_oneof![
        2 => asked_path().prop_map(String::from),
        2 => select(vec![
            "/home/u/.ssh",
            "/home/u/.aws",
            "/home/u/.aws/new",
            "/home/u/.ours-fleet/agents/B",
            "/home/u/.ours-fleet/control/A",
        ])
        .prop_map(str::to_owned),
        2 => select(vec!["..", "../..", ".", "l1", "l0", "../.ssh", "../.aws/new", "a/../l1"])
            .prop_map(str::to_owned),
    ]
    .boxed();
    // Not what lies below a forbidden directory: such a mount cannot be told from any other.
    let shown = select(vec!["/", "/home", "/home/u", "/home/u/.ssh", "/home/u/lib", "/opt"]);
    let special = select(vec![FileKind::Socket, FileKind::Fifo, FileKind::Device]);
    prop_oneof![
        4 => place(&["a", "b", ".git"]).prop_map(Change::Dir),
        12 => (place(&["l0", "l1"]), target.clone()).prop_map(|(at, to)| Change::Link(at, to)),
        4 => (place(&["l", "l0"]), target).prop_map(|(at, to)| Change::Chain(at, to)),
        8 => (shown, place(&["m0"])).prop_map(|(from, to)| Change::Bind(from.to_owned(), to)),
        2 => (place(&["a", "b"]), special).prop_map(|(at, kind)| Change::Special(at, kind)),
        1 => Just(Change::HardLink("/home/u/.ssh/id_ed25519".to_owned(), "/data/key".to_owned())),
        2 => select(vec!["/", "/home", "/home/u"]).prop_map(|at| Change::IgnoreCase(at.to_owned())),
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
    let around = option::weighted(0.3, (0..3_usize, any::<bool>()));
    let added = option::weighted(0.1, asked_path());
    // A wish for what was changed, perhaps below it: a link that nobody follows shows nothing.
    let below = option::weighted(0.3, select(vec!["a", ".ssh", "x"]));
    let through = option::weighted(0.4, (any::<Index>(), below, any::<bool>()));
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
    (vec(change(), 0..6), wishes, added, around, through).prop_map(|input| {
        let (changes, wishes, added, around, through) = input;
        let mut scene = Scene::new();
        for tree in ["agents", "harness", "handout", "control"] {
            scene.tree.dir_mode(&format!("/home/u/.ours-fleet/{tree}/.tmp/T"), 0o700);
        }
        for change in &changes {
            change.apply(&mut scene);
        }
        scene.write_dirs = added.into_iter().collect();
        let (cwd, writable, reads, writes, secrets) = wishes;
        scene.cwd = cwd;
        scene.cwd_mode = if writable { MountMode::ReadWrite } else { MountMode::ReadOnly };
        let listed = |path: LexicalPath| FsPath { written: path.to_string(), path };
        let (mut reads, mut writes) = (reads, writes);
        if let (Some((index, below, write)), false) = (through, changes.is_empty()) {
            let place = path(index.get(&changes).place());
            let wish = below.and_then(|below| place.child(below).ok()).unwrap_or(place);
            if write { &mut writes } else { &mut reads }.push(wish);
        }
        // One mount around or inside another, which paths by chance seldom are.
        let base = scene.cwd.as_ref().or(reads.first()).or(writes.first()).cloned();
        if let (Some(base), Some((how, write))) = (base, around) {
            let near = match how {
                0 => base.parent(),
                1 => base.child("a").ok(),
                _ => base.parent().and_then(|above| above.parent()),
            };
            if write { &mut writes } else { &mut reads }.extend(near);
        }
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
