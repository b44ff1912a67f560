//! The config home of a role (01 §2.5) and the start dialogs that files in it prevent (05 §3).

use std::collections::BTreeSet;

use camino::Utf8Path;
use serde_json::Value;

use super::options::ClaudeOptions;
use super::settings::spelled;
use crate::harness::{
    FileContent, FilePlace, HarnessFile, HomeSpec, JsonChange, JsonEdit, LaunchContext, SharedItem,
    SharedKind,
};
use crate::redact::Redacted;

/// The variable that names the home. The program then keeps `.claude.json` in it too.
pub(super) const VARIABLE: &str = "CLAUDE_CONFIG_DIR";

/// The operator's own settings, which reach every role.
pub(super) const SETTINGS: &str = "settings.json";

/// The variable whose value the program asks about once.
const KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";

/// Questions that are asked once in a home, as its state file says that they were answered: the first
/// start; with a `defaultMode` in the operator's settings, whether `auto` shall take its place (asked
/// after the first turn); and that a session has cost some money.
const ANSWERED: &[&str] =
    &["hasCompletedOnboarding", "hasSeenAutoDefaultNudge", "hasAcknowledgedCostThreshold"];

/// How many of the last characters of a key the program remembers an answer by.
const KEY_TAIL: usize = 20;

const fn shared(name: &'static str, kind: SharedKind) -> SharedItem {
    SharedItem { name, kind, below_account: false, login: false }
}

pub(super) static HOME: HomeSpec = HomeSpec {
    variable: VARIABLE,
    operator: ".claude",
    shared: &[
        shared("CLAUDE.md", SharedKind::File),
        shared(SETTINGS, SharedKind::File),
        shared("plugins", SharedKind::Directory),
        SharedItem { login: true, ..shared(".credentials.json", SharedKind::File) },
        shared("agents", SharedKind::Directory),
        shared("commands", SharedKind::Directory),
        shared("skills", SharedKind::Directory),
    ],
    read: &[SETTINGS],
};

/// The state file of the program with every start dialog answered; `None` where the home is the
/// operator's own, which is never edited.
pub(super) fn state_file(
    context: &LaunchContext<'_>,
    options: &ClaudeOptions,
) -> Option<HarnessFile> {
    if options.shared_home {
        return None;
    }
    let set = |path: &[&str], value: Value| JsonEdit {
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        change: JsonChange::Set(Redacted::new(value)),
    };
    let mut edits: Vec<JsonEdit> =
        ANSWERED.iter().map(|name| set(&[name], Value::Bool(true))).collect();
    let dirs = context.dirs;
    // The program looks its directory up by the path without links.
    let trusted: BTreeSet<&str> = [&dirs.state, &dirs.cwd]
        .into_iter()
        .flat_map(|dir| spelled(dirs, dir))
        .map(Utf8Path::as_str)
        .collect();
    for dir in trusted {
        edits.push(set(&["projects", dir, "hasTrustDialogAccepted"], Value::Bool(true)));
        edits.push(set(&["projects", dir, "hasCompletedProjectOnboarding"], Value::Bool(true)));
        edits.push(JsonEdit {
            path: ["projects", dir, "projectOnboardingSeenCount"].map(str::to_owned).to_vec(),
            change: JsonChange::AtLeast(1),
        });
    }
    if let Some(tail) = api_key(context).map(key_tail) {
        edits.push(JsonEdit {
            path: ["customApiKeyResponses", "approved"].map(str::to_owned).to_vec(),
            change: JsonChange::Include(Redacted::new(tail)),
        });
    }
    Some(HarnessFile {
        place: FilePlace::Home,
        name: ".claude.json".to_owned(),
        content: FileContent::Json(edits),
    })
}

/// The key that the agent's environment will hold: the role's own wins over one passed on.
fn api_key<'a>(context: &LaunchContext<'a>) -> Option<&'a str> {
    let own = context.role.env.get(KEY_VARIABLE).map(|value| value.expose().as_str());
    let passed = || {
        let named = context.role.env_pass.iter().any(|name| name == KEY_VARIABLE);
        context.own_env.0.get(KEY_VARIABLE).filter(|_| named).map(String::as_str)
    };
    own.or_else(passed).filter(|key| !key.is_empty())
}

fn key_tail(key: &str) -> String {
    let skip = key.chars().count().saturating_sub(KEY_TAIL);
    key.chars().skip(skip).collect()
}
