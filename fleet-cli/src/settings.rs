//! What the environment says about this fleet, read once: homes, directories, sockets, supervisor.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::launch::Environment;
use fleet_core::layout::{FleetLayout, Homes};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PathProbe, StateStore};
use fleet_core::programs::ProgramTrust;
use fleet_core::world::World;

use crate::args;
use crate::env_vars::{self, Env};
use crate::error::{CliError, ErrorKind};

/// The user database is small; more than this is not read.
const MAX_PASSWD_BYTES: u64 = 1024 * 1024;

/// What `OURS_FLEET_SUPERVISOR` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorChoice {
    /// Nothing: the best one that this build has.
    Auto,
    /// systemd user units.
    Systemd,
    /// launchd agents.
    Launchd,
    /// Our own detached runner.
    None,
}

/// What the environment decides beyond the account.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The supervisor asked for.
    pub supervisor: SupervisorChoice,
    /// Where the command runs, if its path is UTF-8.
    pub cwd: Option<Utf8PathBuf>,
    /// `-c`, absolute; not yet canonical.
    pub configuration: Option<Utf8PathBuf>,
    /// The running program, if its path is UTF-8.
    pub executable: Option<Utf8PathBuf>,
}

/// Everything that is known before the first command.
#[derive(Debug)]
pub struct Known {
    /// What the environment decides beyond the account.
    pub settings: Settings,
    /// The account.
    pub world: World,
    /// Where sockets go whose place in the state root is too long.
    pub runtime_dir: Utf8PathBuf,
}

/// Reads the environment. Nothing is created or changed.
///
/// # Errors
/// No home can be told, or a variable has a value that cannot be used.
pub fn read(
    env: &Env,
    configuration: Option<&Utf8Path>,
    store: &dyn StateStore,
    probe: &dyn PathProbe,
) -> Result<Known, CliError> {
    let uid = rustix::process::geteuid().as_raw();
    let account = account(store, uid);
    let passwd = account.as_ref().and_then(|account| account.home.clone());
    let os = match variable(env, env_vars::HOME)? {
        Some(home) => absolute_variable(env_vars::HOME, home)?,
        None => passwd.clone().ok_or_else(|| ErrorKind::Environment {
            variable: env_vars::HOME,
            message: "is not set, and the user database names no home".to_owned(),
        })?,
    };
    let fleet = match variable(env, env_vars::FLEET_HOME)? {
        Some(home) => absolute_variable(env_vars::FLEET_HOME, home)?,
        None => os.clone(),
    };
    // Canonical, since names of sockets are made from it, and so that all of fleet agrees on it.
    let fleet = probe.resolve(&fleet).map_err(|source| ErrorKind::Probe { source })?.path;
    let settings = Settings {
        cwd: env.cwd().cloned(),
        supervisor: supervisor(env)?,
        configuration: configuration
            .map(|path| absolute("configuration", env.cwd().map(|it| &**it), path, probe))
            .transpose()?,
        executable: env.executable().cloned(),
    };
    let homes = Homes {
        fleet: fleet.as_path().to_owned(),
        os: os.as_path().to_owned(),
        passwd: passwd.filter(|home| *home != os).map(|home| home.as_path().to_owned()),
    };
    let runtime_dir = runtime_dir(env, uid, probe);
    let mut own = env.vars().clone();
    if let Some(dir) = &runtime_dir {
        own.insert(env_vars::XDG_RUNTIME_DIR.to_owned(), dir.to_string());
    }
    let session = Session { env, os: &homes.os, runtime_dir: runtime_dir.as_deref(), uid };
    let world = World {
        layout: FleetLayout::new(&homes.fleet),
        uid,
        user: account
            .map(|account| account.name)
            .or_else(|| env.get(env_vars::USER).map(ToOwned::to_owned))
            .unwrap_or_else(|| format!("uid{uid}")),
        path_dirs: session.path_dirs(),
        passed_over: Vec::new(),
        trust: ProgramTrust::default(),
        relocated: session.relocated(),
        sockets: session.sockets(),
        binary: settings.executable.clone().unwrap_or_else(|| args::PROGRAM.into()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        env: Environment(own),
        homes,
    };
    let runtime_dir = runtime_dir.unwrap_or_else(|| "/tmp".into());
    Ok(Known { settings, world, runtime_dir })
}

/// The environment as a source of paths.
struct Session<'a> {
    env: &'a Env,
    os: &'a Utf8Path,
    runtime_dir: Option<&'a Utf8Path>,
    uid: u32,
}

impl Session<'_> {
    /// Directories of fleet's own `PATH` that are absolute.
    fn path_dirs(&self) -> Vec<LexicalPath> {
        let mut dirs = Vec::new();
        for text in self.env.get(env_vars::PATH).unwrap_or_default().split(':') {
            if let Some(dir) = self.lexical(text)
                && !dirs.contains(&dir)
            {
                dirs.push(dir);
            }
        }
        dirs
    }

    /// Stores that a variable moved, one entry a path: `KUBECONFIG` may list several.
    fn relocated(&self) -> Vec<(String, LexicalPath)> {
        let mut found = Vec::new();
        for name in env_vars::RELOCATED {
            let value = self.env.get(name).unwrap_or_default();
            let parts: Vec<&str> =
                if *name == "KUBECONFIG" { value.split(':').collect() } else { vec![value] };
            for part in parts {
                if let Some(path) = self.lexical(part) {
                    found.push(((*name).to_owned(), path));
                }
            }
        }
        found
    }

    /// Sockets of the session around fleet.
    fn sockets(&self) -> Vec<(String, LexicalPath)> {
        let mut found = Vec::new();
        let mut add = |name: &str, text: &str| {
            if let Some(path) = self.lexical(text) {
                found.push((name.to_owned(), path));
            }
        };
        let get = |name| self.env.get(name).unwrap_or_default();
        add(env_vars::SSH_AUTH_SOCK, get(env_vars::SSH_AUTH_SOCK));
        for address in get(env_vars::DBUS_SESSION_BUS_ADDRESS).split(';') {
            let path = address
                .strip_prefix("unix:")
                .and_then(|rest| rest.split(',').find_map(|field| field.strip_prefix("path=")));
            add(env_vars::DBUS_SESSION_BUS_ADDRESS, path.unwrap_or_default());
        }
        for name in [env_vars::DOCKER_HOST, env_vars::PULSE_SERVER] {
            let value = get(name);
            let path = value.strip_prefix("unix://").or_else(|| value.strip_prefix("unix:"));
            add(name, path.unwrap_or_default());
        }
        add(env_vars::TMUX, get(env_vars::TMUX).split(',').next().unwrap_or_default());
        let tmux_dir = self.env.get(env_vars::TMUX_TMPDIR).unwrap_or("/tmp");
        add(
            env_vars::TMUX_TMPDIR,
            &format!("{}/tmux-{}", tmux_dir.trim_end_matches('/'), self.uid),
        );
        let wayland = get(env_vars::WAYLAND_DISPLAY);
        if wayland.starts_with('/') {
            add(env_vars::WAYLAND_DISPLAY, wayland);
        } else if let (false, Some(dir)) = (wayland.is_empty(), self.runtime_dir) {
            add(env_vars::WAYLAND_DISPLAY, dir.join(wayland).as_str());
        }
        found
    }

    /// A path of the environment as an absolute one without dots; `None` if there is none.
    fn lexical(&self, text: &str) -> Option<LexicalPath> {
        if text.is_empty() {
            return None;
        }
        let text = match text.strip_prefix("~/") {
            Some(rest) => format!("{}/{rest}", self.os),
            None => text.to_owned(),
        };
        plain(self.env.cwd(), Utf8Path::new(&text))
            .and_then(|path| LexicalPath::absolute(path.as_str()).ok())
    }
}

/// A variable that must be text if it is set at all.
fn variable<'a>(env: &'a Env, name: &'static str) -> Result<Option<&'a str>, CliError> {
    if env.is_not_utf8(name) {
        let message = "is not UTF-8".to_owned();
        return Err(ErrorKind::Environment { variable: name, message }.into());
    }
    Ok(env.get(name))
}

fn absolute_variable(name: &'static str, text: &str) -> Result<LexicalPath, CliError> {
    LexicalPath::absolute(text).map_err(|error| {
        let message = format!("`{}`: {error}", text.escape_debug());
        ErrorKind::Environment { variable: name, message }.into()
    })
}

/// The absolute form of a path as typed. `..` means what the kernel takes it for: the directory
/// above where the path before it leads.
///
/// # Errors
/// It is empty, it is relative and the working directory is unknown, or it holds what no path may.
pub fn absolute(
    what: &str,
    cwd: Option<&Utf8Path>,
    path: &Utf8Path,
    probe: &dyn PathProbe,
) -> Result<Utf8PathBuf, CliError> {
    let refused = |reason: &str| {
        CliError::usage(format!("{what} `{}`: {reason}", path.as_str().escape_debug()))
    };
    let joined = match cwd {
        _ if path.as_str().is_empty() => return Err(refused("the path is empty")),
        _ if path.is_absolute() => path.to_owned(),
        Some(cwd) => cwd.join(path),
        None => return Err(refused("the working directory is unknown: write an absolute path")),
    };
    let mut at = LexicalPath::root();
    for part in joined.as_str().split('/') {
        at = match part {
            "" | "." => continue,
            ".." => {
                let above = probe.resolve(&at).map_err(|source| ErrorKind::Probe { source })?.path;
                above.parent().unwrap_or_else(LexicalPath::root)
            }
            name => at.child(name).map_err(|error| refused(&error.to_string()))?,
        };
    }
    Ok(at.as_path().to_owned())
}

/// Joins a relative path to `cwd` and removes `.`, `..` and empty components by their text.
fn plain(cwd: Option<&Utf8PathBuf>, path: &Utf8Path) -> Option<Utf8PathBuf> {
    if path.as_str().is_empty() {
        return None;
    }
    let joined = if path.is_absolute() { path.to_owned() } else { cwd?.join(path) };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.as_str().split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    Some(Utf8PathBuf::from(format!("/{}", parts.join("/"))))
}

/// An entry of the user database.
#[derive(Debug, PartialEq, Eq)]
struct Account {
    name: String,
    home: Option<LexicalPath>,
}

/// The account in the user database. Read as text: asking the C library would load its plugins.
fn account(store: &dyn StateStore, uid: u32) -> Option<Account> {
    let bytes = store.read(Utf8Path::new("/etc/passwd"), MAX_PASSWD_BYTES).ok().flatten()?;
    account_in(&String::from_utf8_lossy(&bytes), uid)
}

fn account_in(text: &str, uid: u32) -> Option<Account> {
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let own = fields.get(2).and_then(|field| field.parse::<u32>().ok()) == Some(uid);
        own.then(|| Account {
            name: fields[0].to_owned(),
            home: fields.get(5).and_then(|home| LexicalPath::absolute(home).ok()),
        })
    })
}

/// The runtime directory: as set; else the usual one if it exists. Never invented (02 §0).
fn runtime_dir(env: &Env, uid: u32, probe: &dyn PathProbe) -> Option<Utf8PathBuf> {
    if let Some(set) = env.get(env_vars::XDG_RUNTIME_DIR) {
        return Some(Utf8PathBuf::from(set));
    }
    let usual = LexicalPath::absolute(&format!("/run/user/{uid}")).ok()?;
    let object = probe.resolve(&usual).ok()?.object?;
    (object.kind == FileKind::Directory && object.uid == uid).then(|| usual.as_path().to_owned())
}

fn supervisor(env: &Env) -> Result<SupervisorChoice, CliError> {
    match variable(env, env_vars::FLEET_SUPERVISOR)? {
        None | Some("auto") => Ok(SupervisorChoice::Auto),
        Some("systemd") => Ok(SupervisorChoice::Systemd),
        Some("launchd") => Ok(SupervisorChoice::Launchd),
        Some("none") => Ok(SupervisorChoice::None),
        Some(other) => {
            let message = format!(
                "`{}` is no supervisor (allowed: auto, systemd, launchd, none)",
                other.escape_debug()
            );
            Err(ErrorKind::Environment { variable: env_vars::FLEET_SUPERVISOR, message }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_plain() {
        let cwd = Utf8PathBuf::from("/w/d");
        for (text, expected) in [
            ("a.yaml", "/w/d/a.yaml"),
            ("./a/../b", "/w/d/b"),
            ("/x//y/", "/x/y"),
            ("../../../..", "/"),
        ] {
            assert_eq!(plain(Some(&cwd), Utf8Path::new(text)).expect("plain").as_str(), expected);
        }
        assert_eq!(plain(None, Utf8Path::new("a")), None);
        assert_eq!(plain(Some(&cwd), Utf8Path::new("")), None);
    }

    #[test]
    fn the_user_database_names_the_home() {
        let text = "root:x:0:0:root:/root:/bin/sh\nbroken\nu:x:1000:1000::/home/u:/bin/sh\n";
        let home = |uid| account_in(text, uid).and_then(|account| account.home);
        assert_eq!(home(1000).expect("found").as_str(), "/home/u");
        assert_eq!(home(0).expect("found").as_str(), "/root");
        assert_eq!(account_in(text, 0).expect("found").name, "root");
        assert_eq!(account_in(text, 5), None);
        assert_eq!(account_in("u:x:7:7::relative:/bin/sh", 7).expect("found").home, None);
    }

    #[test]
    fn supervisors_have_names() {
        let choice =
            |value: &str| supervisor(&Env::from_pairs([(env_vars::FLEET_SUPERVISOR, value)]));
        assert_eq!(choice("").expect("valid"), SupervisorChoice::Auto);
        assert_eq!(choice("none").expect("valid"), SupervisorChoice::None);
        assert_eq!(choice("upstart").expect_err("refused").status().code(), 64);
    }
}
