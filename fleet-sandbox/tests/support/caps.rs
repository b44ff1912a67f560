//! Launches under caps.

use camino::Utf8PathBuf;
use fleet_core::isolation::{Cpu, EnforcementLevel, Item, MemoryBytes, Resources};
use fleet_core::limits::{
    Attempt, Cap, GroupPrefix, LimitFacts, LimitRequest, Means, attempts, hierarchies,
};
use fleet_core::port::ResourceLimits as _;
use fleet_sandbox::HostLimits;

use super::{Launch, Outcome};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const ALL: Resources = Resources {
    cpu: Some(Cpu { millis: 500 }),
    memory: Some(MemoryBytes(64 * MIB)),
    pids: Some(40),
};

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

pub(crate) fn facts() -> LimitFacts {
    block_on(HostLimits::default().facts())
}

/// The runtime directory of the user manager that `scripts/with-user-manager.sh` has started for this
/// run, and nobody else's: what is tried with it is not for the manager of a real session.
pub(crate) fn runtime_dir() -> Option<Utf8PathBuf> {
    std::env::var("OURS_FLEET_TEST_USER_MANAGER").ok()?;
    std::env::var("XDG_RUNTIME_DIR").ok().map(Into::into)
}

/// The machine with that user manager.
pub(crate) fn with_manager() -> HostLimits {
    HostLimits::new(runtime_dir())
}

/// Leaves the test unless it runs beside a user manager of its own.
macro_rules! need_manager {
    () => {
        if crate::support::caps::runtime_dir().is_none() {
            crate::support::skip!("no user manager: scripts/with-user-manager.sh runs it with one");
        }
    };
}
pub(crate) use need_manager;

/// Whether a control group holds every cap here.
pub(crate) fn groups_hold() -> bool {
    let facts = facts();
    Cap::ALL
        .into_iter()
        .all(|cap| facts.of(Means::Group, cap).is_some_and(|fact| fact.usable.is_ok()))
}

/// Leaves the test unless control groups hold every cap here.
macro_rules! need_groups {
    () => {
        if !crate::support::caps::groups_hold() {
            crate::support::skip!("no control group that holds every cap can be made here");
        }
    };
}
pub(crate) use need_groups;

/// The prefix of a fleet that exists only in one test.
pub(crate) fn prefix(launch: &Launch) -> GroupPrefix {
    GroupPrefix::new(&"Me".parse().expect("a name"), &launch.base)
}

pub(crate) fn capped(resources: Resources, attempts: Vec<Attempt>) -> Launch {
    let mut launch = Launch::new();
    launch.limits = Some(LimitRequest {
        resources,
        strict: None,
        group: prefix(&launch).launch(&"launch-1".parse().expect("an id")),
        record: launch.control.join("groups.json"),
        attempts,
        runtime_dir: runtime_dir(),
    });
    launch
}

pub(crate) fn usual(resources: Resources) -> Launch {
    capped(resources, attempts(&facts(), resources))
}

/// Groups that cannot be made: what a plain user meets on a machine that hands nothing on.
pub(crate) fn impossible() -> Vec<Attempt> {
    let caps = vec![Cap::Mem, Cap::Pids, Cap::Cpu];
    vec![Attempt { means: Means::Rlimits, caps: Vec::new(), rlimits: caps }]
}

/// Directories of this name in the trees of this process.
pub(crate) fn groups_named(name: &str) -> Vec<Utf8PathBuf> {
    let text = |path: &str| std::fs::read_to_string(path).expect("of this process");
    let trees = hierarchies(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup"));
    let mut found = Vec::new();
    for tree in trees {
        let mut parent = Utf8PathBuf::from(tree.group);
        while parent.as_str().starts_with(&tree.mount) {
            found.extend(Some(parent.join(name)).filter(|path| path.exists()));
            if !parent.pop() {
                break;
            }
        }
    }
    found
}

pub(crate) fn group_of(launch: &Launch) -> String {
    launch.limits.as_ref().expect("caps").group.to_string()
}

pub(crate) fn row(outcome: &Outcome, item: Item) -> (EnforcementLevel, String) {
    outcome
        .rows()
        .into_iter()
        .find_map(|(found, level, evidence)| (found == item).then_some((level, evidence)))
        .unwrap_or_else(|| panic!("no row {item:?}"))
}
