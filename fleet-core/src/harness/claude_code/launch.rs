//! How the program starts (01 §4.2). Mode, settings and servers are passed at every launch: it
//! remembers none of them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::options::ClaudeOptions;
use super::overlay::overlay;
use super::settings::{Inputs, Settings};
use super::{home, mcp};
use crate::harness::hooks::HookCommand;
use crate::harness::prompts::{first_prompt, restart_prompt};
use crate::harness::{
    DEGRADED, FileContent, FilePlace, HarnessFile, HarnessLaunch, LaunchContext, StartMode,
};
use crate::isolation::network::{HostRule, rule_of_url};
use crate::redact::Redacted;

/// The program.
pub(super) const PROGRAM: &str = "claude";

const OVERLAY: &str = "settings-overlay.json";
const SERVERS: &str = "mcp-config.json";

/// The variable that leads the program to another server.
const BASE_URL: &str = "ANTHROPIC_BASE_URL";
/// Its server without that. Known from its documentation, not measured.
const PUBLIC: &str = "https://api.anthropic.com";

/// The context size that the budget of a role is a share of.
const CONTEXT: u64 = 1_000_000;
/// When the context is compacted unless the role says otherwise, in percent.
const COMPACT: u64 = 50;

/// Argv, environment and files of a launch.
pub(super) fn launch(context: &LaunchContext<'_>) -> HarnessLaunch {
    // Checked at load; without it nothing of the options is used.
    let options = ClaudeOptions::parse(context.role.harness_options.expose()).unwrap_or_default();
    let dirs = context.dirs;
    let settings = Settings::new(&Inputs {
        words: context.role.permissions,
        mode: options.permission_mode,
        outer: context.outer,
        dirs,
        version: context.version,
        denied_reads: context.denied_reads,
    });

    let hooks = context.hook.map(HookCommand::claude_hooks).unwrap_or_default();
    let mut files = vec![
        handed_out(OVERLAY, Redacted::new(overlay(&settings, &options, dirs, hooks).to_string())),
        handed_out(SERVERS, mcp::file(&options.mcp_servers)),
    ];
    files.extend(home::state_file(context, &options));
    HarnessLaunch {
        argv: argv(context, &options, settings.mode.as_str()),
        env: environment(context, &options),
        files,
        replaced: Vec::new(),
        notes: notes(context, &options),
        endpoints: endpoints(context),
    }
}

/// Where the model is asked: the base address that the role's environment or the operator's settings
/// name, else the public one. An address that cannot be read opens nothing.
fn endpoints(context: &LaunchContext<'_>) -> Vec<HostRule> {
    let settings = context.operator_files.get(home::SETTINGS);
    let settings = settings.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let named = match context.role.env.get(BASE_URL) {
        Some(url) => Some(url.expose().as_str()),
        None => settings.as_ref().and_then(|it| it["env"][BASE_URL].as_str()),
    };
    rule_of_url(named.unwrap_or(PUBLIC)).into_iter().collect()
}

fn handed_out(name: &str, text: Redacted<String>) -> HarnessFile {
    HarnessFile {
        place: FilePlace::Handout,
        name: name.to_owned(),
        content: FileContent::Whole(text),
    }
}

fn argv(context: &LaunchContext<'_>, options: &ClaudeOptions, mode: &str) -> Vec<String> {
    let LaunchContext { role, dirs, .. } = *context;
    let mut argv = Vec::new();
    let mut push = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    push(&[PROGRAM, "--permission-mode", mode]);
    if let Some(model) = &role.model {
        push(&["--model", model]);
    }
    if let Some(effort) = options.effort {
        push(&["--effort", effort]);
    }
    push(&["--settings", dirs.handout.join(OVERLAY).as_str()]);
    // Takes all words up to the next flag: `--name` or `--remote-control` always follows.
    push(&["--mcp-config", dirs.handout.join(SERVERS).as_str()]);
    if options.mcp_servers_only || context.is_degraded() {
        push(&["--strict-mcp-config"]);
    }
    if context.is_degraded() {
        push(&["--setting-sources", "user"]);
    }
    push(&[if options.remote_control { "--remote-control" } else { "--name" }, role.name.as_str()]);
    let (flag, prompt) = match context.mode {
        StartMode::Fresh => ("--session-id", first_prompt(dirs)),
        StartMode::Resume => ("--resume", restart_prompt(dirs)),
    };
    if let Some(session) = context.session {
        push(&[flag, session.as_str()]);
    }
    // The prompt is fixed text that begins with a letter: no flag, no command, no mention.
    push(&[&prompt]);
    argv
}

fn environment(context: &LaunchContext<'_>, options: &ClaudeOptions) -> BTreeMap<String, String> {
    let LaunchContext { role, dirs, .. } = *context;
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: &str| env.insert(name.to_owned(), value.to_owned());
    if !options.shared_home {
        set(home::VARIABLE, dirs.harness_home.as_str());
    }
    set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    set("DISABLE_AUTOUPDATER", "1");
    set("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", &compact_percent(context).to_string());
    set("MEMPALACE_HOOKS_AUTO_SAVE", "false");
    let autosave = options.mem_palace_midsession_autosave;
    set("MEMPALACE_MIDSESSION_AUTOSAVE", if autosave { "true" } else { "false" });
    if !options.mem_palace {
        set("MEMPALACE_DISABLED", "true");
    }
    if let Some(model) = &role.model {
        set("ANTHROPIC_MODEL", model);
    }
    if context.root && context.outer.is_on() {
        // Root of a sandbox is not the root that the program warns about.
        set("IS_SANDBOX", "1");
    }
    env
}

/// When the context is compacted, in percent of the whole.
fn compact_percent(context: &LaunchContext<'_>) -> u64 {
    let budget = |tokens: u64| {
        let rounded = u128::from(tokens) * 100 + u128::from(CONTEXT / 2);
        u64::try_from(rounded / u128::from(CONTEXT)).unwrap_or(u64::MAX)
    };
    let role = context.role;
    let written = role.autocompact_pct.map(u64::from);
    written.or_else(|| role.max_tokens.map(budget)).unwrap_or(COMPACT).clamp(1, 100)
}

fn notes(context: &LaunchContext<'_>, options: &ClaudeOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if context.is_degraded() {
        notes.push(DEGRADED.to_owned());
    }
    if options.mcp_servers.contains_key(mcp::OURS) {
        notes.push(format!(
            "`mcp_servers.{}` gives way: the name belongs to the messaging of the fleet",
            mcp::OURS
        ));
    }
    if options.shared_home {
        notes.push(
            "the operator's own config home is used: questions at the start are not answered in it"
                .to_owned(),
        );
    }
    if options.remote_control {
        notes
            .push("remote control: the session can be driven from outside of this host".to_owned());
    }
    notes
}
