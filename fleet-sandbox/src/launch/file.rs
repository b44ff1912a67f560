//! Reads the launch file once, and only if nobody but the fleet user can have written it.

use std::fs::File;
use std::io::Read as _;

use camino::Utf8Path;
use fleet_core::launch::LaunchFile;
use rustix::fs::{self, CWD, FileType, Mode, OFlags};

use super::Refusal;

/// Reads a launch file, and removes it: a launch happens once.
///
/// # Errors
/// [`Refusal::File`], and the file stays, if it is not a regular file with one name, of this user, of
/// mode 0600 and of at most [`LaunchFile::MAX_BYTES`]; also if it is no launch file of this version,
/// but then it is gone.
///
/// # Security
/// The path is opened without following a link, and everything is judged on the opened file.
pub fn take(path: &Utf8Path) -> Result<LaunchFile, Refusal> {
    let refuse = |why: String| Refusal::File { path: path.to_owned(), why };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = fs::openat(CWD, path.as_std_path(), flags, Mode::empty())
        .map_err(|errno| refuse(errno.to_string()))?;
    let stat = fs::fstat(&opened).map_err(|errno| refuse(errno.to_string()))?;
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    let complaint = if !FileType::from_raw_mode(stat.st_mode).is_file() {
        Some("it is not a regular file")
    } else if stat.st_nlink != 1 {
        Some("it has more than one link")
    } else if stat.st_uid != rustix::process::getuid().as_raw() {
        Some("it belongs to another user")
    } else if stat.st_mode & 0o7777 != 0o600 {
        Some("its mode is not 0600")
    } else if size > LaunchFile::MAX_BYTES {
        Some("it is larger than 4 MiB")
    } else {
        None
    };
    if let Some(why) = complaint {
        return Err(refuse(why.to_owned()));
    }
    let mut text = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    File::from(opened)
        .take(LaunchFile::MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| refuse(error.to_string()))?;
    fs::unlinkat(CWD, path.as_std_path(), fs::AtFlags::empty())
        .map_err(|errno| refuse(format!("it cannot be removed: {errno}")))?;
    // Only line and column: the parser's own words could quote a value.
    let launch: LaunchFile = serde_json::from_slice(&text).map_err(|error| {
        refuse(format!("not a launch file (line {}, column {})", error.line(), error.column()))
    })?;
    if launch.version != LaunchFile::VERSION {
        return Err(refuse(format!("version {} is not known here", launch.version)));
    }
    Ok(launch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn everything_but_a_private_regular_file_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().expect("tempdir");
        let base = Utf8Path::from_path(dir.path()).expect("utf-8");
        let make = |name: &str, mode: u32| {
            let path = base.join(name);
            std::fs::write(&path, "{}").expect("write");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
            path
        };
        let wide = make("wide", 0o644);
        let real = make("real", 0o600);
        let link = base.join("link");
        symlink(&real, &link).expect("link");
        let linked = make("linked", 0o600);
        std::fs::hard_link(&linked, base.join("again")).expect("hard link");
        let big = make("big", 0o600);
        let file = std::fs::OpenOptions::new().write(true).open(&big).expect("open");
        file.set_len(LaunchFile::MAX_BYTES + 1).expect("truncate");
        for (path, words) in [
            (&wide, "0600"),
            (&link, "symbolic links"),
            (&linked, "more than one link"),
            (&big, "4 MiB"),
            (&base.join("none"), "No such file"),
            (&base.to_owned(), "regular file"),
        ] {
            let refusal = take(path).expect_err("refused").to_string();
            assert!(refusal.contains(words), "{path}: {refusal}");
        }
        assert!(wide.exists() && link.exists() && linked.exists());
        // A readable file is consumed, even if its content is then refused.
        let refusal = take(&real).expect_err("refused").to_string();
        assert!(refusal.contains("not a launch file"), "{refusal}");
        assert!(!real.exists());
    }
}
