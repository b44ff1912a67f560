//! What the backend must know of the host beside what every backend does, gathered once.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::system::ETC_SHOWN;
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PathProbe};
use rustix::process::{Resource, getrlimit};

use crate::bubblewrap::HostView;
use crate::path_probe::OpenatProbe;

/// What podman needs beside itself, and what brings it.
pub(super) const PROGRAMS: &[(&str, &str)] = &[
    ("runc", "install it: apt install runc"),
    ("conmon", "install it: apt install conmon"),
    ("catatonit", "install it: apt install catatonit"),
];
/// What it needs where it does not run as root.
pub(super) const ROOTLESS: &[(&str, &str)] = &[
    ("newuidmap", "install it: apt install uidmap"),
    ("newgidmap", "install it: apt install uidmap"),
];
/// Where they are beside the caller's `PATH`.
const ALSO: &[&str] = &["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/libexec/podman"];
const SUBORDINATE: &[&str] = &["/etc/subuid", "/etc/subgid"];
/// podman lowers its own limit to this.
const MOST_PROCESSES: u64 = 32_768;
const LIST_LIMIT: usize = 1024 * 1024;

/// The machine, as far as a container depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodmanHost {
    /// What of the listed part of `/etc` there is: path, where it really is, and what it is.
    pub etc: Vec<(&'static str, Utf8PathBuf, FileKind)>,
    /// Open files that this process may have at most: no container can have more.
    pub files: u64,
    /// Processes that this user may have at most.
    pub processes: u64,
    /// Programs that are needed and missing, with what brings them.
    pub missing: Vec<(&'static str, &'static str)>,
    /// The file that grants this user no subordinate ids, where they are needed.
    pub ungranted: Option<&'static str>,
}

impl PodmanHost {
    /// Looks at this host. Blocking.
    pub fn gather(directories: &[Utf8PathBuf], host: &HostView) -> Self {
        let probe = OpenatProbe::new();
        let etc = ETC_SHOWN
            .iter()
            .filter_map(|path| {
                let found = probe.resolve(&LexicalPath::absolute(path).ok()?).ok()?;
                let kind = found.object?.kind;
                let plain = matches!(kind, FileKind::File | FileKind::Directory);
                plain.then(|| (*path, found.path.as_path().to_owned(), kind))
            })
            .collect();
        let limit = |resource, most: u64| getrlimit(resource).maximum.unwrap_or(most).min(most);
        let mut places = directories.to_vec();
        places.extend(ALSO.iter().map(Utf8PathBuf::from));
        let lacks = |(name, _): &&(&str, &str)| HostView::find_program(&places, name).is_none();
        let rootless: &[_] = if host.uid == 0 { &[] } else { ROOTLESS };
        let ungranted = SUBORDINATE.iter().copied().find(|file| {
            let list = LexicalPath::absolute(file)
                .ok()
                .and_then(|path| probe.head(&path, LIST_LIMIT).ok())
                .unwrap_or_default();
            host.uid != 0 && !grants(&String::from_utf8_lossy(&list), &host.user, host.uid)
        });
        Self {
            etc,
            files: limit(Resource::Nofile, 1 << 20),
            processes: limit(Resource::Nproc, MOST_PROCESSES),
            missing: PROGRAMS.iter().chain(rootless).filter(lacks).copied().collect(),
            ungranted,
        }
    }
}

/// Whether a list of subordinate ids has a line for a user, by name or by number, of some length.
fn grants(list: &str, user: &str, uid: u32) -> bool {
    list.lines().any(|line| {
        let mut fields = line.trim().split(':');
        let who = fields.next();
        let range = fields.nth(1).and_then(|count| count.parse::<u64>().ok());
        who.is_some_and(|who| who == user || who == uid.to_string())
            && range.is_some_and(|count| count > 0)
    })
}

/// Where podman itself is.
pub(super) fn find(directories: &[Utf8PathBuf]) -> Option<Utf8PathBuf> {
    HostView::find_program(directories, "podman")
        .or_else(|| HostView::find_program(&[Utf8Path::new("/usr/bin").to_owned()], "podman"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_granted_ids_by_name_or_number() {
        for (list, granted) in [
            ("ada:100000:65536\n", true),
            ("bob:1:2\n1000:100000:65536", true),
            ("bob:100000:65536\nadam:1:2", false),
            ("ada:100000:0", false),
            ("ada:100000", false),
            ("", false),
        ] {
            assert_eq!(grants(list, "ada", 1000), granted, "{list}");
        }
    }
}
