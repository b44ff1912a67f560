//! The first program inside: it confines itself, asks itself what holds, and becomes the command.
//!
//! `_confine RULES REQUEST PIPE LIFE [r N | w N]… -- COMMAND…` with numbers of descriptors: the rules
//! and the questions in sealed memory, the pipe for the answers, the one that ends with the launcher,
//! and the granted paths, which the launcher has opened and checked. None of it can be reached by an
//! agent: the command is not there yet.
//!
//! `_confine trial [r PATH | w PATH]… -- COMMAND…` with the rules at the standard input is the same
//! without questions: the trial of the backend.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::apply::{Grant, restrict};
use super::rules::Rules;
use super::{since, sweeper};
use crate::attest::Asked;
use crate::launch::{REFUSED, close_inherited_on_exec};
use crate::{seccomp, sys};

/// The hidden command that runs [`inside`].
pub const COMMAND: &str = "_confine";
/// What stands before a path that can be read and executed.
pub(super) const READ: &str = "r";
/// What stands before a path that can be written too.
pub(super) const WRITE: &str = "w";
/// The form that asks nothing.
pub(super) const TRIAL: &str = "trial";
/// No rules are larger.
const LIMIT: u64 = 1024 * 1024;

/// Confines this process and becomes the command. Returns, with the status to exit with, only if it
/// does not.
///
/// Must be called before anything else is opened or started.
///
/// # Security
/// Whatever fails, the command does not run.
pub fn inside(arguments: &[OsString]) -> i32 {
    match arguments {
        [word, rest @ ..] if word == TRIAL => trial(rest),
        [rules, request, pipe, life, rest @ ..] => {
            if close_inherited_on_exec().is_err() {
                return REFUSED;
            }
            // Whoever started this finds no report in the pipe, and says so.
            let Some(mut asked) = Asked::open(request, pipe) else { return REFUSED };
            match confined(rules, life, rest, &mut asked) {
                Ok((program, arguments)) => asked.answer_and_become(program, arguments),
                Err(reason) => asked.not_confined(reason),
            }
        }
        _ => REFUSED,
    }
}

type Line<'a> = (&'a OsStr, &'a [OsString]);

fn confined<'a>(
    rules: &OsString,
    life: &OsString,
    rest: &'a [OsString],
    asked: &mut Asked,
) -> Result<Line<'a>, String> {
    let (grants, command) = split(rest)?;
    let rules = take(rules).ok_or("its rules are not there")?;
    let rules = read(File::from(rules))?;
    let life = take(life).ok_or("its life line is not there")?;
    let grants = grants
        .into_iter()
        .map(|(word, writable)| {
            let path = take(word).ok_or("a granted path is not there")?;
            Ok(Grant { path, writable })
        })
        .collect::<Result<Vec<_>, String>>()?;
    prepare()?;
    if rules.abi >= since::SCOPES {
        let sweeper = sweeper::start(life)?;
        asked.sweeper(sweeper).map_err(|error| format!("say what is to end it: {error}"))?;
    }
    confine(&rules, &grants)?;
    Ok(command)
}

fn trial(rest: &[OsString]) -> i32 {
    let tried = || -> Result<(), String> {
        let (paths, (program, arguments)) = split(rest)?;
        let rules = read(std::io::stdin().lock())?;
        let mut grants = Vec::new();
        for (path, writable) in paths {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            match openat(CWD, path, flags, Mode::empty()) {
                Ok(path) => grants.push(Grant { path, writable }),
                // What is gone is told by the launch.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(format!("{}: {errno}", path.display())),
            }
        }
        prepare()?;
        confine(&rules, &grants)?;
        Err(Command::new(program).args(arguments).exec().to_string())
    };
    let reason = tried().err().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "{reason}");
    REFUSED
}

/// A granted path, by its number or its name, and whether it can be written.
type Granted<'a> = (&'a OsString, bool);

/// The granted paths, each with whether it can be written, and the command.
fn split(words: &[OsString]) -> Result<(Vec<Granted<'_>>, Line<'_>), String> {
    let mut grants = Vec::new();
    let mut rest = words;
    loop {
        match rest {
            [separator, program, arguments @ ..] if separator == "--" => {
                return Ok((grants, (program, arguments)));
            }
            [mode, path, tail @ ..] if mode == READ || mode == WRITE => {
                grants.push((path, mode == WRITE));
                rest = tail;
            }
            _ => return Err("its command line is not one".to_owned()),
        }
    }
}

fn take(number: &OsString) -> Option<OwnedFd> {
    sys::take(number.to_str()?.parse::<i32>().ok().filter(|number| *number > 2)?)
}

fn read(source: impl std::io::Read) -> Result<Rules, String> {
    let mut text = Vec::new();
    source.take(LIMIT).read_to_end(&mut text).map_err(|error| error.to_string())?;
    let rules: Rules =
        serde_json::from_slice(&text).map_err(|error| format!("its rules are none: {error}"))?;
    if rules.version == Rules::VERSION {
        Ok(rules)
    } else {
        Err(format!("version {} of its rules is not known here", rules.version))
    }
}

fn failed(what: &'static str) -> impl Fn(Errno) -> String {
    move |errno| format!("{what}: {errno}")
}

fn prepare() -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("end with the launcher"))?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
        .map_err(failed("switch core dumps off"))?;
    drop_capabilities().map_err(failed("drop capabilities"))
}

fn confine(rules: &Rules, grants: &[Grant]) -> Result<(), String> {
    restrict(rules, grants).map_err(|error| error.to_string())?;
    rustix::process::chdir(rules.cwd.as_str())
        .map_err(|errno| format!("change to {}: {errno}", rules.cwd))?;
    for directory in &rules.make {
        // With the rights of the command: what an agent put into the way harms nobody else, and a
        // program that needs the directory says so.
        let _ = rustix::fs::mkdir(directory.as_str(), Mode::RWXU);
    }
    for profile in seccomp::confined_profiles(rules.network) {
        seccomp::install(profile).map_err(|error| format!("install a filter: {error}"))?;
    }
    Ok(())
}

/// An ordinary user holds none, but a login may hand some on.
fn drop_capabilities() -> rustix::io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
}
