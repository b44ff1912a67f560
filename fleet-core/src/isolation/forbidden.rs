//! What no role may reach (01 §2.6): one list, one judge, shared by `config`, `doctor` and the launch.
//!
//! Every entry and every candidate is resolved in the same way and compared twice: by the components
//! of its path, and by device and inode of the object and of each directory above it. The second
//! comparison sees through bind mounts, hard links and spellings that the file system folds.
//!
//! Not seen: a bind mount, made by root elsewhere, of a directory *below* a forbidden one, and a hard
//! link to a file that is not one of the well-known key files. Neither is reachable by name or by the
//! identity of anything above it.

mod index;
mod verdict;

use std::sync::OnceLock;

use camino::{Utf8Path, Utf8PathBuf};

use self::index::{Candidate, Index};
pub use self::verdict::{Cause, Conflict, Exposure, Side};
use super::policy::MountMode;
pub use super::tiers::Tier;
use super::tiers::{self, Group, NamePattern, Relocation};
use crate::layout::Homes;
use crate::path::LexicalPath;
use crate::port::{FileIdentity, FileKind, PathProbe, Resolved};

/// What the list of forbidden paths is made from.
#[derive(Debug, Clone)]
pub struct ForbiddenInputs<'a> {
    /// The homes of the account.
    pub homes: &'a Homes,
    /// `<fleet home>/.ours-fleet`.
    pub state_root: Utf8PathBuf,
    /// Every loaded config file, the base also when absent.
    pub config_files: Vec<Utf8PathBuf>,
    /// The drop-in directory.
    pub drop_in_dir: Utf8PathBuf,
    /// `policy.forbid_paths`.
    pub forbid_paths: Vec<LexicalPath>,
    /// Relocated stores of credentials, by variable, from fleet's own environment (01 §2.6.3).
    pub relocated: Vec<(String, LexicalPath)>,
    /// Sockets of the session named in fleet's own environment: agent, D-Bus, tmux.
    pub sockets: Vec<(String, LexicalPath)>,
    /// The directories of fleet's own `PATH`.
    pub path_dirs: Vec<LexicalPath>,
    /// The fleet binary.
    pub binary: Option<LexicalPath>,
    /// Directories that an agent of the fleet may write. What a link in one of them leads to is the
    /// agent's choice.
    pub agent_dirs: Vec<LexicalPath>,
    /// The uid that fleet runs as.
    pub uid: u32,
}

/// A directory that an agent may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDirectory {
    /// Its path, links followed where that could be told.
    pub path: LexicalPath,
    /// Which one it is, if it exists.
    pub identity: Option<FileIdentity>,
}

/// One forbidden path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path as listed.
    pub path: LexicalPath,
    /// Where it leads; equal to `path` if that cannot be told.
    pub resolved: LexicalPath,
    /// How strictly it is forbidden.
    pub tier: Tier,
    /// What kind of thing is there, for messages.
    pub what: &'static str,
    /// Whether this is the state root, from which a role's own directories are exempt.
    pub state_root: bool,
    /// Whether this is the directory of the drop-ins, in which the operator keeps briefings too.
    pub drop_in_dir: bool,
    /// Whether this is a harness's own home or something in it, of which a role of that harness may
    /// see the shared items.
    pub harness: bool,
}

/// Directories of the role inside the state root that its sandbox shows.
#[derive(Debug, Clone, Default)]
pub struct OwnDirs {
    /// STATE, resolved. Mounts that the role asks for may lie in it.
    pub state: Option<LexicalPath>,
    /// What fleet itself mounts, resolved: exactly these, nothing below.
    pub fleet: Vec<LexicalPath>,
    /// The operator's home of the role's own harness, resolved.
    pub operator: Option<LexicalPath>,
    /// Shared items of that home, resolved, each with the name that it has there: exactly these,
    /// nothing below.
    pub shared: Vec<(LexicalPath, String)>,
    /// A text that lies directly in the directory of the drop-ins, resolved: exactly this one.
    pub beside_drop_ins: Option<LexicalPath>,
}

/// One question to the judge.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Which side of the mount.
    pub side: Side,
    /// The path as written.
    pub written: &'a str,
    /// The same, links followed.
    pub resolved: &'a Resolved,
    /// Whether the mount can be written.
    pub mode: MountMode,
    /// Whether the role asks for it; otherwise fleet mounts it of its own accord.
    pub by_user: bool,
    /// The role's own directories.
    pub own: &'a OwnDirs,
}

/// The list, resolved once and then asked for every mount of every role.
#[derive(Debug)]
pub struct ForbiddenList {
    entries: Vec<Entry>,
    patterns: Vec<(LexicalPath, &'static NamePattern)>,
    index: Index,
    state_root: Option<LexicalPath>,
    /// Inputs that are no plain absolute path: with one of them missing nothing can be judged.
    unusable: Vec<String>,
    agent_dirs: Vec<LexicalPath>,
    /// The same, looked at when the first link makes them matter.
    agent_directories: OnceLock<Vec<AgentDirectory>>,
}

impl ForbiddenList {
    /// Version of the entries, shown in plans and by `doctor`.
    pub const VERSION: u32 = 2;

    /// Builds and resolves the list. An input that is no plain absolute path makes every later
    /// question end in a refusal: a list with a hole would say yes to too much.
    pub fn build(inputs: &ForbiddenInputs<'_>, probe: &dyn PathProbe) -> Self {
        let mut draft = Draft::collect(inputs);
        // Strictest first: of several entries that apply, the first is named.
        draft.entries.sort_by_key(|entry| entry.tier);
        let mut index = Index::default();
        for (number, entry) in draft.entries.iter_mut().enumerate() {
            let resolved = probe.resolve(&entry.path).ok();
            if let Some(resolved) = &resolved {
                entry.resolved = resolved.path.clone();
            }
            index.add(number, entry, resolved.as_ref(), probe);
        }
        for (directory, pattern) in &draft.patterns {
            index.add_pattern(directory, pattern, probe);
        }
        let state_root = draft.entries.iter().find(|entry| entry.state_root);
        let state_root = state_root.map(|entry| entry.resolved.clone());
        let Draft { entries, patterns, unusable } = draft;
        Self {
            entries,
            patterns,
            index,
            state_root,
            unusable,
            agent_dirs: inputs.agent_dirs.clone(),
            agent_directories: OnceLock::new(),
        }
    }

    /// Every entry with a fixed path, strictest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What is there at this moment of the entries of a tier that are known by a part of their name.
    pub fn names(&self, tier: Tier, probe: &dyn PathProbe) -> Vec<LexicalPath> {
        /// Names looked at in one directory.
        const MOST: usize = 1 << 16;
        let mut found = Vec::new();
        for (directory, pattern) in self.patterns.iter().filter(|(_, it)| it.tier == tier) {
            let Ok(real) = probe.resolve(directory) else { continue };
            let names = probe.entries(&real.path, MOST).unwrap_or_default();
            found.extend(
                names
                    .iter()
                    .filter(|name| pattern.fits(name))
                    .filter_map(|name| real.path.child(name).ok()),
            );
        }
        found
    }

    /// The directories that an agent of the fleet may write, as they were when this was first asked.
    pub fn agent_directories(&self, probe: &dyn PathProbe) -> &[AgentDirectory] {
        self.agent_directories.get_or_init(|| {
            let look = |path: &LexicalPath| match probe.resolve(path) {
                Ok(it) => AgentDirectory {
                    path: it.path,
                    identity: it.object.map(|object| object.identity),
                },
                Err(_) => AgentDirectory { path: path.clone(), identity: None },
            };
            self.agent_dirs.iter().map(look).collect()
        })
    }

    /// The state root, links followed.
    pub fn state_root(&self) -> Option<&LexicalPath> {
        self.state_root.as_ref()
    }

    /// Judges one side of one mount: root gate, entries by path and identity, mount points inside,
    /// kind of object.
    ///
    /// # Security
    /// Says yes only to what it has looked at: a list with a hole, or a mount table that cannot be
    /// read, is a refusal. The answer is about the moment of `question.resolved`.
    pub fn judge(
        &self,
        question: &Question<'_>,
        probe: &dyn PathProbe,
    ) -> Result<(), Box<Conflict>> {
        let resolved = question.resolved;
        let refuse = |via: Option<LexicalPath>, cause: Cause| {
            Err(Box::new(Conflict {
                side: question.side,
                written: question.written.to_owned(),
                resolved: resolved.path.clone(),
                via,
                cause,
            }))
        };
        if let Some(input) = self.unusable.first() {
            return refuse(None, Cause::ListIncomplete { input: input.clone() });
        }
        if resolved.path == LexicalPath::root() {
            return refuse(None, Cause::Root);
        }
        let candidate = Candidate {
            path: &resolved.path,
            identity: resolved.object.map(|object| object.identity),
            ancestors: &resolved.ancestors,
        };
        if let Some(hit) = self.index.compare(&candidate, &self.entries, question) {
            return refuse(None, hit);
        }
        let Some(object) = resolved.object.filter(|_| question.side == Side::Source) else {
            return Ok(());
        };
        if !matches!(object.kind, FileKind::File | FileKind::Directory) {
            return refuse(None, Cause::Kind { kind: object.kind });
        }
        if object.kind == FileKind::Directory {
            let inside = match probe.mounts_below(&resolved.path) {
                Ok(inside) => inside,
                Err(error) => return refuse(None, Cause::Unreadable { error }),
            };
            for (place, identity) in inside {
                let candidate =
                    Candidate { path: &place, identity: Some(identity), ancestors: &[] };
                if let Some(hit) = self.index.compare(&candidate, &self.entries, question) {
                    return refuse(Some(place), hit);
                }
            }
        }
        Ok(())
    }
}

/// What the tables and the inputs say, before anything is resolved.
#[derive(Default)]
struct Draft {
    entries: Vec<Entry>,
    patterns: Vec<(LexicalPath, &'static NamePattern)>,
    unusable: Vec<String>,
}

impl Draft {
    fn collect(inputs: &ForbiddenInputs<'_>) -> Self {
        let mut draft = Self::default();
        let mut homes: Vec<LexicalPath> = Vec::new();
        let named =
            [Some(&inputs.homes.fleet), Some(&inputs.homes.os), inputs.homes.passwd.as_ref()];
        for home in named.into_iter().flatten() {
            if let Some(home) = draft.lexical(home)
                && !homes.contains(&home)
            {
                homes.push(home);
            }
        }
        if let Some(path) = draft.lexical(&inputs.state_root) {
            draft.push(Tier::NoExposure, path, "state of the fleet");
            if let Some(entry) = draft.entries.last_mut() {
                entry.state_root = true;
            }
        }
        for file in inputs.config_files.iter().chain([&inputs.drop_in_dir]) {
            if let Some(path) = draft.lexical(file) {
                let drop_in_dir = path.as_path() == inputs.drop_in_dir;
                draft.push(Tier::NoExposure, path, "fleet configuration");
                if let Some(entry) = draft.entries.last_mut().filter(|_| drop_in_dir) {
                    entry.drop_in_dir = true;
                }
            }
        }
        for path in &inputs.forbid_paths {
            draft.push(Tier::NoExposure, path.clone(), "listed in `policy.forbid_paths`");
        }
        for home in &homes {
            for group in tiers::BELOW_HOME {
                draft.join_all(home, group, Some);
            }
            for file in tiers::KEY_FILES {
                draft.join(Tier::NoExposure, home, file, "keys and credentials");
            }
            for file in tiers::HARNESS_KEY_FILES {
                draft.join(Tier::NoExposure, home, file, tiers::HARNESS);
            }
            for pattern in tiers::PATTERNS {
                draft.pattern(home, pattern.directory, pattern);
            }
        }
        for (variable, path) in &inputs.relocated {
            draft.relocate(variable, path);
        }
        draft.system(inputs, &homes);
        draft
    }

    fn relocate(&mut self, variable: &str, path: &LexicalPath) {
        match tiers::relocation(variable) {
            Relocation::Whole(tier, what) => self.push(tier, path.clone(), what),
            Relocation::Replaces(prefix) => {
                for group in tiers::BELOW_HOME {
                    self.join_all(path, group, |entry| entry.strip_prefix(prefix));
                }
                for pattern in tiers::PATTERNS {
                    if pattern.directory == prefix.trim_end_matches('/') {
                        self.pattern(path, "", pattern);
                    }
                }
            }
        }
    }

    fn system(&mut self, inputs: &ForbiddenInputs<'_>, homes: &[LexicalPath]) {
        let root = LexicalPath::root();
        for group in tiers::SYSTEM {
            self.join_all(&root, group, |path| {
                let path = path.trim_start_matches('/');
                let home = path == "root"
                    && homes.iter().any(|home| home.from_root_to_self().nth(1) == Some("/root"));
                (!home).then_some(path)
            });
        }
        let tmux = format!("tmp/tmux-{}", inputs.uid);
        self.join(Tier::System, &root, &tmux, "sockets of tmux");
        for (_, path) in &inputs.sockets {
            self.push(Tier::System, path.clone(), "sockets of the session");
        }
        for path in inputs.path_dirs.iter().filter(|path| **path != root) {
            self.push(Tier::NoWrite, path.clone(), "a directory of fleet's own PATH");
        }
        if let Some(binary) = &inputs.binary {
            self.push(Tier::NoWrite, binary.clone(), "the fleet program");
        }
    }

    fn lexical(&mut self, path: &Utf8Path) -> Option<LexicalPath> {
        let lexical = LexicalPath::absolute(path.as_str());
        if lexical.is_err() {
            self.unusable.push(path.to_string());
        }
        lexical.ok()
    }

    fn join_all(
        &mut self,
        base: &LexicalPath,
        group: &Group,
        place: impl Fn(&'static str) -> Option<&'static str>,
    ) {
        for path in group.paths.iter().filter_map(|path| place(path)) {
            self.join(group.tier, base, path, group.what);
        }
    }

    fn join(&mut self, tier: Tier, base: &LexicalPath, below: &str, what: &'static str) {
        match base.join(below) {
            Ok(path) => self.push(tier, path, what),
            Err(_) => self.unusable.push(format!("{base}/{below}")),
        }
    }

    fn pattern(&mut self, base: &LexicalPath, below: &str, pattern: &'static NamePattern) {
        let directory = if below.is_empty() { Ok(base.clone()) } else { base.join(below) };
        match directory {
            Ok(directory) => self.patterns.push((directory, pattern)),
            Err(_) => self.unusable.push(format!("{base}/{below}")),
        }
    }

    fn push(&mut self, tier: Tier, path: LexicalPath, what: &'static str) {
        if !self.entries.iter().any(|entry| entry.path == path && entry.tier == tier) {
            let (resolved, harness) = (path.clone(), what == tiers::HARNESS);
            self.entries.push(Entry {
                path,
                resolved,
                tier,
                what,
                state_root: false,
                drop_in_dir: false,
                harness,
            });
        }
    }
}
