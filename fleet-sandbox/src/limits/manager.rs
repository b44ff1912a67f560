//! The systemd of this user, asked for scopes.
//!
//! It is reached by its own socket in the user's runtime directory, as `systemctl --user` does: no bus
//! daemon has to run, no program is started, and nothing of a launch stands in an argument or in a
//! variable. A process is named to it by number, so it is believed to be the manager only if it runs
//! as this user and in this pid namespace: in another one the number is somebody else's.

mod bytes;
mod wire;

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use fleet_core::limits::UserManager;
use rustix::process::getuid;

pub(super) use wire::Value;
use wire::{Body, Kind, Message};

use crate::sys;

/// From the first question to the end of the job that the last one began.
const LIMIT: Duration = Duration::from_secs(5);
/// Nothing that is read here is larger.
const LARGEST: usize = 1024 * 1024;
/// There is such a directory where systemd runs the machine.
const BOOTED: &str = "/run/systemd/system";
const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";
/// A signal, to all processes of a unit.
const KILL: u32 = 9;

/// A connection to the user manager.
#[derive(Debug)]
pub(super) struct Manager {
    stream: UnixStream,
    serial: u32,
    until: Instant,
}

/// Why a question got no answer that helps.
#[derive(Debug)]
enum Refused {
    /// There is no such unit.
    NoSuchUnit,
    /// The words of the manager, or of the system.
    Because(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

impl Refused {
    fn words(self) -> String {
        match self {
            Self::NoSuchUnit => "there is no such unit".to_owned(),
            Self::Because(why) => why,
        }
    }
}

impl Manager {
    /// Whether there is one.
    pub(super) fn presence(runtime_dir: Option<&Utf8Path>) -> UserManager {
        match Self::connect(runtime_dir) {
            Ok(_) => UserManager::Answers,
            Err(_) if !Utf8Path::new(BOOTED).exists() => UserManager::Absent,
            Err(why) => UserManager::Silent(why),
        }
    }

    /// Connects to the manager of this user, or says why there is none.
    pub(super) fn connect(runtime_dir: Option<&Utf8Path>) -> Result<Self, String> {
        let Some(directory) = runtime_dir else {
            return Err("no user manager: this user has no runtime directory".to_owned());
        };
        let path = directory.join("systemd/private");
        let wrong = |why: &str| format!("no user manager answers at {path}: {why}");
        let failed = |error: std::io::Error| wrong(&error.to_string());
        let stream = UnixStream::connect(&path).map_err(failed)?;
        let (pid, uid) = sys::peer(stream.as_fd()).map_err(|errno| failed(errno.into()))?;
        if uid != getuid().as_raw() {
            return Err(wrong("it is another user's"));
        }
        if !in_this_namespace(pid) {
            return Err(wrong("it is in another pid namespace"));
        }
        let mut manager = Self { stream, serial: 0, until: Instant::now() + LIMIT };
        manager.introduce(uid).map_err(|why| wrong(&why))?;
        Ok(manager)
    }

    /// Puts processes into a new scope, and returns when they are in it.
    pub(super) fn start(&mut self, unit: &str, properties: &[(&str, Value)]) -> Result<(), String> {
        let body = Body::default().text(unit).text("fail").properties(properties).no_units();
        self.job("StartTransientUnit", &body).map_err(Refused::words)
    }

    /// Ends what runs in a scope, and the scope. Whether there was one.
    pub(super) fn stop(&mut self, unit: &str) -> Result<bool, String> {
        let kill = Body::default().text(unit).text("all").number(KILL);
        // That it has no process any more is no reason to leave it.
        if let Err(Refused::NoSuchUnit) = self.ask("KillUnit", &kill) {
            return Ok(false);
        }
        let body = Body::default().text(unit).text("replace");
        match self.job("StopUnit", &body) {
            // Without a process it may be gone by itself meanwhile.
            Ok(()) | Err(Refused::NoSuchUnit) => Ok(true),
            Err(Refused::Because(why)) => Err(why),
        }
    }

    /// Asks for a job, and waits for its end.
    fn job(&mut self, member: &str, body: &Body) -> Result<(), Refused> {
        let answer = self.ask(member, body)?;
        let job = answer.texts().first().map(|path| (*path).to_owned());
        let job = job.ok_or_else(|| "the user manager named no job".to_owned())?;
        loop {
            let message = self.message()?;
            if message.kind != Kind::Signal || message.member != "JobRemoved" {
                continue;
            }
            // The number, the path, the unit, the result.
            match message.texts()[..] {
                [path, _, "done"] if path == job => return Ok(()),
                [path, unit, result] if path == job => {
                    return Err(Refused::Because(format!("the job of {unit} ended: {result}")));
                }
                _ => {}
            }
        }
    }

    /// One call, and its answer.
    fn ask(&mut self, member: &str, body: &Body) -> Result<Message, Refused> {
        self.serial += 1;
        let call = wire::call(self.serial, member, body);
        self.send(&call)?;
        loop {
            let message = self.message()?;
            if message.answers != Some(self.serial) {
                continue;
            }
            return match message.kind {
                Kind::Return => Ok(message),
                _ if message.error == NO_SUCH_UNIT => Err(Refused::NoSuchUnit),
                _ => {
                    let words = message.texts().first().copied().unwrap_or_default();
                    Err(Refused::Because(format!("{}: {words}", message.error)))
                }
            };
        }
    }

    /// Says who asks, which the kernel vouches for.
    fn introduce(&mut self, uid: u32) -> Result<(), String> {
        // Digits, each as the number of its byte: 0x30 and on.
        let name: String = uid.to_string().chars().flat_map(|digit| ['3', digit]).collect();
        // At once, and nothing more before the answer: the manager reads what comes together with the
        // last line only when still more comes.
        self.send(format!("\0AUTH EXTERNAL {name}\r\nBEGIN\r\n").as_bytes())?;
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.receive(&mut byte)?;
            line.extend(byte);
            if line.len() > 256 {
                return Err("an endless greeting".to_owned());
            }
        }
        let welcome = line.starts_with(b"OK ");
        welcome.then_some(()).ok_or_else(|| "it does not let this user in".to_owned())
    }

    fn message(&mut self) -> Result<Message, String> {
        let strange = || "an unreadable message".to_owned();
        let mut start = [0; wire::START];
        self.receive(&mut start)?;
        let mut rest = vec![0; wire::rest(&start, LARGEST).ok_or_else(strange)?];
        self.receive(&mut rest)?;
        wire::parse(&start, &rest).ok_or_else(strange)
    }

    /// A limit for the next call of the system, within that of the whole conversation.
    fn left(&self) -> Result<Option<Duration>, String> {
        let left = self.until.saturating_duration_since(Instant::now());
        let late = || format!("no answer of the user manager within {} s", LIMIT.as_secs());
        if left.is_zero() { Err(late()) } else { Ok(Some(left)) }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let left = self.left()?;
        self.stream
            .set_write_timeout(left)
            .and_then(|()| self.stream.write_all(bytes))
            .map_err(|error| error.to_string())
    }

    fn receive(&mut self, mut bytes: &mut [u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let left = self.left()?;
            self.stream.set_read_timeout(left).map_err(|error| error.to_string())?;
            match self.stream.read(bytes) {
                Ok(0) => return Err("the user manager hung up".to_owned()),
                Ok(count) => bytes = bytes.split_at_mut(count).1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The limit is looked at again above.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// Whether a process, as its socket names it, has the same numbers of processes as this one. Of one in
/// a namespace below this, `NSpid` has more than one number; of one in another, the socket has none.
fn in_this_namespace(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    pid > 0 && numbers.is_some_and(|list| list.split_ascii_whitespace().count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// What a scope leads to of a manager that says this, whatever it is asked, and hangs up.
    fn asked_of(says: &'static [u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap();
        std::fs::create_dir(path.join("systemd")).unwrap();
        let listener = UnixListener::bind(path.join("systemd/private")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = [0; 4096];
                let _ = stream.read(&mut question);
                let _ = stream.write_all(says);
                let _ = stream.shutdown(std::net::Shutdown::Write);
                while stream.read(&mut question).is_ok_and(|count| count > 0) {}
            });
            let made = Manager::connect(Some(path))
                .and_then(|mut manager| manager.start("ours-fleet-x.scope", &[]));
            made.unwrap_err()
        })
    }

    #[test]
    fn whatever_answers_is_not_believed_to_have_made_a_scope() {
        static ENDLESS: [u8; 1000] = [b'x'; 1000];
        // A return to the first call, without a body; then the end.
        let empty = b"OK 1\r\nl\x02\x01\x01\0\0\0\0\x01\0\0\0\x08\0\0\0\x05\x01u\0\x01\0\0\0";
        for (says, why) in [
            (&b""[..], "hung up"),
            (b"REJECTED EXTERNAL\r\n", "does not let this user in"),
            (&ENDLESS[..], "endless greeting"),
            (b"OK 1\r\n", "hung up"),
            (b"OK 1\r\n0123456789abcdef", "unreadable"),
            (b"OK 1\r\nl\x02\x01\x01\xff\xff\xff\x7f\x01\0\0\0\0\0\0\0", "unreadable"),
            (empty, "named no job"),
        ] {
            let found = asked_of(says);
            assert!(found.contains(why), "{}: {found}", says.escape_ascii());
        }
    }

    #[test]
    fn where_nobody_listens_there_is_no_manager() {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap();
        let why = Manager::connect(Some(path)).unwrap_err();
        assert!(why.starts_with("no user manager answers at"), "{why}");
        assert!(Manager::connect(None).unwrap_err().contains("no runtime directory"));
    }

    #[test]
    fn only_a_process_of_this_namespace_is_a_manager() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(in_this_namespace(own), "the control");
        for other in [0, -1, i32::MAX] {
            assert!(!in_this_namespace(other), "{other}");
        }
    }
}
