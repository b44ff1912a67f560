//! The load itself: text in, [`Fleet`] and problems out.

use std::collections::HashMap;

use camino::Utf8PathBuf;
use indexmap::IndexMap;

use super::decode::{Cx, Field, Path};
use super::keys::{DEFAULTS, DROP_IN, ROLE, TOP, names};
use super::merge::{self, Defaults};
use super::model::Fleet;
use super::provenance::{Layer, Provenance, Spot};
use super::role_keys::{self, RoleKeys};
use super::schedules::Roles;
use super::tree::{At, Entry, MAX_REPEATED_BYTES, Node, read};
use super::validate::{self, Declared};
use super::vars::Vars;
use crate::diagnostic::{Code, Diagnostic, Severity, Sink};
use crate::harness::Harnesses;
use crate::id::{RESERVED_ROLE_NAMES, RoleName};
use crate::path::LexicalPath;

/// One file as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The file, canonical.
    pub path: Utf8PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Every file of a fleet, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSources {
    /// Where the base file is or would be.
    pub base_path: Utf8PathBuf,
    /// The base file; `None` if it does not exist and was not asked for by name.
    pub base: Option<SourceText>,
    /// Drop-ins in bytewise name order.
    pub drop_ins: Vec<SourceText>,
}

impl ConfigSources {
    /// One base file of this text, and no drop-ins.
    pub fn base_only(path: impl Into<Utf8PathBuf>, text: impl Into<Vec<u8>>) -> Self {
        let path = path.into();
        let base = Some(SourceText { path: path.clone(), bytes: text.into() });
        Self { base_path: path, base, drop_ins: Vec::new() }
    }
}

/// How strictly YAML is read (01 §1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum YamlMode {
    /// Anchors, aliases, tags and further documents are warnings.
    #[default]
    Compat,
    /// They are errors.
    Strict,
}

/// What a load needs to know beside the files.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions<'a> {
    /// How strictly YAML is read.
    pub yaml_mode: YamlMode,
    /// What `~` means.
    pub home: &'a LexicalPath,
    /// The registered harnesses.
    pub harnesses: &'a Harnesses,
}

impl<'a> LoadOptions<'a> {
    /// The compatible reading of YAML.
    pub fn new(home: &'a LexicalPath, harnesses: &'a Harnesses) -> Self {
        Self { yaml_mode: YamlMode::Compat, home, harnesses }
    }
}

/// The result of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The fleet; `None` if any problem is an error.
    pub fleet: Option<Fleet>,
    /// Every problem, ordered by file and line.
    pub diagnostics: Vec<Diagnostic>,
}

/// Loads a fleet. Pure, and total: any bytes give either a fleet or at least one error.
///
/// Every problem of the files is reported, not only the first; but a file that is not YAML at all ends
/// the load after the other files were read, since what follows would be guesswork.
///
/// # Security
/// No value of `env`, `secrets`, `harness_options` or `vars`, and none whose key names a secret, is
/// ever part of a diagnostic.
pub fn load(sources: &ConfigSources, options: &LoadOptions<'_>) -> Loaded {
    let base_path = sources.base.as_ref().map_or(&sources.base_path, |base| &base.path);
    let files: Vec<String> = std::iter::once(base_path)
        .chain(sources.drop_ins.iter().map(|file| &file.path))
        .map(ToString::to_string)
        .collect();
    let mut cx = Cx { files: &files, options, sink: Sink::default() };
    let fleet = read_all(sources, &mut cx).and_then(|trees| fleet(trees, &mut cx));
    let fleet = fleet.filter(|_| !cx.sink.has_errors());
    let mut diagnostics = cx.sink.finish(&files);
    if fleet.is_none() && diagnostics.iter().all(|it| it.severity != Severity::Error) {
        // Cannot happen; but a fleet that silently isn't there must not look like success.
        diagnostics.push(Diagnostic::error(Code::InvalidValue, "the fleet could not be loaded"));
    }
    Loaded { fleet, diagnostics }
}

/// Values that all roles together may inherit.
const MAX_INHERITED: usize = 1_000_000;

/// One tree per file, in the order of `Cx::files`. `None` if one has no tree.
fn read_all(sources: &ConfigSources, cx: &mut Cx<'_>) -> Option<Vec<Node>> {
    let nothing = SourceText { path: sources.base_path.clone(), bytes: Vec::new() };
    let base = sources.base.as_ref().unwrap_or(&nothing);
    let mut trees = Vec::new();
    let mut whole = true;
    for (index, source) in std::iter::once(base).chain(&sources.drop_ins).enumerate() {
        let file = u32::try_from(index).ok()?;
        let name = source.path.as_str();
        let Some(tree) = read(&source.bytes, file, name, cx.options.yaml_mode, &mut cx.sink) else {
            whole = false;
            continue;
        };
        if tree.entries().is_none() {
            let field = Field { node: &tree, at: tree.at, path: Path::Top };
            field.wrong_type(cx, "a mapping");
            whole = false;
        }
        trees.push(tree);
    }
    whole.then_some(trees)
}

fn fleet(mut trees: Vec<Node>, cx: &mut Cx<'_>) -> Option<Fleet> {
    let vars = Vars::read(trees.first()?, cx);
    for tree in &mut trees {
        vars.substitute(tree, cx);
    }
    let trees = trees;
    let base = trees.first()?;
    let top = Field { node: base, at: base.at, path: Path::Top };
    top.cursor(cx, TOP)?;
    for tree in &trees[1..] {
        drop_in_keys(tree, cx);
    }

    let defaults_entry = base.get("defaults");
    let defaults_keys = match defaults_entry {
        Some(entry) => role_keys::decode(top.child(entry), DEFAULTS, cx),
        None => RoleKeys::default(),
    };
    let defaults = Defaults::new(defaults_keys, defaults_entry.map(|entry| &entry.value))?;

    let roles = trees.iter().filter_map(|tree| tree.get("roles")?.value.entries());
    let roles = roles.map(<[Entry]>::len).sum::<usize>();
    if let Some(entry) = defaults_entry {
        let (nodes, bytes) = entry.value.size();
        let nodes = nodes.saturating_mul(roles);
        if nodes > MAX_INHERITED || bytes.saturating_mul(roles) > MAX_REPEATED_BYTES {
            let message = format!("{roles} roles cannot inherit so much");
            top.child(entry).report(cx, Code::Limit, message, |it| {
                it.allowed(["1000000 inherited values and 16 MiB of inherited text in all"])
            });
            return None;
        }
    }

    let mut seen = Seen::default();
    let mut roles = IndexMap::new();
    let mut role_spots = IndexMap::new();
    let mut declared = Vec::new();
    for tree in &trees {
        let file = Field { node: tree, at: tree.at, path: Path::Top };
        let Some(block) = tree.get("roles").map(|entry| file.child(entry)) else { continue };
        for entry in block.entries(cx).unwrap_or_default() {
            let name = seen.name(entry, &block, cx);
            let field = Field { node: &entry.value, at: entry.at, path: Path::Role(&entry.key) };
            let keys = if entry.value.is_null() {
                RoleKeys::default()
            } else {
                role_keys::decode(field, ROLE, cx)
            };
            let Some(name) = name else { continue };
            declared.push(Declared::new(name.clone(), entry.at, &keys));
            let Some((role, spots)) = merge::resolve(&name, &field, keys, &defaults, cx) else {
                continue;
            };
            role_spots.insert(entry.key.clone(), spots);
            roles.insert(name, role);
        }
    }
    if let Some(entry) = defaults_entry {
        defaults.check_unused_options(entry.at, roles.values(), cx);
    }
    validate::across_roles(&declared, &roles, cx);
    let mut settings =
        validate::top_level(base, Roles { declared: &declared, resolved: &roles }, cx);
    settings.distribute(&mut roles);
    if !roles.is_empty() {
        settings.note_defaults();
    }
    let provenance = provenance(base, role_spots, cx);
    validate::requirements(&settings.policy.require, &roles, &provenance, cx);
    Some(Fleet {
        source_files: cx.files.iter().map(Into::into).collect(),
        start_stagger_ms: settings.start_stagger_ms,
        policy: settings.policy,
        roles,
        unavailable: settings.unavailable,
        provenance,
    })
}

/// A drop-in holds roles and nothing else.
fn drop_in_keys(tree: &Node, cx: &mut Cx<'_>) {
    let file = Field { node: tree, at: tree.at, path: Path::Top };
    for entry in tree.entries().unwrap_or_default() {
        if &*entry.key == "roles" {
            continue;
        }
        if names(TOP).any(|name| name == &*entry.key) {
            let field = file.child(entry);
            let place = cx.place(entry.at);
            field.report(cx, Code::UnknownKey, "a drop-in may hold only `roles`", |it| {
                it.at(place).hint(format!("move `{}` to the base file", entry.key))
            });
        } else {
            file.unknown_key(cx, entry, DROP_IN);
        }
    }
}

/// Names of the roles so far.
#[derive(Default)]
struct Seen {
    /// By the name in lower case: on some file systems it is one directory.
    by_fold: HashMap<String, (RoleName, At)>,
}

impl Seen {
    /// The name of a role, unless it is not valid or taken.
    fn name(&mut self, entry: &Entry, block: &Field<'_, '_>, cx: &mut Cx<'_>) -> Option<RoleName> {
        let problem = |code, message: String| Diagnostic::error(code, message);
        let Ok(name) = entry.key.parse::<RoleName>() else {
            let mut found = problem(Code::InvalidValue, "is not a valid name for a role".into())
                .at(cx.place(entry.at))
                .path(block.path.to_string())
                .found(&entry.key)
                .allowed([RoleName::ALLOWED]);
            if RESERVED_ROLE_NAMES.contains(&&*entry.key) {
                found = found.hint(format!("`{}` is a word of the command line", entry.key));
            }
            cx.sink.push(found);
            return None;
        };
        let folded = name.as_str().to_ascii_lowercase();
        let Some((other, at)) = self.by_fold.get(&folded) else {
            self.by_fold.insert(folded, (name.clone(), entry.at));
            return Some(name);
        };
        let (code, message) = if *other == name {
            (Code::DuplicateName, "the role is declared twice".to_owned())
        } else {
            let message = format!(
                "differs from role `{other}` only in the case of letters: both would share a directory"
            );
            (Code::NameCollision, message)
        };
        let found =
            problem(code, message).at(cx.place(entry.at)).role(name.as_str()).other(cx.place(*at));
        cx.sink.push(found);
        None
    }
}

fn provenance(base: &Node, roles: IndexMap<Box<str>, Spot>, cx: &Cx<'_>) -> Provenance {
    let mut root = IndexMap::new();
    for entry in base.entries().unwrap_or_default() {
        let layer = match &*entry.key {
            "roles" => continue,
            "defaults" => Layer::Default,
            _ => Layer::Top,
        };
        root.insert(entry.key.clone(), Spot::of(entry, layer));
    }
    let at = base.get("roles").map_or(base.at, |entry| entry.at);
    root.insert("roles".into(), Spot::map(at, Layer::Top, roles));
    Provenance::new(cx.files.to_vec(), root)
}
