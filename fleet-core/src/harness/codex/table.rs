//! What the neutral permissions mean for Codex (01 §3.4), as data: one table a measured version.

use super::posture::Approvals;
use crate::permissions::{Approval, Capability, Filesystem, Permissions};

/// Versions with a table, newest first.
pub const QUALIFIED: &[&str] = &["0.171.0"];

/// What the program may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// A profile: everything is read, STATE is written.
    State,
    /// A profile: everything is read; STATE, the working directory and its `.git` are written.
    Workspace,
    /// `danger-full-access`: Codex bounds nothing.
    Everything,
}

/// One combination with a boundary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) reach: Reach,
    /// Whether it was run in the console of the real program: files, commands, git, asking.
    pub(super) measured: bool,
}

/// One combination of the neutral words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    approval: Approval,
    filesystem: Filesystem,
    pub(super) approvals: Approvals,
    pub(super) off: Cell,
    pub(super) on: Cell,
    /// Why it is not exact, with and without a boundary.
    pub(super) warnings: &'static [&'static str],
    /// What does not work without a person.
    pub(super) lacks: &'static [Capability],
}

/// A measured version.
#[derive(Debug)]
pub(super) struct Table {
    version: &'static str,
    rows: &'static [Row],
    /// Models for which a dialog offers another one at the start, and which.
    pub(super) offers: &'static [(&'static str, &'static str)],
}

const fn measured(reach: Reach) -> Cell {
    Cell { reach, measured: true }
}

const NOTHING_ASKS: &str = "`ask` is not exact: Codex asks for nothing that its bound allows";

macro_rules! rows {
    ($($approval:ident x $filesystem:ident => $approvals:ident, $off:ident / $on:ident,
        $warnings:expr, $lacks:expr;)*) => {
        &[$(Row {
            approval: Approval::$approval,
            filesystem: Filesystem::$filesystem,
            approvals: Approvals::$approvals,
            off: measured(Reach::$off),
            on: measured(Reach::$on),
            warnings: $warnings,
            lacks: $lacks,
        }),*]
    };
}

const EDIT: Capability = Capability::WorkspaceEdit;

static TABLES: &[Table] = &[Table {
    version: "0.171.0",
    rows: rows! {
        Ask x ReadOnly => OnRequest, State / Everything, &[NOTHING_ASKS], &[EDIT];
        Ask x Workspace => OnRequest, Workspace / Everything, &[NOTHING_ASKS], &[];
        Ask x Unrestricted => OnRequest, Everything / Everything, &[NOTHING_ASKS], &[];
        Auto x ReadOnly => OnRequest, State / Everything, &[], &[EDIT];
        Auto x Workspace => OnRequest, Workspace / Everything, &[], &[];
        Auto x Unrestricted => OnRequest, Everything / Everything, &[], &[];
        Allow x ReadOnly => Never, State / Everything, &[], &[EDIT];
        Allow x Workspace => Never, Workspace / Everything, &[], &[];
        Allow x Unrestricted => Never, Everything / Everything, &[], &[];
    },
    offers: &[
        ("gpt-5.5", "gpt-6-sol"),
        ("gpt-5.6-luna", "gpt-6-luna"),
        ("gpt-5.6-sol", "gpt-6-sol"),
        ("gpt-5.6-terra", "gpt-6-sol"),
    ],
}];

impl Table {
    /// The table of a version, and whether it is really its own: an unknown version gets the newest.
    pub(super) fn of(version: Option<&str>) -> (&'static Self, bool) {
        let newest = &TABLES[0];
        match version {
            None => (newest, true),
            Some(version) => match TABLES.iter().find(|table| table.version == version) {
                Some(table) => (table, true),
                None => (newest, false),
            },
        }
    }

    /// The row of the neutral words.
    pub(super) fn row(&self, permissions: Permissions) -> Row {
        let wanted = |row: &&Row| {
            row.approval == permissions.approval && row.filesystem == permissions.filesystem
        };
        #[expect(clippy::expect_used, reason = "a test finds every pair in every table")]
        let row = self.rows.iter().find(wanted).expect("every pair has a row");
        *row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Unattended;

    #[test]
    fn every_table_has_every_pair_once_and_every_version_a_table() {
        let versions: Vec<&str> = TABLES.iter().map(|table| table.version).collect();
        assert_eq!(versions, QUALIFIED);
        for table in TABLES {
            assert_eq!(table.rows.len(), 9, "{}", table.version);
            for approval in [Approval::Ask, Approval::Auto, Approval::Allow] {
                for filesystem in
                    [Filesystem::ReadOnly, Filesystem::Workspace, Filesystem::Unrestricted]
                {
                    let unattended = Unattended::Deny;
                    table.row(Permissions { approval, filesystem, unattended });
                }
            }
        }
    }

    #[test]
    fn an_unknown_version_is_not_passed_off_as_measured() {
        assert!(Table::of(None).1);
        assert!(Table::of(Some("0.171.0")).1);
        assert!(!Table::of(Some("0.172.0")).1);
    }
}
