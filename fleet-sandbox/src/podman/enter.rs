//! The first program in a container: `_box ENVIRONMENT REQUEST RELEASE CHANNEL COMMAND…`, with the
//! numbers of descriptors.
//!
//! Says that the container is there, waits until the launcher lets it go on, and becomes `_attest`
//! with the environment of the role and under the very filters that bubblewrap's sandboxes get: podman's
//! own, made of the same table, knows fewer system calls.
//!
//! Whatever was passed through podman its monitor keeps open as well, so the end of such a pipe would
//! tell nothing. The pipe for the answers is made here, and its other end sent out.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use fleet_core::launch::Environment;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::PipeFlags;

use crate::launch::{REFUSED, close_inherited_on_exec};
use crate::{attest, seccomp, sys};

/// No environment is larger: the kernel takes 2 MiB.
const LIMIT: u64 = 4 * 1024 * 1024;

/// Runs [`super::ENTER`]: the status to exit with. Must be called before anything is opened or started.
pub fn inside(arguments: &[OsString]) -> i32 {
    // Whoever waits for an answer of `_attest` finds none, and says so.
    let Some(error) = become_attest(arguments) else { return REFUSED };
    #[expect(clippy::print_stderr, reason = "the console of a start that failed")]
    {
        eprintln!("ours-fleet: {error}");
    }
    REFUSED
}

/// Returns only if it does not: with an error, or `None` if it was not let go on.
fn become_attest(arguments: &[OsString]) -> Option<std::io::Error> {
    let numbers: Vec<i32> =
        arguments.iter().take(4).filter_map(|word| word.to_str()?.parse().ok()).collect();
    let ([environment, request, release, channel], [_, _, _, _, command @ ..]) =
        (numbers.as_slice(), arguments)
    else {
        return None;
    };
    close_inherited_on_exec().ok()?;
    let environment = File::from(sys::take(*environment)?);
    let request = sys::take(*request)?;
    let mut release = File::from(sys::take(*release)?);
    let channel = sys::take(*channel)?;
    let (read, answers) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).ok()?;
    send(&channel, &read).ok()?;
    drop((channel, read));
    let mut word = [0; 1];
    release.read_exact(&mut word).ok()?;
    go_on(environment, &request, &answers, command).err()
}

fn send(channel: &OwnedFd, pipe: &OwnedFd) -> rustix::io::Result<()> {
    let pipe = [pipe.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&pipe)) {
        return Err(rustix::io::Errno::INVAL);
    }
    sendmsg(channel, &[IoSlice::new(b"r")], &mut control, SendFlags::NOSIGNAL).map(|_| ())
}

fn go_on(
    environment: File,
    request: &OwnedFd,
    answers: &OwnedFd,
    command: &[OsString],
) -> std::io::Result<Infallible> {
    let mut text = Vec::new();
    environment.take(LIMIT).read_to_end(&mut text)?;
    let environment: Environment = serde_json::from_slice(&text)?;
    for fd in [request, answers] {
        fcntl_setfd(fd, FdFlags::empty())?;
    }
    for profile in seccomp::profiles(false) {
        seccomp::install(profile).map_err(std::io::Error::other)?;
    }
    let number = |fd: &OwnedFd| fd.as_raw_fd().to_string();
    Err(Command::new("/proc/self/exe")
        .arg(attest::COMMAND)
        .args([number(request), number(answers)])
        .args(command)
        .env_clear()
        .envs(environment.0)
        .exec())
}
