use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::id::Timestamp;

/// A reading of a clock that never goes back, counted from an arbitrary start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// A reading, as the time since the arbitrary start.
    pub fn from_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time from `earlier` to this reading, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The reading `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Time. Durations are measured on the monotonic clock, so a jump of the wall clock changes none.
#[async_trait]
pub trait Clock: Send + Sync + Debug {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// The monotonic clock.
    fn monotonic(&self) -> Monotonic;

    /// Returns once `duration` has passed on the monotonic clock.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and has no other effect; callers race it against their
    /// stop signal.
    async fn sleep(&self, duration: Duration);
}
