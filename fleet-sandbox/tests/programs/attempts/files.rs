//! Ways to a file that is not shown, or that must not be changed.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};

use super::{UNKNOWN, answer, any, c, close, open, openat, read};
use crate::{Attempt, io};

const O_PATH: c_int = 0x20_0000;
const O_DIRECTORY: c_int = 0x1_0000;
const AT_FDCWD: c_int = -100;

unsafe extern "C" {
    fn chroot(path: *const c_char) -> c_int;
    fn chdir(path: *const c_char) -> c_int;
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: u64,
        data: *const c_void,
    ) -> c_int;
    fn umount2(target: *const c_char, flags: c_int) -> c_int;
    fn utimes(path: *const c_char, times: *const c_void) -> c_int;
    fn truncate(path: *const c_char, length: i64) -> c_int;
    fn chown(path: *const c_char, owner: c_uint, group: c_uint) -> c_int;
    fn setxattr(
        path: *const c_char,
        name: *const c_char,
        value: *const c_void,
        size: usize,
        flags: c_int,
    ) -> c_int;
    fn inotify_init1(flags: c_int) -> c_int;
    fn inotify_add_watch(fd: c_int, path: *const c_char, mask: u32) -> c_int;
    fn fallocate(fd: c_int, mode: c_int, offset: i64, length: i64) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

pub(super) fn run(attempt: &[&str]) -> Attempt {
    match attempt {
        ["read-any", paths @ ..] => any(paths, read_text),
        ["list-any", paths @ ..] => any(paths, list),
        ["open-any", paths @ ..] => any(paths, |path| {
            // Some devices wait for a reader or a carrier.
            io(fs::OpenOptions::new().read(true).custom_flags(0x800).open(path))
                .map(|_| path.to_owned())
        }),
        ["write-any", paths @ ..] => {
            any(paths, |path| io(fs::write(path, "written by the probe")).map(|()| path.to_owned()))
        }
        // A file in a directory that may not be there.
        ["plant", directory, name] => {
            let _ = fs::create_dir(directory);
            let path = format!("{directory}/{name}");
            io(fs::write(path, "written by the probe")).map(|()| String::new())
        }
        ["contains", path, words @ ..] => {
            let found = io(fs::read_to_string(path))?.contains(&words.concat());
            if found { Ok(String::new()) } else { Err("not there".to_owned()) }
        }
        ["read-fd", number, name] => read_below(number.parse().unwrap(), name),
        ["read-through-link", link, target] => {
            let _ = fs::remove_file(link);
            io(symlink(target, link))?;
            read_text(link)
        }
        ["write-through-link", link, target] => {
            let _ = fs::remove_file(link);
            io(symlink(target, link))?;
            append(link)
        }
        ["append", path] => append(path),
        ["write-at-once", path] => {
            let file = io(fs::OpenOptions::new().write(true).open(path))?;
            io(file.write_all_at(b"W", 0)).map(|()| String::new())
        }
        ["link-and-write", from, to] => {
            let _ = fs::remove_file(to);
            io(fs::hard_link(from, to))?;
            append(to)
        }
        ["climb", target] => climb(target),
        ["chroot-climb", directory, target] => {
            let _ = fs::create_dir(directory);
            // SAFETY: plain paths.
            answer(c_long::from(unsafe { chroot(c(directory).as_ptr()) }))?;
            climb(target)
        }
        ["mount-tmpfs", path] => {
            let (kind, path) = (c("tmpfs"), c(path));
            let none = std::ptr::null();
            // SAFETY: plain paths and no data.
            let made = answer(c_long::from(unsafe {
                mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, none)
            }))?;
            // The control did it to the host. SAFETY: a plain path; 2 is MNT_DETACH.
            unsafe { umount2(path.as_ptr(), 2) };
            Ok(made)
        }
        ["umount", path] => {
            // SAFETY: a plain path; 2 is MNT_DETACH.
            answer(c_long::from(unsafe { umount2(c(path).as_ptr(), 2) }))
        }
        // Makes a read-only bind writable, then writes below it.
        ["remount", path, file] => {
            // MS_REMOUNT | MS_BIND without MS_RDONLY.
            let (flags, none) = (0x20 | 0x1000, std::ptr::null::<c_void>());
            // SAFETY: plain paths and no data.
            answer(c_long::from(unsafe {
                mount(none.cast(), c(path).as_ptr(), none.cast(), flags, none)
            }))?;
            io(fs::write(file, "written by the probe")).map(|()| String::new())
        }
        ["chmod", path] => {
            let mode = io(fs::metadata(path))?.permissions().mode();
            io(fs::set_permissions(path, fs::Permissions::from_mode(mode))).map(|()| String::new())
        }
        // To the mode that it has: the control does this to the host.
        ["mode-of-link", path] => {
            let target = io(fs::read_link(path))?;
            let mode = io(fs::metadata(path))?.permissions().mode();
            io(fs::set_permissions(path, fs::Permissions::from_mode(mode)))
                .map(|()| target.display().to_string())
        }
        ["chown", path] => {
            // To nobody else than now.
            // SAFETY: a plain path.
            answer(c_long::from(unsafe { chown(c(path).as_ptr(), c_uint::MAX, c_uint::MAX) }))
        }
        ["setxattr", path] => {
            // SAFETY: plain texts; the value is one byte long.
            answer(c_long::from(unsafe {
                setxattr(c(path).as_ptr(), c("user.probe").as_ptr(), c("x").as_ptr().cast(), 1, 0)
            }))
        }
        ["utimes", path] => {
            // SAFETY: a plain path; no times means now.
            answer(c_long::from(unsafe { utimes(c(path).as_ptr(), std::ptr::null()) }))
        }
        ["truncate", path] => {
            // SAFETY: a plain path.
            answer(c_long::from(unsafe { truncate(c(path).as_ptr(), 0) }))
        }
        ["remove", path] => io(fs::remove_file(path)).map(|()| String::new()),
        ["inotify", path] => {
            // SAFETY: plain numbers and a plain path.
            answer(c_long::from(unsafe {
                inotify_add_watch(inotify_init1(0), c(path).as_ptr(), 0xfff)
            }))
        }
        // Asks for so many MiB, all at once.
        ["fill", path, mib] => {
            let file = io(fs::File::create(path))?;
            let length = mib.parse::<i64>().unwrap() << 20;
            let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
            // SAFETY: plain numbers.
            let result = answer(c_long::from(unsafe { fallocate(fd, 0, 0, length) }));
            let _ = fs::remove_file(path);
            result
        }
        // By the handle of a file instead of its name.
        ["by-handle", path] => by_handle(path),
        ["mknod-block", path] => {
            let _ = fs::remove_file(path);
            // SAFETY: a plain path; S_IFBLK, device 0.
            answer(unsafe { syscall(259, c_long::from(AT_FDCWD), c(path).as_ptr(), 0o60600, 0) })
        }
        ["mkdir-rmdir", paths @ ..] => any(paths, |path| {
            io(fs::create_dir(path))?;
            io(fs::remove_dir(path)).map(|()| String::new())
        }),
        _ => Err(UNKNOWN.to_owned()),
    }
}

fn read_text(path: &str) -> Attempt {
    let mut bytes = Vec::new();
    io(io(fs::File::open(path))?.take(4096).read_to_end(&mut bytes))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn list(path: &str) -> Attempt {
    let names = io(fs::read_dir(path))?.flatten();
    let names: Vec<String> =
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    Ok(names.join(" "))
}

fn append(path: &str) -> Attempt {
    let mut file = io(fs::OpenOptions::new().append(true).open(path))?;
    io(file.write_all(b"written by the probe")).map(|()| String::new())
}

fn read_below(directory: c_int, name: &str) -> Attempt {
    // SAFETY: a plain path and a buffer of the given length.
    let (fd, bytes) = unsafe {
        let fd = openat(directory, c(name).as_ptr(), 0);
        let mut bytes = vec![0_u8; 4096];
        let count = if fd < 0 { -1 } else { read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
        bytes.truncate(usize::try_from(count).unwrap_or(0));
        (fd, bytes)
    };
    answer(c_long::from(fd))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// From the working directory up by `..`, one descriptor at a time, as far as it goes.
fn climb(target: &str) -> Attempt {
    // SAFETY: plain paths.
    let top = unsafe {
        let mut at = open(c(".").as_ptr(), O_PATH | O_DIRECTORY);
        for _ in 0..64 {
            let above = openat(at, c("..").as_ptr(), O_PATH | O_DIRECTORY);
            close(at);
            at = above;
        }
        chdir(c("/").as_ptr());
        at
    };
    answer(c_long::from(top))?;
    read_below(top, target.trim_start_matches('/'))
}

fn by_handle(path: &str) -> Attempt {
    let mut handle = [0_u8; 136];
    handle[0] = 128;
    let mut mount_id: c_int = 0;
    let path = c(path);
    // SAFETY: the handle has room for the 128 bytes that its head announces.
    unsafe {
        let named = syscall(
            303,
            c_long::from(AT_FDCWD),
            path.as_ptr(),
            handle.as_mut_ptr(),
            std::ptr::from_mut(&mut mount_id),
            0_i64,
        );
        answer(named)?;
        let root = open(c("/").as_ptr(), 0);
        answer(syscall(304, c_long::from(root), handle.as_ptr(), 0_i64))
    }
}
