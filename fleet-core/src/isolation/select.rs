//! Which backend, and what happens when none is usable (01 §2.10).

use super::policy::{Backend, BackendName, IsolationBlock, NetworkMode, OnUnavailable};
use crate::permissions::{Approval, Filesystem, Permissions};
use crate::port::ProbeFailure;

/// What to do when no backend is usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The launch is refused.
    Refuse {
        /// Why: names each backend with its reason, and the rule.
        message: String,
    },
    /// The role starts un-isolated, which is said wherever the role is shown.
    Unisolated {
        /// Why: names each backend with its reason.
        message: String,
    },
}

/// Backends to try, in order. `none` is a choice, not a failure.
///
/// Podman is taken only where it is named.
pub fn candidates(block: &IsolationBlock) -> Vec<BackendName> {
    match block.backend {
        Backend::Auto => vec![BackendName::Bubblewrap, BackendName::Landlock],
        Backend::Bubblewrap => vec![BackendName::Bubblewrap],
        Backend::Landlock => vec![BackendName::Landlock],
        Backend::Podman => vec![BackendName::Podman],
        Backend::None => vec![BackendName::None],
    }
}

/// Whether a candidate is less than what `auto` stands for: it is taken, and said to be less, only
/// where the role may start with less ([`strict`] says nothing).
pub fn is_lesser(block: &IsolationBlock, name: BackendName) -> bool {
    block.backend == Backend::Auto && name == BackendName::Landlock
}

/// Decides after every candidate has failed. `required` is the rule of the fleet that forbids a start
/// without isolation, as
/// [`Require::forbids_unisolated`](crate::policy::require::Require::forbids_unisolated) words it: it
/// outranks what the role says.
///
/// # Security
/// Refuses unless the operator *wrote* `on_unavailable: warn`, or left it out on a role that has
/// nothing to lose: no secrets, no extra writable path, no promise about the network, no blanket
/// approval. What a backend cannot enforce is always a refusal, and a list of hosts (`broker`,
/// `allowlist`) is never replaced by an open network, even where `warn` is written.
pub fn fallback(
    block: &IsolationBlock,
    permissions: Permissions,
    uid: u32,
    required: Option<&str>,
    failures: &[(BackendName, ProbeFailure)],
) -> Fallback {
    let reason = reason(block, failures);
    match refusal(block, permissions, uid, required, failures) {
        Some(rule) => Fallback::Refuse { message: format!("{reason}; not started: {rule}") },
        None => Fallback::Unisolated {
            message: format!("{reason}; `on_unavailable: warn` lets it start UN-ISOLATED"),
        },
    }
}

/// The rule by which a role must not start with less isolation than it asks for, if there is one.
/// The same rules as for [`fallback`]: a sandbox that does not hold is no better than none.
pub fn strict(
    block: &IsolationBlock,
    permissions: Permissions,
    uid: u32,
    required: Option<&str>,
) -> Option<String> {
    refusal(block, permissions, uid, required, &[])
}

fn reason(block: &IsolationBlock, failures: &[(BackendName, ProbeFailure)]) -> String {
    if failures.is_empty() {
        return format!("isolation backend `{}` is not available in this build", block.backend);
    }
    let each: Vec<String> = failures
        .iter()
        .map(|(name, failure)| format!("isolation backend `{name}` is not usable: {failure}"))
        .collect();
    each.join("; ")
}

/// The rule that forbids an un-isolated start, if one does.
fn refusal(
    block: &IsolationBlock,
    permissions: Permissions,
    uid: u32,
    required: Option<&str>,
    failures: &[(BackendName, ProbeFailure)],
) -> Option<String> {
    // What only the lesser one cannot do was not what was asked for.
    let cannot = failures.iter().any(|(name, failure)| {
        matches!(failure, ProbeFailure::CannotEnforce { .. }) && !is_lesser(block, *name)
    });
    if cannot {
        return Some("what was asked for is never replaced by less".to_owned());
    }
    let network = block.network();
    if network.lists_hosts() {
        return Some(format!("`network: {network}` cannot be enforced, and is never left open"));
    }
    if let Some(rule) = required {
        return Some(format!("{rule} forbids a start without isolation"));
    }
    match block.on_unavailable {
        Some(OnUnavailable::Strict) => return Some("`on_unavailable: strict`".to_owned()),
        Some(OnUnavailable::Warn) => {}
        None => {
            let at_stake = at_stake(block, permissions);
            if !at_stake.is_empty() {
                return Some(format!(
                    "`on_unavailable` is not written and the role has {}; write `warn` to start it \
                     un-isolated all the same",
                    at_stake.join(", ")
                ));
            }
        }
    }
    let unbounded = permissions.approval == Approval::Allow
        && permissions.filesystem == Filesystem::Unrestricted;
    (uid == 0 && unbounded).then(|| {
        "as root, `approval: allow` with `filesystem: unrestricted` needs isolation".to_owned()
    })
}

/// What makes a defaulted `warn` refuse.
fn at_stake(block: &IsolationBlock, permissions: Permissions) -> Vec<String> {
    let network = block.network();
    let held = [
        (!block.secrets.is_empty(), "`secrets`".to_owned()),
        (!block.fs_write.is_empty(), "`fs.write`".to_owned()),
        (
            matches!(network, NetworkMode::Deny | NetworkMode::Allowlist),
            format!("`network: {network}`"),
        ),
        (permissions.approval == Approval::Allow, "`approval: allow`".to_owned()),
    ];
    held.into_iter().filter(|(holds, _)| *holds).map(|(_, what)| what).collect()
}
