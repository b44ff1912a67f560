//! Caps on memory, processes and processor time: by what means, and whether they really hold.
//!
//! The launcher sets caps from outside of the sandbox, before anything of the agent runs, and reads
//! them back from the process's own control group. What can be decided without looking at the machine
//! is here: which means to try ([`attempts`]), what to write ([`knobs`]), where a process's groups are
//! ([`hierarchies`]), and what the values that were read back are worth ([`judge`]).

mod choose;
mod hierarchy;
mod judge;
mod knob;
mod name;
mod rlimit;

use std::fmt;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::isolation::{Item, Resources};
pub use crate::policy::require::Cap;

pub use choose::{Attempt, assumed, attempts, capped, promise, strict_caps, weakest};
pub use hierarchy::{Hierarchy, Version, hierarchies};
pub use judge::{Reading, judge, read_files};
pub use knob::{Knob, knobs, scope_properties};
pub use name::{GroupName, GroupPrefix, NotAGroup};
pub use rlimit::{Rlimit, rlimit};

impl Cap {
    /// The row of the enforcement report.
    pub fn item(self) -> Item {
        match self {
            Self::Cpu => Item::Cpu,
            Self::Mem => Item::Memory,
            Self::Pids => Item::Pids,
        }
    }

    /// The controller of the kernel that holds it.
    pub fn controller(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Mem => "memory",
            Self::Pids => "pids",
        }
    }

    /// What is asked of it, in the words of the report; `None` if nothing is.
    pub fn asked(self, resources: Resources) -> Option<String> {
        match self {
            Self::Cpu => {
                resources.cpu.map(|cpu| format!("{} thousandths of a processor", cpu.millis))
            }
            Self::Mem => resources.memory.map(|memory| format!("{} bytes", memory.0)),
            Self::Pids => resources.pids.map(|pids| format!("{pids} processes")),
        }
    }
}

/// The caps that are asked for, in the order of the report.
pub fn asked(resources: Resources) -> impl Iterator<Item = Cap> {
    [Cap::Mem, Cap::Pids, Cap::Cpu].into_iter().filter(move |cap| cap.asked(resources).is_some())
}

/// By what caps are held, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// A scope of the user's systemd.
    Scope,
    /// A control group that the launcher makes below its own, of version 2 or 1.
    Group,
    /// Limits of each process alone.
    Rlimits,
}

impl Means {
    /// Those that hold for all processes of a launch together, best first.
    pub const TOGETHER: [Self; 2] = [Self::Scope, Self::Group];

    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scope => "systemd scope",
            Self::Group => "cgroup",
            Self::Rlimits => "rlimits",
        }
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether one means can hold one cap on this machine, as a trial showed: how, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapFact {
    /// The means.
    pub means: Means,
    /// The cap.
    pub cap: Cap,
    /// How it was seen to hold, or why it cannot.
    pub usable: Result<String, String>,
}

/// What this machine can hold. A means and cap that is not listed cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitFacts {
    /// Whether the fleet runs as root, for whom some limits do not hold.
    pub root: bool,
    /// Whether a user manager of systemd answers.
    pub manager: UserManager,
    /// What was tried.
    pub tried: Vec<CapFact>,
}

/// Whether the fleet's user has a systemd of its own, which makes scopes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum UserManager {
    /// This machine is not run by systemd, or nobody looked.
    #[default]
    Absent,
    /// The machine is run by systemd, but none answers: why.
    Silent(String),
    /// One answers.
    Answers,
}

impl LimitFacts {
    /// What a trial of one means with one cap showed.
    pub fn of(&self, means: Means, cap: Cap) -> Option<&CapFact> {
        self.tried.iter().find(|fact| fact.means == means && fact.cap == cap)
    }

    fn holds(&self, means: Means, cap: Cap) -> bool {
        self.of(means, cap).is_some_and(|fact| fact.usable.is_ok())
    }
}

/// What a launch is to be held to; part of the launch file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitRequest {
    /// The caps.
    pub resources: Resources,
    /// The rule by which a cap that does not hold refuses the launch, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<String>,
    /// Name of the control group or scope.
    pub group: GroupName,
    /// Where the launcher notes what it has made, before it makes it.
    pub record: Utf8PathBuf,
    /// What to try, in this order.
    pub attempts: Vec<Attempt>,
    /// The user's runtime directory, through which systemd is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_dir: Option<Utf8PathBuf>,
}

/// What the launcher has made for one launch, and must be gone after it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupRecord {
    /// Directories in which a group or a scope of that name was made.
    pub parents: Vec<Utf8PathBuf>,
    /// Whether a scope of that name was asked for, and the runtime directory by which it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Utf8PathBuf>,
    /// The name.
    pub group: Option<GroupName>,
}

/// Processes of a launch that the kernel killed for want of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutOfMemory {
    /// How many.
    pub kills: u64,
    /// The cap, in bytes.
    pub cap: u64,
}
