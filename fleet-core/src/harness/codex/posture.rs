//! The settings of Codex's own sandbox and approvals that a launch has: what the analysis judges and
//! what the launch writes come from the same value.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::options::CodexOptions;
use super::table::{Reach, Row};
use crate::harness::LaunchDirs;
use crate::permissions::{Approval, DENIED_READS_KEY, DeniedRead, Outer};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every value, as Codex spells it.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The value as Codex spells it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The value that a word stands for.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// `--ask-for-approval`.
    Approvals {
        /// What the sandbox does not allow is asked for.
        OnRequest = "on-request",
        /// What the sandbox does not allow is refused.
        Never = "never",
    }
}
words! {
    /// `--sandbox`.
    SandboxMode {
        /// Nothing is written.
        ReadOnly = "read-only",
        /// The working directory is written, without its `.git`.
        WorkspaceWrite = "workspace-write",
        /// No sandbox.
        DangerFullAccess = "danger-full-access",
    }
}

/// The name of the permission profile that fleet writes.
pub(super) const PROFILE: &str = "fleet";
/// Codex's own name for having no sandbox, as a profile.
pub(super) const NO_BOUND: &str = ":danger-full-access";

impl Approvals {
    /// The neutral word that it amounts to.
    pub(super) fn amounts_to(self) -> Approval {
        match self {
            Self::OnRequest => Approval::Auto,
            Self::Never => Approval::Allow,
        }
    }
}

/// How the sandbox is chosen.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    /// Fleet's profile, with this `filesystem` table.
    Profile(Table),
    /// A word on the command line.
    Mode(SandboxMode),
    /// A profile that the options name.
    Named(String),
}

/// What a launch sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Posture {
    pub(super) bound: Bound,
    pub(super) approvals: Approvals,
}

impl Posture {
    /// What the row says, without native overrides.
    pub(super) fn translated(
        row: &Row,
        options: &CodexOptions,
        outer: Outer,
        dirs: &LaunchDirs,
        denied: &[DeniedRead],
    ) -> Self {
        let cell = if outer.replaces_native() { row.on } else { row.off };
        let bound = match cell.reach {
            Reach::Everything => Bound::Mode(SandboxMode::DangerFullAccess),
            reach => Bound::Profile(profile(reach == Reach::Workspace, options, dirs, denied)),
        };
        Self { bound, approvals: row.approvals }
    }

    /// What is in force: each override replaces one value.
    pub(super) fn effective(
        row: &Row,
        options: &CodexOptions,
        outer: Outer,
        dirs: &LaunchDirs,
        denied: &[DeniedRead],
    ) -> Self {
        let mut posture = Self::translated(row, options, outer, dirs, denied);
        if let Some(mode) = options.sandbox {
            posture.bound = Bound::Mode(mode);
        } else if let Some(name) = &options.default_permissions {
            posture.bound = Bound::Named(name.clone());
        }
        posture.approvals = options.approval.unwrap_or(posture.approvals);
        posture
    }

    /// Whether Codex has to confine the program by itself.
    pub(super) fn needs_own_sandbox(&self) -> bool {
        match &self.bound {
            Bound::Profile(_) => true,
            Bound::Mode(mode) => *mode != SandboxMode::DangerFullAccess,
            Bound::Named(name) => name != NO_BOUND,
        }
    }

    /// For people and programs: name to value.
    pub(super) fn native(&self) -> BTreeMap<String, String> {
        let mut native =
            BTreeMap::from([("approval".to_owned(), self.approvals.as_str().to_owned())]);
        match &self.bound {
            Bound::Mode(mode) => {
                native.insert("sandbox".to_owned(), mode.as_str().to_owned());
            }
            Bound::Named(name) => {
                native.insert("default_permissions".to_owned(), name.clone());
            }
            Bound::Profile(filesystem) => {
                native.insert("default_permissions".to_owned(), PROFILE.to_owned());
                let key = format!("permissions.{PROFILE}.filesystem");
                let is_denied = |value: &Value| value.as_str() == Some(DENY);
                let (denied, rest): (Table, Table) =
                    filesystem.clone().into_iter().partition(|(_, value)| is_denied(value));
                native.insert(key, Value::Table(rest).to_string());
                let denied: Vec<&String> = denied.keys().collect();
                native.insert(DENIED_READS_KEY.to_owned(), serde_json::json!(denied).to_string());
            }
        }
        native
    }
}

/// The word for what is neither read nor written.
const DENY: &str = "deny";

/// The `filesystem` table of fleet's profile: all but what is denied is read, and what is listed is
/// written. Codex keeps `.codex` read-only by itself.
fn profile(
    workspace: bool,
    options: &CodexOptions,
    dirs: &LaunchDirs,
    denied: &[DeniedRead],
) -> Table {
    let write = || Value::from("write");
    let mut written: Vec<String> =
        [&dirs.state, dirs.real(&dirs.state)].into_iter().map(ToString::to_string).collect();
    if workspace {
        written.extend(dirs.git.iter().map(ToString::to_string));
    }
    written.extend(options.add_dirs.iter().map(ToString::to_string));
    let mut table = Table::from_iter([(":root".to_owned(), Value::from("read"))]);
    table.extend(written.iter().map(|path| (path.clone(), write())));
    if workspace {
        let roots = [".", ".git"].map(|name| (name.to_owned(), write()));
        table.insert(":workspace_roots".to_owned(), Value::Table(Table::from_iter(roots)));
    }
    // Each is a mount in its sandbox, made anew for every command: the hundreds of places where a login
    // could be and is not would cost seconds.
    for DeniedRead { path, .. } in denied.iter().filter(|it| it.exists) {
        if !table.contains_key(path.as_str()) {
            table.insert(path.to_string(), Value::from(DENY));
        }
    }
    table
}
