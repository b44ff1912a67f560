//! What the approval of a role amounts to, native overrides included, and whether that is too wide.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Judged, Rule, Violation};
use crate::config::Role;
use crate::harness::{Harness, LaunchDirs};
use crate::permissions::{Approval, Outer, Translation, TranslationRequest};

/// The approval of a role as its harness has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectiveApproval {
    /// The widest that it may amount to, in force with the role's isolation or without.
    pub widest: Approval,
    /// Native options that take part, as the harness names them: `permission_mode: bypassPermissions`.
    pub overrides: Vec<String>,
    /// Whether the tables of the harness cover them. What they do not cover may be anything.
    pub covered: bool,
    /// Whether the harness has permissions of its own. One that has none asks nothing, ever, which is
    /// what `allow` means; only the isolation bounds it.
    pub supported: bool,
}

impl EffectiveApproval {
    /// Of a role whose harness is not known here: the widest.
    fn unknown() -> Self {
        Self { widest: Approval::Allow, overrides: Vec::new(), covered: false, supported: false }
    }
}

/// What the neutral approval of a role and its native overrides amount to. `None` for the harness is a
/// harness that is not registered, which may do anything.
///
/// The written word counts too, also where a native option narrows it: the option may go, the word
/// stays.
pub fn effective_approval(role: &Role, harness: Option<&dyn Harness>) -> EffectiveApproval {
    let Some(harness) = harness else { return EffectiveApproval::unknown() };
    let options = role.harness_options.expose();
    // The directories decide what is written, never who is asked.
    let directory = |name: &str| camino::Utf8PathBuf::from(format!("/{name}"));
    let dirs = LaunchDirs {
        state: directory("state"),
        cwd: directory("cwd"),
        git: Vec::new(),
        harness_home: directory("home"),
        handout: directory("handout"),
        briefing: directory("handout/briefing.md"),
        aliases: BTreeMap::new(),
    };
    let overrides = harness.native_overrides(options);
    let mut judged = EffectiveApproval {
        widest: role.permissions.approval,
        overrides: overrides.iter().map(|(key, value)| format!("{key}: {value}")).collect(),
        covered: true,
        supported: true,
    };
    for outer in [Outer::Off, Outer::OffUnsandboxed, Outer::On, Outer::Nested] {
        let request = TranslationRequest {
            permissions: role.permissions,
            options,
            outer,
            dirs: &dirs,
            denied_reads: &[],
            version: None,
            root: false,
            operator_files: &BTreeMap::new(),
        };
        match harness.effective(&request) {
            Translation::Supported(effective) => {
                judged.widest = judged.widest.max(effective.mode);
                judged.covered &= effective.covered;
            }
            Translation::Unsupported { .. } => {
                judged.widest = Approval::Allow;
                judged.supported = false;
            }
        }
    }
    judged
}

pub(super) fn violation(widest: Approval, judged: Judged<'_>) -> Option<Violation> {
    let Judged { role, approval } = judged;
    if widest == Approval::Allow {
        // The widest there is: nothing can be wider.
        return None;
    }
    let written = role.permissions.approval;
    let narrower: Vec<String> = [Approval::Ask, Approval::Auto]
        .into_iter()
        .filter(|word| *word <= widest)
        .map(|word| word.as_str().to_owned())
        .collect();
    let rule = Rule::Approval(widest);
    let by_word =
        |path, found, instead| Violation { rule, path, found, allowed: narrower, instead };
    if !approval.supported {
        return Some(by_word(
            "harness",
            format!("`{}`, which asks nothing by itself: it amounts to `allow`", role.harness),
            "use a harness that has permissions".to_owned(),
        ));
    }
    if written > widest {
        return Some(by_word(
            "permissions.approval",
            format!("`{}`", written.as_str()),
            format!("write `approval: {}`", widest.as_str()),
        ));
    }
    let options = || format!("`{}`", approval.overrides.join("`, `"));
    if !approval.covered {
        return Some(by_word(
            "harness_options",
            format!("{}, whose effect on what is asked is not known", options()),
            "leave it out".to_owned(),
        ));
    }
    if approval.widest <= widest {
        return None;
    }
    let amounts = approval.widest.as_str();
    Some(if approval.overrides.is_empty() {
        by_word(
            "permissions.approval",
            format!("`{}`, which amounts to `{amounts}` on `{}`", written.as_str(), role.harness),
            "use another harness".to_owned(),
        )
    } else {
        by_word(
            "harness_options",
            format!("{}: it amounts to `{amounts}`", options()),
            "leave it out, and say it with `permissions.approval`".to_owned(),
        )
    })
}
