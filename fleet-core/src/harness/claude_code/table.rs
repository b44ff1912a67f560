//! What neutral permissions are in Claude Code, as data: one table a measured version (01 §3.3).

use crate::permissions::Capability::{
    Messaging, Monitor, ReadState, StatusCommands, WorkspaceEdit, WriteState,
};
use crate::permissions::{Approval, Capability, Filesystem, Permissions};

macro_rules! modes {
    ($($variant:ident = $word:literal,)*) => {
        /// A permission mode of the program.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Mode { $($variant,)* }

        impl Mode {
            /// What may be written in the options: each mode, and `manual`, the newer word for `default`.
            pub(super) const WORDS: &'static [&'static str] = &["manual", $($word),*];

            /// The word on the command line. `default` is understood by old and new versions.
            pub(super) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The mode that a word stands for.
            pub(super) fn from_word(word: &str) -> Option<Self> {
                match word {
                    "manual" => Some(Self::Default),
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

modes! {
    Default = "default",
    AcceptEdits = "acceptEdits",
    Auto = "auto",
    Plan = "plan",
    DontAsk = "dontAsk",
    Bypass = "bypassPermissions",
}

/// A permission rule, before the directories of a role are put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// All reading.
    Read,
    /// Reading what fleet hands out.
    ReadHandout,
    /// All changes of existing files; does not cover [`Rule::Write`].
    Edit,
    /// All new files.
    Write,
    /// All changes in STATE, new files included.
    EditState,
    /// All changes in the working directory, new files included.
    EditWorkspace,
    /// All commands.
    Bash,
    /// All tools of the messaging bridge.
    Ours,
}

/// The program's own sandbox, which bounds commands only. STATE is writable in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sandbox {
    /// Whether commands in it run without a question, in every mode.
    pub(super) auto_allow: bool,
    /// Whether the working directory is not writable in it.
    pub(super) deny_workspace: bool,
}

/// Native settings of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) mode: Mode,
    /// Whether STATE is an additional directory.
    pub(super) state_dir: bool,
    pub(super) allow: &'static [Rule],
    pub(super) deny: &'static [Rule],
    pub(super) sandbox: Option<Sandbox>,
    /// Whether what no role may see is denied to its tools where no boundary hides it. Deny rules bind
    /// its file tools in every mode, and its own sandbox; without one a command asks, or is not bound.
    pub(super) closed: bool,
    /// Whether this combination was measured in a console, not only its parts. The cells inside were
    /// measured under bubblewrap with namespaces of users and processes, as a plain user and as root.
    pub(super) measured: bool,
}

/// One pair of neutral words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) approval: Approval,
    pub(super) filesystem: Filesystem,
    /// Without isolation.
    pub(super) off: Cell,
    /// With the isolation in force, which stands in for the program's own sandbox.
    pub(super) on: Cell,
    /// What works without a person, in both. `monitor` means the program's own watching tool.
    pub(super) granted: &'static [Capability],
}

/// The table of one version.
#[derive(Debug)]
pub(super) struct Table {
    /// The version it was measured with.
    pub(super) version: &'static str,
    pub(super) rows: [Row; 9],
}

impl Table {
    /// The row of these words.
    pub(super) fn row(&self, words: Permissions) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.approval == words.approval && row.filesystem == words.filesystem)
    }
}

/// The tables, newest first. A version without one gets the first, and is not qualified.
pub(super) static TABLES: [Table; 1] = [Table { version: "2.1.332", rows: ROWS_2_1_332 }];

/// Versions with a table.
pub(super) static QUALIFIED: [&str; 1] = [TABLES[0].version];

/// The table for a version, and whether it is its own.
pub(super) fn table(version: Option<&str>) -> (&'static Table, bool) {
    let Some(version) = version else { return (&TABLES[0], true) };
    match TABLES.iter().find(|table| table.version == version) {
        Some(table) => (table, true),
        None => (&TABLES[0], false),
    }
}

/// Nothing asks, nothing writes the working directory.
const BOUND: Option<Sandbox> = Some(Sandbox { auto_allow: true, deny_workspace: true });
const OPEN: Option<Sandbox> = Some(Sandbox { auto_allow: true, deny_workspace: false });
const ASKING: Option<Sandbox> = Some(Sandbox { auto_allow: false, deny_workspace: true });

const TALK: &[Capability] = &[ReadState, Messaging];
const KEEP: &[Capability] = &[ReadState, WriteState, Messaging, StatusCommands];
const WORK: &[Capability] = &[ReadState, WriteState, Messaging, WorkspaceEdit, StatusCommands];
const EVERYTHING: &[Capability] =
    &[ReadState, WriteState, Messaging, Monitor, WorkspaceEdit, StatusCommands];

const ASK: Cell = Cell {
    mode: Mode::Default,
    state_dir: true,
    allow: &[Rule::ReadHandout, Rule::Ours],
    deny: &[],
    sandbox: None,
    closed: true,
    measured: true,
};
const ASK_READ_ONLY: Cell =
    Cell { allow: &[Rule::Read, Rule::Ours], deny: &[Rule::EditWorkspace], sandbox: ASKING, ..ASK };
const AUTO: Cell = Cell {
    mode: Mode::AcceptEdits,
    state_dir: false,
    allow: &[Rule::Read, Rule::EditState, Rule::Ours],
    deny: &[],
    sandbox: OPEN,
    closed: true,
    measured: true,
};
const AUTO_READ_ONLY: Cell = Cell {
    state_dir: true,
    allow: &[Rule::Read, Rule::Ours],
    deny: &[Rule::EditWorkspace],
    sandbox: BOUND,
    ..AUTO
};
const AUTO_UNRESTRICTED: Cell = Cell {
    allow: &[Rule::Read, Rule::Edit, Rule::Write, Rule::Bash, Rule::Ours],
    sandbox: None,
    closed: false,
    ..AUTO
};
const ALLOW: Cell = Cell {
    mode: Mode::DontAsk,
    state_dir: false,
    allow: &[Rule::Read, Rule::EditWorkspace, Rule::EditState, Rule::Bash, Rule::Ours],
    deny: &[],
    sandbox: OPEN,
    closed: true,
    measured: true,
};
const ALLOW_READ_ONLY: Cell =
    Cell { allow: &[Rule::Read, Rule::EditState, Rule::Bash, Rule::Ours], sandbox: BOUND, ..ALLOW };
const ALLOW_UNRESTRICTED: Cell =
    Cell { mode: Mode::Bypass, allow: &[Rule::Ours], sandbox: None, closed: false, ..ALLOW };

const ROWS_2_1_332: [Row; 9] = [
    Row {
        approval: Approval::Ask,
        filesystem: Filesystem::Workspace,
        off: ASK,
        on: ASK,
        granted: TALK,
    },
    Row {
        approval: Approval::Ask,
        filesystem: Filesystem::ReadOnly,
        off: ASK_READ_ONLY,
        on: Cell { sandbox: None, ..ASK_READ_ONLY },
        granted: TALK,
    },
    Row {
        approval: Approval::Ask,
        filesystem: Filesystem::Unrestricted,
        off: ASK,
        on: ASK,
        granted: TALK,
    },
    Row {
        approval: Approval::Auto,
        filesystem: Filesystem::Workspace,
        off: AUTO,
        on: Cell {
            allow: &[Rule::Read, Rule::EditState, Rule::Bash, Rule::Ours],
            sandbox: None,
            ..AUTO
        },
        granted: WORK,
    },
    Row {
        approval: Approval::Auto,
        filesystem: Filesystem::ReadOnly,
        off: AUTO_READ_ONLY,
        on: Cell { allow: &[Rule::Read, Rule::Bash, Rule::Ours], sandbox: None, ..AUTO_READ_ONLY },
        granted: KEEP,
    },
    Row {
        approval: Approval::Auto,
        filesystem: Filesystem::Unrestricted,
        off: AUTO_UNRESTRICTED,
        on: AUTO_UNRESTRICTED,
        granted: WORK,
    },
    Row {
        approval: Approval::Allow,
        filesystem: Filesystem::Workspace,
        off: ALLOW,
        on: Cell { sandbox: None, ..ALLOW },
        granted: WORK,
    },
    Row {
        approval: Approval::Allow,
        filesystem: Filesystem::ReadOnly,
        off: ALLOW_READ_ONLY,
        on: Cell { sandbox: None, ..ALLOW_READ_ONLY },
        granted: KEEP,
    },
    Row {
        approval: Approval::Allow,
        filesystem: Filesystem::Unrestricted,
        off: ALLOW_UNRESTRICTED,
        on: ALLOW_UNRESTRICTED,
        granted: EVERYTHING,
    },
];
