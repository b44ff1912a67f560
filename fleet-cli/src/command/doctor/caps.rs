//! Which caps this machine can hold, by what, and why not by something better.

use fleet_core::config::{Fleet, Role};
use fleet_core::isolation::{EnforcementLevel, Resources};
use fleet_core::limits::{self, Cap, LimitFacts, Means, UserManager, strict_caps};

use super::{Check, Level};
use crate::resolved::ResolvedRole;

const ID: &str = "isolation: caps";
const MANAGER: &str = "isolation: user manager";

/// Whether a role asks for any.
pub(super) fn asks(role: &Role) -> bool {
    role.isolation.as_ref().is_some_and(|block| block.resources != Resources::default())
}

/// One line for the machine. Worth a look only where a role asks for caps.
pub(super) fn host(facts: &LimitFacts, needed: bool) -> Check {
    let mut lacking = false;
    let words: Vec<String> = [Cap::Mem, Cap::Pids, Cap::Cpu]
        .into_iter()
        .map(|cap| {
            let tried = Means::TOGETHER.into_iter().filter_map(|means| facts.of(means, cap));
            let (held, reasons): (Vec<_>, Vec<_>) = tried.partition(|fact| fact.usable.is_ok());
            let name = cap.as_str();
            if let Some(Ok(how)) = held.first().map(|fact| &fact.usable) {
                return format!("{name} by {how}");
            }
            lacking = true;
            let reasons: Vec<String> = reasons
                .iter()
                .filter_map(|fact| Some(format!("{}: {}", fact.means, fact.usable.as_ref().err()?)))
                .collect();
            format!("{name} by no group ({})", reasons.join("; "))
        })
        .collect();
    let level = if lacking && needed { Level::Warn } else { Level::Pass };
    let check = Check::new(ID, level, words.join("; "));
    if level == Level::Pass { check } else { check.fix(remedy(facts)) }
}

/// One line on the user's systemd: whether it answers, and what it holds in the scopes that it makes.
/// Nothing where the machine is not run by systemd.
pub(super) fn manager(facts: &LimitFacts) -> Option<Check> {
    let pass = |words: String| Some(Check::new(MANAGER, Level::Pass, words));
    match &facts.manager {
        UserManager::Absent => None,
        UserManager::Silent(why) => pass(format!("none: {why}")),
        UserManager::Answers => {
            let held = |cap: &Cap| facts.of(Means::Scope, *cap).is_some_and(|it| it.usable.is_ok());
            let words = |caps: Vec<Cap>| {
                let names: Vec<&str> = caps.into_iter().map(Cap::controller).collect();
                if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
            };
            let (held, rest): (Vec<Cap>, Vec<Cap>) = Cap::ALL.into_iter().partition(held);
            pass(format!(
                "answers; seen to hold in a scope: {}; not handed on to it: {}",
                words(held),
                words(rest)
            ))
        }
    }
}

/// What to do about a cap that does not hold on this machine.
pub(super) fn remedy(facts: &LimitFacts) -> &'static str {
    match facts.manager {
        UserManager::Absent => ELSEWHERE,
        UserManager::Silent(_) => LINGER,
        UserManager::Answers => DELEGATE,
    }
}

const ELSEWHERE: &str = "start the fleet as root, or in a control group that this user may write and \
                         that has the controllers cpu, memory and pids";
const LINGER: &str = "let a user manager run for this user: `loginctl enable-linger USER`, as root, and \
                      log in anew, so that XDG_RUNTIME_DIR is set; or start the fleet as root";
const DELEGATE: &str = "hand the controllers on to user managers: `[Service]` and `Delegate=cpu cpuset \
                        io memory pids` in /etc/systemd/system/user@.service.d/delegate.conf, then \
                        `systemctl daemon-reload`, as root, and log in anew; or start the fleet as root";

/// Whether the caps of one role hold.
pub(super) fn role(
    fleet: &Fleet,
    resolved: &ResolvedRole<'_>,
    remedy: &'static str,
) -> Option<Check> {
    let role = resolved.role;
    let block = role.isolation.as_ref().filter(|_| asks(role))?;
    let caps = [Cap::Mem, Cap::Pids, Cap::Cpu].map(Cap::item);
    let rows: Vec<_> =
        resolved.promise.iter().filter(|row| caps.contains(&row.item)).cloned().collect();
    let name = format!("{} caps", role.name);
    let check = |level, detail: String| {
        Check::new("isolation", level, detail).role(role.name.as_str()).named(&name)
    };
    if rows.is_empty() {
        return None;
    }
    let Some(weak) = limits::weakest(&rows) else {
        let words: Vec<String> =
            rows.iter().map(|row| format!("{}: {}", row.item.as_str(), row.asked)).collect();
        return Some(check(Level::Pass, format!("{}; read back at each start", words.join(", "))));
    };
    let (item, evidence) = (weak.item.as_str(), &weak.evidence);
    let must = strict_caps(block, fleet.policy.require.needs_caps(&fleet.provenance));
    Some(match must {
        Some(why) => {
            check(Level::Fail, format!("{item}: {evidence}; {why} refuses a start without it"))
                .fix(remedy)
        }
        None if weak.level == EnforcementLevel::Degraded => {
            check(Level::Warn, format!("{item} holds in part: {evidence}")).fix(remedy)
        }
        None => check(Level::Warn, format!("{item} does not hold: {evidence}")).fix(remedy),
    })
}

#[cfg(test)]
mod tests {
    use fleet_core::isolation::BackendName;
    use fleet_core::limits::CapFact;

    use super::super::tests::{bare, fleet as fleet_of};
    use super::*;

    fn facts(usable: &[Cap]) -> LimitFacts {
        let fact = |cap: Cap| {
            let held = usable.contains(&cap).then(|| "cgroup v1".to_owned());
            CapFact { means: Means::Group, cap, usable: held.ok_or("EACCES".to_owned()) }
        };
        LimitFacts { tried: Cap::ALL.map(fact).to_vec(), ..LimitFacts::default() }
    }

    /// A user manager is advised only where there may be one, and its words are those of the trial.
    #[test]
    fn what_is_advised_depends_on_the_user_manager() {
        let scope = |cap: Cap| {
            let held = (cap == Cap::Pids).then(|| "a systemd scope, cgroup v2".to_owned());
            let usable = held.ok_or("a scope starts, but pids.max is not set".to_owned());
            CapFact { means: Means::Scope, cap, usable }
        };
        for (manager, tried, advised, row) in [
            (UserManager::Absent, Vec::new(), "start the fleet as root", None),
            (
                UserManager::Silent("no socket".to_owned()),
                Vec::new(),
                "enable-linger",
                Some("none: no socket"),
            ),
            (
                UserManager::Answers,
                Cap::ALL.map(scope).to_vec(),
                "Delegate=cpu cpuset io memory pids",
                Some("answers; seen to hold in a scope: pids; not handed on to it: cpu, memory"),
            ),
        ] {
            let facts = LimitFacts { manager, tried, ..LimitFacts::default() };
            assert!(remedy(&facts).contains(advised), "{}", remedy(&facts));
            assert_eq!(super::manager(&facts).map(|it| it.detail).as_deref(), row);
            assert_eq!(host(&facts, true).fix.as_deref(), Some(remedy(&facts)));
        }
    }

    #[test]
    fn the_machine_is_told_with_its_reasons() {
        let all = host(&facts(&Cap::ALL), true);
        assert_eq!((all.level, all.fix.is_some()), (Level::Pass, false));
        assert_eq!(all.detail, "mem by cgroup v1; pids by cgroup v1; cpu by cgroup v1");
        let some = host(&facts(&[Cap::Mem]), true);
        assert_eq!((some.level, some.fix.is_some()), (Level::Warn, true));
        assert!(some.detail.contains("pids by no group (cgroup: EACCES)"), "{}", some.detail);
        assert_eq!(host(&facts(&[]), false).level, Level::Pass, "nobody asks");
    }

    #[test]
    fn a_role_whose_caps_must_hold_fails_where_they_cannot() {
        for (policy, strict, usable, level) in [
            ("", "", &[Cap::Pids][..], Level::Pass),
            ("", "", &[], Level::Warn),
            ("", ", on_unavailable: strict", &[], Level::Fail),
            ("policy: {require: {resources: [pids]}}\n", "", &[], Level::Fail),
        ] {
            let fleet = fleet_of(&format!(
                "{policy}roles: {{A: {{isolation: {{network: deny, resources: {{pids: 64}}{strict}}}}}}}"
            ));
            let role = fleet.roles.values().next().expect("one");
            let mut resolved = bare(role);
            let resources = role.isolation.as_ref().expect("a block").resources;
            resolved.promise = limits::promise(&facts(usable), resources, BackendName::Bubblewrap);
            let check = super::role(&fleet, &resolved, ELSEWHERE).expect("a row");
            assert_eq!((check.name.as_str(), check.level), ("isolation: A caps", level));
            assert_eq!(check.fix.is_some(), level != Level::Pass);
        }
        let fleet = fleet_of("roles: {A: {isolation: {network: deny}}}");
        let only = fleet.roles.values().next().expect("one");
        assert!(role(&fleet, &bare(only), ELSEWHERE).is_none());
    }
}
