//! What fleet knows of the account it runs in, gathered once at the edge and passed in as a value.

use camino::Utf8PathBuf;

use crate::config::Fleet;
use crate::isolation::forbidden::ForbiddenInputs;
use crate::launch::Environment;
use crate::layout::{FleetLayout, Homes};
use crate::path::{LexicalPath, LexicalPathError};
use crate::port::PathProbe;
use crate::programs::{PassedOver, ProgramTrust, agent_dirs};

/// The account, its homes and fleet's own environment.
#[derive(Debug, Clone)]
pub struct World {
    /// The homes of the account.
    pub homes: Homes,
    /// Where the fleet keeps its state.
    pub layout: FleetLayout,
    /// The uid that fleet runs as.
    pub uid: u32,
    /// The name of that account.
    pub user: String,
    /// Fleet's own environment.
    pub env: Environment,
    /// The directories of fleet's own `PATH` that are absolute and plain, and in which programs are
    /// looked for.
    pub path_dirs: Vec<LexicalPath>,
    /// Those of its directories in which none is looked for.
    pub passed_over: Vec<PassedOver>,
    /// By what programs are trusted that fleet runs itself.
    pub trust: ProgramTrust,
    /// Relocated stores of credentials, by variable.
    pub relocated: Vec<(String, LexicalPath)>,
    /// Sockets of the session named in the environment.
    pub sockets: Vec<(String, LexicalPath)>,
    /// The fleet binary.
    pub binary: Utf8PathBuf,
    /// Version of fleet.
    pub version: String,
}

impl World {
    /// An account of which nothing is known but its name, its uid and its home: the fleet home is
    /// that home, the environment is empty, programs are looked for in `/usr/local/bin`, `/usr/bin`
    /// and `/bin`. Every field can be set afterwards.
    ///
    /// # Errors
    /// The home is no plain absolute path.
    ///
    /// # Security
    /// What the environment says of other places of keys and sockets (`GNUPGHOME`, `SSH_AUTH_SOCK`,
    /// …) is not known here: a program that judges for the account it runs in fills in
    /// [`World::relocated`] and [`World::sockets`].
    pub fn of_account(
        user: impl Into<String>,
        uid: u32,
        home: impl Into<Utf8PathBuf>,
    ) -> Result<Self, LexicalPathError> {
        let home = LexicalPath::absolute(home.into().as_str())?.as_path().to_owned();
        let path_dirs = ["/usr/local/bin", "/usr/bin", "/bin"].map(LexicalPath::absolute);
        Ok(Self {
            layout: FleetLayout::new(&home),
            homes: Homes { fleet: home.clone(), os: home, passwd: None },
            uid,
            user: user.into(),
            env: Environment::default(),
            path_dirs: path_dirs.into_iter().collect::<Result<_, _>>()?,
            passed_over: Vec::new(),
            trust: ProgramTrust::default(),
            relocated: Vec::new(),
            sockets: Vec::new(),
            binary: Utf8PathBuf::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// What `~` means in a fleet file.
    ///
    /// # Errors
    /// The home of the account is no plain absolute path.
    pub fn home(&self) -> Result<LexicalPath, LexicalPathError> {
        LexicalPath::absolute(self.homes.os.as_str())
    }

    /// What the list of forbidden paths is made from, for one fleet.
    pub fn forbidden_inputs(&self, fleet: &Fleet) -> ForbiddenInputs<'_> {
        let mut config_files = fleet.source_files.clone();
        let passed = self.passed_over.iter().map(|it| &it.directory);
        config_files.push(self.layout.base_config());
        ForbiddenInputs {
            homes: &self.homes,
            state_root: self.layout.root().to_owned(),
            config_files,
            drop_in_dir: self.layout.drop_in_dir(),
            forbid_paths: fleet.policy.forbid_paths.clone(),
            relocated: self.relocated.clone(),
            sockets: self.sockets.clone(),
            // No role may write what a `PATH` names, whether it is searched at this moment or not.
            path_dirs: self.path_dirs.iter().chain(passed).cloned().collect(),
            binary: LexicalPath::absolute(self.binary.as_str()).ok(),
            agent_dirs: fleet.roles.values().flat_map(agent_dirs).cloned().collect(),
            uid: self.uid,
        }
    }

    /// With programs taken only from where no agent of the fleet may write.
    #[must_use]
    pub fn trusting(mut self, trust: ProgramTrust, probe: &dyn PathProbe) -> Self {
        let (search, passed) = trust.split(std::mem::take(&mut self.path_dirs), probe);
        self.path_dirs = search;
        self.passed_over.extend(passed);
        self.trust = trust;
        self
    }

    /// The directories in which a program of this name may be looked for: not where it is itself in
    /// reach of an agent, through a link.
    pub fn dirs_for(&self, program: &str, probe: &dyn PathProbe) -> Vec<LexicalPath> {
        let trusted = |directory: &&LexicalPath| {
            let candidate = directory.child(program);
            candidate.is_ok_and(|it| self.trust.distrust(&it, probe).is_none())
        };
        self.path_dirs.iter().filter(trusted).cloned().collect()
    }

    /// `PATH` for agents: the plain absolute directories of fleet's own, in their order.
    pub fn path(&self) -> String {
        let dirs: Vec<&str> = self.path_dirs.iter().map(LexicalPath::as_str).collect();
        dirs.join(":")
    }
}
