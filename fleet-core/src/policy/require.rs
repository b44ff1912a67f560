//! `policy.require` (01 §1.3): what every role of a fleet must meet, wherever it is declared.
//!
//! A role that does not is a load error of the fleet, so that `config`, `doctor`, `check` and `up`
//! refuse alike. [`violations`] is pure and takes one role, so it serves temporary and spawned roles
//! as well.

use serde::{Deserialize, Serialize};

use crate::config::{Layer, Provenance, Role};
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::{Backend, IsolationBlock, NetworkMode, Resources};
use crate::permissions::Approval;

mod approval;

pub use approval::{EffectiveApproval, effective_approval};

/// A guarantee level (01 §2.14). Each contains those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Level {
    /// Isolated by a backend. A start without isolation is refused, whatever `on_unavailable` says.
    L1,
    /// And with caps on processors, memory and processes.
    L2,
    /// And without a way to any host: `network` is `deny`, `broker` or `allowlist`.
    L3,
}

impl Level {
    /// Every value, as written in a fleet file.
    pub const WORDS: &'static [&'static str] = &["L1", "L2", "L3"];

    /// The value as written in a fleet file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
        }
    }

    /// The value that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::L1, Self::L2, Self::L3].into_iter().find(|level| level.as_str() == word)
    }
}

/// A cap that must be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cap {
    /// `resources.cpu`.
    Cpu,
    /// `resources.mem`.
    Mem,
    /// `resources.pids`.
    Pids,
}

impl Cap {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Mem, Self::Pids];
    /// Every value, as written in a fleet file.
    pub const WORDS: &'static [&'static str] = &["cpu", "mem", "pids"];

    /// The value as written in a fleet file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Mem => "mem",
            Self::Pids => "pids",
        }
    }

    /// The value that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cap| cap.as_str() == word)
    }

    fn is_set(self, resources: &Resources) -> bool {
        match self {
            Self::Cpu => resources.cpu.is_some(),
            Self::Mem => resources.memory.is_some(),
            Self::Pids => resources.pids.is_some(),
        }
    }
}

/// What every role must meet. Where it was written is in the [`Provenance`] below `policy.require`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Require {
    /// The least guarantee level.
    pub isolation: Option<Level>,
    /// The allowed network modes; never empty.
    pub network: Option<Vec<NetworkMode>>,
    /// The widest allowed approval.
    pub approval: Option<Approval>,
    /// Caps that must be set.
    pub resources: Vec<Cap>,
}

/// The modes that a role of level L3 may have.
pub const CLOSED_NETWORKS: [NetworkMode; 3] =
    [NetworkMode::Deny, NetworkMode::Broker, NetworkMode::Allowlist];

impl Require {
    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rule that forbids a start without isolation where no backend is usable, with its place:
    /// it outranks the role's own `on_unavailable: warn`, written or not. `None` if there is none.
    ///
    /// A role that starts un-isolated has the network of the host, so a list of networks without
    /// `allow` forbids it as well.
    pub fn forbids_unisolated(&self, provenance: &Provenance) -> Option<String> {
        let rule = if let Some(level) = self.isolation {
            Rule::Isolation(level)
        } else if self.network.as_ref().is_some_and(|list| !list.contains(&NetworkMode::Allow)) {
            Rule::Network
        } else {
            return None;
        };
        Some(rule.with_place(provenance))
    }

    /// The rule by which the caps of a role must really hold, with its place; `None` if there is none.
    pub fn needs_caps(&self, provenance: &Provenance) -> Option<String> {
        let rule = match self.isolation {
            Some(level) if level >= Level::L2 => Rule::Isolation(level),
            _ if !self.resources.is_empty() => Rule::Resources,
            _ => return None,
        };
        Some(rule.with_place(provenance))
    }
}

/// A key of `policy.require`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Rule {
    /// `isolation`, with its value.
    Isolation(Level),
    /// `network`.
    Network,
    /// `approval`, with its value.
    Approval(Approval),
    /// `resources`.
    Resources,
}

impl Rule {
    fn with_place(self, provenance: &Provenance) -> String {
        let place = provenance.lookup(self.path()).map(|(_, place)| format!(" ({place})"));
        format!("`{}`{}", self.shown(), place.unwrap_or_default())
    }

    /// The dotted path of the key.
    pub fn path(self) -> &'static str {
        match self {
            Self::Isolation(_) => "policy.require.isolation",
            Self::Network => "policy.require.network",
            Self::Approval(_) => "policy.require.approval",
            Self::Resources => "policy.require.resources",
        }
    }

    /// The rule as a person would quote it.
    pub fn shown(self) -> String {
        match self {
            Self::Isolation(level) => format!("{}: {}", self.path(), level.as_str()),
            Self::Approval(approval) => format!("{}: {}", self.path(), approval.as_str()),
            Self::Network | Self::Resources => self.path().to_owned(),
        }
    }
}

/// One requirement that a role does not meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The key of the role that decides it, dotted, below the role.
    pub path: &'static str,
    /// What the role has, in words.
    pub found: String,
    /// What would do.
    pub allowed: Vec<String>,
    /// What to write.
    pub instead: String,
}

impl Violation {
    /// As a problem of a fleet file: at the place of the role's own value, or of the one that it
    /// inherits, or of the role itself, with the place of the rule.
    pub fn diagnostic(&self, role: &Role, provenance: &Provenance) -> Diagnostic {
        let path = format!("roles.{}.{}", role.name, self.path);
        let origin = match provenance.written(&path) {
            Some((Layer::Default, _)) => ", from `defaults`",
            Some(_) => "",
            None => ", which nobody wrote",
        };
        let mut found =
            Diagnostic::error(Code::Conflict, format!("does not meet `{}`", self.rule.shown()))
                .role(role.name.as_str())
                .path(self.path)
                .found_kind(&format!("{}{origin}", self.found))
                .allowed(self.allowed.iter().map(String::as_str))
                .hint(&self.instead);
        found.place = provenance.lookup(&path).map(|(_, place)| place);
        found.other = provenance.lookup(self.rule.path()).map(|(_, place)| place);
        found
    }
}

/// What is judged of a role beside its own keys: what its harness makes of its permissions.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// The role.
    pub role: &'a Role,
    /// The approval in force, as [`effective_approval`] finds it.
    pub approval: &'a EffectiveApproval,
}

/// Every requirement that a role does not meet, in the order of the keys of `policy.require`.
///
/// # Security
/// Monotone: a further or narrower requirement never takes a violation away. What is not known counts
/// as the widest: a role without a block, or with `backend: none`, has the network of the host; caps
/// count only where a backend is; a harness without permissions of its own amounts to `allow`.
pub fn violations(require: &Require, judged: Judged<'_>) -> Vec<Violation> {
    let isolation = judged.role.isolation.as_ref();
    let isolated = isolation.filter(|block| block.backend != Backend::None);
    let mut found = Vec::new();
    if let Some(level) = require.isolation {
        let rule = Rule::Isolation(level);
        match isolated {
            None => found.push(not_isolated(rule, isolation)),
            Some(block) => {
                if level >= Level::L2 {
                    found.extend(caps(rule, &Cap::ALL, Some(block)));
                }
                if level >= Level::L3 {
                    found.extend(network(rule, &CLOSED_NETWORKS, isolation));
                }
            }
        }
    }
    if let Some(allowed) = &require.network {
        found.extend(network(Rule::Network, allowed, isolation));
    }
    if let Some(widest) = require.approval {
        found.extend(approval::violation(widest, judged));
    }
    found.extend(caps(Rule::Resources, &require.resources, isolated));
    found
}

fn not_isolated(rule: Rule, isolation: Option<&IsolationBlock>) -> Violation {
    let (path, found) = match isolation {
        Some(_) => ("isolation.backend", "`none`"),
        None => ("isolation", "no sandbox"),
    };
    Violation {
        rule,
        path,
        found: found.to_owned(),
        allowed: Vec::new(),
        instead: "write an `isolation` block with a backend, for example `isolation: {network: \
                  deny}`"
            .to_owned(),
    }
}

fn network(
    rule: Rule,
    allowed: &[NetworkMode],
    isolation: Option<&IsolationBlock>,
) -> Option<Violation> {
    let (mode, path, found) = match isolation {
        None => (NetworkMode::Allow, "isolation", "no sandbox: the network of the host"),
        Some(block) if block.backend == Backend::None => {
            (NetworkMode::Allow, "isolation.backend", "`none`: the network of the host")
        }
        Some(block) => (block.network(), "isolation.network", ""),
    };
    if allowed.contains(&mode) {
        return None;
    }
    let first = allowed.first().map_or("deny", |mode| mode.as_str());
    let instead = if found.is_empty() {
        format!("write `network: {first}`")
    } else {
        format!("write `isolation: {{network: {first}}}`")
    };
    Some(Violation {
        rule,
        path,
        found: if found.is_empty() { format!("`{mode}`") } else { found.to_owned() },
        allowed: allowed.iter().map(|mode| mode.as_str().to_owned()).collect(),
        instead,
    })
}

fn caps(rule: Rule, needed: &[Cap], isolated: Option<&IsolationBlock>) -> Option<Violation> {
    let missing: Vec<&str> = needed
        .iter()
        .filter(|cap| !isolated.is_some_and(|block| cap.is_set(&block.resources)))
        .map(|cap| cap.as_str())
        .collect();
    let first = missing.first()?;
    let example = match *first {
        "cpu" => "cpu: 2",
        "mem" => "mem: 2G",
        _ => "pids: 512",
    };
    let what = if isolated.is_some() { "no cap on " } else { "no sandbox, so no cap on " };
    Some(Violation {
        rule,
        path: if isolated.is_some() { "isolation.resources" } else { "isolation" },
        found: format!("{what}{}", missing.join(", ")),
        allowed: Vec::new(),
        instead: format!(
            "write `isolation.resources.{}`, for example `{example}`",
            missing.join("`, `isolation.resources.")
        ),
    })
}
