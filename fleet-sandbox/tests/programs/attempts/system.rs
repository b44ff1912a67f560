//! Other processes, the kernel, the terminal, privileges.

use std::ffi::{c_char, c_int, c_long, c_uint};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{UNKNOWN, answer, any, c, open};
use crate::{Attempt, io};

const SIGCHLD: c_long = 17;
const CLONE_NEWUSER: c_long = 0x1000_0000;
const IPC_CREAT: c_int = 0o1000;
const USER_KEYRING: c_long = -4;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn ioctl(fd: c_int, request: u64, ...) -> c_int;
    fn shmget(key: c_int, size: usize, flags: c_int) -> c_int;
    fn shmctl(id: c_int, command: c_int, buffer: *mut u8) -> c_int;
    fn getppid() -> c_int;
    fn setpriority(which: c_int, who: c_uint, value: c_int) -> c_int;
    fn setrlimit(resource: c_int, limit: *const u64) -> c_int;
    fn setns(fd: c_int, kind: c_int) -> c_int;
    fn strlen(text: *const c_char) -> usize;
}

pub(super) fn run(attempt: &[&str]) -> Attempt {
    match attempt {
        // The words are given apart, so that this process is not what is found.
        ["find-process", words @ ..] => {
            let wanted = words.concat();
            for entry in io(fs::read_dir("/proc"))?.flatten() {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                if String::from_utf8_lossy(&line).contains(&wanted) {
                    return Ok(entry.file_name().to_string_lossy().into_owned());
                }
            }
            Err("not there".to_owned())
        }
        // The environment of the first process and of the parents of this one.
        ["environ-of-others"] => {
            let mut found = String::new();
            let mut pid = std::process::id();
            while pid > 1 {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                let parent = stat.rsplit(')').next().unwrap_or_default();
                pid = parent.split_whitespace().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
                let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                found += &String::from_utf8_lossy(&environ).replace('\0', " ");
            }
            if found.is_empty() { Err("nothing".to_owned()) } else { Ok(found) }
        }
        // Tracing without stopping (PTRACE_SEIZE).
        ["ptrace", "parent"] => {
            // SAFETY: plain numbers.
            answer(unsafe { syscall(101, 0x4206_i64, c_long::from(getppid()), 0_i64, 0_i64) })
        }
        ["ptrace", pid] => {
            // SAFETY: plain numbers.
            answer(unsafe { syscall(101, 0x4206_i64, number(pid), 0_i64, 0_i64) })
        }
        ["setns", path] => {
            // SAFETY: a plain path and plain numbers.
            let fd = unsafe { open(c(path).as_ptr(), 0) };
            answer(c_long::from(fd))?;
            // SAFETY: as above.
            answer(c_long::from(unsafe { setns(fd, 0) }))
        }
        ["clone-user"] => {
            // SAFETY: a child without a stack of its own goes on with a copy of ours, as by fork.
            let child = unsafe { syscall(56, CLONE_NEWUSER | SIGCHLD, 0_i64, 0_i64, 0_i64, 0_i64) };
            ended_child(child)
        }
        ["clone3-user"] => {
            let mut arguments = [0_u64; 11];
            arguments[0] = 0x1000_0000;
            arguments[4] = 17;
            // SAFETY: the arguments are as long as is said; no stack, as by fork.
            let child = unsafe { syscall(435, arguments.as_ptr(), size_of_val(&arguments)) };
            ended_child(child)
        }
        ["shm-make", key] => {
            // SAFETY: plain numbers.
            answer(c_long::from(unsafe { shmget(key.parse().unwrap(), 4096, IPC_CREAT | 0o600) }))
        }
        ["shm-find", key] => {
            // SAFETY: plain numbers.
            answer(c_long::from(unsafe { shmget(key.parse().unwrap(), 0, 0) }))
        }
        ["shm-remove", key] => {
            // SAFETY: plain numbers; removing needs no buffer.
            answer(c_long::from(unsafe {
                shmctl(shmget(key.parse().unwrap(), 0, 0), 0, std::ptr::null_mut())
            }))
        }
        ["key-make", name] => {
            let (kind, name, value) = (c("user"), c(name), c("canary"));
            // SAFETY: plain texts and the length of the value.
            let key = answer(unsafe {
                syscall(
                    248,
                    kind.as_ptr(),
                    name.as_ptr(),
                    value.as_ptr(),
                    strlen(value.as_ptr()),
                    USER_KEYRING,
                )
            })?;
            // Readable by its owner, without possession: KEYCTL_SETPERM.
            // SAFETY: plain numbers.
            answer(unsafe { syscall(250, 5_i64, number(&key), 0x3f3f_0000_i64) })?;
            Ok(key)
        }
        ["key-find", name] => {
            let (kind, name) = (c("user"), c(name));
            // SAFETY: KEYCTL_SEARCH, plain texts.
            answer(unsafe {
                syscall(250, 10_i64, USER_KEYRING, kind.as_ptr(), name.as_ptr(), 0_i64)
            })
        }
        ["key-read", key] => {
            let mut value = [0_u8; 64];
            // SAFETY: KEYCTL_READ, a buffer and its length.
            answer(unsafe { syscall(250, 11_i64, number(key), value.as_mut_ptr(), value.len()) })?;
            Ok(String::from_utf8_lossy(&value).trim_end_matches('\0').to_owned())
        }
        ["key-remove", name] => {
            let key = run(&["key-find", name])?;
            // SAFETY: KEYCTL_UNLINK, plain numbers.
            answer(unsafe { syscall(250, 9_i64, number(&key), USER_KEYRING) })
        }
        ["ioctl", fd, request] => {
            let zero: c_int = 0;
            let request = u64::from_str_radix(request.trim_start_matches("0x"), 16).unwrap();
            // SAFETY: the requests of the tests read at most one number.
            answer(c_long::from(unsafe {
                ioctl(number(fd).try_into().unwrap(), request, std::ptr::from_ref(&zero))
            }))
        }
        // Types into a terminal that is not this one's.
        ["type-into", path] => {
            let letter = b'X';
            // SAFETY: a plain path (O_RDWR | O_NOCTTY | O_NONBLOCK); TIOCSTI reads one byte.
            let fd = unsafe { open(c(path).as_ptr(), 0o4402) };
            answer(c_long::from(fd))?;
            // SAFETY: as above.
            answer(c_long::from(unsafe { ioctl(fd, 0x5412, std::ptr::from_ref(&letter)) }))
        }
        // The effective user of a program that is to run as root.
        ["setuid-program", programs @ ..] => any(programs, |program| {
            let mut child = io(Command::new(program)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn())?;
            std::thread::sleep(Duration::from_millis(60));
            let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
            drop(child.stdin.take());
            let _ = child.kill();
            let _ = child.wait();
            let status = io(status)?;
            let line = status.lines().find(|line| line.starts_with("Uid:")).unwrap_or_default();
            let effective = line.split_whitespace().nth(2).unwrap_or("?").to_owned();
            if effective == "0" { Ok(effective) } else { Err(format!("runs as {effective}")) }
        }),
        // So many MiB of memory, each page written.
        ["eat", mib] => {
            let size = usize::try_from(number(mib)).unwrap() << 20;
            let mut memory: Vec<u8> = Vec::new();
            if memory.try_reserve_exact(size).is_err() {
                return Err("ENOMEM".to_owned());
            }
            memory.resize(size, 1);
            let sum: u64 = memory.iter().step_by(4096).map(|byte| u64::from(*byte)).sum();
            Ok(sum.to_string())
        }
        // Processes until there can be no more, or so many.
        ["forks", most] => {
            let mut children = Vec::new();
            let mut failed = None;
            while failed.is_none() && children.len() < usize::try_from(number(most)).unwrap() {
                let mut sleeper = Command::new("/usr/bin/sleep");
                match sleeper.arg("100").stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
                    Ok(child) => children.push(child),
                    Err(error) => failed = error.raw_os_error().or(Some(0)),
                }
            }
            let count = children.len();
            for mut child in children {
                let _ = child.kill();
                let _ = child.wait();
            }
            failed.map_or_else(|| Ok(count.to_string()), |errno| Err(format!("{errno} at {count}")))
        }
        ["nice"] => {
            // SAFETY: plain numbers; of this process.
            answer(c_long::from(unsafe { setpriority(0, 0, -5) }))
        }
        // Core dumps on: the soft and the hard limit.
        ["dump-core"] => {
            let limit = [1_u64 << 20, 1 << 20];
            // SAFETY: two numbers.
            answer(c_long::from(unsafe { setrlimit(4, limit.as_ptr()) }))
        }
        _ => Err(UNKNOWN.to_owned()),
    }
}

fn ended_child(child: c_long) -> Attempt {
    if child == 0 {
        // SAFETY: exit_group, at once.
        unsafe { syscall(231, 0_i64) };
    }
    answer(child)
}

fn number(text: &str) -> c_long {
    text.parse().unwrap()
}
