//! `explain`: can this role reach it, why or why not, and which line of which file says so.
//!
//! Pure, and never a second judge: the answers come from the policy, the list of forbidden paths, the
//! environment builder and the native settings that a launch would use.

mod confined;
mod endpoint;
mod native;
mod path;
mod tool;
mod variable;

use serde::Serialize;

pub use self::confined::{NO_MOUNTS, not_held};
pub use self::endpoint::Endpoint;
pub use self::native::{NativeAnswer, NativeQuestion, NativeRequest, NativeVerdict};
use crate::config::{Fleet, Layer, Role};
use crate::diagnostic::Place;
use crate::harness::Harness;
use crate::isolation::MountOrigin;
use crate::isolation::forbidden::ForbiddenList;
use crate::isolation::select::{Fallback, fallback};
use crate::path::LexicalPath;
use crate::permissions::Outer;
use crate::plan::Assessment;
use crate::port::PathProbe;
use crate::world::World;

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A path of the host.
    Path(LexicalPath),
    /// A host, perhaps with a port.
    Endpoint(Endpoint),
    /// A variable of the environment.
    Variable(String),
    /// A tool of the agent, or one of the capabilities of the unattended floor.
    Tool(String),
}

/// A role with everything that an answer depends on.
#[derive(Debug, Clone, Copy)]
pub struct ExplainRequest<'a> {
    /// The fleet, for where things were written.
    pub fleet: &'a Fleet,
    /// The role.
    pub role: &'a Role,
    /// Its harness.
    pub harness: &'a dyn Harness,
    /// The account.
    pub world: &'a World,
    /// What no role may reach.
    pub forbidden: &'a ForbiddenList,
    /// The judgement of its next launch.
    pub assessment: &'a Assessment,
    /// The boundary that the launch would have.
    pub outer: Outer,
}

/// The answer in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A path: can be read and written.
    ReadWrite,
    /// A path: can be read.
    ReadOnly,
    /// A path: the role has one of its own there, which is not the host's and ends with it.
    Private,
    /// A path: the host's is not there.
    Hidden,
    /// Nothing of fleet's stands between the role and it: what the account can, the role can.
    Account,
    /// An endpoint: can be reached, if the host can.
    Reachable,
    /// An endpoint: cannot be reached.
    Unreachable,
    /// A variable: the agent gets it.
    Set,
    /// A variable: the agent does not get it.
    Withheld,
    /// A tool: used without a question.
    Silent,
    /// A tool: a person is asked first.
    Asks,
    /// A tool: refused.
    Refused,
    /// A tool: it depends on what it is used on.
    Depends,
    /// Fleet has no rule for it and cannot tell.
    Unknown,
    /// The role does not start as it is written.
    NotStarted,
}

impl Verdict {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Private => "private",
            Self::Hidden => "hidden",
            Self::Account => "account",
            Self::Reachable => "reachable",
            Self::Unreachable => "unreachable",
            Self::Set => "set",
            Self::Withheld => "withheld",
            Self::Silent => "silent",
            Self::Asks => "asks",
            Self::Refused => "refused",
            Self::Depends => "depends",
            Self::Unknown => "unknown",
            Self::NotStarted => "not-started",
        }
    }
}

/// What decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The sandbox around the agent.
    OuterBoundary,
    /// A setting of the agent's own program.
    NativeRule,
    /// Fleet, which builds the environment.
    Fleet,
    /// Nothing of fleet's.
    Nothing,
}

impl DecidedBy {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OuterBoundary => "the sandbox",
            Self::NativeRule => "the settings of the agent's own program",
            Self::Fleet => "fleet, which builds the environment",
            Self::Nothing => "nothing of fleet's",
        }
    }
}

/// The rule that decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Stable.
    pub id: &'static str,
    /// The same for people.
    pub words: String,
}

/// A neutral key that an answer follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Dotted, below the role.
    pub key: String,
    /// Its value; not a secret.
    pub value: String,
    /// Where it is written; `None` for a default of fleet's own.
    pub place: Option<Place>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `path`, `endpoint`, `env` or `tool`.
    pub kind: &'static str,
    /// What was asked.
    pub subject: String,
    /// Where a path leads, if that is elsewhere.
    pub leads_to: Option<LexicalPath>,
    /// The answer in a word.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub says: String,
    /// What decides.
    pub by: DecidedBy,
    /// Through which rule.
    pub rule: Rule,
    /// The line that says so; `None` for what is built into fleet.
    pub place: Option<Place>,
    /// What else is worth knowing.
    pub facts: Vec<String>,
    /// What the agent's own program adds to it.
    pub native: Vec<NativeAnswer>,
    /// The keys that those native settings were made from.
    pub sources: Vec<Source>,
    /// What to write to change it; `None` if nothing can.
    pub change: Option<String>,
    /// Why the role does not start as it is written; empty if it does.
    pub refusals: Vec<String>,
}

/// Answers one question about one role. `probe` is asked where a path leads.
///
/// # Security
/// No value of the environment, of an option or of a secret is part of an answer. The answer is about
/// the moment of the call, for a launch inside the boundary of `request`; a role that may start without
/// its sandbox is said to.
pub fn explain(
    request: &ExplainRequest<'_>,
    subject: &Subject,
    probe: &dyn PathProbe,
) -> Explanation {
    let mut answer = match subject {
        Subject::Path(path) => path::explain(request, path, probe),
        Subject::Endpoint(endpoint) => endpoint::explain(request, endpoint),
        Subject::Variable(name) => variable::explain(request, name),
        Subject::Tool(name) => tool::explain(request, name),
    };
    answer.refusals = request.refusals();
    if request.may_start_unisolated() && answer.kind != "tool" {
        answer.facts.push(
            "where no sandbox can be had the role starts UN-ISOLATED, and then none of this holds: \
             write `on_unavailable: strict`"
                .to_owned(),
        );
    }
    answer
}

impl ExplainRequest<'_> {
    /// Where a key below the role, or the nearest key around it, is written.
    pub fn around(&self, key: &str) -> Option<Place> {
        self.fleet.provenance.lookup(&self.path(key)).map(|(_, place)| place)
    }

    /// Where exactly this key below the role is written, on the role or in the defaults.
    pub fn written(&self, key: &str) -> Option<(Layer, Place)> {
        self.fleet.provenance.written(&self.path(key))
    }

    fn path(&self, key: &str) -> String {
        format!("roles.{}.{key}", self.role.name)
    }

    /// The line that a mount comes from, or the nearest one around it.
    pub fn mount_place(&self, origin: &MountOrigin) -> Option<Place> {
        self.around(&origin.key())
    }

    /// Every reason why the role does not start as it is written.
    fn refusals(&self) -> Vec<String> {
        let problems = self.assessment.problems.iter().map(ToString::to_string);
        problems.chain(self.assessment.blockers.iter().cloned()).collect()
    }

    fn may_start_unisolated(&self) -> bool {
        let Some(block) = self.role.isolation.as_ref().filter(|_| self.isolated()) else {
            return false;
        };
        let fleet = self.fleet;
        let required = fleet.policy.require.forbids_unisolated(&fleet.provenance);
        let required = required.as_deref();
        let verdict = fallback(block, self.role.permissions, self.world.uid, required, &[]);
        matches!(verdict, Fallback::Unisolated { .. })
    }

    fn isolated(&self) -> bool {
        Assessment::wants_isolation(self.role)
    }

    /// Where the isolation block stands and what to write into it.
    fn in_block(&self, what: &str) -> String {
        match self.written("isolation") {
            Some((Layer::Default, place)) => format!(
                "{what} in `defaults.isolation` ({place}), or give the role a block of its own, \
                 which replaces that one whole"
            ),
            Some((_, place)) => format!("{what} in the `isolation` of the role ({place})"),
            None => format!("{what} in the `isolation` of the role"),
        }
    }

    /// The rule and the words for a role without isolation.
    fn unisolated(&self) -> (Rule, Option<Place>) {
        match self.written("isolation.backend") {
            Some((_, place)) => (
                rule("isolation.none", "`isolation.backend: none`: no sandbox, on purpose"),
                Some(place),
            ),
            None => (
                rule("isolation.absent", "the role has no `isolation`: no sandbox"),
                self.fleet
                    .provenance
                    .lookup(&format!("roles.{}", self.role.name))
                    .map(|(_, place)| place),
            ),
        }
    }
}

fn rule(id: &'static str, words: impl Into<String>) -> Rule {
    Rule { id, words: words.into() }
}

/// An answer with its main parts; the rest is filled in.
fn answer(
    kind: &'static str,
    subject: impl Into<String>,
    verdict: Verdict,
    by: DecidedBy,
    rule: Rule,
) -> Explanation {
    Explanation {
        kind,
        subject: subject.into(),
        leads_to: None,
        verdict,
        says: String::new(),
        by,
        rule,
        place: None,
        facts: Vec::new(),
        native: Vec::new(),
        sources: Vec::new(),
        change: None,
        refusals: Vec::new(),
    }
}
