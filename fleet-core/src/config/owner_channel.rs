//! `owner_channel` (01 §1.12): not in this build, and checked all the same, each layer on its own.

use std::collections::HashSet;

use super::decode::{Cx, Field};
use super::keys::{ATTACHMENTS, OWNER_CHANNEL};
use super::role_keys::identity;
use super::tree::Entry;
use crate::diagnostic::Code;

const MIB: u64 = 1024 * 1024;
const MINUTE: u64 = 60_000;
const MOST_TYPES: usize = 64;

pub(super) fn owner_channel<'n>(field: Field<'n, '_>, cx: &mut Cx<'_>) -> Option<&'n [Entry]> {
    let cursor = field.cursor(cx, OWNER_CHANNEL)?;
    if let Some(field) = cursor.opt("identity") {
        identity(field, cx);
    }
    let agent = cursor.opt("agent").and_then(|it| agent(it, cx));
    if let Some(list) = cursor.opt("owners") {
        owners(list, agent.as_deref(), cx);
    }
    for key in ["interrupt", "comments"] {
        if let Some(field) = cursor.opt(key) {
            field.boolean(cx);
        }
    }
    if let Some(field) = cursor.opt("progress_interval_ms") {
        field.millis(cx);
    }
    if let Some(field) = cursor.opt("attachments") {
        attachments(field, cx);
    }
    field.node.entries()
}

fn is_contact_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The id of the agent, in lower case.
fn agent(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<String> {
    let text = field.text(cx)?;
    if is_contact_id(text) {
        return Some(text.to_ascii_lowercase());
    }
    field.reject(cx, Code::InvalidValue, "is not the id of a contact", |it| {
        it.allowed(["64 hexadecimal digits"])
    });
    None
}

/// Ids of 64 hexadecimal digits are compared in lower case, as they are when a message comes.
fn owners(list: Field<'_, '_>, agent: Option<&str>, cx: &mut Cx<'_>) {
    let Some(items) = list.items(cx) else { return };
    if items.is_empty() {
        list.report(cx, Code::InvalidValue, "is an empty list", |it| it.hint("name an owner"));
    }
    let mut seen = HashSet::new();
    for (index, node) in items.iter().enumerate() {
        let item = list.item(index, node);
        let Some(text) = item.text(cx) else { continue };
        let is_id = is_contact_id(text);
        let id = if is_id { text.to_ascii_lowercase() } else { text.to_owned() };
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            item.reject(cx, Code::InvalidValue, "must be the id of a contact", |it| it);
        } else if agent.is_some() && !is_id {
            item.reject(cx, Code::InvalidValue, "is not the id of a contact", |it| {
                it.allowed(["64 hexadecimal digits, where `agent` is written"])
            });
        } else if agent == Some(id.as_str()) {
            item.report(cx, Code::Conflict, "is `agent` itself, which cannot be an owner", |it| it);
        } else if !seen.insert(id) {
            item.reject(cx, Code::DuplicateName, "is listed twice", |it| it);
        }
    }
}

fn attachments(field: Field<'_, '_>, cx: &mut Cx<'_>) {
    let Some(cursor) = field.cursor(cx, ATTACHMENTS) else { return };
    if let Some(field) = cursor.opt("enabled") {
        field.boolean(cx);
    }
    let integer =
        |key: &str, range, cx: &mut Cx<'_>| cursor.opt(key).and_then(|it| it.integer(cx, range));
    integer("max_files_per_request", 1..=32, cx);
    let file = integer("max_file_bytes", 1..=100 * MIB, cx);
    let request = integer("max_request_bytes", 1..=256 * MIB, cx);
    integer("retention_ms", MINUTE..=30 * 24 * 60 * MINUTE, cx);
    if let (Some(file), Some(request), Some(written)) =
        (file, request, cursor.opt("max_request_bytes"))
        && request < file
    {
        written.reject(cx, Code::Conflict, "is less than `max_file_bytes`", |it| it);
    }
    if let Some(list) = cursor.opt("allowed_mime") {
        mime_types(list, cx);
    }
}

fn mime_types(list: Field<'_, '_>, cx: &mut Cx<'_>) {
    let Some(items) = list.items(cx) else { return };
    if items.is_empty() || items.len() > MOST_TYPES {
        let message = format!("holds {} types", items.len());
        list.report(cx, Code::OutOfRange, message, |it| it.allowed(["1 to 64"]));
    }
    let mut seen = HashSet::new();
    for (index, node) in items.iter().take(MOST_TYPES).enumerate() {
        let item = list.item(index, node);
        let Some(text) = item.text(cx) else { continue };
        let part = |part: &str| {
            let sign = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$&^_.+-".contains(&byte)
            };
            !part.is_empty() && part.bytes().all(sign)
        };
        if !text.split_once('/').is_some_and(|(kind, sub)| part(kind) && part(sub)) {
            item.reject(cx, Code::InvalidValue, "is not a media type", |it| {
                it.allowed(["type/subtype in lower case"])
            });
        } else if !seen.insert(text) {
            item.reject(cx, Code::DuplicateName, "is listed twice", |it| it);
        }
    }
}
