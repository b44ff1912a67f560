//! Every key of a fleet file, one table per block: name, type, default, one line of explanation.
//! The decoder takes names and shapes from here, and so does the JSON schema.

use crate::isolation::{Backend, NetworkMode, OnUnavailable, SystemView};
use crate::permissions::{Approval, Filesystem, Unattended};
use crate::policy::require::{Cap, Level};

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Anything: judged elsewhere.
    Any,
    /// A text.
    Text,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list.
    List(&'static Kind),
    /// A mapping with names as keys.
    Names(&'static Kind),
    /// A mapping with these keys.
    Block(&'static [Key]),
    /// One of several types.
    Either(&'static [Kind]),
}

/// A key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// The default, in words; empty if there is none.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
}

pub(crate) const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, kind, default, doc }
}

pub(crate) const TEXTS: Kind = Kind::List(&Kind::Text);
const OPEN: Kind = Kind::Names(&Kind::Any);

/// The top level.
pub const TOP: &[Key] = &[
    key("vars", Kind::Names(&Kind::Any), "{}", "Texts to put in place of ${NAME}."),
    key("defaults", Kind::Block(DEFAULTS), "{}", "What roles inherit."),
    key("start_stagger_ms", Kind::Number, "0", "Minimum spacing of launches on this host."),
    key("roles", Kind::Names(&Kind::Block(ROLE)), "{}", "The agents, by name."),
    key("policy", Kind::Block(POLICY), "", "What every role must meet."),
    key("messaging", Kind::Block(MESSAGING), "{backend: embedded}", "How agents get mail."),
    key("tasks", OPEN, "", "Task lists."),
    key("rooms", OPEN, "", "Rooms."),
    key("agent_templates", OPEN, "", "What agents may be spawned from."),
    key("room_templates", OPEN, "", "What rooms may be made from."),
    key("loops", Kind::Names(&Kind::Block(LOOP)), "", "Prompts on a schedule."),
    key("watchdogs", Kind::Names(&Kind::Block(WATCHDOG)), "", "Agents that watch others."),
];

/// What a drop-in may hold.
pub const DROP_IN: &[Key] =
    &[key("roles", Kind::Names(&Kind::Block(ROLE)), "{}", "The agents, by name.")];

/// `policy`.
pub const POLICY: &[Key] = &[
    key("forbid_paths", TEXTS, "[]", "Absolute paths that no role may reach."),
    key("require", Kind::Block(REQUIRE), "", "What every role must have."),
];

/// `policy.require`.
pub const REQUIRE: &[Key] = &[
    key("isolation", Kind::Words(Level::WORDS), "", "Least guarantee level."),
    key("network", Kind::List(&Kind::Words(NetworkMode::WORDS)), "", "Allowed network modes."),
    key("approval", Kind::Words(Approval::WORDS), "", "Widest allowed approval."),
    key("resources", Kind::List(&Kind::Words(Cap::WORDS)), "", "Caps to be set."),
];

/// `messaging`.
pub const MESSAGING: &[Key] =
    &[key("backend", Kind::Words(&["embedded", "ours-daemon"]), "embedded", "Who carries mail.")];

const HARNESS: Key = key("harness", Kind::Text, "claude-code", "The agent program.");
const SESSION: Key =
    key("session", Kind::Words(&["tmux", "acp"]), "tmux", "How the agent is owned.");
const SESSION_OPTIONS_KEY: Key =
    key("session_options", Kind::Block(SESSION_OPTIONS), "", "Details of the session.");
const PERMISSIONS_KEY: Key =
    key("permissions", Kind::Block(PERMISSIONS), "{}", "What the agent may do, in neutral words.");
const MODEL: Key = key("model", Kind::Text, "", "The model; null drops an inherited one.");
const MODEL_CHAIN: Key = key("model_chain", TEXTS, "", "Models to fall back to, in order.");
const MAX_TOKENS: Key = key("max_tokens", Kind::Integer, "", "Context budget.");
const ENV: Key = key("env", Kind::Names(&Kind::Text), "{}", "Environment of the agent.");
const OPTIONS: Key =
    key("harness_options", OPEN, "", "Options of the harness; the harness checks them.");
const ISOLATION_KEY: Key =
    key("isolation", Kind::Block(ISOLATION), "not sandboxed", "The sandbox of the agent.");
const MONITOR_KEY: Key = key("monitor", Kind::Block(MONITOR), "", "What wakes the agent.");
const WORKLOG_KEY: Key = key(
    "worklog",
    Kind::Either(&[Kind::Block(WORKLOG), Kind::Bool]),
    "{max_kb: 1024, keep_tail_kb: 256, max_archives: 12}",
    "Rotation of the work log; false is off.",
);
const AUTH_PROXY_KEY: Key =
    key("auth_proxy", Kind::Block(AUTH_PROXY), "", "A local proxy that holds the credentials.");
const OWNER_CHANNEL_KEY: Key =
    key("owner_channel", Kind::Block(OWNER_CHANNEL), "", "A channel to the owner (later).");

/// `defaults`.
pub const DEFAULTS: &[Key] = &[
    HARNESS,
    SESSION,
    SESSION_OPTIONS_KEY,
    PERMISSIONS_KEY,
    MODEL,
    MODEL_CHAIN,
    MAX_TOKENS,
    ENV,
    OPTIONS,
    ISOLATION_KEY,
    MONITOR_KEY,
    WORKLOG_KEY,
    AUTH_PROXY_KEY,
    OWNER_CHANNEL_KEY,
];

/// A role.
pub const ROLE: &[Key] = &[
    HARNESS,
    SESSION,
    SESSION_OPTIONS_KEY,
    PERMISSIONS_KEY,
    key("identity", Kind::Text, "the role name", "Its messaging name."),
    key("cwd", Kind::Text, "its own state directory", "Where it works."),
    key("coordinator", Kind::Text, "", "Who it reports to."),
    key("mission", Kind::Text, "", "What it is for."),
    key("persona", Kind::Text, "", "Who it is."),
    key("bio", Kind::Text, "", "Its public card."),
    key("briefing_file", Kind::Text, "", "A text in place of the written briefing."),
    MODEL,
    MODEL_CHAIN,
    MAX_TOKENS,
    key("autocompact_pct", Kind::Number, "", "When the context is compacted, in percent."),
    ENV,
    key("env_pass", TEXTS, "[]", "Variables passed on from the environment of fleet."),
    key("oversee", Kind::List(&Kind::Block(OVERSEE)), "", "Roles it looks after."),
    OPTIONS,
    ISOLATION_KEY,
    MONITOR_KEY,
    WORKLOG_KEY,
    AUTH_PROXY_KEY,
    key(
        "managed_cli",
        Kind::List(&Kind::Words(&["task-workflow"])),
        "",
        "Fleet commands it may run.",
    ),
    OWNER_CHANNEL_KEY,
];

/// `permissions`.
pub const PERMISSIONS: &[Key] = &[
    key("approval", Kind::Words(Approval::WORDS), "ask", "How tool actions are approved."),
    key("filesystem", Kind::Words(Filesystem::WORDS), "workspace", "What they may write."),
    key(
        "unattended",
        Kind::Words(Unattended::WORDS),
        "deny",
        "What happens to a question that nobody answers.",
    ),
];

/// `session_options`.
pub const SESSION_OPTIONS: &[Key] = &[
    key("tmux", Kind::Block(TMUX_OPTIONS), "", "Details of a tmux console."),
    key("acp", Kind::Block(ACP_OPTIONS), "", "Details of an ACP session (later)."),
];

/// `session_options.tmux`.
pub const TMUX_OPTIONS: &[Key] =
    &[key("boot_grace_ms", Kind::Number, "", "How long a start may take before it is looked at.")];

/// `session_options.acp`.
pub const ACP_OPTIONS: &[Key] =
    &[key("command", Kind::Either(&[Kind::Text, TEXTS]), "", "The agent to run instead.")];

/// An entry of `oversee`.
pub const OVERSEE: &[Key] = &[
    key("role", Kind::Text, "required", "The ward."),
    key("interval", Kind::Text, "required", "How often to look, at least 10s."),
];

/// `isolation`.
pub const ISOLATION: &[Key] = &[
    key("backend", Kind::Words(Backend::WORDS), "auto", "What makes the sandbox."),
    key("on_unavailable", Kind::Words(OnUnavailable::WORDS), "warn", "What happens without one."),
    key("network", Kind::Words(NetworkMode::WORDS), "broker", "What the agent can reach."),
    key("allow_hosts", TEXTS, "[]", "Hosts it can reach under `allowlist` or `broker`."),
    key("fs", Kind::Block(FS), "{}", "Paths it can reach."),
    key("resources", Kind::Block(RESOURCES), "", "Caps."),
    key(
        "secrets",
        Kind::List(&Kind::Either(&[Kind::Text, Kind::Block(SECRET)])),
        "[]",
        "Read-only files shown to it.",
    ),
    key(
        "protect",
        TEXTS,
        "hooks and settings of the project",
        "Paths below cwd that stay read-only, beside hooks and settings of the project; [] protects nothing.",
    ),
    key("system", Kind::Words(SystemView::WORDS), "curated", "How much of /etc it sees."),
    key("nested_sandbox", Kind::Bool, "false", "Whether its harness may make a sandbox too."),
    key("image", Kind::Text, "", "Container image by digest, podman only."),
];

/// `isolation.fs`.
pub const FS: &[Key] =
    &[key("read", TEXTS, "[]", "Read-only paths."), key("write", TEXTS, "[]", "Writable paths.")];

/// `isolation.resources`.
pub const RESOURCES: &[Key] = &[
    key("cpu", Kind::Either(&[Kind::Text, Kind::Number]), "", "Processors, for example 1.5."),
    key(
        "mem",
        Kind::Either(&[Kind::Text, Kind::Integer]),
        "",
        "Memory, for example 2G; at least 64M.",
    ),
    key("pids", Kind::Integer, "", "Processes, at least 16."),
];

/// An entry of `isolation.secrets` in map form.
pub const SECRET: &[Key] = &[
    key("from", Kind::Text, "required", "The file on the host."),
    key("to", Kind::Text, "required", "Where the agent sees it."),
];

/// Event types of `monitor.wake_sources`.
pub const WAKE_SOURCES: &[&str] = &[
    "message_received",
    "file_received",
    "sibling_contact_added",
    "local_contact_request",
    "pending_message",
    "contact_restored",
    "inbound_error",
    "state_import_failed",
];

/// `monitor`.
pub const MONITOR: &[Key] = &[
    key("mode", Kind::Words(&["fleet", "native"]), "fleet", "Who watches the mail."),
    key("enabled", Kind::Bool, "from mode", "Old form of mode: true is fleet, false is native."),
    key(
        "wake_sources",
        Kind::List(&Kind::Words(WAKE_SOURCES)),
        "mail, files, contact requests",
        "What wakes the agent.",
    ),
    key("batch_ms", Kind::Number, "2000", "How long events are gathered."),
    key("inject", Kind::Words(&["notification"]), "notification", "What is typed."),
    key(
        "interrupt",
        Kind::Either(&[Kind::Bool, Kind::Words(&["after_tool"])]),
        "false",
        "Whether work is interrupted.",
    ),
    key("turn_fail_threshold", Kind::Integer, "3", "Failed turns in a row that count as failing."),
];

/// `worklog`.
pub const WORKLOG: &[Key] = &[
    key("max_kb", Kind::Integer, "1024", "Size over which the log is rotated."),
    key("keep_tail_kb", Kind::Integer, "256", "What stays in the live file."),
    key("max_archives", Kind::Integer, "12", "Archives kept beside it."),
];

/// `auth_proxy`.
pub const AUTH_PROXY: &[Key] = &[
    key("kind", Kind::Words(&["anthropic"]), "required", "What it speaks."),
    key("base_url", Kind::Text, "required", "Its URL on this host."),
    key("health_url", Kind::Text, "<base origin>/healthz", "Where its health is asked."),
    key("required", Kind::Bool, "true", "Whether doctor fails without it."),
];

/// `owner_channel`.
pub const OWNER_CHANNEL: &[Key] = &[
    key("identity", Kind::Text, "required", "Its messaging name."),
    key("owners", TEXTS, "required", "Contact ids of the owners."),
    key("agent", Kind::Text, "", "Contact id of the agent."),
    key("interrupt", Kind::Bool, "false", "Whether an owner's message interrupts."),
    key("comments", Kind::Bool, "true", "Whether notes are passed on."),
    key("progress_interval_ms", Kind::Number, "30000", "How often progress is told; 0 is off."),
    key("attachments", Kind::Block(ATTACHMENTS), "", "Files with a message."),
];

/// `owner_channel.attachments`.
pub const ATTACHMENTS: &[Key] = &[
    key("enabled", Kind::Bool, "true", "Whether files are accepted."),
    key("max_files_per_request", Kind::Integer, "4", "Files per message, 1 to 32."),
    key("max_file_bytes", Kind::Integer, "10485760", "Size of a file."),
    key("max_request_bytes", Kind::Integer, "20971520", "Size of all files of a message."),
    key("retention_ms", Kind::Integer, "86400000", "How long files are kept."),
    key("allowed_mime", TEXTS, "documents, images, audio", "Accepted types."),
];

/// An entry of `loops`.
pub const LOOP: &[Key] = &[
    key("roles", TEXTS, "required", "Names of roles, or [\"*\"]."),
    key("interval", Kind::Text, "required", "60s to 30d."),
    key("prompt", Kind::Text, "required", "What is asked."),
    key("initial_delay", Kind::Text, "= interval", "Before the first one."),
    key("jitter", Kind::Text, "0", "Random part, less than interval and at most 1h."),
    key("enabled", Kind::Bool, "true", "Whether it runs."),
];

/// An entry of `watchdogs`.
pub const WATCHDOG: &[Key] = &[
    key("coordinator", Kind::Text, "required", "Who gets the reports."),
    key("watch", TEXTS, "all roles", "Names of roles."),
    key("identity", Kind::Text, "Watchdog-<name>", "Its messaging name."),
    HARNESS,
    MODEL,
    SESSION,
    key("interval", Kind::Text, "10m", "How often, at least 60s."),
    key("timeout", Kind::Text, "5m", "How long one look may take."),
    key("keep_reports", Kind::Integer, "50", "Reports kept."),
    key("alert_cooldown", Kind::Text, "1h", "Time between alerts."),
    key("prompt_file", Kind::Text, "", "A text in place of the written prompt."),
    ISOLATION_KEY,
    key("enabled", Kind::Bool, "true", "Whether it runs."),
];

/// The names in a table.
pub(crate) fn names(table: &'static [Key]) -> impl Iterator<Item = &'static str> + Clone {
    table.iter().map(|key| key.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every block below `table`, itself included.
    fn blocks(table: &'static [Key], found: &mut Vec<&'static [Key]>) {
        fn inner(kind: &'static Kind, found: &mut Vec<&'static [Key]>) {
            match kind {
                Kind::Block(table) => blocks(table, found),
                Kind::List(kind) | Kind::Names(kind) => inner(kind, found),
                Kind::Either(kinds) => kinds.iter().for_each(|kind| inner(kind, found)),
                _ => {}
            }
        }
        found.push(table);
        for key in table {
            inner(&key.kind, found);
        }
    }

    #[test]
    fn names_are_unique_and_explained() {
        let mut all = Vec::new();
        blocks(TOP, &mut all);
        assert!(all.len() > 15, "{}", all.len());
        for table in all {
            for (index, key) in table.iter().enumerate() {
                assert!(!key.doc.is_empty(), "{}", key.name);
                assert!(names(&table[..index]).all(|name| name != key.name), "{}", key.name);
            }
        }
    }

    #[test]
    fn defaults_are_keys_of_a_role() {
        assert!(names(DEFAULTS).all(|name| names(ROLE).any(|role| role == name)));
    }
}
