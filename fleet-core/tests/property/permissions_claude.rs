//! P30, P31, P32 for `claude-code`. The width of an effect is judged here by what was measured of the
//! program, from the native settings alone.

use camino::Utf8PathBuf;
use fleet_core::harness::Harness as _;
use fleet_core::harness::claude_code::ClaudeCodeHarness;
use fleet_core::permissions::{
    Approval, Filesystem, Outer, Permissions, Supported, Translation, TranslationRequest,
};
use proptest::prelude::*;
use serde_json::Value;

use super::{check, holds};
use crate::claude::{Around, around, supported};

/// The function under test.
pub(crate) type Translate = fn(&TranslationRequest<'_>) -> Translation;

fn real(request: &TranslationRequest<'_>) -> Translation {
    ClaudeCodeHarness::default().translate(request)
}

const APPROVALS: [Approval; 3] = [Approval::Ask, Approval::Auto, Approval::Allow];
const FILESYSTEMS: [Filesystem; 3] =
    [Filesystem::ReadOnly, Filesystem::Workspace, Filesystem::Unrestricted];

/// A role in any place, inside any boundary, under operators of all kinds.
fn any_role() -> impl Strategy<Value = Around> {
    let base = around("cwd: /srv/project");
    let state = base.dirs.state.clone();
    let cwd = prop_oneof![
        Just(Utf8PathBuf::from("/srv/project")),
        Just(Utf8PathBuf::from("/")),
        Just(Utf8PathBuf::from("/home/op")),
        Just(Utf8PathBuf::from("/srv/a*b")),
        Just(state.clone()),
        Just(state.join("sub")),
        "/[a-z (){}!#,.\\[\\]?*-]{1,12}".prop_map(Utf8PathBuf::from),
    ];
    let rule = prop_oneof![
        Just("Bash"),
        Just("Read"),
        Just("Edit(//x/**)"),
        Just("WebFetch"),
        Just("mcp__ours"),
        "[A-Za-z(*)]{0,8}".prop_map(|text| &*String::leak(text)),
    ];
    let rules = || prop::collection::vec(rule.clone(), 0..3);
    let operator = prop_oneof![
        Just(None),
        Just(Some("not JSON".to_owned())),
        (rules(), rules()).prop_map(|(allow, deny)| {
            let settings = serde_json::json!({"permissions": {"allow": allow, "deny": deny}});
            Some(settings.to_string())
        }),
    ];
    let outer = prop::sample::select(vec![Outer::Off, Outer::OffUnsandboxed, Outer::On]);
    let mode = prop::option::of(prop::sample::select(vec![
        "default",
        "manual",
        "acceptEdits",
        "auto",
        "plan",
        "dontAsk",
        "bypassPermissions",
    ]));
    let version = prop::sample::select(vec![None, Some("2.1.332"), Some("9.0.0")]);
    (cwd, operator, outer, any::<bool>(), version, mode).prop_map(
        move |(cwd, operator, outer, root, version, mode)| {
            let mut it = base.clone();
            it.dirs.cwd = cwd;
            it.operator_files = operator.into_iter().map(|text| ("settings.json", text)).collect();
            (it.outer, it.root, it.version) = (outer, root, version);
            if let Some(mode) = mode {
                let mut options = it.role.harness_options.expose().clone();
                options.insert("permission_mode".to_owned(), mode.into());
                it.role.harness_options = fleet_core::redact::Redacted::new(options);
            }
            it
        },
    )
}

fn words(approval: Approval, filesystem: Filesystem) -> Permissions {
    Permissions { approval, filesystem, ..Permissions::default() }
}

fn asked(it: &Around, approval: Approval, filesystem: Filesystem, by: Translate) -> Supported {
    supported(by(&TranslationRequest { permissions: words(approval, filesystem), ..it.request() }))
}

/// P30: more approval and more filesystem never take a capability away.
pub(crate) fn p30(by: Translate) -> Result<(), String> {
    check(&any_role(), |it| {
        for filesystem in FILESYSTEMS {
            for pair in APPROVALS.windows(2) {
                let narrow = asked(&it, pair[0], filesystem, by).granted;
                let wide = asked(&it, pair[1], filesystem, by).granted;
                prop_assert!(wide.is_superset(&narrow), "{filesystem:?} {pair:?}");
            }
        }
        for approval in APPROVALS {
            for pair in FILESYSTEMS.windows(2) {
                let narrow = asked(&it, approval, pair[0], by).granted;
                let wide = asked(&it, approval, pair[1], by).granted;
                prop_assert!(wide.is_superset(&narrow), "{approval:?} {pair:?}");
            }
        }
        Ok(())
    })
}

/// What settings let happen without a question.
#[derive(Debug, PartialEq, Eq)]
struct Silent {
    workspace: bool,
    elsewhere: bool,
    command: bool,
}

fn silent(native: &Supported, it: &Around, filesystem: Filesystem) -> Silent {
    let list = |key: &str| -> Vec<String> {
        serde_json::from_str(&native.native[key]).expect("a list of rules")
    };
    let (allow, deny) = (list("permissions.allow"), list("permissions.deny"));
    let sandbox: Value = serde_json::from_str(&native.native["sandbox"]).expect("JSON");
    let sandboxed = sandbox["enabled"] == Value::Bool(true);
    let mode = native.native["permission_mode"].as_str();
    let bypass = mode == "bypassPermissions";
    let bare = |tool: &str| allow.iter().any(|rule| rule == tool);
    let cwd = format!("Edit(/{}/**)", it.dirs.cwd.as_str().trim_end_matches('/'));
    let denied = deny.contains(&cwd);

    let edits_all = bypass || bare("Edit") || bare("Write");
    let edits_cwd = edits_all || mode == "acceptEdits" || allow.contains(&cwd);
    let command =
        bypass || bare("Bash") || (sandboxed && sandbox["autoAllowBashIfSandboxed"] == true);
    let listed = |key: &str| {
        let dirs = sandbox["filesystem"][key].as_array().into_iter().flatten();
        dirs.filter_map(Value::as_str).any(|dir| dir == it.dirs.cwd)
    };
    let closed = (it.outer.is_on() && filesystem == Filesystem::ReadOnly)
        || (sandboxed && listed("denyWrite"));
    // A pattern that is more than the directory reaches other places.
    let pattern = allow.iter().filter_map(|rule| rule.split_once("(/")).any(|(tool, rest)| {
        tool == "Edit" && rest.trim_end_matches("/**)").contains(['*', '?', '['])
    });
    Silent {
        workspace: (edits_cwd
            && !denied
            && !(it.outer.is_on() && filesystem == Filesystem::ReadOnly))
            || (command && !closed),
        elsewhere: !it.outer.is_on() && (edits_all || pattern || (command && !sandboxed)),
        command,
    }
}

/// P31: only `allow` never asks, and no effect is silently wider than the words.
pub(crate) fn p31(by: Translate) -> Result<(), String> {
    check(&any_role(), |it| {
        for approval in APPROVALS {
            for filesystem in FILESYSTEMS {
                let said = asked(&it, approval, filesystem, by);
                let mode = said.native["permission_mode"].as_str();
                prop_assert!(
                    approval == Approval::Allow
                        || !["never", "dontAsk", "bypassPermissions"].contains(&mode),
                    "{approval:?} gives {mode}"
                );
                let effect = silent(&said, &it, filesystem);
                let own = it.dirs.cwd == it.dirs.state;
                let wider = (effect.elsewhere && filesystem != Filesystem::Unrestricted)
                    || (effect.workspace && filesystem == Filesystem::ReadOnly && !own)
                    || (approval == Approval::Ask
                        && (effect.command || effect.workspace || effect.elsewhere));
                let said_so = !said.exact && !said.warnings.is_empty();
                prop_assert!(
                    !wider || said_so,
                    "{approval:?} × {filesystem:?} is wider: {effect:?} {:?}",
                    said.native
                );
            }
        }
        Ok(())
    })
}

/// P32: exact means no warning, and without overrides the effect is the translation.
pub(crate) fn p32(by: Translate) -> Result<(), String> {
    check(&any_role(), |it| {
        let harness = ClaudeCodeHarness::default();
        let overridden = !harness.native_overrides(it.role.harness_options.expose()).is_empty();
        for approval in APPROVALS {
            for filesystem in FILESYSTEMS {
                let said = asked(&it, approval, filesystem, by);
                let permissions = words(approval, filesystem);
                let request = TranslationRequest { permissions, ..it.request() };
                let effective = supported(harness.effective(&request));
                for one in [&said, &effective] {
                    prop_assert!(!one.exact || one.warnings.is_empty());
                    prop_assert!(one.exact || !one.warnings.is_empty() || !one.refusals.is_empty());
                }
                prop_assert!(overridden || effective == said);
            }
        }
        Ok(())
    })
}

#[test]
fn p30_wider_words_grant_no_less() {
    holds(p30(real));
}

#[test]
fn p31_nothing_is_wider_than_the_words() {
    holds(p31(real));
}

#[test]
fn p32_exact_has_no_warning_and_the_effect_is_the_translation() {
    holds(p32(real));
}
