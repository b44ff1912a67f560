//! Attempts of the escape matrix (`escape/matrix`), by what they attack.

mod files;
mod network;
mod system;

use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::io::{Error, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Attempt, text};

/// One attempt takes no longer.
const PATIENCE: Duration = Duration::from_secs(8);

unsafe extern "C" {
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn openat(directory: c_int, path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn read(fd: c_int, buffer: *mut c_void, count: usize) -> isize;
}

/// Makes every attempt in a process of its own, so that one that is killed takes no other along, and
/// writes an answer for each into `file`.
pub(crate) fn each(file: &str, attempts: &[String]) {
    let mut answers = String::new();
    for attempt in attempts.split(|word| word == "::") {
        answers.push_str(&apart(attempt).replace('\n', " "));
        answers.push('\n');
        // After each one, so that an attempt that ends this process shows which it was.
        std::fs::File::create(file).unwrap().write_all(answers.as_bytes()).unwrap();
    }
}

fn apart(attempt: &[String]) -> String {
    let own = std::env::args().next().unwrap();
    let started =
        Command::new(own).args(attempt).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return format!("error {}", text(&error)),
    };
    let until = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(200);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > until => {
                let _ = child.kill();
                let _ = child.wait();
                return "error timed out".to_owned();
            }
            None => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    };
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("killed {signal}");
    }
    let mut answer = [0; 16384];
    let count = child.stdout.take().unwrap().read(&mut answer).unwrap_or(0);
    String::from_utf8_lossy(&answer[..count]).trim_end_matches('\n').to_owned()
}

/// What a module answers to a word that it does not know.
const UNKNOWN: &str = "unknown attempt";

pub(crate) fn run(attempt: &[&str]) -> Attempt {
    [files::run, network::run, system::run]
        .iter()
        .map(|module| module(attempt))
        .find(|result| *result != Err(UNKNOWN.to_owned()))
        .unwrap_or_else(|| Err(format!("{UNKNOWN} {attempt:?}")))
}

/// The first success of several, else the last failure.
fn any<T>(words: &[&str], mut attempt: impl FnMut(&str) -> Result<T, String>) -> Result<T, String> {
    let mut last = Err("nothing to try".to_owned());
    for word in words {
        last = attempt(word);
        if last.is_ok() {
            break;
        }
    }
    last
}

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn answer(result: c_long) -> Attempt {
    if result < 0 { Err(text(&Error::last_os_error())) } else { Ok(result.to_string()) }
}
