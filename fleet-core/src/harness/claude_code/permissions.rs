//! Neutral permissions in the words of Claude Code, and what they amount to (01 §3).

use std::collections::{BTreeMap, BTreeSet};

use super::home;
use super::operator;
use super::settings::{Inputs, Settings};
use super::table::{Mode, Rule, TABLES};
use crate::harness::Options;
use crate::permissions::{
    Approval, Capability, DENIED_READS_KEY, Filesystem, READS_ALL, READS_DENIED, Supported,
    Translation, TranslationRequest,
};

/// The one native key that an option of the role can set.
const MODE_KEY: &str = "permission_mode";

/// The translation, native options left aside.
pub(super) fn translate(request: &TranslationRequest<'_>) -> Translation {
    Translation::Supported(judge(request, None))
}

/// What is in force.
pub(super) fn effective(request: &TranslationRequest<'_>) -> Translation {
    Translation::Supported(judge(request, mode(request.options)))
}

/// The native option that was written.
pub(super) fn native_overrides(options: &Options) -> BTreeMap<String, String> {
    mode(options).map(|mode| (MODE_KEY.to_owned(), mode.as_str().to_owned())).into_iter().collect()
}

fn mode(options: &Options) -> Option<Mode> {
    options.get(MODE_KEY).and_then(|word| word.as_str()).and_then(Mode::from_word)
}

fn judge(request: &TranslationRequest<'_>, written: Option<Mode>) -> Supported {
    let settings = Settings::new(&Inputs {
        words: request.permissions,
        mode: written,
        outer: request.outer,
        dirs: request.dirs,
        version: request.version,
        denied_reads: request.denied_reads,
    });
    let overridden = settings.mode != settings.cell.mode;
    let (mut granted, approval) = if overridden {
        by_mode(&settings)
    } else {
        (settings.row.granted.iter().copied().collect(), request.permissions.approval)
    };
    let mut warnings = Vec::new();
    let mut refusals = Vec::new();
    let mut notes = notes(request, &settings);

    if overridden {
        warnings.push(format!(
            "`{MODE_KEY}: {}` of the options replaces `{}`{}",
            settings.mode.as_str(),
            settings.cell.mode.as_str(),
            meaning(settings.mode)
        ));
    }
    if settings.unsandboxed && settings.mode != Mode::Bypass {
        let what = if settings.mode == Mode::DontAsk { "are refused" } else { "ask" };
        warnings.push(format!(
            "its own sandbox cannot be used on this host, so commands {what}: see `doctor`"
        ));
        granted.remove(&Capability::StatusCommands);
    }
    if settings.state_is_closed && settings.mode != Mode::Bypass {
        warnings.push(
            "the role's own directory lies in the working directory, which is closed to writes"
                .to_owned(),
        );
        granted.remove(&Capability::WriteState);
    }
    if let Some(path) = &settings.unfit {
        refusals.push(format!(
            "`{}` holds a character that is a pattern in the rules of the program (`*`, `?`, `[`, \
             `]`, `\\`, a control character or a space at the end): rename it",
            path.as_str().escape_debug()
        ));
    }
    if settings.mode == Mode::Bypass && request.root && !request.outer.is_on() {
        refusals.push(
            "the program refuses `bypassPermissions` as root without isolation: isolate the role, \
             run the fleet as another user, or ask for a narrower permission"
                .to_owned(),
        );
    }

    if request.outer.is_on() && request.options.contains_key("config_home") {
        refusals.push(
            "`config_home: shared` is for roles without isolation: leave it out, the role then has \
             a home of its own"
                .to_owned(),
        );
    }

    let inherited = request.operator_files.get(home::SETTINGS).map(String::as_str);
    let found = operator::inspect(
        inherited,
        &settings.allow,
        settings.mode == Mode::Bypass,
        settings.cell.sandbox.is_some(),
    );
    granted.retain(|capability| !found.lost.contains(capability));
    warnings.extend(found.warnings);
    if overridden && settings.mode == Mode::DontAsk {
        let more = if inherited.is_some() { " and the operator's `settings.json`" } else { "" };
        notes.push(format!("what is granted was read from fleet's own rules{more}"));
    }

    Supported {
        native: native(&settings, request),
        exact: warnings.is_empty() && refusals.is_empty(),
        // Beside ours only one combination was run.
        measured: settings.qualified && settings.cell.measured && !overridden && !settings.nested,
        notes,
        warnings,
        refusals,
        granted,
        mode: approval,
        covered: true,
    }
}

/// What a mode grants that no row chose, and the neutral approval it amounts to (01 §3.5).
fn by_mode(settings: &Settings) -> (BTreeSet<Capability>, Approval) {
    match settings.mode {
        Mode::Bypass => (Capability::ALL.into(), Approval::Allow),
        Mode::DontAsk => (by_rules(settings), Approval::Auto),
        Mode::AcceptEdits | Mode::Auto => ([Capability::ReadState].into(), Approval::Auto),
        Mode::Default | Mode::Plan => ([Capability::ReadState].into(), Approval::Ask),
    }
}

/// What the rules prove where everything else is refused.
fn by_rules(settings: &Settings) -> BTreeSet<Capability> {
    use Capability::{Messaging, ReadState, StatusCommands, WorkspaceEdit, WriteState};
    let mut granted: BTreeSet<Capability> = settings
        .allow_rules
        .iter()
        .flat_map(|rule| match rule {
            // Where only the hand-out is named, STATE is an additional directory.
            Rule::Read | Rule::ReadHandout => &[ReadState][..],
            Rule::Edit => &[WriteState, WorkspaceEdit],
            Rule::Write => &[],
            Rule::EditState => &[WriteState],
            Rule::EditWorkspace => &[WorkspaceEdit],
            Rule::Bash => &[WorkspaceEdit, StatusCommands],
            Rule::Ours => &[Messaging],
        })
        .copied()
        .collect();
    if settings.cell.sandbox.is_some_and(|own| own.auto_allow) {
        granted.insert(StatusCommands);
    }
    if settings.deny_rules.contains(&Rule::EditWorkspace) {
        granted.remove(&WorkspaceEdit);
    }
    granted
}

fn meaning(mode: Mode) -> &'static str {
    match mode {
        Mode::Bypass => ": nothing asks, and nothing bounds its file tools",
        Mode::Auto => ": a classifier of the provider decides what asks",
        Mode::Plan => ": it plans and changes nothing",
        Mode::DontAsk => ": what no rule allows is refused",
        Mode::Default | Mode::AcceptEdits => "",
    }
}

fn notes(request: &TranslationRequest<'_>, settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: &str| notes.push(text.to_owned());
    let commands = settings.mode == Mode::Bypass || settings.allow_rules.contains(&Rule::Bash);
    if let (false, Some(version)) = (settings.qualified, request.version) {
        note(&format!(
            "version {} is not qualified: the settings are those measured with {}",
            version.escape_debug(),
            TABLES[0].version
        ));
    } else if !settings.cell.measured {
        note("not qualified: only the parts of this combination were measured");
    }
    if settings.mode != Mode::Bypass {
        match settings.mode {
            _ if settings.deny_rules.contains(&Rule::EditWorkspace) => {}
            Mode::DontAsk => {
                note("its file tools are refused below `.claude/` of the working directory");
            }
            _ => note("its file tools ask below `.claude/` of the working directory"),
        }
        note("rules in `.claude/` of the working directory add to these and were not looked at");
    }
    if settings.cell.sandbox.is_some() {
        note("in its own sandbox a command reaches no network and no Unix socket");
    }
    if !request.outer.is_on() {
        note(if settings.cell.closed { READS_DENIED } else { READS_ALL });
    }
    if request.outer.replaces_native() && commands {
        note("commands may write the role's own harness home");
    }
    if request.outer.is_on() && request.permissions.filesystem == Filesystem::Unrestricted {
        note("`unrestricted` is all that the isolation shows");
    }
    if settings.cwd_is_state {
        note("the working directory is the role's own directory and stays writable");
    }
    notes
}

fn native(settings: &Settings, request: &TranslationRequest<'_>) -> BTreeMap<String, String> {
    let list = |items: &[String]| serde_json::Value::from(items).to_string();
    let reads: Vec<String> = settings.denied_reads.iter().map(ToString::to_string).collect();
    BTreeMap::from([
        (MODE_KEY.to_owned(), settings.mode.as_str().to_owned()),
        ("permissions.additionalDirectories".to_owned(), list(&settings.dirs)),
        ("permissions.allow".to_owned(), list(&settings.allow)),
        ("permissions.deny".to_owned(), list(&settings.deny)),
        (DENIED_READS_KEY.to_owned(), list(&reads)),
        ("sandbox".to_owned(), settings.sandbox(request.dirs).to_string()),
    ])
}
