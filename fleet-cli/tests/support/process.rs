use std::time::{Duration, Instant};

/// Nothing that is waited for takes longer, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Waits until a state is observed; fails if it never is.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "never observed: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
