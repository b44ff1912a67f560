//! The hook socket of a runner (02 §7.1, §7.6): what the agent program tells through its hook, and the
//! answer to a permission question that nobody may be there to answer.
//!
//! The agent can reach this socket and say what it likes. So it serves two requests and nothing else,
//! both bounded in size, time and number; it never allows anything, types nothing, and what it hears
//! is a hint.

mod client;
mod wire;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use fleet_core::harness::hooks::{Attendance, Decision, HookEvent, HookInput, HookSeen, decide};
use fleet_core::permissions::Unattended;
use fleet_core::port::{Clock, Tmux};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, Semaphore, watch};

pub use client::run_hook;
pub use wire::{HookAnswer, HookRequest, MAX_FRAME, Verdict};

use super::control::{Server, listen};
use super::events::EventLog;
use super::log::RunnerLog;

/// A hook must send its request within this time.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// tmux must say within this time who is attached.
const LOOK_TIME: Duration = Duration::from_secs(3);
/// Connections served at the same time.
const MAX_CONNECTIONS: usize = 8;
/// After each connection the next one waits this long: an agent in a loop costs little.
const PACE: Duration = Duration::from_millis(5);
/// Lines in the runner's log a minute; the event log has them all. Else an agent could push out of
/// the log what happened before.
const LINES_A_MINUTE: u32 = 30;

/// Where a runner keeps what hooks said, and decides about questions.
#[derive(Debug)]
pub struct HookDesk {
    console: Arc<dyn Tmux>,
    clock: Arc<dyn Clock>,
    events: EventLog,
    log: RunnerLog,
    unattended: watch::Sender<Unattended>,
    seen: watch::Sender<Option<HookSeen>>,
    // Also held while deciding: one look at tmux at a time.
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    minute: u64,
    used: u32,
}

impl HookDesk {
    /// A desk for the console of one role. Until a launch says otherwise, questions are denied.
    pub fn new(
        console: Arc<dyn Tmux>,
        clock: Arc<dyn Clock>,
        events: EventLog,
        log: RunnerLog,
    ) -> Self {
        Self {
            console,
            clock,
            events,
            log,
            unattended: watch::channel(Unattended::Deny).0,
            seen: watch::channel(None).0,
            lines: Mutex::default(),
        }
    }

    /// A launch begins: what is done with its questions. What the last one said is forgotten.
    pub fn launch(&self, unattended: Unattended) {
        self.unattended.send_replace(unattended);
        self.seen.send_replace(None);
    }

    /// Notes something that happened to the role in its event log. Must hold no secret.
    pub fn record<'a>(
        &self,
        kind: &str,
        members: impl IntoIterator<Item = (&'static str, Option<&'a str>)>,
    ) {
        self.events.append(self.clock.now(), kind, members);
    }

    /// What the program of this launch told last.
    pub fn last(&self) -> Option<HookSeen> {
        self.seen.borrow().clone()
    }

    /// Tells of each further event.
    pub fn subscribe(&self) -> watch::Receiver<Option<HookSeen>> {
        self.seen.subscribe()
    }

    fn saw(&self, event: HookEvent, input: HookInput, asked: bool) {
        let at = self.clock.now();
        if event == HookEvent::StopFailure {
            self.events.append(at, "error", [("error", input.error.as_deref())]);
        }
        self.seen.send_replace(Some(HookSeen { event, at, input, asked }));
    }

    async fn attendance(&self) -> Attendance {
        match tokio::time::timeout(LOOK_TIME, self.console.clients()).await {
            Ok(Ok(clients)) if clients.is_empty() => Attendance::Nobody,
            Ok(Ok(_)) => Attendance::Attached,
            Ok(Err(_)) | Err(_) => Attendance::Unknown,
        }
    }

    /// Decides about a question and records the decision.
    async fn question(&self, input: HookInput) -> Decision {
        let mut lines = self.lines.lock().await;
        let unattended = *self.unattended.borrow();
        let decision = decide(unattended, self.attendance().await);
        let (word, reason) = match decision {
            Decision::Ask => ("asked", None),
            Decision::Deny(reason) => ("denied", Some(reason.as_str())),
        };
        let (at, tool) = (self.clock.now(), input.tool.as_deref());
        self.events.append(
            at,
            "permission",
            [
                ("decision", Some(word)),
                ("tool", tool),
                ("policy", Some(unattended.as_str())),
                ("reason", reason),
            ],
        );
        if lines.allow(at.as_millis() / 60_000) {
            let tool = tool.unwrap_or("a tool");
            let why = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            self.log.info(&format!(
                "permission for {tool}: {word}{why}, unattended {}",
                unattended.as_str()
            ));
        }
        self.saw(HookEvent::PermissionRequest, input, decision == Decision::Ask);
        decision
    }
}

impl Lines {
    fn allow(&mut self, minute: u64) -> bool {
        if self.minute != minute {
            *self = Self { minute, used: 0 };
        }
        self.used = self.used.saturating_add(1);
        self.used <= LINES_A_MINUTE
    }
}

/// Serves the hook socket until the result is dropped. The caller holds the runner lock.
///
/// # Errors
/// The socket cannot be bound; then questions are denied by the hook itself.
pub fn serve(socket: &Utf8Path, uid: u32, desk: Arc<HookDesk>) -> io::Result<Server> {
    listen(socket, |listener| accept(listener, uid, desk))
}

async fn accept(listener: UnixListener, uid: u32, desk: Arc<HookDesk>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: let others finish first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == uid) {
            continue;
        }
        let desk = desk.clone();
        tokio::spawn(async move {
            // One that went away needs no answer.
            drop(serve_one(stream, &desk).await);
            drop(slot);
        });
        tokio::time::sleep(PACE).await;
    }
}

/// One request, one answer.
async fn serve_one(stream: UnixStream, desk: &HookDesk) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let limit = u64::try_from(MAX_FRAME).unwrap_or(u64::MAX);
    let mut line = Vec::new();
    let mut reader = BufReader::new(read.take(limit));
    let got = tokio::time::timeout(REQUEST_TIME, reader.read_until(b'\n', &mut line)).await;
    if !matches!(got, Ok(Ok(_))) || line.pop() != Some(b'\n') {
        return Ok(());
    }
    let answer = match wire::parse(&line) {
        Ok(HookRequest::Attended { input }) => {
            HookAnswer::decided(desk.question(input.checked()).await)
        }
        Ok(HookRequest::Event { event, input }) => {
            desk.saw(event, input.checked(), false);
            HookAnswer::heard()
        }
        Err(_) => HookAnswer::refused(),
    };
    let mut bytes = serde_json::to_vec(&answer)?;
    bytes.push(b'\n');
    tokio::time::timeout(REQUEST_TIME, write.write_all(&bytes)).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_of_questions_cannot_fill_the_log() {
        let mut lines = Lines::default();
        assert_eq!((0..1000).filter(|_| lines.allow(7)).count(), 30);
        assert!(lines.allow(8), "the next minute has lines again");
    }
}
