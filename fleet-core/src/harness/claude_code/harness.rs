use std::collections::BTreeMap;
use std::sync::Arc;

use super::options::ClaudeOptions;
use super::screen::ClaudeDriver;
use super::{explain, home, launch, options, permissions, table};
use crate::config::keys::Key;
use crate::harness::screen::TerminalDriver;
use crate::harness::{
    ExitPolicy, Harness, HarnessLaunch, HomeSpec, LaunchContext, OptionProblem, Options,
    Prerequisite, SessionIds, Vocabulary,
};
use crate::id::HarnessId;
use crate::permissions::{Translation, TranslationRequest};
use crate::policy::explain::{NativeAnswer, NativeRequest};

/// Claude Code: a config home of its own, every start dialog answered in files, the permissions
/// passed at every launch.
#[derive(Debug)]
pub struct ClaudeCodeHarness {
    id: HarnessId,
}

impl ClaudeCodeHarness {
    /// Its id in a fleet file.
    pub const ID: &'static str = "claude-code";
}

impl Default for ClaudeCodeHarness {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "a constant that a test parses")]
        let id = Self::ID.parse().expect("`claude-code` is a valid harness id");
        Self { id }
    }
}

static PREREQUISITE: Prerequisite = Prerequisite {
    argv: &[launch::PROGRAM, "--version"],
    version,
    hint: "install `@anthropic-ai/claude-code` from npm and log in with `claude`",
    qualified: &table::QUALIFIED,
    sandbox_programs: &["bwrap", "socat"],
    // What its sandbox needs of the kernel: namespaces of users, processes and the network.
    sandbox_trial: &[
        "bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "true",
    ],
};

/// `2.1.332 (Claude Code)` is version `2.1.332`. Anything else is no version.
fn version(output: &str) -> Option<String> {
    let version = output.trim().strip_suffix("(Claude Code)")?.trim();
    let plain = |part: &str| {
        !part.is_empty()
            && part.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '+'))
    };
    let short = version.len() <= 64;
    (short && version.split('.').count() >= 2 && version.split('.').all(plain))
        .then(|| version.to_owned())
}

impl Harness for ClaudeCodeHarness {
    fn id(&self) -> &HarnessId {
        &self.id
    }

    fn supports_resume(&self, _options: &Options) -> bool {
        true
    }

    fn validate_options(&self, options: &Options) -> Vec<OptionProblem> {
        ClaudeOptions::parse(options).err().unwrap_or_default()
    }

    fn option_table(&self) -> Option<&'static [Key]> {
        Some(options::TABLE)
    }

    fn refused_keys(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn model_variable(&self) -> Option<&'static str> {
        Some("ANTHROPIC_MODEL")
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            launch_note: |role| {
                format!(
                    "You were launched as fleet role {role} under Claude Code; your session is named {role}."
                )
            },
        }
    }

    fn launch(&self, context: &LaunchContext<'_>) -> HarnessLaunch {
        launch::launch(context)
    }

    fn translate(&self, request: &TranslationRequest<'_>) -> Translation {
        permissions::translate(request)
    }

    fn native_overrides(&self, options: &Options) -> BTreeMap<String, String> {
        permissions::native_overrides(options)
    }

    fn effective(&self, request: &TranslationRequest<'_>) -> Translation {
        permissions::effective(request)
    }

    fn explain(&self, request: &NativeRequest<'_>) -> Vec<NativeAnswer> {
        explain::answers(request)
    }

    fn home(&self) -> Option<&'static HomeSpec> {
        Some(&home::HOME)
    }

    fn session_ids(&self) -> SessionIds {
        SessionIds::Chosen
    }

    fn prerequisite(&self) -> Option<&'static Prerequisite> {
        Some(&PREREQUISITE)
    }

    fn exit_policy(&self) -> ExitPolicy {
        ExitPolicy { clean_exit_is_fresh: true, fast_fail_ms: 20_000 }
    }

    fn driver(&self, _options: &Options) -> Arc<dyn TerminalDriver> {
        Arc::new(ClaudeDriver)
    }

    fn session_records(&self) -> Option<&'static str> {
        Some("sessions")
    }
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn only_its_own_version_line_is_a_version() {
        assert_eq!(version("2.1.332 (Claude Code)\n").as_deref(), Some("2.1.332"));
        assert_eq!(version("2.2.0-beta.1 (Claude Code)").as_deref(), Some("2.2.0-beta.1"));
        for other in ["", "2.1.332", "(Claude Code)", "error (Claude Code)", "2..1 (Claude Code)"] {
            assert_eq!(version(other), None, "{other}");
        }
    }
}
