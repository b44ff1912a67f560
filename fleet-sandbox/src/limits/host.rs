//! [`HostLimits`]: what this machine can hold, and what launches left behind.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{Cpu, MemoryBytes, Resources};
use fleet_core::limits::{
    Cap, CapFact, GroupName, GroupPrefix, GroupRecord, LimitFacts, Means, UserManager,
};
use fleet_core::port::{ResourceLimits, SweepError};

use super::groups::{self, Groups};
use super::manager::Manager;
use super::scope::{Keeper, Scope};

/// What a trial asks for: what any role may ask for.
const TRIAL: Resources = Resources {
    cpu: Some(Cpu { millis: 1000 }),
    memory: Some(MemoryBytes(64 << 20)),
    pids: Some(64),
};
/// No record is larger.
const LARGEST: u64 = 64 * 1024;

/// The machine's own means: scopes of the user's systemd, control groups below the caller's, and the
/// limits of a process.
#[derive(Debug, Clone, Default)]
pub struct HostLimits {
    runtime_dir: Option<Utf8PathBuf>,
}

impl HostLimits {
    /// With the runtime directory of the fleet's user, in which the user manager is reached; none by
    /// default, and then no scope can be made.
    pub fn new(runtime_dir: Option<Utf8PathBuf>) -> Self {
        Self { runtime_dir }
    }
}

#[async_trait]
impl ResourceLimits for HostLimits {
    async fn facts(&self) -> LimitFacts {
        // Some dozen system calls on files in memory, and three questions to a manager.
        let runtime_dir = self.runtime_dir.as_deref();
        let manager = Manager::presence(runtime_dir);
        let scope = try_scope(&manager, runtime_dir);
        let tried = Cap::ALL
            .into_iter()
            .zip(scope)
            .flat_map(|(cap, scope)| {
                [(Means::Scope, scope), (Means::Group, try_group(cap))]
                    .map(|(means, usable)| CapFact { means, cap, usable })
            })
            .collect();
        LimitFacts { root: rustix::process::getuid().is_root(), manager, tried }
    }

    async fn sweep(
        &self,
        record: &Utf8Path,
        prefix: &GroupPrefix,
    ) -> Result<Vec<String>, SweepError> {
        let Some(known) = read(record) else { return Ok(Vec::new()) };
        let mut removed = Vec::new();
        // A scope whose place was not noted yet is known by its name alone.
        if let (Some(directory), Some(name)) = (&known.scope, &known.group)
            && prefix.is_of(name.as_str())
            && let Ok(mut manager) = Manager::connect(Some(directory))
        {
            let unit = name.scope();
            match manager.stop(&unit) {
                Ok(true) => removed.push(unit),
                Ok(false) => {}
                Err(reason) => return Err(SweepError { group: unit, reason }),
            }
        }
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

fn trial_name() -> Result<GroupName, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("ours-fleet-trial-{}-{number}", std::process::id())
        .parse()
        .map_err(|error: fleet_core::limits::NotAGroup| error.to_string())
}

/// Makes a scope with all caps, reads back which of them it holds, in their order, and removes it.
fn try_scope(
    manager: &UserManager,
    runtime_dir: Option<&Utf8Path>,
) -> [Result<String, String>; Cap::ALL.len()] {
    let made = || match manager {
        UserManager::Absent => Err("this machine is not run by systemd".to_owned()),
        UserManager::Silent(why) => Err(why.clone()),
        UserManager::Answers => {
            Scope::make(&trial_name()?, runtime_dir, TRIAL, Keeper::start()?, None)
        }
    };
    match made() {
        Err(why) => Cap::ALL.map(|_| Err(why.clone())),
        Ok(scope) => Cap::ALL.map(|cap| {
            let held = scope.groups().read_back(cap, TRIAL);
            held.map(|version| format!("a systemd scope, {version}")).map_err(|why| {
                format!("a scope starts, but the user manager does not hold it in it: {why}")
            })
        }),
    }
}

/// Makes a group with one cap, reads it back, and removes it.
fn try_group(cap: Cap) -> Result<String, String> {
    let name = trial_name()?;
    let mut groups = Groups::make(&name, &[cap], TRIAL, &mut |_| Ok(()))?;
    let held = groups.read_back(cap, TRIAL);
    groups.remove()?;
    held
}
