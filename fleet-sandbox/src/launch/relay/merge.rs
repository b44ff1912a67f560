//! Refused requests, merged: an agent can make thousands in a second, so a window of time has few records
//! of them, and a count of the rest.

use fleet_core::id::Timestamp;
use fleet_core::launch::ConnectionRecord;

/// How long a window is.
const WINDOW: u64 = 60_000;
/// Different refusals with a record of their own in a window.
const DISTINCT: usize = 32;
const OTHERS: &str = "requests for more targets than are recorded one by one";

/// The window that is open.
#[derive(Debug, Default)]
pub(super) struct Merger {
    began: Option<Timestamp>,
    seen: Vec<Seen>,
}

/// A refusal, and how often it came again.
#[derive(Debug)]
struct Seen {
    /// The newest of them.
    newest: ConnectionRecord,
    /// Those without a record of their own.
    more: u64,
    /// The time of the first of those.
    first: Timestamp,
}

impl Merger {
    /// Whether the record is to be written as it is; otherwise it is counted.
    pub(super) fn is_first(&mut self, record: &ConnectionRecord) -> bool {
        self.began.get_or_insert(record.at);
        let same = |it: &&mut Seen| {
            let it = &it.newest;
            (&it.target, it.decision, &it.reason)
                == (&record.target, record.decision, &record.reason)
        };
        if let Some(seen) = self.seen.iter_mut().find(same) {
            seen.count(record);
            return false;
        }
        if self.seen.len() < DISTINCT {
            self.seen.push(Seen { newest: record.clone(), more: 0, first: record.at });
            return true;
        }
        // At most one further entry for each decision.
        let others = ConnectionRecord { target: None, reason: OTHERS.to_owned(), ..record.clone() };
        let of_kind =
            |it: &&mut Seen| it.newest.reason == OTHERS && it.newest.decision == record.decision;
        match self.seen.iter_mut().find(of_kind) {
            Some(seen) => seen.count(&others),
            None => self.seen.push(Seen { first: others.at, newest: others, more: 1 }),
        }
        false
    }

    /// Whether the window is over.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.began.is_some_and(|began| now.since(began) >= WINDOW)
    }

    /// Ends the window: the records of what was counted in it.
    pub(super) fn close(&mut self) -> Vec<ConnectionRecord> {
        self.began = None;
        let counted = std::mem::take(&mut self.seen).into_iter().filter(|seen| seen.more > 0);
        counted
            .map(|seen| ConnectionRecord {
                count: seen.more,
                since: Some(seen.first),
                ..seen.newest
            })
            .collect()
    }
}

impl Seen {
    fn count(&mut self, record: &ConnectionRecord) {
        if self.more == 0 {
            self.first = record.at;
        }
        self.more += 1;
        (self.newest.at, self.newest.connection) = (record.at, record.connection);
    }
}

#[cfg(test)]
mod tests {
    use fleet_core::launch::ConnectionDecision;

    use super::*;

    fn refusal(connection: u64, target: &str) -> ConnectionRecord {
        ConnectionRecord {
            version: ConnectionRecord::VERSION,
            launch_id: "launch-1".parse().expect("an id"),
            connection,
            at: Timestamp::from_millis(connection),
            open: false,
            target: Some(target.parse().expect("a target")),
            decision: ConnectionDecision::Refused,
            address: None,
            sent: 0,
            received: 0,
            reason: "no".to_owned(),
            count: 1,
            since: None,
        }
    }

    #[test]
    fn however_many_there_are_a_window_has_few_records_and_counts_all() {
        let mut merger = Merger::default();
        let mut written = 0;
        for number in 0..31_000 {
            let record = refusal(number, &format!("h{number}.evil:443"));
            written += u64::from(merger.is_first(&record));
            written += u64::from(merger.is_first(&refusal(number, "same.evil:443")));
        }
        assert_eq!(written, 32);
        assert!(!merger.is_over(Timestamp::from_millis(59_999)));
        assert!(merger.is_over(Timestamp::from_millis(60_000)));
        let counted = merger.close();
        assert_eq!(counted.len(), 2);
        assert_eq!(counted.iter().map(|it| it.count).sum::<u64>(), 62_000 - 32);
        let same = counted.iter().find(|it| it.target.is_some()).expect("the repeated one");
        assert_eq!((same.count, same.since), (30_999, Some(Timestamp::from_millis(1))));
        assert_eq!(same.at, Timestamp::from_millis(30_999));
        assert!(merger.close().is_empty() && !merger.is_over(Timestamp::from_millis(1 << 40)));
        assert!(merger.is_first(&refusal(1, "same.evil:443")), "a new window");
    }
}
