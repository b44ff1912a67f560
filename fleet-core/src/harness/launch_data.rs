//! Launch data: what a launch of a harness is made from, and what it says should be done. Values only;
//! the caller writes the files and starts the program.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde_json::Value;

use crate::config::Role;
use crate::id::SessionId;
use crate::isolation::Backend;
use crate::isolation::network::HostRule;
use crate::launch::Environment;
use crate::permissions::{DeniedRead, Outer};
use crate::redact::Redacted;

use super::StartMode;
use super::hooks::HookCommand;

/// Directories of a role as its harness sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchDirs {
    /// The role's own directory.
    pub state: Utf8PathBuf,
    /// The working directory.
    pub cwd: Utf8PathBuf,
    /// Directories outside `cwd` that git writes when it commits there: of a linked worktree what is
    /// its own, and the repository. Empty elsewhere.
    pub git: Vec<Utf8PathBuf>,
    /// The harness's config home.
    pub harness_home: Utf8PathBuf,
    /// What fleet hands to the agent.
    pub handout: Utf8PathBuf,
    /// The briefing.
    pub briefing: Utf8PathBuf,
    /// Of those directories that are reached through links: by their path as above, the path without
    /// links, which is what a program sees as its own.
    pub aliases: BTreeMap<Utf8PathBuf, Utf8PathBuf>,
}

impl LaunchDirs {
    /// One of these directories as a program sees it that asks where it is.
    pub fn real<'a>(&'a self, directory: &'a Utf8PathBuf) -> &'a Utf8PathBuf {
        self.aliases.get(directory).unwrap_or(directory)
    }
}

/// What one launch is made from.
#[derive(Debug, Clone, Copy)]
pub struct LaunchContext<'a> {
    /// The role. Its options passed [`super::Harness::validate_options`].
    pub role: &'a Role,
    /// Its directories.
    pub dirs: &'a LaunchDirs,
    /// Fresh or resume.
    pub mode: StartMode,
    /// The conversation: to begin under this id, or to go on with. `None` on a fresh start of a
    /// harness that chooses its ids itself.
    pub session: Option<&'a SessionId>,
    /// The boundary around the program.
    pub outer: Outer,
    /// Whether the program runs as uid 0, as far as it can tell.
    pub root: bool,
    /// Version of the installed program, where it is known.
    pub version: Option<&'a str>,
    /// The operator's own files that the harness named in [`HomeSpec::read`], by that name. An
    /// absent file is not in the map.
    pub operator_files: &'a BTreeMap<&'static str, String>,
    /// Fleet's own environment, for the values of `env_pass`.
    pub own_env: &'a Environment,
    /// As in [`TranslationRequest::denied_reads`](crate::permissions::TranslationRequest::denied_reads).
    pub denied_reads: &'a [DeniedRead],
    /// The hook to install; `None` where this launch has none ([`super::Harness::hook_use`]).
    pub hook: Option<&'a HookCommand>,
}

impl LaunchContext<'_> {
    /// Whether the role asks for isolation and this launch has none. In the sandbox the agent may have
    /// put settings, hooks and servers into its working directory: this launch obeys none of those.
    pub fn is_degraded(&self) -> bool {
        let asks = self.role.isolation.as_ref().is_some_and(|it| it.backend != Backend::None);
        asks && !self.outer.is_on()
    }
}

/// What is said of a launch that is degraded.
pub(super) const DEGRADED: &str = "without its isolation it uses no settings, hooks or servers of the \
     working directory: the agent could have written them";

/// How a harness program starts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HarnessLaunch {
    /// What the program must reach for its model: the part of `network: broker` that it brings along.
    pub endpoints: Vec<HostRule>,
    /// Program and arguments. The program may be a bare name; the caller resolves it on the `PATH`
    /// of the role. Holds no option value that may be a secret.
    pub argv: Vec<String>,
    /// Variables that the harness adds to the environment.
    pub env: BTreeMap<String, String>,
    /// Files to write before the program starts.
    pub files: Vec<HarnessFile>,
    /// Shared items (by [`SharedItem::name`]) that this launch must not link, because one of
    /// [`HarnessLaunch::files`] takes their place.
    pub replaced: Vec<&'static str>,
    /// Facts for the launch record and the analysis, one line each, without values.
    pub notes: Vec<String>,
}

/// Which of the role's trees a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePlace {
    /// The harness home, which the program writes too.
    Home,
    /// The hand-out, which the agent can only read.
    Handout,
}

/// A file to write, mode 0600.
#[derive(Debug, Clone, PartialEq)]
pub struct HarnessFile {
    /// In which tree.
    pub place: FilePlace,
    /// Path below it, without `.` and `..`.
    pub name: String,
    /// What stands in it.
    pub content: FileContent,
}

/// The content of a file. May hold secrets.
#[derive(Debug, Clone, PartialEq)]
pub enum FileContent {
    /// All of it.
    Whole(Redacted<String>),
    /// A JSON object that the program writes too: these members are set, everything else is kept. A
    /// file that is no JSON object is left as it is, with a warning.
    Json(Vec<JsonEdit>),
}

/// One change of a JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonEdit {
    /// The member, from the outside in. Missing objects on the way are made.
    pub path: Vec<String>,
    /// What is done with it.
    pub change: JsonChange,
}

/// What is done with a member.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonChange {
    /// It is this.
    Set(Redacted<Value>),
    /// It is a number, and at least this.
    AtLeast(u64),
    /// It is a list that holds this text.
    Include(Redacted<String>),
}

/// The config home of a harness: one per role, named by a variable (01 §2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomeSpec {
    /// The variable that names it.
    pub variable: &'static str,
    /// Where the operator's own one is, below the home of the account, unless [`Self::variable`] is
    /// set in fleet's own environment.
    pub operator: &'static str,
    /// Items of the operator's home that every role sees, read-only.
    pub shared: &'static [SharedItem],
    /// Files of the operator's home whose text the launch data is made from.
    pub read: &'static [&'static str],
}

/// An item of the operator's home that every role sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedItem {
    /// Its name in the operator's home and in the role's.
    pub name: &'static str,
    /// What it must be.
    pub kind: SharedKind,
    /// Whether it is below the home of the account itself, and keeps its place there.
    pub below_account: bool,
    /// Whether it is the login: said in `doctor` when a sandbox makes it read-only.
    pub login: bool,
}

/// What a shared item must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKind {
    /// A file.
    File,
    /// A directory, with all that is in it.
    Directory,
    /// A directory of the role's own, into which each file of the operator's is linked.
    EachFile,
}

/// Who chooses the id of a conversation.
#[derive(Debug, Clone, Copy)]
pub enum SessionIds {
    /// Fleet, before the first start.
    Chosen,
    /// The program. The id is read afterwards from the files that it keeps of its conversations.
    Recorded(SessionFiles),
}

/// Where a program keeps its conversations: files in dated directories below the harness home.
#[derive(Debug, Clone, Copy)]
pub struct SessionFiles {
    /// The directory below the harness home.
    pub directory: &'static str,
    /// How many levels of directories are below it. Names at each level sort by time.
    pub depth: u8,
    /// Reads the first line of a file: the conversation it belongs to and its working directory.
    pub parse: fn(name: &str, first_line: &str) -> Option<SessionMeta>,
}

/// What a conversation file says of itself. Written by the program, so a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionMeta {
    /// The conversation.
    pub id: SessionId,
    /// Where it was started.
    pub cwd: String,
}

/// How to find out whether a program is there, and in which version.
#[derive(Debug, Clone, Copy)]
pub struct Prerequisite {
    /// Program and arguments; prints its version and ends with 0.
    pub argv: &'static [&'static str],
    /// Takes the version out of what it printed.
    pub version: fn(&str) -> Option<String>,
    /// What to do if it is missing.
    pub hint: &'static str,
    /// Versions whose behaviour was measured, newest first.
    pub qualified: &'static [&'static str],
    /// Programs that its own sandbox needs beside it.
    pub sandbox_programs: &'static [&'static str],
    /// Program and arguments that start its own sandbox around nothing and end with 0 if that works;
    /// empty if it has no sandbox of its own. Run with a scratch directory as `HOME` and as the
    /// harness home.
    pub sandbox_trial: &'static [&'static str],
}

impl SessionIds {
    /// Whether fleet chooses.
    pub fn are_chosen(&self) -> bool {
        matches!(self, Self::Chosen)
    }
}

impl Prerequisite {
    /// Whether this version was measured.
    pub fn is_qualified(&self, version: &str) -> bool {
        self.qualified.contains(&version)
    }
}
