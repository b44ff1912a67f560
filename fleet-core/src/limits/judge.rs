use std::collections::BTreeMap;

use crate::isolation::{EnforcementLevel, EnforcementRow, MemoryBytes, Resources};

use super::knob::{PERIOD, quota};
use super::{Cap, Version};

/// Memory is counted in pages, and a limit is rounded to them.
const PAGE: u64 = 65_536;

/// What the groups of a process say of one cap: its own first, then each above it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Version of the tree that has the controller; `None` if none has.
    pub version: Option<Version>,
    /// The files of each group that has them, by name.
    pub groups: Vec<BTreeMap<&'static str, String>>,
    /// Whether the machine has swap at all.
    pub swap: bool,
}

/// The files to read back for one cap.
pub fn read_files(version: Version, cap: Cap) -> &'static [&'static str] {
    match (version, cap) {
        (Version::V1, Cap::Mem) => {
            &["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swappiness"]
        }
        (Version::V2, Cap::Mem) => &["memory.max", "memory.swap.max"],
        (_, Cap::Pids) => &["pids.max"],
        (Version::V1, Cap::Cpu) => &["cpu.cfs_quota_us", "cpu.cfs_period_us"],
        (Version::V2, Cap::Cpu) => &["cpu.max"],
    }
}

impl Reading {
    /// The tightest value of a file in all groups; `None` where no group has a number in it.
    fn least(&self, file: &str) -> Option<u64> {
        let values = self.groups.iter().filter_map(|group| group.get(file));
        values.filter_map(|value| value.trim().parse().ok()).min()
    }

    /// The tightest share of processors, in thousandths, rounded up.
    fn share(&self, version: Version) -> Option<u64> {
        let of = |group: &BTreeMap<&'static str, String>| {
            let (quota, period) = match version {
                Version::V1 => {
                    (group.get("cpu.cfs_quota_us")?.trim(), group.get("cpu.cfs_period_us")?.trim())
                }
                Version::V2 => group.get("cpu.max")?.trim().split_once(' ')?,
            };
            // Without a limit version 1 says -1, version 2 `max`.
            let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
            quota.checked_mul(1000)?.checked_add(period.checked_sub(1)?)?.checked_div(period)
        };
        self.groups.iter().filter_map(of).min()
    }
}

/// Whether a cap holds, by what was read back. `enforced` only if the kernel has a value that is no
/// wider than what was asked. `None` if nothing was asked.
pub fn judge(cap: Cap, resources: Resources, reading: &Reading) -> Option<EnforcementRow> {
    let asked = cap.asked(resources)?;
    let (level, evidence) = match reading.version {
        None => (
            EnforcementLevel::Missing,
            format!("no tree of control groups has the controller `{}`", cap.controller()),
        ),
        Some(version) => read(cap, version, resources, reading),
    };
    Some(EnforcementRow { item: cap.item(), asked, level, evidence })
}

fn read(
    cap: Cap,
    version: Version,
    resources: Resources,
    reading: &Reading,
) -> (EnforcementLevel, String) {
    let (found, most, file) = match cap {
        Cap::Mem => {
            let file = read_files(version, cap)[0];
            let asked = resources.memory.map_or(0, |MemoryBytes(bytes)| bytes);
            (reading.least(file), asked.saturating_add(PAGE), file)
        }
        Cap::Pids => (reading.least("pids.max"), resources.pids.unwrap_or(0).into(), "pids.max"),
        Cap::Cpu => {
            let asked = resources.cpu.map_or(0, |cpu| quota(cpu).saturating_mul(1000) / PERIOD);
            (reading.share(version), asked.saturating_add(10), "processor thousandths")
        }
    };
    let name = version.as_str();
    match found {
        None => (EnforcementLevel::Missing, format!("{name}: no {file} is set")),
        Some(value) if value > most => {
            (EnforcementLevel::Missing, format!("{name}: {file} is {value}"))
        }
        Some(value) if cap == Cap::Mem && !swap_capped(version, resources, reading) => (
            EnforcementLevel::Degraded,
            format!("{name}: {file} {value} read back, but what is swapped out does not count"),
        ),
        Some(value) => (EnforcementLevel::Enforced, format!("{name}: {file} {value} read back")),
    }
}

fn swap_capped(version: Version, resources: Resources, reading: &Reading) -> bool {
    let asked = resources.memory.map_or(0, |MemoryBytes(bytes)| bytes).saturating_add(PAGE);
    !reading.swap
        || match version {
            Version::V2 => reading.least("memory.swap.max") == Some(0),
            Version::V1 => {
                reading.least("memory.memsw.limit_in_bytes").is_some_and(|most| most <= asked)
                    || reading
                        .groups
                        .first()
                        .and_then(|own| own.get("memory.swappiness"))
                        .is_some_and(|value| value.trim() == "0")
            }
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::Cpu;

    use EnforcementLevel::{Degraded, Enforced, Missing};

    const ASKED: Resources = Resources {
        cpu: Some(Cpu { millis: 200 }),
        memory: Some(MemoryBytes(64 << 20)),
        pids: Some(20),
    };

    fn reading(version: Version, swap: bool, groups: &[&[(&'static str, &str)]]) -> Reading {
        let group = |files: &&[(&'static str, &str)]| {
            files.iter().map(|(file, value)| (*file, format!("{value}\n"))).collect()
        };
        Reading { version: Some(version), groups: groups.iter().map(group).collect(), swap }
    }

    fn level(cap: Cap, reading: &Reading) -> EnforcementLevel {
        judge(cap, ASKED, reading).unwrap().level
    }

    #[test]
    fn only_a_value_that_was_read_back_holds() {
        use Version::{V1, V2};
        const LIMIT: &str = "memory.limit_in_bytes";
        let none = Reading::default();
        for (cap, version, files, expected) in [
            (Cap::Pids, V1, &[("pids.max", "20")][..], Enforced),
            (Cap::Pids, V2, &[("pids.max", "19")], Enforced),
            (Cap::Pids, V2, &[("pids.max", "21")], Missing),
            (Cap::Pids, V2, &[("pids.max", "max")], Missing),
            (Cap::Pids, V2, &[("pids.max", "")], Missing),
            (Cap::Pids, V2, &[], Missing),
            (Cap::Mem, V1, &[(LIMIT, "67108864")], Enforced),
            (Cap::Mem, V1, &[(LIMIT, "9223372036854771712")], Missing),
            (Cap::Mem, V2, &[("memory.max", "67108864")], Enforced),
            (Cap::Mem, V2, &[("memory.max", "max")], Missing),
            (
                Cap::Cpu,
                V1,
                &[("cpu.cfs_quota_us", "20000"), ("cpu.cfs_period_us", "100000")],
                Enforced,
            ),
            (Cap::Cpu, V1, &[("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "100000")], Missing),
            (Cap::Cpu, V1, &[("cpu.cfs_quota_us", "20000")], Missing),
            (Cap::Cpu, V2, &[("cpu.max", "20000 100000")], Enforced),
            (Cap::Cpu, V2, &[("cpu.max", "40000 100000")], Missing),
            (Cap::Cpu, V2, &[("cpu.max", "max 100000")], Missing),
            (Cap::Cpu, V2, &[("cpu.max", "20000 0")], Missing),
        ] {
            assert_eq!(level(cap, &reading(version, false, &[files])), expected, "{files:?}");
            assert_eq!(level(cap, &none), Missing, "no controller");
            assert!(judge(cap, Resources::default(), &none).is_none());
        }
    }

    #[test]
    fn a_group_above_counts_as_well() {
        let own: &[(&'static str, &str)] = &[("pids.max", "max")];
        let above: &[(&'static str, &str)] = &[("pids.max", "20")];
        assert_eq!(level(Cap::Pids, &reading(Version::V1, false, &[own, above, own])), Enforced);
    }

    #[test]
    fn memory_that_can_be_swapped_out_is_not_fully_capped() {
        const LIMIT: (&str, &str) = ("memory.limit_in_bytes", "67108864");
        for (version, files, expected) in [
            (Version::V1, &[LIMIT][..], Degraded),
            (Version::V1, &[LIMIT, ("memory.memsw.limit_in_bytes", "67108864")], Enforced),
            (
                Version::V1,
                &[LIMIT, ("memory.memsw.limit_in_bytes", "9223372036854771712")],
                Degraded,
            ),
            (Version::V1, &[LIMIT, ("memory.swappiness", "0")], Enforced),
            (Version::V1, &[LIMIT, ("memory.swappiness", "60")], Degraded),
            (Version::V2, &[("memory.max", "67108864")], Degraded),
            (Version::V2, &[("memory.max", "67108864"), ("memory.swap.max", "0")], Enforced),
            (Version::V2, &[("memory.max", "67108864"), ("memory.swap.max", "max")], Degraded),
        ] {
            assert_eq!(level(Cap::Mem, &reading(version, true, &[files])), expected, "{files:?}");
            assert_eq!(level(Cap::Mem, &reading(version, false, &[files])), Enforced);
        }
    }
}
