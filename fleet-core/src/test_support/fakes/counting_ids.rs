use std::sync::atomic::{AtomicU64, Ordering};

use crate::port::IdSource;

/// Ids that count up from 1: valid in form, the same in every run.
#[derive(Debug, Default)]
pub struct CountingIds {
    last: AtomicU64,
}

impl CountingIds {
    fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl IdSource for CountingIds {
    fn uuid(&self) -> String {
        format!("00000000-0000-4000-8000-{:012x}", self.next())
    }

    fn token(&self) -> String {
        format!("{:064x}", self.next())
    }
}
