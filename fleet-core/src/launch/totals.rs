//! What the connections of a role came to: counts that stay when single records are gone.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::id::Timestamp;
use crate::isolation::network::HostRule;

/// Where connections are recorded. What was served and what was refused lie apart, so that no number of
/// refused requests takes the place of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionFiles {
    /// What was served: one record when it begins, one when it ends.
    pub connections: Utf8PathBuf,
    /// What was refused or failed.
    pub refusals: Utf8PathBuf,
    /// The [`ConnectionTotals`].
    pub totals: Utf8PathBuf,
}

impl ConnectionFiles {
    /// The files beside that of the connections.
    pub fn beside(connections: &Utf8Path) -> Self {
        Self {
            connections: connections.to_owned(),
            refusals: connections.with_file_name("refusals.jsonl"),
            totals: connections.with_file_name("connection-totals.json"),
        }
    }

    /// The older part of a record that was full.
    pub fn older(path: &Utf8Path) -> Utf8PathBuf {
        format!("{path}.1").into()
    }
}

/// Counts over all launches since a moment. Its size is bounded by the number of rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTotals {
    /// Always 1.
    pub version: u32,
    /// Since when.
    pub since: Timestamp,
    /// When this was written.
    pub at: Timestamp,
    /// By the rule that allowed it, one entry each, in the order of the rules.
    pub rules: Vec<RuleTotals>,
    /// By rules that the role no longer has.
    pub former: Counts,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests, refused or failed, without a record of their own: they are counted in another one.
    pub merged: u64,
    /// Records that were dropped to make room for newer ones.
    pub dropped: Dropped,
}

/// What one rule let through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleTotals {
    /// The rule.
    pub rule: HostRule,
    /// What it let through.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Counts of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Connections that were served.
    pub served: u64,
    /// Connections that were allowed, but did not work out.
    pub failed: u64,
    /// Bytes from the sandbox, of connections that ended.
    pub sent: u64,
    /// Bytes to the sandbox, of connections that ended.
    pub received: u64,
    /// The last time that one began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
}

/// Records that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// Of what was served.
    pub connections: u64,
    /// Of what was refused or failed.
    pub refusals: u64,
}

impl ConnectionTotals {
    /// The version written and accepted.
    pub const VERSION: u32 = 1;
    /// No file of totals is larger: a rule is at most 4 KiB of an allowed file.
    pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

    /// Totals that go on from earlier ones with the present rules.
    pub fn going_on(earlier: Option<Self>, rules: &[HostRule], now: Timestamp) -> Self {
        let mut totals = earlier.unwrap_or(Self {
            version: Self::VERSION,
            since: now,
            at: now,
            rules: Vec::new(),
            former: Counts::default(),
            refused: 0,
            merged: 0,
            dropped: Dropped::default(),
        });
        let mut before = std::mem::take(&mut totals.rules);
        for rule in rules {
            if totals.rules.iter().any(|it| it.rule == *rule) {
                continue;
            }
            let entry = match before.iter().position(|it| it.rule == *rule) {
                Some(index) => before.swap_remove(index),
                None => RuleTotals { rule: rule.clone(), counts: Counts::default() },
            };
            totals.rules.push(entry);
        }
        for gone in before {
            totals.former.add(&gone.counts);
        }
        totals
    }

    /// The counts of a rule; those of former rules for one that is not among the rules.
    pub fn of(&mut self, rule: &HostRule) -> &mut Counts {
        match self.rules.iter_mut().find(|it| it.rule == *rule) {
            Some(entry) => &mut entry.counts,
            None => &mut self.former,
        }
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.served = self.served.saturating_add(other.served);
        self.failed = self.failed.saturating_add(other.failed);
        self.sent = self.sent.saturating_add(other.sent);
        self.received = self.received.saturating_add(other.received);
        self.last = self.last.max(other.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_go_on_and_lose_nothing_with_a_rule() {
        let rule = |text: &str| text.parse::<HostRule>().expect(text);
        let at = Timestamp::from_millis;
        let mut totals =
            ConnectionTotals::going_on(None, &[rule("a.example"), rule("b.example")], at(1));
        *totals.of(&rule("a.example")) =
            Counts { served: 3, failed: 1, sent: 10, received: 20, last: Some(at(5)) };
        totals.of(&rule("b.example")).served = 7;
        totals.refused = 9;
        let rules = [rule("c.example"), rule("b.example"), rule("b.example")];
        let next = ConnectionTotals::going_on(Some(totals.clone()), &rules, at(100));
        assert_eq!((next.since, next.refused), (at(1), 9));
        let shown: Vec<(String, u64)> =
            next.rules.iter().map(|it| (it.rule.to_string(), it.counts.served)).collect();
        assert_eq!(shown, [("c.example".to_owned(), 0), ("b.example".to_owned(), 7)]);
        assert_eq!(
            next.former,
            Counts { served: 3, failed: 1, sent: 10, received: 20, last: Some(at(5)) }
        );
    }
}
