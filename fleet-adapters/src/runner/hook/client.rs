//! The hook itself: run by the agent program, in its sandbox, many times a turn. Blocking and small:
//! no runtime, no configuration.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::harness::hooks::{
    Decision, DenyReason, HookEvent, HookInput, MAX_INPUT, deny_output,
};

use super::wire::{HookAnswer, HookRequest, request_line};
use crate::runner::control::address;

/// Reading the input and reaching the runner together.
const REACH: Duration = Duration::from_secs(2);
/// The runner's answer to a question.
const VERDICT: Duration = Duration::from_secs(5);
/// An answer is one short line.
const MAX_ANSWER: u64 = 4 * 1024;

/// Runs a hook to its end: tells the runner at `socket` what happened, or asks it. Gives what is to be
/// printed, if anything.
///
/// Never takes longer than 7 seconds. A question that the runner does not answer is denied; any other
/// event that does not reach it is lost, which harms nothing.
pub fn run_hook(
    socket: &Utf8Path,
    event: HookEvent,
    input: impl Read + Send + 'static,
) -> Option<String> {
    let question = event == HookEvent::PermissionRequest;
    let (done, result) = mpsc::sync_channel(1);
    let socket = socket.to_owned();
    // A blocking read, connect or write in there has no limit of its own; this process ends without it.
    std::thread::spawn(move || {
        let _receiver_gone = done.send(exchange(&socket, event, input));
    });
    let limit = if question { REACH + VERDICT } else { REACH };
    let answer = result.recv_timeout(limit).ok().and_then(Result::ok);
    if !question {
        return None;
    }
    match answer.map_or(Decision::Deny(DenyReason::NoRunner), HookAnswer::decision) {
        Decision::Ask => None,
        Decision::Deny(reason) => Some(deny_output(&reason.message())),
    }
}

fn exchange(
    socket: &Utf8PathBuf,
    event: HookEvent,
    mut source: impl Read,
) -> io::Result<HookAnswer> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_INPUT).unwrap_or(u64::MAX);
    (&mut source).take(limit + 1).read_to_end(&mut bytes)?;
    // Its writer is not to fail because of us.
    io::copy(&mut source, &mut io::sink())?;
    let input = HookInput::parse(&bytes);
    let request = match event {
        HookEvent::PermissionRequest => HookRequest::Attended { input },
        event => HookRequest::Event { event, input },
    };
    let address = address(socket)?;
    let mut stream = UnixStream::connect(&address.path)?;
    stream.set_write_timeout(Some(REACH))?;
    stream.set_read_timeout(Some(VERDICT))?;
    stream.write_all(&request_line(request))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
