//! What every [`ResourceLimits`] keeps.

use camino::Utf8Path;

use crate::limits::{Cap, GroupPrefix, Means};
use crate::port::ResourceLimits;

/// Each means that holds for a whole launch is tried with each cap, and has a word on it.
///
/// # Panics
/// The contract is broken.
pub async fn every_means_and_cap_is_told(subject: &dyn ResourceLimits) {
    let facts = subject.facts().await;
    for means in Means::TOGETHER {
        for cap in Cap::ALL {
            let fact = facts.of(means, cap).unwrap_or_else(|| panic!("{means}, {cap:?}: untold"));
            match &fact.usable {
                Ok(words) | Err(words) => assert!(!words.is_empty(), "{means}, {cap:?}"),
            }
        }
    }
}

/// What is asked twice is answered alike: a trial leaves nothing behind that the next one meets.
///
/// # Panics
/// The contract is broken.
pub async fn a_trial_can_be_repeated(subject: &dyn ResourceLimits) {
    let (first, second) = (subject.facts().await, subject.facts().await);
    let holds = |facts: &crate::limits::LimitFacts| -> Vec<bool> {
        facts.tried.iter().map(|fact| fact.usable.is_ok()).collect()
    };
    assert_eq!(holds(&first), holds(&second));
}

/// Where nothing was left there is nothing to remove, however often.
///
/// # Panics
/// The contract is broken.
pub async fn nothing_left_is_no_error(subject: &dyn ResourceLimits) {
    let Ok(role) = "A".parse() else { panic!("a name") };
    let prefix = GroupPrefix::new(&role, Utf8Path::new("/nowhere"));
    for _ in 0..2 {
        let removed = subject.sweep(Utf8Path::new("/nowhere/groups.json"), &prefix).await;
        assert_eq!(removed, Ok(Vec::new()));
    }
}
