//! The answers. Each check tries what must not work, or looks at what the kernel says of this process.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use fleet_core::attest::{AttestRequest, DeniedCall, Probe};
use rustix::fs::{self, Access, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::{Errno, FdFlags, fcntl_getfd};
use rustix::process::{Resource, Signal, getrlimit, parent_process_death_signal};

use crate::{procfs, sys};

/// `Err` with what was seen instead.
type Answer = Result<(), String>;

/// For a connection on the loopback interface, which is refused at once or not at all.
const PATIENCE: Duration = Duration::from_millis(200);

/// What several checks look at.
pub(super) struct Facts {
    status: Option<BTreeMap<String, String>>,
    listening: Option<Vec<SocketAddr>>,
}

impl Facts {
    pub(super) fn gather(request: &AttestRequest) -> Self {
        let own = std::process::id();
        let listeners = request.checks.iter().filter_map(|check| match &check.probe {
            Probe::Listening { at } => Some(*at),
            _ => None,
        });
        let listening = procfs::listening(own, &listeners.collect::<Vec<_>>());
        Self { status: procfs::status(own), listening }
    }

    fn status(&self, name: &str) -> Result<&str, String> {
        let status = self.status.as_ref().ok_or("/proc/self/status cannot be read")?;
        Ok(status.get(name).ok_or_else(|| format!("the kernel does not tell {name}"))?)
    }

    fn empty(&self, sets: &[&str]) -> Answer {
        sets.iter().try_for_each(|set| match self.status(set)? {
            bits if bits.bytes().all(|digit| digit == b'0') => Ok(()),
            bits => Err(format!("{set} is {bits}")),
        })
    }

    fn status_is(&self, name: &str, wanted: &str) -> Answer {
        match self.status(name)? {
            found if found == wanted => Ok(()),
            found => Err(format!("it is {found}")),
        }
    }
}

pub(super) fn check(probe: &Probe, facts: &Facts) -> Answer {
    match probe {
        Probe::Hidden { path } => hidden(path),
        Probe::ReadOnly { path } => read_only(path),
        Probe::Unwritable { path } => unwritable(path),
        Probe::Writable { path } => writable(path),
        Probe::Empty { path } => empty(path),
        Probe::Capped { path, bytes } => capped(path, *bytes),
        Probe::Environment { names } => environment(names),
        Probe::Descriptors => descriptors(),
        Probe::NoCapabilities => facts.empty(&["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]),
        Probe::NoHeldCapabilities => facts.empty(&["CapInh", "CapPrm", "CapEff", "CapAmb"]),
        Probe::NoNewPrivileges => facts.status_is("NoNewPrivs", "1"),
        Probe::Filtered => facts.status_is("Seccomp", "2"),
        Probe::Refused { call } => refused(*call),
        Probe::LoopbackOnly => {
            let names = procfs::interfaces(std::process::id()).ok_or("they cannot be listed")?;
            names.iter().find(|name| *name != "lo").map_or(Ok(()), |name| Err(name.clone()))
        }
        Probe::Listening { at } => match &facts.listening {
            Some(listening) if listening.contains(at) => Ok(()),
            Some(_) => Err("nothing listens there".to_owned()),
            None => Err("/proc/self/net cannot be read".to_owned()),
        },
        Probe::HostPort { port } => {
            let address = SocketAddr::from(([127, 0, 0, 1], *port));
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(_) => Err("it answers".to_owned()),
                Err(_) => Ok(()),
            }
        }
        Probe::HostSocket { name } => {
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)
                .map_err(|error| error.to_string())?;
            match UnixStream::connect_addr(&address) {
                Ok(_) => Err("it answers".to_owned()),
                Err(_) => Ok(()),
            }
        }
        Probe::OwnNamespace { name, host } => own_namespace(name, *host),
        Probe::Processes { most } => processes(*most),
        Probe::LauncherOutOfReach => launcher(),
        Probe::Hostname { name } => {
            let system = rustix::system::uname();
            match system.nodename().to_string_lossy() {
                found if found == name.as_str() => Ok(()),
                found => Err(format!("it is {found}")),
            }
        }
        Probe::DiesWithParent => match parent_process_death_signal() {
            Ok(Some(Signal::KILL)) => Ok(()),
            Ok(_) => Err("no such signal is set".to_owned()),
            Err(errno) => Err(errno.to_string()),
        },
        Probe::NoCoreDumps => match getrlimit(Resource::Core).maximum {
            Some(0) => Ok(()),
            other => Err(format!("the limit is {other:?}")),
        },
    }
}

const LOOK: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn hidden(path: &str) -> Answer {
    match fs::open(path, LOOK, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(()),
        Err(errno) => Err(format!("opening it fails with: {errno}")),
        Ok(_) => Err("it can be opened".to_owned()),
    }
}

/// Opens for writing, without writing. In a directory that is a file without a name, which is gone when
/// it is closed and leaves no trace in the directory.
fn read_only(path: &str) -> Answer {
    const WRITE: OFlags =
        OFlags::WRONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
    let kind = match fs::stat(path) {
        Ok(found) => FileType::from_raw_mode(found.st_mode),
        Err(errno) => return Err(format!("it cannot be looked at: {errno}")),
    };
    let tried = match kind {
        FileType::Directory => fs::open(path, WRITE | OFlags::TMPFILE, Mode::RUSR),
        FileType::RegularFile => fs::open(path, WRITE, Mode::empty()),
        // Opening another kind for writing says nothing about the mount.
        _ => Err(Errno::OPNOTSUPP),
    };
    match tried {
        Ok(_) => Err("it can be opened for writing".to_owned()),
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) => Ok(()),
        // A program that runs, or a file system without nameless files: the kernel's own judgement.
        Err(_) => match fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
            Ok(()) => Err("it may be written".to_owned()),
            Err(_) => Ok(()),
        },
    }
}

/// The file's own permissions may refuse as well, which is as good. Without mounts of its own the
/// sandbox is judged by the attempt alone: the kernel's own judgement knows nothing of Landlock.
fn unwritable(path: &str) -> Answer {
    const WRITE: OFlags =
        OFlags::WRONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
    let tried = match fs::open(path, WRITE, Mode::empty()) {
        Err(Errno::ISDIR) => fs::open(path, WRITE | OFlags::TMPFILE, Mode::RUSR),
        other => other,
    };
    match tried {
        Ok(_) => Err("it can be opened for writing".to_owned()),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::TXTBSY | Errno::NOENT) => Ok(()),
        Err(errno) => Err(format!("opening it fails with: {errno}")),
    }
}

/// The one process of the same user that is known to be there. That it can be read without a sandbox is
/// what its being undumpable could hide, so both ways are tried.
fn launcher() -> Answer {
    let parent = rustix::process::getppid().ok_or("it is out of sight")?;
    let number = parent.as_raw_nonzero();
    match rustix::process::test_kill_process(parent) {
        Err(Errno::PERM) => {}
        Err(errno) => return Err(format!("a signal fails with: {errno}")),
        Ok(()) => return Err("it can be signalled".to_owned()),
    }
    match fs::open(format!("/proc/{number}/environ"), LOOK, Mode::empty()) {
        Err(Errno::ACCESS | Errno::PERM) => Ok(()),
        Err(errno) => Err(format!("opening its environment fails with: {errno}")),
        Ok(_) => Err("its environment can be opened".to_owned()),
    }
}

/// Whether the mount can be written. Permissions are those of the host and promised by nobody.
fn writable(path: &str) -> Answer {
    match fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) | Err(Errno::ACCESS) => Ok(()),
        Err(errno) => Err(errno.to_string()),
    }
}

fn empty(path: &str) -> Answer {
    let file = match fs::open(path, LOOK, Mode::empty()) {
        Err(Errno::NOENT | Errno::ACCESS) => return Ok(()),
        other => other.map_err(|errno| format!("opening it fails with: {errno}"))?,
    };
    match rustix::io::read(&file, &mut [0; 1]) {
        Ok(0) | Err(Errno::ACCESS | Errno::PERM) => Ok(()),
        Err(Errno::ISDIR) => {
            let mut entries = std::fs::read_dir(path).map_err(|error| error.to_string())?;
            entries.next().map_or(Ok(()), |_| Err("something is in it".to_owned()))
        }
        Ok(_) => Err("it can be read".to_owned()),
        Err(errno) => Err(format!("reading it fails with: {errno}")),
    }
}

fn capped(path: &str, bytes: u64) -> Answer {
    let found = fs::statvfs(path).map_err(|errno| errno.to_string())?;
    let real = found.f_blocks.saturating_mul(found.f_frsize);
    // The kernel rounds up to whole pages; a cap of nothing means no cap.
    let page = found.f_frsize.max(1);
    if real > 0 && real <= bytes.div_ceil(page).saturating_mul(page) {
        Ok(())
    } else {
        Err(format!("it holds {real}"))
    }
}

/// Names only: values may be secret.
fn environment(names: &[String]) -> Answer {
    let found: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let odd: Vec<&str> = found
        .iter()
        .filter(|name| !names.contains(name))
        .chain(names.iter().filter(|name| !found.contains(name)))
        .map(String::as_str)
        .collect();
    if odd.is_empty() { Ok(()) } else { Err(format!("it differs in {}", odd.join(", "))) }
}

/// What was inherited has been marked by now; this looks whether that worked.
fn descriptors() -> Answer {
    let entries = std::fs::read_dir("/proc/self/fd").map_err(|error| error.to_string())?;
    let open: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|number| {
            *number > 2
                && sys::with_descriptor(*number, |fd| fcntl_getfd(fd))
                    .is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC))
        })
        .map(|number| number.to_string())
        .collect();
    if open.is_empty() { Ok(()) } else { Err(format!("open: {}", open.join(", "))) }
}

fn refused(call: DeniedCall) -> Answer {
    let wanted = if call == DeniedCall::Clone3 { Errno::NOSYS } else { Errno::PERM };
    match sys::try_harmless(call) {
        Err(errno) if errno == wanted => Ok(()),
        Err(errno) => Err(format!("it was let through and failed with: {errno}")),
        Ok(()) => Err("it works".to_owned()),
    }
}

fn own_namespace(name: &str, host: u64) -> Answer {
    match fs::stat(format!("/proc/self/ns/{name}")) {
        Ok(found) if host != 0 && found.st_ino != host => Ok(()),
        Ok(_) => Err("it is the host's".to_owned()),
        Err(errno) => Err(format!("it cannot be looked at: {errno}")),
    }
}

fn processes(most: u32) -> Answer {
    let entries = std::fs::read_dir("/proc").map_err(|error| error.to_string())?;
    let count = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()))
        .count();
    let own = std::process::id();
    if own <= most && u32::try_from(count).is_ok_and(|count| (1..=most).contains(&count)) {
        Ok(())
    } else {
        Err(format!("{count} processes, and this one is number {own}"))
    }
}
