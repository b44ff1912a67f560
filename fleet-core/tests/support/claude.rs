//! A `claude-code` role, and what the harness makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_core::config::{ConfigSources, LoadOptions, Role, SourceText, YamlMode, load};
use fleet_core::harness::claude_code::ClaudeCodeHarness;
use fleet_core::harness::{
    FileContent, Harness as _, HarnessLaunch, Harnesses, LaunchContext, LaunchDirs, StartMode,
};
use fleet_core::id::SessionId;
use fleet_core::launch::Environment;
use fleet_core::path::LexicalPath;
use fleet_core::permissions::{DeniedRead, Outer, Supported, Translation, TranslationRequest};

pub(crate) const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// Everything around a role that its launch depends on.
#[derive(Debug, Clone)]
pub(crate) struct Around {
    pub(crate) role: Role,
    pub(crate) dirs: LaunchDirs,
    pub(crate) mode: StartMode,
    pub(crate) outer: Outer,
    pub(crate) root: bool,
    pub(crate) version: Option<&'static str>,
    pub(crate) operator_files: BTreeMap<&'static str, String>,
    pub(crate) own_env: Environment,
    pub(crate) denied_reads: Vec<DeniedRead>,
}

/// A role `Worker` with these keys, in YAML flow form, working in `/srv/project`.
pub(crate) fn around(keys: &str) -> Around {
    let text = format!("roles: {{Worker: {{harness: claude-code, {keys}}}}}");
    let path = camino::Utf8PathBuf::from("/f/fleet.yaml");
    let sources = ConfigSources {
        base_path: path.clone(),
        base: Some(SourceText { path, bytes: text.into_bytes() }),
        drop_ins: Vec::new(),
    };
    let home = LexicalPath::absolute("/home/op").expect("absolute");
    let mut harnesses = Harnesses::built_in();
    harnesses.register(Arc::new(ClaudeCodeHarness::default()));
    let options = LoadOptions { yaml_mode: YamlMode::Strict, home: &home, harnesses: &harnesses };
    let loaded = load(&sources, &options);
    let Some(fleet) = loaded.fleet else { panic!("refused: {:?}", loaded.diagnostics) };
    let root = "/home/op/.ours-fleet";
    Around {
        role: fleet.roles["Worker"].clone(),
        dirs: LaunchDirs {
            state: format!("{root}/agents/Worker").into(),
            cwd: "/srv/project".into(),
            harness_home: format!("{root}/harness/Worker/claude-code").into(),
            handout: format!("{root}/handout/Worker").into(),
            briefing: format!("{root}/handout/Worker/briefing.md").into(),
            git: Vec::new(),
            aliases: BTreeMap::new(),
        },
        mode: StartMode::Fresh,
        outer: Outer::Off,
        root: false,
        version: Some("2.1.332"),
        operator_files: BTreeMap::new(),
        own_env: Environment::default(),
        denied_reads: Vec::new(),
    }
}

/// The same with `harness_options`, in YAML flow form.
pub(crate) fn with_options(options: &str) -> Around {
    around(&format!("harness_options: {{{options}}}"))
}

impl Around {
    pub(crate) fn outer(mut self, outer: Outer) -> Self {
        self.outer = outer;
        self
    }

    pub(crate) fn launch(&self) -> HarnessLaunch {
        let session: SessionId = SESSION.parse().expect("an id");
        ClaudeCodeHarness::default().launch(&LaunchContext {
            role: &self.role,
            dirs: &self.dirs,
            mode: self.mode,
            session: Some(&session),
            outer: self.outer,
            root: self.root,
            version: self.version,
            operator_files: &self.operator_files,
            own_env: &self.own_env,
            denied_reads: &self.denied_reads,
            hook: None,
        })
    }

    pub(crate) fn request(&self) -> TranslationRequest<'_> {
        TranslationRequest {
            permissions: self.role.permissions,
            options: self.role.harness_options.expose(),
            outer: self.outer,
            dirs: &self.dirs,
            version: self.version,
            root: self.root,
            operator_files: &self.operator_files,
            denied_reads: &self.denied_reads,
        }
    }

    pub(crate) fn translated(&self) -> Supported {
        supported(ClaudeCodeHarness::default().translate(&self.request()))
    }

    pub(crate) fn effective(&self) -> Supported {
        supported(ClaudeCodeHarness::default().effective(&self.request()))
    }
}

pub(crate) fn supported(translation: Translation) -> Supported {
    match translation {
        Translation::Supported(supported) => supported,
        Translation::Unsupported { reason } => panic!("unsupported: {reason}"),
    }
}

/// The text of a whole file of a launch.
pub(crate) fn whole(launch: &HarnessLaunch, name: &str) -> String {
    let file = launch.files.iter().find(|file| file.name == name).expect("the file");
    match &file.content {
        FileContent::Whole(text) => text.expose().clone(),
        FileContent::Json(_) => panic!("`{name}` is edited, not whole"),
    }
}
