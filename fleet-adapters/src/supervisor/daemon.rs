//! The two halves of a daemon's birth, without `unsafe`: the short-lived parent spawns and leaves, the
//! child makes itself the leader of a session of its own.

use std::fs::File;
use std::io;
use std::process::Stdio;

use camino::Utf8Path;
use fleet_core::port::{ProcessIdentity, ProcessTable};
use rustix::fs::{CWD, FileType, Mode, OFlags};

use crate::ProcTable;

/// A daemon to start.
#[derive(Clone, Copy)]
pub struct DetachRequest<'a> {
    /// The program, an absolute path.
    pub binary: &'a Utf8Path,
    /// Its arguments. The program must call [`become_session_leader`] first of all.
    pub args: &'a [String],
    /// Its whole environment.
    pub env: &'a [(String, String)],
    /// Where its output goes: appended to, made with mode 0600 if it does not exist.
    pub log: &'a Utf8Path,
}

/// Opens the log without following a link.
fn open_log(path: &Utf8Path) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path.as_std_path(), flags, Mode::RUSR | Mode::WUSR)?;
    let facts = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the log is not a regular file"));
    }
    // The flag is shared with the child through the open file; on a regular file it means nothing,
    // but it is not left on either.
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(File::from(file))
}

/// Starts a program that outlives the caller: no input, output into a log, working directory `/`.
/// Returns the identity of its process, for the caller to print as one line of JSON and to end.
///
/// # Errors
/// The log cannot be opened, the program cannot be started, or it was gone at once.
pub fn detach(request: &DetachRequest<'_>) -> io::Result<ProcessIdentity> {
    let log = open_log(request.log)?;
    #[expect(clippy::disallowed_methods, reason = "Exec waits for programs to end; this one stays")]
    let mut command = std::process::Command::new(request.binary.as_std_path());
    let child = command
        .args(request.args)
        .env_clear()
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    // The child is not waited for, so its pid cannot be reused while this process lives.
    let identity = ProcTable::new().identity(child.id()).map_err(io::Error::other)?;
    identity.ok_or_else(|| io::Error::other(format!("it ended at once; see {}", request.log)))
}

/// Makes this process the leader of a new session, without a terminal and outside the process group
/// of whoever started it.
///
/// # Errors
/// The process leads its process group already, and so perhaps its session: it stays where it is.
pub fn become_session_leader() -> io::Result<()> {
    // Which session it is in is not asked first: where the leader is outside of this PID namespace,
    // as in a container that a process was put into, the answer is 0, which is no process.
    rustix::process::setsid()?;
    Ok(())
}
