//! The `policy:` block (01 §1.3).

use super::decode::{Cx, Field};
use super::isolation_block::lexical;
use super::keys::{POLICY, REQUIRE};
use super::model::FleetPolicy;
use crate::diagnostic::Code;
use crate::isolation::{FsPath, NetworkMode};
use crate::permissions::Approval;
use crate::policy::require::{CLOSED_NETWORKS, Cap, Level, Require};

/// Reads the block. Every problem of it is reported.
pub(super) fn policy(field: Field<'_, '_>, cx: &mut Cx<'_>) -> FleetPolicy {
    let mut policy = FleetPolicy::default();
    let Some(cursor) = field.cursor(cx, POLICY) else { return policy };
    if let Some(list) = cursor.opt("forbid_paths") {
        for (index, node) in list.items(cx).unwrap_or_default().iter().enumerate() {
            let path = lexical(list.item(index, node), cx);
            policy.forbid_paths.extend(path.map(|FsPath { path, .. }| path));
        }
    }
    if let Some(field) = cursor.opt("require") {
        policy.require = require(field, cx);
    }
    policy
}

fn require(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Require {
    let Some(cursor) = field.cursor(cx, REQUIRE) else { return Require::default() };
    let require = Require {
        isolation: cursor
            .opt("isolation")
            .and_then(|it| it.word(cx, Level::WORDS, Level::from_word)),
        network: cursor
            .opt("network")
            .and_then(|it| words(it, cx, NetworkMode::WORDS, NetworkMode::from_word)),
        approval: cursor
            .opt("approval")
            .and_then(|it| it.word(cx, Approval::WORDS, Approval::from_word)),
        resources: cursor
            .opt("resources")
            .and_then(|it| words(it, cx, Cap::WORDS, Cap::from_word))
            .unwrap_or_default(),
    };
    if require.isolation == Some(Level::L3)
        && let (Some(modes), Some(written)) = (&require.network, cursor.opt("network"))
        && !modes.iter().any(|mode| CLOSED_NETWORKS.contains(mode))
    {
        written.report(cx, Code::Conflict, "no role can meet this and `isolation: L3`", |it| {
            it.allowed(CLOSED_NETWORKS.map(NetworkMode::as_str))
        });
    }
    require
}

/// A list of different words that is not empty: an empty one would either allow nothing or ask for
/// nothing, and a reader cannot tell which.
fn words<T: PartialEq>(
    field: Field<'_, '_>,
    cx: &mut Cx<'_>,
    words: &[&'static str],
    from_word: impl Fn(&str) -> Option<T>,
) -> Option<Vec<T>> {
    let items = field.items(cx)?;
    if items.is_empty() {
        field.report(cx, Code::InvalidValue, "is an empty list", |it| {
            it.allowed(words.iter().copied()).hint("name one or leave the key out")
        });
        return None;
    }
    let mut found = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let item = field.item(index, node);
        let Some(word) = item.word(cx, words, &from_word) else { continue };
        if found.contains(&word) {
            item.reject(cx, Code::DuplicateName, "is listed twice", |it| it);
        } else {
            found.push(word);
        }
    }
    Some(found)
}
