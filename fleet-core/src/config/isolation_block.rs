//! The `isolation:` block (01 §2.1, §2.4): its shape and its own rules. Whether a path is forbidden
//! is not judged here, only whether its text can name a path at all.

use std::collections::HashSet;

use super::decode::{Cursor, Cx, Field, LARGEST};
use super::isolation_grammar::{parse_cpu, parse_memory, split_secret};
use super::keys::{FS, ISOLATION, RESOURCES, SECRET, names};
use super::model::Unavailable;
use super::scalar::Core;
use super::tree::Value;
use super::unavailable::not_built;
use crate::diagnostic::Code;
use crate::isolation::network::HostRule;
use crate::isolation::{
    Backend, Cpu, FsPath, IsolationBlock, MemoryBytes, NetworkMode, OnUnavailable, Resources,
    SecretEntry, SystemView,
};
use crate::path::LexicalPath;

const LEAST_MEMORY: u64 = 64 * 1024 * 1024;
const LEAST_PIDS: u64 = 16;
const MOST_PIDS: u64 = 4_194_304;

/// A block with what this build cannot serve of it.
#[derive(Debug, Clone)]
pub(super) struct IsolationLayer {
    pub(super) block: IsolationBlock,
    pub(super) unavailable: Vec<Unavailable>,
}

/// Reads a block. Every problem of it is reported.
pub(super) fn decode(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<IsolationLayer> {
    if field.node.is_null() {
        field.report(cx, Code::WrongType, "is empty", |it| {
            it.hint(
                "write `{}` for the default sandbox or `{backend: none}` for no sandbox, on purpose",
            )
        });
        return None;
    }
    let cursor = field.cursor(cx, ISOLATION)?;
    let defaults = IsolationBlock::default();
    let fs = cursor.opt("fs").and_then(|fs| fs.cursor(cx, FS));
    let paths = |key: &str, cx: &mut Cx<'_>| {
        fs.as_ref().and_then(|fs| fs.opt(key)).map(|list| fs_paths(list, cx)).unwrap_or_default()
    };
    let block = IsolationBlock {
        backend: cursor
            .opt("backend")
            .and_then(|it| it.word(cx, Backend::WORDS, Backend::from_word))
            .unwrap_or(defaults.backend),
        on_unavailable: cursor
            .opt("on_unavailable")
            .and_then(|it| it.word(cx, OnUnavailable::WORDS, OnUnavailable::from_word)),
        network: cursor
            .opt("network")
            .and_then(|it| it.word(cx, NetworkMode::WORDS, NetworkMode::from_word)),
        allow_hosts: cursor.opt("allow_hosts").map(|it| hosts(it, cx)).unwrap_or_default(),
        fs_read: paths("read", cx),
        fs_write: paths("write", cx),
        resources: cursor.opt("resources").and_then(|it| resources(it, cx)).unwrap_or_default(),
        secrets: cursor.opt("secrets").map(|it| secrets(it, cx)).unwrap_or_default(),
        protect: cursor.opt("protect").and_then(|it| protected(it, cx)),
        system: cursor
            .opt("system")
            .and_then(|it| it.word(cx, SystemView::WORDS, SystemView::from_word))
            .unwrap_or(defaults.system),
        nested_sandbox: cursor
            .opt("nested_sandbox")
            .and_then(|it| it.boolean(cx))
            .unwrap_or(defaults.nested_sandbox),
        image: cursor.opt("image").and_then(|it| image(it, cx)),
    };
    conflicts(&cursor, &block, cx);
    let unavailable = unavailable(&cursor, &block, cx);
    Some(IsolationLayer { block, unavailable })
}

/// Keys that contradict each other.
fn conflicts(cursor: &Cursor<'_, '_>, block: &IsolationBlock, cx: &mut Cx<'_>) {
    if let Some(hosts) = cursor.opt("allow_hosts")
        && !block.network().lists_hosts()
    {
        let message = format!("has no effect with `network: {}`", block.network());
        hosts.report(cx, Code::Conflict, message, |it| {
            it.hint("leave it out, or write `network: allowlist`")
        });
    }
    if block.network == Some(NetworkMode::Allowlist)
        && cursor.opt("allow_hosts").is_none_or(|hosts| hosts.is_empty_list())
        && let Some(network) = cursor.opt("network")
    {
        network.report(cx, Code::Conflict, "`allowlist` needs a list of hosts", |it| {
            it.hint("write `allow_hosts`, or `network: deny`")
        });
    }
    if let Some(image) = cursor.opt("image")
        && block.backend != Backend::Podman
    {
        image.report(cx, Code::Conflict, "is for `backend: podman` only", |it| it);
    }
    if block.backend == Backend::Landlock && block.network().lists_hosts() {
        let message = format!(
            "`network: {}` cannot be enforced by `backend: landlock`: it tells ports apart, not hosts",
            block.network()
        );
        let field = cursor.opt("network").or_else(|| cursor.opt("backend"));
        if let Some(field) = field {
            field.report(cx, Code::Conflict, message, |it| {
                it.allowed([NetworkMode::Deny, NetworkMode::Allow].map(NetworkMode::as_str))
                    .hint("write `network: deny` or `network: allow`, or `backend: bubblewrap`")
            });
        }
    }
    let idle: Vec<String> = cursor
        .written()
        // Caps are set from outside of any sandbox (01 §2.10).
        .filter(|key| !matches!(*key, "backend" | "on_unavailable" | "resources"))
        .filter(|key| names(ISOLATION).any(|name| name == *key))
        .map(|key| format!("`{key}`"))
        .collect();
    if block.backend == Backend::None && !idle.is_empty() {
        let message =
            format!("`backend: none` enforces nothing: {} has no effect", idle.join(", "));
        cursor.field.warn(cx, Code::Conflict, &message, "leave it out, or choose another backend");
    }
}

/// What was written, or promised by default, and is not in this build.
fn unavailable(cursor: &Cursor<'_, '_>, block: &IsolationBlock, cx: &Cx<'_>) -> Vec<Unavailable> {
    let mut list = Vec::new();
    let mut add = |key: &str, what: &str, instead: &str| {
        let place = cursor.opt(key).map(|field| cx.place(field.at));
        list.push(not_built(&format!("isolation.{key}"), what, instead, place));
    };
    if block.image.is_some() {
        add(
            "image",
            "a container image",
            "leave `image` out: the container shows the host's `/usr`",
        );
    }
    list
}

/// A path through the lexical gate.
pub(super) fn lexical(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<FsPath> {
    let text = field.text(cx)?;
    match LexicalPath::parse(text, cx.options.home) {
        Ok(path) => Some(FsPath { written: text.to_owned(), path }),
        Err(error) => {
            field.reject(cx, Code::InvalidValue, error.to_string(), |it| it);
            None
        }
    }
}

fn fs_paths(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Vec<FsPath> {
    let items = field.items(cx).unwrap_or_default();
    let mut paths = Vec::with_capacity(items.len());
    for (index, node) in items.iter().enumerate() {
        paths.extend(lexical(field.item(index, node), cx));
    }
    paths
}

fn protected(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Vec<String>> {
    let mut seen = HashSet::new();
    let mut paths = Vec::new();
    for (index, node) in field.items(cx)?.iter().enumerate() {
        let item = field.item(index, node);
        let Some(text) = item.text(cx) else { continue };
        let below = LexicalPath::absolute(&format!("/{text}"));
        let relative = !text.is_empty() && !text.starts_with(['/', '~']);
        match below {
            Ok(path) if relative => {
                let path = path.as_str().trim_start_matches('/').to_owned();
                if seen.insert(path.clone()) {
                    paths.push(path);
                }
            }
            _ => item.reject(cx, Code::InvalidValue, "must be a plain path below `cwd`", |it| {
                it.hint("write it relative, without `.` and `..`, for example `.git/hooks`")
            }),
        }
    }
    Some(paths)
}

fn hosts(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Vec<HostRule> {
    let mut seen = HashSet::new();
    let mut hosts = Vec::new();
    for (index, node) in field.items(cx).unwrap_or_default().iter().enumerate() {
        let item = field.item(index, node);
        let Some(text) = item.text(cx) else { continue };
        match text.parse::<HostRule>() {
            Err(error) => item.reject(cx, Code::InvalidValue, "is not a host", |it| {
                it.allowed([
                    "a DNS name",
                    "*.suffix",
                    "an IP address",
                    "each with an optional :port",
                ])
                .hint(error.to_string())
            }),
            Ok(rule) if !seen.insert(rule.clone()) => {
                item.reject(cx, Code::DuplicateName, "is listed twice", |it| it);
            }
            Ok(rule) => hosts.push(rule),
        }
    }
    hosts
}

fn image(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<String> {
    let text = field.text(cx)?;
    let digest = text.split_once("@sha256:").filter(|(name, digest)| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_graphic())
            && !name.starts_with('-')
            && digest.len() == 64
            && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if digest.is_none() {
        field.reject(cx, Code::InvalidValue, "must name an image by digest", |it| {
            it.allowed(["NAME@sha256:<64 hexadecimal digits>"])
        });
    }
    digest.map(|_| text.to_owned())
}

fn resources(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Resources> {
    let cursor = field.cursor(cx, RESOURCES)?;
    Some(Resources {
        cpu: cursor.opt("cpu").and_then(|it| cpu(it, cx)),
        memory: cursor.opt("mem").and_then(|it| memory(it, cx)),
        pids: cursor
            .opt("pids")
            .and_then(|it| it.integer(cx, LEAST_PIDS..=MOST_PIDS))
            .and_then(|value| u32::try_from(value).ok()),
    })
}

/// The text of a scalar that is a text or a number.
fn digits<'n>(field: &Field<'n, '_>, expected: &str, cx: &mut Cx<'_>) -> Option<&'n str> {
    if let Value::Scalar(scalar) = &field.node.value
        && matches!(scalar.core(), Core::Text(_) | Core::Int(_) | Core::Float(_))
    {
        return Some(&scalar.text);
    }
    field.wrong_type(cx, expected);
    None
}

fn cpu(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Cpu> {
    let text = digits(&field, "a number of processors", cx)?;
    let cpu = parse_cpu(text);
    if cpu.is_none() {
        field.reject(cx, Code::InvalidValue, "must be a number of processors above 0", |it| {
            it.allowed(["a decimal such as 2, 1.5 or .5, at least 0.001"])
        });
    }
    cpu
}

fn memory(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<MemoryBytes> {
    let text = digits(&field, "a size", cx)?;
    let Some(bytes) = parse_memory(text) else {
        field.reject(cx, Code::InvalidValue, "is not a size", |it| {
            it.allowed(["digits and one of K, M, G, T, P, E, for example 2G, at least 64M"])
        });
        return None;
    };
    if !(LEAST_MEMORY..=LARGEST * 1024).contains(&bytes) {
        field.reject(cx, Code::OutOfRange, "is out of range", |it| it.allowed(["64M or more"]));
        return None;
    }
    Some(MemoryBytes(bytes))
}

fn secrets(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Vec<SecretEntry> {
    let mut entries = Vec::new();
    for (index, node) in field.items(cx).unwrap_or_default().iter().enumerate() {
        let item = field.item(index, node);
        entries.extend(match &node.value {
            Value::Map(_) => secret_map(item, cx),
            _ => secret_text(item, cx),
        });
    }
    entries
}

fn secret_map(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<SecretEntry> {
    let cursor = field.cursor(cx, SECRET)?;
    let (from, to) = (cursor.req("from", cx), cursor.req("to", cx));
    let from = from.and_then(|it| lexical(it, cx));
    let to = to.and_then(|it| lexical(it, cx));
    Some(SecretEntry { from: from?.path, to: to?.path, map_form: true })
}

fn secret_text(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<SecretEntry> {
    let text = field.text(cx)?;
    let Some(sides) = split_secret(text) else {
        field.report(cx, Code::InvalidValue, "must be `host:container` or one path", |it| {
            it.hint("write `\\:` for a colon inside a path and `\\\\` for a backslash")
        });
        return None;
    };
    let mut side = |text: &str, name: &str| match LexicalPath::parse(text, cx.options.home) {
        Ok(path) => Some(path),
        Err(error) => {
            field.report(cx, Code::InvalidValue, format!("{name} side: {error}"), |it| it);
            None
        }
    };
    let (from, to) = match sides {
        (path, None) => {
            let path = side(&path, "host");
            (path.clone(), path)
        }
        (from, Some(to)) => (side(&from, "host"), side(&to, "container")),
    };
    Some(SecretEntry { from: from?, to: to?, map_form: false })
}
