use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::harness::command::PatternDriver;
use crate::harness::screen::TerminalDriver;
use crate::harness::{
    ExitPolicy, Harness, HarnessLaunch, Harnesses, HomeSpec, LaunchContext, OptionProblem, Options,
    Prerequisite, SessionIds, SharedItem, SharedKind, StartMode, Vocabulary,
};
use crate::id::HarnessId;
use crate::permissions::{Approval, Capability, Outer, Supported, Translation, TranslationRequest};

/// A model harness that only the tests know: with a home, a model pin, permissions that depend on the
/// boundary, and one native override, `permission_mode`. Change the parts, then register it.
#[derive(Debug, Clone)]
pub struct StubHarness {
    /// Its id, which is also its program.
    pub id: HarnessId,
    /// Names of its options. Values are checked for `permission_mode` only.
    pub options: &'static [&'static str],
    /// The variable that pins its model.
    pub model_variable: Option<&'static str>,
    /// Its home.
    pub home: Option<&'static HomeSpec>,
    /// How to find out whether it is there.
    pub prerequisite: Option<&'static Prerequisite>,
}

const MODES: &[&str] = &["ask", "auto", "allow", "anything"];

const CLAUDE_HOME: HomeSpec = HomeSpec {
    variable: "CLAUDE_CONFIG_DIR",
    operator: ".claude",
    shared: &[
        SharedItem {
            name: "CLAUDE.md",
            kind: SharedKind::File,
            below_account: false,
            login: false,
        },
        SharedItem {
            name: ".credentials.json",
            kind: SharedKind::File,
            below_account: false,
            login: true,
        },
    ],
    read: &[],
};
const CODEX_HOME: HomeSpec =
    HomeSpec { variable: "CODEX_HOME", operator: ".codex", shared: &[], read: &[] };

const CLAUDE: Prerequisite = Prerequisite {
    argv: &["claude-code", "--version"],
    version: first_word,
    hint: "install Claude Code and log in",
    qualified: &["2.1.332"],
    sandbox_programs: &["bwrap", "socat"],
    sandbox_trial: &["bwrap", "--ro-bind", "/", "/", "true"],
};
const CODEX: Prerequisite = Prerequisite {
    argv: &["codex", "--version"],
    version: first_word,
    hint: "install Codex and log in",
    qualified: &["0.171.0"],
    sandbox_programs: &[],
    sandbox_trial: &["codex", "sandbox", "--", "true"],
};

fn first_word(text: &str) -> Option<String> {
    text.split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(Into::into)
}

impl StubHarness {
    /// In the place of Claude Code.
    ///
    /// # Panics
    /// Never.
    pub fn claude_code() -> Self {
        Self {
            id: id("claude-code"),
            options: &["permission_mode", "effort", "plugins", "mcp_servers", "config_home"],
            model_variable: Some("ANTHROPIC_MODEL"),
            home: Some(&CLAUDE_HOME),
            prerequisite: Some(&CLAUDE),
        }
    }

    /// In the place of Codex.
    ///
    /// # Panics
    /// Never.
    pub fn codex() -> Self {
        Self {
            id: id("codex"),
            options: &["permission_mode", "sandbox", "search", "profile", "config", "config_home"],
            model_variable: None,
            home: Some(&CODEX_HOME),
            prerequisite: Some(&CODEX),
        }
    }
}

/// `command` and a stub in the place of each model harness: what tests of the configuration load with.
///
/// # Panics
/// Never.
pub fn stub_harnesses() -> Harnesses {
    let mut harnesses = Harnesses::built_in();
    harnesses.register(Arc::new(StubHarness::claude_code()));
    harnesses.register(Arc::new(StubHarness::codex()));
    harnesses
}

fn id(text: &str) -> HarnessId {
    let Ok(id) = text.parse() else { panic!("test id {text:?} is not valid") };
    id
}

fn problem(path: &str, message: &str, allowed: &[&str], unknown_key: bool) -> OptionProblem {
    OptionProblem {
        path: path.to_owned(),
        message: message.to_owned(),
        allowed: allowed.iter().map(|&word| word.to_owned()).collect(),
        unknown_key,
    }
}

impl Harness for StubHarness {
    fn id(&self) -> &HarnessId {
        &self.id
    }

    fn supports_resume(&self, _options: &Options) -> bool {
        true
    }

    fn validate_options(&self, options: &Options) -> Vec<OptionProblem> {
        let unknown = options
            .keys()
            .filter(|key| !self.options.contains(&key.as_str()))
            .map(|key| problem(key, "unknown key", self.options, true));
        let mode = options
            .get("permission_mode")
            .filter(|mode| !mode.as_str().is_some_and(|mode| MODES.contains(&mode)))
            .map(|_| problem("permission_mode", "is not a known value", MODES, false));
        unknown.chain(mode).collect()
    }

    fn refused_keys(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn model_variable(&self) -> Option<&'static str> {
        self.model_variable
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary { launch_note: |role| format!("You are the stub `{role}`.") }
    }

    fn launch(&self, context: &LaunchContext<'_>) -> HarnessLaunch {
        let mut argv = vec![self.id.to_string()];
        match (context.mode, context.session) {
            (StartMode::Resume, Some(session)) => {
                argv.extend(["--resume".to_owned(), session.to_string()]);
            }
            _ => argv.push(format!("Read and follow {}", context.dirs.briefing)),
        }
        let home =
            self.home.map(|home| (home.variable.to_owned(), context.dirs.harness_home.to_string()));
        let env: BTreeMap<String, String> = home.into_iter().collect();
        HarnessLaunch { argv, env, ..HarnessLaunch::default() }
    }

    fn translate(&self, request: &TranslationRequest<'_>) -> Translation {
        let approval = request.permissions.approval;
        let mut granted = BTreeSet::from([Capability::ReadState]);
        if approval != Approval::Ask {
            granted.extend(Capability::ALL);
        }
        let refusals = match (request.outer, approval) {
            (Outer::OffUnsandboxed, Approval::Auto | Approval::Allow) => {
                vec!["its own sandbox cannot be used on this host".to_owned()]
            }
            _ => Vec::new(),
        };
        Translation::Supported(Supported {
            native: BTreeMap::from([
                ("permission_mode".to_owned(), approval.as_str().to_owned()),
                ("sandbox".to_owned(), (request.outer == Outer::Off).to_string()),
            ]),
            exact: true,
            measured: request
                .version
                .is_none_or(|version| self.prerequisite.is_some_and(|it| it.is_qualified(version))),
            notes: vec!["a fact of the stub".to_owned()],
            warnings: Vec::new(),
            refusals,
            granted,
            mode: approval,
            covered: true,
        })
    }

    fn native_overrides(&self, options: &Options) -> BTreeMap<String, String> {
        let mode = options.get("permission_mode").and_then(Value::as_str);
        mode.map(|mode| ("permission_mode".to_owned(), mode.to_owned())).into_iter().collect()
    }

    fn effective(&self, request: &TranslationRequest<'_>) -> Translation {
        let mut translation = self.translate(request);
        if let Translation::Supported(supported) = &mut translation {
            for (key, value) in self.native_overrides(request.options) {
                if supported.native.get(&key) != Some(&value) {
                    supported.exact = false;
                    supported.warnings = vec![format!("`{key}` is `{value}`")];
                    match Approval::from_word(&value) {
                        Some(word) => supported.mode = word,
                        None => supported.covered = false,
                    }
                    supported.native.insert(key, value);
                }
            }
        }
        translation
    }

    fn home(&self) -> Option<&'static HomeSpec> {
        self.home
    }

    fn session_ids(&self) -> SessionIds {
        SessionIds::Chosen
    }

    fn prerequisite(&self) -> Option<&'static Prerequisite> {
        self.prerequisite
    }

    fn exit_policy(&self) -> ExitPolicy {
        ExitPolicy { clean_exit_is_fresh: true, fast_fail_ms: 20_000 }
    }

    fn driver(&self, _options: &Options) -> Arc<dyn TerminalDriver> {
        Arc::new(PatternDriver::default())
    }
}
