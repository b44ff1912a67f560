//! One role on one machine in memory: what isolation tests start from.

use camino::Utf8PathBuf;

use crate::diagnostic::Diagnostic;
use crate::harness::shared::{SharedItems, SharedRequest, find};
use crate::harness::{HomeSpec, SharedItem, SharedKind};
use crate::id::{HarnessId, RoleName};
use crate::isolation::forbidden::{ForbiddenInputs, ForbiddenList};
use crate::isolation::network::HostRule;
use crate::isolation::resolve::{ResolveContext, resolve};
use crate::isolation::{FsPath, IsolationBlock, IsolationPolicy, MountMode, SecretEntry};
use crate::layout::{FleetLayout, Homes, RoleTrees};
use crate::path::LexicalPath;
use crate::port::PathProbe;

use super::fakes::MemoryTree;

/// The home of the account.
pub const HOME: &str = "/home/u";
/// The role under test; its sibling is `B`.
pub const ROLE: &str = "A";
/// The fleet user.
pub const UID: u32 = 1000;

const fn item(name: &'static str, kind: SharedKind) -> SharedItem {
    SharedItem { name, kind, below_account: false, login: false }
}

/// The home of a made-up harness whose operator's home is the forbidden one of Claude Code.
pub const SPEC: HomeSpec = HomeSpec {
    variable: "AGENT_HOME",
    operator: ".claude",
    shared: &[
        item("CLAUDE.md", SharedKind::File),
        item("plugins", SharedKind::Directory),
        item("rules", SharedKind::EachFile),
        SharedItem { login: true, ..item(".credentials.json", SharedKind::File) },
        SharedItem { below_account: true, ..item(".agents", SharedKind::Directory) },
    ],
    read: &["config.toml"],
};

/// A machine, a fleet and the isolation of role `A`. Change the parts, then resolve.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The file system.
    pub tree: MemoryTree,
    /// The homes.
    pub homes: Homes,
    /// Loaded config files.
    pub config_files: Vec<Utf8PathBuf>,
    /// `policy.forbid_paths`.
    pub forbid_paths: Vec<LexicalPath>,
    /// Relocated stores.
    pub relocated: Vec<(String, LexicalPath)>,
    /// Sockets of the session.
    pub sockets: Vec<(String, LexicalPath)>,
    /// fleet's own `PATH`.
    pub path_dirs: Vec<LexicalPath>,
    /// The working directory.
    pub cwd: Option<LexicalPath>,
    /// Its mode.
    pub cwd_mode: MountMode,
    /// What the harness was told to write in as well.
    pub write_dirs: Vec<LexicalPath>,
    /// Endpoints of the role's model.
    pub endpoints: Vec<HostRule>,
    /// What agents of the fleet may write.
    pub agent_dirs: Vec<LexicalPath>,
    /// Files of the launch closure.
    pub closure: Vec<LexicalPath>,
    /// What the role sees of the operator's harness home.
    pub shared: SharedItems,
    /// The block.
    pub block: IsolationBlock,
    /// The fleet user.
    pub uid: u32,
}

/// A path that the test knows to be plain.
///
/// # Panics
/// If it is not.
pub fn path(text: &str) -> LexicalPath {
    match LexicalPath::absolute(text) {
        Ok(path) => path,
        Err(error) => panic!("test path {text:?}: {error}"),
    }
}

fn id<T: std::str::FromStr>(text: &str) -> T {
    let Ok(id) = text.parse() else { panic!("test id {text:?} is not valid") };
    id
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// A home with keys, a project and a few directories, and the trees of two roles.
    pub fn new() -> Self {
        let homes = Homes { fleet: HOME.into(), os: HOME.into(), passwd: None };
        let mut tree = MemoryTree::new();
        tree.dir_mode("/tmp", 0o1777).dir("/usr/bin").dir("/usr/lib").dir("/etc").dir("/run");
        tree.file_mode("/usr/bin/bash", b"\x7fELF", 0o755).link("/bin", "usr/bin");
        tree.link("/var/run", "/run").dir("/data").dir("/opt/tools");
        tree.dir_mode(HOME, 0o750).dir_mode("/home/u/.ssh", 0o700);
        tree.file_mode("/home/u/.ssh/id_ed25519", "key", 0o600);
        tree.dir("/home/u/work").dir("/home/u/lib").file("/home/u/notes.txt", "notes");
        tree.file("/home/u/fleet.yaml", "roles: {}");
        let layout = FleetLayout::new(&homes.fleet);
        for role in [ROLE, "B"] {
            let trees = layout.role(&id(role));
            for dir in trees.all() {
                tree.dir_mode(dir.as_str(), 0o700);
            }
            tree.dir_mode(trees.harness_home(&Self::harness()).as_str(), 0o700);
        }
        Self {
            tree,
            config_files: vec![layout.base_config()],
            homes,
            forbid_paths: Vec::new(),
            relocated: Vec::new(),
            sockets: Vec::new(),
            path_dirs: vec![path("/usr/bin")],
            cwd: None,
            cwd_mode: MountMode::ReadWrite,
            write_dirs: Vec::new(),
            agent_dirs: Vec::new(),
            endpoints: Vec::new(),
            closure: Vec::new(),
            shared: SharedItems::default(),
            block: IsolationBlock::default(),
            uid: UID,
        }
    }

    fn harness() -> HarnessId {
        id("command")
    }

    /// The layout of the fleet.
    pub fn layout(&self) -> FleetLayout {
        FleetLayout::new(&self.homes.fleet)
    }

    /// The trees of role `A`.
    pub fn trees(&self) -> RoleTrees {
        self.layout().role(&id::<RoleName>(ROLE))
    }

    /// Sets the working directory.
    pub fn cwd(&mut self, text: &str) -> &mut Self {
        self.cwd = Some(path(text));
        self
    }

    /// Adds to `fs.read`.
    pub fn read(&mut self, text: &str) -> &mut Self {
        self.block.fs_read.push(FsPath { written: text.to_owned(), path: path(text) });
        self
    }

    /// Adds to `fs.write`.
    pub fn write(&mut self, text: &str) -> &mut Self {
        self.block.fs_write.push(FsPath { written: text.to_owned(), path: path(text) });
        self
    }

    /// Adds to `secrets`.
    pub fn secret(&mut self, from: &str, to: &str) -> &mut Self {
        let entry = SecretEntry { from: path(from), to: path(to), map_form: false };
        self.block.secrets.push(entry);
        self
    }

    /// Makes an operator's harness home with every item and with what must not be seen.
    pub fn operator_home(&mut self) -> &mut Self {
        let tree = &mut self.tree;
        tree.dir_mode("/home/u/.claude", 0o700).dir("/home/u/.claude/plugins/p");
        tree.file("/home/u/.claude/CLAUDE.md", "rules").file("/home/u/.claude/history.jsonl", "h");
        tree.file_mode("/home/u/.claude/.credentials.json", "token", 0o600);
        tree.file("/home/u/.claude/rules/a.rules", "a").file("/home/u/.claude/rules/b.rules", "b");
        tree.file("/home/u/.claude/projects/p/s.jsonl", "conversation");
        tree.file("/home/u/.codex/auth.json", "token").dir("/home/u/.agents/skills");
        self
    }

    /// Finds what the role sees of the operator's harness home ([`SPEC`]).
    pub fn share(&mut self) -> &mut Self {
        self.shared = self.shared_by(&SPEC);
        self
    }

    /// What a role of this harness sees.
    ///
    /// # Panics
    /// If the operator's home cannot be looked at.
    pub fn shared_by(&self, spec: &HomeSpec) -> SharedItems {
        let account = path(self.homes.os.as_str());
        let operator = path(&format!("{account}/{}", spec.operator));
        let forbidden = self.forbidden();
        let request = SharedRequest {
            spec,
            operator: &operator,
            account: &account,
            uid: self.uid,
            forbidden: &forbidden,
            replaced: &[],
            written: &[],
        };
        match find(&request, &self.tree) {
            Ok(shared) => shared,
            Err(error) => panic!("the operator's home: {error}"),
        }
    }

    /// The list of forbidden paths, looked at through `probe`.
    pub fn forbidden_by(&self, probe: &dyn PathProbe) -> ForbiddenList {
        let layout = self.layout();
        let inputs = ForbiddenInputs {
            homes: &self.homes,
            state_root: layout.root().to_owned(),
            config_files: self.config_files.clone(),
            drop_in_dir: layout.drop_in_dir(),
            forbid_paths: self.forbid_paths.clone(),
            relocated: self.relocated.clone(),
            sockets: self.sockets.clone(),
            path_dirs: self.path_dirs.clone(),
            binary: None,
            agent_dirs: self.agent_dirs.clone(),
            uid: self.uid,
        };
        ForbiddenList::build(&inputs, probe)
    }

    /// The list of forbidden paths.
    pub fn forbidden(&self) -> ForbiddenList {
        self.forbidden_by(&self.tree)
    }

    /// Resolves, looking through `probe`.
    pub fn resolve_by(&self, probe: &dyn PathProbe) -> Result<IsolationPolicy, Vec<Diagnostic>> {
        let trees = self.trees();
        let forbidden = self.forbidden_by(probe);
        let context = ResolveContext {
            trees: &trees,
            harness_home: &trees.harness_home(&Self::harness()),
            cwd: self.cwd.as_ref(),
            cwd_mode: self.cwd_mode,
            homes: &self.homes,
            forbidden: &forbidden,
            write_dirs: &self.write_dirs,
            launch_closure: &self.closure,
            shared: &self.shared,
            model_endpoints: &self.endpoints,
            uid: self.uid,
        };
        resolve(&self.block, &context, probe)
    }

    /// Resolves.
    pub fn resolve(&self) -> Result<IsolationPolicy, Vec<Diagnostic>> {
        self.resolve_by(&self.tree)
    }
}
