use serde::{Deserialize, Serialize};

use super::{RestartLedger, Termination};
use crate::harness::{ExitPolicy, StartMode};
use crate::id::Timestamp;

/// What an operator's stop is meant to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopKind {
    /// Stop and stay down; the next start is fresh.
    Down,
    /// Stop to start again with the same conversation.
    Restart,
    /// Stop to start again with a new conversation.
    ForceRestart,
    /// The host or the supervisor ends the runner; the conversation goes on later.
    Shutdown,
}

impl StopKind {
    /// Whether the conversation ends with this stop.
    pub fn ends_conversation(self) -> bool {
        matches!(self, Self::Down | Self::ForceRestart)
    }
}

/// Where a role is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// An attempt is being prepared or its program is not ready yet.
    Starting,
    /// The program is ready.
    Running,
    /// Waiting for the next attempt.
    BackingOff,
    /// The circuit is open.
    HeldDown,
    /// A stop was asked for; the program is being ended.
    Stopping(StopKind),
    /// Over.
    Stopped,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The runner owns the role and may act.
    Begin,
    /// The attempt could not be started; the reason is for people.
    Refused {
        /// Why.
        reason: String,
    },
    /// The program is ready.
    Ready,
    /// The program ended.
    Ended {
        /// How.
        termination: Termination,
        /// How long it lived, in milliseconds of the monotonic clock.
        lived_ms: u64,
        /// Fresh or resume.
        mode: StartMode,
    },
    /// The wait is over.
    DelayOver,
    /// An operator asks for a start now.
    Release,
    /// A stop.
    Stop(StopKind),
    /// Everything of the attempt has ended after a stop.
    TornDown,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Prepare and launch the next attempt.
    Attempt,
    /// Write the ledger.
    SaveLedger,
    /// Wait this many milliseconds, then report [`Event::DelayOver`].
    Wait(u64),
    /// End the program and its console, then report [`Event::TornDown`].
    TearDown,
    /// Remove the `booted` marker: the next start is fresh.
    ForgetConversation,
    /// Remove the run marker and leave.
    Finish,
}

/// The life of one role under one runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    phase: Phase,
    /// The restart ledger, changed by events and to be saved on [`Effect::SaveLedger`].
    pub ledger: RestartLedger,
}

impl Lifecycle {
    /// A role about to be run.
    pub fn new(ledger: RestartLedger) -> Self {
        Self { phase: Phase::Starting, ledger }
    }

    /// Where the role is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Takes one event and says what to do, in order. An event that means nothing in the current
    /// phase has no effect: a late readiness after a stop, a second stop.
    pub fn on(&mut self, event: Event, policy: ExitPolicy, now: Timestamp) -> Vec<Effect> {
        match (self.phase, event) {
            (Phase::Starting, Event::Begin) if self.ledger.is_open() => {
                self.phase = Phase::HeldDown;
                Vec::new()
            }
            (Phase::Starting, Event::Begin) => vec![Effect::Attempt],
            (Phase::Starting, Event::Ready) => {
                self.phase = Phase::Running;
                Vec::new()
            }
            (Phase::Starting, Event::Refused { reason }) => {
                let termination =
                    Termination { class: super::ExitClass::CouldNotStart, detail: reason };
                self.after_end(&termination, 0, None, policy, now)
            }
            (Phase::Starting | Phase::Running, Event::Ended { termination, lived_ms, mode }) => {
                self.after_end(&termination, lived_ms, Some(mode), policy, now)
            }
            (Phase::BackingOff, Event::DelayOver) => {
                self.phase = Phase::Starting;
                vec![Effect::Attempt]
            }
            (Phase::BackingOff | Phase::HeldDown, Event::Release) => {
                self.ledger.release(now);
                self.phase = Phase::Starting;
                vec![Effect::SaveLedger, Effect::Attempt]
            }
            (
                Phase::Starting | Phase::Running | Phase::BackingOff | Phase::HeldDown,
                Event::Stop(kind),
            ) => {
                self.phase = Phase::Stopping(kind);
                vec![Effect::TearDown]
            }
            (Phase::Stopping(kind), Event::TornDown) => {
                self.phase = Phase::Stopped;
                if kind.ends_conversation() {
                    vec![Effect::ForgetConversation, Effect::Finish]
                } else {
                    vec![Effect::Finish]
                }
            }
            _ => Vec::new(),
        }
    }

    fn after_end(
        &mut self,
        termination: &Termination,
        lived_ms: u64,
        mode: Option<StartMode>,
        policy: ExitPolicy,
        now: Timestamp,
    ) -> Vec<Effect> {
        match self.ledger.record_end(termination, lived_ms, mode, policy, now) {
            Some(0) => {
                self.phase = Phase::Starting;
                vec![Effect::SaveLedger, Effect::Attempt]
            }
            Some(delay) => {
                self.phase = Phase::BackingOff;
                vec![Effect::SaveLedger, Effect::Wait(delay)]
            }
            None => {
                self.phase = Phase::HeldDown;
                vec![Effect::SaveLedger]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ExitClass;
    use super::*;

    const POLICY: ExitPolicy = ExitPolicy { clean_exit_is_fresh: false, fast_fail_ms: 20_000 };

    fn ended(lived_ms: u64) -> Event {
        Event::Ended {
            termination: Termination {
                class: ExitClass::ProgramExit,
                detail: "exit code 1".into(),
            },
            lived_ms,
            mode: StartMode::Fresh,
        }
    }

    #[test]
    fn a_program_that_dies_at_once_is_tried_five_times() {
        let mut life = Lifecycle::new(RestartLedger::default());
        let now = Timestamp::default();
        assert_eq!(life.on(Event::Begin, POLICY, now), [Effect::Attempt]);
        for delay in [2_000, 4_000, 8_000, 16_000] {
            assert_eq!(life.on(ended(50), POLICY, now), [Effect::SaveLedger, Effect::Wait(delay)]);
            assert_eq!(life.on(Event::DelayOver, POLICY, now), [Effect::Attempt]);
        }
        assert_eq!(life.on(ended(50), POLICY, now), [Effect::SaveLedger]);
        assert_eq!(life.phase(), Phase::HeldDown);
        assert_eq!(life.on(Event::DelayOver, POLICY, now), []);
        assert_eq!(life.on(Event::Release, POLICY, now), [Effect::SaveLedger, Effect::Attempt]);
        assert_eq!(life.phase(), Phase::Starting);
    }

    #[test]
    fn a_held_down_role_stays_held_in_the_next_runner() {
        let ledger =
            RestartLedger { circuit: super::super::Circuit::Open, ..RestartLedger::default() };
        let mut life = Lifecycle::new(ledger);
        assert_eq!(life.on(Event::Begin, POLICY, Timestamp::default()), []);
        assert_eq!(life.phase(), Phase::HeldDown);
    }

    #[test]
    fn only_down_and_force_restart_forget_the_conversation() {
        for (kind, forgets) in [
            (StopKind::Down, true),
            (StopKind::ForceRestart, true),
            (StopKind::Restart, false),
            (StopKind::Shutdown, false),
        ] {
            let mut life = Lifecycle::new(RestartLedger::default());
            let now = Timestamp::default();
            life.on(Event::Begin, POLICY, now);
            life.on(Event::Ready, POLICY, now);
            assert_eq!(life.on(Event::Stop(kind), POLICY, now), [Effect::TearDown]);
            // The end that our own stop causes is not judged, and a second stop changes nothing.
            assert_eq!(life.on(ended(10), POLICY, now), []);
            assert_eq!(life.on(Event::Stop(StopKind::Down), POLICY, now), []);
            let last = life.on(Event::TornDown, POLICY, now);
            assert_eq!(last.contains(&Effect::ForgetConversation), forgets, "{kind:?}");
            assert_eq!(last.last(), Some(&Effect::Finish));
            assert_eq!(life.ledger.consecutive_immediate_failures, 0);
        }
    }

    #[test]
    fn a_long_run_restarts_at_once() {
        let mut life = Lifecycle::new(RestartLedger::default());
        let now = Timestamp::default();
        life.on(Event::Begin, POLICY, now);
        life.on(Event::Ready, POLICY, now);
        assert_eq!(life.on(ended(30_000), POLICY, now), [Effect::SaveLedger, Effect::Attempt]);
    }
}
