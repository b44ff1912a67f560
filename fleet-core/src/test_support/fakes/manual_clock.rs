use std::future::poll_fn;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;

use crate::id::Timestamp;
use crate::port::{Clock, Monotonic};
use crate::test_support::sync::{Changes, lock};

/// A clock that a test moves.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<State>,
    changes: Changes,
    hurried: bool,
}

#[derive(Debug)]
struct State {
    wall: Timestamp,
    elapsed: Duration,
    /// Moments at which sleepers wake up.
    sleepers: Vec<Duration>,
}

impl ManualClock {
    /// A clock that stands still until it is moved.
    pub fn new(wall: Timestamp) -> Self {
        let state = State { wall, elapsed: Duration::ZERO, sleepers: Vec::new() };
        Self { state: Mutex::new(state), changes: Changes::default(), hurried: false }
    }

    /// A clock on which every sleep ends as soon as everybody else had a turn, and moves the clock by
    /// its length.
    pub fn hurried(wall: Timestamp) -> Self {
        Self { hurried: true, ..Self::new(wall) }
    }

    /// Lets time pass and wakes whoever slept long enough.
    pub fn advance(&self, duration: Duration) {
        {
            let mut state = lock(&self.state);
            let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            state.wall = state.wall.plus_millis(millis);
            state.elapsed += duration;
        }
        self.changes.announce();
    }

    /// Sets the wall clock, as an operator or a time server does. No sleeper notices.
    pub fn set_wall(&self, wall: Timestamp) {
        lock(&self.state).wall = wall;
    }

    /// How long until the first sleeper wakes up; `None` if nobody sleeps.
    pub fn next_wake(&self) -> Option<Duration> {
        let state = lock(&self.state);
        state.sleepers.iter().min().map(|wake| wake.saturating_sub(state.elapsed))
    }

    /// Number of sleepers.
    pub fn sleepers(&self) -> usize {
        lock(&self.state).sleepers.len()
    }
}

/// Takes a sleeper off the list, also when its future is dropped.
struct Sleeper<'a> {
    clock: &'a ManualClock,
    wake: Duration,
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.clock.state);
        if let Some(at) = state.sleepers.iter().position(|wake| *wake == self.wake) {
            state.sleepers.swap_remove(at);
        }
    }
}

/// Lets every other ready task run once.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        lock(&self.state).wall
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(lock(&self.state).elapsed)
    }

    async fn sleep(&self, duration: Duration) {
        let sleeper = {
            let mut state = lock(&self.state);
            let wake = state.elapsed.saturating_add(duration);
            state.sleepers.push(wake);
            Sleeper { clock: self, wake }
        };
        if self.hurried {
            yield_once().await;
            let missing = sleeper.wake.saturating_sub(lock(&self.state).elapsed);
            self.advance(missing);
        }
        let over = || (lock(&self.state).elapsed >= sleeper.wake).then_some(());
        self.changes.wait(over).await;
    }
}
