//! The permission settings of one launch: a cell of the table with the directories of the role in it.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use super::table::{Cell, Mode, Row, Rule, Sandbox, table};
use crate::harness::LaunchDirs;
use crate::permissions::{Approval, DeniedRead, Filesystem, Outer, Permissions};

/// Tools that find and write to other sessions of the account: the fleet's own messaging is the only
/// channel between its agents.
const PEERS: &[&str] = &["ListAgents", "SendMessage"];

/// What the settings are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) words: Permissions,
    /// The mode that the options name.
    pub(super) mode: Option<Mode>,
    pub(super) outer: Outer,
    pub(super) dirs: &'a LaunchDirs,
    pub(super) version: Option<&'a str>,
    pub(super) denied_reads: &'a [DeniedRead],
}

/// Native settings, and what had to be left out of the cell to make them.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub(super) struct Settings {
    pub(super) row: &'static Row,
    /// Whether the table is that of the version.
    pub(super) qualified: bool,
    /// The cell, as far as it could be used.
    pub(super) cell: Cell,
    /// The mode in force.
    pub(super) mode: Mode,
    /// Rules by their symbols, without those that had to go.
    pub(super) allow_rules: Vec<Rule>,
    pub(super) deny_rules: Vec<Rule>,
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    /// Paths that the tools must not read.
    pub(super) denied_reads: Vec<Utf8PathBuf>,
    pub(super) dirs: Vec<String>,
    /// Whether the program's own sandbox is inside ours.
    pub(super) nested: bool,
    /// Whether the program's own sandbox is wanted and cannot be used.
    pub(super) unsandboxed: bool,
    /// Whether the working directory is STATE where it should be closed.
    pub(super) cwd_is_state: bool,
    /// Whether STATE lies in a working directory that is closed.
    pub(super) state_is_closed: bool,
    /// A directory that the rules cannot name.
    pub(super) unfit: Option<Utf8PathBuf>,
}

impl Settings {
    /// The settings in force.
    pub(super) fn new(inputs: &Inputs<'_>) -> Self {
        let Inputs { words, outer, dirs, .. } = *inputs;
        let (table, qualified) = table(inputs.version);
        let row = table.row(words).unwrap_or(&NARROWEST);
        let mut cell = if outer.replaces_native() { row.on } else { row.off };
        let unsandboxed = outer == Outer::OffUnsandboxed && cell.sandbox.is_some();
        let mut allow_rules = cell.allow.to_vec();
        if unsandboxed {
            cell.sandbox = None;
            allow_rules.retain(|rule| *rule != Rule::Bash);
        }
        let mut deny_rules = cell.deny.to_vec();
        let closed = deny_rules.contains(&Rule::EditWorkspace)
            || cell.sandbox.is_some_and(|sandbox| sandbox.deny_workspace);
        // STATE stays the agent's own, also as its working directory.
        let cwd_is_state = words.filesystem == Filesystem::ReadOnly
            && spelled(dirs, &dirs.cwd).any(|cwd| spelled(dirs, &dirs.state).any(|it| it == cwd));
        if cwd_is_state {
            deny_rules.retain(|rule| *rule != Rule::EditWorkspace);
            cell.sandbox = cell.sandbox.map(|own| Sandbox { deny_workspace: false, ..own });
        }
        let state_is_closed = closed
            && !cwd_is_state
            && spelled(dirs, &dirs.cwd)
                .any(|cwd| spelled(dirs, &dirs.state).any(|state| state.starts_with(cwd)));
        let mut unfit = None;
        let mut named = |rules: &[Rule], keep: bool| {
            let mut texts = Vec::new();
            for rule in rules {
                for (text, path) in rule.texts(dirs) {
                    let bad = path.filter(|path| !fits(path));
                    unfit = unfit.take().or(bad.map(Utf8Path::to_owned));
                    if keep || bad.is_none() {
                        texts.push(text);
                    }
                }
            }
            texts
        };
        // An allow rule with a pattern in it would open other places; a deny rule only closes more.
        let allow = named(&allow_rules, false);
        let mut deny = named(&deny_rules, true);
        deny.splice(0..0, PEERS.iter().map(|tool| (*tool).to_owned()));
        let closed = cell.closed && !outer.is_on();
        let denied_reads: Vec<Utf8PathBuf> = inputs
            .denied_reads
            .iter()
            .filter(|_| closed)
            .map(|it| it.path.as_path().to_owned())
            .collect();
        // A rule reads the end of a line like a list of patterns does.
        let strange = |it: &&Utf8PathBuf| !fits(it) || it.as_str().ends_with(char::is_whitespace);
        unfit = unfit.or_else(|| denied_reads.iter().find(strange).cloned());
        let extra = cell.state_dir.then(|| spelled(dirs, &dirs.state)).into_iter().flatten();
        Self {
            row,
            qualified,
            mode: inputs.mode.unwrap_or(cell.mode),
            dirs: extra.map(ToString::to_string).collect(),
            cell,
            allow_rules,
            deny_rules,
            allow,
            deny,
            denied_reads,
            nested: outer == Outer::Nested,
            unsandboxed,
            cwd_is_state,
            state_is_closed,
            unfit,
        }
    }

    /// All deny rules. Those about reading bind commands too: its sandbox hides what they name.
    pub(super) fn all_deny(&self) -> Vec<String> {
        let reads = self.denied_reads.iter().map(|path| format!("Read(/{path})"));
        self.deny.iter().cloned().chain(reads).collect()
    }

    /// The `sandbox` block. Off is said as well: the operator's own settings may switch it on.
    pub(super) fn sandbox(&self, dirs: &LaunchDirs) -> Value {
        let Some(own) = self.cell.sandbox else { return json!({ "enabled": false }) };
        let texts = |dir| spelled(dirs, dir).map(ToString::to_string).collect::<Vec<_>>();
        let mut filesystem = json!({ "allowWrite": texts(&dirs.state) });
        if own.deny_workspace {
            filesystem["denyWrite"] = json!(texts(&dirs.cwd));
        }
        let mut sandbox = json!({
            "enabled": true,
            "autoAllowBashIfSandboxed": own.auto_allow,
            "allowUnsandboxedCommands": false,
            "filesystem": filesystem,
        });
        if self.nested {
            // It shares the `/proc` of ours: another one cannot be mounted there.
            sandbox["enableWeakerNestedSandbox"] = Value::Bool(true);
        }
        sandbox
    }
}

/// What stands in for a pair of words without a row. A test shows that none is missing.
static NARROWEST: Row = Row {
    approval: Approval::Ask,
    filesystem: Filesystem::ReadOnly,
    off: NOTHING,
    on: NOTHING,
    granted: &[],
};
const NOTHING: Cell = Cell {
    mode: Mode::Default,
    state_dir: false,
    allow: &[],
    deny: &[],
    sandbox: None,
    closed: true,
    measured: false,
};

impl Rule {
    /// The texts of the rule, one for each spelling of its directory.
    fn texts(self, dirs: &LaunchDirs) -> Vec<(String, Option<&Utf8Path>)> {
        let below = |tool: &str, dir| -> Vec<(String, Option<&Utf8Path>)> {
            // Two slashes: absolute. One would mean the directory of the settings file.
            spelled(dirs, dir)
                .map(|path| {
                    let plain = path.as_str().trim_end_matches('/');
                    (format!("{tool}(/{plain}/**)"), Some(path))
                })
                .collect()
        };
        match self {
            Self::Read => vec![("Read".to_owned(), None)],
            Self::ReadHandout => below("Read", &dirs.handout),
            Self::Edit => vec![("Edit".to_owned(), None)],
            Self::Write => vec![("Write".to_owned(), None)],
            Self::EditState => below("Edit", &dirs.state),
            Self::EditWorkspace => below("Edit", &dirs.cwd),
            Self::Bash => vec![("Bash".to_owned(), None)],
            Self::Ours => vec![("mcp__ours".to_owned(), None)],
        }
    }
}

/// A directory as written and, where links lead to it, as it really is. The program compares both.
pub(super) fn spelled<'a>(
    dirs: &'a LaunchDirs,
    dir: &'a Utf8PathBuf,
) -> impl Iterator<Item = &'a Utf8Path> {
    std::iter::once(dir.as_path()).chain(dirs.aliases.get(dir).map(Utf8PathBuf::as_path))
}

/// Whether a rule can name this directory and nothing else.
fn fits(path: &Utf8Path) -> bool {
    !path
        .as_str()
        .contains(|it: char| matches!(it, '*' | '?' | '[' | ']' | '\\') || it.is_control())
}
