use crate::isolation::{Cpu, MemoryBytes, Resources};

use super::{Cap, Version};

/// The period in which processor time is counted, in microseconds: the kernel's own default.
pub(super) const PERIOD: u64 = 100_000;
/// The kernel refuses less.
const LEAST_QUOTA: u64 = 1_000;
/// The same, of a second.
const LEAST_SHARE: u64 = LEAST_QUOTA * (1_000_000 / PERIOD);

/// One file of a control group to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// The file.
    pub file: &'static str,
    /// What to write.
    pub value: String,
    /// Whether the cap cannot be set without it. What is not needed may be absent, or refused.
    pub needed: bool,
}

/// What to write into a group of this version to set one cap, in this order. Nothing without a cap.
pub fn knobs(version: Version, cap: Cap, resources: Resources) -> Vec<Knob> {
    let needed = |file, value: String| Knob { file, value, needed: true };
    let welcome = |file, value: String| Knob { file, value, needed: false };
    match (version, cap) {
        (Version::V1, Cap::Mem) => resources.memory.map_or_else(Vec::new, |MemoryBytes(bytes)| {
            vec![
                // Else the limit of a group does not hold for groups in it.
                welcome("memory.use_hierarchy", "1".to_owned()),
                needed("memory.limit_in_bytes", bytes.to_string()),
                welcome("memory.memsw.limit_in_bytes", bytes.to_string()),
                welcome("memory.swappiness", "0".to_owned()),
            ]
        }),
        (Version::V2, Cap::Mem) => resources.memory.map_or_else(Vec::new, |MemoryBytes(bytes)| {
            vec![
                needed("memory.max", bytes.to_string()),
                welcome("memory.swap.max", "0".to_owned()),
            ]
        }),
        (_, Cap::Pids) => {
            resources.pids.map_or_else(Vec::new, |pids| vec![needed("pids.max", pids.to_string())])
        }
        (Version::V1, Cap::Cpu) => resources.cpu.map_or_else(Vec::new, |cpu| {
            vec![
                needed("cpu.cfs_period_us", PERIOD.to_string()),
                needed("cpu.cfs_quota_us", quota(cpu).to_string()),
            ]
        }),
        (Version::V2, Cap::Cpu) => resources.cpu.map_or_else(Vec::new, |cpu| {
            vec![needed("cpu.max", format!("{} {PERIOD}", quota(cpu)))]
        }),
    }
}

/// Microseconds a period.
pub(super) fn quota(cpu: Cpu) -> u64 {
    cpu.millis.saturating_mul(PERIOD / 1000).max(LEAST_QUOTA)
}

/// The properties of a scope, by the names and in the units of systemd's bus: bytes, tasks, and
/// microseconds of processor time a second (01 §2.10). Numbers only: no text of a configuration is
/// ever among them.
pub fn scope_properties(resources: Resources) -> Vec<(&'static str, u64)> {
    let mut properties = Vec::new();
    if let Some(MemoryBytes(bytes)) = resources.memory {
        properties.extend([("MemoryMax", bytes), ("MemorySwapMax", 0)]);
    }
    if let Some(pids) = resources.pids {
        properties.push(("TasksMax", pids.into()));
    }
    if let Some(cpu) = resources.cpu {
        let micros = cpu.millis.saturating_mul(1000).max(LEAST_SHARE);
        properties.push(("CPUQuotaPerSecUSec", micros));
    }
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Resources = Resources {
        cpu: Some(Cpu { millis: 1500 }),
        memory: Some(MemoryBytes(64 << 20)),
        pids: Some(20),
    };

    fn written(version: Version, cap: Cap) -> Vec<(&'static str, String)> {
        knobs(version, cap, ALL).into_iter().map(|knob| (knob.file, knob.value)).collect()
    }

    #[test]
    fn each_cap_has_its_files() {
        assert_eq!(
            written(Version::V1, Cap::Cpu),
            [("cpu.cfs_period_us", "100000".to_owned()), ("cpu.cfs_quota_us", "150000".to_owned())]
        );
        assert_eq!(written(Version::V2, Cap::Cpu), [("cpu.max", "150000 100000".to_owned())]);
        assert_eq!(
            written(Version::V2, Cap::Mem),
            [("memory.max", "67108864".to_owned()), ("memory.swap.max", "0".to_owned())]
        );
        for version in [Version::V1, Version::V2] {
            assert_eq!(written(version, Cap::Pids), [("pids.max", "20".to_owned())]);
            for cap in Cap::ALL {
                assert!(knobs(version, cap, Resources::default()).is_empty());
                assert!(knobs(version, cap, ALL).iter().any(|knob| knob.needed));
            }
        }
    }

    #[test]
    fn a_scope_gets_its_properties_in_order() {
        assert_eq!(
            scope_properties(ALL),
            [
                ("MemoryMax", 67_108_864),
                ("MemorySwapMax", 0),
                ("TasksMax", 20),
                ("CPUQuotaPerSecUSec", 1_500_000)
            ]
        );
        assert!(scope_properties(Resources::default()).is_empty());
        for (millis, micros) in [(1, 10_000), (14, 14_000), (1000, 1_000_000)] {
            let cpu = Resources { cpu: Some(Cpu { millis }), ..Resources::default() };
            assert_eq!(scope_properties(cpu), [("CPUQuotaPerSecUSec", micros)]);
            assert_eq!(micros, quota(Cpu { millis }) * 10, "the same as in a group");
        }
        let least = Resources { cpu: Some(Cpu { millis: 1 }), ..Resources::default() };
        assert_eq!(knobs(Version::V2, Cap::Cpu, least)[0].value, "1000 100000");
        let most = Resources { cpu: Some(Cpu { millis: u64::MAX }), ..Resources::default() };
        assert_eq!(scope_properties(most).len(), 1);
    }
}
