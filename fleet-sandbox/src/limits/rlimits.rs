//! The limits of a process, where no control group holds a cap.

use std::os::unix::fs::MetadataExt as _;

use fleet_core::isolation::{EnforcementLevel, EnforcementRow, Resources};
use fleet_core::limits::{Cap, Rlimit, rlimit};
use rustix::process::{Resource, Rlimit as Value, getrlimit, getuid, setrlimit};

/// Sets what the limits of this process, and of all that it starts, can do for these caps, and says
/// in the rows what that is. A row that holds already stays.
pub(super) fn apply(caps: &[Cap], resources: Resources, rows: &mut [EnforcementRow]) {
    for cap in caps {
        let Some(row) = rows.iter_mut().find(|row| row.item == cap.item()) else { continue };
        if row.level == EnforcementLevel::Enforced {
            continue;
        }
        match rlimit(*cap, resources, getuid().is_root()) {
            Err(why) => row.evidence = format!("{}; {why}", row.evidence),
            Ok(limit) if set(limit) => {
                row.level = EnforcementLevel::Degraded;
                row.evidence = format!("{} ({})", limit.words(), row.evidence);
            }
            Ok(_) => row.evidence = format!("{}; no limit of a process was set", row.evidence),
        }
    }
}

/// Whether the kernel has it now.
fn set(limit: Rlimit) -> bool {
    let (resource, value) = match limit {
        Rlimit::AddressSpace(bytes) => (Resource::As, bytes),
        Rlimit::Processes(count) => (Resource::Nproc, tasks().saturating_add(count.into())),
    };
    let wanted = Value { current: Some(value), maximum: Some(value) };
    // A limit that is tighter already stays as it is: it cannot be raised.
    let before = getrlimit(resource).maximum;
    if before.is_none_or(|before| before > value) && setrlimit(resource, wanted).is_err() {
        return false;
    }
    getrlimit(resource).maximum.is_some_and(|now| now <= value)
}

/// Tasks of this user, which the kernel counts all.
fn tasks() -> u64 {
    let own = getuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    entries
        .flatten()
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
        })
        .filter(|entry| entry.metadata().is_ok_and(|about| about.uid() == own))
        .filter_map(|entry| std::fs::read_dir(entry.path().join("task")).ok())
        .map(|tasks| u64::try_from(tasks.count()).unwrap_or(u64::MAX))
        .fold(0, u64::saturating_add)
}
