//! Defaults under a role (01 §1.6): who wins, what is inherited and what not, and what follows from
//! both together. Defaults exist here and nowhere else.

use indexmap::IndexMap;

use super::decode::{Cx, Field, Path};
use super::keys::{AUTH_PROXY, OWNER_CHANNEL};
use super::model::{Role, Session, Unavailable};
use super::models::{self, Models};
use super::options::Effective;
use super::provenance::{Layer, Spot};
use super::role_env::{Env, EnvPass, is_hijack};
use super::role_keys::{ApprovalKey, PermissionKeys, RoleKeys, Said, Written};
use super::role_later::{merge_monitor, merge_worklog};
use super::tree::{At, Entry, Node};
use super::unavailable::not_built;
use crate::diagnostic::{Code, Diagnostic};
use crate::harness::Options;
use crate::id::{HarnessId, IdentityName, RoleName};
use crate::isolation::{Backend, Resources};
use crate::permissions::{Approval, Filesystem, Permissions, Unattended};
use crate::redact::Redacted;

/// The harness of a role that names none.
const DEFAULT_HARNESS: &str = "claude-code";

/// `defaults:`, read once.
pub(super) struct Defaults<'n> {
    pub(super) keys: RoleKeys<'n>,
    node: Option<&'n Node>,
    harness: HarnessId,
    spots: IndexMap<&'n str, Spot>,
}

impl<'n> Defaults<'n> {
    pub(super) fn new(keys: RoleKeys<'n>, node: Option<&'n Node>) -> Option<Self> {
        let harness = match &keys.harness {
            Some(written) => written.value.clone(),
            None => DEFAULT_HARNESS.parse().ok()?,
        };
        let entries = node.and_then(Node::entries).unwrap_or_default();
        let spots = entries.iter().map(|it| (&*it.key, Spot::of(it, Layer::Default))).collect();
        Some(Self { keys, node, harness, spots })
    }

    /// Checks the options of the harness where no role of these inherits them: nobody else does.
    pub(super) fn check_unused_options<'r>(
        &self,
        at: At,
        mut roles: impl Iterator<Item = &'r Role>,
        cx: &mut Cx<'_>,
    ) {
        let (false, Some(node)) = (self.keys.options.is_empty(), self.node) else { return };
        if roles.any(|role| role.harness == self.harness) {
            return;
        }
        let harnesses: Vec<&str> = match &self.keys.harness {
            Some(written) => vec![written.value.as_str()],
            None => cx.options.harnesses.ids().collect(),
        };
        let field = Field { node, at, path: Path::Key(&Path::Top, "defaults") };
        Effective::new(&[], self.keys.options).check_unused(&harnesses, &field, cx);
    }
}

/// How a key of the defaults combines with the role's own.
fn levels(key: &str) -> usize {
    match key {
        "permissions" | "env" | "auth_proxy" | "monitor" | "worklog" | "harness_options" => 1,
        "session_options" | "owner_channel" => 2,
        _ => 0,
    }
}

/// Unites a role with the defaults. `None` only after an error.
pub(super) fn resolve<'n>(
    name: &RoleName,
    field: &Field<'n, '_>,
    mut keys: RoleKeys<'n>,
    defaults: &'n Defaults<'n>,
    cx: &mut Cx<'_>,
) -> Option<(Role, Spot)> {
    let harness = keys.harness.as_ref().map_or(&defaults.harness, |it| &it.value).clone();
    let same = harness == defaults.harness;
    let inherited = |key: &str| same || !matches!(key, "model" | "model_chain" | "harness_options");
    refused_keys(&harness, same, field, defaults, cx);

    let base = &defaults.keys;
    let default_options = if same { base.options } else { &[] };
    let options = Effective::new(keys.options, default_options);
    let options = match said_harness(&keys, field.node, defaults) {
        // Reported already; whose options these are is not known.
        SaidHarness::Unknown => Options::new(),
        SaidHarness::Nothing if options.lacks_command(&harness, field, defaults.node, cx) => {
            Options::new()
        }
        SaidHarness::Nothing if !is_registered(&harness, field, cx) => Options::new(),
        SaidHarness::Nothing | SaidHarness::Known => options.check(&harness, field, cx),
    };
    let isolation = keys.isolation.as_ref().or(base.isolation.as_ref()).cloned();
    let Models { model, chain, env } = models::resolve(&mut keys, base, &harness, same, field, cx);
    let wrapped = isolation.as_ref().is_some_and(|layer| {
        layer.block.backend != Backend::None || layer.block.resources != Resources::default()
    });
    if wrapped {
        hijacks(&env, &keys.env_pass, field, cx);
    }
    let permissions = permissions(&[base.permissions.as_ref(), keys.permissions.as_ref()]);
    let session = keys.session.as_ref().or(base.session.as_ref());
    let unavailable = unavailable(&keys, base, &harness, field, defaults, cx);
    let worklog = merge_worklog(
        keys.worklog.as_ref().map(|it| it.value),
        base.worklog.as_ref().map(|it| it.value),
    );
    if let Some(worklog) = worklog
        && worklog.keep_tail_kb >= worklog.max_kb
    {
        let at = keys.worklog.as_ref().or(base.worklog.as_ref()).map_or(field.at, |it| it.at);
        let message = "`keep_tail_kb` must be less than `max_kb`";
        conflict(field, "worklog", at, message, cx);
    }
    let identity = match keys.identity.take() {
        Some(written) => written.value,
        None => default_identity(name, field, cx)?,
    };
    let max_tokens = keys.max_tokens.or_else(|| {
        // A default that this harness refuses is meant for the other one.
        let refused = !same && refuses(&harness, "max_tokens", cx);
        base.max_tokens.filter(|_| !refused)
    });
    let registered = cx.options.harnesses.get(harness.as_str());
    let write_dirs = registered.map(|it| it.write_dirs(&options)).unwrap_or_default();
    let role = Role {
        name: name.clone(),
        source_file: cx.files.get(field.at.file as usize)?.into(),
        identity,
        session: session.map_or(Session::Tmux, |it| it.value),
        boot_grace_ms: keys.boot_grace_ms.or(base.boot_grace_ms),
        permissions,
        permissions_declared: keys.permissions.is_some() || base.permissions.is_some(),
        cwd: keys.cwd,
        coordinator: keys.coordinator,
        mission: keys.mission,
        persona: keys.persona,
        bio: keys.bio,
        briefing_file: keys.briefing_file,
        model,
        model_chain: chain,
        max_tokens,
        autocompact_pct: keys.autocompact_pct,
        env: env.into_iter().map(|(name, it)| (name, it.value)).collect(),
        env_pass: keys.env_pass.into_iter().map(|it| it.value).collect(),
        oversee: keys
            .oversee
            .map(|it| it.value.into_iter().map(|ward| ward.value).collect())
            .unwrap_or_default(),
        harness_options: Redacted::new(options),
        write_dirs,
        isolation: isolation.map(|layer| layer.block),
        monitor: merge_monitor(
            keys.monitor.as_ref().map(|it| &it.value),
            base.monitor.as_ref().map(|it| &it.value),
        ),
        worklog,
        unavailable,
        harness,
    };
    Some((role, spots(field, defaults, inherited)))
}

/// What a role and the defaults say of its harness.
enum SaidHarness {
    Nothing,
    Known,
    /// Something that was refused.
    Unknown,
}

fn said_harness(keys: &RoleKeys<'_>, role: &Node, defaults: &Defaults<'_>) -> SaidHarness {
    let written = |node: &Node| node.get("harness").is_some();
    let said = |known: bool| if known { SaidHarness::Known } else { SaidHarness::Unknown };
    if written(role) {
        said(keys.harness.is_some())
    } else if defaults.node.is_some_and(written) {
        said(defaults.keys.harness.is_some())
    } else {
        SaidHarness::Nothing
    }
}

/// The places of the role's own and inherited values.
fn spots(field: &Field<'_, '_>, defaults: &Defaults<'_>, inherited: impl Fn(&str) -> bool) -> Spot {
    let mut spots: IndexMap<Box<str>, Spot> = IndexMap::new();
    for entry in field.node.entries().unwrap_or_default() {
        let mut spot = Spot::of(entry, Layer::Role);
        if let Some(default) = defaults.spots.get(&*entry.key)
            && inherited(&entry.key)
        {
            spot = spot.over(default, levels(&entry.key));
        }
        spots.insert(entry.key.clone(), spot);
    }
    for (key, spot) in &defaults.spots {
        if !spots.contains_key(*key) && inherited(key) {
            spots.insert((*key).into(), spot.clone());
        }
    }
    Spot::map(field.at, Layer::Role, spots)
}

fn default_identity(
    name: &RoleName,
    field: &Field<'_, '_>,
    cx: &mut Cx<'_>,
) -> Option<IdentityName> {
    let identity = name.as_str().parse().ok();
    if identity.is_none() {
        field.report(cx, Code::InvalidValue, format!("`{name}` cannot be an identity"), |it| {
            it.hint("write another `identity`").allowed([IdentityName::ALLOWED])
        });
    }
    identity
}

/// An error at a place that may lie in the defaults, about this role.
pub(super) fn conflict(field: &Field<'_, '_>, key: &str, at: At, message: &str, cx: &mut Cx<'_>) {
    let here = Field { path: Path::Key(&field.path, key), ..*field };
    let mut diagnostic = here.dress(cx, Diagnostic::error(Code::Conflict, message));
    diagnostic.place = Some(cx.place(at));
    cx.sink.push(diagnostic);
}

/// Reports, at the role, a default harness that this program does not have.
fn is_registered(harness: &HarnessId, field: &Field<'_, '_>, cx: &mut Cx<'_>) -> bool {
    let registered: Vec<String> = cx.options.harnesses.ids().map(str::to_owned).collect();
    let known = registered.iter().any(|id| id == harness.as_str());
    if !known {
        let message =
            format!("no `harness` is written, and the default `{harness}` does not exist here");
        field.report(cx, Code::MissingKey, message, |it| it.allowed(registered));
    }
    known
}

fn refuses(harness: &HarnessId, key: &str, cx: &Cx<'_>) -> bool {
    let harness = cx.options.harnesses.get(harness.as_str());
    harness.is_some_and(|it| it.refused_keys().iter().any(|(refused, _)| *refused == key))
}

/// Written keys that mean nothing to the harness. Those of the defaults count if they were written for
/// this harness.
fn refused_keys(
    harness: &HarnessId,
    same: bool,
    field: &Field<'_, '_>,
    defaults: &Defaults<'_>,
    cx: &mut Cx<'_>,
) {
    let Some(registered) = cx.options.harnesses.get(harness.as_str()) else { return };
    let top = Path::Top;
    for (key, reason) in registered.refused_keys() {
        let own = find(field.node, key).map(|found| (found, field.path));
        let found = own.or_else(|| {
            let node = defaults.node.filter(|_| same)?;
            Some((find(node, key)?, Path::Key(&top, "defaults")))
        });
        let Some((entry, parent)) = found else { continue };
        if entry.value.is_null() {
            continue;
        }
        let here = Field { node: &entry.value, at: entry.at, path: Path::Key(&parent, key) };
        let message = format!("has no meaning for the harness `{harness}`");
        here.report(cx, Code::Unsupported, message, |it| it.hint(*reason));
    }
}

/// The entry at a dotted path.
pub(super) fn find<'n>(node: &'n Node, path: &str) -> Option<&'n Entry> {
    match path.split_once('.') {
        Some((key, rest)) => find(&node.get(key)?.value, rest),
        None => node.get(path),
    }
}

/// Variables that would act on what wraps the agent, outside its sandbox.
fn hijacks(env: &Env, env_pass: &EnvPass, field: &Field<'_, '_>, cx: &mut Cx<'_>) {
    let written = env.iter().map(|(name, it)| (name.as_str(), "env", it.at));
    let passed = env_pass.iter().map(|it| (it.value.as_str(), "env_pass", it.at));
    for (name, key, at) in written.chain(passed) {
        if is_hijack(name) {
            let message = format!("`{name}` would act outside the sandbox too");
            conflict(field, key, at, &message, cx);
        }
    }
}

fn permissions(layers: &[Option<&Written<PermissionKeys>>]) -> Permissions {
    let mut merged = PermissionKeys::default();
    for layer in layers.iter().flatten() {
        merged.approval = layer.value.approval.or(merged.approval);
        merged.filesystem = layer.value.filesystem.or(merged.filesystem);
        merged.unattended = layer.value.unattended.or(merged.unattended);
    }
    let defaults = Permissions::default();
    let approval = match merged.approval {
        Some(ApprovalKey::Deny) => {
            return Permissions {
                approval: Approval::Ask,
                filesystem: Filesystem::ReadOnly,
                unattended: Unattended::Deny,
            };
        }
        Some(ApprovalKey::Word(approval)) => approval,
        None => defaults.approval,
    };
    Permissions {
        approval,
        filesystem: merged.filesystem.unwrap_or(defaults.filesystem),
        unattended: merged.unattended.unwrap_or(defaults.unattended),
    }
}

/// What was written, on the role or in the defaults, and is not in this build.
fn unavailable(
    keys: &RoleKeys<'_>,
    base: &RoleKeys<'_>,
    harness: &HarnessId,
    field: &Field<'_, '_>,
    defaults: &Defaults<'_>,
    cx: &mut Cx<'_>,
) -> Vec<Unavailable> {
    fn at<'w, T>(
        own: Option<&'w Written<T>>,
        base: Option<&'w Written<T>>,
    ) -> Option<&'w Written<T>> {
        own.or(base)
    }
    let mut list = Vec::new();
    let mut add = |key: &str, what: &str, instead: &str, at: Option<At>, cx: &Cx<'_>| {
        list.push(not_built(key, what, instead, at.map(|at| cx.place(at))));
    };
    let same = *harness == defaults.harness;
    let chain = keys.model_chain.as_ref().or_else(|| base.model_chain.as_ref().filter(|_| same));
    if let Some(written) = chain {
        let instead = "write the first of them as `model`";
        add("model_chain", "falling back to another model", instead, Some(written.at), cx);
    }
    let session = at(keys.session.as_ref(), base.session.as_ref());
    if let Some(written) = session.filter(|it| it.value == Session::Acp) {
        add("session", "`session: acp`", "write `session: tmux`", Some(written.at), cx);
    }
    if let Some(written) = keys.acp.or(base.acp) {
        let instead = "leave `session_options.acp` out";
        add("session_options.acp", "an ACP session", instead, Some(written), cx);
    }
    let monitor = [keys.monitor.as_ref(), base.monitor.as_ref()];
    if let Some(written) = monitor.into_iter().flatten().find(|it| it.value.any) {
        add("monitor", "waking an agent by mail", "leave `monitor` out", Some(written.at), cx);
    }
    let worklog = at(keys.worklog.as_ref(), base.worklog.as_ref());
    if let Some(written) = worklog.filter(|it| it.value != Said::Nothing) {
        let instead = "leave `worklog` out or write `worklog: false`";
        add("worklog", "rotating the work log", instead, Some(written.at), cx);
    }
    if let Some(written) = at_of(keys.auth_proxy.as_ref(), base.auth_proxy.as_ref()) {
        require_keys(
            "auth_proxy",
            AUTH_PROXY,
            keys.auth_proxy.as_ref(),
            base.auth_proxy.as_ref(),
            field,
            cx,
        );
        if harness.as_str() != DEFAULT_HARNESS {
            conflict(field, "auth_proxy", written, "is for the harness `claude-code` only", cx);
        }
        add("auth_proxy", "a credential proxy", "leave `auth_proxy` out", Some(written), cx);
    }
    if let Some(written) = keys.managed_cli {
        let instead = "leave `managed_cli` out";
        add("managed_cli", "running fleet commands as an agent", instead, Some(written), cx);
    }
    if let Some(written) = at_of(keys.owner_channel.as_ref(), base.owner_channel.as_ref()) {
        require_keys(
            "owner_channel",
            OWNER_CHANNEL,
            keys.owner_channel.as_ref(),
            base.owner_channel.as_ref(),
            field,
            cx,
        );
        if session.is_none_or(|it| it.value != Session::Acp) {
            conflict(field, "owner_channel", written, "needs `session: acp`", cx);
        }
        add("owner_channel", "an owner channel", "leave `owner_channel` out", Some(written), cx);
    }
    if let Some(written) = keys.oversee.as_ref().filter(|it| !it.value.is_empty()) {
        add("oversee", "looking after other roles", "leave `oversee` out", Some(written.at), cx);
    }
    let isolation = keys.isolation.as_ref().or(defaults.keys.isolation.as_ref());
    list.extend(isolation.iter().flat_map(|layer| layer.unavailable.iter().cloned()));
    list
}

fn at_of<T>(own: Option<&Written<T>>, base: Option<&Written<T>>) -> Option<At> {
    own.or(base).map(|it| it.at)
}

/// Demands the required keys of a block that is merged key by key.
fn require_keys(
    block: &str,
    table: &'static [super::keys::Key],
    own: Option<&Written<&[Entry]>>,
    base: Option<&Written<&[Entry]>>,
    field: &Field<'_, '_>,
    cx: &mut Cx<'_>,
) {
    let layers = [own, base];
    let has = |name: &str| {
        layers.iter().flatten().any(|layer| layer.value.iter().any(|entry| &*entry.key == name))
    };
    for key in table.iter().filter(|key| key.default == "required" && !has(key.name)) {
        let here = Field { path: Path::Key(&field.path, block), ..*field };
        let message = format!("`{}` is missing", key.name);
        let mut diagnostic = here.dress(cx, Diagnostic::error(Code::MissingKey, message));
        diagnostic.place = at_of(own, base).map(|at| cx.place(at));
        cx.sink.push(diagnostic);
    }
}
