//! Opens a path only if no component of it is a link.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Component, Utf8Path};
use fleet_core::port::FileFacts;
use rustix::fs::{self, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// An open object and what it is.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) fd: OwnedFd,
    pub(crate) facts: FileFacts,
}

/// A descriptor (`O_PATH`) of exactly this absolute path; `ELOOP` if any component is a link.
pub(crate) fn open_exact(path: &Utf8Path) -> Result<Opened, Errno> {
    open_with(path, OFlags::PATH)
}

/// As [`open_exact`], with other flags.
pub(super) fn open_with(path: &Utf8Path, flags: OFlags) -> Result<Opened, Errno> {
    // Set once openat2 turned out to be missing (old kernel, other system) or filtered away.
    static WALK: AtomicBool = AtomicBool::new(false);
    let flags = flags | OFlags::CLOEXEC;
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = if WALK.load(Ordering::Relaxed) {
        open_by_walk(path, flags)
    } else {
        match fs::openat2(CWD, path.as_std_path(), flags, Mode::empty(), no_links) {
            // EAGAIN: a rename raced with the look-up; the walk has no such excuse.
            Err(Errno::AGAIN) => open_by_walk(path, flags),
            Err(Errno::NOSYS | Errno::PERM) => {
                let walked = open_by_walk(path, flags);
                // A plain EPERM of the object itself would fail the walk as well.
                WALK.store(walked.is_ok(), Ordering::Relaxed);
                walked
            }
            other => other,
        }
    }?;
    let facts = super::facts(&fs::fstat(&opened)?).ok_or(Errno::LOOP)?;
    Ok(Opened { fd: opened, facts })
}

/// The same by `O_NOFOLLOW`, component by component.
pub(super) fn open_by_walk(path: &Utf8Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Utf8Component::RootDir => {}
            Utf8Component::Normal(name) => names.push(name),
            _ => return Err(Errno::INVAL),
        }
    }
    let mut at = fs::openat(CWD, "/", step | OFlags::DIRECTORY, Mode::empty())?;
    let Some((last, above)) = names.split_last() else {
        return fs::openat(&at, ".", flags | OFlags::NOFOLLOW, Mode::empty());
    };
    for name in above {
        let next = fs::openat(&at, *name, step, Mode::empty())?;
        match fs::FileType::from_raw_mode(fs::fstat(&next)?.st_mode) {
            fs::FileType::Directory => at = next,
            fs::FileType::Symlink => return Err(Errno::LOOP),
            _ => return Err(Errno::NOTDIR),
        }
    }
    fs::openat(&at, *last, flags | OFlags::NOFOLLOW, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_agrees_with_openat2_and_refuses_links() {
        let dir = tempfile::tempdir().expect("tempdir");
        let base = Utf8Path::from_path(dir.path()).expect("utf-8");
        std::fs::create_dir(base.join("d")).expect("mkdir");
        std::fs::write(base.join("d/f"), "x").expect("write");
        std::os::unix::fs::symlink("d", base.join("l")).expect("link");
        std::os::unix::fs::symlink("f", base.join("d/l")).expect("link");
        for (path, errno) in [
            ("d", None),
            ("d/f", None),
            ("l", Some(Errno::LOOP)),
            ("l/f", Some(Errno::LOOP)),
            ("d/l", Some(Errno::LOOP)),
            ("d/none", Some(Errno::NOENT)),
            ("d/f/x", Some(Errno::NOTDIR)),
        ] {
            let path = base.join(path);
            let walked = open_by_walk(&path, OFlags::PATH | OFlags::CLOEXEC).and_then(|fd| {
                let facts = super::super::facts(&fs::fstat(&fd)?).ok_or(Errno::LOOP)?;
                Ok(facts.identity)
            });
            let opened = open_exact(&path).map(|opened| opened.facts.identity);
            assert_eq!(walked, opened, "{path}");
            assert_eq!(walked.err(), errno, "{path}");
        }
    }
}
