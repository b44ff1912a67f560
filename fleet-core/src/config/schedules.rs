//! `loops` and `watchdogs` (01 §1.13, §1.14): not in this build, and checked all the same. Both have
//! names of their own and name roles.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::decode::{Cursor, Cx, Field, LARGEST};
use super::isolation_block::{self, lexical};
use super::keys::{LOOP, WATCHDOG};
use super::model::{Role, Session};
use super::role_keys::{contact, duration_in, harness, identity, model, session};
use super::tree::{At, Entry, Node, Value};
use super::unavailable::{not_built, note};
use super::validate::{Declared, TopLevel, did_you_mean};
use crate::diagnostic::Code;
use crate::id::{IdentityName, RoleName};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const PROMPT_BYTES: usize = 16_384;
const PROMPT_SCALARS: usize = 12_000;

/// The roles of a fleet, for what names them.
#[derive(Clone, Copy)]
pub(super) struct Roles<'a> {
    pub(super) declared: &'a [Declared],
    pub(super) resolved: &'a IndexMap<RoleName, Role>,
}

impl Roles<'_> {
    fn by_name(&self) -> HashMap<&str, &Declared> {
        self.declared.iter().map(|role| (role.name.as_str(), role)).collect()
    }
}

/// `loops`.
pub(super) fn loops(field: Field<'_, '_>, roles: Roles<'_>, top: &mut TopLevel, cx: &mut Cx<'_>) {
    let place = Some(cx.place(field.at));
    top.unavailable.push(note("loops", "`loops`", "leave it out", place));
    let names = roles.by_name();
    let mut for_all = false;
    for entry in field.entries(cx).unwrap_or_default() {
        let child = field.child(entry);
        name_fits(entry, &child, cx);
        let Some(cursor) = child.cursor(cx, LOOP) else { continue };
        let enabled = cursor.opt("enabled").and_then(|it| it.boolean(cx)).unwrap_or(true);
        timing(&cursor, cx);
        if let Some(field) = cursor.req("prompt", cx) {
            prompt(field, cx);
        }
        let Some(list) = cursor.req("roles", cx) else { continue };
        let unavailable = |cx: &Cx<'_>| {
            let path = format!("loops.{}", entry.key);
            not_built(&path, &format!("`{path}`"), "leave it out", Some(cx.place(entry.at)))
        };
        if is_all(list.node) {
            if enabled {
                let acp = |role: &Role| role.session == Session::Acp;
                if let Some(role) = roles.resolved.values().find(|role| !acp(role)) {
                    needs_acp(&list, &role.name, cx);
                }
                // One reason is enough, however many loops there are.
                if !std::mem::replace(&mut for_all, true) {
                    top.every_role.push(unavailable(cx));
                }
            }
            continue;
        }
        for (name, index, node) in named(list, &names, roles, false, cx) {
            if !enabled {
                continue;
            }
            if roles.resolved.get(name).is_some_and(|role| role.session != Session::Acp) {
                needs_acp(&list.item(index, node), name, cx);
            }
            top.named.push((name.clone(), unavailable(cx)));
        }
    }
}

fn needs_acp(field: &Field<'_, '_>, role: &RoleName, cx: &mut Cx<'_>) {
    let message = format!("a loop needs a role with `session: acp`, and `{role}` has `tmux`");
    field.report(cx, Code::Conflict, message, |it| {
        it.hint("write `enabled: false`, or leave it out")
    });
}

/// `interval`, `initial_delay` and `jitter`.
fn timing(cursor: &Cursor<'_, '_>, cx: &mut Cx<'_>) {
    let interval = cursor.req("interval", cx).and_then(|it| duration_in(it, MINUTE..=30 * DAY, cx));
    if let Some(delay) = cursor.opt("initial_delay") {
        duration_in(delay, 0..=30 * DAY, cx);
    }
    let Some(written) = cursor.opt("jitter") else { return };
    let jitter = duration_in(written, 0..=HOUR, cx);
    if let (Some(jitter), Some(interval)) = (jitter, interval)
        && jitter >= interval
    {
        written.reject(cx, Code::OutOfRange, "must be less than `interval`", |it| {
            it.allowed([format!("less than {interval}")])
        });
    }
}

/// The text of a loop, its line ends counted as one character.
fn prompt(field: Field<'_, '_>, cx: &mut Cx<'_>) {
    let Some(text) = field.text(cx) else { return };
    let text = text.replace("\r\n", "\n");
    if text.trim().is_empty() {
        field.report(cx, Code::InvalidValue, "is blank", |it| it);
    } else if text.contains('\0') {
        field.report(cx, Code::InvalidValue, "holds a NUL character", |it| it);
    } else if text.len() > PROMPT_BYTES || text.chars().count() > PROMPT_SCALARS {
        let message =
            format!("is too long: {} bytes, {} characters", text.len(), text.chars().count());
        let allowed = format!("at most {PROMPT_BYTES} bytes and {PROMPT_SCALARS} characters");
        field.report(cx, Code::OutOfRange, message, |it| it.allowed([allowed]));
    }
}

/// Whether a list is exactly `["*"]`.
fn is_all(node: &Node) -> bool {
    let Value::List(items) = &node.value else { return false };
    matches!(&items[..], [one] if matches!(&one.value, Value::Scalar(it) if &*it.text == "*"))
}

/// The existing roles of a list, each once.
fn named<'n, 'r>(
    list: Field<'n, '_>,
    names: &HashMap<&str, &'r Declared>,
    roles: Roles<'_>,
    may_be_empty: bool,
    cx: &mut Cx<'_>,
) -> Vec<(&'r RoleName, usize, &'n Node)> {
    let items = list.items(cx);
    if !may_be_empty && items.is_some_and(<[Node]>::is_empty) {
        list.report(cx, Code::InvalidValue, "is an empty list", |it| {
            it.hint("name a role, or write `[\"*\"]` for all")
        });
    }
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for (index, node) in items.unwrap_or_default().iter().enumerate() {
        let item = list.item(index, node);
        let Some(text) = item.text(cx) else { continue };
        if !seen.insert(text) {
            item.reject(cx, Code::DuplicateName, "is listed twice", |it| it);
        } else if let Some(role) = names.get(text) {
            found.push((&role.name, index, node));
        } else if text == "*" {
            item.reject(cx, Code::InvalidValue, "stands for all roles, and only alone", |it| it);
        } else {
            let hint = did_you_mean(text, roles.declared, cx);
            item.reject(cx, Code::UnknownReference, "there is no such role", |mut it| {
                it.hint = hint.or(it.hint);
                it
            });
        }
    }
    found
}

/// `watchdogs`.
pub(super) fn watchdogs(
    field: Field<'_, '_>,
    roles: Roles<'_>,
    top: &mut TopLevel,
    cx: &mut Cx<'_>,
) {
    let place = Some(cx.place(field.at));
    top.unavailable.push(note("watchdogs", "`watchdogs`", "leave it out", place));
    let names = roles.by_name();
    let mut identities: HashMap<String, (String, At)> = roles
        .resolved
        .values()
        .filter_map(|role| {
            let at = names.get(role.name.as_str())?.at;
            Some((role.identity.to_string(), (format!("role `{}`", role.name), at)))
        })
        .collect();
    for entry in field.entries(cx).unwrap_or_default() {
        let child = field.child(entry);
        let named_well = name_fits(entry, &child, cx);
        if let Some(role) = names.get(&*entry.key) {
            let place = cx.place(role.at);
            let message = "is also the name of a role";
            child.report(cx, Code::DuplicateName, message, |it| it.other(place));
        }
        let Some(cursor) = child.cursor(cx, WATCHDOG) else { continue };
        values(&cursor, cx);
        let written = cursor.opt("identity");
        let own = match written {
            Some(written) => identity(written, cx),
            None => format!("Watchdog-{}", entry.key).parse::<IdentityName>().ok(),
        };
        if let (Some(own), true) = (own, named_well) {
            let spot = written.unwrap_or(child);
            if let Some((other, at)) = identities.get(own.as_str()) {
                let message =
                    format!("`{own}` is also the identity of {other}: it binds only once");
                let place = cx.place(*at);
                spot.report(cx, Code::DuplicateName, message, |it| it.other(place));
            } else {
                let who = format!("watchdog `{}`", entry.key);
                identities.insert(own.to_string(), (who, spot.at));
            }
        }
        let enabled = cursor.opt("enabled").and_then(|it| it.boolean(cx)).unwrap_or(true);
        let Some(list) = cursor.opt("watch") else { continue };
        for (name, ..) in named(list, &names, roles, true, cx) {
            if enabled {
                let path = format!("watchdogs.{}", entry.key);
                let place = Some(cx.place(entry.at));
                let what = format!("`{path}`");
                top.named.push((name.clone(), not_built(&path, &what, "leave it out", place)));
            }
        }
    }
}

/// The keys of a watchdog that concern nobody else.
fn values(cursor: &Cursor<'_, '_>, cx: &mut Cx<'_>) {
    if let Some(field) = cursor.req("coordinator", cx) {
        contact(field, cx);
    }
    if let Some(field) = cursor.opt("harness") {
        harness(field, cx);
    }
    if let Some(field) = cursor.opt("model") {
        model(field, cx);
    }
    if let Some(field) = cursor.opt("session") {
        session(field, cx);
    }
    for (key, least) in [("interval", MINUTE), ("timeout", 0), ("alert_cooldown", 0)] {
        if let Some(field) = cursor.opt(key) {
            duration_in(field, least..=LARGEST, cx);
        }
    }
    if let Some(field) = cursor.opt("keep_reports") {
        field.integer(cx, 1..=LARGEST);
    }
    if let Some(field) = cursor.opt("prompt_file") {
        lexical(field, cx);
    }
    if let Some(field) = cursor.opt("isolation") {
        isolation_block::decode(field, cx);
    }
}

fn name_fits(entry: &Entry, child: &Field<'_, '_>, cx: &mut Cx<'_>) -> bool {
    let fits = entry.key.parse::<RoleName>().is_ok();
    if !fits {
        child.report(cx, Code::InvalidValue, "is not a valid name", |it| {
            it.allowed([RoleName::ALLOWED])
        });
    }
    fits
}
