//! Skips that can't go unseen: they say why, and with `REQUIRE_ALL=1` they are failures.

/// Ends a test early, saying why; panics instead when `REQUIRE_ALL=1`.
macro_rules! skip {
    ($reason:expr) => {{
        if std::env::var("REQUIRE_ALL").as_deref() == Ok("1") {
            panic!("skipped although REQUIRE_ALL=1: {}", $reason);
        }
        eprintln!("skipped: {}", $reason);
        return;
    }};
}
