//! A `codex` role and what is made of it.

use std::collections::BTreeMap;

use fleet_core::config::Role;
use fleet_core::harness::codex::CodexHarness;
use fleet_core::harness::{
    FileContent, FilePlace, Harness, HarnessLaunch, LaunchContext, LaunchDirs, OptionProblem,
    Options, StartMode,
};
use fleet_core::launch::Environment;
use fleet_core::permissions::{
    Approval, DeniedRead, Filesystem, Outer, Permissions, Supported, Translation,
    TranslationRequest, Unattended,
};
use fleet_core::redact::Redacted;

use crate::fleet::base;

pub(crate) const APPROVALS: [Approval; 3] = [Approval::Ask, Approval::Auto, Approval::Allow];
pub(crate) const FILESYSTEMS: [Filesystem; 3] =
    [Filesystem::ReadOnly, Filesystem::Workspace, Filesystem::Unrestricted];
pub(crate) const OUTERS: [Outer; 3] = [Outer::Off, Outer::OffUnsandboxed, Outer::On];
pub(crate) const SESSION: &str = "01a22925-a7f3-7f90-b691-e717af43c6f2";

/// The operator's files play no part in what Codex makes of permissions.
static NO_FILES: BTreeMap<&str, String> = BTreeMap::new();

/// One role, its boundary and its start.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) permissions: Permissions,
    pub(crate) options: Options,
    pub(crate) outer: Outer,
    pub(crate) dirs: LaunchDirs,
    pub(crate) model: Option<String>,
    pub(crate) version: Option<&'static str>,
    pub(crate) mode: StartMode,
    pub(crate) session: Option<&'static str>,
    pub(crate) operator: Option<String>,
    pub(crate) denied_reads: Vec<DeniedRead>,
}

impl Case {
    pub(crate) fn new(approval: Approval, filesystem: Filesystem, outer: Outer) -> Self {
        let state = "/home/u/.ours-fleet/agents/A";
        Self {
            permissions: Permissions { approval, filesystem, unattended: Unattended::Deny },
            options: Options::new(),
            outer,
            dirs: LaunchDirs {
                state: state.into(),
                cwd: "/home/u/my work/x.y".into(),
                git: Vec::new(),
                harness_home: "/home/u/.ours-fleet/harness/A/codex".into(),
                handout: "/home/u/.ours-fleet/handout/A".into(),
                briefing: "/home/u/.ours-fleet/handout/A/briefing.md".into(),
                aliases: BTreeMap::new(),
            },
            model: None,
            version: Some("0.171.0"),
            mode: StartMode::Fresh,
            session: None,
            operator: None,
            denied_reads: Vec::new(),
        }
    }

    pub(crate) fn workspace() -> Self {
        Self::new(Approval::Allow, Filesystem::Workspace, Outer::Off)
    }

    /// Every neutral pair with every boundary.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        APPROVALS.into_iter().flat_map(|approval| {
            FILESYSTEMS.into_iter().flat_map(move |filesystem| {
                OUTERS.into_iter().map(move |outer| Self::new(approval, filesystem, outer))
            })
        })
    }

    pub(crate) fn options(mut self, json: &str) -> Self {
        self.options = options(json);
        self
    }

    pub(crate) fn operator(mut self, text: &str) -> Self {
        self.operator = Some(text.to_owned());
        self
    }

    fn request(&self) -> TranslationRequest<'_> {
        TranslationRequest {
            permissions: self.permissions,
            options: &self.options,
            outer: self.outer,
            dirs: &self.dirs,
            version: self.version,
            root: false,
            operator_files: &NO_FILES,
            denied_reads: &self.denied_reads,
        }
    }

    pub(crate) fn translate(&self) -> Supported {
        supported(CodexHarness::default().translate(&self.request()))
    }

    pub(crate) fn effective(&self) -> Supported {
        supported(CodexHarness::default().effective(&self.request()))
    }

    pub(crate) fn launch(&self) -> HarnessLaunch {
        let session = self.session.map(|id| id.parse().expect("a session id"));
        let read = self.operator.iter().map(|text| ("config.toml", text.clone()));
        CodexHarness::default().launch(&LaunchContext {
            role: &self.role(),
            dirs: &self.dirs,
            mode: self.mode,
            session: session.as_ref(),
            outer: self.outer,
            root: false,
            version: self.version,
            operator_files: &read.collect::<BTreeMap<_, _>>(),
            own_env: &Environment::default(),
            denied_reads: &self.denied_reads,
            hook: None,
        })
    }

    fn role(&self) -> Role {
        let mut role =
            base("roles:\n  A: {harness: command, harness_options: {argv: [x]}}\n").role("A");
        role.harness = CodexHarness::default().id().clone();
        role.permissions = self.permissions;
        role.harness_options = Redacted::new(self.options.clone());
        role.model.clone_from(&self.model);
        role
    }
}

fn supported(translation: Translation) -> Supported {
    match translation {
        Translation::Supported(supported) => supported,
        Translation::Unsupported { reason } => panic!("unsupported: {reason}"),
    }
}

pub(crate) fn options(json: &str) -> Options {
    serde_json::from_str(json).expect("a JSON object")
}

pub(crate) fn problems(json: &str) -> Vec<OptionProblem> {
    CodexHarness::default().validate_options(&options(json))
}

/// The `config.toml` of a launch: its only file.
pub(crate) fn config_text(launch: &HarnessLaunch) -> String {
    let [file] = launch.files.as_slice() else { panic!("one file, not {:?}", launch.files) };
    assert_eq!((file.place, file.name.as_str()), (FilePlace::Home, "config.toml"));
    match &file.content {
        FileContent::Whole(text) => text.expose().clone(),
        FileContent::Json(_) => panic!("not JSON"),
    }
}

/// The same, read.
pub(crate) fn config(launch: &HarnessLaunch) -> toml::Table {
    toml::from_str(&config_text(launch)).expect("the generated file is TOML")
}
