//! The launcher's side: tries what the request lists until something holds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use fleet_core::isolation::{BackendName, EnforcementLevel, EnforcementRow, MemoryBytes};
use fleet_core::limits::{Attempt, GroupRecord, LimitRequest, Means, OutOfMemory, weakest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, openat};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};

use super::ENTER;
use super::enter::{Order, Report};
use super::groups::Groups;
use crate::launch::record;

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

/// What holds a started program.
#[derive(Debug)]
pub(crate) struct Held {
    /// What was read back.
    pub(crate) rows: Vec<EnforcementRow>,
    groups: Option<Groups>,
    request: LimitRequest,
}

impl Held {
    /// Without a sandbox the command has the rights of whoever made its group, and can leave it. What
    /// podman starts was never known to be in it.
    pub(crate) fn judge(&mut self, backend: BackendName) {
        let (level, why) = match backend {
            BackendName::None => (EnforcementLevel::Degraded, "without a sandbox it can be undone"),
            BackendName::Podman => (EnforcementLevel::Missing, "on podman's client only"),
            BackendName::Bubblewrap | BackendName::Landlock => return,
        };
        let weaker = |row: &EnforcementRow| {
            row.level == EnforcementLevel::Enforced || level == EnforcementLevel::Missing
        };
        for row in self.rows.iter_mut().filter(|row| weaker(row)) {
            row.level = level;
            row.evidence = format!("{}; {why}", row.evidence);
        }
    }

    /// To be called when the program and everything that it started has ended: tells whether the
    /// kernel killed any of it for want of memory, and removes the groups.
    pub(crate) fn finish(mut self) -> Option<OutOfMemory> {
        let MemoryBytes(cap) = self.request.resources.memory.unwrap_or(MemoryBytes(0));
        let kills = self.groups.as_ref().and_then(Groups::memory_kills).unwrap_or(0);
        let gone = self.groups.as_mut().is_none_or(|groups| groups.remove().is_ok());
        if gone {
            // Without it there is nothing left to look for.
            let _ = std::fs::remove_file(&self.request.record);
        }
        (kills > 0).then_some(OutOfMemory { kills, cap })
    }
}

/// Starts a program under the caps of a request. On `Ok` the program itself runs. On an error nothing
/// runs and nothing is left.
pub(crate) fn start(
    request: &LimitRequest,
    starting: &Starting<'_>,
) -> Result<(Child, Held), String> {
    let mut record = known(request);
    let mut reasons = Vec::new();
    for attempt in &request.attempts {
        match try_one(request, attempt, starting, &mut record) {
            Ok(started) => return Ok(started),
            Err(Stop::Here(why)) => return Err(why),
            Err(Stop::Next(why)) => reasons.push(format!("{}: {why}", attempt.means)),
        }
    }
    let rule = request.strict.as_deref().map_or_else(String::new, |rule| {
        format!("{rule} refuses a start without the caps of `resources`: ")
    });
    Err(format!("{rule}{}", reasons.join("; ")))
}

/// Why an attempt did not lead to a running program.
enum Stop {
    /// Another one may.
    Next(String),
    /// No other one will.
    Here(String),
}

fn try_one(
    request: &LimitRequest,
    attempt: &Attempt,
    starting: &Starting<'_>,
    record: &mut GroupRecord,
) -> Result<(Child, Held), Stop> {
    let mut note = |parent: &Utf8Path| {
        if !record.parents.iter().any(|known| known == parent) {
            record.parents.push(parent.to_owned());
        }
        record::publish(&request.record, record)
    };
    let groups = match attempt.means {
        Means::Group => {
            let made = Groups::make(&request.group, &attempt.caps, request.resources, &mut note);
            Some(made.map_err(Stop::Next)?)
        }
        Means::Rlimits => None,
        Means::Scope => return Err(Stop::Next("not in this build".to_owned())),
    };
    let join = groups.as_ref().map(Groups::joining).unwrap_or_default();
    let mut entering = Entering::begin(request, attempt, starting, join)?;
    let rows = entering.rows()?;
    let lost = attempt.caps.iter().find_map(|cap| {
        let row = rows.iter().find(|row| row.item == cap.item());
        let weak = row.is_none_or(|row| row.level != EnforcementLevel::Enforced);
        weak.then(|| row.map_or_else(|| "nothing was read back".to_owned(), shown))
    });
    let refused = request.strict.as_ref().and_then(|_| weakest(&rows)).map(shown);
    if let Some(why) = lost.or(refused) {
        return Err(Stop::Next(why));
    }
    let child = entering.go()?;
    Ok((child, Held { rows, groups, request: request.clone() }))
}

fn shown(row: &EnforcementRow) -> String {
    format!("{} is {}, {}", row.item.as_str(), row.level.as_str(), row.evidence)
}

/// What an earlier launch has left: not forgotten before it is gone.
fn known(request: &LimitRequest) -> GroupRecord {
    let text = std::fs::read(&request.record).unwrap_or_default();
    let before: GroupRecord = serde_json::from_slice(&text).unwrap_or_default();
    GroupRecord { group: Some(request.group.clone()), ..before }
}

/// The program in between, not let go yet. Dropping it ends it.
struct Entering {
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
    fn begin(
        request: &LimitRequest,
        attempt: &Attempt,
        starting: &Starting<'_>,
        join: Vec<camino::Utf8PathBuf>,
    ) -> Result<Self, Stop> {
        let order = Order {
            resources: request.resources,
            join,
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

    /// What it read back.
    fn rows(&mut self) -> Result<Vec<EnforcementRow>, Stop> {
        match self.line().map_err(Stop::Next)? {
            Some(Report::Held(rows)) => Ok(rows),
            Some(Report::Failed(why) | Report::NotExecuted(why)) => Err(Stop::Next(why)),
            None => Err(Stop::Next("nothing was reported".to_owned())),
        }
    }

    /// Lets it become the program.
    fn go(mut self) -> Result<Child, Stop> {
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
