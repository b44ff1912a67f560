use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use camino::Utf8Path;
use fleet_core::port::{DirEntry, EntryKind, StateStore, StoreError, StoreLock};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileStore;

/// Attempts to take a lock that is busy. Somebody who only looks holds it for microseconds; see
/// [`StateStore::is_locked`].
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug)]
struct FileLock {
    /// The kernel releases the lock when this is closed.
    _file: File,
}

impl StoreLock for FileLock {}

/// Whether the disk is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Durability {
    OnDisk,
    Visible,
}

fn failed(action: &'static str, path: &Utf8Path) -> impl Fn(io::Error) -> StoreError {
    move |source| StoreError::Io { action, path: path.to_owned(), source }
}

fn wrong_kind(path: &Utf8Path, kind: FileType, expected: &'static str) -> StoreError {
    let found = match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of unknown kind",
    };
    StoreError::WrongKind { path: path.to_owned(), found, expected }
}

/// What stands at a path, the link itself if it is one.
fn kind_at(path: &Utf8Path) -> io::Result<FileType> {
    let facts = rustix::fs::lstat(path.as_std_path())?;
    Ok(FileType::from_raw_mode(facts.st_mode))
}

fn kind_of(file: &File) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}

/// Opens without following a link in the last place and without waiting for a FIFO's other end.
fn open(path: &Utf8Path, flags: OFlags, mode: Mode) -> rustix::io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::openat(CWD, path.as_std_path(), flags, mode).map(File::from)
}

/// Opens a regular file, naming what else stands there.
fn open_regular(
    action: &'static str,
    path: &Utf8Path,
    flags: OFlags,
) -> Result<Option<File>, StoreError> {
    let expected = "a regular file";
    let file = match open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => {
            // A link, a socket or a directory cannot be opened so: say what it is, not the number.
            return Err(match kind_at(path) {
                Ok(kind) if kind != FileType::RegularFile => wrong_kind(path, kind, expected),
                _ => failed(action, path)(error.into()),
            });
        }
    };
    match kind_of(&file).map_err(failed(action, path))? {
        FileType::RegularFile => Ok(Some(file)),
        kind => Err(wrong_kind(path, kind, expected)),
    }
}

/// Directory and name of a file.
fn split(path: &Utf8Path) -> io::Result<(&Utf8Path, &str)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if path.is_absolute() => Ok((parent, name)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path of a file")),
    }
}

/// Writes everything; a write of no byte is an error rather than a reason to spin.
fn write_fully(file: &mut impl Write, mut content: &[u8]) -> io::Result<()> {
    while !content.is_empty() {
        match file.write(content) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => content = content.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A new file of a unique name in the directory.
fn create_temporary(directory: &OwnedFd, name: &str) -> io::Result<(File, String)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..1000 {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".{name}.{}.{number}.tmp", std::process::id());
        match rustix::fs::openat(directory, &temporary, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => return Ok((File::from(fd), temporary)),
            // Left behind by a crash of an earlier process with the same pid.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary file"))
}

/// A link of this name in place of whatever link has it.
fn link_anew(directory: &OwnedFd, name: &str, target: &Utf8Path) -> io::Result<()> {
    for number in 0..1000 {
        let temporary = format!(".{name}.{}.{number}.lnk", std::process::id());
        match rustix::fs::symlinkat(target.as_std_path(), directory, &temporary) {
            Ok(()) => {}
            Err(Errno::EXIST) => continue,
            Err(error) => return Err(error.into()),
        }
        return rustix::fs::renameat(directory, &temporary, directory, name).map_err(|error| {
            let _removed = rustix::fs::unlinkat(directory, &temporary, AtFlags::empty());
            error.into()
        });
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary link"))
}

/// The steps of 02 §2.4 up to the rename, on an open temporary file.
fn fill(mut file: File, content: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    write_fully(&mut file, content)?;
    // Explicit, since the umask takes bits from the mode given at open. Only after the content: the
    // file stays private until it is complete.
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
    if durability == Durability::OnDisk {
        // Also what closing could still report: after this nothing is held back.
        file.sync_all()?;
    }
    Ok(())
}

fn replace(path: &Utf8Path, content: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let (parent, name) = split(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(CWD, parent.as_std_path(), flags, Mode::empty())?;
    let (file, temporary) = create_temporary(&directory, name)?;
    let published = fill(file, content, mode, durability).and_then(|()| {
        rustix::fs::renameat(&directory, &temporary, &directory, name).map_err(io::Error::from)
    });
    if let Err(original) = published {
        // The original error is the one to report, whatever becomes of the temporary file.
        let _removed = rustix::fs::unlinkat(&directory, &temporary, AtFlags::empty());
        return Err(original);
    }
    if durability == Durability::OnDisk {
        // Best effort: the file itself is on disk, and some file systems cannot sync a directory.
        let _synced = rustix::fs::fsync(&directory);
    }
    Ok(())
}

/// Appends to an open file of one writer; on failure the file is cut back to what it was.
fn append(file: &mut File, line: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;

    let size = file.metadata()?.len();
    let mut record = Vec::with_capacity(line.len() + 2);
    if let Some(last) = size.checked_sub(1) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, last)?;
        if byte != *b"\n" {
            record.push(b'\n');
        }
    }
    record.extend_from_slice(line);
    record.push(b'\n');
    write_fully(file, &record).inspect_err(|_| {
        let _cut = (0..3).any(|_| file_is_cut(file, size));
    })
}

fn file_is_cut(file: &File, size: u64) -> bool {
    file.set_len(size).is_ok()
}

/// Refuses what another user made, in a shared directory or to be used by root: its owner could put
/// anything in the place of what is kept there.
fn own(directory: &File) -> io::Result<()> {
    let owner = rustix::fs::fstat(directory)?.st_uid;
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let text = format!("it belongs to another user (uid {owner})");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Sets the mode of a directory, which may be neither a link nor anything else.
fn settle_dir(path: &Utf8Path) -> Result<(), StoreError> {
    let action = "set the mode of directory";
    match open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
        Ok(directory) => own(&directory)
            .and_then(|()| Ok(rustix::fs::fchmod(&directory, Mode::RWXU)?))
            .map_err(failed(action, path)),
        Err(error) => Err(match kind_at(path) {
            Ok(kind) if kind != FileType::Directory => wrong_kind(path, kind, "a directory"),
            // A directory of ours whose mode keeps even us out; chmod needs no permission on it.
            Ok(_) if error == Errno::ACCESS => {
                return rustix::fs::chmod(path.as_std_path(), Mode::RWXU)
                    .map_err(|error| failed(action, path)(error.into()));
            }
            _ => failed(action, path)(error.into()),
        }),
    }
}

/// Gives a user's own directory or file back what its owner lost; the old bits if that was anything.
#[cfg(target_os = "linux")]
fn mend(path: &Utf8Path) -> io::Result<Option<u32>> {
    use std::os::fd::AsRawFd as _;

    // A descriptor of the object, whatever its mode; a link is not followed.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let object = match rustix::fs::openat(CWD, path.as_std_path(), flags, Mode::empty()) {
        Ok(object) => object,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let facts = rustix::fs::fstat(&object)?;
    let Some((before, after)) = mended(&facts) else { return Ok(None) };
    // By the descriptor: at the path something else may stand by now.
    rustix::fs::chmod(format!("/proc/self/fd/{}", object.as_raw_fd()), after)?;
    Ok(Some(before))
}

/// Without a descriptor that needs no permission the path itself is used.
#[cfg(not(target_os = "linux"))]
fn mend(path: &Utf8Path) -> io::Result<Option<u32>> {
    let facts = match rustix::fs::lstat(path.as_std_path()) {
        Ok(facts) => facts,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some((before, after)) = mended(&facts) else { return Ok(None) };
    rustix::fs::chmod(path.as_std_path(), after)?;
    Ok(Some(before))
}

/// The bits that an object has, and those that it should have, if these are others.
fn mended(facts: &rustix::fs::Stat) -> Option<(u32, Mode)> {
    let mode = Mode::from_raw_mode(facts.st_mode) & Mode::from_raw_mode(0o7777);
    let wanted = match FileType::from_raw_mode(facts.st_mode) {
        FileType::Directory => Mode::RWXU,
        FileType::RegularFile => Mode::RUSR | Mode::WUSR,
        // tmux says by the right to execute its socket whether somebody is attached.
        FileType::Socket => Mode::RUSR | Mode::WUSR | (mode & Mode::XUSR),
        _ => return None,
    };
    let own = facts.st_uid == rustix::process::geteuid().as_raw();
    (own && mode != wanted).then(|| (mode.as_raw_mode(), wanted))
}

/// Makes the missing directories from the top down.
fn make_dirs(path: &Utf8Path) -> Result<(), StoreError> {
    let missing: Vec<&Utf8Path> = path
        .ancestors()
        .take_while(
            |dir| matches!(kind_at(dir), Err(error) if error.kind() == io::ErrorKind::NotFound),
        )
        .collect();
    for directory in missing.into_iter().rev() {
        match rustix::fs::mkdir(directory.as_std_path(), Mode::RWXU) {
            Ok(()) => settle_dir(directory)?,
            // Made by somebody else in this moment, with the mode of their choice.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(failed("create directory", directory)(error.into())),
        }
    }
    Ok(())
}

/// Whether the open file is still the one that the path names.
fn is_current(file: &File, path: &Utf8Path) -> io::Result<bool> {
    let open = rustix::fs::fstat(file)?;
    match rustix::fs::lstat(path.as_std_path()) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A directory, refused with `LOOP` if any part of its path is a link.
#[cfg(target_os = "linux")]
fn open_without_links(path: &Utf8Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(
        CWD,
        path.as_std_path(),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        rustix::fs::ResolveFlags::NO_SYMLINKS | rustix::fs::ResolveFlags::NO_MAGICLINKS,
    )
}

/// Without a call that refuses links, no directory counts as reached without one.
#[cfg(not(target_os = "linux"))]
fn open_without_links(_path: &Utf8Path) -> rustix::io::Result<OwnedFd> {
    Err(Errno::LOOP)
}

impl StateStore for FileStore {
    fn read(&self, path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let action = "read";
        let Some(file) = open_regular(action, path, OFlags::RDONLY)? else { return Ok(None) };
        let too_large = || StoreError::TooLarge { path: path.to_owned(), limit };
        let size = file.metadata().map_err(failed(action, path))?.len();
        if size > limit {
            return Err(too_large());
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        // It may grow while it is read, so the limit holds for the reading too.
        file.take(limit.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(failed(action, path))?;
        if content.len() as u64 > limit { Err(too_large()) } else { Ok(Some(content)) }
    }

    fn read_head(&self, path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let action = "read";
        let Some(file) = open_regular(action, path, OFlags::RDONLY)? else { return Ok(None) };
        let mut content = Vec::new();
        file.take(limit).read_to_end(&mut content).map_err(failed(action, path))?;
        Ok(Some(content))
    }

    fn write(&self, path: &Utf8Path, content: &[u8], mode: u32) -> Result<(), StoreError> {
        replace(path, content, mode, Durability::OnDisk).map_err(failed("write", path))
    }

    fn publish(&self, path: &Utf8Path, content: &[u8], mode: u32) -> Result<(), StoreError> {
        replace(path, content, mode, Durability::Visible).map_err(failed("write", path))
    }

    fn append_line(&self, path: &Utf8Path, line: &[u8]) -> Result<(), StoreError> {
        let action = "append to";
        if line.contains(&b'\n') {
            let text = "a line must not hold a newline";
            return Err(failed(action, path)(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let missing = || failed(action, path)(io::ErrorKind::NotFound.into());
        let mut file = open_regular(action, path, flags)?.ok_or_else(missing)?;
        append(&mut file, line).map_err(failed(action, path))
    }

    fn rotate(&self, path: &Utf8Path, old: &Utf8Path, limit: u64) -> Result<bool, StoreError> {
        let action = "rotate";
        let facts = match rustix::fs::lstat(path.as_std_path()) {
            Ok(facts) => facts,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(failed(action, path)(error.into())),
        };
        let kind = FileType::from_raw_mode(facts.st_mode);
        if kind != FileType::RegularFile {
            return Err(wrong_kind(path, kind, "a regular file"));
        }
        if u64::try_from(facts.st_size).unwrap_or_default() < limit {
            return Ok(false);
        }
        rustix::fs::rename(path.as_std_path(), old.as_std_path())
            .map(|()| true)
            .map_err(|error| failed(action, path)(error.into()))
    }

    fn remove(&self, path: &Utf8Path) -> Result<bool, StoreError> {
        match rustix::fs::unlink(path.as_std_path()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(failed("remove", path)(error.into())),
        }
    }

    fn mode(&self, path: &Utf8Path) -> Result<Option<u32>, StoreError> {
        let action = "look at";
        let facts = match rustix::fs::lstat(path.as_std_path()) {
            Ok(facts) => facts,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(action, path)(error.into())),
        };
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::RegularFile => Ok(Some(facts.st_mode & 0o7777)),
            kind => Err(wrong_kind(path, kind, "a regular file")),
        }
    }

    fn link(&self, path: &Utf8Path, target: &Utf8Path) -> Result<bool, StoreError> {
        let failed = failed("link", path);
        let (parent, name) = split(path).map_err(&failed)?;
        let directory = open(parent, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|error| failed(error.into()))?;
        match rustix::fs::readlinkat(&directory, name, Vec::new()) {
            Ok(there) if there.as_bytes() == target.as_str().as_bytes() => return Ok(false),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(Errno::INVAL) => {
                let kind = kind_at(path).map_err(&failed)?;
                return Err(wrong_kind(path, kind, "a symbolic link"));
            }
            Err(error) => return Err(failed(error.into())),
        }
        link_anew(&directory.into(), name, target).map(|()| true).map_err(&failed)
    }

    fn mend(&self, path: &Utf8Path) -> Result<Option<u32>, StoreError> {
        mend(path).map_err(failed("mend the mode of", path))
    }

    fn set_aside(&self, path: &Utf8Path, name: &str) -> Result<bool, StoreError> {
        let failed = failed("set aside", path);
        let (parent, old) = split(path).map_err(&failed)?;
        let directory = open(parent, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|error| failed(error.into()))?;
        match rustix::fs::renameat(&directory, old, &directory, name) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(failed(error.into())),
        }
    }

    fn remove_empty_dir(&self, path: &Utf8Path) -> Result<bool, StoreError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(false);
        };
        let result = open_without_links(parent)
            .and_then(|parent| rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR));
        match result {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NOTEMPTY | Errno::EXIST) => {
                Ok(false)
            }
            Err(error) => Err(failed("remove directory", path)(error.into())),
        }
    }

    fn ensure_dir(&self, path: &Utf8Path) -> Result<(), StoreError> {
        make_dirs(path)?;
        settle_dir(path)
    }

    fn list(&self, path: &Utf8Path) -> Result<Option<Vec<DirEntry>>, StoreError> {
        let failed = failed("list", path);
        let directory = match open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => {
                return Err(match kind_at(path) {
                    Ok(kind) if kind != FileType::Directory => {
                        wrong_kind(path, kind, "a directory")
                    }
                    _ => failed(error.into()),
                });
            }
        };
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory).map_err(|error| failed(error.into()))? {
            let entry = entry.map_err(|error| failed(error.into()))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(facts) => FileType::from_raw_mode(facts.st_mode),
                        // Removed in between.
                        Err(Errno::NOENT) => continue,
                        Err(error) => return Err(failed(error.into())),
                    }
                }
                known => known,
            };
            let kind = match kind {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Directory,
                FileType::Symlink => EntryKind::Symlink,
                _ => EntryKind::Other,
            };
            entries.push(DirEntry { name: name.to_owned(), kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(entries))
    }

    fn try_lock(&self, path: &Utf8Path) -> Result<Option<Box<dyn StoreLock>>, StoreError> {
        let action = "lock";
        let flags = OFlags::RDWR | OFlags::CREATE;
        for attempt in 0..LOCK_ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(LOCK_PAUSE);
            }
            let missing = || failed(action, path)(io::ErrorKind::NotFound.into());
            let file = open_regular(action, path, flags)?.ok_or_else(missing)?;
            match file.try_lock() {
                // Somebody may have removed the file between opening and locking: that lock would
                // keep nobody out.
                Ok(()) if is_current(&file, path).map_err(failed(action, path))? => {
                    return Ok(Some(Box::new(FileLock { _file: file })));
                }
                Ok(()) | Err(std::fs::TryLockError::WouldBlock) => {}
                Err(std::fs::TryLockError::Error(error)) => {
                    return Err(failed(action, path)(error));
                }
            }
        }
        Ok(None)
    }

    fn is_locked(&self, path: &Utf8Path) -> Result<bool, StoreError> {
        let action = "look at the lock";
        let Some(file) = open_regular(action, path, OFlags::RDONLY)? else { return Ok(false) };
        // Shared, so that two who look do not meet; one who takes the lock tries more than once.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(std::fs::TryLockError::WouldBlock) => Ok(true),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(action, path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes as told: a number of bytes, or an error.
    struct Script(Vec<Result<usize, io::ErrorKind>>, Vec<u8>);

    impl Write for Script {
        fn write(&mut self, content: &[u8]) -> io::Result<usize> {
            let step = if self.0.is_empty() { Ok(usize::MAX) } else { self.0.remove(0) };
            let written = step?.min(content.len());
            self.1.extend_from_slice(&content[..written]);
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn f84_short_writes_go_on_and_no_progress_is_an_error() {
        let interrupted = Err(io::ErrorKind::Interrupted);
        let mut short = Script(vec![Ok(1), interrupted, Ok(2)], Vec::new());
        write_fully(&mut short, b"abcdef").expect("goes on");
        assert_eq!(short.1, b"abcdef");

        let mut stuck = Script(vec![Ok(1), Ok(0)], Vec::new());
        let error = write_fully(&mut stuck, b"abcdef").expect_err("no progress");
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);

        let mut full = Script(vec![Ok(3), Err(io::ErrorKind::StorageFull)], Vec::new());
        let error = write_fully(&mut full, b"abcdef").expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn only_absolute_file_names_are_split() {
        let split = |text: &str| {
            split(Utf8Path::new(text)).map(|(dir, name)| (dir.to_string(), name.to_owned()))
        };
        assert_eq!(split("/a/b").expect("file"), ("/a".into(), "b".into()));
        for bad in ["", "/", "b", "a/b", "/a/.."] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
