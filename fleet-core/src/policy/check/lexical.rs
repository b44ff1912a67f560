//! The machine that does not exist.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use crate::config::Role;
use crate::harness::LaunchDirs;
use crate::launch::Environment;
use crate::layout::{FleetLayout, Homes};
use crate::path::LexicalPath;
use crate::plan::working_directory;
use crate::port::{FileIdentity, PathProbe, PathProbeError, Resolved};
use crate::programs::ProgramTrust;
use crate::world::World;

/// What `~` means in a check.
pub const NOMINAL_HOME: &str = "/home/operator";

/// Directories in which no machine keeps what a fleet file may name.
const NOMINAL_PATH: &[&str] = &["/usr/local/bin", "/usr/bin", "/bin"];

/// A probe for which nothing exists, so that a path is nothing but its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct LexicalProbe;

impl PathProbe for LexicalProbe {
    fn resolve(&self, path: &LexicalPath) -> Result<Resolved, PathProbeError> {
        Ok(Resolved::nothing_at(path.clone()))
    }

    fn mounts_below(
        &self,
        _directory: &LexicalPath,
    ) -> Result<Vec<(LexicalPath, FileIdentity)>, PathProbeError> {
        Ok(Vec::new())
    }

    fn head(&self, _file: &LexicalPath, _limit: usize) -> Result<Vec<u8>, PathProbeError> {
        Ok(Vec::new())
    }

    fn content(
        &self,
        _file: &LexicalPath,
        _identity: FileIdentity,
        _limit: usize,
    ) -> Result<Vec<u8>, PathProbeError> {
        Ok(Vec::new())
    }

    fn entries(
        &self,
        _directory: &LexicalPath,
        _limit: usize,
    ) -> Result<Vec<String>, PathProbeError> {
        Ok(Vec::new())
    }

    fn ignores_case(&self, _path: &LexicalPath) -> bool {
        false
    }
}

/// The nominal home.
pub(super) fn home() -> LexicalPath {
    LexicalPath::absolute(NOMINAL_HOME).unwrap_or_else(|_| LexicalPath::root())
}

/// The nominal account, perhaps with one more home.
pub(super) fn world(other_home: Option<&LexicalPath>) -> World {
    let home = Utf8PathBuf::from(NOMINAL_HOME);
    let passwd = other_home.map(|other| other.as_path().to_owned());
    World {
        homes: Homes { fleet: home.clone(), os: home.clone(), passwd },
        layout: FleetLayout::new(&home),
        uid: 1000,
        user: "operator".to_owned(),
        env: Environment(BTreeMap::new()),
        path_dirs: NOMINAL_PATH.iter().filter_map(|dir| LexicalPath::absolute(dir).ok()).collect(),
        passed_over: Vec::new(),
        trust: ProgramTrust::default(),
        relocated: Vec::new(),
        sockets: Vec::new(),
        binary: "/usr/local/bin/ours-fleet".into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The directories of a role of that account.
pub(super) fn dirs(role: &Role) -> LaunchDirs {
    let trees = world(None).layout.role(&role.name);
    LaunchDirs {
        cwd: working_directory(role, &trees),
        git: Vec::new(),
        harness_home: trees.harness_home(&role.harness),
        handout: trees.handout.clone(),
        briefing: trees.briefing(),
        state: trees.state,
        aliases: BTreeMap::new(),
    }
}
