//! Adds an agent program of one's own: a harness is one pure type, registered by the embedder.
//!
//! `aide` takes its model as an option and reads the briefing from a file named in its arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet_core::config::{ConfigSources, LoadOptions, YamlMode, load};
use fleet_core::harness::command::PatternDriver;
use fleet_core::harness::screen::TerminalDriver;
use fleet_core::harness::{
    ExitPolicy, Harness, HarnessLaunch, Harnesses, HomeSpec, LaunchContext, LaunchDirs,
    OptionProblem, Options, Prerequisite, SessionIds, StartMode, Vocabulary,
};
use fleet_core::id::{HarnessId, SessionId};
use fleet_core::launch::Environment;
use fleet_core::path::LexicalPath;
use fleet_core::permissions::{
    Approval, Capability, Outer, Supported, Translation, TranslationRequest,
};

/// The harness `aide`.
#[derive(Debug)]
pub(crate) struct Aide {
    id: HarnessId,
}

impl Aide {
    /// Its id is what a fleet file writes under `harness`.
    pub(crate) fn new() -> Result<Self, fleet_core::id::NameError> {
        Ok(Self { id: "aide".parse()? })
    }
}

impl Harness for Aide {
    fn id(&self) -> &HarnessId {
        &self.id
    }

    fn supports_resume(&self, _options: &Options) -> bool {
        true
    }

    // An option that can't be honoured is a problem; none is ever dropped.
    fn validate_options(&self, options: &Options) -> Vec<OptionProblem> {
        options
            .iter()
            .filter(|(key, value)| *key != "colour" || !value.is_boolean())
            .map(|(key, _)| OptionProblem {
                path: key.clone(),
                message: "is not an option of `aide`, or not `true` or `false`".to_owned(),
                allowed: vec!["colour".to_owned()],
                unknown_key: key != "colour",
            })
            .collect()
    }

    fn refused_keys(&self) -> &'static [(&'static str, &'static str)] {
        &[("autocompact_pct", "`aide` never compacts its context")]
    }

    fn model_variable(&self) -> Option<&'static str> {
        None
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            launch_note: |role| format!("You are `aide`, launched as fleet role `{role}`."),
        }
    }

    fn launch(&self, context: &LaunchContext<'_>) -> HarnessLaunch {
        let LaunchContext { role, dirs, mode, session, .. } = *context;
        let mut argv = vec!["aide".to_owned()];
        if let Some(model) = &role.model {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
        argv.extend(match (mode, session) {
            (StartMode::Resume, Some(session)) => ["--resume".to_owned(), session.to_string()],
            _ => ["--briefing".to_owned(), dirs.briefing.to_string()],
        });
        let env = BTreeMap::from([("AIDE_HOME".to_owned(), dirs.harness_home.to_string())]);
        HarnessLaunch { argv, env, ..HarnessLaunch::default() }
    }

    fn translate(&self, request: &TranslationRequest<'_>) -> Translation {
        let approval = request.permissions.approval;
        let mode = match approval {
            Approval::Ask => "ask",
            Approval::Auto | Approval::Allow => "auto",
        };
        let warnings = match approval {
            Approval::Allow => vec!["`aide` still asks before it deletes a file".to_owned()],
            Approval::Ask | Approval::Auto => Vec::new(),
        };
        Translation::Supported(Supported {
            native: BTreeMap::from([("mode".to_owned(), mode.to_owned())]),
            exact: warnings.is_empty(),
            measured: true,
            notes: Vec::new(),
            warnings,
            refusals: Vec::new(),
            granted: BTreeSet::from([Capability::ReadState, Capability::WriteState]),
            mode: approval,
            covered: true,
        })
    }

    // No option of its own sets what the permissions translate to.
    fn native_overrides(&self, _options: &Options) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn effective(&self, request: &TranslationRequest<'_>) -> Translation {
        self.translate(request)
    }

    fn home(&self) -> Option<&'static HomeSpec> {
        Some(&HomeSpec { variable: "AIDE_HOME", operator: ".aide", shared: &[], read: &[] })
    }

    fn session_ids(&self) -> SessionIds {
        SessionIds::Chosen
    }

    fn prerequisite(&self) -> Option<&'static Prerequisite> {
        None
    }

    fn exit_policy(&self) -> ExitPolicy {
        ExitPolicy { clean_exit_is_fresh: true, fast_fail_ms: 20_000 }
    }

    // Literal texts do for a start; a driver of one's own can read the composer too.
    fn driver(&self, _options: &Options) -> Arc<dyn TerminalDriver> {
        Arc::new(PatternDriver { ready: vec!["aide>".to_owned()], ..PatternDriver::default() })
    }
}

const FLEET: &str = "\
roles:
  helper:
    harness: aide
    model: small-1
    harness_options: { colour: true }
";

/// The lines this program prints: how `helper` starts the first time.
pub(crate) fn run() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut harnesses = Harnesses::built_in();
    harnesses.register(Arc::new(Aide::new()?));

    let sources = ConfigSources::base_only("/srv/fleet/fleet.yaml", FLEET);
    let home = LexicalPath::root();
    let options = LoadOptions { yaml_mode: YamlMode::Strict, home: &home, harnesses: &harnesses };
    let loaded = load(&sources, &options);
    let Some(fleet) = loaded.fleet else {
        return Ok(loaded.diagnostics.iter().map(ToString::to_string).collect());
    };

    let dirs = LaunchDirs {
        state: "/srv/fleet/.ours-fleet/agents/helper".into(),
        cwd: "/srv/project".into(),
        git: Vec::new(),
        harness_home: "/srv/fleet/.ours-fleet/harness/helper/aide".into(),
        handout: "/srv/fleet/.ours-fleet/handout/helper".into(),
        briefing: "/srv/fleet/.ours-fleet/handout/helper/briefing.md".into(),
        aliases: BTreeMap::new(),
    };
    let session: SessionId = "11111111-2222-4333-8444-555555555555".parse()?;
    let mut lines = Vec::new();
    for role in fleet.roles.values() {
        if let Some(harness) = harnesses.get(role.harness.as_str()) {
            let launch = harness.launch(&LaunchContext {
                role,
                dirs: &dirs,
                mode: StartMode::Fresh,
                session: Some(&session),
                outer: Outer::Off,
                root: false,
                version: None,
                operator_files: &BTreeMap::new(),
                own_env: &Environment::default(),
                denied_reads: &[],
                hook: None,
            });
            lines.push(format!("{}: {}", role.name, launch.argv.join(" ")));
        }
    }
    Ok(lines)
}

#[expect(clippy::print_stdout, reason = "a program for the terminal")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in run()? {
        println!("{line}");
    }
    Ok(())
}
