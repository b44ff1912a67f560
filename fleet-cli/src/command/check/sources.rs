//! The fleet files of a check: one base file and the drop-ins beside it.
//!
//! Drop-ins are taken from `fleet.d` beside the base file. For the file in the fleet home that is
//! where every command looks; for one named by `-c` it is where the others of the same repository
//! are, while the home of the machine that happens to run the check must not decide the verdict.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_adapters::runner::read_sources;
use fleet_core::config::ConfigSources;
use fleet_core::diagnostic::Place;
use fleet_core::layout::FleetLayout;
use fleet_core::path::LexicalPath;
use fleet_core::policy::check::nominal_sources;
use fleet_core::port::FileKind;

use crate::app::App;
use crate::error::{CliError, ErrorKind};

/// Fleet files with their nominal paths, and how each is shown.
#[derive(Debug)]
pub(super) struct Fileset {
    pub(super) sources: ConfigSources,
    /// Nominal path and name of each file, base first.
    names: Vec<(String, String)>,
    /// The commit that they are from.
    pub(super) commit: Option<String>,
    /// Whether there is a base file.
    pub(super) base_exists: bool,
}

impl Fileset {
    /// Files by content. `base` and `drop_ins` are each a name to show and the bytes; drop-ins have
    /// their file name first.
    pub(super) fn new(
        base: (String, Option<Vec<u8>>),
        drop_ins: Vec<(String, String, Vec<u8>)>,
        commit: Option<String>,
    ) -> Self {
        let (base_name, bytes) = base;
        let base_exists = bytes.is_some();
        let mut shown = Vec::new();
        let mut contents = Vec::new();
        for (mut name, display, bytes) in drop_ins {
            // Links may lead two names to the same one.
            while contents.iter().any(|(other, _)| *other == name) {
                name.push('+');
            }
            shown.push((name.clone(), display));
            contents.push((name, bytes));
        }
        let sources = nominal_sources(bytes, contents);
        let mut names = vec![(sources.base_path.to_string(), base_name)];
        for file in &sources.drop_ins {
            let name = file.path.file_name().unwrap_or_default();
            let display = shown.iter().find(|(other, _)| other == name);
            let display = display.map_or_else(|| name.to_owned(), |(_, display)| display.clone());
            names.push((file.path.to_string(), display));
        }
        Self { sources, names, commit, base_exists }
    }

    /// The files as they are shown, base first.
    pub(super) fn shown(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(_, shown)| shown.as_str())
    }

    /// A place, by the name that the file really has.
    pub(super) fn place(&self, place: Option<Place>) -> Option<Place> {
        let mut place = place?;
        if let Some((_, shown)) = self.names.iter().find(|(nominal, _)| *nominal == place.file) {
            shown.clone_into(&mut place.file);
        }
        Some(place)
    }

    /// A message, by the names that the files really have where it points at one.
    pub(super) fn message(&self, message: &str) -> String {
        self.names.iter().fold(message.to_owned(), |text, (nominal, shown)| {
            text.replace(&format!("see also {nominal}"), &format!("see also {shown}"))
        })
    }
}

/// How files are shown: relative to a directory where they lie in it.
#[derive(Debug)]
pub(super) struct Shown {
    root: Option<Utf8PathBuf>,
}

impl Shown {
    pub(super) fn below(root: Option<Utf8PathBuf>) -> Self {
        Self { root }
    }

    fn name(&self, path: &Utf8Path) -> String {
        let below = self.root.as_ref().and_then(|root| path.strip_prefix(root).ok());
        below.filter(|below| !below.as_str().is_empty()).unwrap_or(path).to_string()
    }
}

/// The base file: the one asked for, else that of the fleet home.
pub(super) fn base_path(app: &App) -> Utf8PathBuf {
    app.settings.configuration.clone().unwrap_or_else(|| app.runtime.world.layout.base_config())
}

/// Reads the fleet files of this command.
pub(super) fn read(app: &App, shown: &Shown) -> Result<Fileset, CliError> {
    read_at(app, &base_path(app), app.settings.configuration.is_some(), shown)
}

/// Reads an older version that is a file; `None` if there is no such file.
pub(super) fn older_file(app: &App, old: &str, shown: &Shown) -> Result<Option<Fileset>, CliError> {
    let old = Utf8Path::new(old);
    let path = match &app.settings.cwd {
        Some(cwd) if old.is_relative() => cwd.join(old),
        _ => old.to_owned(),
    };
    let Some(path) = plain(&path) else { return Ok(None) };
    // A name that cannot be looked at may still be a revision.
    let found = app.probe().resolve(&path).ok().and_then(|found| found.object);
    match found {
        Some(object) if object.kind == FileKind::File => {
            read_at(app, path.as_path(), true, shown).map(Some)
        }
        _ => Ok(None),
    }
}

/// Without `.` and `..`, by the text.
fn plain(path: &Utf8Path) -> Option<LexicalPath> {
    let mut at = LexicalPath::root();
    for part in path.as_str().split('/') {
        at = match part {
            "" | "." => at,
            ".." => at.parent()?,
            name => at.child(name).ok()?,
        };
    }
    Some(at)
}

fn read_at(app: &App, base: &Utf8Path, named: bool, shown: &Shown) -> Result<Fileset, CliError> {
    let directory = base.parent().unwrap_or_else(|| Utf8Path::new("/"));
    let layout = FleetLayout::new(directory);
    let store = &*app.runtime.ports.store;
    let explicit = (named || base != layout.base_config()).then_some(base);
    let read = read_sources(store, &*app.probe(), &layout, explicit)
        .map_err(|source| CliError::from(ErrorKind::ConfigFile { source }))?;
    let drop_ins = read.drop_ins.into_iter().map(|file| {
        let name = file.path.file_name().unwrap_or_default().to_owned();
        (name, shown.name(&file.path), file.bytes)
    });
    let bytes = read.base.map(|file| file.bytes);
    Ok(Fileset::new((shown.name(base), bytes), drop_ins.collect(), None))
}
