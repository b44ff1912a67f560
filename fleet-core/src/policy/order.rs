//! The order of policies (01 §2.15): when one role may do more than another.
//!
//! What a role reaches is a [`Reach`]: for each [`Dimension`] a list of [`Grant`]s. How the grants of
//! a dimension compare is one row of [`ORDER`]; there are three rules, and each is reflexive and
//! transitive, so the whole is a preorder. `check --against` asks it whether a role became wider; a
//! spawned role and a plan will ask it the same question.

mod endpoint;
mod index;
mod tree;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;

pub use self::endpoint::Endpoint;
use self::index::Index;
use crate::config::Provenance;
use crate::diagnostic::Place;
use crate::isolation::MountMode;
use crate::path::LexicalPath;
use crate::redact::Redacted;

/// How the grants of a dimension compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Each grant of the narrower side lies within one of the wider side.
    Grants,
    /// Each protection of the wider side is covered by one of the narrower side.
    Guards,
    /// Paths with modes, of which the deepest around a path decides: at no path does the narrower
    /// side allow more.
    Tree,
}

/// What a difference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// The role may do more.
    Widening,
    /// Other than before, and neither more nor less: worth a look.
    Change,
}

/// One row of the order.
#[derive(Debug)]
pub struct Row {
    /// The dimension.
    pub dimension: Dimension,
    /// Its stable name.
    pub word: &'static str,
    /// How its grants compare.
    pub rule: Rule,
    /// What a difference means.
    pub weight: Weight,
    /// What is said of a grant that is not there.
    pub absent: &'static str,
    /// What is said of a grant that is there.
    pub present: &'static str,
    /// Differences that are mere consequences of a widening of one of these are left out.
    pub implied_by: &'static [Dimension],
}

macro_rules! order {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $rule:ident $weight:ident,
       $absent:literal => $present:literal, [$($cause:ident)*];)*) => {
        /// What can be wider or narrower about a role, or about the rules of a whole fleet.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum Dimension { $($(#[$doc])* #[serde(rename = $word)] $variant,)* }

        /// The order, one row a dimension.
        pub const ORDER: &[Row] = &[$(Row {
            dimension: Dimension::$variant,
            word: $word,
            rule: Rule::$rule,
            weight: Weight::$weight,
            absent: $absent,
            present: $present,
            implied_by: &[$(Dimension::$cause),*],
        },)*];

        impl Dimension {
            /// Its row of [`ORDER`].
            pub fn row(self) -> &'static Row {
                // The table is made from the same list as the enum.
                &ORDER[self as usize]
            }
        }
    };
}

order! {
    /// Isolated or not.
    Isolation = "isolation", Grants Widening, "none" => "isolated", [];
    /// The backends that may hold the role.
    Backend = "backend", Grants Widening, "not allowed" => "allowed", [Isolation];
    /// Whether it starts without its isolation where no backend is usable.
    OnUnavailable = "on_unavailable", Grants Widening, "not written" => "written", [Isolation];
    /// Project files that it may not change.
    Protect = "protect", Guards Widening, "not protected" => "protected", [Isolation];
    /// How much of `/etc` it sees.
    System = "system", Grants Widening, "not written" => "written", [Isolation];
    /// Whether protections are dropped for a sandbox inside the sandbox.
    NestedSandbox = "nested_sandbox", Grants Widening, "not written" => "written", [Isolation];
    /// The container image.
    Image = "image", Grants Widening, "not used" => "used", [Isolation];
    /// Paths of the host, with modes.
    Paths = "paths", Tree Widening, "not reachable" => "reachable", [Isolation Filesystem FilesystemInForce];
    /// Files that only this role is shown.
    Secrets = "secrets", Grants Widening, "not shown" => "shown", [];
    /// Endpoints.
    Network = "network", Grants Widening, "not reachable" => "reachable", [Isolation];
    /// `permissions.approval`.
    Approval = "approval", Grants Widening, "not written" => "written", [];
    /// What the native settings make of the approval.
    ApprovalInForce = "approval-in-force", Grants Widening, "not written" => "written", [Approval];
    /// `permissions.filesystem`.
    Filesystem = "filesystem", Grants Widening, "not written" => "written", [];
    /// What the native settings make of it.
    FilesystemInForce = "filesystem-in-force", Grants Widening, "not written" => "written", [Filesystem];
    /// `permissions.unattended`.
    Unattended = "unattended", Grants Widening, "not written" => "written", [];
    /// What works without a person: what the capability floor is judged by.
    Capabilities = "capabilities", Grants Widening, "needs a person" => "works without a person",
        [Approval ApprovalInForce Filesystem FilesystemInForce];
    /// Caps.
    Resources = "resources", Grants Widening, "not written" => "written", [Isolation];
    /// Variables of fleet's own environment that it gets.
    EnvPass = "env_pass", Grants Widening, "not passed" => "passed", [];
    /// Variables that it gets from the fleet file, by name.
    Env = "env", Grants Widening, "not set" => "set", [];
    /// Fleet commands that it may run.
    ManagedCli = "managed_cli", Grants Widening, "not allowed" => "allowed", [];
    /// MCP servers: the tools that they bring are no longer those that were looked at.
    Mcp = "mcp_servers", Grants Widening, "not there" => "there", [];
    /// Other options of the harness: what they grant is only known to the harness.
    Options = "harness_options", Grants Widening, "not set" => "set", [];
    /// Options that switch something off that is otherwise on.
    SwitchedOff = "switched-off", Guards Widening, "not switched off" => "switched off", [];
    /// The agent program. Inside the same bounds another program reaches the same.
    Program = "program", Grants Change, "not used" => "used", [];
    /// Paths that no role may reach.
    ForbidPaths = "policy.forbid_paths", Guards Widening, "not forbidden" => "forbidden", [];
    /// What every role must have.
    Require = "policy.require", Guards Widening, "not required" => "required", [];
}

/// What is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Just this, by the name of its subject.
    Word,
    /// A place on a chain; more is wider.
    Level {
        /// The place.
        rank: u64,
        /// As people read it.
        word: String,
    },
    /// A path and everything below it.
    Path {
        /// The path. Not shown: the subject may be another text.
        path: LexicalPath,
        /// How it may be used.
        mode: MountMode,
    },
    /// An endpoint or a set of them.
    Endpoint(Endpoint),
    /// Something that can only be the same or other.
    Exact {
        /// As people read it; holds no secret.
        shown: String,
        /// All of it.
        value: Redacted<String>,
    },
}

/// One grant, or one protection, of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// What it is about, as people read it; holds no secret.
    pub subject: String,
    /// What is granted.
    pub value: Value,
    /// The key that says so, below the role.
    pub key: String,
    /// Whether somebody wrote this very thing; else it follows from something else.
    pub written: bool,
}

impl Grant {
    /// Whether this grant allows everything that `other` allows. A partial order of grants.
    pub fn covers(&self, other: &Self) -> bool {
        let same = self.subject == other.subject;
        match (&self.value, &other.value) {
            (Value::Word, Value::Word) => same,
            (Value::Level { rank: mine, .. }, Value::Level { rank: theirs, .. }) => {
                same && mine >= theirs
            }
            (Value::Path { path: mine, mode }, Value::Path { path: theirs, mode: their_mode }) => {
                theirs.is_within(mine) && rank(*mode) >= rank(*their_mode)
            }
            (Value::Endpoint(mine), Value::Endpoint(theirs)) => mine.covers(theirs),
            (Value::Exact { value: mine, .. }, Value::Exact { value: theirs, .. }) => {
                same && mine == theirs
            }
            (
                Value::Word
                | Value::Level { .. }
                | Value::Path { .. }
                | Value::Endpoint(_)
                | Value::Exact { .. },
                _,
            ) => false,
        }
    }

    fn shown(&self, row: &Row) -> String {
        match &self.value {
            Value::Level { word, .. } => word.clone(),
            Value::Path { mode, .. } if row.rule == Rule::Tree => mode.as_str().to_owned(),
            Value::Word | Value::Endpoint(_) | Value::Path { .. } => row.present.to_owned(),
            Value::Exact { shown, .. } => shown.clone(),
        }
    }
}

fn rank(mode: MountMode) -> u8 {
    match mode {
        MountMode::ReadOnly => 1,
        MountMode::ReadWrite => 2,
    }
}

/// The grants of one dimension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Facet {
    grants: Vec<Grant>,
    /// Where to look when a protection is gone.
    key: String,
    /// Whether there could be grants here; else their absence follows from something else.
    applies: bool,
}

/// Everything that a role reaches, or that the rules of a fleet hold back, in comparable form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    role: Option<String>,
    facets: BTreeMap<Dimension, Facet>,
}

/// A way in which something is wider than before, or other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Widening {
    /// The role; `None` for the rules of the fleet.
    pub role: Option<String>,
    /// In which dimension.
    pub dimension: Dimension,
    /// What it means.
    pub weight: Weight,
    /// What it is about; never a secret.
    pub subject: String,
    /// How it was.
    pub from: String,
    /// How it is.
    pub to: String,
    /// The key that says so now, below the role.
    pub key: String,
    /// Where that is written; else the nearest written value around it.
    pub place: Option<Place>,
    #[serde(skip)]
    written: bool,
}

impl Reach {
    /// Reaches nothing, yet.
    pub(super) fn of_role(name: &str) -> Self {
        Self { role: Some(name.to_owned()), facets: BTreeMap::new() }
    }

    /// Adds a grant.
    pub(super) fn add(&mut self, dimension: Dimension, grant: Grant) {
        self.facets.entry(dimension).or_default().grants.push(grant);
    }

    /// Says where the protections of a dimension are written, and whether there could be any.
    pub(super) fn guards(&mut self, dimension: Dimension, key: &str, applies: bool) {
        let facet = self.facets.entry(dimension).or_default();
        key.clone_into(&mut facet.key);
        facet.applies = applies;
    }

    /// The grants of a dimension.
    pub fn grants(&self, dimension: Dimension) -> &[Grant] {
        self.facets.get(&dimension).map_or(&[], |facet| &facet.grants)
    }

    /// Whether nothing is wider than in `other`, in any dimension.
    pub fn is_within(&self, other: &Self) -> bool {
        ORDER
            .iter()
            .filter(|row| row.weight == Weight::Widening)
            .all(|row| self.wider(other, row).is_empty())
    }

    /// How a dimension compares with that of `other`; `None` if neither lies within the other.
    pub fn compare(&self, other: &Self, dimension: Dimension) -> Option<Ordering> {
        let row = dimension.row();
        match (self.wider(other, row).is_empty(), other.wider(self, row).is_empty()) {
            (true, true) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Less),
            (false, true) => Some(Ordering::Greater),
            (false, false) => None,
        }
    }

    /// Every way in which this is wider than `old`, and what else is other, in the order of the table
    /// and then by subject. What merely follows from another widening of the list is left out, so the
    /// list is empty of widenings exactly if this is within `old`.
    pub fn widenings(&self, old: &Self, provenance: &Provenance) -> Vec<Widening> {
        let mut found: Vec<Widening> = ORDER.iter().flat_map(|row| self.wider(old, row)).collect();
        let wider: Vec<Dimension> = found.iter().map(|it| it.dimension).collect();
        found.retain(|it| {
            it.written || !it.dimension.row().implied_by.iter().any(|cause| wider.contains(cause))
        });
        for widening in &mut found {
            widening.place = self.place(&widening.key, provenance);
        }
        found.sort_by(|a, b| {
            (a.dimension, &a.subject, &a.key).cmp(&(b.dimension, &b.subject, &b.key))
        });
        found.dedup_by(|a, b| (a.dimension, &a.subject) == (b.dimension, &b.subject));
        found
    }

    fn place(&self, key: &str, provenance: &Provenance) -> Option<Place> {
        let path = match &self.role {
            Some(role) if key.is_empty() => format!("roles.{role}"),
            Some(role) => format!("roles.{role}.{key}"),
            None => key.to_owned(),
        };
        provenance.lookup(&path).map(|(_, place)| place)
    }

    /// In what a dimension is wider than that of `old`.
    fn wider(&self, old: &Self, row: &Row) -> Vec<Widening> {
        let (mine, theirs) = (self.grants(row.dimension), old.grants(row.dimension));
        match row.rule {
            Rule::Grants => {
                let old = Index::new(theirs);
                let gained = mine.iter().filter(|new| !old.covers(new));
                let gain = |new: &Grant| {
                    let before = old.same_subject(new);
                    let from = before.map_or_else(|| row.absent.to_owned(), |old| old.shown(row));
                    self.widening(row, new, from, new.shown(row))
                };
                gained.map(gain).collect()
            }
            Rule::Guards => {
                let facet = self.facets.get(&row.dimension);
                let new = Index::new(mine);
                let gone = theirs.iter().filter(|old| !new.covers(old));
                let loss = |old: &Grant| {
                    let now = new.same_subject(old);
                    let to = now.map_or_else(|| row.absent.to_owned(), |now| now.shown(row));
                    let mut lost = self.widening(row, old, old.shown(row), to);
                    lost.key = match (now, facet) {
                        (Some(now), _) => now.key.clone(),
                        (None, Some(facet)) => facet.key.clone(),
                        (None, None) => String::new(),
                    };
                    lost.written = facet.is_none_or(|facet| facet.applies);
                    lost
                };
                gone.map(loss).collect()
            }
            Rule::Tree => tree::wider(mine, theirs)
                .into_iter()
                .map(|gain| {
                    let word = |mode: Option<MountMode>| mode.map_or(row.absent, MountMode::as_str);
                    let (from, to) = (word(gain.from), word(Some(gain.to)));
                    let mut found = self.widening(row, gain.grant, from.to_owned(), to.to_owned());
                    found.subject = gain.path.to_string();
                    found
                })
                .collect(),
        }
    }

    fn widening(&self, row: &Row, grant: &Grant, from: String, to: String) -> Widening {
        Widening {
            role: self.role.clone(),
            dimension: row.dimension,
            weight: row.weight,
            subject: grant.subject.clone(),
            from,
            to,
            key: grant.key.clone(),
            place: None,
            written: grant.written,
        }
    }
}

impl Widening {
    /// Whether the role may do more than before.
    pub fn widens(&self) -> bool {
        self.weight == Weight::Widening
    }
}
