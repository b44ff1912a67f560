//! Reads back what the kernel holds the calling process to.

use std::collections::BTreeMap;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{EnforcementRow, Resources};
use fleet_core::limits::{Cap, Hierarchy, Reading, Version, asked, hierarchies, judge, read_files};

/// The trees of this process; none where `/proc` does not tell.
pub(super) fn own_hierarchies() -> Vec<Hierarchy> {
    hierarchies_of("self")
}

/// The trees of a process, as this one sees them.
pub(super) fn hierarchies_of(process: &str) -> Vec<Hierarchy> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    hierarchies(&text("/proc/self/mountinfo"), &text(&format!("/proc/{process}/cgroup")))
}

/// The tree that has a controller. Of version 2 it is the group that tells, or those above it: what
/// a group was not given it cannot read, and what one above it limits holds for it too.
pub(super) fn tree_of(cap: Cap, all: &[Hierarchy]) -> Option<&Hierarchy> {
    let named = |tree: &&Hierarchy| {
        tree.version == Version::V1 && tree.controllers.iter().any(|name| name == cap.controller())
    };
    all.iter().find(named).or_else(|| {
        all.iter().find(|tree| {
            tree.version == Version::V2 && upwards(tree).any(|group| has_controller(&group, cap))
        })
    })
}

/// Whether a group of version 2 has a controller.
pub(super) fn has_controller(group: &Utf8Path, cap: Cap) -> bool {
    fs::read_to_string(group.join("cgroup.controllers"))
        .is_ok_and(|list| list.split_ascii_whitespace().any(|name| name == cap.controller()))
}

/// A process's own group and those above it, up to the mount.
pub(super) fn upwards(tree: &Hierarchy) -> impl Iterator<Item = Utf8PathBuf> + use<> {
    let mount = Utf8PathBuf::from(&tree.mount);
    let mut next = Some(Utf8PathBuf::from(&tree.group));
    std::iter::from_fn(move || {
        let here = next.take()?;
        if here != mount {
            next = here.parent().filter(|up| up.starts_with(&mount)).map(Utf8Path::to_owned);
        }
        Some(here)
    })
}

/// One row for each cap that is asked for.
pub(super) fn rows(resources: Resources) -> Vec<EnforcementRow> {
    let all = own_hierarchies();
    let swap = has_swap();
    asked(resources).filter_map(|cap| judge(cap, resources, &reading(cap, &all, swap))).collect()
}

fn reading(cap: Cap, all: &[Hierarchy], swap: bool) -> Reading {
    let Some(tree) = tree_of(cap, all) else { return Reading { swap, ..Reading::default() } };
    let groups = upwards(tree).map(|group| files(tree.version, &group, cap)).collect();
    Reading { version: Some(tree.version), groups, swap }
}

/// What one group alone says of a cap.
pub(super) fn judge_group(
    version: Version,
    group: &Utf8Path,
    cap: Cap,
    resources: Resources,
) -> Option<EnforcementRow> {
    let groups = vec![files(version, group, cap)];
    judge(cap, resources, &Reading { version: Some(version), groups, swap: has_swap() })
}

fn files(version: Version, group: &Utf8Path, cap: Cap) -> BTreeMap<&'static str, String> {
    let content = |file: &&'static str| Some((*file, fs::read_to_string(group.join(file)).ok()?));
    read_files(version, cap).iter().filter_map(content).collect()
}

/// A table with a line below its heading. Where it cannot be read there may be some.
fn has_swap() -> bool {
    fs::read_to_string("/proc/swaps").map_or(true, |table| table.lines().count() > 1)
}
