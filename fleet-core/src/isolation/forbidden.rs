//! What no role may reach (01 §2.6): one list, one judge, shared by `config`, `doctor` and the launch.

use camino::Utf8PathBuf;

use crate::layout::Homes;
use crate::path::LexicalPath;
use crate::port::PathProbe;

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
    /// The uid that fleet runs as.
    pub uid: u32,
}

/// The list, resolved once and then asked for every mount of every role.
#[derive(Debug)]
pub struct ForbiddenList {}

impl ForbiddenList {
    /// Version of the entries, shown in plans and by `doctor`.
    pub const VERSION: u32 = 1;

    /// Builds and resolves the list.
    pub fn build(_inputs: &ForbiddenInputs<'_>, _probe: &dyn PathProbe) -> Self {
        Self {}
    }
}
