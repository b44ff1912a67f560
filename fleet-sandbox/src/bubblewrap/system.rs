//! What the backend must know of the host, gathered once, so that planning stays pure.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::system::ETC_HIDDEN;
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PathProbe};
use rustix::fs;

use crate::path_probe::OpenatProbe;

/// A top-level system directory of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemPath {
    /// A link, as `/bin` on a system with merged `/usr`, and its text.
    Link(String),
    /// A directory of its own.
    Directory,
}

/// What the host looks like, as far as a plan depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostView {
    /// `/bin`, `/sbin` and `/lib*`, as far as they exist.
    pub system_paths: Vec<(&'static str, SystemPath)>,
    /// Entries of `/proc` to hide that this kernel has.
    pub proc_masks: Vec<&'static str>,
    /// The resolver configuration, followed through links.
    pub resolv_conf: Option<String>,
    /// Where `/etc/resolv.conf` leads, if it is a link to outside of `/etc`.
    pub resolv_conf_target: Option<Utf8PathBuf>,
    /// Files that stay hidden even when the whole of `/etc` is asked for, and exist.
    pub etc_secrets: Vec<(&'static str, FileKind)>,
    /// User id of the fleet user.
    pub uid: u32,
    /// Group id of the fleet user.
    pub gid: u32,
    /// Login name of the fleet user, for the generated `passwd`.
    pub user: String,
}

const SYSTEM_PATHS: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const PROC_MASKS: &[&str] = &[
    "/proc/keys",
    "/proc/key-users",
    "/proc/cmdline",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/timer_list",
    "/proc/interrupts",
    "/proc/config.gz",
    "/proc/kmsg",
    "/proc/sysrq-trigger",
];
/// No resolver configuration is larger.
const RESOLV_CONF_LIMIT: usize = 64 * 1024;

impl HostView {
    /// Looks at this host. `user` is the login name of the fleet user; blocking, some 30 system calls.
    pub fn gather(user: &str) -> Self {
        let probe = OpenatProbe::new();
        let look = |path: &str| {
            let path = LexicalPath::absolute(path).ok()?;
            probe.resolve(&path).ok()
        };
        let exists = |path: &str| look(path).and_then(|found| found.object);
        let system_paths = SYSTEM_PATHS
            .iter()
            .filter_map(|path| {
                let target = fs::readlinkat(fs::CWD, *path, Vec::new());
                let kind = match target.map(std::ffi::CString::into_string) {
                    Ok(Ok(text)) => SystemPath::Link(text),
                    Err(_) if exists(path).is_some() => SystemPath::Directory,
                    Ok(Err(_)) | Err(_) => return None,
                };
                Some((*path, kind))
            })
            .collect();
        let proc_masks = PROC_MASKS.iter().copied().filter(|path| exists(path).is_some()).collect();
        let etc_secrets = ETC_HIDDEN
            .iter()
            .filter_map(|path| exists(path).map(|facts| (*path, facts.kind)))
            .collect();
        let resolver = look("/etc/resolv.conf");
        let resolv_conf = resolver
            .as_ref()
            .and_then(|found| probe.head(&found.path, RESOLV_CONF_LIMIT).ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let resolv_conf_target = resolver
            .map(|found| found.path.as_path().to_owned())
            .filter(|path| !path.starts_with("/etc"));
        Self {
            system_paths,
            proc_masks,
            resolv_conf,
            resolv_conf_target,
            etc_secrets,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            user: user.to_owned(),
        }
    }

    /// The first executable regular file of that name in the directories, absolute.
    pub fn find_program(directories: &[Utf8PathBuf], name: &str) -> Option<Utf8PathBuf> {
        directories.iter().filter(|directory| directory.is_absolute()).find_map(|directory| {
            let candidate = directory.join(name);
            is_executable(&candidate).then_some(candidate)
        })
    }
}

fn is_executable(path: &Utf8Path) -> bool {
    let Ok(stat) = fs::stat(path.as_std_path()) else { return false };
    fs::FileType::from_raw_mode(stat.st_mode).is_file()
        && fs::access(path.as_std_path(), fs::Access::EXEC_OK).is_ok()
}
