//! Every environment variable that fleet knows, and the only place that reads the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;

use camino::Utf8PathBuf;

/// Replaces the home for configuration and state.
pub const FLEET_HOME: &str = "OURS_FLEET_HOME";
/// Chooses the supervisor.
pub const FLEET_SUPERVISOR: &str = "OURS_FLEET_SUPERVISOR";
/// The account's home.
pub const HOME: &str = "HOME";
/// The account's name, where the user database has none.
pub const USER: &str = "USER";
/// Where programs are looked up.
pub const PATH: &str = "PATH";
/// The account's runtime directory.
pub const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
/// Where the user's configuration is, that of systemd too.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Where the service manager that started this process waits for word.
pub const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";
/// Any value but the empty one turns colours off.
pub const NO_COLOR: &str = "NO_COLOR";
/// Name of the terminal type.
pub const TERM: &str = "TERM";

/// Variables that move a store of credentials or configuration away from its usual place (01 §2.6.3).
pub const RELOCATED: &[&str] = &[
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CARGO_HOME",
    "CLAUDE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "CODEX_HOME",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "KUBECONFIG",
    "NPM_CONFIG_USERCONFIG",
    "OURS_CONFIG",
    "OURS_STATE_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Socket of the ssh agent.
pub const SSH_AUTH_SOCK: &str = "SSH_AUTH_SOCK";
/// Address of the session bus.
pub const DBUS_SESSION_BUS_ADDRESS: &str = "DBUS_SESSION_BUS_ADDRESS";
/// Address of the container engine.
pub const DOCKER_HOST: &str = "DOCKER_HOST";
/// Socket of the surrounding tmux server, with two more fields behind commas.
pub const TMUX: &str = "TMUX";
/// Where tmux keeps its sockets.
pub const TMUX_TMPDIR: &str = "TMUX_TMPDIR";
/// Name or path of the Wayland socket.
pub const WAYLAND_DISPLAY: &str = "WAYLAND_DISPLAY";
/// Address of the sound server.
pub const PULSE_SERVER: &str = "PULSE_SERVER";

/// A snapshot of the environment and of the other facts that a process starts with.
///
/// Values may be secret, so `Debug` prints names only.
#[derive(Clone, Default)]
pub struct Env {
    vars: BTreeMap<String, String>,
    not_utf8: Vec<String>,
    cwd: Option<Utf8PathBuf>,
    executable: Option<Utf8PathBuf>,
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.vars.keys()).finish()
    }
}

impl Env {
    /// The environment of this process.
    pub fn from_process() -> Self {
        let mut env = Self {
            cwd: std::env::current_dir().ok().and_then(|dir| Utf8PathBuf::from_path_buf(dir).ok()),
            executable: std::env::current_exe()
                .ok()
                .and_then(|path| Utf8PathBuf::from_path_buf(path).ok()),
            ..Self::default()
        };
        for (name, value) in std::env::vars_os() {
            env.add(name, value);
        }
        env
    }

    /// A given environment, for tests and embedders.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let mut env = Self::default();
        for (name, value) in pairs {
            env.add(name.into(), value.into());
        }
        env
    }

    /// With a working directory.
    #[must_use]
    pub fn in_dir(mut self, cwd: impl Into<Utf8PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    fn add(&mut self, name: OsString, value: OsString) {
        let Ok(name) = name.into_string() else { return };
        match value.into_string() {
            Ok(value) => {
                self.vars.insert(name, value);
            }
            Err(_) => self.not_utf8.push(name),
        }
    }

    /// The value of a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether the variable is set to something that is not UTF-8.
    pub fn is_not_utf8(&self, name: &str) -> bool {
        self.not_utf8.iter().any(|other| other == name)
    }

    /// Every variable whose value is UTF-8.
    pub fn vars(&self) -> &BTreeMap<String, String> {
        &self.vars
    }

    /// The working directory, if its path is UTF-8.
    pub fn cwd(&self) -> Option<&Utf8PathBuf> {
        self.cwd.as_ref()
    }

    /// The running program, if its path is UTF-8.
    pub fn executable(&self) -> Option<&Utf8PathBuf> {
        self.executable.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_is_unset_and_values_do_not_print() {
        let env = Env::from_pairs([("A", ""), ("B", "s3cret")]);
        assert_eq!(env.get("A"), None);
        assert_eq!(env.get("B"), Some("s3cret"));
        assert!(!format!("{env:?}").contains("s3cret"));
    }
}
