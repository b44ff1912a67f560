//! What the settings of a launch say to one question (01 §3.3; the order of the rules was measured: deny
//! before allow before the mode). Read from the settings that are shown, so that nothing else is explained.

use std::collections::BTreeMap;

use serde_json::Value;

use super::mcp;
use super::table::Mode;
use crate::harness::LaunchDirs;
use crate::path::LexicalPath;
use crate::permissions::{DENIED_READS_KEY, Supported};
use crate::policy::explain::{NativeAnswer, NativeQuestion, NativeRequest, NativeVerdict};

/// Tools that read files, and those that write them.
const READING: &[&str] = &["Read", "Grep", "Glob", "LS", "NotebookRead"];
const WRITING: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];
const NETWORK: &[&str] = &["WebFetch", "WebSearch"];

/// A rule as its text says: a tool, and perhaps an absolute directory or file.
#[derive(Debug)]
struct Rule {
    text: String,
    tool: String,
    argument: Option<String>,
}

impl Rule {
    fn parse(text: &str) -> Self {
        let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (tool, argument) = match parts {
            Some((tool, argument)) => (tool, Some(argument.to_owned())),
            None => (text, None),
        };
        Self { text: text.to_owned(), tool: tool.to_owned(), argument }
    }

    /// Whether the rule is about the whole tool.
    fn is_whole(&self, tool: &str) -> bool {
        self.argument.is_none() && self.tool == tool
    }

    /// Whether the rule names a directory or a file that holds this path.
    fn holds(&self, path: &LexicalPath) -> bool {
        let Some(argument) = self.argument.as_deref().and_then(|it| it.strip_prefix('/')) else {
            return false;
        };
        let base = argument.strip_suffix("/**");
        let base = LexicalPath::absolute(base.filter(|it| !it.is_empty()).unwrap_or(argument));
        base.is_ok_and(|base| path.is_within(&base))
    }
}

/// What a launch sets, as far as it answers questions.
struct Settings<'a> {
    mode: Option<Mode>,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    more_dirs: Vec<String>,
    sandbox: Value,
    dirs: &'a LaunchDirs,
}

/// Reading or writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

pub(super) fn answers(request: &NativeRequest<'_>) -> Vec<NativeAnswer> {
    let settings = Settings::new(request.effective, request.dirs);
    match request.question {
        NativeQuestion::Path { asked, target } => settings.path(&[asked, target]),
        NativeQuestion::Network => {
            vec![settings.network(), settings.other("WebFetch", "the tool `WebFetch`")]
        }
        NativeQuestion::Tool(tool) => settings.tool(tool),
    }
}

impl<'a> Settings<'a> {
    fn new(effective: &Supported, dirs: &'a LaunchDirs) -> Self {
        let native: &BTreeMap<String, String> = &effective.native;
        let json = |key: &str| -> Value {
            native.get(key).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        };
        let texts = |value: &Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(|it| it.as_str().map(ToOwned::to_owned)).collect()
        };
        let rules = |key| texts(&json(key)).iter().map(|text| Rule::parse(text)).collect();
        let mut deny: Vec<Rule> = rules("permissions.deny");
        let denied = texts(&json(DENIED_READS_KEY));
        deny.extend(denied.iter().map(|path| Rule::parse(&format!("Read(/{path})"))));
        Self {
            mode: native.get("permission_mode").and_then(|word| Mode::from_word(word)),
            allow: rules("permissions.allow"),
            deny,
            more_dirs: texts(&json("permissions.additionalDirectories")),
            sandbox: json("sandbox"),
            dirs,
        }
    }

    /// What the mode does with what no rule is about.
    fn by_mode(&self, action: &str) -> NativeAnswer {
        let word = self.mode.map_or("?", Mode::as_str);
        let (verdict, why) = match self.mode {
            Some(Mode::Bypass) => (NativeVerdict::Silent, "nothing asks"),
            Some(Mode::DontAsk) => (NativeVerdict::Refused, "what no rule allows is refused"),
            Some(Mode::Default | Mode::AcceptEdits) => (NativeVerdict::Asks, "no rule is about it"),
            Some(Mode::Plan) => (NativeVerdict::Asks, "it plans, and asks before a change"),
            Some(Mode::Auto) => (NativeVerdict::Unknown, "a classifier of the provider decides"),
            None => (NativeVerdict::Unknown, "the mode is not known"),
        };
        NativeAnswer::new(action, verdict, format!("permission_mode={word}: {why}"))
    }

    /// Whether one of the working directories holds this path.
    fn is_at_work(&self, path: &LexicalPath) -> bool {
        let cwd = [&self.dirs.cwd, self.dirs.real(&self.dirs.cwd)];
        let cwd = cwd.into_iter().map(|dir| dir.as_str());
        cwd.chain(self.more_dirs.iter().map(String::as_str))
            .filter_map(|dir| LexicalPath::absolute(dir).ok())
            .any(|dir| path.is_within(&dir))
    }

    fn is_project_settings(&self, path: &LexicalPath) -> bool {
        [&self.dirs.cwd, self.dirs.real(&self.dirs.cwd)].into_iter().any(|cwd| {
            let dir = LexicalPath::absolute(cwd.as_str()).and_then(|cwd| cwd.child(".claude"));
            dir.is_ok_and(|dir| path.is_within(&dir))
        })
    }

    /// The file tools on a path, under each of its names.
    fn file(&self, action: &str, paths: &[&LexicalPath], what: Use) -> NativeAnswer {
        let (tools, rule_tool) = match what {
            Use::Read => (READING, "Read"),
            Use::Write => (WRITING, "Edit"),
        };
        let about = |rule: &&Rule| {
            let whole = tools.iter().any(|tool| rule.is_whole(tool));
            whole || (rule.tool == rule_tool && paths.iter().any(|path| rule.holds(path)))
        };
        if let Some(rule) = self.deny.iter().find(about) {
            let setting = format!("permissions.deny: {}", rule.text);
            return NativeAnswer::new(action, NativeVerdict::Refused, setting);
        }
        if self.mode == Some(Mode::Bypass) {
            return self.by_mode(action);
        }
        if what == Use::Write && paths.iter().any(|path| self.is_project_settings(path)) {
            let setting = "the program guards `.claude` of the working directory itself";
            let refuses = self.mode == Some(Mode::DontAsk);
            let verdict = if refuses { NativeVerdict::Refused } else { NativeVerdict::Asks };
            return NativeAnswer::new(action, verdict, setting);
        }
        let whole = self.allow.iter().find(|rule| rule.is_whole(rule_tool));
        let named = self
            .allow
            .iter()
            .find(|rule| rule.tool == rule_tool && paths.iter().all(|path| rule.holds(path)));
        if let Some(rule) = whole.or(named) {
            let setting = format!("permissions.allow: {}", rule.text);
            return NativeAnswer::new(action, NativeVerdict::Silent, setting);
        }
        let silent = match what {
            Use::Read => true,
            Use::Write => self.mode == Some(Mode::AcceptEdits),
        };
        if silent && paths.iter().all(|path| self.is_at_work(path)) {
            let setting = match what {
                Use::Read => "the program reads in its working directories".to_owned(),
                Use::Write => "permission_mode=acceptEdits".to_owned(),
            };
            return NativeAnswer::new(action, NativeVerdict::Silent, setting);
        }
        self.by_mode(action)
    }

    fn sandboxed(&self) -> bool {
        self.sandbox["enabled"] == true
    }

    /// Commands, before it matters what they do.
    fn commands(&self, action: &str) -> NativeAnswer {
        if let Some(rule) = self.deny.iter().find(|rule| rule.is_whole("Bash")) {
            let setting = format!("permissions.deny: {}", rule.text);
            return NativeAnswer::new(action, NativeVerdict::Refused, setting);
        }
        if self.sandboxed() && self.sandbox["autoAllowBashIfSandboxed"] == true {
            let setting = "sandbox.autoAllowBashIfSandboxed";
            return NativeAnswer::new(action, NativeVerdict::Silent, setting);
        }
        if let Some(rule) = self.allow.iter().find(|rule| rule.is_whole("Bash")) {
            let setting = format!("permissions.allow: {}", rule.text);
            return NativeAnswer::new(action, NativeVerdict::Silent, setting);
        }
        self.by_mode(action)
    }

    /// Whether the program's own sandbox keeps commands from this path, and through which setting.
    fn kept(&self, paths: &[&LexicalPath], what: Use) -> Option<String> {
        if !self.sandboxed() {
            return None;
        }
        let listed = |key: &str| {
            let items = self.sandbox["filesystem"][key].as_array().into_iter().flatten();
            let dirs = items.filter_map(|it| LexicalPath::absolute(it.as_str()?).ok());
            dirs.collect::<Vec<_>>().iter().any(|dir| paths.iter().any(|path| path.is_within(dir)))
        };
        let denied = self.deny.iter().find(|rule| {
            let tool = if what == Use::Read { "Read" } else { "Edit" };
            rule.tool == tool && paths.iter().any(|path| rule.holds(path))
        });
        match what {
            Use::Read if listed("denyRead") => Some("sandbox.filesystem.denyRead".to_owned()),
            Use::Read => denied.map(|rule| format!("permissions.deny: {}", rule.text)),
            Use::Write if listed("denyWrite") => Some("sandbox.filesystem.denyWrite".to_owned()),
            Use::Write if listed("allowWrite") => None,
            Use::Write => {
                let cwd = [&self.dirs.cwd, self.dirs.real(&self.dirs.cwd)].into_iter().any(|cwd| {
                    LexicalPath::absolute(cwd.as_str())
                        .is_ok_and(|cwd| paths.iter().all(|path| path.is_within(&cwd)))
                });
                (!cwd).then(|| "sandbox.filesystem.allowWrite does not list it".to_owned())
            }
        }
    }

    fn path(&self, paths: &[&LexicalPath]) -> Vec<NativeAnswer> {
        let by_command = |action: &str, what| match self.kept(paths, what) {
            Some(setting) => NativeAnswer::new(action, NativeVerdict::Refused, setting),
            None => self.commands(action),
        };
        vec![
            self.file("file tools, reading", paths, Use::Read),
            self.file("file tools, writing", paths, Use::Write),
            by_command("commands, reading", Use::Read),
            by_command("commands, writing", Use::Write),
        ]
    }

    fn network(&self) -> NativeAnswer {
        let action = "commands";
        if self.sandboxed() {
            let setting = "sandbox.enabled: in its own sandbox a command reaches no network";
            return NativeAnswer::new(action, NativeVerdict::Refused, setting);
        }
        self.commands(action)
    }

    /// A tool that only whole rules are about.
    fn other(&self, tool: &str, action: &str) -> NativeAnswer {
        let server = tool.strip_prefix("mcp__").map(|rest| rest.split("__").next().unwrap_or(rest));
        let about = |rule: &&Rule| {
            rule.is_whole(tool)
                || server.is_some_and(|server| {
                    let all = format!("mcp__{server}");
                    rule.is_whole(&all) || rule.is_whole(&format!("{all}__*"))
                })
        };
        if let Some(rule) = self.deny.iter().find(about) {
            let setting = format!("permissions.deny: {}", rule.text);
            return NativeAnswer::new(action, NativeVerdict::Refused, setting);
        }
        if self.mode != Some(Mode::Bypass)
            && let Some(rule) = self.allow.iter().find(about)
        {
            let setting = format!("permissions.allow: {}", rule.text);
            return NativeAnswer::new(action, NativeVerdict::Silent, setting);
        }
        self.by_mode(action)
    }

    fn tool(&self, tool: &str) -> Vec<NativeAnswer> {
        let places = |what| -> Vec<NativeAnswer> {
            let inside = |dir: &camino::Utf8PathBuf| LexicalPath::absolute(dir.as_str());
            let cwd = inside(&self.dirs.cwd).and_then(|dir| dir.child("_"));
            let state = inside(&self.dirs.state).and_then(|dir| dir.child("_"));
            let places =
                [("in the working directory", cwd), ("in the role's own directory", state)];
            let mut answers: Vec<NativeAnswer> = places
                .into_iter()
                .filter_map(|(action, path)| Some(self.file(action, &[&path.ok()?], what)))
                .collect();
            answers.push(self.file("elsewhere", &[&LexicalPath::root()], what));
            answers
        };
        match tool {
            tool if READING.contains(&tool) => places(Use::Read),
            tool if WRITING.contains(&tool) => places(Use::Write),
            "Bash" => vec![self.commands("every command")],
            tool if NETWORK.contains(&tool) || tool.starts_with("mcp__") => {
                let mut answers = vec![self.other(tool, "every use")];
                let own = format!("mcp__{}", mcp::OURS);
                if tool == own || tool.starts_with(&format!("{own}__")) {
                    let setting = "the server comes with the mail, which is not in this build";
                    answers = vec![NativeAnswer::new("every use", NativeVerdict::Unknown, setting)];
                }
                answers
            }
            tool => {
                let found = self.other(tool, "every use");
                let ruled = found.setting.starts_with("permissions.");
                if ruled || self.mode == Some(Mode::Bypass) {
                    return vec![found];
                }
                let setting = format!(
                    "no rule names it: what changes nothing runs, and for the rest {}",
                    found.setting
                );
                vec![NativeAnswer::new("every use", NativeVerdict::Unknown, setting)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_a_tool_and_perhaps_a_directory() {
        let path = |text| LexicalPath::absolute(text).unwrap();
        let rule = Rule::parse("Edit(//srv/a/**)");
        assert!(rule.holds(&path("/srv/a")) && rule.holds(&path("/srv/a/b")));
        assert!(!rule.holds(&path("/srv/ab")) && !rule.is_whole("Edit"));
        assert!(Rule::parse("Read(//srv/key)").holds(&path("/srv/key")));
        assert!(Rule::parse("Read(///**)").holds(&path("/srv")), "the root");
        assert!(!Rule::parse("Read(srv/**)").holds(&path("/srv")), "relative to the project");
        assert!(Rule::parse("Bash").is_whole("Bash") && !Rule::parse("Bash").holds(&path("/")));
    }
}
