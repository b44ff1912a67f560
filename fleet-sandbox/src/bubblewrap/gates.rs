//! The settings by which a system keeps ordinary users from making namespaces, and what to do about each.

use camino::Utf8Path;
use rustix::fs::{CWD, Mode, OFlags, openat};

/// Settings below `/proc/sys`; `None` where this kernel does not have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Gates {
    /// `kernel.apparmor_restrict_unprivileged_userns`, of Ubuntu from 23.10 on.
    pub(super) apparmor: Option<u64>,
    /// `kernel.unprivileged_userns_clone`, of Debian up to 10 and of hardened kernels.
    pub(super) clone: Option<u64>,
    /// `user.max_user_namespaces`.
    pub(super) most: Option<u64>,
}

impl Gates {
    /// Reads them below a directory, `/proc/sys` but for tests.
    pub(super) fn read(settings: &Utf8Path) -> Self {
        let value = |name: &str| {
            let path = settings.join(name);
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = openat(CWD, path.as_str(), flags, Mode::empty()).ok()?;
            let mut text = [0; 32];
            let count = rustix::io::read(&file, &mut text).ok()?;
            std::str::from_utf8(&text[..count]).ok()?.trim().parse().ok()
        };
        Self {
            apparmor: value("kernel/apparmor_restrict_unprivileged_userns"),
            clone: value("kernel/unprivileged_userns_clone"),
            most: value("user/max_user_namespaces"),
        }
    }

    /// The setting that is in the way, with the remedy; `None` if none of them is.
    pub(super) fn remedy(self) -> Option<&'static str> {
        if self.most == Some(0) {
            return Some(
                "user namespaces are switched off on this system (user.max_user_namespaces = 0): \
                 `sysctl user.max_user_namespaces=15000`, and the same line in a file of /etc/sysctl.d",
            );
        }
        if self.clone == Some(0) {
            return Some(
                "only root may make user namespaces on this system \
                 (kernel.unprivileged_userns_clone = 0): `sysctl kernel.unprivileged_userns_clone=1`, \
                 and the same line in a file of /etc/sysctl.d",
            );
        }
        if self.apparmor.is_some_and(|value| value != 0) {
            return Some(
                "AppArmor keeps ordinary users from namespaces on this system \
                 (kernel.apparmor_restrict_unprivileged_userns = 1, the default of Ubuntu 24.04): \
                 install the profile for bwrap (`apt install apparmor-profiles`, then `ln -s \
                 /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/` and \
                 `systemctl reload apparmor`); or, for every program, `sysctl \
                 kernel.apparmor_restrict_unprivileged_userns=0`",
            );
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_in_the_way_is_named_with_its_remedy() {
        const APPARMOR: &str = "kernel/apparmor_restrict_unprivileged_userns";
        const CLONE: &str = "kernel/unprivileged_userns_clone";
        const MOST: &str = "user/max_user_namespaces";
        for (settings, remedy) in [
            (&[][..], None),
            (&[(APPARMOR, "0\n"), (CLONE, "1\n"), (MOST, "95852\n")], None),
            (&[(APPARMOR, "1\n"), (MOST, "95852\n")], Some("bwrap-userns-restrict")),
            (&[(CLONE, "0\n")], Some("kernel.unprivileged_userns_clone=1")),
            (&[(MOST, "0\n"), (APPARMOR, "1\n")], Some("user.max_user_namespaces=15000")),
            (&[(MOST, "many\n")], None),
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            let root = Utf8Path::from_path(dir.path()).expect("UTF-8");
            for (name, value) in settings {
                let path = root.join(name);
                std::fs::create_dir_all(path.parent().expect("one")).expect("mkdir");
                std::fs::write(path, value).expect("write");
            }
            let found = Gates::read(root).remedy();
            assert_eq!(found.is_some(), remedy.is_some(), "{settings:?}: {found:?}");
            let (found, remedy) = (found.unwrap_or_default(), remedy.unwrap_or_default());
            assert!(found.contains(remedy), "{settings:?}: {found}");
        }
    }
}
