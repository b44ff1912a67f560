//! `settings-overlay.json`: the layer that fleet puts over the settings of the operator and the project.

use serde_json::{Map, Value, json};

use super::options::{ClaudeOptions, MEM_PALACE};
use super::settings::Settings;
use super::table::Mode;
use crate::harness::LaunchDirs;

/// The text of the file. `hooks` are those that fleet itself installs.
pub(super) fn overlay(
    settings: &Settings,
    options: &ClaudeOptions,
    dirs: &LaunchDirs,
    hooks: Map<String, Value>,
) -> Value {
    let mut permissions = json!({ "allow": settings.allow, "deny": settings.all_deny() });
    if !settings.dirs.is_empty() {
        permissions["additionalDirectories"] = json!(settings.dirs);
    }
    let mut overlay = json!({ "permissions": permissions, "sandbox": settings.sandbox(dirs) });
    let mut plugins = options.plugins.clone();
    if !options.mem_palace {
        plugins.insert(MEM_PALACE.to_owned(), false);
    }
    if !plugins.is_empty() {
        overlay["enabledPlugins"] = json!(plugins);
    }
    if !hooks.is_empty() {
        overlay["hooks"] = Value::Object(hooks);
    }
    if settings.mode == Mode::Bypass {
        // Measured: the question is not asked when this layer answers it, so the operator's settings
        // stay a link and are copied nowhere.
        overlay["skipDangerousModePermissionPrompt"] = Value::Bool(true);
    }
    overlay
}
