//! `harness_options` of a `claude-code` role (01 §4.2).

use std::collections::BTreeMap;

use serde_json::Value;

use super::mcp::{self, Servers};
use super::table::Mode;
use crate::config::keys::{Key, Kind, key, names};
use crate::harness::{OptionProblem, Options};

/// Every option.
pub(super) const TABLE: &[Key] = &[
    key(
        "config_home",
        Kind::Words(HOMES),
        "",
        "Whose config home it uses; its own if not written.",
    ),
    key("effort", Kind::Words(EFFORTS), "", "How hard the model thinks."),
    key(
        "mcp_servers",
        Kind::Names(&Kind::Block(mcp::TABLE)),
        "",
        "Servers of the Model Context Protocol, by name.",
    ),
    key("mcp_servers_only", Kind::Bool, "true", "Whether other servers are left out."),
    key("mem_palace", Kind::Bool, "true", "Whether the plugin of that name stays on."),
    key(
        "mem_palace_midsession_autosave",
        Kind::Bool,
        "false",
        "Whether that plugin saves during a session.",
    ),
    key(
        "permission_mode",
        Kind::Words(Mode::WORDS),
        "",
        "A mode of the program in place of the one that `permissions` means.",
    ),
    key("plugins", Kind::Names(&Kind::Bool), "", "Plugins to switch on or off, by id."),
    key(
        "remote_control",
        Kind::Bool,
        "false",
        "Whether the session can be steered from elsewhere.",
    ),
];
const HOMES: &[&str] = &["shared"];

const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

/// The plugin that `mem_palace` switches.
pub(super) const MEM_PALACE: &str = "mempalace@mempalace";

/// The options, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a fleet file, each on its own")]
pub(super) struct ClaudeOptions {
    pub(super) permission_mode: Option<Mode>,
    pub(super) effort: Option<&'static str>,
    pub(super) plugins: BTreeMap<String, bool>,
    pub(super) mem_palace: bool,
    pub(super) mem_palace_midsession_autosave: bool,
    pub(super) mcp_servers: Servers,
    pub(super) mcp_servers_only: bool,
    pub(super) remote_control: bool,
    /// Whether the role uses the operator's own home.
    pub(super) shared_home: bool,
}

impl Default for ClaudeOptions {
    fn default() -> Self {
        Self {
            permission_mode: None,
            effort: None,
            plugins: BTreeMap::new(),
            mem_palace: true,
            mem_palace_midsession_autosave: false,
            mcp_servers: Servers::default(),
            mcp_servers_only: true,
            remote_control: false,
            shared_home: false,
        }
    }
}

impl ClaudeOptions {
    /// Reads the options; every problem is reported.
    pub(super) fn parse(options: &Options) -> Result<Self, Vec<OptionProblem>> {
        let mut problems = Problems::default();
        for key in options.keys().filter(|key| names(TABLE).all(|name| name != key.as_str())) {
            problems.unknown_key(key, &names(TABLE).collect::<Vec<_>>());
        }
        let mut parsed = Self::default();
        let mode = problems.word(options, "permission_mode", Mode::WORDS);
        parsed.permission_mode = mode.and_then(Mode::from_word);
        parsed.effort = problems.word(options, "effort", EFFORTS);
        parsed.shared_home = problems.word(options, "config_home", HOMES).is_some();
        for (key, place) in [
            ("mem_palace", &mut parsed.mem_palace),
            ("mem_palace_midsession_autosave", &mut parsed.mem_palace_midsession_autosave),
            ("mcp_servers_only", &mut parsed.mcp_servers_only),
            ("remote_control", &mut parsed.remote_control),
        ] {
            match options.get(key) {
                Some(Value::Bool(value)) => *place = *value,
                Some(_) => problems.add(key, "must be `true` or `false`"),
                None => {}
            }
        }
        if let Some(plugins) = options.get("plugins") {
            parsed.plugins = plugin_switches(plugins, &mut problems);
        }
        if !parsed.mem_palace && parsed.plugins.get(MEM_PALACE) == Some(&true) {
            let message = format!("`plugins` switches `{MEM_PALACE}` on: write one of the two");
            problems.add("mem_palace", &message);
        }
        if let Some(servers) = options.get("mcp_servers") {
            parsed.mcp_servers = mcp::servers(servers, &mut problems);
        }
        if problems.0.is_empty() { Ok(parsed) } else { Err(problems.0) }
    }
}

fn plugin_switches(value: &Value, problems: &mut Problems) -> BTreeMap<String, bool> {
    let Some(plugins) = value.as_object() else {
        problems.add("plugins", "must be a map of plugin ids to `true` or `false`");
        return BTreeMap::new();
    };
    let mut switches = BTreeMap::new();
    for (id, value) in plugins {
        match value.as_bool() {
            Some(_) if id.trim().is_empty() || id.contains('\0') => {
                problems.add("plugins", "holds an empty plugin id");
            }
            Some(on) => {
                switches.insert(id.clone(), on);
            }
            None => problems.add(&format!("plugins.{id}"), "must be `true` or `false`"),
        }
    }
    switches
}

/// Problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems(pub(super) Vec<OptionProblem>);

impl Problems {
    pub(super) fn add(&mut self, path: &str, message: &str) {
        self.with_allowed(path, message, &[]);
    }

    pub(super) fn unknown_key(&mut self, path: &str, allowed: &[&str]) {
        self.with_allowed(path, "unknown key", allowed);
        if let Some(last) = self.0.last_mut() {
            last.unknown_key = true;
        }
    }

    pub(super) fn with_allowed(&mut self, path: &str, message: &str, allowed: &[&str]) {
        self.0.push(OptionProblem {
            path: path.to_owned(),
            message: message.to_owned(),
            allowed: allowed.iter().map(|word| (*word).to_owned()).collect(),
            unknown_key: false,
        });
    }

    /// The option as one of these words; a problem if it is written and is none of them.
    fn word(
        &mut self,
        options: &Options,
        key: &str,
        words: &'static [&'static str],
    ) -> Option<&'static str> {
        let value = options.get(key)?;
        let word = words.iter().copied().find(|word| value.as_str() == Some(word));
        if word.is_none() {
            self.with_allowed(key, "is not a known value", words);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parse(json: &str) -> Result<ClaudeOptions, Vec<OptionProblem>> {
        ClaudeOptions::parse(&serde_json::from_str(json).expect("an object"))
    }

    #[rstest]
    #[case::unknown(r#"{"effrot": "low"}"#, "effrot", "unknown key")]
    #[case::mode(r#"{"permission_mode": "yolo"}"#, "permission_mode", "is not a known value")]
    #[case::mode_type(r#"{"permission_mode": true}"#, "permission_mode", "is not a known value")]
    #[case::effort(r#"{"effort": "most"}"#, "effort", "is not a known value")]
    #[case::home(r#"{"config_home": "own"}"#, "config_home", "is not a known value")]
    #[case::flag(r#"{"remote_control": "yes"}"#, "remote_control", "must be `true` or `false`")]
    #[case::strict(r#"{"mcp_servers_only": 1}"#, "mcp_servers_only", "must be `true` or `false`")]
    #[case::save(
        r#"{"mem_palace_midsession_autosave": null}"#,
        "mem_palace_midsession_autosave",
        "must be `true` or `false`"
    )]
    #[case::plugins(
        r#"{"plugins": ["a"]}"#,
        "plugins",
        "must be a map of plugin ids to `true` or `false`"
    )]
    #[case::plugin(r#"{"plugins": {"a@b": "on"}}"#, "plugins.a@b", "must be `true` or `false`")]
    #[case::plugin_id(r#"{"plugins": {" ": true}}"#, "plugins", "holds an empty plugin id")]
    #[case::both(
        r#"{"mem_palace": false, "plugins": {"mempalace@mempalace": true}}"#,
        "mem_palace",
        "`plugins` switches `mempalace@mempalace` on: write one of the two"
    )]
    #[case::servers(r#"{"mcp_servers": {}}"#, "mcp_servers", "must name at least one server")]
    #[case::server(r#"{"mcp_servers": {"a": 1}}"#, "mcp_servers.a", "must be a map")]
    #[case::server_name(
        r#"{"mcp_servers": {"a b": {"command": "x"}}}"#,
        "mcp_servers.a b",
        "a server name holds letters, digits, `_` and `-` only"
    )]
    #[case::server_prefix(
        r#"{"mcp_servers": {"ours__x": {"command": "x"}}}"#,
        "mcp_servers.ours__x",
        "the tools of such a name would pass for those of the server `ours`"
    )]
    #[case::server_key(
        r#"{"mcp_servers": {"a": {"command": "x", "cmd": "y"}}}"#,
        "mcp_servers.a.cmd",
        "unknown key"
    )]
    #[case::server_type(
        r#"{"mcp_servers": {"a": {"type": "tcp", "command": "x"}}}"#,
        "mcp_servers.a.type",
        "is not a known value"
    )]
    #[case::no_command(r#"{"mcp_servers": {"a": {}}}"#, "mcp_servers.a.command", "is required")]
    #[case::blank_command(
        r#"{"mcp_servers": {"a": {"command": " "}}}"#,
        "mcp_servers.a.command",
        "must be a non-empty text"
    )]
    #[case::stdio_url(
        r#"{"mcp_servers": {"a": {"command": "x", "url": "http://h"}}}"#,
        "mcp_servers.a.url",
        "has no meaning for a server of this type"
    )]
    #[case::remote_command(
        r#"{"mcp_servers": {"a": {"type": "sse", "url": "http://h", "command": "x"}}}"#,
        "mcp_servers.a.command",
        "has no meaning for a server of this type"
    )]
    #[case::no_url(
        r#"{"mcp_servers": {"a": {"type": "http"}}}"#,
        "mcp_servers.a.url",
        "is required"
    )]
    #[case::args(
        r#"{"mcp_servers": {"a": {"command": "x", "args": "-v"}}}"#,
        "mcp_servers.a.args",
        "must be a list of texts"
    )]
    #[case::arg(
        r#"{"mcp_servers": {"a": {"command": "x", "args": ["a", 1]}}}"#,
        "mcp_servers.a.args[1]",
        "must be a text: quote it"
    )]
    #[case::env(
        r#"{"mcp_servers": {"a": {"command": "x", "env": {"A": 1}}}}"#,
        "mcp_servers.a.env.A",
        "must be a text: quote it"
    )]
    #[case::env_name(
        r#"{"mcp_servers": {"a": {"command": "x", "env": {"A=B": "1"}}}}"#,
        "mcp_servers.a.env",
        "holds a name that is empty or holds `=` or a control character"
    )]
    #[case::header(
        r#"{"mcp_servers": {"a": {"type": "http", "url": "http://h", "headers": {"X": "a\nY: b"}}}}"#,
        "mcp_servers.a.headers.X",
        "holds a control character"
    )]
    #[case::nul(
        r#"{"mcp_servers": {"a": {"command": "x\u0000"}}}"#,
        "mcp_servers.a.command",
        "holds a control character"
    )]
    fn a_bad_option_is_one_clear_problem(
        #[case] json: &str,
        #[case] path: &str,
        #[case] message: &str,
    ) {
        let problems = parse(json).expect_err("a problem");
        let found: Vec<_> =
            problems.iter().map(|it| (it.path.as_str(), it.message.as_str())).collect();
        assert_eq!(found, [(path, message)]);
        assert_eq!(problems[0].unknown_key, message == "unknown key");
        let choices = matches!(message, "unknown key" | "is not a known value");
        assert_eq!(problems[0].allowed.is_empty(), !choices);
    }

    #[test]
    fn all_problems_are_reported_and_no_value_is_shown() {
        let problems = parse(
            r#"{"effort": "s3cr3t", "x": 1,
                "mcp_servers": {"a": {"command": "x", "env": {"K": ["s3cr3t"]}}, "b": 1}}"#,
        )
        .expect_err("four problems");
        let paths: Vec<_> = problems.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["x", "effort", "mcp_servers.a.env.K", "mcp_servers.b"]);
        assert!(!format!("{problems:?}").contains("s3cr3t"));
    }

    #[test]
    fn good_options_are_read() {
        let options = parse(
            r#"{"permission_mode": "manual", "effort": "xhigh", "config_home": "shared",
                "remote_control": true, "mcp_servers_only": false, "mem_palace": false,
                "mem_palace_midsession_autosave": true, "plugins": {"a@b": true},
                "mcp_servers": {"s": {"command": "srv", "env": {"TOKEN": "s3cr3t"}}}}"#,
        )
        .expect("good options");
        assert_eq!(options.permission_mode, Some(Mode::Default));
        assert_eq!(options.effort, Some("xhigh"));
        assert!(options.shared_home && options.remote_control);
        assert!(!options.mcp_servers_only && !options.mem_palace);
        assert!(!format!("{options:?}").contains("s3cr3t"), "values do not print");
    }
}
