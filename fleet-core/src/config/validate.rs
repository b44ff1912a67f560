//! Rules across roles, and the top-level blocks that concern roles (01 §1.3, §1.4, §1.7, §1.13, §1.14).

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::decode::{Cx, Field, Path};
use super::keys;
use super::model::{FleetPolicy, Role, Unavailable};
use super::provenance::Provenance;
use super::require;
use super::role_keys::RoleKeys;
use super::schedules::{self, Roles};
use super::tree::{At, Node};
use super::unavailable::note;
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::id::RoleName;
use crate::policy::require::{Judged, Require, effective_approval, violations};

/// What the rules across roles need of one role: names and where they stand.
pub(super) struct Declared {
    pub(super) name: RoleName,
    pub(super) at: At,
    identity: Option<At>,
    wards: Vec<(RoleName, At)>,
    /// Identity of the owner channel.
    channel: Option<(String, At)>,
}

impl Declared {
    pub(super) fn new(name: RoleName, at: At, keys: &RoleKeys<'_>) -> Self {
        let wards = keys.oversee.iter().flat_map(|it| &it.value);
        let channel = keys.owner_channel.as_ref().and_then(|it| {
            let identity = it.value.iter().find(|entry| &*entry.key == "identity")?;
            match &identity.value.value {
                super::tree::Value::Scalar(text) => Some((text.text.to_string(), identity.at)),
                _ => None,
            }
        });
        Self {
            name,
            at,
            identity: keys.identity.as_ref().map(|it| it.at),
            wards: wards.map(|it| (it.value.role.clone(), it.at)).collect(),
            channel,
        }
    }
}

/// Identities that bind one by one, and references to roles.
pub(super) fn across_roles(
    declared: &[Declared],
    roles: &IndexMap<RoleName, Role>,
    cx: &mut Cx<'_>,
) {
    let names: HashSet<&RoleName> = declared.iter().map(|role| &role.name).collect();
    let mut taken: HashMap<&str, (&RoleName, At)> = HashMap::new();
    for role in declared {
        let Some(resolved) = roles.get(&role.name) else { continue };
        let own = (resolved.identity.as_str(), role.identity.unwrap_or(role.at), "identity");
        let channel =
            role.channel.iter().map(|(name, at)| (name.as_str(), *at, "owner_channel.identity"));
        for (identity, at, path) in std::iter::once(own).chain(channel) {
            if let Some((other, other_at)) = taken.get(identity) {
                let message = format!(
                    "`{identity}` is also the identity of role `{other}`: it binds only once"
                );
                let found = Diagnostic::error(Code::DuplicateName, message)
                    .at(cx.place(at))
                    .role(role.name.as_str())
                    .path(path)
                    .other(cx.place(*other_at));
                cx.sink.push(found);
            } else {
                taken.insert(identity, (&role.name, at));
            }
        }
        for (ward, at) in &role.wards {
            let message = if *ward == role.name {
                "a role cannot look after itself".to_owned()
            } else if names.contains(ward) {
                continue;
            } else {
                format!("there is no role `{ward}`")
            };
            let mut found = Diagnostic::error(Code::UnknownReference, message)
                .at(cx.place(*at))
                .role(role.name.as_str())
                .path("oversee");
            found.hint = did_you_mean(ward.as_str(), declared, cx);
            cx.sink.push(found);
        }
    }
}

/// What `policy.require` asks of every role. A role with an error of its own, or with one in the
/// defaults, is not judged: half of what it says was not read.
pub(super) fn requirements(
    require: &Require,
    roles: &IndexMap<RoleName, Role>,
    provenance: &Provenance,
    cx: &mut Cx<'_>,
) {
    if require.is_empty() {
        return;
    }
    let (mut wrong, mut shared) = (HashSet::new(), false);
    for error in cx.sink.errors() {
        match &error.role {
            Some(role) => _ = wrong.insert(role.clone()),
            None => shared |= error.path.starts_with("defaults"),
        }
    }
    if shared {
        return;
    }
    for role in roles.values().filter(|role| !wrong.contains(role.name.as_str())) {
        let harness = cx.options.harnesses.get(role.harness.as_str());
        let approval = effective_approval(role, harness.map(|it| &**it));
        for found in violations(require, Judged { role, approval: &approval }) {
            if cx.sink.is_full() {
                cx.sink.leave_out_error();
            } else {
                cx.sink.push(found.diagnostic(role, provenance));
            }
        }
    }
}

pub(super) fn did_you_mean(name: &str, declared: &[Declared], cx: &Cx<'_>) -> Option<String> {
    if cx.sink.is_crowded() {
        return None;
    }
    let names = declared.iter().map(|role| role.name.as_str()).filter(|other| *other != name);
    nearest(name, names).map(|near| format!("did you mean `{near}`?"))
}

/// What the top level of the base file says beside roles and defaults.
#[derive(Default)]
pub(super) struct TopLevel {
    pub(super) start_stagger_ms: u64,
    pub(super) policy: FleetPolicy,
    /// Keys that concern every role.
    pub(super) every_role: Vec<Unavailable>,
    /// Keys that concern named roles.
    pub(super) named: Vec<(RoleName, Unavailable)>,
    /// Keys that concern none.
    pub(super) unavailable: Vec<Unavailable>,
}

impl TopLevel {
    /// Hands what concerns roles to them.
    pub(super) fn distribute(&mut self, roles: &mut IndexMap<RoleName, Role>) {
        for role in roles.values_mut() {
            role.unavailable.extend(self.every_role.iter().cloned());
        }
        for (name, unavailable) in self.named.drain(..) {
            if let Some(role) = roles.get_mut(&name) {
                role.unavailable.push(unavailable);
            }
        }
    }

    /// Notes for what no fleet file has to say and yet isn't there.
    pub(super) fn note_defaults(&mut self) {
        let monitor = "waking agents by mail";
        self.unavailable.push(note("monitor", monitor, "type to an agent with `send`", None));
        let worklog = "rotating work logs";
        self.unavailable.push(note("worklog", worklog, "trim WORKLOG.md by hand", None));
    }
}

/// Reads the top level of the base file. `roles`, `defaults` and `vars` are read elsewhere.
pub(super) fn top_level(base: &Node, roles: Roles<'_>, cx: &mut Cx<'_>) -> TopLevel {
    let mut top = TopLevel::default();
    let field = Field { node: base, at: base.at, path: Path::Top };
    for entry in base.entries().unwrap_or_default() {
        let child = field.child(entry);
        match &*entry.key {
            "start_stagger_ms" if !child.node.is_null() => {
                top.start_stagger_ms = child.millis(cx).unwrap_or_default();
            }
            "policy" => {
                top.policy = require::policy(child, cx);
            }
            "loops" => schedules::loops(child, roles, &mut top, cx),
            "watchdogs" => schedules::watchdogs(child, roles, &mut top, cx),
            "messaging" | "tasks" | "rooms" | "agent_templates" | "room_templates" => {
                if let Some(key) = keys::TOP.iter().find(|key| key.name == &*entry.key) {
                    child.shape(cx, &key.kind);
                }
                let place = Some(cx.place(child.at));
                let what = format!("`{}`", entry.key);
                top.unavailable.push(note(&entry.key, &what, "leave it out", place));
            }
            _ => {}
        }
    }
    top
}
