//! When a role starts, resumes, waits or is held down (02 §3): a pure state machine.
//!
//! The runner turns what happens into [`Event`]s and carries out the [`Effect`]s. Nothing here looks
//! at a clock: durations come in with the events.

mod exit;
mod ledger;
mod machine;
mod start;

pub use exit::{ExitClass, Termination, classify};
pub use ledger::{Circuit, LastAttempt, RestartLedger};
pub use machine::{Effect, Event, Lifecycle, Phase, StopKind};
pub use start::{RecordedSession, StartDecision, StartFacts, decide_start};

/// Delay before the second attempt of a streak; doubles with each further failure.
pub const FIRST_DELAY_MS: u64 = 2_000;
/// No delay is longer.
pub const MAX_DELAY_MS: u64 = 60_000;
/// Immediate failures in a row after which nothing more is started.
pub const MAX_IMMEDIATE_FAILURES: u32 = 5;
/// While a streak is active, an attempt shorter than this many times the fast-fail limit counts too,
/// so an alternation around the limit cannot reset the streak for ever.
pub const STREAK_FACTOR: u64 = 5;
