//! Makes what a launch needs on the host, and takes it away again.

use std::os::fd::OwnedFd;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::launch::{Cleanup, LaunchPlan, Preparation};
use fleet_core::port::FileKind;
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::Refusal;
use crate::path_probe::open_exact;

/// What was made or found, in the order of the plan.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    directories: Vec<Directory>,
}

#[derive(Debug)]
struct Directory {
    fd: OwnedFd,
    made_here: bool,
}

impl Prepared {
    pub(super) fn make(&mut self, plan: &LaunchPlan) -> Result<(), Refusal> {
        for path in directories(plan) {
            let made = make_directory(path).map_err(|errno| Refusal::Prepare {
                path: path.clone(),
                why: match errno {
                    Errno::LOOP => "a link is on the way".to_owned(),
                    Errno::NOTDIR => "something else than a directory is there".to_owned(),
                    other => other.to_string(),
                },
            })?;
            self.directories.push(made);
        }
        Ok(())
    }

    pub(super) fn get(&self, index: usize) -> Option<&OwnedFd> {
        self.directories.get(index).map(|directory| &directory.fd)
    }

    /// Undoes the plan's list. A prepared directory is removed only if this launch made it: another
    /// launch may have made it and still rely on it.
    pub(super) fn undo(&self, plan: &LaunchPlan) {
        for Cleanup::RemoveEmptyDir { path } in &plan.cleanup {
            let prepared = directories(plan)
                .position(|made| made == path)
                .map(|index| self.directories.get(index).is_some_and(|found| found.made_here));
            if prepared.unwrap_or(true) {
                // Not empty, gone, or no longer reachable without links: then it is not ours.
                let _ = remove_directory(path);
            }
        }
    }
}

/// Those to make, in their order. A plan that refers to them by number makes nothing else.
fn directories(plan: &LaunchPlan) -> impl Iterator<Item = &Utf8PathBuf> {
    plan.prepare.iter().filter_map(|prepare| match prepare {
        Preparation::MakeDir { path } => Some(path),
        Preparation::Scratch { .. } => None,
    })
}

fn parent_and_name(path: &Utf8Path) -> Result<(OwnedFd, &str), Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL);
    };
    let parent = open_exact(parent)?;
    if parent.facts.kind != FileKind::Directory {
        return Err(Errno::NOTDIR);
    }
    Ok((parent.fd, name))
}

fn make_directory(path: &Utf8Path) -> Result<Directory, Errno> {
    let (parent, name) = parent_and_name(path)?;
    let made_here = match fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = fs::openat(&parent, name, flags, Mode::empty())?;
    if fs::fstat(&fd)?.st_uid != rustix::process::getuid().as_raw() {
        return Err(Errno::PERM);
    }
    Ok(Directory { fd, made_here })
}

fn remove_directory(path: &Utf8Path) -> Result<(), Errno> {
    let (parent, name) = parent_and_name(path)?;
    fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)
}
