//! The start gate: launches host-wide at least `start_stagger_ms` apart (02 §3.4).

use std::time::Duration;

use fleet_core::id::Timestamp;
use fleet_core::port::StoreError;

use crate::runner::Runtime;

/// Between two tries for the lock, which is held for one read and one write.
const TRY_AGAIN: Duration = Duration::from_millis(5);
/// No more roles than this wait ahead of one; a later slot comes from a clock that jumped.
const MOST_AHEAD: u64 = 1_000;

/// A reserved slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// When it is.
    pub(super) at: Timestamp,
    /// How long until then.
    pub(super) wait: Duration,
}

/// The slot after `last`, at least `stagger` later, never before `now`.
fn next_slot(last: Option<Timestamp>, now: Timestamp, stagger: u64) -> Timestamp {
    let horizon = now.plus_millis(stagger.saturating_mul(MOST_AHEAD));
    match last {
        Some(last) if last <= horizon => last.plus_millis(stagger).max(now),
        Some(_) | None => now,
    }
}

/// Reserves the next slot. A lone start does not wait.
pub(super) async fn reserve(runtime: &Runtime, stagger: u64) -> Result<Slot, StoreError> {
    let (store, layout) = (&runtime.ports.store, &runtime.world.layout);
    store.ensure_dir(&layout.locks())?;
    let lock_file = layout.locks().join("start-gate");
    let _lock = loop {
        if let Some(lock) = store.try_lock(&lock_file)? {
            break lock;
        }
        runtime.ports.clock.sleep(TRY_AGAIN).await;
    };
    let last = store
        .read(&layout.last_launch(), 64)?
        .and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse().ok());
    let now = runtime.ports.clock.now();
    let at = next_slot(last, now, stagger);
    store.write(&layout.last_launch(), format!("{at}\n").as_bytes(), 0o600)?;
    Ok(Slot { at, wait: Duration::from_millis(at.since(now)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_spaced_and_a_lone_start_waits_for_nobody() {
        let at = Timestamp::from_millis;
        assert_eq!(next_slot(None, at(10), 4_000), at(10));
        assert_eq!(next_slot(Some(at(10)), at(12), 4_000), at(4_010));
        assert_eq!(next_slot(Some(at(10)), at(90_000), 4_000), at(90_000));
        // A clock that was set back an hour ago does not hold everybody for an hour per role.
        assert_eq!(next_slot(Some(at(u64::MAX / 2)), at(12), 4_000), at(12));
    }
}
