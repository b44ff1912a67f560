//! Follows links ourselves, dangling ones included, so that nothing is resolved behind our back.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use fleet_core::path::{LexicalPath, LexicalPathError};
use fleet_core::port::{FileFacts, FileKind, PathProbeError, Resolved};
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
    let mut links = 0;

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
        links += 1;
        if links > MAX_LINKS {
            return Err(PathProbeError::Loop { path: asked.to_string() });
        }
        let target = read_target(asked, &fd)?;
        if target.starts_with('/') {
            steps.clear();
        }
        for part in target.rsplit('/') {
            pending.push_front(part.to_owned());
        }
    }
    finish(asked, steps, root_facts)
}

fn finish(
    asked: &LexicalPath,
    mut steps: Vec<Step>,
    root: FileFacts,
) -> Result<Resolved, PathProbeError> {
    let bad = |reason| PathProbeError::BadTarget { path: asked.to_string(), reason };
    let mut path = LexicalPath::root();
    for step in &steps {
        path = path.child(&step.name).map_err(bad)?;
    }
    let (object, at_root) = match steps.pop() {
        Some(last) => (last.object.map(|(_, facts)| facts), false),
        None => (Some(root), true),
    };
    let mut ancestors: Vec<_> = steps
        .iter()
        .rev()
        .filter_map(|step| step.object.as_ref().map(|(_, facts)| facts.identity))
        .collect();
    if !at_root {
        ancestors.push(root.identity);
    }
    Ok(Resolved { path, object, ancestors })
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
