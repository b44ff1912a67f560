//! What the fakes share to wait without a runtime.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Locks even after a panic elsewhere: a failed test must not hide behind a second panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Futures that wait for a change of some state.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    waiting: Mutex<Vec<Waker>>,
}

impl Changes {
    /// Lets every waiter look again.
    pub(crate) fn announce(&self) {
        for waker in lock(&self.waiting).drain(..) {
            waker.wake();
        }
    }

    /// Returns the first `Some` that `look` gives; it is asked now and after each announcement.
    pub(crate) async fn wait<T>(&self, look: impl Fn() -> Option<T>) -> T {
        poll_fn(|context| {
            // Registered before looking, so a change in between is not missed.
            lock(&self.waiting).push(context.waker().clone());
            look().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
