use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::{ExitClass, RestartLedger};
use crate::harness::{ExitPolicy, StartMode};
use crate::id::{HarnessId, SessionId};

/// The recorded conversation of a role (`session-id` in control).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedSession {
    /// Always 1.
    pub version: u32,
    /// The harness it belongs to.
    pub harness: HarnessId,
    /// The harness home it is stored in.
    pub home: Utf8PathBuf,
    /// The conversation; `None` as long as a program that chooses its ids itself has not said which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<SessionId>,
    /// For such a program: its newest conversation file at the fresh start, below the directory of
    /// its conversations. Those of this conversation are newer. Empty: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The conversation before it, kept aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<SessionId>,
}

/// What the choice between fresh and resume depends on.
#[derive(Debug, Clone, Copy)]
pub struct StartFacts<'a> {
    /// The recorded conversation.
    pub session: Option<&'a RecordedSession>,
    /// Whether the `booted` marker exists: no orderly `down` since the last attempt.
    pub booted: bool,
    /// The harness to start.
    pub harness: &'a HarnessId,
    /// The harness home to start with.
    pub home: &'a Utf8PathBuf,
    /// Whether the harness can continue a conversation at all.
    pub supports_resume: bool,
    /// When an exit counts as what.
    pub policy: ExitPolicy,
}

/// Fresh or resume, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartDecision {
    /// Which.
    pub mode: StartMode,
    /// Why, for the log.
    pub reason: &'static str,
    /// Whether this fresh start spends the streak's one chance to discard the conversation.
    pub discards_resume: bool,
}

/// Decides by the first rule of 02 §3.7 that matches.
pub fn decide_start(facts: &StartFacts<'_>, ledger: &RestartLedger) -> StartDecision {
    let fresh = |reason| StartDecision { mode: StartMode::Fresh, reason, discards_resume: false };
    let Some(session) = facts.session else {
        return fresh("no conversation is recorded");
    };
    if session.harness != *facts.harness {
        return fresh("the harness changed");
    }
    if session.home != *facts.home {
        return fresh("the recorded conversation belongs to another harness home");
    }
    if !facts.booted {
        return fresh("the role was taken down in order");
    }
    if session.id.is_none() {
        return fresh("the last conversation left no id");
    }
    if !facts.supports_resume {
        return fresh("this harness cannot continue a conversation");
    }
    if let Some(last) = &ledger.last_termination {
        if last.class == ExitClass::Clean && facts.policy.clean_exit_is_fresh {
            return fresh("the last conversation ended normally");
        }
        let failed_resume = last.mode == Some(StartMode::Resume)
            && last.lived_ms.is_some_and(|lived| lived < facts.policy.fast_fail_ms);
        if failed_resume && !ledger.resume_discarded {
            return StartDecision {
                mode: StartMode::Fresh,
                reason: "the last resume failed at once",
                discards_resume: true,
            };
        }
    }
    StartDecision {
        mode: StartMode::Resume,
        reason: "the conversation goes on",
        discards_resume: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LastAttempt, Termination};
    use super::*;
    use crate::id::Timestamp;

    const POLICY: ExitPolicy = ExitPolicy { clean_exit_is_fresh: true, fast_fail_ms: 20_000 };

    fn session(harness: &str, home: &str) -> RecordedSession {
        RecordedSession {
            version: 1,
            harness: harness.parse().unwrap(),
            home: home.into(),
            id: Some("s1".parse().unwrap()),
            after: None,
            previous: None,
        }
    }

    fn last(class: ExitClass, lived_ms: impl Into<Option<u64>>, mode: StartMode) -> RestartLedger {
        RestartLedger {
            last_termination: Some(LastAttempt {
                class,
                detail: String::new(),
                at: Timestamp::default(),
                lived_ms: lived_ms.into(),
                mode: Some(mode),
            }),
            ..RestartLedger::default()
        }
    }

    fn mode(
        session: Option<&RecordedSession>,
        booted: bool,
        resume: bool,
        ledger: &RestartLedger,
    ) -> StartMode {
        let (harness, home) = ("h".parse().unwrap(), Utf8PathBuf::from("/h"));
        let facts = StartFacts {
            session,
            booted,
            harness: &harness,
            home: &home,
            supports_resume: resume,
            policy: POLICY,
        };
        decide_start(&facts, ledger).mode
    }

    #[test]
    fn the_first_matching_rule_decides() {
        use StartMode::{Fresh, Resume};
        let (own, none) = (session("h", "/h"), RestartLedger::default());
        assert_eq!(mode(None, true, true, &none), Fresh);
        assert_eq!(mode(Some(&session("other", "/h")), true, true, &none), Fresh);
        assert_eq!(mode(Some(&session("h", "/other")), true, true, &none), Fresh);
        assert_eq!(mode(Some(&own), false, true, &none), Fresh);
        assert_eq!(mode(Some(&own), true, false, &none), Fresh);
        let unnamed = RecordedSession { id: None, ..own.clone() };
        assert_eq!(mode(Some(&unnamed), true, true, &none), Fresh);
        assert_eq!(mode(Some(&own), true, true, &last(ExitClass::Clean, 90_000, Resume)), Fresh);
        assert_eq!(
            mode(Some(&own), true, true, &last(ExitClass::ProgramExit, 90_000, Resume)),
            Resume
        );
        for class in [
            ExitClass::SessionDestroyed,
            ExitClass::Signal,
            ExitClass::Abrupt,
            ExitClass::HostRestarted,
        ] {
            assert_eq!(
                mode(Some(&own), true, true, &last(class, None, Resume)),
                Resume,
                "{class:?}"
            );
        }
    }

    #[test]
    fn a_record_of_an_earlier_version_is_read() {
        let old = r#"{"version":1,"harness":"h","home":"/h","id":"s1"}"#;
        assert_eq!(serde_json::from_str::<RecordedSession>(old).unwrap(), session("h", "/h"));
    }

    #[test]
    fn a_failing_resume_is_discarded_once_per_streak() {
        let own = session("h", "/h");
        let mut ledger = last(ExitClass::ProgramExit, 100, StartMode::Resume);
        assert_eq!(mode(Some(&own), true, true, &ledger), StartMode::Fresh);
        ledger.resume_discarded = true;
        assert_eq!(mode(Some(&own), true, true, &ledger), StartMode::Resume);
        let termination = Termination { class: ExitClass::ProgramExit, detail: String::new() };
        ledger.record_end(
            &termination,
            1_000_000,
            Some(StartMode::Fresh),
            POLICY,
            Timestamp::default(),
        );
        assert!(!ledger.resume_discarded, "a good run ends the streak");
    }
}
