use serde::{Deserialize, Serialize};

use crate::id::LaunchId;
use crate::launch::ExitRecord;

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
    match (record.code, record.signal) {
        (_, Some(signal)) => Termination::new(ExitClass::Signal, signal_name(signal)),
        (Some(0), None) => Termination::new(ExitClass::Clean, "exit code 0"),
        (Some(code), None) => Termination::new(ExitClass::ProgramExit, format!("exit code {code}")),
        (None, None) => Termination::new(ExitClass::Unknown, "exit record without a result"),
    }
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
