//! Conversations whose ids the program chooses: found in the files that it keeps of them (02 §3.7).
//!
//! The files lie in a tree that the agent writes. What they say is a hint: an id is taken only if it
//! parses, the conversation was begun in the role's directory, and no other living role has it.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::harness::SessionFiles;
use fleet_core::id::{RoleName, SessionId};
use fleet_core::layout::{FleetLayout, RoleTrees};
use fleet_core::lifecycle::RecordedSession;
use fleet_core::port::{EntryKind, StateStore, StoreError};

/// Control files are not larger.
const MAX_CONTROL: u64 = 64 * 1024;
/// First lines are not longer: they may hold a whole system prompt.
const MAX_FIRST_LINE: u64 = 1024 * 1024;
/// The newest files only: an agent can make any number.
const MOST_FILES: usize = 50;

/// Finds the conversation of one role in one home.
#[derive(Debug, Clone)]
pub(super) struct SessionFinder {
    pub(super) store: Arc<dyn StateStore>,
    pub(super) layout: FleetLayout,
    pub(super) role: RoleName,
    pub(super) files: SessionFiles,
    pub(super) home: Utf8PathBuf,
    /// The working directory as the program may name it: as configured, and without links.
    pub(super) cwd: Vec<String>,
}

impl SessionFinder {
    /// Name of the newest file below the directory of the conversations; empty if there is none.
    pub(super) fn newest(&self) -> String {
        self.names("").into_iter().next().unwrap_or_default()
    }

    /// Completes the record with the conversation that was begun after it, if the record is of this
    /// home. On `Ok` what is returned stands on the disk.
    pub(super) fn settle(&self, record: RecordedSession) -> Result<RecordedSession, StoreError> {
        let Some(after) = record.after.as_deref().filter(|_| record.home == self.home) else {
            return Ok(record);
        };
        let Some(id) = self.find(after)?.filter(|id| record.id.as_ref() != Some(id)) else {
            return Ok(record);
        };
        let found = RecordedSession { id: Some(id), ..record };
        let bytes = serde_json::to_vec(&found).unwrap_or_default();
        self.store.write(&self.trees().session_id(), &bytes, 0o600)?;
        Ok(found)
    }

    /// The conversation on file, completed if it can be.
    pub(super) fn current(&self) -> Option<SessionId> {
        let record = recorded(&*self.store, &self.trees()).ok()??;
        self.settle(record).ok()?.id
    }

    fn trees(&self) -> RoleTrees {
        self.layout.role(&self.role)
    }

    fn find(&self, after: &str) -> Result<Option<SessionId>, StoreError> {
        let directory = self.home.join(self.files.directory);
        for name in self.names(after) {
            let path = directory.join(&name);
            let Ok(Some(head)) = self.store.read_head(&path, MAX_FIRST_LINE) else { continue };
            let Some(end) = head.iter().position(|byte| *byte == b'\n') else { continue };
            let Ok(line) = std::str::from_utf8(&head[..end]) else { continue };
            let file = name.rsplit('/').next().unwrap_or(&name);
            let Some(meta) = (self.files.parse)(file, line) else { continue };
            // It goes into an argv: what looks like an option is none.
            let plain = !meta.id.as_str().starts_with('-');
            if plain && self.cwd.contains(&meta.cwd) && !self.is_taken(&meta.id)? {
                return Ok(Some(meta.id));
            }
        }
        Ok(None)
    }

    /// Names of the files newer than this one, the newest first. Links are not followed.
    fn names(&self, after: &str) -> Vec<String> {
        let mut found = Vec::new();
        let root = self.home.join(self.files.directory);
        self.collect(&root, "", self.files.depth, after, &mut found);
        found
    }

    fn collect(
        &self,
        directory: &Utf8Path,
        prefix: &str,
        depth: u8,
        after: &str,
        found: &mut Vec<String>,
    ) {
        let wanted = if depth > 0 { EntryKind::Directory } else { EntryKind::File };
        let entries = self.store.list(directory).ok().flatten().unwrap_or_default();
        for entry in entries.into_iter().rev().filter(|entry| entry.kind == wanted) {
            if found.len() >= MOST_FILES {
                return;
            }
            let name = format!("{prefix}{}", entry.name);
            if depth > 0 {
                // Whole directories of earlier times are not entered.
                let reached = after.get(..name.len()).unwrap_or(after);
                if name.as_str() < reached {
                    return;
                }
                let below = directory.join(&entry.name);
                self.collect(&below, &format!("{name}/"), depth - 1, after, found);
            } else if name.as_str() > after {
                found.push(name);
            }
        }
    }

    /// Whether another living role has this conversation.
    fn is_taken(&self, id: &SessionId) -> Result<bool, StoreError> {
        let others = self.store.list(&self.layout.control_root())?.unwrap_or_default();
        for other in others {
            let Ok(name) = other.name.parse::<RoleName>() else { continue };
            if name == self.role {
                continue;
            }
            let trees = self.layout.role(&name);
            let has = recorded(&*self.store, &trees)
                .ok()
                .flatten()
                .is_some_and(|record| record.id.as_ref() == Some(id));
            if has && self.store.is_locked(&trees.runner_lock())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The conversation on file. One that cannot be understood counts as none.
pub(super) fn recorded(
    store: &dyn StateStore,
    trees: &RoleTrees,
) -> Result<Option<RecordedSession>, StoreError> {
    let bytes = store.read(&trees.session_id(), MAX_CONTROL)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}
