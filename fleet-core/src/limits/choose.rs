use serde::{Deserialize, Serialize};

use super::{Cap, LimitFacts, Means, asked, rlimit};
use crate::isolation::{
    BackendName, EnforcementLevel, EnforcementRow, IsolationBlock, OnUnavailable, Resources,
};

/// One way to set caps: some by one means, the others, as far as they go, by the limits of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The means.
    pub means: Means,
    /// What it must be seen to hold, or the next attempt is made.
    pub caps: Vec<Cap>,
    /// What is left to the limits of a process.
    pub rlimits: Vec<Cap>,
}

/// What to try, in order: a means that holds every cap before one that holds some, and of equals the
/// better one. The last attempt, the limits of a process alone, always goes on, with what it can do.
/// Empty if nothing is asked.
pub fn attempts(facts: &LimitFacts, resources: Resources) -> Vec<Attempt> {
    let caps: Vec<Cap> = asked(resources).collect();
    if caps.is_empty() {
        return Vec::new();
    }
    let attempt = |means: Means| {
        let (held, rest): (Vec<Cap>, Vec<Cap>) =
            caps.iter().copied().partition(|cap| facts.holds(means, *cap));
        Attempt { means, caps: held, rlimits: rest }
    };
    let mut list: Vec<Attempt> = Means::TOGETHER
        .map(attempt)
        .into_iter()
        .filter(|attempt| !attempt.caps.is_empty())
        .collect();
    // Stable: of equals the first stays first.
    list.sort_by_key(|attempt| attempt.rlimits.len());
    list.push(Attempt { means: Means::Rlimits, caps: Vec::new(), rlimits: caps });
    list
}

/// The rule by which a cap that does not hold refuses a launch, if there is one: what the role says, or
/// `required`, the rule of the fleet as
/// [`Require::needs_caps`](crate::policy::require::Require::needs_caps) words it. Without one the start
/// goes on and the report says what is missing: a missing cap never costs the sandbox.
pub fn strict_caps(block: &IsolationBlock, required: Option<String>) -> Option<String> {
    required.or_else(|| {
        let strict = block.on_unavailable == Some(OnUnavailable::Strict);
        strict.then(|| "`on_unavailable: strict`".to_owned())
    })
}

/// The evidence of a row that no cap stands behind.
const UNCAPPED: &str = "not enforced with podman in this build";

/// Whether caps are set on what a backend starts. What podman starts would not be in the group that
/// is made for its client, and is capped by nothing: said, instead of a cap on the wrong process.
pub fn capped(backend: BackendName) -> bool {
    backend != BackendName::Podman
}

fn rows(resources: Resources, level: EnforcementLevel, evidence: &str) -> Vec<EnforcementRow> {
    asked(resources)
        .filter_map(|cap| {
            let (item, evidence) = (cap.item(), evidence.to_owned());
            Some(EnforcementRow { item, asked: cap.asked(resources)?, level, evidence })
        })
        .collect()
}

/// The rows that a launch on this machine promises for its caps. What a launch really holds is read
/// back. A command without a sandbox can undo what its user may set.
pub fn promise(
    facts: &LimitFacts,
    resources: Resources,
    backend: BackendName,
) -> Vec<EnforcementRow> {
    if !capped(backend) {
        return rows(resources, EnforcementLevel::Missing, UNCAPPED);
    }
    let isolated = backend != BackendName::None;
    let first = attempts(facts, resources).into_iter().next();
    asked(resources)
        .filter_map(|cap| {
            let held = first.as_ref().filter(|attempt| attempt.caps.contains(&cap));
            let (level, evidence) = match held.and_then(|attempt| facts.of(attempt.means, cap)) {
                Some(fact) if isolated => (
                    EnforcementLevel::Enforced,
                    format!("set from outside by {}, and read back", describe(fact)),
                ),
                Some(fact) => (
                    EnforcementLevel::Degraded,
                    format!("set by {}; without a sandbox it can be undone", describe(fact)),
                ),
                None => weak(facts, cap, resources),
            };
            Some(EnforcementRow { item: cap.item(), asked: cap.asked(resources)?, level, evidence })
        })
        .collect()
}

fn describe(fact: &super::CapFact) -> String {
    match &fact.usable {
        Ok(how) if how.is_empty() => fact.means.to_string(),
        Ok(how) => how.clone(),
        Err(why) => why.clone(),
    }
}

fn weak(facts: &LimitFacts, cap: Cap, resources: Resources) -> (EnforcementLevel, String) {
    let why: Vec<String> = Means::TOGETHER
        .into_iter()
        .filter_map(|means| {
            let why = facts.of(means, cap)?.usable.as_ref().err()?;
            Some(format!("{means}: {why}"))
        })
        .collect();
    let why = if why.is_empty() { "nothing was tried".to_owned() } else { why.join("; ") };
    match rlimit(cap, resources, facts.root) {
        Ok(limit) => (EnforcementLevel::Degraded, format!("{} ({why})", limit.words())),
        Err(lacks) => (EnforcementLevel::Missing, format!("{why}; {lacks}")),
    }
}

/// The rows where no trial was made: what a launch does wherever it can.
pub fn assumed(resources: Resources, backend: BackendName) -> Vec<EnforcementRow> {
    let (level, evidence) = match backend {
        BackendName::None => (
            EnforcementLevel::Degraded,
            "set, if this machine can; without a sandbox it can be undone",
        ),
        _ if !capped(backend) => (EnforcementLevel::Missing, UNCAPPED),
        _ => (
            EnforcementLevel::Enforced,
            "set from outside, if this machine can (`doctor` tries it)",
        ),
    };
    rows(resources, level, evidence)
}

/// The first row that does not fully hold, for a refusal.
pub fn weakest(rows: &[EnforcementRow]) -> Option<&EnforcementRow> {
    rows.iter()
        .find(|row| row.level == EnforcementLevel::Missing)
        .or_else(|| rows.iter().find(|row| row.level != EnforcementLevel::Enforced))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::{Cpu, MemoryBytes};
    use crate::limits::CapFact;

    use EnforcementLevel::{Degraded, Enforced, Missing};

    const ALL: Resources = Resources {
        cpu: Some(Cpu { millis: 200 }),
        memory: Some(MemoryBytes(64 << 20)),
        pids: Some(20),
    };

    fn facts(usable: &[(Means, Cap)]) -> LimitFacts {
        let tried = Means::TOGETHER.iter().flat_map(|means| {
            Cap::ALL.map(|cap| CapFact {
                means: *means,
                cap,
                usable: if usable.contains(&(*means, cap)) {
                    Ok(format!("by {means}"))
                } else {
                    Err(format!("no {means}"))
                },
            })
        });
        LimitFacts { tried: tried.collect(), ..LimitFacts::default() }
    }

    fn order(facts: &LimitFacts) -> Vec<(Means, usize)> {
        attempts(facts, ALL).iter().map(|it| (it.means, it.caps.len())).collect()
    }

    #[test]
    fn the_best_means_that_holds_most_comes_first() {
        use Means::{Group, Rlimits, Scope};
        let all = |means| Cap::ALL.map(|cap| (means, cap));
        assert_eq!(order(&LimitFacts::default()), [(Rlimits, 0)]);
        assert_eq!(order(&facts(&all(Group))), [(Group, 3), (Rlimits, 0)]);
        let both: Vec<_> = all(Scope).into_iter().chain(all(Group)).collect();
        assert_eq!(order(&facts(&both)), [(Scope, 3), (Group, 3), (Rlimits, 0)]);
        let less: Vec<_> = both.iter().copied().filter(|it| *it != (Scope, Cap::Cpu)).collect();
        assert_eq!(order(&facts(&less)), [(Group, 3), (Scope, 2), (Rlimits, 0)]);
        assert!(attempts(&facts(&both), Resources::default()).is_empty());
        for attempt in attempts(&facts(&less), ALL) {
            assert_eq!(attempt.caps.len() + attempt.rlimits.len(), 3, "each cap has its place");
        }
    }

    #[test]
    fn what_nothing_holds_is_promised_by_nobody() {
        let level = |facts: &LimitFacts| -> Vec<_> {
            promise(facts, ALL, BackendName::Bubblewrap).into_iter().map(|row| row.level).collect()
        };
        let root = LimitFacts { root: true, ..LimitFacts::default() };
        assert_eq!(level(&root), [Missing, Missing, Missing]);
        assert_eq!(level(&LimitFacts::default()), [Missing, Degraded, Missing]);
        let some = facts(&[(Means::Group, Cap::Mem)]);
        assert_eq!(level(&some), [Enforced, Degraded, Missing]);
        assert!(promise(&some, Resources::default(), BackendName::Bubblewrap).is_empty());
        let bare = promise(&some, ALL, BackendName::None);
        assert_eq!(bare[0].level, Degraded, "a command without a sandbox can undo it");
        let rows = promise(&some, ALL, BackendName::Bubblewrap);
        assert_eq!(weakest(&rows).map(|row| row.level), Some(Missing));
        assert_eq!(weakest(&rows[..2]).map(|row| row.level), Some(Degraded));
        assert_eq!(weakest(&rows[..1]), None);
        assert!(rows[2].evidence.contains("no cgroup"), "{}", rows[2].evidence);
    }

    #[test]
    fn what_podman_starts_is_capped_by_nothing_and_said_so() {
        let all = facts(&Cap::ALL.map(|cap| (Means::Group, cap)));
        for (backend, expected) in [
            (BackendName::Bubblewrap, Enforced),
            (BackendName::Landlock, Enforced),
            (BackendName::None, Degraded),
            (BackendName::Podman, Missing),
        ] {
            assert_eq!(capped(backend), expected != Missing, "{backend}");
            for rows in [promise(&all, ALL, backend), assumed(ALL, backend)] {
                let levels: Vec<_> = rows.iter().map(|row| row.level).collect();
                assert_eq!(levels, [expected; 3], "{backend}");
                let said = rows.iter().all(|row| row.evidence.contains("with podman"));
                assert_eq!(said, backend == BackendName::Podman, "{rows:?}");
            }
        }
    }
}
