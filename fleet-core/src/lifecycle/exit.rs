use serde::{Deserialize, Serialize};

use crate::id::LaunchId;
use crate::launch::ExitRecord;
use crate::limits::OutOfMemory;

/// What is known of an end (02 §3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitClass {
    /// The program returned 0.
    Clean,
    /// The program returned another code.
    ProgramExit,
    /// A signal killed the program.
    Signal,
    /// The kernel killed the program for want of memory.
    OutOfMemory,
    /// The console was closed around it; says nothing against the agent.
    SessionDestroyed,
    /// The program never ran.
    CouldNotStart,
    /// Our own stop ended it.
    Stopped,
    /// The runner before this one died without an orderly stop.
    Abrupt,
    /// The host was restarted.
    HostRestarted,
    /// Nothing was observed.
    Unknown,
}

impl ExitClass {
    /// Plain words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Clean => "ended normally",
            Self::ProgramExit => "ended with an error code",
            Self::Signal => "was killed by a signal",
            Self::OutOfMemory => "was killed",
            Self::SessionDestroyed => "lost its console",
            Self::CouldNotStart => "could not start",
            Self::Stopped => "was stopped",
            Self::Abrupt => "runner died without a stop",
            Self::HostRestarted => "host was restarted",
            Self::Unknown => "ended for an unknown reason",
        }
    }
}

/// How a launch ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Termination {
    /// The class.
    pub class: ExitClass,
    /// What was seen.
    pub detail: String,
}

impl Termination {
    fn new(class: ExitClass, detail: impl Into<String>) -> Self {
        Self { class, detail: detail.into() }
    }
}

/// Names of the signals a person is likely to meet.
fn signal_name(signal: i32) -> String {
    const NAMES: &[(i32, &str)] = &[
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
        (24, "SIGXCPU"),
        (25, "SIGXFSZ"),
        (31, "SIGSYS"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

/// Judges an end by the exit record that the launcher left, if any.
///
/// `console_present` tells whether the console still exists. Garbage, a half-written record or one
/// of another launch is [`ExitClass::Unknown`], never a crash.
pub fn classify(record: Option<&[u8]>, launch: &LaunchId, console_present: bool) -> Termination {
    let Some(bytes) = record else {
        return if console_present {
            Termination::new(ExitClass::Unknown, "no exit record, console still there")
        } else {
            Termination::new(ExitClass::SessionDestroyed, "no exit record, console gone")
        };
    };
    let Ok(record) = serde_json::from_slice::<ExitRecord>(bytes) else {
        return Termination::new(ExitClass::Unknown, "unreadable exit record");
    };
    if record.launch_id != *launch {
        return Termination::new(ExitClass::Unknown, "exit record of another launch");
    }
    if !record.started {
        let reason = record.error.unwrap_or_else(|| "no reason recorded".to_owned());
        return Termination::new(ExitClass::CouldNotStart, reason);
    }
    if record.hangup {
        return Termination::new(ExitClass::SessionDestroyed, "the console was closed");
    }
    if record.stopped {
        return Termination::new(ExitClass::Stopped, "ended on request");
    }
    let oom = record.out_of_memory.filter(|oom| oom.kills > 0);
    if let (Some(SIGKILL), Some(OutOfMemory { cap, .. })) = (record.signal, oom) {
        let detail = format!("out of memory (cap {})", binary(cap));
        return Termination::new(ExitClass::OutOfMemory, detail);
    }
    let (class, detail) = match (record.code, record.signal) {
        (_, Some(signal)) => (ExitClass::Signal, signal_name(signal)),
        (Some(0), None) => (ExitClass::Clean, "exit code 0".to_owned()),
        (Some(code), None) => (ExitClass::ProgramExit, format!("exit code {code}")),
        (None, None) => (ExitClass::Unknown, "exit record without a result".to_owned()),
    };
    // It outlived the kill of something that it had started.
    let also = oom.map_or_else(String::new, |OutOfMemory { kills, cap }| {
        let s = if kills == 1 { "" } else { "es" };
        format!("; {kills} process{s} of it killed: out of memory (cap {})", binary(cap))
    });
    Termination::new(class, format!("{detail}{also}"))
}

const SIGKILL: i32 = 9;

/// `64M`, as it is written in a fleet file; bytes where no unit fits.
fn binary(bytes: u64) -> String {
    const UNITS: &[(u32, &str)] = &[(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    UNITS
        .iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.trailing_zeros() >= *shift)
        .map_or_else(
            || format!("{bytes} bytes"),
            |(shift, unit)| format!("{}{unit}", bytes >> shift),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Timestamp;

    fn launch() -> LaunchId {
        "l1".parse().unwrap()
    }

    fn record(change: impl FnOnce(&mut ExitRecord)) -> Vec<u8> {
        let mut record = ExitRecord {
            version: 1,
            backend: "tmux".into(),
            launch_id: launch(),
            started: true,
            code: None,
            signal: None,
            hangup: false,
            stopped: false,
            started_at: Timestamp::default(),
            ended_at: Timestamp::default(),
            error: None,
            out_of_memory: None,
            left: None,
        };
        change(&mut record);
        serde_json::to_vec(&record).unwrap()
    }

    #[test]
    fn every_kind_of_evidence_has_its_class() {
        let class = |bytes: &[u8]| classify(Some(bytes), &launch(), false).class;
        assert_eq!(class(&record(|r| r.code = Some(0))), ExitClass::Clean);
        assert_eq!(class(&record(|r| r.code = Some(3))), ExitClass::ProgramExit);
        assert_eq!(class(&record(|r| r.signal = Some(9))), ExitClass::Signal);
        assert_eq!(class(&record(|r| r.hangup = true)), ExitClass::SessionDestroyed);
        assert_eq!(class(&record(|r| r.started = false)), ExitClass::CouldNotStart);
        assert_eq!(class(&record(|_| ())), ExitClass::Unknown);
        assert_eq!(class(&record(|r| r.launch_id = "other".parse().unwrap())), ExitClass::Unknown);
        for garbage in [&b""[..], b"{", b"\xff\xfe", b"[]", b"null"] {
            assert_eq!(class(garbage), ExitClass::Unknown, "{garbage:?}");
        }
        assert_eq!(classify(None, &launch(), true).class, ExitClass::Unknown);
        assert_eq!(classify(None, &launch(), false).class, ExitClass::SessionDestroyed);
    }

    #[test]
    fn want_of_memory_is_told_with_its_cap() {
        let oom = |kills, cap| Some(OutOfMemory { kills, cap });
        let told = |change: fn(&mut ExitRecord), oom| {
            let bytes = record(|r| {
                change(r);
                r.out_of_memory = oom;
            });
            let end = classify(Some(&bytes), &launch(), false);
            (end.class, format!("{}: {}", end.class.words(), end.detail))
        };
        let killed: fn(&mut ExitRecord) = |r| r.signal = Some(9);
        assert_eq!(
            told(killed, oom(1, 64 << 20)),
            (ExitClass::OutOfMemory, "was killed: out of memory (cap 64M)".to_owned())
        );
        assert_eq!(told(killed, oom(1, 3 << 30)).1, "was killed: out of memory (cap 3G)");
        assert_eq!(told(killed, oom(1, 1001)).1, "was killed: out of memory (cap 1001 bytes)");
        // Nothing of it was killed for memory: somebody else sent the signal.
        assert_eq!(told(killed, oom(0, 64 << 20)).0, ExitClass::Signal);
        assert_eq!(told(killed, None).0, ExitClass::Signal);
        // Something below it was, and it went on.
        let (class, words) = told(|r| r.code = Some(1), oom(2, 64 << 20));
        assert_eq!(class, ExitClass::ProgramExit);
        assert!(
            words.ends_with("code 1; 2 processes of it killed: out of memory (cap 64M)"),
            "{words}"
        );
        assert_eq!(told(|r| r.code = Some(0), oom(1, 64 << 20)).0, ExitClass::Clean);
        // A stop that was asked for stays one.
        let stopped: fn(&mut ExitRecord) = |r| (r.stopped, r.signal) = (true, Some(9));
        assert_eq!(told(stopped, oom(1, 64 << 20)).0, ExitClass::Stopped);
    }

    #[test]
    fn signals_are_named() {
        assert_eq!(
            classify(Some(&record(|r| r.signal = Some(9))), &launch(), false).detail,
            "SIGKILL"
        );
        assert_eq!(
            classify(Some(&record(|r| r.signal = Some(60))), &launch(), false).detail,
            "signal 60"
        );
    }
}
