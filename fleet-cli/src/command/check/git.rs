//! An older version of the fleet files, out of the repository that they lie in.
//!
//! git only reads here. It gets a built environment, so what a hook of git has set (`GIT_DIR`, an
//! index) does not lead elsewhere, and no name from outside reaches it where an option could stand.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::port::{CommandSpec, Exit};

use super::sources::Fileset;
use crate::app::App;
use crate::env_vars;
use crate::error::{CliError, ErrorKind};

/// Before every subcommand: paths are plain paths, and no program of the repository is started.
const SETTINGS: &[&str] = &["--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false"];

/// git in the directory of the base file.
#[derive(Debug)]
pub(super) struct Git<'a> {
    app: &'a App,
    directory: Utf8PathBuf,
    base: String,
}

/// An entry of a tree.
struct Entry {
    mode: String,
    id: String,
    path: String,
}

impl<'a> Git<'a> {
    /// For the repository that holds `base`.
    pub(super) fn beside(app: &'a App, base: &Utf8Path) -> Self {
        let directory = base.parent().unwrap_or_else(|| Utf8Path::new("/")).to_owned();
        Self { app, directory, base: base.file_name().unwrap_or_default().to_owned() }
    }

    /// The top of the repository; where there is none, the working directory of this command.
    pub(super) async fn root(&self) -> Option<Utf8PathBuf> {
        let text = self.run(&["rev-parse", "--show-toplevel"]).await.ok();
        let path = text.and_then(|bytes| String::from_utf8(bytes).ok());
        let path = path.map(|path| Utf8PathBuf::from(path.trim_end_matches('\n')));
        path.filter(|path| path.is_absolute()).or_else(|| self.app.settings.cwd.clone())
    }

    /// The fleet files at a revision.
    pub(super) async fn files(&self, revision: &str) -> Result<Fileset, CliError> {
        let prefix = self.text(&["rev-parse", "--show-prefix"]).await.map_err(|failure| {
            let message = format!(
                "`{revision}` is no file, and no revision either: {} is in no git repository ({failure})",
                self.directory
            );
            CliError::from(ErrorKind::Revision { message })
                .hint("name a fleet file to compare with, or run this in a clone")
        })?;
        let wanted = format!("{revision}^{{commit}}");
        let commit = self
            .text(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])
            .await
            .ok()
            .filter(|id| is_object_id(id));
        let Some(commit) = commit else {
            let message =
                format!("`{revision}` is neither a file nor a revision of this repository");
            return Err(CliError::from(ErrorKind::Revision { message })
                .hint("in CI fetch the history first, with all branches (`fetch-depth: 0`)"));
        };
        let base = format!("{prefix}{}", self.base);
        let drop_in_dir = format!("{prefix}fleet.d/");
        let mut entries = self.tree(&commit, &base).await?;
        let base_bytes = match entries.iter().position(|entry| entry.path == base) {
            Some(at) => Some(self.blob(revision, entries.swap_remove(at)).await?),
            // As a base file that is not there: every role is new.
            None => None,
        };
        let mut drop_ins = Vec::new();
        for entry in self.tree(&commit, &drop_in_dir).await? {
            let Some(name) = entry.path.strip_prefix(&drop_in_dir).map(str::to_owned) else {
                continue;
            };
            let suffix = Utf8Path::new(&name).extension();
            let is_drop_in = matches!(suffix, Some("yaml" | "yml")) && !name.starts_with('.');
            if is_drop_in && !name.contains('/') {
                let shown = format!("{revision}:{}", entry.path);
                drop_ins.push((name, shown, self.blob(revision, entry).await?));
            }
        }
        Ok(Fileset::new((format!("{revision}:{base}"), base_bytes), drop_ins, Some(commit)))
    }

    async fn tree(&self, commit: &str, path: &str) -> Result<Vec<Entry>, CliError> {
        let listed = self.run(&["ls-tree", "-z", "--full-tree", commit, "--", path]).await;
        let bytes = listed.map_err(|failure| broken(&failure))?;
        // `mode type id TAB path`, each ended by NUL. What is not UTF-8 is none of ours.
        let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| {
            let (facts, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
            let mut facts = facts.split(' ');
            let (mode, _, id) = (facts.next()?, facts.next()?, facts.next()?);
            let (mode, id, path) = (mode.to_owned(), id.to_owned(), path.to_owned());
            is_object_id(&id).then_some(Entry { mode, id, path })
        });
        Ok(entries.collect())
    }

    async fn blob(&self, revision: &str, entry: Entry) -> Result<Vec<u8>, CliError> {
        if !entry.mode.starts_with("100") {
            let message = format!("`{}` is no regular file in `{revision}`", entry.path);
            return Err(CliError::from(ErrorKind::Revision { message })
                .hint("compare with a file: `--against FILE`"));
        }
        self.run(&["cat-file", "blob", &entry.id]).await.map_err(|failure| broken(&failure))
    }

    async fn text(&self, args: &[&str]) -> Result<String, String> {
        let bytes = self.run(args).await?;
        let text = String::from_utf8(bytes).map_err(|_| "its answer is not UTF-8".to_owned())?;
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Runs git; a failure is its first line.
    async fn run(&self, args: &[&str]) -> Result<Vec<u8>, String> {
        let world = &self.app.runtime.world;
        let mut spec = CommandSpec::new("git", SETTINGS.iter().chain(args).copied());
        spec.cwd = Some(self.directory.clone());
        spec.env = [
            (env_vars::PATH, world.path()),
            // `safe.directory` is read from there.
            (env_vars::HOME, world.homes.os.to_string()),
            ("LC_ALL", "C".to_owned()),
            ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            // A partial clone must not fetch.
            ("GIT_NO_LAZY_FETCH", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
        let output = self.app.runtime.ports.exec.run(&spec).await.map_err(|it| it.to_string())?;
        match output.exit {
            Exit::Code(0) => Ok(output.stdout),
            Exit::Code(127) => Err("git was not found".to_owned()),
            Exit::Code(_) | Exit::Signal(_) => {
                let text = output.stderr_text();
                let line = text.lines().next().unwrap_or("git failed without a word");
                Err(line.escape_debug().to_string())
            }
        }
    }
}

fn broken(failure: &str) -> CliError {
    let message = format!("git cannot read the repository: {failure}");
    ErrorKind::Revision { message }.into()
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
