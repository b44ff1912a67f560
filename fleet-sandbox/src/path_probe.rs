//! The real [`PathProbe`]: openat2 where the kernel has it, a component walk elsewhere.
//!
//! Must not know what is forbidden or why a path is asked for. Tests: `property/paths.rs`.

mod open;
mod walk;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use fleet_core::path::{LexicalPath, Relation};
use fleet_core::port::{FileFacts, FileIdentity, FileKind, PathProbe, PathProbeError, Resolved};
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::procfs;

pub(crate) use open::{Opened, open_exact};

/// Answers about real paths. What it learns of directories and mounts is kept for the life of the
/// instance, so make a new one for each judgement and each launch; making one costs nothing.
#[derive(Debug, Default)]
pub struct OpenatProbe {
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    directories: HashMap<String, FileIdentity>,
    /// Directories looked into lately, the latest first; see [`OpenatProbe::in_parent`].
    parents: Vec<Parent>,
    mounts: Option<Vec<LexicalPath>>,
    ignores_case: HashMap<String, bool>,
}

/// A directory that was reached without links.
#[derive(Debug)]
struct Parent {
    path: String,
    fd: OwnedFd,
    /// Of the directory itself and of all above it.
    chain: Vec<FileIdentity>,
}

/// So many are kept open: enough for the directories of `PATH` and those of one role.
const PARENTS: usize = 16;

impl OpenatProbe {
    /// A probe that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Identities above an object that was reached without links.
    fn ancestors(&self, path: &LexicalPath) -> Result<Vec<FileIdentity>, PathProbeError> {
        let mut guard = self.cache();
        let cache = &mut *guard;
        let mut found = Vec::with_capacity(path.depth());
        for above in path.self_and_ancestors().skip(1) {
            if let Some(identity) = cache.directories.get(above) {
                found.push(*identity);
                continue;
            }
            let opened =
                open_exact(Utf8Path::new(above)).map_err(|errno| failure(path.as_str(), errno))?;
            cache.directories.insert(above.to_owned(), opened.facts.identity);
            found.push(opened.facts.identity);
        }
        Ok(found)
    }

    /// One call for each of many paths in one directory: asks the directory that holds the path, kept
    /// open since it was reached without links. `None` if that does not settle it: a link, an error.
    ///
    /// # Security
    /// A directory exchanged for a link meanwhile is not noticed here, as with every identity that a
    /// probe keeps. The launcher opens the whole path again and compares.
    fn in_parent(&self, path: &LexicalPath) -> Option<Resolved> {
        let (above, name) = path.as_str().rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
        let above = if above.is_empty() { "/" } else { above };
        let mut cache = self.cache();
        if let Some(at) = cache.parents.iter().position(|parent| parent.path == above) {
            cache.parents[..=at].rotate_right(1);
        } else {
            drop(cache);
            let opened = match open_exact(Utf8Path::new(above)) {
                Ok(opened) if opened.facts.kind == FileKind::Directory => opened,
                Err(Errno::NOENT) => return self.missing(path),
                _ => return None,
            };
            let identity = opened.facts.identity;
            self.cache().directories.insert(above.to_owned(), identity);
            let ancestors = self.ancestors(path).ok()?;
            cache = self.cache();
            cache.parents.truncate(PARENTS - 1);
            let parent = Parent { path: above.to_owned(), fd: opened.fd, chain: ancestors };
            cache.parents.insert(0, parent);
        }
        let parent = cache.parents.first()?;
        let object = match fs::statat(&parent.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(facts(&stat)?),
            Err(Errno::NOENT) => None,
            Err(_) => return None,
        };
        let ancestors = parent.chain.clone();
        Some(Resolved { path: path.clone(), object, ancestors, links: Vec::new() })
    }

    /// What a path is that was not found: no component before the first missing one is a link, or
    /// it would not have been looked for. Goes down from the nearest directory that is known.
    /// `None` if that finds anything else meanwhile.
    fn missing(&self, path: &LexicalPath) -> Option<Resolved> {
        let mut cache = self.cache();
        let above: Vec<&str> = path.self_and_ancestors().skip(1).collect();
        let known = above.iter().position(|place| cache.directories.contains_key(*place));
        let mut nearest = known.unwrap_or(above.len());
        while let Some(next) = nearest.checked_sub(1) {
            match open_exact(Utf8Path::new(above[next])) {
                Ok(opened) if opened.facts.kind == FileKind::Directory => {
                    cache.directories.insert(above[next].to_owned(), opened.facts.identity);
                    nearest = next;
                }
                Err(Errno::NOENT) => break,
                _ => return None,
            }
        }
        let existing = above[nearest..].iter();
        let identities = existing.map(|place| cache.directories.get(*place).copied());
        let ancestors = identities.collect::<Option<Vec<_>>>()?;
        Some(Resolved { path: path.clone(), object: None, ancestors, links: Vec::new() })
    }
}

impl PathProbe for OpenatProbe {
    fn resolve(&self, path: &LexicalPath) -> Result<Resolved, PathProbeError> {
        if let Some(found) = self.in_parent(path) {
            return Ok(found);
        }
        match open_exact(path.as_path()) {
            Ok(opened) => {
                if opened.facts.kind == FileKind::Directory {
                    let key = path.as_str().to_owned();
                    self.cache().directories.insert(key, opened.facts.identity);
                }
                let ancestors = self.ancestors(path)?;
                let object = Some(opened.facts);
                Ok(Resolved { path: path.clone(), object, ancestors, links: Vec::new() })
            }
            Err(Errno::NOENT) => self.missing(path).map_or_else(|| walk::resolve(path), Ok),
            Err(_) => walk::resolve(path),
        }
    }

    fn mounts_below(
        &self,
        directory: &LexicalPath,
    ) -> Result<Vec<(LexicalPath, FileIdentity)>, PathProbeError> {
        let mut cache = self.cache();
        if cache.mounts.is_none() {
            cache.mounts = Some(mount_points(directory)?);
        }
        let points = cache.mounts.as_deref().unwrap_or_default();
        // What lies in a directory follows it at once.
        let first = points.partition_point(|point| point <= directory);
        let below: Vec<LexicalPath> = points[first..]
            .iter()
            .take_while(|point| point.relation(directory) == Relation::Inside)
            .cloned()
            .collect();
        drop(cache);
        let mut found = Vec::with_capacity(below.len());
        for point in below {
            match open_exact(point.as_path()) {
                Ok(opened) => found.push((point, opened.facts.identity)),
                // Covered by a later mount above it: not reachable, so not part of a bind either.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(errno) => return Err(failure(point.as_str(), errno)),
            }
        }
        Ok(found)
    }

    fn head(&self, file: &LexicalPath, limit: usize) -> Result<Vec<u8>, PathProbeError> {
        // Looked at before it is opened for reading: opening a device can have effects.
        let seen = open_exact(file.as_path()).map_err(|errno| failure(file.as_str(), errno))?;
        if seen.facts.kind != FileKind::File {
            return Err(replaced(file));
        }
        self.content(file, seen.facts.identity, limit)
    }

    fn content(
        &self,
        file: &LexicalPath,
        identity: FileIdentity,
        limit: usize,
    ) -> Result<Vec<u8>, PathProbeError> {
        let fail = |errno| failure(file.as_str(), errno);
        // Without a link on the way, and without waiting for a writer where a FIFO was put.
        let readable =
            open::open_with(file.as_path(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
                .map_err(fail)?;
        if readable.facts.identity != identity || readable.facts.kind != FileKind::File {
            return Err(replaced(file));
        }
        let mut bytes = vec![0; limit];
        let mut filled = 0;
        while filled < limit {
            match rustix::io::read(&readable.fd, &mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(fail(errno)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn entries(
        &self,
        directory: &LexicalPath,
        limit: usize,
    ) -> Result<Vec<String>, PathProbeError> {
        let fail = |errno| failure(directory.as_str(), errno);
        let opened = open::open_with(directory.as_path(), OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(fail)?;
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&opened.fd).map_err(fail)? {
            if names.len() >= limit {
                break;
            }
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | ".."));
            names.extend(name.map(str::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }

    fn ignores_case(&self, path: &LexicalPath) -> bool {
        let mut cache = self.cache();
        for directory in path.self_and_ancestors() {
            if let Some(known) = cache.ignores_case.get(directory) {
                return *known;
            }
            let Ok(opened) =
                open::open_with(Utf8Path::new(directory), OFlags::RDONLY | OFlags::DIRECTORY)
            else {
                continue;
            };
            let known = folds_case(&opened);
            cache.ignores_case.insert(directory.to_owned(), known);
            return known;
        }
        false
    }
}

/// File systems that never tell names apart by case.
const CASE_BLIND: &[u64] = &[
    0x4d44,      // vfat
    0x2011_bab0, // exfat
    0x5346_544e, // ntfs
    0x7366_746e, // ntfs3
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb2
    0x482b,      // hfs+
];
/// File systems that do so in directories with a flag.
const CASE_OPTIONAL: &[u64] =
    &[0xef53 /* ext4 */, 0xf2f5_2010 /* f2fs */, 0x0102_1994 /* tmpfs */];
/// `FS_CASEFOLD_FL`.
const CASEFOLD: u32 = 0x4000_0000;

fn folds_case(directory: &Opened) -> bool {
    let Ok(system) = fs::fstatfs(&directory.fd) else { return false };
    // The field is signed on some architectures; the magic numbers have 32 bits.
    let magic = u64::try_from(i128::from(system.f_type) & 0xffff_ffff).unwrap_or_default();
    CASE_BLIND.contains(&magic)
        || (CASE_OPTIONAL.contains(&magic)
            && fs::ioctl_getflags(&directory.fd).is_ok_and(|flags| flags.bits() & CASEFOLD != 0))
}

fn mount_points(asked: &LexicalPath) -> Result<Vec<LexicalPath>, PathProbeError> {
    let io = |detail: String| PathProbeError::Io { path: asked.to_string(), detail };
    let text = std::fs::read("/proc/self/mountinfo").map_err(|error| io(error.to_string()))?;
    let mut points = Vec::new();
    for mounted in procfs::mount_points(&text) {
        let point =
            std::str::from_utf8(&mounted).ok().and_then(|point| LexicalPath::absolute(point).ok());
        match point {
            Some(point) => points.push(point),
            // Fail closed only where it matters: a mount with an unusable name inside the question.
            None if mounted.starts_with(asked.as_str().as_bytes()) => {
                return Err(io("a mount point inside it has an unusable name".to_owned()));
            }
            None => {}
        }
    }
    points.sort();
    points.dedup();
    Ok(points)
}

fn replaced(file: &LexicalPath) -> PathProbeError {
    PathProbeError::Io {
        path: file.to_string(),
        detail: "not a regular file, or replaced meanwhile".to_owned(),
    }
}

fn failure(path: &str, errno: Errno) -> PathProbeError {
    let path = path.to_owned();
    match errno {
        Errno::LOOP => PathProbeError::Loop { path },
        Errno::NOTDIR => PathProbeError::NotADirectory { path },
        Errno::ACCESS | Errno::PERM => PathProbeError::Denied { path },
        other => PathProbeError::Io { path, detail: other.to_string() },
    }
}

#[cfg_attr(
    target_arch = "x86_64",
    expect(clippy::useless_conversion, reason = "the count has 32 bits on aarch64")
)]
/// What a stat says, or `None` for a symbolic link.
fn facts(stat: &fs::Stat) -> Option<FileFacts> {
    let kind = match fs::FileType::from_raw_mode(stat.st_mode) {
        fs::FileType::RegularFile => FileKind::File,
        fs::FileType::Directory => FileKind::Directory,
        fs::FileType::Socket => FileKind::Socket,
        fs::FileType::Fifo => FileKind::Fifo,
        fs::FileType::Symlink => return None,
        _ => FileKind::Device,
    };
    Some(FileFacts {
        identity: FileIdentity { dev: stat.st_dev, ino: stat.st_ino },
        kind,
        uid: stat.st_uid,
        mode: Mode::from_raw_mode(stat.st_mode).as_raw_mode() & 0o7777,
        links: u64::from(stat.st_nlink),
    })
}
