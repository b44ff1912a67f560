//! [`HostLimits`]: what this machine can hold, and what launches left behind.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use camino::Utf8Path;
use fleet_core::isolation::{Cpu, MemoryBytes, Resources};
use fleet_core::limits::{Cap, CapFact, GroupName, GroupPrefix, GroupRecord, LimitFacts, Means};
use fleet_core::port::{ResourceLimits, SweepError};

use super::groups::{self, Groups};

/// What a trial asks for: what any role may ask for.
const TRIAL: Resources = Resources {
    cpu: Some(Cpu { millis: 1000 }),
    memory: Some(MemoryBytes(64 << 20)),
    pids: Some(64),
};
/// No record is larger.
const LARGEST: u64 = 64 * 1024;

/// The machine's own means: control groups below the caller's, and the limits of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostLimits;

#[async_trait]
impl ResourceLimits for HostLimits {
    async fn facts(&self) -> LimitFacts {
        // Some dozen system calls on files in memory.
        let tried = Cap::ALL
            .into_iter()
            .flat_map(|cap| {
                let scope = Err("not in this build".to_owned());
                [(Means::Scope, scope), (Means::Group, try_group(cap))]
                    .map(|(means, usable)| CapFact { means, cap, usable })
            })
            .collect();
        LimitFacts { root: rustix::process::getuid().is_root(), tried }
    }

    async fn sweep(
        &self,
        record: &Utf8Path,
        prefix: &GroupPrefix,
    ) -> Result<Vec<String>, SweepError> {
        let Some(known) = read(record) else { return Ok(Vec::new()) };
        let mut removed = Vec::new();
        for parent in known.parents.iter().filter(|parent| groups::is_control_group(parent)) {
            let Ok(entries) = parent.read_dir_utf8() else { continue };
            for entry in entries.flatten().filter(|entry| prefix.is_of(entry.file_name())) {
                groups::remove(entry.path())
                    .map_err(|reason| SweepError { group: entry.file_name().to_owned(), reason })?;
                removed.push(entry.file_name().to_owned());
            }
        }
        match std::fs::remove_file(record) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(SweepError { group: record.to_string(), reason: error.to_string() });
            }
        }
        removed.sort();
        removed.dedup();
        Ok(removed)
    }
}

fn read(record: &Utf8Path) -> Option<GroupRecord> {
    use std::io::Read as _;
    let mut text = Vec::new();
    std::fs::File::open(record).ok()?.take(LARGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Makes a group with one cap, reads it back, and removes it.
fn try_group(cap: Cap) -> Result<String, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name: GroupName = format!("ours-fleet-trial-{}-{number}", std::process::id())
        .parse()
        .map_err(|error: fleet_core::limits::NotAGroup| error.to_string())?;
    let mut groups = Groups::make(&name, &[cap], TRIAL, &mut |_| Ok(()))?;
    let held = groups.read_back(cap, TRIAL);
    groups.remove()?;
    held
}
