//! The launcher's side: what only it can know of the host, and its end of the pipe.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use fleet_core::attest::{AttestRecord, AttestReport, AttestRequest, Probe};
use fleet_core::launch::LaunchFile;

use crate::launch::pipe::{ReadPipe, State};

/// Sockets of the host that the sandbox tries to reach. Held until it has answered.
#[derive(Debug, Default)]
pub(crate) struct Canaries {
    port: Option<TcpListener>,
    socket: Option<UnixListener>,
}

/// A request with what the launcher knows, and what it opened for it. A socket that it cannot open is
/// not asked about: there is nothing to be reached then.
pub(crate) fn complete(launch: &LaunchFile, request: &AttestRequest) -> (AttestRequest, Canaries) {
    let mut request = request.clone();
    let mut canaries = Canaries::default();
    request.checks.retain_mut(|check| match &mut check.probe {
        Probe::Environment { names } => {
            names.extend(launch.env.0.keys().cloned());
            names.sort();
            names.dedup();
            true
        }
        Probe::HostPort { port } => {
            canaries.port = TcpListener::bind("127.0.0.1:0").ok();
            let bound = canaries.port.as_ref().and_then(|socket| socket.local_addr().ok());
            bound.map(|at| *port = at.port()).is_some()
        }
        Probe::HostSocket { name } => {
            *name = format!("ours-fleet-{}-{}", std::process::id(), launch.launch_id);
            canaries.socket = SocketAddr::from_abstract_name(&*name)
                .and_then(|address| UnixListener::bind_addr(&address))
                .ok();
            canaries.socket.is_some()
        }
        // Zero, which no namespace has, makes the answer a no.
        Probe::OwnNamespace { name, host } => {
            *host =
                rustix::fs::stat(format!("/proc/self/ns/{name}")).map_or(0, |found| found.st_ino);
            true
        }
        _ => true,
    });
    (request, canaries)
}

/// What arrived from inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The command runs.
    Started(AttestRecord),
    /// It was not started because of the answers.
    Refused(AttestRecord),
    /// It could not be executed.
    NotExecuted(AttestRecord, String),
    /// The program inside could not make the sandbox.
    NotConfined(String),
    /// The pipe ended without an answer: nothing ran.
    None,
}

impl Answer {
    /// What was answered, if anything was.
    pub(crate) fn record(&self) -> Option<&AttestRecord> {
        match self {
            Self::Started(record) | Self::Refused(record) | Self::NotExecuted(record, _) => {
                Some(record)
            }
            Self::NotConfined(_) | Self::None => None,
        }
    }

    fn read(text: &[u8]) -> Self {
        let mut answer = Self::None;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for line in lines.skip(usize::from(sweeper(text).is_some())) {
            answer = match (serde_json::from_slice(line), answer) {
                (Ok(AttestReport::Record { record, refused: true }), Self::None) => {
                    Self::Refused(record)
                }
                (Ok(AttestReport::Record { record, refused: false }), Self::None) => {
                    Self::Started(record)
                }
                (Ok(AttestReport::NotExecuted { reason }), Self::Started(record)) => {
                    Self::NotExecuted(record, reason)
                }
                (Ok(AttestReport::NotConfined { reason }), Self::None) => Self::NotConfined(reason),
                // Whatever else it is, it is none of the orders in which reports are written.
                _ => return Self::None,
            };
        }
        answer
    }
}

/// The process that ends the others, which the first line names where there is one.
fn sweeper(text: &[u8]) -> Option<u32> {
    let first = text.split(|byte| *byte == b'\n').next()?;
    match serde_json::from_slice(first) {
        Ok(AttestReport::Sweeper { pid }) => Some(pid),
        _ => None,
    }
}

/// More than this is no answer.
const LIMIT: usize = 4 * 1024 * 1024;

/// Our end of the pipe. It ends when the program inside becomes the command or ends.
#[derive(Debug)]
pub(crate) struct AnswerPipe(ReadPipe);

impl AnswerPipe {
    /// Needs a runtime with I/O.
    pub(crate) fn new(end: OwnedFd) -> std::io::Result<Self> {
        ReadPipe::new(end, LIMIT).map(Self)
    }

    /// Waits for the end of the pipe.
    ///
    /// # Cancel safety
    /// What has been read is kept.
    pub(crate) async fn answer(&mut self) -> Answer {
        while self.0.state == State::Open {
            self.0.more().await;
        }
        self.so_far()
    }

    /// As [`Self::answer`] when everything that held the other end is gone: does not wait.
    pub(crate) fn drain(&mut self) -> Answer {
        self.0.drain();
        self.so_far()
    }

    /// What ends everything of the sandbox, as far as that was said by now. It was said before the
    /// command was there.
    pub(crate) fn sweeper(&self) -> Option<u32> {
        sweeper(&self.0.text)
    }

    fn so_far(&self) -> Answer {
        if self.0.state == State::Ended { Answer::read(&self.0.text) } else { Answer::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_reports_in_their_order_are_an_answer() {
        let record = AttestRecord::of([]);
        let line = |report: &AttestReport| serde_json::to_string(report).expect("JSON") + "\n";
        let answered = |refused| line(&AttestReport::Record { record: record.clone(), refused });
        let failed = line(&AttestReport::NotExecuted { reason: "r".to_owned() });
        let unmade = line(&AttestReport::NotConfined { reason: "r".to_owned() });
        let swept = line(&AttestReport::Sweeper { pid: 7 });
        assert_eq!((sweeper(swept.as_bytes()), sweeper(unmade.as_bytes())), (Some(7), None));
        for (text, answer) in [
            (swept.clone() + &answered(false), Answer::Started(record.clone())),
            (swept.clone() + &unmade, Answer::NotConfined("r".to_owned())),
            (swept.clone(), Answer::None),
            (swept.clone() + &swept + &answered(false), Answer::None),
            (answered(false) + &swept, Answer::None),
            (answered(false), Answer::Started(record.clone())),
            (answered(true), Answer::Refused(record.clone())),
            (answered(false) + &failed, Answer::NotExecuted(record.clone(), "r".to_owned())),
            (unmade.clone(), Answer::NotConfined("r".to_owned())),
            (answered(false) + &unmade, Answer::None),
            (unmade.clone() + &answered(false), Answer::None),
            (String::new(), Answer::None),
            (failed.clone(), Answer::None),
            (answered(true) + &failed, Answer::None),
            (answered(false) + &answered(false), Answer::None),
            (answered(false) + "{\"kind\":\"rec", Answer::None),
        ] {
            assert_eq!(Answer::read(text.as_bytes()), answer, "{text}");
        }
    }
}
