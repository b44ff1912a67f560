//! Follows links ourselves, dangling ones included, so that nothing is resolved behind our back.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use fleet_core::path::{LexicalPath, LexicalPathError};
use fleet_core::port::{FileFacts, FileIdentity, FileKind, FollowedLink, PathProbeError, Resolved};
use rustix::fs::{self, CWD, Mode, OFlags};
use rustix::io::Errno;

/// The kernel's own limit.
const MAX_LINKS: usize = 40;
/// `PROC_SUPER_MAGIC`.
const PROCFS: u64 = 0x9fa0;

/// One component of the resolved path so far; no object below the first missing name.
struct Step {
    name: String,
    object: Option<(OwnedFd, FileFacts)>,
}

pub(super) fn resolve(asked: &LexicalPath) -> Result<Resolved, PathProbeError> {
    let fail = |errno| super::failure(asked.as_str(), errno);
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = fs::openat(CWD, "/", flags, Mode::empty()).map_err(fail)?;
    let root_facts =
        super::facts(&fs::fstat(&root).map_err(fail)?).ok_or_else(|| fail(Errno::LOOP))?;
    let mut steps: Vec<Step> = Vec::new();
    let mut pending: VecDeque<String> = asked.components().map(str::to_owned).collect();
    let mut links = Vec::new();

    while let Some(name) = pending.pop_front() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                steps.pop();
                continue;
            }
            _ => {}
        }
        let at = match steps.last() {
            None => Some(&root),
            Some(Step { object: None, .. }) => None,
            Some(Step { object: Some((fd, facts)), .. }) => {
                if facts.kind != FileKind::Directory {
                    return Err(fail(Errno::NOTDIR));
                }
                Some(fd)
            }
        };
        let Some(at) = at else {
            steps.push(Step { name, object: None });
            continue;
        };
        let fd = match fs::openat(at, name.as_str(), flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => {
                steps.push(Step { name, object: None });
                continue;
            }
            Err(errno) => return Err(fail(errno)),
        };
        let stat = fs::fstat(&fd).map_err(fail)?;
        if let Some(facts) = super::facts(&stat) {
            steps.push(Step { name, object: Some((fd, facts)) });
            continue;
        }
        if links.len() == MAX_LINKS {
            return Err(PathProbeError::Loop { path: asked.to_string() });
        }
        let target = read_target(asked, &fd)?;
        let at =
            path_of(asked, &steps)?.child(&name).map_err(|reason| bad_target(asked, reason))?;
        links.push(FollowedLink { at, above: identities(&steps, root_facts) });
        if target.starts_with('/') {
            steps.clear();
        }
        for part in target.rsplit('/') {
            pending.push_front(part.to_owned());
        }
    }
    let path = path_of(asked, &steps)?;
    let (object, ancestors) = match steps.pop() {
        Some(last) => (last.object.map(|(_, facts)| facts), identities(&steps, root_facts)),
        None => (Some(root_facts), Vec::new()),
    };
    Ok(Resolved { path, object, ancestors, links })
}

fn bad_target(asked: &LexicalPath, reason: LexicalPathError) -> PathProbeError {
    PathProbeError::BadTarget { path: asked.to_string(), reason }
}

fn path_of(asked: &LexicalPath, steps: &[Step]) -> Result<LexicalPath, PathProbeError> {
    let mut path = LexicalPath::root();
    for step in steps {
        path = path.child(&step.name).map_err(|reason| bad_target(asked, reason))?;
    }
    Ok(path)
}

/// Of the existing directories, nearest first, the root last.
fn identities(steps: &[Step], root: FileFacts) -> Vec<FileIdentity> {
    let existing = steps.iter().rev().filter_map(|step| step.object.as_ref());
    existing.map(|(_, facts)| facts.identity).chain([root.identity]).collect()
}

fn read_target(asked: &LexicalPath, link: &OwnedFd) -> Result<String, PathProbeError> {
    let io =
        |detail: &str| PathProbeError::Io { path: asked.to_string(), detail: detail.to_owned() };
    let system = fs::fstatfs(link).map_err(|errno| super::failure(asked.as_str(), errno))?;
    if u64::try_from(i128::from(system.f_type)).is_ok_and(|magic| magic == PROCFS) {
        // The text of a link there need not be where it leads.
        return Err(io("a link of /proc is not followed"));
    }
    let target = fs::readlinkat(link, "", Vec::new())
        .map_err(|errno| super::failure(asked.as_str(), errno))?;
    let target = target
        .into_string()
        .map_err(|_| io("a link on the way leads to a name that is not UTF-8"))?;
    if target.chars().any(char::is_control) {
        return Err(PathProbeError::BadTarget {
            path: asked.to_string(),
            reason: LexicalPathError::ControlCharacter,
        });
    }
    Ok(target)
}
