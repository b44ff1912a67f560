//! What every sandbox shows of the system, as data (01 §2.9): the backends show it and `explain` says it.

use super::policy::SystemView;
use super::tiers::PROGRAM_DIRECTORIES;
use crate::path::LexicalPath;

/// What of `/etc` a curated view shows of the host's, where it exists.
pub const ETC_SHOWN: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/pki",
    "/etc/profile",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
];

/// What of `/etc` a curated view makes up: nothing of it is the host's own.
pub const ETC_MADE: &[&str] =
    &["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/machine-id", "/etc/resolv.conf"];

/// What stays hidden even where the whole of `/etc` is asked for.
pub const ETC_HIDDEN: &[&str] =
    &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private"];

/// Views of the kernel that a sandbox has of its own.
const OWN: &[&str] = &["/proc", "/dev"];

/// How a sandbox shows a path of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SystemPlace {
    /// The host's, read-only.
    Shown,
    /// A text of fleet's, read-only.
    Made,
    /// Made anew by the kernel for the sandbox alone.
    Own,
    /// Not shown, on purpose.
    Hidden,
}

/// How a sandbox with this view shows `path`; `None` for a path that is no part of the system view.
/// Mounts of the policy and in-memory directories come on top of it.
pub fn system_place(path: &LexicalPath, view: SystemView) -> Option<SystemPlace> {
    let within = |list: &[&str]| path.self_and_ancestors().any(|above| list.contains(&above));
    if within(PROGRAM_DIRECTORIES) {
        return Some(SystemPlace::Shown);
    }
    if within(OWN) {
        return Some(SystemPlace::Own);
    }
    if !within(&["/etc"]) {
        return None;
    }
    Some(match view {
        SystemView::Full if within(ETC_HIDDEN) => SystemPlace::Hidden,
        SystemView::Full => SystemPlace::Shown,
        SystemView::Curated if within(ETC_MADE) => SystemPlace::Made,
        SystemView::Curated if within(ETC_SHOWN) => SystemPlace::Shown,
        SystemView::Curated => SystemPlace::Hidden,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::program("/usr/bin/sh", Some(SystemPlace::Shown), Some(SystemPlace::Shown))]
    #[case::alike("/usrlocal", None, None)]
    #[case::made("/etc/passwd", Some(SystemPlace::Made), Some(SystemPlace::Shown))]
    #[case::below_shown("/etc/ssl/certs/a.pem", Some(SystemPlace::Shown), Some(SystemPlace::Shown))]
    #[case::key("/etc/ssl/private/k", Some(SystemPlace::Hidden), Some(SystemPlace::Hidden))]
    #[case::shadow("/etc/shadow", Some(SystemPlace::Hidden), Some(SystemPlace::Hidden))]
    #[case::unlisted("/etc/krb5.keytab", Some(SystemPlace::Hidden), Some(SystemPlace::Shown))]
    #[case::own("/proc/1/environ", Some(SystemPlace::Own), Some(SystemPlace::Own))]
    #[case::elsewhere("/sys", None, None)]
    fn a_path_has_one_place(
        #[case] path: &str,
        #[case] curated: Option<SystemPlace>,
        #[case] full: Option<SystemPlace>,
    ) {
        let path = LexicalPath::absolute(path).unwrap();
        assert_eq!(system_place(&path, SystemView::Curated), curated);
        assert_eq!(system_place(&path, SystemView::Full), full);
    }

    #[test]
    fn the_lists_do_not_contradict_each_other() {
        for made in ETC_MADE {
            assert!(!ETC_SHOWN.contains(made) && !ETC_HIDDEN.contains(made), "{made}");
        }
        assert!(ETC_HIDDEN.iter().all(|hidden| !ETC_SHOWN.contains(hidden)));
    }
}
