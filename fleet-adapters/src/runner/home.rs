//! The harness home of a role, made ready before each launch: links to shared items and the files of
//! the launch (01 §2.5, §4.2).
//!
//! The agent wrote in its home before, and its program does too. So nothing that stands there is
//! followed or believed: what is in the way of a link or of a directory is set aside under another
//! name, a link is replaced by what belongs there, and only a file that the program shares with fleet
//! is read, as a regular file of a bounded size.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::config::Role;
use fleet_core::error_chain::chain;
use fleet_core::harness::json_edit::edited;
use fleet_core::harness::shared::{Shared, operator_home};
use fleet_core::harness::{
    FileContent, FilePlace, Harness, HarnessFile, HomeSpec, JsonEdit, SharedKind,
};
use fleet_core::isolation::MountMode;
use fleet_core::isolation::forbidden::{ForbiddenList, OwnDirs, Question, Side};
use fleet_core::isolation::handed::chosen_by_an_agent;
use fleet_core::layout::RoleTrees;
use fleet_core::path::LexicalPath;
use fleet_core::plan::Assessment;
use fleet_core::port::{EntryKind, FileKind, PathProbe, StateStore, StoreError, StoreLock};

use super::Runtime;
use super::log::RunnerLog;

/// The operator's own files are not larger.
const MAX_OPERATOR_FILE: usize = 1024 * 1024;
/// Nor are files that fleet edits beside the program.
const MAX_EDITED: u64 = 16 * 1024 * 1024;
/// How often the lock of the edits is tried, and how long between two tries.
const LOCK_ATTEMPTS: u32 = 400;
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Things of one name that are set aside beside each other.
const ASIDES: u32 = 100;

/// The operator's own files that a harness reads.
#[derive(Debug, Default)]
pub(super) struct OperatorFiles {
    /// Their texts, by the name that the harness knows.
    pub(super) texts: BTreeMap<&'static str, String>,
    /// Files that are there and are not used, one line each.
    pub(super) notes: Vec<String>,
}

/// Reads the files that the harness names in [`HomeSpec::read`]. Links are followed, since operators
/// keep such files elsewhere; a file must be regular, of a bounded size, and belong to the fleet user
/// or to root.
pub(super) fn operator_files(
    runtime: &Runtime,
    harness: &dyn Harness,
    role: &Role,
    forbidden: &ForbiddenList,
    probe: &dyn PathProbe,
) -> OperatorFiles {
    let mut found = OperatorFiles::default();
    let Some(spec) = harness.home() else { return found };
    // A wrong home is reported by the judgement itself.
    let Ok(home) = operator_home(spec, &runtime.world, role) else { return found };
    for name in spec.read {
        match operator_file(runtime, &home, name, forbidden, probe) {
            Ok(Some(text)) => drop(found.texts.insert(name, text)),
            Ok(None) => {}
            Err(reason) => found.notes.push(format!("{home}/{name} is not used: {reason}")),
        }
    }
    found
}

fn operator_file(
    runtime: &Runtime,
    home: &LexicalPath,
    name: &str,
    forbidden: &ForbiddenList,
    probe: &dyn PathProbe,
) -> Result<Option<String>, String> {
    let path = home.join(name).map_err(|error| error.to_string())?;
    let resolved = probe.resolve(&path).map_err(|error| error.to_string())?;
    let Some(object) = resolved.object else { return Ok(None) };
    if object.kind != FileKind::File {
        return Err("it is not a regular file".to_owned());
    }
    if object.uid != runtime.world.uid && object.uid != 0 {
        return Err(format!("it belongs to uid {}, not to the fleet user", object.uid));
    }
    let own = probe.resolve(home).map_err(|error| error.to_string())?;
    if !resolved.path.is_within(&own.path) {
        // What is read goes into files that the agent reads: a link to a key is no exception.
        let question = Question {
            side: Side::Source,
            written: path.as_str(),
            resolved: &resolved,
            mode: MountMode::ReadOnly,
            by_user: false,
            own: &OwnDirs::default(),
        };
        forbidden.judge(&question, probe).map_err(|conflict| conflict.to_string())?;
    }
    if let Some(how) = chosen_by_an_agent(&resolved, forbidden, probe) {
        return Err(how);
    }
    // The very file that was judged, whatever stands there by now.
    let bytes = probe
        .content(&resolved.path, object.identity, MAX_OPERATOR_FILE + 1)
        .map_err(|error| error.to_string())?;
    if bytes.len() > MAX_OPERATOR_FILE {
        return Err(format!("it is larger than {MAX_OPERATOR_FILE} bytes"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned())
}

/// Makes links and writes files. A file that is merely edited never fails the launch; everything else
/// that cannot be done does.
pub(super) fn furnish(
    store: &dyn StateStore,
    trees: &RoleTrees,
    harness: &dyn Harness,
    assessment: &Assessment,
    log: &RunnerLog,
) -> Result<(), StoreError> {
    let home = &assessment.dirs.harness_home;
    let work = Furnish { store, trees, home, log };
    if let Some(spec) = harness.home() {
        work.links(spec, &assessment.shared.items, &assessment.files)?;
    }
    for file in &assessment.files {
        work.file(file)?;
    }
    for note in &assessment.notes {
        log.info(note);
    }
    Ok(())
}

struct Furnish<'a> {
    store: &'a dyn StateStore,
    trees: &'a RoleTrees,
    home: &'a Utf8Path,
    log: &'a RunnerLog,
}

impl Furnish<'_> {
    fn links(
        &self,
        spec: &HomeSpec,
        shared: &[Shared],
        files: &[HarnessFile],
    ) -> Result<(), StoreError> {
        let wanted: BTreeMap<&str, &LexicalPath> = shared
            .iter()
            .filter_map(|item| Some((item.link.as_deref()?, &item.destination)))
            .collect();
        let home = files.iter().filter(|file| file.place == FilePlace::Home);
        let kept: BTreeSet<&str> =
            wanted.keys().copied().chain(home.map(|file| file.name.as_str())).collect();
        for item in spec.shared.iter().filter(|item| !item.below_account) {
            if item.kind == SharedKind::EachFile {
                self.unlink_all(item.name, &kept)?;
            } else if !kept.contains(item.name) {
                self.unlink(&self.home.join(item.name))?;
            }
        }
        for (name, target) in wanted {
            let path = self.home.join(name);
            self.parents(self.home, &path)?;
            match self.store.link(&path, target.as_path()) {
                Err(StoreError::WrongKind { .. }) => {
                    self.aside(&path, "a shared item belongs there")?;
                    self.store.link(&path, target.as_path())?;
                }
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Removes the links in a directory of links that are wanted no more. A link in the place of the
    /// directory is one of them.
    fn unlink_all(&self, name: &str, kept: &BTreeSet<&str>) -> Result<(), StoreError> {
        let directory = self.home.join(name);
        let entries = match self.store.list(&directory) {
            Ok(entries) => entries.unwrap_or_default(),
            Err(StoreError::WrongKind { .. }) => return self.unlink(&directory),
            Err(error) => return Err(error),
        };
        for entry in entries.into_iter().filter(|entry| entry.kind == EntryKind::Symlink) {
            if !kept.contains(format!("{name}/{}", entry.name).as_str()) {
                self.store.remove(&directory.join(&entry.name))?;
            }
        }
        Ok(())
    }

    /// Removes a link; anything else is the program's own.
    fn unlink(&self, path: &Utf8Path) -> Result<(), StoreError> {
        if self.kind(path)? == Some(EntryKind::Symlink) {
            self.store.remove(path)?;
        }
        Ok(())
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<EntryKind>, StoreError> {
        let parent = path.parent().unwrap_or(self.home);
        let entries = self.store.list(parent)?.unwrap_or_default();
        let entry = entries.into_iter().find(|entry| Some(entry.name.as_str()) == path.file_name());
        Ok(entry.map(|entry| entry.kind))
    }

    /// Makes the directories between `root` and `path`; what is in the place of one is set aside.
    fn parents(&self, root: &Utf8Path, path: &Utf8Path) -> Result<(), StoreError> {
        let mut below: Vec<&Utf8Path> =
            path.ancestors().skip(1).take_while(|above| *above != root).collect();
        below.reverse();
        for directory in below {
            match self.store.ensure_dir(directory) {
                Err(StoreError::WrongKind { .. }) => {
                    self.aside(directory, "a directory belongs there")?;
                    self.store.ensure_dir(directory)?;
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Gives what stands there another name, which is said.
    fn aside(&self, path: &Utf8Path, reason: &str) -> Result<(), StoreError> {
        let name = path.file_name().unwrap_or_default();
        let directory = self.kind(path)? == Some(EntryKind::Directory);
        for number in 0..ASIDES {
            let aside = match number {
                0 => format!("{name}.aside"),
                number => format!("{name}.aside-{number}"),
            };
            // A file gives way to a file; nothing else does.
            let free = match self.kind(&path.with_file_name(&aside))? {
                None => true,
                Some(EntryKind::Directory) => false,
                Some(_) => !directory,
            };
            if free {
                self.store.set_aside(path, &aside)?;
                self.log.warn(&format!("{path} was set aside as `{aside}`: {reason}"));
                return Ok(());
            }
        }
        let source = std::io::Error::other("too much was set aside there already");
        Err(StoreError::Io { action: "set aside", path: path.to_owned(), source })
    }

    fn file(&self, file: &HarnessFile) -> Result<(), StoreError> {
        let root = match file.place {
            FilePlace::Home => self.home,
            FilePlace::Handout => &self.trees.handout,
        };
        let path = inside(root, &file.name)?;
        match &file.content {
            FileContent::Whole(text) => {
                self.parents(root, &path)?;
                if self.kind(&path)? == Some(EntryKind::Directory) {
                    self.aside(&path, "a file of fleet belongs there")?;
                }
                self.store.write(&path, text.expose().as_bytes(), 0o600)
            }
            FileContent::Json(edits) => {
                let done = self
                    .parents(root, &path)
                    .and_then(|()| match self.kind(&path)? {
                        None | Some(EntryKind::File) => Ok(()),
                        // No program keeps its state in a link or a FIFO; without the edits its
                        // questions at the start come back.
                        Some(_) => self.aside(&path, "a file of the program belongs there"),
                    })
                    .map_err(|error| chain(&error))
                    .and_then(|()| edit(self.store, &self.trees.home_lock(), &path, edits));
                if let Err(reason) = done {
                    self.log.warn(&format!("{path} was left as it is: {reason}"));
                }
                Ok(())
            }
        }
    }
}

/// The path of a file below a tree.
fn inside(root: &Utf8Path, name: &str) -> Result<Utf8PathBuf, StoreError> {
    let joined = LexicalPath::absolute(root.as_str()).and_then(|root| root.join(name));
    joined.map(|path| path.as_path().to_owned()).map_err(|error| StoreError::Io {
        action: "write",
        path: root.join(name),
        source: std::io::Error::new(std::io::ErrorKind::InvalidInput, error),
    })
}

/// Edits a file that its program writes too, under a lock that is gone afterwards.
pub(super) fn edit(
    store: &dyn StateStore,
    lock: &Utf8Path,
    path: &Utf8Path,
    edits: &[JsonEdit],
) -> Result<(), String> {
    let held = take(store, lock)?;
    let done = edit_locked(store, path, edits);
    // While it is held: one who waits for it notices that the file is gone and makes another.
    drop(store.remove(lock));
    drop(held);
    done
}

fn edit_locked(store: &dyn StateStore, path: &Utf8Path, edits: &[JsonEdit]) -> Result<(), String> {
    let failed = |error: StoreError| chain(&error);
    let current = store.read(path, MAX_EDITED).map_err(failed)?;
    let mode = store.mode(path).map_err(failed)?.unwrap_or(0o600);
    match edited(current.as_deref(), edits).map_err(|error| error.to_string())? {
        Some(content) => store.write(path, &content, mode).map_err(failed),
        None => Ok(()),
    }
}

fn take(store: &dyn StateStore, lock: &Utf8Path) -> Result<Box<dyn StoreLock>, String> {
    for _ in 0..LOCK_ATTEMPTS {
        match store.try_lock(lock) {
            Ok(Some(held)) => return Ok(held),
            Ok(None) => std::thread::sleep(LOCK_PAUSE),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(chain(&error)),
        }
    }
    Err("another process keeps editing it".to_owned())
}

#[cfg(test)]
mod tests;
