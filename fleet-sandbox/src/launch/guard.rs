//! Guards a started command: reaps, observes, ends it on request, kills what is left.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use fleet_core::attest::AttestRequest;
use fleet_core::isolation::EnforcementRow;
use fleet_core::launch::{LaunchFile, Observation};
use fleet_core::port::ProcessIdentity;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, pidfd_open, pidfd_send_signal, wait,
};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

use super::descriptors::Asked;
use super::ending::Ending;
use super::record;
use super::relay::Network;
use super::status::{Report, StatusPipe};
use crate::attest::launcher::{Answer, AnswerPipe, Canaries};
use crate::limits::Held;
use crate::observe::{self, Sandboxed};

/// From the request to end until the kill.
const GRACE: Duration = Duration::from_secs(5);
/// How long a command may take to appear before it is observed as it is.
const APPEARANCE: Duration = Duration::from_secs(2);
/// Between two looks for the command.
const LOOK: Duration = Duration::from_millis(2);

/// The signals that the launcher has to do with. Having a handler for the three that a terminal
/// sends to the whole group keeps the launcher alive; the command gets the defaults back by exec.
pub(super) struct Signals {
    child: Stream,
    terminate: Stream,
    hangup: Stream,
    _terminal: [Stream; 3],
}

impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        // SIGTSTP has no constant of its own there.
        let stop = SignalKind::from_raw(Signal::TSTP.as_raw());
        Ok(Self {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            _terminal: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::quit())?,
                signal(stop)?,
            ],
        })
    }
}

/// How a launch ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) started: bool,
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) hangup: bool,
    pub(super) stopped: bool,
    pub(super) error: Option<String>,
    /// Processes that would not end.
    pub(super) left: Option<Vec<ProcessIdentity>>,
}

impl Ended {
    pub(super) fn refused(reason: String) -> Self {
        Self { error: Some(reason), ..Self::default() }
    }

    /// The exit status of the launcher.
    pub(super) fn status(&self) -> i32 {
        match (self.started, self.code, self.signal) {
            (false, ..) => super::REFUSED,
            (true, Some(code), _) => code,
            (true, None, Some(signal)) => 128 + signal,
            (true, None, None) => 1,
        }
    }
}

/// The command's own process, once it is known.
struct Harness {
    pid: u32,
    handle: OwnedFd,
}

/// Waits for what a sandbox answers about itself.
pub(super) struct Listening {
    request: AttestRequest,
    pipe: AnswerPipe,
    /// Closed when the answer is there.
    canaries: Option<Canaries>,
    answer: Option<Answer>,
}

impl Listening {
    pub(super) fn new(asked: Asked) -> std::io::Result<Self> {
        let Asked { request, canaries, answers } = asked;
        let pipe = AnswerPipe::new(answers)?;
        Ok(Self { request, pipe, canaries: Some(canaries), answer: None })
    }
}

pub(super) struct Guard<'a> {
    launch: &'a LaunchFile,
    child: u32,
    status: Option<StatusPipe>,
    signals: Signals,
    init: Option<u32>,
    harness: Option<Harness>,
    exit_code: Option<i32>,
    observed: bool,
    /// What serves the sandbox; gone with the guard.
    network: Option<Network>,
    look_until: Option<Instant>,
    /// Until it has answered, what runs inside is not the command yet.
    listening: Option<Listening>,
    /// What was read back of its caps, before it was started.
    held: Vec<EnforcementRow>,
    end: Ending,
    ended: Ended,
}

impl<'a> Guard<'a> {
    pub(super) fn new(
        launch: &'a LaunchFile,
        child: &Child,
        status: Option<StatusPipe>,
        signals: Signals,
    ) -> Self {
        // Reaped here by pid: dropping the handle does not wait.
        let child = child.id();
        Self {
            launch,
            child,
            status,
            signals,
            init: None,
            harness: None,
            exit_code: None,
            observed: false,
            network: None,
            look_until: None,
            listening: None,
            held: Vec::new(),
            end: Ending::default(),
            ended: Ended::default(),
        }
    }

    /// Expects an answer before the command runs.
    pub(super) fn listen(&mut self, listening: Option<Listening>) {
        self.listening = listening;
    }

    /// Takes over what was read back of its caps.
    pub(super) fn held(&mut self, held: &Held) {
        self.held.clone_from(&held.rows);
        self.end.spare(held.keeper());
    }

    /// Takes over the life lines of the sandbox, whose end has it ended from within.
    pub(super) fn hold(&mut self, life: Vec<OwnedFd>) {
        self.end.hold(life);
    }

    /// Takes over what is known of the sandbox already.
    pub(super) fn begin(&mut self, network: Option<Network>, reports: &[Report]) {
        self.network = network;
        // Recorded before its command was let go.
        self.init = reports.iter().find_map(|report| report.child_pid);
        self.note(reports);
    }

    /// Ends a sandbox whose command must not start.
    pub(super) fn refuse(&mut self, reason: String) {
        self.ended.error = Some(reason);
        self.kill_everything();
    }

    pub(super) async fn run(mut self) -> Ended {
        if self.status.is_none() && self.listening.is_none() {
            // No sandbox program in between: the child is the command.
            self.harness = handle(self.child);
            self.ended.started = true;
            self.observe();
        }
        let mut kill_at: Option<Instant> = None;
        let how = loop {
            let looking = self.look_until.is_some() && may_look(self.listening.as_ref());
            let reports = async {
                match &mut self.status {
                    Some(pipe) if pipe.is_open() => pipe.next().await,
                    _ => std::future::pending().await,
                }
            };
            let answer = async {
                match &mut self.listening {
                    Some(Listening { pipe, answer: None, .. }) => pipe.answer().await,
                    _ => std::future::pending().await,
                }
            };

            tokio::select! {
                // Ends are looked at first, so that nothing else delays them.
                biased;
                _ = self.signals.child.recv() => {
                    if let Some(how) = self.reap() {
                        break how;
                    }
                }
                _ = self.signals.terminate.recv() => {
                    self.ended.stopped = true;
                    kill_at = kill_at.or_else(|| Some(self.ask_to_end()));
                }
                _ = self.signals.hangup.recv() => {
                    self.ended.hangup = true;
                    kill_at = kill_at.or_else(|| Some(self.ask_to_end()));
                }
                reports = reports => self.note(&reports),
                answer = answer => self.hear(answer),
                () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                    self.kill_everything();
                    // Again, should something have been started meanwhile.
                    kill_at = Some(Instant::now() + Duration::from_millis(100));
                }
                () = sleep(LOOK), if looking => self.look(),
            }
        };
        self.note_hangup().await;
        self.finish(how).await
    }

    /// A console that goes away ends the command too, and both may be noticed in one moment: then
    /// the command's own end, an exit code 0 at the end of its input, is not the news.
    async fn note_hangup(&mut self) {
        tokio::select! {
            biased;
            _ = self.signals.hangup.recv() => self.ended.hangup = true,
            () = std::future::ready(()) => {}
        }
    }

    /// Takes in every ended child, also adopted ones.
    fn reap(&mut self) -> Option<WaitStatus> {
        let mut ours = None;
        while let Ok(Some((pid, how))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            self.end.reaped(pid);
            if pid == self.child {
                ours = Some(how);
            }
        }
        ours
    }

    fn note(&mut self, reports: &[Report]) {
        for report in reports {
            if let Some(pid) = report.child_pid {
                if self.init.replace(pid) != Some(pid) {
                    record::sandbox_process(self.launch, pid);
                }
                self.look_until = Some(Instant::now() + APPEARANCE);
            }
            if report.exit_code.is_some() {
                self.exit_code = report.exit_code;
            }
        }
    }

    /// Takes in what the sandbox answered about itself; by now it is the command that runs, or nothing.
    fn hear(&mut self, answer: Answer) {
        let error = match &answer {
            Answer::Started(_) | Answer::None => None,
            Answer::Refused(record) => Some(format!(
                "the sandbox does not hold what it promises, so the command was not started: {}",
                record.complaint()
            )),
            Answer::NotConfined(reason) => Some(format!("the sandbox could not be made: {reason}")),
            Answer::NotExecuted(_, reason) => {
                Some(format!("{} ({reason})", super::not_executed(self.launch)))
            }
        };
        self.ended.error = self.ended.error.take().or(error);
        if let Some(listening) = &mut self.listening {
            listening.canaries = None;
            listening.answer = Some(answer);
            self.end.sweeper(listening.pipe.sweeper());
        }
        self.look();
    }

    /// Looks for the command below the sandbox's first process, and observes it once it runs.
    fn look(&mut self) {
        if self.status.is_none() && !self.observed && may_look(self.listening.as_ref()) {
            // What confined itself has become the command.
            self.harness = handle(self.child);
            self.ended.started = true;
            self.observe();
        }
        let (Some(init), Some(until)) = (self.init, self.look_until) else { return };
        if !may_look(self.listening.as_ref()) {
            return;
        }
        let late = Instant::now() >= until;
        let Some(pid) = observe::command_pid(self.child, init) else {
            if late {
                self.look_until = None;
            }
            return;
        };
        let runs = observe::runs_another_program(pid, self.child);
        if !runs && !late {
            return;
        }
        self.look_until = None;
        self.harness = handle(pid);
        self.ended.started |= runs;
        self.observe();
    }

    fn observe(&mut self) {
        let seen = self.harness.as_ref().map(|harness| {
            observe::look(self.launch, Sandboxed { program: self.child, command: harness.pid })
        });
        self.write_observation(seen.as_ref());
        self.observed = true;
    }

    fn write_observation(&self, seen: Option<&observe::Facts>) {
        let mut rows = observe::rows(&self.launch.plan, seen);
        if let Some(listening) = &self.listening {
            let record = listening.answer.as_ref().and_then(Answer::record);
            rows = observe::agree(rows, &listening.request, record);
        }
        rows = observe::with_caps(rows, &self.held);
        let observation = Observation {
            version: LaunchFile::VERSION,
            launch_id: self.launch.launch_id.clone(),
            at: record::now(),
            backend: self.launch.plan.backend,
            rows,
        };
        if let Err(error) = record::publish(&self.launch.observed, &observation) {
            super::say(&format!("failed to write what was observed: {error}"));
        }
    }

    /// Asks the command itself, not the sandbox program, whose end would kill all at once.
    fn ask_to_end(&mut self) -> Instant {
        if self.harness.is_none()
            && let Some(init) = self.init
        {
            self.harness = observe::command_pid(self.child, init).and_then(handle);
        }
        let asked = self
            .harness
            .as_ref()
            .is_some_and(|harness| pidfd_send_signal(&harness.handle, Signal::TERM).is_ok());
        if asked { Instant::now() + GRACE } else { Instant::now() }
    }

    fn kill_everything(&mut self) {
        // The first process of a pid namespace takes all others with it.
        for pid in self.init.into_iter().chain([self.child]) {
            kill(pid);
        }
        self.end.kill_all();
    }

    async fn finish(mut self, how: WaitStatus) -> Ended {
        // A console that is closed also ends its program by end of input: the kernel tells us first,
        // and the program's code then says nothing about it.
        tokio::select! {
            biased;
            _ = self.signals.hangup.recv() => self.ended.hangup = true,
            () = std::future::ready(()) => {}
        }
        if let Some(pipe) = &mut self.status {
            let reports = pipe.drain();
            self.note(&reports);
        }
        if let Some(Listening { pipe, answer: None, .. }) = &mut self.listening {
            let answer = pipe.drain();
            self.hear(answer);
        }
        // Reported of whatever the sandbox program ran, which is the command only after the answer.
        self.ended.started |= self.exit_code.is_some();
        self.ended.started &= may_look(self.listening.as_ref());
        let sandboxed = self.status.is_some();
        let code = how.exit_status().or(self.exit_code);
        match (how.terminating_signal(), code) {
            (Some(signal), _) => self.ended.signal = Some(signal),
            // The sandbox program reports signal n of the command as 128+n.
            (None, Some(code)) if sandboxed && code > 128 => self.ended.signal = Some(code - 128),
            (None, code) => self.ended.code = code,
        }
        if !self.ended.started {
            self.ended.code = None;
            self.ended.signal = None;
            if self.ended.error.is_some() {
                // The launch was refused; the end of the sandbox is no news.
            } else if self.ended.stopped || self.ended.hangup {
                self.ended.error = Some("ended on request before the command ran".to_owned());
            } else if let Some(signal) = how.terminating_signal() {
                self.ended.error = Some(format!(
                    "the sandbox program was killed by signal {signal} before the command was seen \
                     to run"
                ));
            }
        }
        if !self.observed {
            self.write_observation(None);
        }
        self.ended.left = self.end.leave_nothing_behind(&mut self.signals.child).await;
        if let Some(left) = &self.ended.left {
            let left: Vec<u32> = left.iter().map(|process| process.pid).collect();
            super::say(&format!("some of it would not end, even killed: {left:?}"));
        }
        if let Some(init) = self.init {
            record::sandbox_gone(self.launch, init);
        }
        self.ended
    }
}

/// Whether what runs inside is the command.
fn may_look(listening: Option<&Listening>) -> bool {
    listening.is_none_or(|listening| matches!(listening.answer, Some(Answer::Started(_))))
}

fn handle(pid: u32) -> Option<Harness> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    let handle = pidfd_open(raw, PidfdFlags::empty()).ok()?;
    Some(Harness { pid, handle })
}

pub(super) fn kill(pid: u32) {
    // Ours by descent, and not reaped yet, so the number cannot have been given away.
    if let Some(Harness { handle, .. }) = handle(pid) {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}
