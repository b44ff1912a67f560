//! What the neutral permissions, and the options that override them, amount to (01 §3.4, §3.5).

use std::collections::BTreeSet;

use super::options::{CodexOptions, ConfigEntry};
use super::posture::{Approvals, Bound, Posture, SandboxMode};
use super::table::{Row, Table};
use crate::permissions::{
    Approval, Capability, Filesystem, Outer, READS_ALL, READS_DENIED, Supported,
    TranslationRequest, Unattended,
};

/// Without the native overrides.
pub(super) fn translate(request: &TranslationRequest<'_>) -> Supported {
    let options = CodexOptions::parse(request.options).unwrap_or_default();
    let (table, qualified) = Table::of(request.version);
    let row = table.row(request.permissions);
    let posture =
        Posture::translated(&row, &options, request.outer, request.dirs, request.denied_reads);
    of_row(request, &options, &row, &posture, qualified)
}

/// With them.
pub(super) fn effective(request: &TranslationRequest<'_>) -> Supported {
    let options = CodexOptions::parse(request.options).unwrap_or_default();
    let (table, qualified) = Table::of(request.version);
    let row = table.row(request.permissions);
    let asked =
        Posture::translated(&row, &options, request.outer, request.dirs, request.denied_reads);
    let posture =
        Posture::effective(&row, &options, request.outer, request.dirs, request.denied_reads);
    let mut judged = of_row(request, &options, &row, &posture, qualified);
    if posture.bound != asked.bound {
        judge_bound(request, &posture, &mut judged);
    }
    if posture.approvals != row.approvals {
        judged.warnings.push(approvals_warning(request.permissions.approval, posture.approvals));
    }
    judge_config(&options, &posture, &mut judged);
    judged.exact = judged.warnings.is_empty();
    judged
}

/// What a row grants, said of a posture.
fn of_row(
    request: &TranslationRequest<'_>,
    options: &CodexOptions,
    row: &Row,
    posture: &Posture,
    qualified: bool,
) -> Supported {
    let cell = if request.outer.replaces_native() { row.on } else { row.off };
    let warnings: Vec<String> = row.warnings.iter().map(|text| (*text).to_owned()).collect();
    Supported {
        native: posture.native(),
        exact: warnings.is_empty(),
        // Beside ours only one combination was run.
        measured: qualified && cell.measured && request.outer != Outer::Nested,
        notes: notes(request, options, posture, qualified),
        warnings,
        refusals: refusals(request.outer, posture),
        granted: Capability::ALL.into_iter().filter(|it| !row.lacks.contains(it)).collect(),
        mode: posture.approvals.amounts_to(),
        covered: true,
    }
}

fn notes(
    request: &TranslationRequest<'_>,
    options: &CodexOptions,
    posture: &Posture,
    qualified: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: &str| notes.push(text.to_owned());
    if !qualified {
        note(
            "this version of Codex was not measured; the settings are those of the newest that was",
        );
    }
    if posture.needs_own_sandbox() {
        note("inside Codex's sandbox `.codex` is read-only, and so are `/tmp` and other places");
        note("inside Codex's sandbox there is no network, local sockets included");
    }
    if !request.outer.is_on() {
        let closed = matches!(posture.bound, Bound::Profile(_));
        note(if closed { READS_DENIED } else { READS_ALL });
    }
    let (asks, removal) = match posture.approvals {
        Approvals::OnRequest => (true, "Codex asks before commands like `rm -rf`"),
        Approvals::Never => (false, "Codex refuses commands like `rm -rf`"),
    };
    note(removal);
    if asks && request.permissions.unattended == Unattended::Deny {
        note("`unattended: deny` is not enforced on Codex: a question waits for a person");
    }
    match (request.outer, request.permissions.filesystem) {
        (Outer::On | Outer::Nested, Filesystem::Unrestricted) => {
            note("`unrestricted` means all that the isolation shows");
        }
        (_, Filesystem::ReadOnly) if request.dirs.cwd == request.dirs.state => {
            note("the working directory is the role's own directory, which stays writable");
        }
        _ => {}
    }
    if !options.add_dirs.is_empty() {
        note("the directories of `add_dirs` are writable too");
    }
    notes
}

/// Where Codex would have to confine the program and cannot.
fn refusals(outer: Outer, posture: &Posture) -> Vec<String> {
    let reason = match outer {
        Outer::Off | Outer::Nested => return Vec::new(),
        _ if !posture.needs_own_sandbox() => return Vec::new(),
        Outer::OffUnsandboxed => {
            "Codex's own sandbox cannot be used on this host, and without it nothing bounds the \
             role: give it an `isolation` that works here, or write `filesystem: unrestricted`"
        }
        Outer::On => {
            "the options ask for a sandbox of Codex's own, which cannot start inside the role's \
             isolation: leave `sandbox` and `config.default_permissions` out, or write \
             `isolation.nested_sandbox: true`"
        }
    };
    vec![reason.to_owned()]
}

/// Judges a bound that the options chose.
fn judge_bound(request: &TranslationRequest<'_>, posture: &Posture, judged: &mut Supported) {
    use Capability::{WorkspaceEdit, WriteState};
    use Filesystem::{ReadOnly, Unrestricted, Workspace};
    let all = BTreeSet::from(Capability::ALL);
    let mode = match &posture.bound {
        Bound::Mode(mode) => *mode,
        Bound::Named(_) | Bound::Profile(_) => {
            uncovered(judged, "`config.default_permissions` names a profile that was not measured");
            return;
        }
    };
    let (granted, word) = match mode {
        SandboxMode::DangerFullAccess => (all, "nothing bounds what it writes"),
        SandboxMode::WorkspaceWrite => {
            (all, "the working directory is writable, its `.git` is not: `git add` fails")
        }
        SandboxMode::ReadOnly => {
            let denied = [WriteState, WorkspaceEdit];
            let rest = all.into_iter().filter(|it| !denied.contains(it)).collect();
            (rest, "nothing is writable, the role's own directory included")
        }
    };
    let wider = match (mode, request.permissions.filesystem) {
        (SandboxMode::DangerFullAccess, ReadOnly | Workspace)
        | (SandboxMode::WorkspaceWrite, ReadOnly) => "wider",
        (SandboxMode::WorkspaceWrite | SandboxMode::ReadOnly, _)
        | (SandboxMode::DangerFullAccess, Unrestricted) => "narrower",
    };
    judged.granted = granted;
    judged.warnings.push(format!(
        "`sandbox: {}` is {wider} than `filesystem: {}`: {word}",
        mode.as_str(),
        request.permissions.filesystem.as_str()
    ));
}

fn approvals_warning(asked: Approval, approvals: Approvals) -> String {
    let effect = match approvals {
        Approvals::Never => "asks less",
        Approvals::OnRequest => "asks more",
    };
    let (native, asked) = (approvals.as_str(), asked.as_str());
    format!("`approval: {native}` of the options {effect} than the neutral `approval: {asked}`")
}

/// Judges the keys of `config` that touch the permissions.
fn judge_config(options: &CodexOptions, posture: &Posture, judged: &mut Supported) {
    let keys = || options.config.iter().filter(|entry| entry.is_native_override());
    let profile = matches!(posture.bound, Bound::Profile(_));
    if profile && keys().any(ConfigEntry::changes_profile) {
        uncovered(judged, "`config.permissions` changes the permission profile");
    }
    judged.covered &= !keys().any(ConfigEntry::answers_questions);
    if keys().any(ConfigEntry::opens_network) {
        judged.notes.push("`config` opens the network inside Codex's sandbox".to_owned());
    }
    let says = |entry: &&ConfigEntry, top: &str| entry.path[0] == top;
    let sandbox = posture.bound == Bound::Mode(SandboxMode::WorkspaceWrite);
    if sandbox && keys().any(|it| says(&it, "sandbox_workspace_write") && !it.opens_network()) {
        judged.measured = false;
        let text = "`config.sandbox_workspace_write` changes what the sandbox lets be written";
        judged.warnings.push(text.to_owned());
    }
    for (top, text) in [
        ("hooks", "Codex opens a dialog at the start for hooks that nobody reviewed"),
        ("mcp_servers", "the servers of `config.mcp_servers` run outside Codex's sandbox"),
        ("projects", "`config.projects` may undo the trust that keeps a start dialog away"),
    ] {
        if keys().any(|entry| says(&entry, top)) {
            judged.notes.push(text.to_owned());
        }
    }
}

/// A combination that no table covers: nothing is proven but that it can read.
fn uncovered(judged: &mut Supported, why: &str) {
    judged.granted = BTreeSet::from([Capability::ReadState]);
    judged.measured = false;
    judged.covered = false;
    judged.warnings.push(why.to_owned());
}
