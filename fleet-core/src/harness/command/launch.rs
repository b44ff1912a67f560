use std::collections::BTreeMap;
use std::sync::Arc;

use super::options::{self, CommandOptions};
use super::screen::PatternDriver;
use crate::config::keys::Key;
use crate::harness::screen::TerminalDriver;
use crate::harness::{
    ExitPolicy, Harness, HarnessLaunch, HomeSpec, LaunchContext, OptionProblem, Options,
    Prerequisite, SessionIds, StartMode, Vocabulary,
};
use crate::id::HarnessId;
use crate::permissions::{Translation, TranslationRequest};

/// Any program as an agent. It gets no prompt: the briefing's path is in its environment.
#[derive(Debug)]
pub struct CommandHarness {
    id: HarnessId,
}

impl CommandHarness {
    /// Its id in a fleet file.
    pub const ID: &'static str = "command";
}

impl Default for CommandHarness {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "a constant that a test parses")]
        let id = Self::ID.parse().expect("`command` is a valid harness id");
        Self { id }
    }
}

impl Harness for CommandHarness {
    fn id(&self) -> &HarnessId {
        &self.id
    }

    fn supports_resume(&self, options: &Options) -> bool {
        options.contains_key("resume_argv")
    }

    fn validate_options(&self, options: &Options) -> Vec<OptionProblem> {
        CommandOptions::parse(options).err().unwrap_or_default()
    }

    fn option_table(&self) -> Option<&'static [Key]> {
        Some(options::TABLE)
    }

    fn refused_keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("model", "a `command` role has no model: put it into `harness_options.argv`"),
            ("model_chain", "a `command` role has no model: put it into `harness_options.argv`"),
            ("max_tokens", "a `command` role has no context budget"),
            ("autocompact_pct", "a `command` role has no context to compact"),
        ]
    }

    fn model_variable(&self) -> Option<&'static str> {
        None
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            launch_note: |role| {
                format!("You were launched as fleet role `{role}`; say that you are running.")
            },
        }
    }

    fn launch(&self, context: &LaunchContext<'_>) -> HarnessLaunch {
        let LaunchContext { role, dirs, mode, .. } = *context;
        let options = CommandOptions::parse(role.harness_options.expose()).unwrap_or_default();
        let argv = match (mode, options.resume_argv) {
            (StartMode::Resume, Some(resume)) => resume,
            (StartMode::Resume, None) | (StartMode::Fresh, _) => options.argv,
        };
        let mut env = BTreeMap::from([
            ("OURS_FLEET_ROLE".to_owned(), role.name.to_string()),
            ("OURS_FLEET_STATE".to_owned(), dirs.state.to_string()),
            ("OURS_FLEET_BRIEFING".to_owned(), dirs.briefing.to_string()),
        ]);
        if let Some(session) = context.session {
            env.insert("OURS_FLEET_SESSION_ID".to_owned(), session.to_string());
        }
        HarnessLaunch { argv, env, ..HarnessLaunch::default() }
    }

    fn translate(&self, _request: &TranslationRequest<'_>) -> Translation {
        Translation::Unsupported {
            reason: "a `command` role has no permissions of its own: only its isolation bounds it"
                .to_owned(),
        }
    }

    fn native_overrides(&self, _options: &Options) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn effective(&self, request: &TranslationRequest<'_>) -> Translation {
        self.translate(request)
    }

    fn home(&self) -> Option<&'static HomeSpec> {
        None
    }

    fn session_ids(&self) -> SessionIds {
        SessionIds::Chosen
    }

    fn prerequisite(&self) -> Option<&'static Prerequisite> {
        None
    }

    fn exit_policy(&self) -> ExitPolicy {
        ExitPolicy { clean_exit_is_fresh: false, fast_fail_ms: 20_000 }
    }

    fn driver(&self, options: &Options) -> Arc<dyn TerminalDriver> {
        let options = CommandOptions::parse(options).unwrap_or_default();
        let (ready, busy, modal) = (options.ready, options.busy, options.modal);
        Arc::new(PatternDriver { ready, busy, modal })
    }
}
