//! `harness_options` of a `codex` role (01 §4.3).

use std::collections::BTreeMap;

use serde_json::Value as Json;
use toml::Value;

use super::config_key;
use super::posture::{Approvals, SandboxMode};
use crate::config::keys::{Key, Kind, TEXTS, key, names};
use crate::harness::{OptionProblem, Options};
use crate::path::LexicalPath;
use crate::redact::Redacted;

/// Every option.
pub(super) const TABLE: &[Key] = &[
    key("add_dirs", TEXTS, "[]", "More directories that the agent may write."),
    key("approval", Kind::Words(Approvals::WORDS), "", APPROVAL),
    key("config", Kind::Names(&Kind::Any), "{}", "Settings for its `config.toml`, by dotted key."),
    key("config_home", Kind::Words(&["shared"]), "", "Not available in this build."),
    key("launcher", Kind::Words(&["auto", "codex", "ours-codex"]), "auto", "What starts it."),
    key("monitor", Kind::Bool, "false", "Its own watch on the mail (later)."),
    key("permission_mode", Kind::Words(Approvals::WORDS), "", "Another name of `approval`."),
    key("profile", Kind::Text, "", "A profile of the operator's `config.toml`."),
    key(
        "sandbox",
        Kind::Words(SandboxMode::WORDS),
        "",
        "A sandbox in place of the one that `permissions` means.",
    ),
    key("search", Kind::Bool, "false", "Whether the model may search the web."),
];
const APPROVAL: &str = "When it asks, in place of what `permissions` means.";
/// What stands for a value that may be a secret.
const SET: &str = "(set)";

/// `harness_options` of a `codex` role.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CodexOptions {
    /// `sandbox`, or `config.sandbox_mode`.
    pub sandbox: Option<SandboxMode>,
    /// `approval`, `permission_mode` or `config.approval_policy`.
    pub approval: Option<Approvals>,
    /// `config.default_permissions`.
    pub default_permissions: Option<String>,
    /// Whether the model may search the web.
    pub search: bool,
    /// A profile of the operator's `config.toml`, whose models are used.
    pub profile: Option<String>,
    /// More directories that the agent may write.
    pub add_dirs: Vec<LexicalPath>,
    /// Settings for the role's `config.toml`, in the order written.
    pub config: Vec<ConfigEntry>,
}

/// One key of `config`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigEntry {
    /// The path of the key. Never empty.
    pub path: Vec<String>,
    /// Its value. May be a secret.
    pub value: Redacted<Value>,
}

impl ConfigEntry {
    /// Whether it overrides what fleet itself decides (01 §4.3), so that the analysis names it.
    pub fn is_native_override(&self) -> bool {
        const WHOLE: &[&str] = &[
            "approval_policy",
            "default_permissions",
            "hooks",
            "mcp_servers",
            "permissions",
            "sandbox_mode",
            "sandbox_workspace_write",
        ];
        match self.parts().as_slice() {
            ["features", "daemon_auto_start"] | ["projects", _, "trust_level"] => true,
            [top, ..] => WHOLE.contains(top),
            [] => false,
        }
    }

    /// Whether it opens the network inside the sandbox, and does nothing else.
    pub(super) fn opens_network(&self) -> bool {
        matches!(
            self.parts().as_slice(),
            ["sandbox_workspace_write", "network_access"]
                | ["permissions", _, "network", "enabled"]
        ) && self.value.expose().as_bool() == Some(true)
    }

    /// Whether it changes a permission profile in more than its network.
    pub(super) fn changes_profile(&self) -> bool {
        let network = matches!(self.parts().as_slice(), [_, _, "network", "enabled"]);
        self.path[0] == "permissions" && !network
    }

    /// Whether it can answer what Codex would otherwise ask: a hook, or a server whose tools are
    /// approved beforehand.
    pub(super) fn answers_questions(&self) -> bool {
        fn says(value: &Value) -> bool {
            match value {
                Value::Table(table) => {
                    table.iter().any(|(key, value)| key.contains("approv") || says(value))
                }
                Value::Array(items) => items.iter().any(says),
                _ => false,
            }
        }
        match self.path[0].as_str() {
            "hooks" => true,
            "mcp_servers" => {
                self.path.iter().any(|part| part.contains("approv")) || says(self.value.expose())
            }
            _ => false,
        }
    }

    fn parts(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }
}

impl CodexOptions {
    /// Reads the options; every problem is reported, none holds a value.
    pub fn parse(options: &Options) -> Result<Self, Vec<OptionProblem>> {
        let mut reader = Reader { options, problems: Vec::new() };
        reader.unknown();
        reader.unavailable();
        let config = reader.config();
        let sandbox = reader.words(
            &[("sandbox", true), ("sandbox_mode", false)],
            &config,
            SandboxMode::WORDS,
            SandboxMode::from_word,
        );
        let approval = reader.words(
            &[("approval", true), ("permission_mode", true), ("approval_policy", false)],
            &config,
            Approvals::WORDS,
            Approvals::from_word,
        );
        let parsed = Self {
            default_permissions: reader.default_permissions(&config, sandbox.is_some()),
            sandbox,
            approval,
            search: reader.bool("search").unwrap_or_default(),
            profile: reader.text("profile"),
            add_dirs: reader.directories(),
            config,
        };
        let nothing_written = parsed.sandbox == Some(SandboxMode::ReadOnly)
            || parsed.default_permissions.as_deref() == Some(":read-only");
        if nothing_written && !parsed.add_dirs.is_empty() {
            // Measured: the program ends with status 1.
            reader.problem("add_dirs", "Codex refuses it beside a read-only sandbox");
        }
        if reader.problems.is_empty() { Ok(parsed) } else { Err(reader.problems) }
    }

    /// The native settings that were written, keyed like [`crate::permissions::Supported::native`].
    /// A value that may be a secret is not shown.
    pub(super) fn overrides(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for entry in self.config.iter().filter(|entry| entry.is_native_override()) {
            let shown = match entry.value.expose() {
                Value::Boolean(value) => value.to_string(),
                _ => SET.to_owned(),
            };
            found.insert(config_key::join(&entry.path), shown);
        }
        found.remove("sandbox_mode");
        found.remove("approval_policy");
        let words = [
            ("sandbox", self.sandbox.map(SandboxMode::as_str)),
            ("approval", self.approval.map(Approvals::as_str)),
            ("default_permissions", self.default_permissions.as_deref()),
        ];
        for (key, word) in words {
            found.extend(word.map(|word| (key.to_owned(), word.to_owned())));
        }
        found
    }
}

struct Reader<'a> {
    options: &'a Options,
    problems: Vec<OptionProblem>,
}

impl Reader<'_> {
    fn problem(&mut self, path: &str, message: &str) {
        self.allowed(path, message, &[]);
    }

    fn allowed(&mut self, path: &str, message: &str, allowed: &[&str]) {
        self.problems.push(OptionProblem {
            path: path.to_owned(),
            message: message.to_owned(),
            allowed: allowed.iter().map(|word| (*word).to_owned()).collect(),
            unknown_key: false,
        });
    }

    fn unknown(&mut self) {
        for key in self.options.keys().filter(|key| names(TABLE).all(|name| name != key.as_str())) {
            self.problems.push(OptionProblem {
                path: key.clone(),
                message: "unknown key".to_owned(),
                allowed: names(TABLE).map(ToOwned::to_owned).collect(),
                unknown_key: true,
            });
        }
    }

    /// Values that this build cannot honour.
    fn unavailable(&mut self) {
        match self.options.get("launcher").map(Json::as_str) {
            None | Some(Some("auto" | "codex")) => {}
            Some(Some("ours-codex")) => {
                let message = "`ours-codex` needs the ours daemon, which this build does not run";
                self.allowed("launcher", message, &["auto", "codex"]);
            }
            Some(_) => {
                self.allowed(
                    "launcher",
                    "is not a known launcher",
                    &["auto", "ours-codex", "codex"],
                );
            }
        }
        if self.bool("monitor") == Some(true) {
            let message = "the native monitor is not available in this build: leave it out";
            self.allowed("monitor", message, &["false"]);
        }
        if self.options.contains_key("config_home") {
            let message = "sharing the operator's own config home is not available in this build: \
                           leave it out";
            self.problem("config_home", message);
        }
    }

    fn bool(&mut self, key: &str) -> Option<bool> {
        let value = self.options.get(key)?;
        if value.as_bool().is_none() {
            self.allowed(key, "must be true or false", &["true", "false"]);
        }
        value.as_bool()
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let value = self.options.get(key)?;
        let text = value.as_str().filter(|it| !it.trim().is_empty() && !it.contains('\0'));
        if text.is_none() {
            self.problem(key, "must be a text that is not blank");
        }
        text.map(ToOwned::to_owned)
    }

    /// One setting under several names, options of their own (`true`) or keys of `config`. All that
    /// are written must say the same.
    fn words<T: Copy + PartialEq>(
        &mut self,
        names: &[(&str, bool)],
        config: &[ConfigEntry],
        words: &[&str],
        read: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let mut first: Option<(String, T)> = None;
        for (name, own) in names {
            let (path, text) = if *own {
                let Some(value) = self.options.get(*name) else { continue };
                ((*name).to_owned(), value.as_str())
            } else {
                let Some(entry) = config.iter().find(|entry| entry.path == [*name]) else {
                    continue;
                };
                (format!("config.{name}"), entry.value.expose().as_str())
            };
            match (text.and_then(read), &first) {
                (None, _) => {
                    let message = match text {
                        Some("untrusted" | "on-failure") if words == Approvals::WORDS => {
                            "no longer exists in Codex: write `on-request`"
                        }
                        _ => "is not a value of Codex",
                    };
                    self.allowed(&path, message, words);
                }
                (Some(word), Some((other, said))) if word != *said => {
                    self.problem(&path, &format!("says something else than `{other}`"));
                }
                (Some(_), Some(_)) => {}
                (Some(word), None) => first = Some((path, word)),
            }
        }
        first.map(|(_, word)| word)
    }

    fn default_permissions(&mut self, config: &[ConfigEntry], sandbox: bool) -> Option<String> {
        const PATH: &str = "config.default_permissions";
        let entry = config.iter().find(|entry| entry.path == ["default_permissions"])?;
        let name = entry.value.expose().as_str().filter(|name| {
            !name.trim().is_empty() && name.len() <= 64 && !name.contains(char::is_control)
        });
        if name.is_none() {
            self.problem(PATH, "must name a permission profile");
        } else if sandbox {
            self.problem(PATH, "has no effect beside `sandbox`: write one of the two");
        }
        name.map(ToOwned::to_owned)
    }

    fn directories(&mut self) -> Vec<LexicalPath> {
        let Some(value) = self.options.get("add_dirs") else { return Vec::new() };
        let Some(items) = value.as_array() else {
            self.problem("add_dirs", "must be a list of absolute paths");
            return Vec::new();
        };
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("add_dirs[{index}]");
            match item.as_str().map(LexicalPath::absolute) {
                Some(Ok(directory)) => found.push(directory),
                Some(Err(error)) => self.problem(&path, &error.to_string()),
                None => self.problem(&path, "must be a text: quote it"),
            }
        }
        found
    }

    fn config(&mut self) -> Vec<ConfigEntry> {
        let Some(value) = self.options.get("config") else { return Vec::new() };
        let Some(map) = value.as_object() else {
            self.problem("config", "must be a mapping of dotted keys to values");
            return Vec::new();
        };
        let mut entries: Vec<ConfigEntry> = Vec::new();
        for (key, value) in map {
            let at = format!("config.{key}");
            let Some(path) = config_key::parts(key) else {
                self.problem(&at, "is not a dotted key: write a part with other signs in quotes");
                continue;
            };
            let value = match toml_value(value) {
                Ok(value) => Redacted::new(value),
                Err(message) => {
                    self.problem(&at, message);
                    continue;
                }
            };
            if path.starts_with(&["mcp_servers".to_owned(), "ours".to_owned()]) {
                self.problem(&at, "`ours` is the server that fleet itself adds: name it otherwise");
            } else if entries
                .iter()
                .any(|it| it.path.starts_with(&path) || path.starts_with(&it.path))
            {
                self.problem(&at, "another key of `config` sets the same, or what it lies in");
            } else {
                entries.push(ConfigEntry { path, value });
            }
        }
        entries
    }
}

/// A scalar or a flat list of them.
fn toml_value(value: &Json) -> Result<Value, &'static str> {
    match value {
        Json::Array(items) => items.iter().map(scalar).collect::<Result<_, _>>().map(Value::Array),
        value => scalar(value),
    }
}

fn scalar(value: &Json) -> Result<Value, &'static str> {
    match value {
        Json::String(text) if text.contains('\0') => Err("holds a NUL character"),
        Json::String(text) => Ok(Value::String(text.clone())),
        Json::Bool(value) => Ok(Value::Boolean(*value)),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Ok(Value::Integer(integer)),
            (None, Some(float)) if !number.is_u64() && float.is_finite() => Ok(Value::Float(float)),
            _ => Err("is a number that TOML cannot hold"),
        },
        Json::Object(_) => Err("must not be a mapping: write a dotted key for each value in it"),
        Json::Array(_) => Err("must not be a list of lists"),
        Json::Null => Err("must be a text, a finite number, true, false or a list of those"),
    }
}
