//! Blocks of a role whose runtime is not in this build: their shape and their own rules are checked all
//! the same, so that a file does not turn out wrong later.

use super::decode::{Cx, Field, LARGEST};
use super::keys::{ACP_OPTIONS, AUTH_PROXY, MONITOR, WAKE_SOURCES, WORKLOG};
use super::model::{Monitor, Worklog};
use super::role_keys::Said;
use super::scalar::Core;
use super::tree::Entry;
use crate::diagnostic::Code;

/// `monitor` of one layer.
#[derive(Debug, Default)]
pub(super) struct MonitorKeys {
    /// From `mode`, else from `enabled`.
    fleet: Option<bool>,
    wake_sources: Option<Vec<String>>,
    batch_ms: Option<u64>,
    interrupt: Option<String>,
    turn_fail_threshold: Option<u32>,
    /// Whether any key is written.
    pub(super) any: bool,
}

pub(super) fn monitor(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<MonitorKeys> {
    let cursor = field.cursor(cx, MONITOR)?;
    let mode = cursor.opt("mode").and_then(|it| {
        it.word(cx, &["fleet", "native"], |word| match word {
            "fleet" => Some(true),
            "native" => Some(false),
            _ => None,
        })
    });
    let enabled = cursor.opt("enabled").and_then(|it| it.boolean(cx));
    if let (Some(mode), Some(enabled), Some(written)) = (mode, enabled, cursor.opt("enabled"))
        && mode != enabled
    {
        written.report(cx, Code::Conflict, "contradicts `mode`", |it| {
            it.hint("leave `enabled` out: it is the old form of `mode`")
        });
    }
    if let Some(inject) = cursor.opt("inject") {
        inject.word(cx, &["notification"], |word| (word == "notification").then_some(()));
    }
    let interrupt = cursor.opt("interrupt").and_then(|it| match it.core() {
        Some(Core::Bool(value)) => Some(value.to_string()),
        _ => it.word(cx, &["true", "false", "after_tool"], |word| {
            (word == "after_tool").then(|| word.to_owned())
        }),
    });
    Some(MonitorKeys {
        fleet: mode.or(enabled),
        wake_sources: cursor.opt("wake_sources").and_then(|it| wake_sources(it, cx)),
        batch_ms: cursor.opt("batch_ms").and_then(|it| it.millis(cx)),
        interrupt,
        turn_fail_threshold: cursor
            .opt("turn_fail_threshold")
            .and_then(|it| it.integer(cx, 1..=u64::from(u32::MAX)))
            .and_then(|value| u32::try_from(value).ok()),
        any: !cursor.is_empty(),
    })
}

fn wake_sources(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Vec<String>> {
    let items = field.items(cx)?;
    if items.is_empty() {
        field.report(cx, Code::InvalidValue, "is an empty list", |it| {
            it.allowed(WAKE_SOURCES.iter().copied())
        });
        return None;
    }
    let mut sources: Vec<String> = Vec::new();
    for (index, node) in items.iter().enumerate() {
        let item = field.item(index, node);
        let known = |word: &str| WAKE_SOURCES.contains(&word).then(|| word.to_owned());
        let Some(source) = item.word(cx, WAKE_SOURCES, known) else { continue };
        if sources.contains(&source) {
            item.reject(cx, Code::DuplicateName, "is listed twice", |it| it);
        } else {
            sources.push(source);
        }
    }
    Some(sources)
}

/// Role over defaults, key by key.
pub(super) fn merge_monitor(role: Option<&MonitorKeys>, defaults: Option<&MonitorKeys>) -> Monitor {
    let mut monitor = Monitor::default();
    for layer in [defaults, role].into_iter().flatten() {
        monitor.fleet = layer.fleet.unwrap_or(monitor.fleet);
        monitor.batch_ms = layer.batch_ms.unwrap_or(monitor.batch_ms);
        monitor.turn_fail_threshold =
            layer.turn_fail_threshold.unwrap_or(monitor.turn_fail_threshold);
        if let Some(sources) = &layer.wake_sources {
            monitor.wake_sources.clone_from(sources);
        }
        if let Some(interrupt) = &layer.interrupt {
            monitor.interrupt.clone_from(interrupt);
        }
    }
    monitor
}

/// `worklog` of one layer, as a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WorklogKeys {
    max_kb: Option<u64>,
    keep_tail_kb: Option<u64>,
    max_archives: Option<u32>,
}

pub(super) fn worklog(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<Said<WorklogKeys>> {
    match field.core() {
        Some(Core::Bool(false)) => return Some(Said::Nothing),
        Some(_) => {
            field.wrong_type(cx, "a mapping, or false");
            return None;
        }
        None => {}
    }
    let cursor = field.cursor(cx, WORKLOG)?;
    Some(Said::Value(WorklogKeys {
        max_kb: cursor.opt("max_kb").and_then(|it| it.integer(cx, 1..=LARGEST)),
        keep_tail_kb: cursor.opt("keep_tail_kb").and_then(|it| it.integer(cx, 1..=LARGEST)),
        max_archives: cursor
            .opt("max_archives")
            .and_then(|it| it.integer(cx, 1..=1000))
            .and_then(|value| u32::try_from(value).ok()),
    }))
}

/// Built-in, then defaults, then role. A `false` of the defaults ends what lies below it.
pub(super) fn merge_worklog(
    role: Option<Said<WorklogKeys>>,
    defaults: Option<Said<WorklogKeys>>,
) -> Option<Worklog> {
    let layers = match (role, defaults) {
        (Some(Said::Nothing), _) | (None, Some(Said::Nothing)) => return None,
        (role, defaults) => [defaults.and_then(Said::value), role.and_then(Said::value)],
    };
    let mut worklog = Worklog::default();
    for layer in layers.into_iter().flatten() {
        worklog.max_kb = layer.max_kb.unwrap_or(worklog.max_kb);
        worklog.keep_tail_kb = layer.keep_tail_kb.unwrap_or(worklog.keep_tail_kb);
        worklog.max_archives = layer.max_archives.unwrap_or(worklog.max_archives);
    }
    Some(worklog)
}

/// `session_options.acp`; whether anything is written there.
pub(super) fn acp_options(field: Field<'_, '_>, cx: &mut Cx<'_>) -> bool {
    let Some(cursor) = field.cursor(cx, ACP_OPTIONS) else { return false };
    let Some(command) = cursor.opt("command") else { return false };
    match command.core() {
        Some(Core::Text(text)) if !text.is_empty() => {}
        Some(_) => command.wrong_type(cx, "a command or a list of texts"),
        None => {
            let texts = command.texts(cx);
            if texts.is_some_and(|texts| texts.is_empty() || texts.contains(&"")) {
                command.report(cx, Code::InvalidValue, "holds an empty text or none", |it| it);
            }
        }
    }
    true
}

pub(super) fn auth_proxy<'n>(field: Field<'n, '_>, cx: &mut Cx<'_>) -> Option<&'n [Entry]> {
    let cursor = field.cursor(cx, AUTH_PROXY)?;
    field.block_shape(cx, AUTH_PROXY, false);
    for key in ["base_url", "health_url"] {
        let Some(url) = cursor.opt(key) else { continue };
        if let Some(Core::Text(text)) = url.core()
            && !is_loopback_url(text)
        {
            url.report(cx, Code::InvalidValue, "is not a URL of this host", |it| {
                it.allowed([
                    "http or https; host 127.0.0.1, localhost or [::1]; no user or password",
                ])
            });
        }
    }
    field.entries(cx)
}

fn is_loopback_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else {
        return false;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let printable = rest.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let authority = &rest[..end];
    let port =
        ["127.0.0.1", "localhost", "[::1]"].iter().find_map(|host| authority.strip_prefix(host));
    let port_fits = port.is_some_and(|port| {
        port.is_empty()
            || port.strip_prefix(':').is_some_and(|port| {
                port.bytes().all(|byte| byte.is_ascii_digit())
                    && port.parse::<u16>().is_ok_and(|port| port > 0)
            })
    });
    printable && port_fits
}

pub(super) fn managed_cli(field: Field<'_, '_>, cx: &mut Cx<'_>) -> Option<()> {
    let mut seen = false;
    for (index, node) in field.items(cx)?.iter().enumerate() {
        let item = field.item(index, node);
        let known = |word: &str| (word == "task-workflow").then_some(());
        if item.word(cx, &["task-workflow"], known).is_some() && std::mem::replace(&mut seen, true)
        {
            item.reject(cx, Code::DuplicateName, "is listed twice", |it| it);
        }
    }
    seen.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_urls_stay_on_this_host() {
        for good in [
            "http://127.0.0.1",
            "http://127.0.0.1:8080/v1",
            "https://localhost/",
            "http://[::1]:1?x=1",
        ] {
            assert!(is_loopback_url(good), "{good}");
        }
        for bad in [
            "127.0.0.1:80",
            "ftp://localhost",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example",
            "http://user:pw@localhost",
            "http://localhost:0",
            "http://localhost:99999",
            "http://localhost:+1",
            "http://local host",
            "http://localhost\\@evil.example",
            "http://LOCALHOST",
        ] {
            assert!(!is_loopback_url(bad), "{bad}");
        }
    }

    #[test]
    fn worklog_false_of_the_defaults_ends_what_lies_below() {
        let map = WorklogKeys { max_kb: Some(2048), ..WorklogKeys::default() };
        assert_eq!(merge_worklog(None, None), Some(Worklog::default()));
        assert_eq!(merge_worklog(Some(Said::Nothing), Some(Said::Value(map))), None);
        assert_eq!(merge_worklog(None, Some(Said::Nothing)), None);
        let expected = Worklog { max_kb: 2048, ..Worklog::default() };
        assert_eq!(merge_worklog(Some(Said::Value(map)), Some(Said::Nothing)), Some(expected));
    }
}
