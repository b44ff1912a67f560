use crate::isolation::{MemoryBytes, Resources};

use super::Cap;

/// Node does not start with less address space (measured: 512 MiB fails, 1 GiB works).
const LEAST_ADDRESS_SPACE: u64 = 1 << 30;

/// What the limits of a process can do for one cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rlimit {
    /// `RLIMIT_AS`: bytes of address space of each process.
    AddressSpace(u64),
    /// `RLIMIT_NPROC`: so many processes of the user beyond those that run already.
    Processes(u32),
}

impl Rlimit {
    /// How far it goes, in the words of the report.
    pub fn words(self) -> String {
        match self {
            Self::AddressSpace(bytes) => format!("RLIMIT_AS {bytes}, for each process alone"),
            Self::Processes(count) => {
                format!("RLIMIT_NPROC, {count} beyond those of the user that ran already")
            }
        }
    }
}

/// The limit that stands in for one cap where no control group can hold it. Never as good: the report
/// calls it degraded.
///
/// # Errors
/// Why there is none, in the words of the report.
pub fn rlimit(cap: Cap, resources: Resources, root: bool) -> Result<Rlimit, &'static str> {
    match cap {
        Cap::Mem => match resources.memory {
            Some(MemoryBytes(bytes)) if bytes >= LEAST_ADDRESS_SPACE => {
                Ok(Rlimit::AddressSpace(bytes))
            }
            _ => {
                Err("RLIMIT_AS below 1G is not set: programs such as node do not start with less \
                 address space")
            }
        },
        Cap::Pids if root => Err("RLIMIT_NPROC does not hold for root"),
        Cap::Pids => resources.pids.map(Rlimit::Processes).ok_or("nothing is asked"),
        Cap::Cpu => Err("no limit of a process caps its share of a processor"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::Cpu;

    #[test]
    fn a_limit_is_set_only_where_programs_can_live_with_it() {
        let asked = |memory, pids| Resources {
            memory: Some(MemoryBytes(memory)),
            pids: Some(pids),
            cpu: Some(Cpu { millis: 100 }),
        };
        let all = asked(1 << 30, 64);
        assert_eq!(rlimit(Cap::Mem, all, true), Ok(Rlimit::AddressSpace(1 << 30)));
        assert_eq!(rlimit(Cap::Pids, all, false), Ok(Rlimit::Processes(64)));
        for (cap, resources, root, why) in [
            (Cap::Mem, asked((1 << 30) - 1, 64), false, "1G"),
            (Cap::Pids, all, true, "root"),
            (Cap::Cpu, all, false, "processor"),
        ] {
            let found = rlimit(cap, resources, root).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }
}
