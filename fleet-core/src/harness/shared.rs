//! What of the operator's own harness home a role sees (01 §2.5): which items there are, where they
//! really lie, and where the role's home links to them. Pure: the file system is asked through
//! [`PathProbe`], nothing is made.

use crate::config::Role;
use crate::isolation::MountMode;
use crate::isolation::forbidden::{ForbiddenList, OwnDirs, Question, Side};
use crate::isolation::handed::chosen_by_an_agent;
use crate::path::LexicalPath;
use crate::port::{FileKind, PathProbe, Resolved};
use crate::world::World;

use super::{HomeSpec, SharedItem, SharedKind};

/// Files of one [`SharedKind::EachFile`] directory that are shared; the rest is named as absent.
pub const MAX_FILES: usize = 256;

/// One item that the role sees.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shared {
    /// Its name: that of the item, or `DIRECTORY/FILE`.
    pub name: String,
    /// Where it is, links followed. Under isolation mounted read-only.
    pub target: LexicalPath,
    /// Where a sandbox shows it; also what the link says.
    pub destination: LexicalPath,
    /// The link, as a path below the role's harness home; `None` for what is found at its own place.
    pub link: Option<String>,
    /// Whether it is the login.
    pub login: bool,
}

/// An item that the role does not see.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Absent {
    /// Its name.
    pub name: String,
    /// Why, one line.
    pub reason: String,
}

/// All items of one harness home.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedItems {
    /// The operator's home, links followed; `None` for a harness without a home.
    pub home: Option<LexicalPath>,
    /// What the role sees, in the order of the specification, then of names.
    pub items: Vec<Shared>,
    /// What it does not see.
    pub absent: Vec<Absent>,
}

impl SharedItems {
    /// The item with this name.
    pub fn get(&self, name: &str) -> Option<&Shared> {
        self.items.iter().find(|item| item.name == name)
    }

    /// Adds what the judge must know to let exactly these items pass.
    pub(crate) fn extend(&self, own: &mut OwnDirs) {
        own.operator.clone_from(&self.home);
        let known = self.items.iter().map(|item| (item.target.clone(), base_name(&item.name)));
        own.shared = known.collect();
    }
}

/// What the items are found for.
#[derive(Debug, Clone, Copy)]
pub struct SharedRequest<'a> {
    /// The home of the harness.
    pub spec: &'a HomeSpec,
    /// The operator's home of it ([`operator_home`]).
    pub operator: &'a LexicalPath,
    /// The home of the account.
    pub account: &'a LexicalPath,
    /// The uid that fleet runs as.
    pub uid: u32,
    /// What no role may reach.
    pub forbidden: &'a ForbiddenList,
    /// Items whose place a file of the launch takes ([`super::HarnessLaunch::replaced`]).
    pub replaced: &'a [&'static str],
    /// Files that fleet writes into the role's home, as paths below it.
    pub written: &'a [&'a str],
}

/// The operator's own harness home: what its variable names in the role's `env`, else in fleet's own
/// environment, else the usual place below the home of the account.
///
/// # Errors
/// One line about a value, or a home of the account, that is no plain absolute path. A wrong value is
/// not shown.
pub fn operator_home(spec: &HomeSpec, world: &World, role: &Role) -> Result<LexicalPath, String> {
    let written = role.env.get(spec.variable).map(|value| (value.expose(), "the role's `env`"));
    let own = world.env.0.get(spec.variable).filter(|value| !value.is_empty());
    let own = own.map(|value| (value, "fleet's own environment"));
    match written.or(own) {
        Some((value, place)) => LexicalPath::absolute(value)
            .map_err(|error| format!("`{}` in {place} names no directory: {error}", spec.variable)),
        None => LexicalPath::absolute(world.homes.os.as_str())
            .and_then(|home| home.join(spec.operator))
            .map_err(|error| format!("`{}/{}`: {error}", world.homes.os, spec.operator)),
    }
}

/// Finds the items. One that is not there, is not what it must be, belongs to somebody else or leads
/// to where no role may look is left out and named in [`SharedItems::absent`].
///
/// # Security
/// Everything that is returned passed the judge of the forbidden paths, with exactly one exception
/// each: it may lie directly in the operator's home of this very harness, under the name of the item.
/// A link from there to anything else in that home, to another harness's login or to a key does not
/// pass.
///
/// # Errors
/// One line if the operator's home cannot be looked at.
pub fn find(request: &SharedRequest<'_>, probe: &dyn PathProbe) -> Result<SharedItems, String> {
    let home = probe.resolve(request.operator).map_err(|error| error.to_string())?.path;
    let mut search = Search { request, probe, found: SharedItems::default() };
    search.found.home = Some(home);
    for item in request.spec.shared {
        if !request.replaced.contains(&item.name) {
            search.item(item);
        }
    }
    Ok(search.found)
}

struct Search<'a> {
    request: &'a SharedRequest<'a>,
    probe: &'a dyn PathProbe,
    found: SharedItems,
}

impl Search<'_> {
    fn item(&mut self, item: &SharedItem) {
        let base = if item.below_account { self.request.account } else { self.request.operator };
        let Ok(place) = base.join(item.name) else {
            return self.absent(item.name, "its name is no plain path");
        };
        let expected = match item.kind {
            SharedKind::File => FileKind::File,
            SharedKind::Directory | SharedKind::EachFile => FileKind::Directory,
        };
        let resolved = match self.look(item.name, &place, expected) {
            Ok(resolved) => resolved,
            Err(reason) => return self.absent(item.name, &reason),
        };
        match item.kind {
            SharedKind::EachFile => self.each_file(item, &place, &resolved.path),
            SharedKind::File | SharedKind::Directory => {
                self.share(item, item.name.to_owned(), &place, resolved);
            }
        }
    }

    fn each_file(&mut self, item: &SharedItem, place: &LexicalPath, directory: &LexicalPath) {
        let names = match self.probe.entries(directory, MAX_FILES + 1) {
            Ok(names) => names,
            Err(error) => return self.absent(item.name, &error.to_string()),
        };
        if names.len() > MAX_FILES {
            let reason = format!("holds more than {MAX_FILES} entries: the others are not shared");
            self.absent(item.name, &reason);
        }
        for name in names.into_iter().take(MAX_FILES).filter(|name| !name.starts_with('.')) {
            let Ok(file) = place.child(&name) else { continue };
            let name = format!("{}/{name}", item.name);
            match self.look(&name, &file, FileKind::File) {
                Ok(resolved) => self.share(item, name, &file, resolved),
                Err(reason) => self.absent(&name, &reason),
            }
        }
    }

    /// Looks at one place: what must be there, and nobody else's.
    fn look(
        &self,
        name: &str,
        place: &LexicalPath,
        expected: FileKind,
    ) -> Result<Resolved, String> {
        let resolved = self.probe.resolve(place).map_err(|error| error.to_string())?;
        let Some(object) = resolved.object else { return Err(format!("{place} does not exist")) };
        if object.kind != expected {
            let kind = if expected == FileKind::File { "regular file" } else { "directory" };
            return Err(format!("{place} is not a {kind}"));
        }
        let uid = self.request.uid;
        if object.uid != uid && object.uid != 0 {
            let owner = object.uid;
            return Err(format!("{place} belongs to uid {owner}, not to the fleet user"));
        }
        // Beside the items lie conversations, histories and tokens: a link to one of them is none of
        // the items.
        let home = self.found.home.as_ref();
        let nominal = home.and_then(|home| home.join(name).ok());
        let inside = home.is_some_and(|home| resolved.path.is_within(home));
        if inside && nominal.as_ref() != Some(&resolved.path) {
            return Err(format!("{place} leads to {}, which is not shared", resolved.path));
        }
        Ok(resolved)
    }

    fn share(&mut self, item: &SharedItem, name: String, place: &LexicalPath, resolved: Resolved) {
        if self.request.written.contains(&name.as_str()) {
            return;
        }
        let own = OwnDirs {
            operator: self.found.home.clone(),
            shared: vec![(resolved.path.clone(), base_name(&name))],
            ..OwnDirs::default()
        };
        let question = Question {
            side: Side::Source,
            written: place.as_str(),
            resolved: &resolved,
            mode: MountMode::ReadOnly,
            by_user: false,
            own: &own,
        };
        if let Err(conflict) = self.request.forbidden.judge(&question, self.probe) {
            return self.absent(&name, &conflict.to_string());
        }
        if let Some(how) = chosen_by_an_agent(&resolved, self.request.forbidden, self.probe) {
            return self.absent(&name, &how);
        }
        let target = resolved.path;
        let destination = if item.below_account { place.clone() } else { target.clone() };
        let link = (!item.below_account).then(|| name.clone());
        self.found.items.push(Shared { name, target, destination, link, login: item.login });
    }

    fn absent(&mut self, name: &str, reason: &str) {
        let (name, reason) = (name.to_owned(), reason.to_owned());
        self.found.absent.push(Absent { name, reason });
    }
}

fn base_name(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}
