//! Harnesses: the programs that are the agents. One pure trait, one folder each; the caller
//! registers those it wants, so adding one touches no other file of the core.

pub mod claude_code;
pub mod codex;
pub mod command;
pub mod hooks;
pub mod json_edit;
mod launch_data;
pub mod prompts;
pub mod screen;
pub mod shared;
mod vocabulary;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use crate::config::keys::Key;
use crate::id::HarnessId;
use crate::path::LexicalPath;
use crate::permissions::{Translation, TranslationRequest};
use crate::policy::explain::{NativeAnswer, NativeRequest};

use self::screen::TerminalDriver;

pub use launch_data::{
    FileContent, FilePlace, HarnessFile, HarnessLaunch, HomeSpec, JsonChange, JsonEdit,
    LaunchContext, LaunchDirs, Prerequisite, SessionFiles, SessionIds, SessionMeta, SharedItem,
    SharedKind,
};
pub use vocabulary::Vocabulary;

use launch_data::DEGRADED;

/// Options as written, in JSON form.
pub type Options = serde_json::Map<String, serde_json::Value>;

/// What is wrong with an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionProblem {
    /// Path below `harness_options`, for example `argv[1]`.
    pub path: String,
    /// What is wrong, a lower-case fragment. Holds no option value.
    pub message: String,
    /// What is allowed.
    pub allowed: Vec<String>,
    /// Whether the key itself does not exist.
    pub unknown_key: bool,
}

/// Whether a launch begins a conversation or goes on with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartMode {
    /// A new conversation that reads the briefing.
    Fresh,
    /// The stored conversation goes on.
    Resume,
}

impl StartMode {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Resume => "resume",
        }
    }
}

/// When an exit counts as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitPolicy {
    /// Whether the start after a clean exit is fresh.
    pub clean_exit_is_fresh: bool,
    /// An attempt that lived less long counts as an immediate failure, in milliseconds.
    pub fast_fail_ms: u64,
}

/// An agent program.
pub trait Harness: Send + Sync + Debug {
    /// Its id in a fleet file.
    fn id(&self) -> &HarnessId;

    /// Whether a stored conversation can be continued with these options.
    fn supports_resume(&self, options: &Options) -> bool;

    /// Everything wrong with the options. An option that cannot be honoured is a problem, never
    /// dropped.
    fn validate_options(&self, options: &Options) -> Vec<OptionProblem>;

    /// Which options there are, for the schema of a fleet file. `None`, the default, means that it takes
    /// options that no table lists.
    fn option_table(&self) -> Option<&'static [Key]> {
        None
    }

    /// Role keys (below the role, dotted) that mean nothing to this harness and are refused when
    /// written, each with a reason.
    fn refused_keys(&self) -> &'static [(&'static str, &'static str)];

    /// The variable by which its environment pins the model (01 §4.4). A role with a model then has
    /// this variable with the same value; `None` where the environment names no model.
    fn model_variable(&self) -> Option<&'static str>;

    /// How the briefing speaks to it.
    fn vocabulary(&self) -> Vocabulary;

    /// How the program starts: argv, environment, files.
    fn launch(&self, context: &LaunchContext<'_>) -> HarnessLaunch;

    /// What the neutral permissions mean for it inside that boundary, without native overrides.
    fn translate(&self, request: &TranslationRequest<'_>) -> Translation;

    /// Native settings that the operator wrote in the options, keyed like
    /// [`crate::permissions::Supported::native`]. They win over the translation.
    fn native_overrides(&self, options: &Options) -> BTreeMap<String, String>;

    /// What is granted with the native overrides in place; [`Harness::translate`] without any.
    fn effective(&self, request: &TranslationRequest<'_>) -> Translation;

    /// What its own settings say to a question about a path, the network or a tool. Empty, the
    /// default, means that it does not say.
    fn explain(&self, _request: &NativeRequest<'_>) -> Vec<NativeAnswer> {
        Vec::new()
    }

    /// Directories beside the working directory that the options tell it to write in. Isolation judges
    /// them as if the fleet file asked for them, and mounts them writable.
    fn write_dirs(&self, _options: &Options) -> Vec<LexicalPath> {
        Vec::new()
    }

    /// Its config home; `None` if it has none.
    fn home(&self) -> Option<&'static HomeSpec>;

    /// Who chooses the ids of its conversations.
    fn session_ids(&self) -> SessionIds;

    /// How to find out whether it is installed; `None` for a program that the options name.
    fn prerequisite(&self) -> Option<&'static Prerequisite>;

    /// When it is given fleet's hook.
    fn hook_use(&self) -> hooks::HookUse {
        hooks::HookUse::of(self.id().as_str())
    }

    /// When an exit counts as what.
    fn exit_policy(&self) -> ExitPolicy;

    /// How to tell its state from its terminal.
    fn driver(&self, options: &Options) -> Arc<dyn TerminalDriver>;

    /// The directory below its home in which the program keeps a [`screen::SessionRecord`] of each of
    /// its live processes; `None` if it keeps none.
    fn session_records(&self) -> Option<&'static str> {
        None
    }
}

/// The harnesses that a program registered.
#[derive(Debug, Clone, Default)]
pub struct Harnesses {
    known: Vec<Arc<dyn Harness>>,
}

impl Harnesses {
    /// The harnesses built into this crate.
    pub fn built_in() -> Self {
        let mut harnesses = Self::default();
        harnesses.register(Arc::new(claude_code::ClaudeCodeHarness::default()));
        harnesses.register(Arc::new(codex::CodexHarness::default()));
        harnesses.register(Arc::new(command::CommandHarness::default()));
        harnesses
    }

    /// Adds a harness, in place of one with the same id.
    pub fn register(&mut self, harness: Arc<dyn Harness>) {
        self.known.retain(|other| other.id() != harness.id());
        self.known.push(harness);
    }

    /// The harness with this id.
    pub fn get(&self, id: &str) -> Option<&Arc<dyn Harness>> {
        self.known.iter().find(|harness| harness.id().as_str() == id)
    }

    /// Ids of the registered harnesses.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|harness| harness.id().as_str())
    }
}
