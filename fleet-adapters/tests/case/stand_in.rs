//! A harness for tests: any program, seen through the driver of a real one.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_core::harness::claude_code::ClaudeDriver;
use fleet_core::harness::screen::TerminalDriver;
use fleet_core::harness::{
    ExitPolicy, Harness, HarnessLaunch, Harnesses, HomeSpec, LaunchContext, OptionProblem, Options,
    Prerequisite, SessionFiles, SessionIds, SessionMeta, StartMode, Vocabulary,
};
use fleet_core::id::HarnessId;
use fleet_core::permissions::{Translation, TranslationRequest};

/// `stand-in`, which keeps session records and chooses its conversations itself if told so.
#[derive(Debug)]
pub(crate) struct StandIn {
    id: HarnessId,
    recorded: bool,
}

/// The built-in harnesses and this one.
pub(crate) fn harnesses(recorded: bool) -> Harnesses {
    let mut harnesses = Harnesses::built_in();
    let id = "stand-in".parse().expect("an id");
    harnesses.register(Arc::new(StandIn { id, recorded }));
    harnesses
}

/// First lines are `ID CWD`.
fn parse(name: &str, line: &str) -> Option<SessionMeta> {
    let (id, cwd) = line.split_once(' ')?;
    let named = name.starts_with("rollout-");
    named.then(|| Some(SessionMeta { id: id.parse().ok()?, cwd: cwd.to_owned() }))?
}

impl Harness for StandIn {
    fn id(&self) -> &HarnessId {
        &self.id
    }

    fn supports_resume(&self, _options: &Options) -> bool {
        true
    }

    fn validate_options(&self, _options: &Options) -> Vec<OptionProblem> {
        Vec::new()
    }

    fn refused_keys(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn model_variable(&self) -> Option<&'static str> {
        None
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary { launch_note: |role| format!("You are {role}.") }
    }

    fn launch(&self, context: &LaunchContext<'_>) -> HarnessLaunch {
        let mut argv = vec!["/opt/agent".to_owned()];
        let session = context.session.map(ToString::to_string);
        argv.extend(match context.mode {
            StartMode::Resume => ["resume".to_owned(), session.expect("an id to resume")],
            StartMode::Fresh => ["begin".to_owned(), session.unwrap_or_default()],
        });
        argv.extend(context.version.map(str::to_owned));
        HarnessLaunch { argv, ..HarnessLaunch::default() }
    }

    fn translate(&self, _request: &TranslationRequest<'_>) -> Translation {
        Translation::Unsupported { reason: "a test".to_owned() }
    }

    fn native_overrides(&self, _options: &Options) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn effective(&self, request: &TranslationRequest<'_>) -> Translation {
        self.translate(request)
    }

    fn home(&self) -> Option<&'static HomeSpec> {
        Some(&HomeSpec { variable: "STAND_IN_HOME", operator: ".x", shared: &[], read: &[] })
    }

    fn session_ids(&self) -> SessionIds {
        if self.recorded {
            SessionIds::Recorded(SessionFiles { directory: "sessions", depth: 2, parse })
        } else {
            SessionIds::Chosen
        }
    }

    fn prerequisite(&self) -> Option<&'static Prerequisite> {
        Some(&Prerequisite {
            argv: &["agent", "--version"],
            version: |text| text.split_whitespace().next().map(str::to_owned),
            hint: "install it",
            qualified: &["1.2.3"],
            sandbox_programs: &[],
            sandbox_trial: &[],
        })
    }

    fn exit_policy(&self) -> ExitPolicy {
        ExitPolicy { clean_exit_is_fresh: true, fast_fail_ms: 20_000 }
    }

    fn driver(&self, _options: &Options) -> Arc<dyn TerminalDriver> {
        Arc::new(ClaudeDriver)
    }

    fn session_records(&self) -> Option<&'static str> {
        Some("records")
    }
}
