//! Resolves what a role may touch, against a file system that exists in memory only.
//!
//! The core asks for paths through the port `PathProbe`; this program answers from a table, so it
//! runs anywhere, and shows how a link that leads into `~/.ssh` is found out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use camino::Utf8PathBuf;
use fleet_core::port::{
    FileFacts, FileIdentity, FileKind, FollowedLink, PathProbe, PathProbeError, Resolved,
};
use fleet_core::{ConfigSources, Harnesses, Judge, LexicalPath, LoadOptions, World, load};

/// Directories and links by path; the position in the table is the inode.
#[derive(Debug, Default)]
pub(crate) struct Table {
    directories: BTreeSet<String>,
    links: BTreeMap<String, LexicalPath>,
}

impl Table {
    fn directory(&mut self, path: &str) -> &mut Self {
        for ancestor in Utf8PathBuf::from(path).ancestors() {
            self.directories.insert(ancestor.to_string());
        }
        self
    }

    fn facts(&self, path: &str) -> Option<FileFacts> {
        let ino = self.directories.iter().position(|known| known == path)?;
        Some(FileFacts {
            identity: FileIdentity { dev: 1, ino: u64::try_from(ino).ok()? },
            kind: FileKind::Directory,
            uid: 1000,
            mode: 0o700,
            links: 1,
        })
    }
}

impl PathProbe for Table {
    fn resolve(&self, path: &LexicalPath) -> Result<Resolved, PathProbeError> {
        let mut links = Vec::new();
        let mut at = LexicalPath::root();
        let mut rest: VecDeque<String> = path.components().map(str::to_owned).collect();
        while let Some(component) = rest.pop_front() {
            let next = at
                .child(&component)
                .map_err(|reason| PathProbeError::BadTarget { path: path.to_string(), reason })?;
            match self.links.get(next.as_str()) {
                Some(_) if links.len() == 40 => {
                    return Err(PathProbeError::Loop { path: path.to_string() });
                }
                Some(target) => {
                    let above = next.self_and_ancestors().skip(1);
                    let above = above.filter_map(|it| Some(self.facts(it)?.identity)).collect();
                    links.push(FollowedLink { at: next, above });
                    rest = target.components().map(str::to_owned).chain(rest).collect();
                    at = LexicalPath::root();
                }
                None => at = next,
            }
        }
        let ancestors = at.self_and_ancestors().skip(1);
        let ancestors = ancestors.filter_map(|above| Some(self.facts(above)?.identity)).collect();
        Ok(Resolved { object: self.facts(at.as_str()), ancestors, path: at, links })
    }

    fn mounts_below(
        &self,
        _directory: &LexicalPath,
    ) -> Result<Vec<(LexicalPath, FileIdentity)>, PathProbeError> {
        Ok(Vec::new())
    }

    fn head(&self, file: &LexicalPath, _limit: usize) -> Result<Vec<u8>, PathProbeError> {
        Err(PathProbeError::Io { path: file.to_string(), detail: "holds no files".to_owned() })
    }

    fn content(
        &self,
        file: &LexicalPath,
        _identity: FileIdentity,
        limit: usize,
    ) -> Result<Vec<u8>, PathProbeError> {
        self.head(file, limit)
    }

    fn entries(
        &self,
        directory: &LexicalPath,
        _limit: usize,
    ) -> Result<Vec<String>, PathProbeError> {
        Err(PathProbeError::NotADirectory { path: directory.to_string() })
    }

    fn ignores_case(&self, _path: &LexicalPath) -> bool {
        false
    }
}

const FLEET: &str = "\
defaults: { harness: command }
roles:
  builder:
    cwd: /srv/project
    harness_options: { argv: [cat] }
    isolation: { network: deny, fs: { read: [/srv/docs] } }
  curious:
    cwd: /srv/project
    harness_options: { argv: [cat] }
    isolation: { network: deny, fs: { read: [/srv/handy] } }
";

/// The lines this program prints: the mounts of each role, or why there are none.
pub(crate) fn run() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let world = World::of_account("operator", 1000, "/home/operator")?;
    let home = world.home()?;
    let harnesses = Harnesses::built_in();
    let sources = ConfigSources::base_only("/home/operator/fleet.yaml", FLEET);
    let loaded = load(&sources, &LoadOptions::new(&home, &harnesses));
    let Some(fleet) = loaded.fleet else {
        return Ok(loaded.diagnostics.iter().map(ToString::to_string).collect());
    };

    let mut table = Table::default();
    table.directory("/srv/project").directory("/srv/docs").directory("/home/operator/.ssh");
    table.links.insert("/srv/handy".to_owned(), home.child(".ssh")?);
    for role in fleet.roles.values() {
        let trees = world.layout.role(&role.name);
        for tree in trees.all() {
            table.directory(tree.as_str());
        }
        table.directory(trees.harness_home(&role.harness).as_str());
    }

    let mut lines = Vec::new();
    for (role, verdict) in Judge::new(&fleet, &world, &harnesses, &table).all() {
        let mounts = verdict.policy.iter().flat_map(|policy| &policy.mounts);
        lines.extend(mounts.map(|mount| {
            format!("{}: {} {} ({})", role.name, mount.mode, mount.destination, mount.origin)
        }));
        let problems = verdict.problems.iter();
        lines.extend(problems.map(|problem| format!("{}: {problem}", role.name)));
    }
    Ok(lines)
}

#[expect(clippy::print_stdout, reason = "a program for the terminal")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in run()? {
        println!("{line}");
    }
    Ok(())
}
