//! The keeper: between the launcher and podman.
//!
//! `_podman SCRATCH STATUS LIFE ANSWERS FD FD FD FD PROGRAM WORD…`: four descriptors go into the
//! container, from number 3 on, and a socket over which the first program there says that it is there and
//! hands out the pipe of its answers. Tells the launcher of that and of the end, in the words of
//! `bwrap --json-status-fd`, and passes the answers on.
//!
//! podman lets a container live on when its client ends. So the keeper adopts what podman starts and
//! kills it when podman's client ends, or when the life line does because the launcher was killed; then
//! it also clears the launch's directory away. It has a session of its own, so that whoever ends that of
//! a killed launcher leaves the keeper to do that. A keeper that is killed itself leaves it to the
//! launcher; if both are killed in one moment, the runner, `down` or the next launch of the role ends
//! what they left.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::sweep;
use crate::launch::{REFUSED, close_inherited_on_exec};
use crate::sys;

/// Where what this program keeps for itself goes: out of the way of what goes into the container.
const OWN: i32 = 64;
/// Number of the first descriptor in the container.
const FIRST: i32 = 3;
const INSIDE: usize = 4;
/// Those for this program: status, life, answers.
const FOR_KEEPER: usize = 3;
/// The reason of a failed start, below the launch's directory.
pub(crate) const ERROR: &str = "error";
/// Of podman's last words.
const TAIL: usize = 4096;
/// The pid of the container's first process, below the launch's directory.
pub(super) const PID: &str = "pid";
/// A short name for the launch's directory: podman refuses some paths of more than 50 bytes.
pub(super) const SHORT: &str = "short";
/// What such names in `/tmp` begin with.
pub(super) const SHORT_PREFIX: &str = "of-";

enum Event {
    Ready,
    LauncherGone,
    MonitorGone,
    Ended(Option<i32>),
}

/// For podman's client to end after its monitor has. One that was killed it may wait for without end.
const PATIENCE: Duration = Duration::from_secs(3);
/// The status of a command that was killed.
const KILLED: i32 = 128 + 9;

/// Runs [`super::KEEP`]: the status to exit with. Must be called before anything is opened or started.
pub fn keep(arguments: &[OsString]) -> i32 {
    match run(arguments) {
        Ok(status) => status,
        Err(error) => {
            if let Some(scratch) = arguments.first().and_then(|word| word.to_str()) {
                let _ = std::fs::write(Utf8Path::new(scratch).join(ERROR), error.to_string());
            }
            REFUSED
        }
    }
}

fn run(arguments: &[OsString]) -> std::io::Result<i32> {
    let invalid = |what: &str| std::io::Error::other(format!("the keeper was given {what}"));
    let words: Vec<&str> = arguments
        .iter()
        .map(|word| word.to_str().ok_or_else(|| invalid("no text")))
        .collect::<Result<_, _>>()?;
    let [scratch, numbers @ ..] = words.as_slice() else { return Err(invalid("nothing")) };
    let (numbers, [program, words @ ..]) =
        numbers.split_at_checked(FOR_KEEPER + INSIDE).ok_or_else(|| invalid("too few words"))?
    else {
        return Err(invalid("no program"));
    };
    let scratch = Utf8Path::new(scratch);
    close_inherited_on_exec()?;
    let taken = numbers
        .iter()
        .map(|number| number.parse().ok().and_then(sys::take))
        .collect::<Option<Vec<OwnedFd>>>()
        .ok_or_else(|| invalid("a closed descriptor"))?;
    let (ours, theirs) = UnixStream::pair()?;
    let (ours, theirs) = (OwnedFd::from(ours), OwnedFd::from(theirs));
    let mut own = taken
        .iter()
        .chain([&theirs, &ours])
        .map(|fd| fcntl_dupfd_cloexec(fd, OWN))
        .collect::<Result<Vec<OwnedFd>, _>>()?;
    drop((taken, ours, theirs));
    // In the order in which they came.
    let channel = own.pop().ok_or_else(|| invalid("nothing"))?;
    let inside = own.split_off(FOR_KEEPER);
    let Ok([status, life, answers]) = <[OwnedFd; FOR_KEEPER]>::try_from(own) else {
        return Err(invalid("nothing"));
    };
    let mut status = File::from(status);

    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let places = Places::make(scratch)?;
    let mut child = start(program, words, &places, &inside)?;
    drop(inside);
    // After the start: podman belongs to the console's session, this program must not.
    let _ = rustix::process::setsid();
    let (events, happened) = mpsc::channel();
    relay_answers(channel, answers, events.clone());
    watch_life(fcntl_dupfd_cloexec(&life, OWN)?, events.clone());
    let errors = relay_errors(&mut child, &scratch.join(ERROR));
    let of_client = events.clone();
    std::thread::spawn(move || {
        let code = child.wait().ok().and_then(|how| how.code());
        let _ = of_client.send(Event::Ended(code));
    });
    let mut ready = false;
    let mut orphaned = false;
    let mut patience = None;
    let code = loop {
        let event = match patience {
            None => happened.recv().ok(),
            Some(left) => happened.recv_timeout(left).ok(),
        };
        match event {
            Some(Event::Ready) => {
                ready = true;
                watch_monitor(events.clone());
                let pid = std::fs::read_to_string(scratch.join(PID)).unwrap_or_default();
                if let Ok(pid) = pid.trim().parse::<u32>() {
                    // If nobody reads it the launcher is gone, and that is seen next.
                    let _ = writeln!(status, "{{\"child-pid\":{pid}}}");
                }
            }
            Some(Event::Ended(code)) => break code,
            Some(Event::MonitorGone) => patience = Some(PATIENCE),
            Some(Event::LauncherGone) => {
                orphaned = true;
                break None;
            }
            None => break None,
        }
    };
    sweep::end(scratch);
    // The end of the launcher's console may have ended podman first.
    orphaned |= is_over(&life);
    // Nobody is left who could write.
    let _ = errors.map(JoinHandle::join);
    if let Some(code) = code.filter(|_| ready) {
        let _ = writeln!(status, "{{\"exit-code\":{code}}}");
    }
    if orphaned {
        sweep::clear(scratch);
        // The name of it is gone with the directory where somebody else cleared that meanwhile.
        sweep::remove_short(&places.short, scratch);
    }
    Ok(code.unwrap_or(if ready { KILLED } else { REFUSED }))
}

/// Tells when the launcher is gone.
fn watch_life(life: OwnedFd, events: Sender<Event>) {
    std::thread::spawn(move || {
        let _ = File::from(life).read(&mut [0; 1]);
        let _ = events.send(Event::LauncherGone);
    });
}

/// Whether the other end of the life line is closed.
fn is_over(life: &OwnedFd) -> bool {
    let nonblocking =
        fcntl_getfl(life).and_then(|flags| fcntl_setfl(life, flags | OFlags::NONBLOCK));
    nonblocking.is_err() || matches!(rustix::io::read(life, &mut [0; 1]), Ok(0))
}

/// Tells when podman's monitor is gone, which has the terminal of the container. It has become a child
/// of this program.
fn watch_monitor(events: Sender<Event>) {
    std::thread::spawn(move || {
        if let Some(monitor) = sweep::monitor() {
            let ended =
                || waitid(WaitId::Pid(monitor), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let seen = loop {
                match ended() {
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            // A child of somebody else: nothing is known of it.
            if seen.is_err() {
                return;
            }
        }
        let _ = events.send(Event::MonitorGone);
    });
}

/// Tells when the first program is there, and passes on what it answers. The launcher's pipe ends when
/// that program's does.
fn relay_answers(channel: OwnedFd, answers: OwnedFd, events: Sender<Event>) {
    std::thread::spawn(move || {
        let Some(pipe) = receive(&channel) else { return };
        let _ = events.send(Event::Ready);
        let _ = std::io::copy(&mut File::from(pipe), &mut File::from(answers));
    });
}

fn receive(channel: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let message = loop {
        let parts = &mut [IoSliceMut::new(&mut byte)];
        match recvmsg(channel, parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other.ok()?,
        }
    };
    if message.bytes == 0 {
        return None;
    }
    control.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

/// Passes podman's errors on, and keeps the last of them.
fn relay_errors(child: &mut Child, copy: &Utf8Path) -> Option<JoinHandle<()>> {
    let mut errors = child.stderr.take()?;
    let copy = copy.to_owned();
    Some(std::thread::spawn(move || {
        let (mut chunk, mut tail) = ([0; 4096], Vec::new());
        while let Ok(count @ 1..) = errors.read(&mut chunk) {
            let _ = std::io::stderr().write_all(&chunk[..count]);
            if tail.len() < TAIL {
                tail.extend_from_slice(&chunk[..count]);
                let _ = std::fs::write(&copy, &tail);
            }
        }
    }))
}

/// Where podman is told to keep what it keeps. Nothing of the user's own podman is read or written.
struct Places {
    scratch: Utf8PathBuf,
    short: Utf8PathBuf,
}

impl Places {
    fn make(scratch: &Utf8Path) -> std::io::Result<Self> {
        // The name is written first, so that it is found and removed whatever happens next.
        let directory = tempfile::Builder::new().prefix(SHORT_PREFIX).make_in("/tmp", |path| {
            std::fs::write(scratch.join(SHORT), path.as_os_str().as_encoded_bytes())?;
            DirBuilder::new().mode(0o700).create(path)
        })?;
        let directory = directory.into_temp_path().keep()?;
        let directory = Utf8PathBuf::from_path_buf(directory)
            .map_err(|_| std::io::Error::other("/tmp is no text"))?;
        let short = directory.join("s");
        std::os::unix::fs::symlink(scratch, &short)?;
        for name in ["root", "run", "tmp", "home", "xdg", "hooks", "networks", "runtime"] {
            std::fs::create_dir(scratch.join(name))?;
        }
        rustix::fs::chmod(scratch.join("xdg").as_std_path(), rustix::fs::Mode::RWXU)?;
        let conf = format!(
            "[containers]\n[engine]\nlock_type = \"file\"\n[network]\nnetwork_config_dir = \"{scratch}/networks\"\n"
        );
        std::fs::write(scratch.join("containers.conf"), conf)?;
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\nrunroot = \"{short}/run\"\ngraphroot = \"{scratch}/root\"\n"
        );
        std::fs::write(scratch.join("storage.conf"), storage)?;
        Ok(Self { scratch: scratch.to_owned(), short })
    }

    fn global(&self) -> [String; 6] {
        let Self { scratch, short } = self;
        [
            format!("--root={scratch}/root"),
            format!("--runroot={short}/run"),
            format!("--tmpdir={short}/tmp"),
            format!("--hooks-dir={scratch}/hooks"),
            format!("--network-config-dir={scratch}/networks"),
            // As root the runtime would keep its own in `/run`, and leave it there when it is killed.
            format!("--runtime-flag=root={scratch}/runtime"),
        ]
    }

    /// The container is named for its role and its launch.
    fn of_run(&self) -> Vec<String> {
        let Self { scratch, .. } = self;
        let mut words =
            vec![format!("--name={}", sweep::name(scratch)), format!("--pidfile={scratch}/{PID}")];
        // Elsewhere the runtime goes on without a group of its own, but not with a wish for one.
        if rustix::process::getuid().is_root() {
            words.push(format!("--cgroup-parent=/{}", sweep::cgroup(scratch)));
        }
        words
    }

    fn environment(&self, program: &str) -> [(&'static str, String); 5] {
        let Self { scratch, short } = self;
        let own = Utf8Path::new(program).parent().map_or("/usr/bin", Utf8Path::as_str);
        [
            ("PATH", format!("{own}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")),
            ("HOME", format!("{scratch}/home")),
            ("XDG_RUNTIME_DIR", format!("{short}/xdg")),
            ("CONTAINERS_CONF", format!("{scratch}/containers.conf")),
            ("CONTAINERS_STORAGE_CONF", format!("{scratch}/storage.conf")),
        ]
    }
}

fn start(
    program: &str,
    words: &[&str],
    places: &Places,
    inside: &[OwnedFd],
) -> std::io::Result<Child> {
    let run = words.iter().position(|word| *word == "run").unwrap_or(words.len());
    let (global, of_run) = words.split_at(run);
    let mut command = Command::new(program);
    command.args(places.global()).args(global);
    if let [run, rest @ ..] = of_run {
        command.arg(run).args(places.of_run()).args(rest);
    }
    command.env_clear().envs(places.environment(program)).stderr(Stdio::piped());
    // Everything else has been moved away, so these are the lowest that are free.
    let mut passed = Vec::with_capacity(inside.len());
    for (number, fd) in (FIRST..).zip(inside) {
        let at = fcntl_dupfd_cloexec(fd, FIRST)?;
        if at.as_raw_fd() != number {
            return Err(std::io::Error::other("a descriptor is in the way"));
        }
        passed.push(at);
    }
    for fd in &passed {
        fcntl_setfd(fd, FdFlags::empty())?;
    }
    command.spawn()
}
