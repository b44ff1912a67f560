//! The program in between, as the launcher sees it: started, heard, let go.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use fleet_core::isolation::EnforcementRow;
use fleet_core::limits::{Attempt, LimitRequest, Means};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, openat};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};

use super::ENTER;
use super::enter::{Order, Report};

/// From the start of the program in between to its report. It does a dozen system calls.
const REPORT: Duration = Duration::from_secs(10);
/// No report is larger.
const LARGEST: usize = 1024 * 1024;

/// The program to be started under caps.
#[derive(Debug)]
pub(crate) struct Starting<'a> {
    /// What is executed.
    pub(crate) program: String,
    /// Its name to itself.
    pub(crate) arg0: &'a str,
    pub(crate) args: Vec<String>,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) cwd: &'a str,
    /// A descriptor by which it is executed and that it must not get.
    pub(crate) by: Option<&'a OwnedFd>,
}

/// Why an attempt did not lead to a running program.
pub(super) enum Stop {
    /// Another one may.
    Next(String),
    /// No other one will.
    Here(String),
}

/// The program in between, not let go yet. Dropping it ends it.
pub(super) struct Entering {
    child: Option<Child>,
    report: File,
    go: Option<File>,
    text: Vec<u8>,
    program: String,
}

impl Drop for Entering {
    fn drop(&mut self) {
        // It waits for a byte that now never comes.
        self.go = None;
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Entering {
    pub(super) fn begin(
        request: &LimitRequest,
        attempt: &Attempt,
        starting: &Starting<'_>,
        join: Vec<Utf8PathBuf>,
    ) -> Result<Self, Stop> {
        let order = Order {
            resources: request.resources,
            join,
            wait: attempt.means == Means::Scope,
            rlimits: attempt.rlimits.clone(),
            close: starting.by.iter().map(|fd| fd.as_raw_fd()).collect(),
            program: starting.program.clone(),
            arg0: starting.arg0.to_owned(),
            args: starting.args.clone(),
            env: starting.env.clone(),
        };
        let ready =
            || -> std::io::Result<(OwnedFd, OwnedFd, OwnedFd, OwnedFd, OwnedFd, OwnedFd)> {
                let order = sealed(&serde_json::to_vec(&order)?)?;
                let (report, said) = pipe_with(PipeFlags::CLOEXEC)?;
                let (heard, go) = pipe_with(PipeFlags::CLOEXEC)?;
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let program = openat(CWD, "/proc/self/exe", flags, Mode::empty())?;
                Ok((order, report, said, heard, go, program))
            };
        let wrong = |error: std::io::Error| Stop::Here(error.to_string());
        let (order, report, said, heard, go, program) = ready().map_err(wrong)?;
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        command.arg0("ours-fleet").arg(ENTER);
        command.args([&order, &said, &heard].map(|fd| fd.as_raw_fd().to_string()));
        command.env_clear().current_dir(starting.cwd);
        for fd in [&order, &said, &heard].into_iter().chain(starting.by) {
            fcntl_setfd(fd, FdFlags::empty()).map_err(|errno| wrong(errno.into()))?;
        }
        let child = command.spawn().map_err(wrong)?;
        if let Some(by) = starting.by {
            let _ = fcntl_setfd(by, FdFlags::CLOEXEC);
        }
        Ok(Self {
            child: Some(child),
            report: report.into(),
            go: Some(go.into()),
            text: Vec::new(),
            program: starting.arg0.to_owned(),
        })
    }

    /// Its number.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Tells it that it is where it belongs.
    pub(super) fn moved(&mut self) -> Result<(), Stop> {
        self.go
            .as_mut()
            .map_or(Ok(()), |go| go.write_all(b"."))
            .map_err(|error| Stop::Next(error.to_string()))
    }

    /// What it read back.
    pub(super) fn rows(&mut self) -> Result<Vec<EnforcementRow>, Stop> {
        match self.line().map_err(Stop::Next)? {
            Some(Report::Held(rows)) => Ok(rows),
            Some(Report::Failed(why) | Report::NotExecuted(why)) => Err(Stop::Next(why)),
            None => Err(Stop::Next("nothing was reported".to_owned())),
        }
    }

    /// Lets it become the program.
    pub(super) fn go(mut self) -> Result<Child, Stop> {
        let mut go = self.go.take();
        if let Some(go) = &mut go {
            go.write_all(b"!").map_err(|error| Stop::Here(error.to_string()))?;
        }
        match self.line().map_err(Stop::Here)? {
            None => {}
            Some(Report::NotExecuted(why)) => {
                return Err(Stop::Here(format!("{}: {why}", self.program)));
            }
            Some(_) => return Err(Stop::Here("it reported twice".to_owned())),
        }
        self.child.take().ok_or_else(|| Stop::Here("nothing was started".to_owned()))
    }

    /// The next report; `None` at the end of the pipe.
    fn line(&mut self) -> Result<Option<Report>, String> {
        let until = Instant::now() + REPORT;
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                let report = serde_json::from_slice(&line);
                return report.map(Some).map_err(|_| "an unreadable report".to_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            let limit = Timespec::try_from(left).map_err(|error| error.to_string())?;
            let mut fds = [PollFd::new(&self.report, PollFlags::IN)];
            match poll(&mut fds, Some(&limit)) {
                Ok(0) => return Err(format!("no report within {} s", REPORT.as_secs())),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.to_string()),
                Ok(_) => {}
            }
            let mut chunk = [0; 4096];
            match self.report.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => self.text.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
            if self.text.len() > LARGEST {
                return Err("an endless report".to_owned());
            }
        }
    }
}

/// Only whoever gets the descriptor reads it, and nobody changes it.
fn sealed(content: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file =
        File::from(memfd_create("order", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(content)?;
    file.rewind()?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}
