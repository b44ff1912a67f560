use serde::{Deserialize, Serialize};

use super::{
    ExitClass, FIRST_DELAY_MS, MAX_DELAY_MS, MAX_IMMEDIATE_FAILURES, STREAK_FACTOR, Termination,
};
use crate::harness::{ExitPolicy, StartMode};
use crate::id::Timestamp;

/// Whether starts are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Circuit {
    /// They are.
    #[default]
    Closed,
    /// Too many immediate failures: nothing is started until somebody releases the role.
    Open,
}

/// The last finished attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastAttempt {
    /// How it ended.
    pub class: ExitClass,
    /// What was seen.
    pub detail: String,
    /// When.
    pub at: Timestamp,
    /// How long it lived, in milliseconds of the monotonic clock: 0 if it could not start, absent if
    /// its runner died with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lived_ms: Option<u64>,
    /// Whether it was a resume.
    pub mode: Option<StartMode>,
}

/// The restart ledger of a role (02 §3.8). Survives restarts of the runner; history fields survive
/// every reset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartLedger {
    /// Always 1.
    pub version: u32,
    /// Length of the streak of immediate failures.
    pub consecutive_immediate_failures: u32,
    /// Why the last attempt failed.
    pub last_reason: Option<String>,
    /// The delay chosen after it, in milliseconds.
    pub next_delay_ms: u64,
    /// Whether this streak already tried a fresh conversation.
    pub resume_discarded: bool,
    /// Whether starts are allowed.
    pub circuit: Circuit,
    /// When the circuit opened.
    pub opened_at: Option<Timestamp>,
    /// When the ledger last changed.
    pub updated_at: Timestamp,
    /// The last finished attempt.
    pub last_termination: Option<LastAttempt>,
    /// Runners that died without an orderly stop.
    pub abrupt_terminations: u32,
}

impl RestartLedger {
    /// The version written.
    pub const VERSION: u32 = 1;

    /// Reads a ledger. A corrupt one counts as closed and empty; the flag tells that a copy should
    /// be kept and the fact logged.
    pub fn parse(bytes: Option<&[u8]>) -> (Self, bool) {
        let fresh = Self { version: Self::VERSION, ..Self::default() };
        match bytes {
            None => (fresh, false),
            Some(bytes) => match serde_json::from_slice::<Self>(bytes) {
                Ok(ledger) if ledger.version == Self::VERSION => (ledger, false),
                Ok(_) | Err(_) => (fresh, true),
            },
        }
    }

    /// Whether starts are forbidden.
    pub fn is_open(&self) -> bool {
        self.circuit == Circuit::Open
    }

    /// Notes that the runner before this one died, or that the host was restarted.
    pub fn record_lost_runner(&mut self, host_restarted: bool, now: Timestamp) {
        let class = if host_restarted { ExitClass::HostRestarted } else { ExitClass::Abrupt };
        if !host_restarted {
            self.abrupt_terminations = self.abrupt_terminations.saturating_add(1);
        }
        self.last_termination = Some(LastAttempt {
            class,
            detail: class.words().to_owned(),
            at: now,
            lived_ms: None,
            mode: None,
        });
        self.updated_at = now;
    }

    /// Notes a finished attempt and decides what follows: the delay before the next one, or `None`
    /// if the circuit is open now.
    pub fn record_end(
        &mut self,
        termination: &Termination,
        lived_ms: u64,
        mode: Option<StartMode>,
        policy: ExitPolicy,
        now: Timestamp,
    ) -> Option<u64> {
        let in_streak = self.consecutive_immediate_failures > 0;
        let limit = policy.fast_fail_ms.saturating_mul(if in_streak { STREAK_FACTOR } else { 1 });
        let failed = termination.class == ExitClass::CouldNotStart || lived_ms < limit;
        self.last_termination = Some(LastAttempt {
            class: termination.class,
            detail: termination.detail.clone(),
            at: now,
            lived_ms: Some(lived_ms),
            mode,
        });
        self.updated_at = now;
        if !failed {
            self.clear_streak();
            return Some(0);
        }
        self.consecutive_immediate_failures = self.consecutive_immediate_failures.saturating_add(1);
        self.last_reason = Some(format!("{}: {}", termination.class.words(), termination.detail));
        if self.consecutive_immediate_failures >= MAX_IMMEDIATE_FAILURES {
            self.circuit = Circuit::Open;
            self.opened_at = Some(now);
            self.next_delay_ms = 0;
            return None;
        }
        let doublings = self.consecutive_immediate_failures - 1;
        self.next_delay_ms = (FIRST_DELAY_MS << doublings).min(MAX_DELAY_MS);
        Some(self.next_delay_ms)
    }

    /// Ends the streak and closes the circuit: an operator asked for a start.
    pub fn release(&mut self, now: Timestamp) {
        self.clear_streak();
        self.updated_at = now;
    }

    fn clear_streak(&mut self) {
        self.consecutive_immediate_failures = 0;
        self.last_reason = None;
        self.next_delay_ms = 0;
        self.resume_discarded = false;
        self.circuit = Circuit::Closed;
        self.opened_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: ExitPolicy = ExitPolicy { clean_exit_is_fresh: false, fast_fail_ms: 20_000 };

    fn end(ledger: &mut RestartLedger, class: ExitClass, lived_ms: u64) -> Option<u64> {
        let termination = Termination { class, detail: "x".into() };
        ledger.record_end(
            &termination,
            lived_ms,
            Some(StartMode::Fresh),
            POLICY,
            Timestamp::from_millis(1),
        )
    }

    #[test]
    fn five_immediate_failures_hold_the_role_down() {
        let mut ledger = RestartLedger::default();
        let delays: Vec<_> =
            (0..5).map(|_| end(&mut ledger, ExitClass::ProgramExit, 100)).collect();
        assert_eq!(delays, [Some(2_000), Some(4_000), Some(8_000), Some(16_000), None]);
        assert!(ledger.is_open());
        ledger.release(Timestamp::from_millis(9));
        assert!(!ledger.is_open());
        assert!(ledger.last_termination.is_some(), "history survives a release");
    }

    #[test]
    fn an_alternation_around_the_limit_does_not_reset_the_streak() {
        let mut ledger = RestartLedger::default();
        for lived in [19_000, 20_500, 19_000, 20_500] {
            end(&mut ledger, ExitClass::ProgramExit, lived);
        }
        assert_eq!(ledger.consecutive_immediate_failures, 4);
        assert_eq!(end(&mut ledger, ExitClass::Clean, 100_000), Some(0));
        assert_eq!(ledger.consecutive_immediate_failures, 0);
    }

    #[test]
    fn a_corrupt_ledger_is_closed_and_flagged() {
        for bytes in [&b""[..], b"{", b"[]", br#"{"version":7}"#] {
            let (ledger, corrupt) = RestartLedger::parse(Some(bytes));
            assert!(corrupt && !ledger.is_open());
        }
        assert!(!RestartLedger::parse(None).1);
        let kept = RestartLedger { version: 1, circuit: Circuit::Open, ..RestartLedger::default() };
        let bytes = serde_json::to_vec(&kept).unwrap();
        assert_eq!(RestartLedger::parse(Some(&bytes)), (kept, false));
    }

    #[test]
    fn a_host_restart_is_not_abrupt() {
        let mut ledger = RestartLedger::default();
        ledger.record_lost_runner(true, Timestamp::default());
        assert_eq!(ledger.abrupt_terminations, 0);
        ledger.record_lost_runner(false, Timestamp::default());
        assert_eq!(ledger.abrupt_terminations, 1);
    }
}
