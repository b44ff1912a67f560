//! Program, arguments, environment and files of a launch (01 §4.3).

use std::collections::BTreeMap;

use super::config_toml::{Generated, Sources, generate};
use super::home::{CODEX_HOME, OPERATOR_CONFIG};
use super::options::CodexOptions;
use super::posture::{Bound, Posture, SandboxMode};
use super::sessions::is_uuid;
use super::table::Table;
use crate::harness::prompts::{first_prompt, restart_prompt};
use crate::harness::{
    FileContent, FilePlace, HarnessFile, HarnessLaunch, LaunchContext, LaunchDirs, StartMode,
};
use crate::isolation::network::{HostRule, rule_of_url};
use crate::redact::Redacted;

/// Its servers with a key and with a login of `ChatGPT`. Known from its documentation, not measured.
const PUBLIC: &[&str] =
    &["https://api.openai.com", "https://chatgpt.com", "https://auth.openai.com"];

pub(super) fn launch(context: &LaunchContext<'_>) -> HarnessLaunch {
    let LaunchContext { role, dirs, .. } = *context;
    let options = CodexOptions::parse(role.harness_options.expose()).unwrap_or_default();
    let (table, qualified) = Table::of(context.version);
    let row = table.row(role.permissions);
    let posture = Posture::effective(&row, &options, context.outer, dirs, context.denied_reads);
    let Generated { text, mut notes } = generate(&Sources {
        operator: context.operator_files.get(OPERATOR_CONFIG).map(String::as_str),
        options: &options,
        posture: &posture,
        dirs,
        offers: table.offers,
    });
    if !qualified {
        notes.push("this version of Codex was not measured".to_owned());
    }
    let argv = argv(context, &options, &posture, &mut notes);
    let endpoints = endpoints(text.expose());
    let config = HarnessFile {
        place: FilePlace::Home,
        name: OPERATOR_CONFIG.to_owned(),
        content: FileContent::Whole(text),
    };
    let mut files = vec![config];
    files.extend(context.hook.map(|hook| HarnessFile {
        place: FilePlace::Home,
        name: "hooks.json".to_owned(),
        content: FileContent::Whole(Redacted::new(hook.codex_file())),
    }));
    HarnessLaunch {
        argv,
        env: BTreeMap::from([(CODEX_HOME.variable.to_owned(), dirs.harness_home.to_string())]),
        files,
        replaced: Vec::new(),
        notes,
        endpoints,
    }
}

/// Where the model is asked: the provider that the generated file chooses, else the public servers.
/// An address that cannot be read opens nothing.
fn endpoints(config: &str) -> Vec<HostRule> {
    let Ok(config) = config.parse::<toml::Table>() else { return Vec::new() };
    let chosen = config.get("model_provider").and_then(toml::Value::as_str);
    let of = |name: &str| config.get("model_providers")?.get(name)?.get("base_url")?.as_str();
    match chosen.map(|name| (name, of(name))) {
        Some((_, Some(url))) => rule_of_url(url).into_iter().collect(),
        None | Some(("openai", None)) => PUBLIC.iter().filter_map(|url| rule_of_url(url)).collect(),
        Some((_, None)) => Vec::new(),
    }
}

fn argv(
    context: &LaunchContext<'_>,
    options: &CodexOptions,
    posture: &Posture,
    notes: &mut Vec<String>,
) -> Vec<String> {
    let mut argv = vec!["codex".to_owned()];
    let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    // Never `--last`, nor anything that Codex would look up as a name: that may be another role's.
    let session = context.session.filter(|id| is_uuid(id.as_str()));
    let resumed = session.filter(|_| context.mode == StartMode::Resume);
    if let Some(session) = resumed {
        add(&["resume", session.as_str()]);
    } else if context.mode == StartMode::Resume {
        notes.push("no conversation is recorded: a fresh start".to_owned());
    }
    add(&["--no-daemon"]);
    if let Some(model) = &context.role.model {
        add(&["--model", model]);
    }
    if let Bound::Mode(mode) = posture.bound {
        add(&["--sandbox", mode.as_str()]);
    }
    add(&["--ask-for-approval", posture.approvals.as_str()]);
    if options.search {
        add(&["--search"]);
    }
    for directory in added(posture, options, context.dirs) {
        add(&["--add-dir", directory]);
    }
    if context.hook.is_some() {
        // The project's own hooks run then too: a hook is only there inside a sandbox (01 §3.7).
        add(&["--dangerously-bypass-hook-trust"]);
    }
    let prompt = match resumed {
        Some(_) => restart_prompt(context.dirs),
        None => first_prompt(context.dirs),
    };
    argv.push(prompt);
    argv
}

/// Directories that the command line opens. Fleet's own profile lists them itself.
fn added<'a>(posture: &Posture, options: &'a CodexOptions, dirs: &'a LaunchDirs) -> Vec<&'a str> {
    let more = options.add_dirs.iter().map(crate::path::LexicalPath::as_str);
    match posture.bound {
        Bound::Mode(SandboxMode::WorkspaceWrite) => {
            std::iter::once(dirs.state.as_str()).chain(more).collect()
        }
        // In a read-only sandbox Codex ends with status 1 when it is given any.
        Bound::Profile(_) | Bound::Mode(SandboxMode::ReadOnly) => Vec::new(),
        Bound::Mode(SandboxMode::DangerFullAccess) | Bound::Named(_) => more.collect(),
    }
}
