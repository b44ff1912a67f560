//! The process that ends everything else of a sandbox in one step.
//!
//! There is no first process here whose end takes all others with it, and what forks faster than it is
//! found escapes every walk over the processes. But with scopes (Linux 6.12) a signal to all processes
//! reaches those of the sender's own domain and of the domains inside it, and no other; and the kernel
//! goes through them under the lock that a fork needs, so none slips through.
//!
//! The sender must be out of the command's reach. So it lives in a domain around that of the command:
//! from inside it can be neither signalled nor traced, and its descriptors cannot be opened. It waits
//! for the end of a pipe whose other end only the launcher has, which ends with the launcher, however
//! that comes to its end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, getppid, setsid, test_kill_process, waitpid};

use super::apply::enclose;
use crate::sys;

/// Starts it and puts this process into the domain around the command's. Returns its process number.
/// It becomes a child of the launcher, so that the command never meets a child that it did not start.
///
/// Must be called while this process has a single thread.
///
/// # Security
/// To be called before the command's own domain is made: what is in that domain could end it.
pub(super) fn start(life: OwnedFd) -> Result<u32, String> {
    enclose().map_err(|error| error.to_string())?;
    // A kernel that did not keep the scope would let it end every process of the user.
    let launcher = getppid().ok_or("its launcher is gone")?;
    match test_kill_process(launcher) {
        Err(Errno::PERM) => {}
        _ => return Err("the kernel does not keep the scope of signals".to_owned()),
    }
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(said)?;
    let Some(between) = sys::fork_single().map_err(said)? else {
        let done = become_parent(&life, write);
        sys::leave(i32::from(done.is_err()));
    };
    drop((life, write));
    let mut number = [0; 4];
    let told = File::from(read).read_exact(&mut number);
    while let Err(Errno::INTR) = waitpid(Some(between), WaitOptions::empty()) {}
    told.map_err(|_| "make the process that ends it: it could not be prepared".to_owned())?;
    Ok(u32::from_ne_bytes(number))
}

fn said(errno: Errno) -> String {
    format!("make the process that ends it: {errno}")
}

/// Holds nothing but the pipe, least of all the terminal, and leaves its session, then starts the one
/// that waits and says its number.
fn become_parent(life: &OwnedFd, told: OwnedFd) -> Result<(), Errno> {
    setsid()?;
    sys::close_all_but([life.as_raw_fd(), told.as_raw_fd()])?;
    for _ in 0..3 {
        // Takes the lowest free number, those of the standard streams.
        let null = openat(CWD, "/dev/null", OFlags::RDWR, Mode::empty())?;
        let _ = null.into_raw_fd();
    }
    if let Some(waiting) = sys::fork_single()? {
        let number = waiting.as_raw_nonzero().get().unsigned_abs();
        return File::from(told).write_all(&number.to_ne_bytes()).map_err(|_| Errno::PIPE);
    }
    drop(told);
    wait_for_end(life);
    sys::kill_domain();
    Ok(())
}

/// Nobody writes into the pipe: what is read is its end.
fn wait_for_end(life: &OwnedFd) {
    while let Err(Errno::INTR) = rustix::io::read(life, &mut [0_u8; 1]) {}
}
