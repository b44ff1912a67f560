//! The keys of a role, and of `defaults`, read into typed values (01 §1.6, §1.7). A layer is judged on
//! its own, so that a problem names the file that holds it.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::decode::{Cursor, Cx, Field, LARGEST};
use super::isolation_block::{self, IsolationLayer, lexical};
use super::keys::{Key, OVERSEE, PERMISSIONS, SESSION_OPTIONS, TMUX_OPTIONS};
use super::model::{Duration, Oversee, Session};
use super::owner_channel;
use super::role_env::{self, Env, EnvPass};
use super::role_later::{self, MonitorKeys, WorklogKeys};
use super::tree::{At, Entry};
use crate::diagnostic::Code;
use crate::id::{HarnessId, IdentityName, RoleName};
use crate::path::LexicalPath;
use crate::permissions::{Approval, Filesystem, Unattended};

const PROSE_BYTES: usize = 16 * 1024;
const BIO_BYTES: usize = 4 * 1024;
const MODEL_CHARACTERS: usize = 128;

/// A value and where its key stands.
#[derive(Debug, Clone)]
pub(super) struct Written<T> {
    pub(super) value: T,
    pub(super) at: At,
}

/// A value, or the word that there shall be none (`null`, `false`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said<T> {
    Nothing,
    Value(T),
}

impl<T> Said<T> {
    pub(super) fn value(self) -> Option<T> {
        match self {
            Self::Nothing => None,
            Self::Value(value) => Some(value),
        }
    }
}

/// One layer of a role: what the role, or `defaults`, says.
#[derive(Debug, Default)]
pub(super) struct RoleKeys<'n> {
    pub(super) harness: Option<Written<HarnessId>>,
    pub(super) session: Option<Written<Session>>,
    pub(super) boot_grace_ms: Option<u64>,
    pub(super) acp: Option<At>,
    pub(super) permissions: Option<Written<PermissionKeys>>,
    pub(super) identity: Option<Written<IdentityName>>,
    pub(super) cwd: Option<LexicalPath>,
    pub(super) coordinator: Option<String>,
    pub(super) mission: Option<String>,
    pub(super) persona: Option<String>,
    pub(super) bio: Option<String>,
    pub(super) briefing_file: Option<LexicalPath>,
    pub(super) model: Option<Said<String>>,
    pub(super) model_chain: Option<Written<Vec<String>>>,
    pub(super) max_tokens: Option<u64>,
    pub(super) autocompact_pct: Option<u32>,
    pub(super) env: Env,
    pub(super) env_pass: EnvPass,
    pub(super) oversee: Option<Written<Vec<Written<Oversee>>>>,
    pub(super) options: &'n [Entry],
    pub(super) isolation: Option<IsolationLayer>,
    pub(super) monitor: Option<Written<MonitorKeys>>,
    pub(super) worklog: Option<Written<Said<WorklogKeys>>>,
    pub(super) auth_proxy: Option<Written<&'n [Entry]>>,
    pub(super) managed_cli: Option<At>,
    pub(super) owner_channel: Option<Written<&'n [Entry]>>,
}

/// `permissions.approval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalKey {
    Word(Approval),
    /// Deprecated; stands for all three keys.
    Deny,
}

/// `permissions` of one layer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PermissionKeys {
    pub(super) approval: Option<ApprovalKey>,
    pub(super) filesystem: Option<Filesystem>,
    pub(super) unattended: Option<Unattended>,
}

/// Reads a layer. `table` says which keys it may hold.
pub(super) fn decode<'n>(
    field: Field<'n, '_>,
    table: &'static [Key],
    cx: &mut Cx<'_>,
) -> RoleKeys<'n> {
    let Some(cursor) = field.cursor(cx, table) else { return RoleKeys::default() };
    if cursor.is_empty() {
        return RoleKeys::default();
    }
    let mut keys = RoleKeys {
        harness: written(&cursor, "harness", cx, harness),
        session: written(&cursor, "session", cx, session),
        permissions: written(&cursor, "permissions", cx, permissions),
        identity: written(&cursor, "identity", cx, identity),
        cwd: value(&cursor, "cwd", cx, |it, cx| Some(lexical(it, cx)?.path)),
        coordinator: value(&cursor, "coordinator", cx, contact),
        mission: value(&cursor, "mission", cx, |it, cx| prose(it, PROSE_BYTES, cx)),
        persona: value(&cursor, "persona", cx, |it, cx| prose(it, PROSE_BYTES, cx)),
        bio: value(&cursor, "bio", cx, |it, cx| prose(it, BIO_BYTES, cx)),
        briefing_file: value(&cursor, "briefing_file", cx, briefing_file),
        model: value(&cursor, "model", cx, model),
        model_chain: written(&cursor, "model_chain", cx, model_chain),
        max_tokens: value(&cursor, "max_tokens", cx, |it, cx| it.integer(cx, 1..=LARGEST)),
        autocompact_pct: value(&cursor, "autocompact_pct", cx, |it, cx| it.percent(cx)),
        env: value(&cursor, "env", cx, role_env::env).unwrap_or_default(),
        env_pass: value(&cursor, "env_pass", cx, role_env::env_pass).unwrap_or_default(),
        oversee: written(&cursor, "oversee", cx, oversee),
        options: value(&cursor, "harness_options", cx, |it, cx| it.entries(cx)).unwrap_or_default(),
        isolation: value(&cursor, "isolation", cx, isolation_block::decode),
        monitor: written(&cursor, "monitor", cx, role_later::monitor),
        worklog: written(&cursor, "worklog", cx, role_later::worklog),
        auth_proxy: written(&cursor, "auth_proxy", cx, role_later::auth_proxy),
        managed_cli: written(&cursor, "managed_cli", cx, role_later::managed_cli).map(|it| it.at),
        owner_channel: written(&cursor, "owner_channel", cx, owner_channel::owner_channel),
        ..RoleKeys::default()
    };
    if let Some(options) = cursor.opt("session_options") {
        session_options(options, &mut keys, cx);
    }
    keys
}

fn value<'n, T>(
    cursor: &Cursor<'n, '_>,
    key: &str,
    cx: &mut Cx<'_>,
    read: impl FnOnce(Field<'n, '_>, &mut Cx<'_>) -> Option<T>,
) -> Option<T> {
    read(cursor.opt(key)?, cx)
}

fn written<'n, T>(
    cursor: &Cursor<'n, '_>,
    key: &str,
    cx: &mut Cx<'_>,
    read: impl FnOnce(Field<'n, '_>, &mut Cx<'_>) -> Option<T>,
) -> Option<Written<T>> {
    let field = cursor.opt(key)?;
    Some(Written { value: read(field, cx)?, at: field.at })
}

pub(super) fn harness(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<HarnessId> {
    let text = field.text(cx)?;
    let registered: Vec<String> = cx.options.harnesses.ids().map(str::to_owned).collect();
    let known = || registered.iter().map(String::as_str);
    if known().any(|id| id == text) {
        return text.parse().ok();
    }
    field.reject(cx, Code::InvalidValue, "is not a known harness", |it| {
        let it = it.allowed(known());
        match crate::diagnostic::nearest(text, known()) {
            Some(near) => it.hint(format!("did you mean `{near}`?")),
            None => it.hint("any program runs with `harness: command`"),
        }
    });
    None
}

pub(super) fn session(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Session> {
    field.word(cx, &["tmux", "acp"], |word| match word {
        "tmux" => Some(Session::Tmux),
        "acp" => Some(Session::Acp),
        _ => None,
    })
}

fn session_options(field: Field<'_, '_>, keys: &mut RoleKeys<'_>, cx: &mut Cx<'_>) {
    let Some(cursor) = field.cursor(cx, SESSION_OPTIONS) else { return };
    if let Some(tmux) = cursor.opt("tmux").and_then(|tmux| tmux.cursor(cx, TMUX_OPTIONS)) {
        keys.boot_grace_ms = value(&tmux, "boot_grace_ms", cx, |it, cx| it.millis(cx));
    }
    if let Some(acp) = cursor.opt("acp") {
        keys.acp = role_later::acp_options(acp, cx).then_some(acp.at);
    }
}

fn permissions(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<PermissionKeys> {
    let cursor = field.cursor(cx, PERMISSIONS)?;
    let approval = value(&cursor, "approval", cx, |it, cx| {
        it.word(cx, Approval::WORDS, |word| match word {
            "deny" => Some(ApprovalKey::Deny),
            _ => Approval::from_word(word).map(ApprovalKey::Word),
        })
    });
    if let (Some(ApprovalKey::Deny), Some(written)) = (approval, cursor.opt("approval")) {
        written.warn(
            cx,
            Code::InvalidValue,
            "`deny` is a deprecated alias",
            "write `approval: ask`, `filesystem: read-only`, `unattended: deny`",
        );
    }
    Some(PermissionKeys {
        approval,
        filesystem: value(&cursor, "filesystem", cx, |it, cx| {
            it.word(cx, Filesystem::WORDS, Filesystem::from_word)
        }),
        unattended: value(&cursor, "unattended", cx, |it, cx| {
            it.word(cx, Unattended::WORDS, Unattended::from_word)
        }),
    })
}

pub(super) fn identity(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<IdentityName> {
    let name = field.text(cx)?.trim().parse().ok();
    if name.is_none() {
        field.reject(cx, Code::InvalidValue, "is not an identity", |it| {
            it.allowed([IdentityName::ALLOWED])
        });
    }
    name
}

/// The name of a contact: one line that is not blank.
pub(super) fn contact(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<String> {
    let text = field.text(cx)?;
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        field.reject(cx, Code::InvalidValue, "must be a name", |it| {
            it.allowed(["text that is not blank, without control characters"])
        });
        return None;
    }
    Some(text.to_owned())
}

fn prose(field: Field<'_, '_>, bytes: usize, cx: &mut Cx<'_>) -> Option<String> {
    let text = field.text(cx)?;
    if text.len() > bytes {
        let message = format!("is too long: {} bytes", text.len());
        field.report(cx, Code::OutOfRange, message, |it| {
            it.allowed([format!("at most {} KiB", bytes / 1024)])
        });
        return None;
    }
    if text.contains('\0') {
        field.report(cx, Code::InvalidValue, "holds a NUL character", |it| it);
        return None;
    }
    Some(text.to_owned())
}

/// Absolute, or relative to the file that says it.
fn briefing_file(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<LexicalPath> {
    let text = field.text(cx)?;
    if text.is_empty() || text.starts_with(['/', '~']) {
        return Some(lexical(field, cx)?.path);
    }
    let file = cx.files.get(field.at.file as usize).map_or("", String::as_str);
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let below = text.strip_prefix("./").unwrap_or(text);
    match LexicalPath::absolute(&format!("{folder}/{below}")) {
        Ok(path) => Some(path),
        Err(error) => {
            field.reject(cx, Code::InvalidValue, error.to_string(), |it| it);
            None
        }
    }
}

/// `None` for a blank one, which counts as not written.
pub(super) fn model(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Said<String>> {
    if field.node.is_null() {
        return Some(Said::Nothing);
    }
    let text = field.text(cx)?.trim();
    if text.is_empty() {
        return None;
    }
    model_name(text, field, cx).map(Said::Value)
}

fn model_name(text: &str, field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<String> {
    if is_model_name(text) {
        return Some(text.to_owned());
    }
    field.reject(cx, Code::InvalidValue, "is not the name of a model", |it| {
        it.allowed([model_names()])
    });
    None
}

/// Whether a trimmed text can be the name of a model: it becomes an argument.
pub(super) fn is_model_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= MODEL_CHARACTERS
        && !text.starts_with('-')
        && !text.chars().any(char::is_control)
}

/// What [`is_model_name`] allows, in words.
pub(super) fn model_names() -> String {
    format!("1 to {MODEL_CHARACTERS} printable characters, the first not `-`")
}

fn model_chain(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Vec<String>> {
    let items = field.items(cx)?;
    if items.is_empty() {
        field.report(cx, Code::InvalidValue, "is an empty list", |it| {
            it.hint("name a model or leave it out")
        });
        return None;
    }
    let mut seen = HashSet::new();
    let mut chain = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let item = field.item(index, node);
        let Some(text) = item.text(cx) else { continue };
        let text = text.trim();
        if text.is_empty() {
            item.report(cx, Code::InvalidValue, "is blank", |it| it);
        } else if !seen.insert(text) {
            item.reject(cx, Code::DuplicateName, "is listed twice", |it| it);
        } else {
            chain.extend(model_name(text, item, cx));
        }
    }
    Some(chain)
}

const LEAST_OVERSEE: u64 = 10_000;

fn oversee(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Vec<Written<Oversee>>> {
    let mut seen = HashSet::new();
    let mut wards = Vec::new();
    for (index, node) in field.items(cx)?.iter().enumerate() {
        let item = field.item(index, node);
        let Some(cursor) = item.cursor(cx, OVERSEE) else { continue };
        let role = cursor.req("role", cx).and_then(|it| {
            let name: Option<RoleName> = it.text(cx)?.parse().ok();
            if name.is_none() {
                it.reject(cx, Code::InvalidValue, "is not the name of a role", |found| {
                    found.allowed([RoleName::ALLOWED])
                });
            }
            name
        });
        let interval =
            cursor.req("interval", cx).and_then(|it| duration_in(it, LEAST_OVERSEE..=LARGEST, cx));
        let (Some(role), Some(interval)) = (role, interval) else { continue };
        if seen.insert(role.clone()) {
            wards.push(Written { value: Oversee { role, interval }, at: item.at });
        } else {
            item.report(cx, Code::DuplicateName, format!("role `{role}` is listed twice"), |it| it);
        }
    }
    Some(wards)
}

/// A duration in a range of milliseconds.
pub(super) fn duration_in(
    field: Field<'_, '_>,
    range: RangeInclusive<u64>,
    cx: &mut Cx<'_>,
) -> Option<Duration> {
    let duration = match field.text(cx)?.parse::<Duration>() {
        Ok(duration) => duration,
        Err(error) => {
            field.reject(cx, Code::InvalidValue, error.to_string(), |it| {
                it.allowed([Duration::ALLOWED])
            });
            return None;
        }
    };
    if range.contains(&duration.0) {
        return Some(duration);
    }
    let (least, most) = (Duration(*range.start()), Duration(*range.end()));
    let (what, allowed) = if duration < least {
        ("is too short", format!("{least} or more"))
    } else {
        ("is too long", format!("{most} or less"))
    };
    field.reject(cx, Code::OutOfRange, what, |it| it.allowed([allowed]));
    None
}
