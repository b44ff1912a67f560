//! Makes the descriptors that a plan asks for, and checks every mount source once more.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use camino::Utf8Path;
use fleet_core::attest::AttestRequest;
use fleet_core::launch::{DescriptorRequest, LaunchFile, PlanWord};
use fleet_core::port::{FileIdentity, FileKind};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, openat};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};

use super::Refusal;
use super::prepare::Prepared;
use crate::attest::launcher::{Canaries, complete};
use crate::path_probe::open_exact;
use crate::seccomp;

/// `bwrap` has less than a tenth of this.
const LARGEST_PROGRAM: u64 = 64 * 1024 * 1024;

/// The open descriptors of a plan, in the order of its requests.
pub(super) struct Fulfilled {
    passed: Vec<OwnedFd>,
    status: Option<OwnedFd>,
    release: Option<OwnedFd>,
    asked: Option<(AttestRequest, Canaries)>,
    answers: Option<OwnedFd>,
    life: Vec<OwnedFd>,
}

/// What a sandbox is asked about itself, and our end of the pipe on which it answers.
pub(super) struct Asked {
    pub(super) request: AttestRequest,
    pub(super) canaries: Canaries,
    pub(super) answers: OwnedFd,
}

impl Fulfilled {
    /// The number of a request's descriptor. [`fulfil`] has checked that it exists.
    pub(super) fn number(&self, index: usize) -> String {
        self.passed.get(index).map_or_else(|| "-1".to_owned(), |fd| fd.as_raw_fd().to_string())
    }

    /// The path by which a program reaches a request's descriptor.
    pub(super) fn path(&self, index: usize) -> String {
        format!("/proc/self/fd/{}", self.number(index))
    }

    /// Lets the descriptors, and no others, survive the next exec.
    pub(super) fn pass_on(&self) -> std::io::Result<()> {
        for fd in &self.passed {
            fcntl_setfd(fd, FdFlags::empty())?;
        }
        Ok(())
    }

    /// Our end of the status pipe.
    pub(super) fn take_status(&mut self) -> Option<OwnedFd> {
        self.status.take()
    }

    /// Our end of the pipe on which the sandbox program waits; a byte lets it go on.
    pub(super) fn take_release(&mut self) -> Option<OwnedFd> {
        self.release.take()
    }

    /// Our ends of the life lines, to be held until the launch has ended.
    pub(super) fn take_life(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.life)
    }

    /// What the sandbox is asked, if it is asked anything.
    pub(super) fn take_asked(&mut self) -> Option<Asked> {
        let ((request, canaries), answers) = self.asked.take().zip(self.answers.take())?;
        Some(Asked { request, canaries, answers })
    }
}

pub(super) fn fulfil(launch: &LaunchFile, prepared: &Prepared) -> Result<Fulfilled, Refusal> {
    let plan = &launch.plan;
    let known = plan.argv.iter().all(|word| match word {
        PlanWord::Text(_) | PlanWord::Scratch { .. } | PlanWord::Tty => true,
        PlanWord::Descriptor(index) | PlanWord::DescriptorPath(index) => {
            *index < plan.descriptors.len()
        }
    });
    if !known {
        return Err(Refusal::Plan { why: "a word names no descriptor".to_owned() });
    }
    for check in &plan.checks {
        open_source(&check.path, check.identity, check.file)?;
    }
    let (mut status, mut release, mut asked, mut answers) = (None, None, None, None);
    let mut life = Vec::new();
    let mut passed = Vec::with_capacity(plan.descriptors.len());
    for request in &plan.descriptors {
        passed.push(match request {
            DescriptorRequest::Data { label, content } => in_memory(label, content.as_bytes())?,
            DescriptorRequest::SeccompFilter { profile } => {
                let bytes = seccomp::filter(profile)
                    .map_err(|error| Refusal::Plan { why: error.to_string() })?;
                in_memory(profile, &bytes)?
            }
            DescriptorRequest::Source { path, identity, file } => {
                open_source(path, *identity, *file)?
            }
            DescriptorRequest::Prepared { index } => prepared
                .get(*index)
                .ok_or_else(|| Refusal::Plan { why: "a directory was not prepared".to_owned() })?
                .try_clone()
                .map_err(Refusal::system("duplicate a descriptor"))?,
            DescriptorRequest::OwnProgram => {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                openat(CWD, "/proc/self/exe", flags, Mode::empty())
                    .map_err(|errno| Refusal::system("open this program")(errno.into()))?
            }
            DescriptorRequest::AttestRequest { request } => {
                let (request, canaries) = complete(launch, request);
                let text = serde_json::to_vec(&request)
                    .map_err(|error| Refusal::Plan { why: error.to_string() })?;
                if asked.replace((request, canaries)).is_some() {
                    return Err(Refusal::Plan { why: "two sets of questions".to_owned() });
                }
                in_memory("attest", &text)?
            }
            DescriptorRequest::AttestPipe => {
                let (read, write) = pipe()?;
                if answers.replace(read).is_some() {
                    return Err(Refusal::Plan { why: "two pipes for answers".to_owned() });
                }
                write
            }
            DescriptorRequest::StatusPipe => {
                let (read, write) = pipe()?;
                if status.replace(read).is_some() {
                    return Err(Refusal::Plan { why: "two status pipes".to_owned() });
                }
                write
            }
            DescriptorRequest::ReleasePipe => {
                let (read, write) = pipe()?;
                if release.replace(write).is_some() {
                    return Err(Refusal::Plan { why: "two release pipes".to_owned() });
                }
                read
            }
            DescriptorRequest::Environment => {
                let text = serde_json::to_vec(&launch.env)
                    .map_err(|error| Refusal::Plan { why: error.to_string() })?;
                in_memory("environment", &text)?
            }
            DescriptorRequest::LifeLine => {
                let (read, write) = pipe()?;
                life.push(write);
                read
            }
        });
    }
    if asked.is_some() != answers.is_some() {
        return Err(Refusal::Plan { why: "questions and answers belong together".to_owned() });
    }
    Ok(Fulfilled { passed, status, release, asked, answers, life })
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Refusal> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Refusal::system("make a pipe")(errno.into()))
}

/// Opens a source without following a link anywhere, and only if it still is what was resolved.
fn open_source(
    path: &Utf8Path,
    identity: FileIdentity,
    kind: FileKind,
) -> Result<OwnedFd, Refusal> {
    let changed = |why: &str| Refusal::Changed { path: path.to_owned(), why: why.to_owned() };
    let opened = open_exact(path).map_err(|errno| match errno {
        Errno::LOOP => changed("it, or a directory above it, is a symbolic link now"),
        Errno::NOENT | Errno::NOTDIR => changed("it is gone"),
        other => changed(&other.to_string()),
    })?;
    if opened.facts.identity != identity {
        return Err(changed("another object is there now"));
    }
    if opened.facts.kind != kind {
        return Err(changed("it is of another type now"));
    }
    Ok(opened.fd)
}

/// A sealed copy of a sandbox program that belongs to this user; `None` if it belongs to another, or
/// is a script around one.
///
/// The first process of a sandbox is the sandbox program, so `/proc/1/exe` inside leads to its file on
/// the host, past every mount: whoever owns it could change its mode there, root too. A copy in
/// memory is all that is found then.
pub(super) fn own_program(program: &str) -> Result<Option<OwnedFd>, Refusal> {
    let refuse = Refusal::system("copy the sandbox program");
    let file = File::open(program).map_err(&refuse)?;
    let about = rustix::fs::fstat(&file).map_err(|errno| refuse(errno.into()))?;
    if about.st_uid != rustix::process::getuid().as_raw() {
        return Ok(None);
    }
    let mut content = Vec::new();
    file.take(LARGEST_PROGRAM).read_to_end(&mut content).map_err(&refuse)?;
    if !content.starts_with(b"\x7fELF") {
        // A script cannot be run by its descriptor, and it is not what `/proc/1/exe` leads to.
        return Ok(None);
    }
    let copy = in_memory("bwrap", &content)?;
    // A file that somebody has open for writing cannot be run, sealed or not.
    let again = File::open(format!("/proc/self/fd/{}", copy.as_raw_fd())).map_err(&refuse)?;
    Ok(Some(again.into()))
}

fn in_memory(label: &str, content: &[u8]) -> Result<OwnedFd, Refusal> {
    let make = || -> std::io::Result<OwnedFd> {
        let mut file =
            File::from(memfd_create(label, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.write_all(content)?;
        file.rewind()?;
        fcntl_add_seals(
            &file,
            SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
        )?;
        Ok(file.into())
    };
    make().map_err(Refusal::system("make an in-memory file"))
}
