use std::io;
use std::sync::OnceLock;

use async_trait::async_trait;
use fleet_core::port::{
    Descendant, ProcessError, ProcessIdentity, ProcessTable, Signal, Signalled,
};

/// The processes of this machine, by `/proc` and pidfds. On other systems every question is answered
/// with an error of kind [`io::ErrorKind::Unsupported`].
#[derive(Debug, Default)]
pub struct ProcTable {
    boot_id: OnceLock<String>,
}

impl ProcTable {
    /// The process table of this machine.
    pub fn new() -> Self {
        Self::default()
    }

    fn boot_id(&self) -> io::Result<String> {
        if let Some(known) = self.boot_id.get() {
            return Ok(known.clone());
        }
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let text = text.trim();
        if text.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the boot id is empty"));
        }
        Ok(self.boot_id.get_or_init(|| text.to_owned()).clone())
    }

    /// Living processes of a session, the leader itself left out.
    fn session_members(&self, leader: &ProcessIdentity) -> io::Result<Vec<ProcessIdentity>> {
        if cfg!(not(target_os = "linux")) {
            return Err(unsupported());
        }
        if self.boot_id()? != leader.boot_id {
            return Ok(Vec::new());
        }
        let mut members = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
            let member = parse_stat(&stat).filter(|stat| {
                stat.alive
                    && stat.session == leader.pid
                    && stat.start_time >= leader.start_time
                    && pid != leader.pid
            });
            if let Some(stat) = member {
                let boot_id = leader.boot_id.clone();
                members.push(ProcessIdentity { pid, start_time: stat.start_time, boot_id });
            }
        }
        Ok(members)
    }

    /// Everything that lives below a process, itself included.
    fn below(&self, ancestor: &ProcessIdentity) -> io::Result<Vec<Descendant>> {
        if self.look(ancestor.pid)?.as_ref() != Some(ancestor) {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
            all.extend(parse_stat(&stat).filter(|stat| stat.alive).map(|stat| (pid, stat)));
        }
        let mut family = vec![ancestor.pid];
        let mut found = Vec::new();
        // Each round takes in the children of those found in the one before.
        let mut next = 0;
        while let Some(parent) = family.get(next).copied() {
            next += 1;
            family.extend(
                all.iter()
                    .filter(|(pid, stat)| stat.parent == parent && *pid != parent)
                    .map(|(pid, _)| *pid),
            );
            let Some((pid, stat)) = all.iter().find(|(pid, _)| *pid == parent) else { continue };
            found.push(Descendant {
                process: ProcessIdentity {
                    pid: *pid,
                    start_time: stat.start_time,
                    boot_id: ancestor.boot_id.clone(),
                },
                inner_pid: innermost_pid(*pid).unwrap_or(*pid),
                pid_namespace: pid_namespace(*pid),
            });
        }
        Ok(found)
    }

    fn look(&self, pid: u32) -> io::Result<Option<ProcessIdentity>> {
        if cfg!(not(target_os = "linux")) {
            return Err(unsupported());
        }
        let stat = match std::fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        match parse_stat(&stat) {
            Some(Stat { alive: false, .. }) => Ok(None),
            Some(Stat { start_time, .. }) => {
                Ok(Some(ProcessIdentity { pid, start_time, boot_id: self.boot_id()? }))
            }
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "its stat file is malformed")),
        }
    }
}

/// The last field of `NSpid`: the pid in the innermost namespace.
fn innermost_pid(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// The inode of the innermost namespace, from a link like `pid:[4026531836]`.
fn pid_namespace(pid: u32) -> Option<u64> {
    let link = rustix::fs::readlink(format!("/proc/{pid}/ns/pid"), Vec::new()).ok()?;
    link.to_str().ok()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "processes can be told apart on Linux only so far")
}

fn is_gone(error: &io::Error) -> bool {
    // ESRCH: the process ended between opening and reading.
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// A session that goes on starting processes faster than they are killed is given up after this many.
const MOST_MEMBERS: usize = 10_000;

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    alive: bool,
    parent: u32,
    session: u32,
    start_time: u64,
}

/// State and start time of `/proc/<pid>/stat`. The name in field 2 may hold anything, spaces and
/// parentheses included, so fields are counted from the last `)`.
fn parse_stat(stat: &[u8]) -> Option<Stat> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // The state is field 3, the parent 4, the session 6, the number of threads 20, the start time 22.
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let threads: u64 = fields.nth(13)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    // The state is that of the first thread, which may have ended before others: as long as one of
    // them is left, the process still has its files, and the locks on them.
    let alive = match state {
        "Z" => threads > 1,
        "X" | "x" => false,
        _ => true,
    };
    Some(Stat { alive, parent, session, start_time })
}

#[cfg(target_os = "linux")]
mod handle {
    use std::io;
    use std::os::fd::OwnedFd;

    use fleet_core::port::{ProcessIdentity, Signal};
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

    use super::ProcTable;

    /// A handle on exactly this process; `None` if it is gone.
    pub(super) fn open(
        table: &ProcTable,
        process: &ProcessIdentity,
    ) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Asked after opening: if the pid still names this process now, it did when the handle was
        // made, because a process that is gone does not come back.
        Ok((table.look(process.pid)?.as_ref() == Some(process)).then_some(fd))
    }

    /// Signals the process of the handle; tells whether it was still there.
    pub(super) fn send(fd: &OwnedFd, signal: Signal) -> io::Result<bool> {
        let signal = match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        match pidfd_send_signal(fd, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns when the process of the handle has ended: a pidfd is readable from then on.
    pub(super) async fn ended(fd: OwnedFd) -> io::Result<()> {
        #[expect(
            deprecated,
            reason = "its successor is unsafe; the fault needs a descriptor that changes, and this type keeps its own"
        )]
        let fd = tokio::io::unix::AsyncFd::with_interest(fd, tokio::io::Interest::READABLE)?;
        let _ready = fd.readable().await?;
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod handle {
    use std::io;

    use fleet_core::port::{ProcessIdentity, Signal};

    use super::{ProcTable, unsupported};

    pub(super) fn open(_: &ProcTable, _: &ProcessIdentity) -> io::Result<Option<()>> {
        Err(unsupported())
    }

    pub(super) fn send(_: &(), _: Signal) -> io::Result<bool> {
        Err(unsupported())
    }

    pub(super) async fn ended(_: ()) -> io::Result<()> {
        Err(unsupported())
    }
}

#[async_trait]
impl ProcessTable for ProcTable {
    fn own(&self) -> Result<ProcessIdentity, ProcessError> {
        let pid = std::process::id();
        let failed = |source| ProcessError { action: "identify", pid, source };
        self.look(pid)
            .and_then(|found| found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)))
            .map_err(failed)
    }

    fn identity(&self, pid: u32) -> Result<Option<ProcessIdentity>, ProcessError> {
        self.look(pid).map_err(|source| ProcessError { action: "identify", pid, source })
    }

    fn descendants(&self, ancestor: &ProcessIdentity) -> Result<Vec<Descendant>, ProcessError> {
        let failed = |source| ProcessError { action: "look below", pid: ancestor.pid, source };
        self.below(ancestor).map_err(failed)
    }

    fn signal(&self, process: &ProcessIdentity, signal: Signal) -> Result<Signalled, ProcessError> {
        let failed = |source| ProcessError { action: "signal", pid: process.pid, source };
        let Some(fd) = handle::open(self, process).map_err(failed)? else {
            return Ok(Signalled::Gone);
        };
        let delivered = handle::send(&fd, signal).map_err(failed)?;
        Ok(if delivered { Signalled::Delivered } else { Signalled::Gone })
    }

    fn kill_session(&self, leader: &ProcessIdentity) -> Result<usize, ProcessError> {
        let failed =
            |source| ProcessError { action: "end the session of", pid: leader.pid, source };
        let mut killed = 0;
        // Again until nobody is found: a member may start another one while it is looked for.
        loop {
            let members = self.session_members(leader).map_err(failed)?;
            let mut found = false;
            for member in members {
                if self.signal(&member, Signal::Kill)? == Signalled::Delivered {
                    killed += 1;
                    found = true;
                }
            }
            if !found || killed > MOST_MEMBERS {
                return Ok(killed);
            }
        }
    }

    async fn wait_exit(&self, process: &ProcessIdentity) -> Result<(), ProcessError> {
        let failed = |source| ProcessError { action: "wait for", pid: process.pid, source };
        match handle::open(self, process).map_err(failed)? {
            Some(fd) => handle::ended(fd).await.map_err(failed),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, state: &str, threads: u32) -> Vec<u8> {
        let before = "1 1 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0";
        format!("42 ({name}) {state} {before} {threads} 0 98765 100 200\n").into_bytes()
    }

    #[test]
    fn the_name_of_a_process_cannot_forge_its_start_time() {
        for name in ["sleep", "a b", "x) Z 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 7 1", "((", ""] {
            let found = parse_stat(&line(name, "S", 1));
            assert_eq!(
                found,
                Some(Stat { alive: true, parent: 1, session: 7, start_time: 98_765 }),
                "{name}"
            );
        }
    }

    #[test]
    fn zombies_are_dead_and_nonsense_is_no_answer() {
        for state in ["Z", "X", "x"] {
            assert_eq!(parse_stat(&line("n", state, 1)).map(|stat| stat.alive), Some(false));
        }
        let first_thread_ended = parse_stat(&line("n", "Z", 2));
        assert_eq!(first_thread_ended.map(|stat| stat.alive), Some(true));
        for bad in [&b""[..], b"42", b"42 (n", b"42 (n) S 1 2", b"42 (n) S \xff"] {
            assert_eq!(parse_stat(bad), None);
        }
    }
}
