//! What the settings of a launch say to one question (01 §3.4). Read from the settings that are shown, so
//! that nothing else is explained.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::posture::{Approvals, NO_BOUND, PROFILE, SandboxMode};
use crate::harness::LaunchDirs;
use crate::path::LexicalPath;
use crate::permissions::DENIED_READS_KEY;
use crate::policy::explain::{NativeAnswer, NativeQuestion, NativeRequest, NativeVerdict};

/// Tools that run commands, and the one that writes files.
const COMMANDS: &[&str] = &["shell", "local_shell", "exec_command", "unified_exec", "write_stdin"];
const PATCH: &str = "apply_patch";

/// What bounds the program.
enum Bound {
    /// Nothing.
    Open,
    /// One of the words.
    Mode(SandboxMode),
    /// Fleet's profile.
    Profile(Table),
    /// A profile of the operator's, which was not looked at.
    Named(String),
}

struct Settings<'a> {
    approvals: Option<Approvals>,
    bound: Bound,
    dirs: &'a LaunchDirs,
    search: bool,
}

pub(super) fn answers(request: &NativeRequest<'_>) -> Vec<NativeAnswer> {
    let settings = Settings::new(request);
    match request.question {
        NativeQuestion::Path { asked, target } => settings.path(&[asked, target]),
        NativeQuestion::Network => vec![settings.network()],
        NativeQuestion::Tool(tool) => settings.tool(tool),
    }
}

impl<'a> Settings<'a> {
    fn new(request: &NativeRequest<'a>) -> Self {
        let native: &BTreeMap<String, String> = &request.effective.native;
        let mode = native.get("sandbox").and_then(|word| SandboxMode::from_word(word));
        let profile = native.get("default_permissions");
        let bound = match (mode, profile) {
            (Some(SandboxMode::DangerFullAccess), _) => Bound::Open,
            (Some(mode), _) => Bound::Mode(mode),
            (None, Some(name)) if name == PROFILE => {
                let text = native.get(&format!("permissions.{PROFILE}.filesystem"));
                let table = text.and_then(|text| toml::from_str(&format!("it = {text}")).ok());
                match table.and_then(|mut table: Table| table.remove("it")) {
                    Some(Value::Table(mut table)) => {
                        let denied = native.get(DENIED_READS_KEY);
                        let denied = denied.and_then(|text| serde_json::from_str(text).ok());
                        let denied: Vec<String> = denied.unwrap_or_default();
                        table.extend(denied.into_iter().map(|path| (path, Value::from("deny"))));
                        Bound::Profile(table)
                    }
                    _ => Bound::Named(name.clone()),
                }
            }
            (None, Some(name)) if name == NO_BOUND => Bound::Open,
            (None, name) => Bound::Named(name.cloned().unwrap_or_default()),
        };
        Self {
            approvals: native.get("approval").and_then(|word| Approvals::from_word(word)),
            bound,
            dirs: request.dirs,
            search: request.options.get("search").and_then(serde_json::Value::as_bool)
                == Some(true),
        }
    }

    /// What becomes of something outside the bound.
    fn outside(&self, action: &str, why: &str) -> NativeAnswer {
        let (verdict, word) = match self.approvals {
            Some(Approvals::OnRequest) => (NativeVerdict::Asks, Approvals::OnRequest.as_str()),
            Some(Approvals::Never) => (NativeVerdict::Refused, Approvals::Never.as_str()),
            None => (NativeVerdict::Unknown, "?"),
        };
        NativeAnswer::new(action, verdict, format!("{why}; approval={word}"))
    }

    /// The access that fleet's profile gives to a path: the longest entry that holds it decides.
    fn access(&self, table: &Table, path: &LexicalPath) -> (String, String) {
        let mut best = (0, "none".to_owned(), "no entry".to_owned());
        let mut consider = |base: &str, key: &str, value: &Value| {
            let Ok(base) = LexicalPath::absolute(base) else { return };
            let value = value.as_str().unwrap_or("none");
            let depth = base.depth() + 1;
            if path.is_within(&base) && depth >= best.0 {
                best = (depth, value.to_owned(), format!("{key}={value}"));
            }
        };
        for (key, value) in table {
            match (key.as_str(), value) {
                (":root", value) => consider("/", key, value),
                (":workspace_roots", Value::Table(below)) => {
                    for root in [&self.dirs.cwd, self.dirs.real(&self.dirs.cwd)] {
                        for (name, value) in below {
                            let key = format!(":workspace_roots.{name}");
                            match name.as_str() {
                                "." => consider(root.as_str(), &key, value),
                                name => consider(root.join(name).as_str(), &key, value),
                            }
                        }
                        // Codex closes it by itself.
                        let own = Value::from("read");
                        consider(
                            root.join(".codex").as_str(),
                            "Codex guards `.codex` itself: it",
                            &own,
                        );
                    }
                }
                (key, value) => consider(key, key, value),
            }
        }
        (best.1, best.2)
    }

    fn use_of(&self, action: &str, paths: &[&LexicalPath], write: bool) -> NativeAnswer {
        let silent = |why: String| NativeAnswer::new(action, NativeVerdict::Silent, why);
        match &self.bound {
            Bound::Open => silent("sandbox=danger-full-access: nothing bounds it".to_owned()),
            Bound::Mode(mode) if !write => {
                silent(format!("sandbox={}: all is read", mode.as_str()))
            }
            Bound::Mode(mode) => {
                let inside = |dir: &camino::Utf8PathBuf| {
                    let dir = LexicalPath::absolute(dir.as_str());
                    let closed = dir.as_ref().ok().map(|dir| {
                        [".git", ".codex"].iter().any(|name| {
                            dir.child(name)
                                .is_ok_and(|it| paths.iter().any(|path| path.is_within(&it)))
                        })
                    });
                    closed == Some(false)
                        && dir.is_ok_and(|dir| paths.iter().all(|path| path.is_within(&dir)))
                };
                let cwd = inside(&self.dirs.cwd) || inside(self.dirs.real(&self.dirs.cwd));
                if *mode == SandboxMode::WorkspaceWrite && cwd {
                    return silent(format!("sandbox={}", mode.as_str()));
                }
                self.outside(
                    action,
                    &format!("sandbox={} does not let it be written", mode.as_str()),
                )
            }
            Bound::Profile(table) => {
                let needed: &[&str] = if write { &["write"] } else { &["read", "write"] };
                let name = format!("permissions.{PROFILE}.filesystem");
                let mut entry = String::new();
                for path in paths {
                    let (access, found) = self.access(table, path);
                    if !needed.contains(&access.as_str()) {
                        return self.outside(action, &format!("{name}: {found}"));
                    }
                    entry = found;
                }
                silent(format!("{name}: {entry}"))
            }
            Bound::Named(name) => NativeAnswer::new(
                action,
                NativeVerdict::Unknown,
                format!(
                    "default_permissions={}: a profile that was not looked at",
                    name.escape_debug()
                ),
            ),
        }
    }

    fn path(&self, paths: &[&LexicalPath]) -> Vec<NativeAnswer> {
        vec![
            self.use_of("commands and patches, reading", paths, false),
            self.use_of("commands and patches, writing", paths, true),
        ]
    }

    fn network(&self) -> NativeAnswer {
        let action = "commands";
        match &self.bound {
            Bound::Open => NativeAnswer::new(
                action,
                NativeVerdict::Silent,
                "sandbox=danger-full-access: nothing bounds it",
            ),
            Bound::Named(_) => self.use_of(action, &[], true),
            Bound::Mode(_) | Bound::Profile(_) => self.outside(
                action,
                "in its own sandbox a command reaches no network unless `config` opens it",
            ),
        }
    }

    fn tool(&self, tool: &str) -> Vec<NativeAnswer> {
        if COMMANDS.contains(&tool) || tool == PATCH {
            let inside = |dir: &camino::Utf8PathBuf| {
                LexicalPath::absolute(dir.as_str()).and_then(|dir| dir.child("_"))
            };
            let places = [
                ("writing in the working directory", inside(&self.dirs.cwd)),
                ("writing in the role's own directory", inside(&self.dirs.state)),
                ("writing elsewhere", Ok(LexicalPath::root())),
            ];
            let mut answers = Vec::new();
            if tool != PATCH {
                answers.push(self.use_of("reading", &[&LexicalPath::root()], false));
            }
            for (action, path) in places {
                answers.extend(path.ok().map(|path| self.use_of(action, &[&path], true)));
            }
            if tool != PATCH {
                let what = "commands like `rm -rf`";
                answers.push(self.outside(what, "Codex guards against them itself"));
            }
            return answers;
        }
        vec![match tool {
            "web_search" if self.search => NativeAnswer::new(
                "every use",
                NativeVerdict::Silent,
                "harness_options.search: the provider searches",
            ),
            "web_search" => NativeAnswer::new(
                "every use",
                NativeVerdict::Refused,
                "harness_options.search is not written, so the tool is not there",
            ),
            tool if tool.starts_with("mcp__ours") => NativeAnswer::new(
                "every use",
                NativeVerdict::Unknown,
                "the server comes with the mail, which is not in this build",
            ),
            tool if tool.starts_with("mcp__") => match (&self.bound, self.approvals) {
                (Bound::Open, Some(Approvals::Never)) => NativeAnswer::new(
                    "every use",
                    NativeVerdict::Silent,
                    "sandbox=danger-full-access; approval=never",
                ),
                _ => self.outside(
                    "a tool that is not marked read-only",
                    "unless the server's own `default_tools_approval_mode` says otherwise",
                ),
            },
            _ => NativeAnswer::new(
                "every use",
                NativeVerdict::Unknown,
                "no setting of fleet's is about it",
            ),
        }]
    }
}
