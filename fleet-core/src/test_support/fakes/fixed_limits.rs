use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};

use crate::limits::{Cap, CapFact, GroupPrefix, LimitFacts, Means};
use crate::port::{ResourceLimits, SweepError};
use crate::test_support::sync::lock;

/// A machine that holds what a test says, and groups that launches left. Copies share everything.
#[derive(Debug, Clone, Default)]
pub struct FixedLimits {
    usable: Vec<(Means, Cap)>,
    left: Arc<Mutex<BTreeMap<Utf8PathBuf, Vec<String>>>>,
}

impl FixedLimits {
    /// A machine on which these can be used, and nothing else.
    pub fn new(usable: impl IntoIterator<Item = (Means, Cap)>) -> Self {
        Self { usable: usable.into_iter().collect(), left: Arc::default() }
    }

    /// Leaves a group behind that this record names.
    pub fn leave(&self, record: &Utf8Path, group: &str) {
        lock(&self.left).entry(record.to_owned()).or_default().push(group.to_owned());
    }

    /// What is left.
    pub fn left(&self) -> Vec<String> {
        lock(&self.left).values().flatten().cloned().collect()
    }
}

#[async_trait]
impl ResourceLimits for FixedLimits {
    async fn facts(&self) -> LimitFacts {
        let fact = |means: Means, cap: Cap| CapFact {
            means,
            cap,
            usable: if self.usable.contains(&(means, cap)) {
                Ok(means.to_string())
            } else {
                Err("not on this machine".to_owned())
            },
        };
        let tried =
            Means::TOGETHER.into_iter().flat_map(|means| Cap::ALL.map(|cap| fact(means, cap)));
        LimitFacts { tried: tried.collect(), ..LimitFacts::default() }
    }

    async fn sweep(
        &self,
        record: &Utf8Path,
        prefix: &GroupPrefix,
    ) -> Result<Vec<String>, SweepError> {
        let mut left = lock(&self.left);
        let names = left.remove(record).unwrap_or_default();
        let (own, other) = names.into_iter().partition(|name| prefix.is_of(name));
        let other: Vec<String> = other;
        if !other.is_empty() {
            left.insert(record.to_owned(), other);
        }
        Ok(own)
    }
}
