//! From a block to a policy (01 §2.3): mounts with modes, order and reasons.

mod destinations;
mod git_config;
mod git_links;
mod git_tree;
mod links;
mod overlays;
mod own;
mod repository;
mod secrets;

use camino::Utf8Path;

use self::destinations::Cover;
use super::forbidden::{Cause, Conflict, ForbiddenList, OwnDirs, Question, Side};
use super::network::HostRule;
use super::policy::{
    Backend, IsolationBlock, IsolationPolicy, Mount, MountMode, MountOrigin, NetworkMode, Tmpfs,
};
use super::tiers::PROGRAM_DIRECTORIES;
use crate::diagnostic::{Code, Diagnostic};
use crate::harness::shared::SharedItems;
use crate::layout::{Homes, RoleTrees};
use crate::path::LexicalPath;
use crate::port::{FileKind, PathProbe, Resolved};

pub use self::git_links::worktree_repository;
pub use self::overlays::{DEFAULT_PROTECT, protected_paths};

/// What a resolution needs beside the block.
#[derive(Debug, Clone, Copy)]
pub struct ResolveContext<'a> {
    /// The role's four trees.
    pub trees: &'a RoleTrees,
    /// The harness's config home inside the harness tree.
    pub harness_home: &'a Utf8Path,
    /// The declared working directory; STATE if absent.
    pub cwd: Option<&'a LexicalPath>,
    /// How the working directory is mounted: read-only under `filesystem: read-only` (01 §3.2).
    pub cwd_mode: MountMode,
    /// The homes of the account.
    pub homes: &'a Homes,
    /// What no role may reach.
    pub forbidden: &'a ForbiddenList,
    /// What the harness was told to write in as well ([`Harness::write_dirs`](crate::harness::Harness)).
    pub write_dirs: &'a [LexicalPath],
    /// Files needed to run the harness program; empty when not known yet.
    pub launch_closure: &'a [LexicalPath],
    /// What the role sees of the operator's harness home; empty for a harness without one.
    pub shared: &'a SharedItems,
    /// What the harness must reach for its model, for `network: broker`.
    pub model_endpoints: &'a [HostRule],
    /// The uid that fleet runs as.
    pub uid: u32,
}

const MIB: u64 = 1024 * 1024;

/// In-memory directories outside the home: destination, cap, permission bits.
const TMPFS: &[(&str, u64, u32)] = &[
    ("/tmp", 512 * MIB, 0o1777),
    ("/run", 16 * MIB, 0o755),
    ("/var/tmp", 256 * MIB, 0o1777),
    ("/dev/shm", 64 * MIB, 0o1777),
];
const HOME_CAP: u64 = 256 * MIB;
const CACHE_CAP: u64 = 256 * MIB;

/// A mount in the making.
#[derive(Debug)]
struct Draft {
    mount: Mount,
    written: String,
    resolved: Resolved,
}

/// A source that was reached through links.
struct Linked {
    written: String,
    origin: MountOrigin,
    resolved: Resolved,
}

/// The state of one resolution.
struct Work<'a> {
    block: &'a IsolationBlock,
    context: &'a ResolveContext<'a>,
    probe: &'a dyn PathProbe,
    own: OwnDirs,
    drafts: Vec<Draft>,
    linked: Vec<Linked>,
    problems: Vec<Diagnostic>,
    residual_risks: Vec<String>,
    /// Paths to protect that do not exist, below the cwd.
    absent: Vec<String>,
}

/// Resolves a block. Every problem is reported, each with the dotted path of the key below the role
/// (`isolation.fs.read[0]`, `cwd`) and without a place: the caller knows the file.
///
/// A source that does not exist is no problem here: see [`IsolationPolicy::missing_sources`].
///
/// # Security
/// On `Ok` no mount is, is inside or contains a path that no role may reach, as far as `probe` could
/// see at this moment; the launcher compares identities again right before use. `backend: none` gives
/// a policy without mounts, which protects nothing.
pub fn resolve(
    block: &IsolationBlock,
    context: &ResolveContext<'_>,
    probe: &dyn PathProbe,
) -> Result<IsolationPolicy, Vec<Diagnostic>> {
    let home = lexical(&context.homes.os).map_err(|problem| vec![*problem])?;
    let state = lexical(&context.trees.state).map_err(|problem| vec![*problem])?;
    if block.backend == Backend::None {
        let cwd = context.cwd.cloned().unwrap_or(state);
        return Ok(policy(block, context, cwd, home));
    }
    if home == LexicalPath::root() {
        return Err(vec![
            Diagnostic::error(Code::InvalidValue, "HOME is `/`, which no sandbox can replace")
                .path("isolation")
                .hint("start fleet with HOME set to the home of the account"),
        ]);
    }
    let mut work = Work {
        block,
        context,
        probe,
        own: OwnDirs::default(),
        drafts: Vec::new(),
        linked: Vec::new(),
        problems: Vec::new(),
        residual_risks: Vec::new(),
        absent: Vec::new(),
    };
    work.own_directories();
    work.shared_items();
    let cwd = work.working_directory(&state);
    work.launch_closure();
    for (index, path) in context.write_dirs.iter().enumerate() {
        let origin = MountOrigin::AddDir { index };
        work.declared(path.as_str(), path, MountMode::ReadWrite, origin);
    }
    for (index, path) in block.fs_write.iter().enumerate() {
        let origin = MountOrigin::FsWrite { index };
        work.declared(&path.written, &path.path, MountMode::ReadWrite, origin);
    }
    for (index, path) in block.fs_read.iter().enumerate() {
        let origin = MountOrigin::FsRead { index };
        work.declared(&path.written, &path.path, MountMode::ReadOnly, origin);
    }
    let linked = work.linked_repository(&cwd);
    work.drafts.sort_by(|a, b| a.mount.origin.cmp(&b.mount.origin));
    work.protected_destinations(&home);
    let mut cover = Cover::default();
    work.merge_duplicates(&mut cover);
    work.secrets(&mut cover, &home);
    work.closure_is_out_of_reach();
    let ephemeral = work.overlays(&mut cover, &cwd, linked);
    work.links_are_out_of_reach();

    if !work.problems.is_empty() {
        return Err(work.problems);
    }
    let mut mounts: Vec<Mount> = work.drafts.into_iter().map(|draft| draft.mount).collect();
    mounts.sort_by_cached_key(|mount| (mount.destination.depth(), mount.origin.clone()));
    let mut policy = policy(block, context, cwd, home.clone());
    policy.mounts = mounts;
    policy.tmpfs = tmpfs(&home);
    policy.ephemeral_dirs = ephemeral;
    policy.residual_risks = work.residual_risks;
    Ok(policy)
}

fn policy(
    block: &IsolationBlock,
    context: &ResolveContext<'_>,
    cwd: LexicalPath,
    home: LexicalPath,
) -> IsolationPolicy {
    IsolationPolicy {
        backend: block.backend,
        network: block.network(),
        reachable: reachable(block, context.model_endpoints),
        resources: block.resources,
        mounts: Vec::new(),
        tmpfs: Vec::new(),
        system: block.system,
        nested_sandbox: block.nested_sandbox,
        cwd,
        home,
        ephemeral_dirs: Vec::new(),
        residual_risks: Vec::new(),
        blocklist_version: ForbiddenList::VERSION,
    }
}

/// What the mode lets through (01 §2.8), each once: the harness's own endpoints first.
fn reachable(block: &IsolationBlock, model_endpoints: &[HostRule]) -> Vec<HostRule> {
    let own = match block.network() {
        NetworkMode::Broker => model_endpoints,
        NetworkMode::Allowlist => &[],
        NetworkMode::Deny | NetworkMode::Allow => return Vec::new(),
    };
    let mut rules: Vec<HostRule> = Vec::with_capacity(own.len() + block.allow_hosts.len());
    for rule in own.iter().chain(&block.allow_hosts) {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    rules
}

fn tmpfs(home: &LexicalPath) -> Vec<Tmpfs> {
    let fixed = TMPFS.iter().filter_map(|(path, size, mode)| {
        let destination = LexicalPath::absolute(path).ok()?;
        Some(Tmpfs { destination, size: *size, mode: *mode })
    });
    let cache = home.child(".cache").ok();
    let cache = cache.map(|destination| Tmpfs { destination, size: CACHE_CAP, mode: 0o700 });
    let own = Tmpfs { destination: home.clone(), size: HOME_CAP, mode: 0o700 };
    let mut all: Vec<Tmpfs> = fixed.chain([own]).chain(cache).collect();
    all.sort_by_key(|tmpfs| tmpfs.destination.depth());
    all
}

fn lexical(path: &Utf8Path) -> Result<LexicalPath, Box<Diagnostic>> {
    LexicalPath::absolute(path.as_str()).map_err(|error| {
        let problem = Diagnostic::error(Code::InvalidValue, error.to_string())
            .path("isolation")
            .found(path.as_str());
        Box::new(problem)
    })
}

impl Work<'_> {
    /// Looks at a source; a failure is noted as a problem of the mount's key.
    fn look(
        &mut self,
        written: &str,
        path: &LexicalPath,
        origin: &MountOrigin,
    ) -> Option<Resolved> {
        match self.probe.resolve(path) {
            Ok(resolved) => Some(resolved),
            Err(error) => {
                let conflict = Conflict {
                    side: Side::Source,
                    written: written.to_owned(),
                    resolved: path.clone(),
                    via: None,
                    cause: Cause::Unreadable { error },
                };
                self.problems.push(conflict.diagnostic(origin.key()));
                None
            }
        }
    }

    /// Judges one side of a mount; a refusal is noted. Returns whether it passed.
    fn judge(
        &mut self,
        side: Side,
        written: &str,
        resolved: &Resolved,
        mode: MountMode,
        origin: &MountOrigin,
    ) -> bool {
        // What the closure needs is not asked for by the role, but must not be less guarded.
        let by_user = origin.is_by_user() || *origin == MountOrigin::LaunchClosure;
        let question = Question { side, written, resolved, mode, by_user, own: &self.own };
        match self.context.forbidden.judge(&question, self.probe) {
            Ok(()) => true,
            Err(conflict) => {
                self.problems.push(conflict.diagnostic(origin.key()));
                false
            }
        }
    }

    /// Adds a mount that appears where its source is.
    fn declared(
        &mut self,
        written: &str,
        path: &LexicalPath,
        mode: MountMode,
        origin: MountOrigin,
    ) {
        let Some(resolved) = self.look(written, path, &origin) else { return };
        if self.judge(Side::Source, written, &resolved, mode, &origin) {
            let destination = resolved.path.clone();
            self.push(written, resolved, destination, mode, origin);
        }
    }

    fn push(
        &mut self,
        written: &str,
        resolved: Resolved,
        destination: LexicalPath,
        mode: MountMode,
        origin: MountOrigin,
    ) {
        self.note_links(written, &origin, &resolved);
        let mount = Mount {
            source: resolved.path.clone(),
            identity: resolved.object.map(|object| object.identity),
            kind: resolved.object.map(|object| object.kind),
            destination,
            mode,
            origin,
        };
        self.drafts.push(Draft { mount, written: written.to_owned(), resolved });
    }

    /// Mounts the working directory unless it is STATE, and says where the command starts.
    fn working_directory(&mut self, state: &LexicalPath) -> LexicalPath {
        let Some(cwd) = self.context.cwd else { return state.clone() };
        let Some(resolved) = self.look(cwd.as_str(), cwd, &MountOrigin::Cwd) else {
            return cwd.clone();
        };
        if Some(&resolved.path) == self.own.state.as_ref() {
            return state.clone();
        }
        if let Some(object) = resolved.object
            && !matches!(object.kind, FileKind::Directory)
        {
            let problem = Diagnostic::error(Code::InvalidValue, "not a directory");
            self.problems.push(problem.path("cwd").found(cwd.as_str()));
            return cwd.clone();
        }
        let place = resolved.path.clone();
        let mode = self.context.cwd_mode;
        if self.judge(Side::Source, cwd.as_str(), &resolved, mode, &MountOrigin::Cwd) {
            self.push(cwd.as_str(), resolved, place.clone(), mode, MountOrigin::Cwd);
        }
        place
    }

    fn launch_closure(&mut self) {
        for file in self.context.launch_closure {
            if !is_program_directory(file) {
                let origin = MountOrigin::LaunchClosure;
                self.declared(file.as_str(), file, MountMode::ReadOnly, origin);
            }
        }
    }

    /// An agent that can write its own program, or a directory above it, can become another one.
    fn closure_is_out_of_reach(&mut self) {
        let closure =
            self.drafts.iter().filter(|draft| draft.mount.origin == MountOrigin::LaunchClosure);
        let mut problems = Vec::new();
        for program in closure {
            let writable = self.drafts.iter().find(|draft| {
                let seen = |identity| {
                    program.mount.identity == Some(identity)
                        || program.resolved.ancestors.contains(&identity)
                };
                draft.mount.mode == MountMode::ReadWrite
                    && (program.mount.source.is_within(&draft.mount.source)
                        || draft.mount.identity.is_some_and(seen))
            });
            if let Some(writable) = writable {
                problems.push(
                    Diagnostic::error(
                        Code::Conflict,
                        format!(
                            "the program `{}` lies in `{}`, which the role may write ({}): the \
                             agent could replace its own launcher",
                            program.mount.source, writable.mount.source, writable.mount.origin
                        ),
                    )
                    .path(writable.mount.origin.key())
                    .hint("move the program out of the writable directory"),
                );
            }
        }
        self.problems.append(&mut problems);
    }
}

/// Whether every sandbox shows this path anyway, read-only.
pub(super) fn is_program_directory(path: &LexicalPath) -> bool {
    path.from_root_to_self().nth(1).is_some_and(|top| PROGRAM_DIRECTORIES.contains(&top))
}
