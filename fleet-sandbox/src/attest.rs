//! Self-attestation: the sandbox is asked about itself, from inside, before its command starts.
//!
//! The launcher hands two descriptors into the sandbox: the questions, in sealed memory, and the write
//! end of a pipe. The first program inside is this one, by a third descriptor, so nothing has to be
//! mounted for it. It tries what must not work, writes down what it found, and becomes the command by
//! exec; all three descriptors are closed by that. The command is not there yet when the answers are
//! given, and cannot give any itself.
//!
//! `request` makes the questions from a policy, `checks` answers them, `launcher` is the other side:
//! what only it can fill in, and its end of the pipe. No part of it knows a backend but the function
//! in `request` that is named after one.
//! Tests: `shim/` (each flag dropped), `integration/attest.rs`, `escape/attest.rs`.

mod checks;
pub(crate) mod launcher;
pub mod request;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use fleet_core::attest::{AttestCheck, AttestRecord, AttestReport, AttestRequest, Failure};

use crate::launch::{REFUSED, close_inherited_on_exec};
use crate::sys;

/// The hidden command that runs [`inside`].
pub const COMMAND: &str = "_attest";
/// No request is larger.
const LIMIT: u64 = 4 * 1024 * 1024;
/// Status of a shell for a program that it cannot execute.
const NOT_EXECUTED: i32 = 127;

/// Answers every question, about the process that calls it and what it can reach.
///
/// Changes nothing, also where a protection is missing: what is tried is undone by being closed. Needs
/// `/proc`; what cannot be looked at is a no. Blocking; some microseconds a question.
pub fn run(request: &AttestRequest) -> AttestRecord {
    let facts = checks::Facts::gather(request);
    AttestRecord::of(request.checks.iter().map(|AttestCheck { item, probe }| {
        let failure =
            checks::check(probe, &facts).err().map(|saw| Failure { check: probe.to_string(), saw });
        (*item, failure)
    }))
}

/// The first program inside a sandbox: `_attest REQUEST PIPE COMMAND…`, with the numbers of two
/// descriptors. Marks all descriptors but the three standard ones so that the command gets none,
/// reports, and becomes the command. Returns, with the status to exit with, only if it does not:
/// [`REFUSED`] when the request is strict and an answer is no, or when it cannot be answered at all.
///
/// Must be called before anything else is opened or started.
pub fn inside(arguments: &[OsString]) -> i32 {
    let [request, pipe, program, arguments @ ..] = arguments else { return REFUSED };
    if close_inherited_on_exec().is_err() {
        return REFUSED;
    }
    // Whoever started this finds no report in the pipe, and says so.
    let Some(mut asked) = Asked::open(request, pipe) else { return REFUSED };
    asked.answer_and_become(program, arguments)
}

/// What the first program was asked, and where it answers.
pub(crate) struct Asked {
    request: AttestRequest,
    pipe: File,
}

impl Asked {
    /// From the numbers of two descriptors, which are marked already. `None` if they are no such.
    pub(crate) fn open(request: &OsString, pipe: &OsString) -> Option<Self> {
        let number =
            |text: &OsString| text.to_str()?.parse::<i32>().ok().filter(|number| *number > 2);
        let (request, pipe) = (number(request)?, number(pipe)?);
        if request == pipe {
            return None;
        }
        let (request, pipe) = (sys::take(request)?, sys::take(pipe)?);
        let mut text = Vec::new();
        File::from(request).take(LIMIT).read_to_end(&mut text).ok()?;
        let request: AttestRequest = serde_json::from_slice(&text).ok()?;
        let known = request.version == AttestRequest::VERSION;
        known.then(|| Self { request, pipe: File::from(pipe) })
    }

    /// Answers and becomes the command; the status to exit with if that is not to be.
    pub(crate) fn answer_and_become(&mut self, program: &OsStr, arguments: &[OsString]) -> i32 {
        let record = run(&self.request);
        let refused = self.request.strict && !record.holds();
        if self.report(&AttestReport::Record { record, refused }).is_err() || refused {
            return REFUSED;
        }
        let error = Command::new(program).args(arguments).exec();
        let _ = self.report(&AttestReport::NotExecuted { reason: error.to_string() });
        NOT_EXECUTED
    }

    /// Says which process ends the others.
    pub(crate) fn sweeper(&mut self, pid: u32) -> std::io::Result<()> {
        self.report(&AttestReport::Sweeper { pid })
    }

    /// Says why there is nothing to answer.
    pub(crate) fn not_confined(&mut self, reason: String) -> i32 {
        let _ = self.report(&AttestReport::NotConfined { reason });
        REFUSED
    }

    fn report(&mut self, report: &AttestReport) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        self.pipe.write_all(&line)
    }
}
