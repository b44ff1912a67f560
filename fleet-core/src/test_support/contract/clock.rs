//! The contract of [`Clock`].
#![expect(
    clippy::missing_panics_doc,
    reason = "a contract suite panics where the contract is broken"
)]

use std::time::Duration;

use crate::port::Clock;

/// A sleep lasts at least as long as asked, on the monotonic clock.
pub async fn sleeps_long_enough(clock: &impl Clock) {
    for millis in [0, 1, 20] {
        let duration = Duration::from_millis(millis);
        let start = clock.monotonic();
        clock.sleep(duration).await;
        assert!(clock.monotonic().since(start) >= duration, "{millis} ms");
    }
}

/// The monotonic clock never goes back.
pub async fn never_goes_back(clock: &impl Clock) {
    let mut last = clock.monotonic();
    for _ in 0..100 {
        let now = clock.monotonic();
        assert!(now >= last);
        last = now;
    }
    clock.sleep(Duration::from_millis(1)).await;
    assert!(clock.monotonic() > last);
}

/// The wall clock shows a moment of this century.
pub async fn wall_clock_is_plausible(clock: &impl Clock) {
    let now = clock.now().to_string();
    assert!(now.starts_with("20"), "{now}");
    clock.sleep(Duration::from_millis(5)).await;
    assert!(clock.now().to_string() >= now);
}
