//! The start gate: launches host-wide at least `start_stagger_ms` apart (02 §3.4).

use std::time::Duration;

use fleet_core::id::Timestamp;
use fleet_core::port::StoreError;

use crate::runner::Runtime;

/// Between two tries for the lock, which is held for one read and one write.
const TRY_AGAIN: Duration = Duration::from_millis(5);
/// A reserved slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// When it is.
    pub(super) at: Timestamp,
    /// How long until then.
    pub(super) wait: Duration,
}

/// The slot after `last`, at least `stagger` later, never before `now`. No more than `roles` launches
/// can be ahead of one, so a `last` beyond that comes from a clock that jumped and is ignored.
fn next_slot(last: Option<Timestamp>, now: Timestamp, stagger: u64, roles: u64) -> Timestamp {
    let horizon = now.plus_millis(stagger.saturating_mul(roles));
    match last {
        Some(last) if last <= horizon => last.plus_millis(stagger).max(now),
        Some(_) | None => now,
    }
}

/// Reserves the next slot. A lone start does not wait.
pub(super) async fn reserve(
    runtime: &Runtime,
    stagger: u64,
    configured: usize,
) -> Result<Slot, StoreError> {
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
    // Roles of other fleet files of this home pass the same gate.
    let known = store.list(&layout.control_root())?.map_or(0, |entries| entries.len());
    let roles = u64::try_from(configured.max(known)).unwrap_or(u64::MAX);
    let at = next_slot(last, now, stagger, roles);
    store.write(&layout.last_launch(), format!("{at}\n").as_bytes(), 0o600)?;
    Ok(Slot { at, wait: Duration::from_millis(at.since(now)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_spaced_and_a_lone_start_waits_for_nobody() {
        let at = Timestamp::from_millis;
        assert_eq!(next_slot(None, at(10), 4_000, 3), at(10));
        assert_eq!(next_slot(Some(at(10)), at(12), 4_000, 3), at(4_010));
        assert_eq!(next_slot(Some(at(10)), at(90_000), 4_000, 3), at(90_000));
    }

    #[test]
    fn w33_a_slot_further_ahead_than_all_roles_need_is_a_jump_of_the_clock() {
        let at = Timestamp::from_millis;
        assert_eq!(next_slot(Some(at(12_012)), at(12), 4_000, 3), at(16_012));
        for ahead in [12_013, 20 * 60_000, u64::MAX / 2] {
            assert_eq!(next_slot(Some(at(ahead)), at(12), 4_000, 3), at(12), "{ahead}");
        }
    }
}
