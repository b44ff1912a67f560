use std::collections::BTreeMap;
use std::sync::Arc;

use super::home::{CODEX_HOME, PREREQUISITE};
use super::options::CodexOptions;
use super::screen::CodexDriver;
use super::sessions::SESSION_FILES;
use super::{explain, launch, options, permissions};
use crate::config::keys::Key;
use crate::harness::screen::TerminalDriver;
use crate::harness::{
    ExitPolicy, Harness, HarnessLaunch, HomeSpec, LaunchContext, OptionProblem, Options,
    Prerequisite, SessionIds, Vocabulary,
};
use crate::id::HarnessId;
use crate::path::LexicalPath;
use crate::permissions::{Translation, TranslationRequest};
use crate::policy::explain::{NativeAnswer, NativeRequest};

/// The Codex CLI in a console, without its daemon and with a config home of its own.
#[derive(Debug)]
pub struct CodexHarness {
    id: HarnessId,
}

impl CodexHarness {
    /// Its id in a fleet file.
    pub const ID: &'static str = "codex";
}

impl Default for CodexHarness {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "a constant that a test parses")]
        let id = Self::ID.parse().expect("`codex` is a valid harness id");
        Self { id }
    }
}

impl Harness for CodexHarness {
    fn id(&self) -> &HarnessId {
        &self.id
    }

    fn supports_resume(&self, _options: &Options) -> bool {
        true
    }

    fn validate_options(&self, options: &Options) -> Vec<OptionProblem> {
        CodexOptions::parse(options).err().unwrap_or_default()
    }

    fn option_table(&self) -> Option<&'static [Key]> {
        Some(options::TABLE)
    }

    fn refused_keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "max_tokens",
                "Codex takes no context budget: write \
                 `harness_options.config.model_auto_compact_token_limit`",
            ),
            (
                "autocompact_pct",
                "Codex compacts at a number of tokens: write \
                 `harness_options.config.model_auto_compact_token_limit`",
            ),
        ]
    }

    fn model_variable(&self) -> Option<&'static str> {
        None
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            launch_note: |role| format!("You were launched as fleet role {role} under Codex."),
        }
    }

    fn launch(&self, context: &LaunchContext<'_>) -> HarnessLaunch {
        launch::launch(context)
    }

    fn translate(&self, request: &TranslationRequest<'_>) -> Translation {
        Translation::Supported(permissions::translate(request))
    }

    fn native_overrides(&self, options: &Options) -> BTreeMap<String, String> {
        CodexOptions::parse(options).unwrap_or_default().overrides()
    }

    fn effective(&self, request: &TranslationRequest<'_>) -> Translation {
        Translation::Supported(permissions::effective(request))
    }

    fn explain(&self, request: &NativeRequest<'_>) -> Vec<NativeAnswer> {
        explain::answers(request)
    }

    fn write_dirs(&self, options: &Options) -> Vec<LexicalPath> {
        CodexOptions::parse(options).unwrap_or_default().add_dirs
    }

    fn home(&self) -> Option<&'static HomeSpec> {
        Some(&CODEX_HOME)
    }

    fn session_ids(&self) -> SessionIds {
        SessionIds::Recorded(SESSION_FILES)
    }

    fn prerequisite(&self) -> Option<&'static Prerequisite> {
        Some(&PREREQUISITE)
    }

    fn exit_policy(&self) -> ExitPolicy {
        ExitPolicy { clean_exit_is_fresh: true, fast_fail_ms: 20_000 }
    }

    fn driver(&self, _options: &Options) -> Arc<dyn TerminalDriver> {
        Arc::new(CodexDriver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_valid() {
        assert_eq!(CodexHarness::default().id().as_str(), CodexHarness::ID);
    }
}
