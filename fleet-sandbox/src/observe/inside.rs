//! Puts together what was seen from outside and what was answered from inside.

use fleet_core::attest::{AttestRecord, AttestRequest};
use fleet_core::isolation::{EnforcementLevel, EnforcementRow};

/// The rows of an observation with the answers: one is `enforced` only if both say so. Rows that the
/// sandbox was not asked about stay as they are; without an answer no other one holds.
pub fn agree(
    mut rows: Vec<EnforcementRow>,
    request: &AttestRequest,
    record: Option<&AttestRecord>,
) -> Vec<EnforcementRow> {
    for row in &mut rows {
        let asked = request.count(row.item);
        if asked == 0 {
            continue;
        }
        let answers = record.and_then(|record| record.item(row.item));
        let (level, said) = match answers {
            None => (EnforcementLevel::Missing, "nothing was answered from inside".to_owned()),
            Some(answers) if answers.failed > 0 => {
                let failures: Vec<String> =
                    answers.failures.iter().map(ToString::to_string).collect();
                let word = format!("from inside {}", failures.join("; "));
                (EnforcementLevel::Missing, word)
            }
            Some(answers) if answers.held != asked => (
                EnforcementLevel::Missing,
                format!("from inside only {} of {asked} checks were made", answers.held),
            ),
            Some(_) => {
                let s = if asked == 1 { "" } else { "s" };
                (EnforcementLevel::Enforced, format!("{asked} check{s} from inside"))
            }
        };
        if level != EnforcementLevel::Enforced {
            row.level = level;
        }
        // Where the command ended before it could be looked at, only a no is news.
        if row.evidence != EnforcementRow::ENDED_EARLY
            || answers.is_some_and(|answers| answers.failed > 0)
        {
            row.evidence = format!("{}; {said}", row.evidence);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use fleet_core::attest::{AttestCheck, Failure, Probe};
    use fleet_core::isolation::Item;

    use super::*;

    use EnforcementLevel::{Degraded, Enforced, Missing};

    fn row(level: EnforcementLevel) -> EnforcementRow {
        EnforcementRow {
            item: Item::Ipc,
            asked: "own only".to_owned(),
            level,
            evidence: "outside".to_owned(),
        }
    }

    fn judged(outside: EnforcementLevel, answers: Option<&[bool]>) -> (EnforcementLevel, String) {
        let check = AttestCheck::new(Item::Ipc, Probe::Filtered);
        let request = AttestRequest::new(vec![check.clone(), check]);
        let record = answers.map(|answers| {
            AttestRecord::of(answers.iter().map(|held| {
                let failure = Failure { check: "c".to_owned(), saw: "s".to_owned() };
                (Item::Ipc, (!held).then_some(failure))
            }))
        });
        let row = agree(vec![row(outside)], &request, record.as_ref()).remove(0);
        (row.level, row.evidence)
    }

    #[test]
    fn a_row_is_enforced_only_if_both_sides_say_so() {
        for (outside, answers, level, part) in [
            (Enforced, Some(&[true, true][..]), Enforced, "outside; 2 checks from inside"),
            (Enforced, Some(&[true, false]), Missing, "outside; from inside not true that c: s"),
            (Enforced, Some(&[true]), Missing, "only 1 of 2 checks"),
            (Enforced, Some(&[]), Missing, "nothing was answered"),
            (Enforced, None, Missing, "nothing was answered"),
            (Degraded, Some(&[true, true]), Degraded, "2 checks"),
            (Missing, Some(&[true, true]), Missing, "2 checks"),
            (Degraded, Some(&[false, true]), Missing, "not true"),
            (Degraded, None, Missing, "nothing was answered"),
        ] {
            let (found, evidence) = judged(outside, answers);
            assert_eq!(found, level, "{answers:?}: {evidence}");
            assert!(evidence.contains(part), "{evidence}");
        }
    }

    #[test]
    fn a_row_that_nobody_asked_about_rests_on_the_outside_alone() {
        let rows = agree(vec![row(Enforced)], &AttestRequest::new(Vec::new()), None);
        assert_eq!(rows, [row(Enforced)]);
    }
}
