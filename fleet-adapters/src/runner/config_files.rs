//! Reads the files of a fleet through the ports: one place for the command line and the runner, so
//! that both always see the same fleet.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::config::{ConfigSources, Fleet, SourceText};
use fleet_core::diagnostic::{Code, Diagnostic, Place};
use fleet_core::layout::FleetLayout;
use fleet_core::path::{LexicalPath, LexicalPathError};
use fleet_core::port::{FileFacts, FileKind, PathProbe, PathProbeError, StateStore, StoreError};

/// No fleet file is larger (01 §1.2); one byte more is read so that the loader can say so.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// No briefing file is larger (01 §1.7).
const MAX_BRIEFING_BYTES: u64 = 256 * 1024;

/// Why a fleet file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// A file that was asked for by name does not exist.
    #[error("{path} does not exist")]
    Missing {
        /// The file as it was asked for.
        path: Utf8PathBuf,
    },
    /// Something else than a regular file stands there.
    #[error("{path} is {found}, expected a regular file")]
    NotAFile {
        /// The path.
        path: Utf8PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// Something else than a directory stands where the drop-ins are.
    #[error("{path} is {found}, expected a directory of drop-ins")]
    NotADirectory {
        /// The path.
        path: Utf8PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// The path cannot be used.
    #[error("`{path}` is not usable as a path")]
    BadPath {
        /// The path as given.
        path: Utf8PathBuf,
        /// What is wrong with it.
        #[source]
        source: LexicalPathError,
    },
    /// The path cannot be looked at.
    #[error("failed to find {path}")]
    Probe {
        /// The path.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: PathProbeError,
    },
    /// The file cannot be read.
    #[error("failed to read {path}")]
    Store {
        /// The path.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: StoreError,
    },
}

fn lexical(path: &Utf8Path) -> Result<LexicalPath, ConfigFileError> {
    LexicalPath::absolute(path.as_str())
        .map_err(|source| ConfigFileError::BadPath { path: path.to_owned(), source })
}

fn kind_text(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "a regular file",
        FileKind::Directory => "a directory",
        FileKind::Socket => "a socket",
        FileKind::Fifo => "a FIFO",
        FileKind::Device => "a device",
    }
}

/// Where a path leads, and the regular file there, if there is one.
fn look(
    probe: &dyn PathProbe,
    path: &Utf8Path,
) -> Result<(LexicalPath, Option<FileFacts>), ConfigFileError> {
    let resolved = probe
        .resolve(&lexical(path)?)
        .map_err(|source| ConfigFileError::Probe { path: path.to_owned(), source })?;
    match resolved.object {
        Some(facts) if facts.kind != FileKind::File => {
            Err(ConfigFileError::NotAFile { path: path.to_owned(), found: kind_text(facts.kind) })
        }
        object => Ok((resolved.path, object)),
    }
}

/// The canonical form of a configuration that was asked for by name: what is stored and shown.
///
/// # Errors
/// The file does not exist, is no regular file, or cannot be looked at.
pub fn resolve_config(
    probe: &dyn PathProbe,
    path: &Utf8Path,
) -> Result<Utf8PathBuf, ConfigFileError> {
    match look(probe, path)? {
        (canonical, Some(_)) => Ok(canonical.as_path().to_owned()),
        (_, None) => Err(ConfigFileError::Missing { path: path.to_owned() }),
    }
}

fn read(
    store: &dyn StateStore,
    canonical: &LexicalPath,
) -> Result<Option<SourceText>, ConfigFileError> {
    let path = canonical.as_path().to_owned();
    match store.read(&path, MAX_BYTES + 1) {
        Ok(bytes) => Ok(bytes.map(|bytes| SourceText { path, bytes })),
        Err(source) => Err(ConfigFileError::Store { path, source }),
    }
}

/// Names of the drop-ins in bytewise order. Hidden files are left out: they are what editors and
/// atomic writers leave. What is no regular file is kept: a drop-in that is left out would take its
/// roles with it.
fn drop_in_names(
    store: &dyn StateStore,
    probe: &dyn PathProbe,
    layout: &FleetLayout,
) -> Result<Vec<Utf8PathBuf>, ConfigFileError> {
    let dir = layout.drop_in_dir();
    let resolved = probe
        .resolve(&lexical(&dir)?)
        .map_err(|source| ConfigFileError::Probe { path: dir.clone(), source })?;
    match resolved.object {
        None => return Ok(Vec::new()),
        Some(facts) if facts.kind != FileKind::Directory => {
            return Err(ConfigFileError::NotADirectory { path: dir, found: kind_text(facts.kind) });
        }
        Some(_) => {}
    }
    let entries = store
        .list(resolved.path.as_path())
        .map_err(|source| ConfigFileError::Store { path: dir.clone(), source })?
        .unwrap_or_default();
    let mut names: Vec<String> = entries
        .into_iter()
        .filter(|entry| {
            let suffix = Utf8Path::new(&entry.name).extension();
            !entry.name.starts_with('.') && matches!(suffix, Some("yaml" | "yml"))
        })
        .map(|entry| entry.name)
        .collect();
    names.sort();
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}

/// Reads the base file and the drop-ins (01 §1.1). Links are followed; paths in the result are
/// canonical. A base file that nobody asked for may be absent.
///
/// # Errors
/// A file that was asked for by name does not exist; a directory or special file stands where a
/// fleet file is expected; a file cannot be read.
pub fn read_sources(
    store: &dyn StateStore,
    probe: &dyn PathProbe,
    layout: &FleetLayout,
    explicit: Option<&Utf8Path>,
) -> Result<ConfigSources, ConfigFileError> {
    let named = explicit.map_or_else(|| layout.base_config(), Utf8Path::to_owned);
    let (base_path, object) = look(probe, &named)?;
    let base = match object {
        Some(_) => read(store, &base_path)?,
        None => None,
    };
    if base.is_none() && explicit.is_some() {
        return Err(ConfigFileError::Missing { path: named });
    }
    let mut drop_ins = Vec::new();
    for name in drop_in_names(store, probe, layout)? {
        let (canonical, object) = look(probe, &name)?;
        let text = match object {
            Some(_) => read(store, &canonical)?,
            None => None,
        };
        drop_ins.push(text.ok_or(ConfigFileError::Missing { path: name })?);
    }
    Ok(ConfigSources { base_path: base_path.as_path().to_owned(), base, drop_ins })
}

/// What the trust in fleet files is judged by.
#[derive(Debug, Clone, Copy)]
pub struct ConfigTrust<'a> {
    /// Where the fleet lives.
    pub layout: &'a FleetLayout,
    /// The base file as it was asked for.
    pub explicit: Option<&'a Utf8Path>,
    /// The uid that fleet runs as.
    pub uid: u32,
}

/// Where isolation is used, whoever can change a fleet file can switch it off. So every fleet file
/// must then be a regular file of the fleet's own user, reached by no link of its own name, and not
/// writable by others (01 §1.17).
pub fn file_trust(
    store: &dyn StateStore,
    probe: &dyn PathProbe,
    fleet: &Fleet,
    trust: &ConfigTrust<'_>,
) -> Vec<Diagnostic> {
    if fleet.roles.values().all(|role| role.isolation.is_none()) {
        return Vec::new();
    }
    let mut files =
        vec![trust.explicit.map_or_else(|| trust.layout.base_config(), Utf8Path::to_owned)];
    files.extend(drop_in_names(store, probe, trust.layout).unwrap_or_default());
    let mut found = Vec::new();
    // Whoever can write the directory can take a drop-in away, or put one there.
    let dir = trust.layout.drop_in_dir();
    let directory = lexical(&dir).ok().and_then(|dir| probe.resolve(&dir).ok());
    if let Some((canonical, facts)) = directory.and_then(|it| Some((it.path, it.object?))) {
        found.extend(changeable(&dir, &canonical, &facts, trust.uid));
    }
    for file in files {
        let Ok((canonical, Some(facts))) = look(probe, &file) else { continue };
        let problem = |message: String, hint: String| {
            Diagnostic::error(Code::FileTrust, message).at(Place::file(file.as_str())).hint(hint)
        };
        if is_link(probe, &file, &canonical) {
            found.push(problem(
                format!("is a symbolic link to {canonical}, and a role is isolated"),
                format!("use the file itself: `-c {canonical}`, or move it here"),
            ));
        }
        found.extend(changeable(&file, &canonical, &facts, trust.uid));
    }
    found
}

/// Why somebody else can change what stands at a path.
fn changeable(
    path: &Utf8Path,
    canonical: &LexicalPath,
    facts: &FileFacts,
    uid: u32,
) -> Vec<Diagnostic> {
    let problem = |message: String, hint: String| {
        Diagnostic::error(Code::FileTrust, message).at(Place::file(path.as_str())).hint(hint)
    };
    let mut found = Vec::new();
    if facts.uid != uid {
        found.push(problem(
            format!("belongs to uid {}, and a role is isolated", facts.uid),
            format!("give it to uid {uid}: `chown {uid} {canonical}`"),
        ));
    }
    if facts.mode & 0o022 != 0 {
        found.push(problem(
            format!(
                "can be changed by others (mode {:04o}), and a role is isolated",
                facts.mode & 0o7777
            ),
            format!("`chmod go-w {canonical}`"),
        ));
    }
    found
}

/// Whether the last component of a path is a link. Links among the directories above are common and
/// lead to the same file for everybody.
fn is_link(probe: &dyn PathProbe, path: &Utf8Path, canonical: &LexicalPath) -> bool {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let direct = lexical(parent)
        .ok()
        .and_then(|parent| probe.resolve(&parent).ok())
        .and_then(|parent| parent.path.child(name).ok());
    direct.as_ref() != Some(canonical)
}

/// Problems with the `briefing_file` of each role: it must be a readable regular file of at most
/// 256 KiB. Judged here, before any start, and by nobody else.
pub fn briefing_files(
    store: &dyn StateStore,
    probe: &dyn PathProbe,
    fleet: &Fleet,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for role in fleet.roles.values() {
        let Some(path) = &role.briefing_file else { continue };
        let problem = match look(probe, path.as_path()) {
            Ok((canonical, Some(_))) => match store.read(canonical.as_path(), MAX_BRIEFING_BYTES) {
                Ok(Some(bytes)) if std::str::from_utf8(&bytes).is_err() => {
                    Some(format!("{path} is not UTF-8 text"))
                }
                Ok(Some(_)) => None,
                Ok(None) => Some(format!("{path} does not exist")),
                Err(StoreError::TooLarge { limit, .. }) => {
                    Some(format!("{path} is larger than {} KiB", limit / 1024))
                }
                Err(error) => Some(format!("{path} cannot be read: {error}")),
            },
            Ok((_, None)) => Some(format!("{path} does not exist")),
            Err(error @ ConfigFileError::NotAFile { .. }) => Some(error.to_string()),
            Err(error) => Some(format!("{path} cannot be read: {error}")),
        };
        if let Some(message) = problem {
            let key = format!("roles.{}.briefing_file", role.name);
            let place = fleet.provenance.lookup(&key).map(|(_, place)| place.clone());
            let mut diagnostic =
                Diagnostic::error(Code::Io, message).role(role.name.as_str()).path("briefing_file");
            diagnostic.place = place.or_else(|| Some(Place::file(role.source_file.as_str())));
            found.push(diagnostic);
        }
    }
    found
}
