//! What a role's sandbox lets through, what it leaves open, and what of it was observed.

use fleet_adapters::runner::observe;
use fleet_core::config::{Fleet, Role};
use fleet_core::isolation::{
    BackendName, EnforcementLevel, EnforcementRow, IsolationPolicy, Item, MountMode, NetworkMode,
};
use fleet_core::path::LexicalPath;
use fleet_core::status::RoleState;

use super::{Check, Level};
use crate::app::App;
use crate::resolved::ResolvedRole;

const ID: &str = "isolation";

fn row(role: &Role, what: &str, level: Level, detail: impl Into<String>) -> Check {
    let name = role.name.as_str();
    Check::new(ID, level, detail).role(name).named(&format!("{name} {what}"))
}

/// Every check of one role that has to do with its sandbox, but whether it can be had.
pub(super) async fn checks(app: &App, fleet: &Fleet, resolved: &ResolvedRole<'_>) -> Vec<Check> {
    let role = resolved.role;
    let mut checks = Vec::new();
    if let Some(policy) = resolved.policy.as_ref().filter(|_| resolved.problems.is_empty()) {
        checks.extend(network(app, resolved, policy));
        checks.extend(overlays(role, policy, &sharing(fleet, role)));
    }
    checks.extend(observed(app, fleet, resolved).await);
    checks
}

/// What can be reached. That a model cannot is told by the checks of the harness.
fn network(app: &App, resolved: &ResolvedRole<'_>, policy: &IsolationPolicy) -> Option<Check> {
    let role = resolved.role;
    let backend = app.backend(resolved.backend?)?;
    if backend.name() == BackendName::None {
        return None;
    }
    let mode = policy.network;
    if !backend.enforces_network(mode) {
        let detail = format!("`network: {mode}` cannot be enforced by {}", backend.name());
        return Some(
            row(role, "network", Level::Fail, detail)
                .fix("write `backend: bubblewrap`, or another `network`"),
        );
    }
    let needs_model = app
        .runtime
        .harnesses
        .get(role.harness.as_str())
        .is_some_and(|harness| harness.prerequisite().is_some());
    if mode == NetworkMode::Deny && needs_model {
        return None;
    }
    Some(row(role, "network", Level::Pass, endpoints(policy, backend.name())))
}

fn endpoints(policy: &IsolationPolicy, backend: BackendName) -> String {
    let mode = policy.network;
    match mode {
        NetworkMode::Allow if backend == BackendName::Landlock => {
            format!("{mode}: the host's network, with its loopback services")
        }
        NetworkMode::Deny if backend == BackendName::Landlock => {
            format!("{mode}: nothing, not even loopback")
        }
        NetworkMode::Allow => {
            format!("{mode}: the host's network, with its loopback services and abstract sockets")
        }
        NetworkMode::Deny => format!("{mode}: nothing but its own loopback"),
        NetworkMode::Broker | NetworkMode::Allowlist if policy.reachable.is_empty() => {
            format!("{mode}: nothing")
        }
        NetworkMode::Broker | NetworkMode::Allowlist => {
            let rules: Vec<String> = policy.reachable.iter().map(ToString::to_string).collect();
            format!("{mode}: {}", rules.join(", "))
        }
    }
}

/// Other roles with the same working directory.
pub(super) fn sharing<'a>(fleet: &'a Fleet, role: &Role) -> Vec<&'a str> {
    let same =
        |other: &&Role| other.name != role.name && role.cwd.is_some() && other.cwd == role.cwd;
    fleet.roles.values().filter(same).map(|other| other.name.as_str()).collect()
}

/// What an agent can leave behind that acts outside of its sandbox later, or in another one.
fn overlays(role: &Role, policy: &IsolationPolicy, sharing: &[&str]) -> Option<Check> {
    let mut risks = policy.residual_risks.clone();
    let writes =
        policy.covering(&policy.cwd).is_some_and(|mount| mount.mode == MountMode::ReadWrite);
    if writes && !sharing.is_empty() {
        risks.push(format!("writes to the same `cwd` as {}", sharing.join(", ")));
    }
    (!risks.is_empty()).then(|| {
        row(role, "overlays", Level::Warn, risks.join("; "))
            .fix("look at what it leaves before you run it outside; a `cwd` for each role")
    })
}

/// What the launcher saw and the sandbox answered, for a role that runs.
async fn observed(app: &App, fleet: &Fleet, resolved: &ResolvedRole<'_>) -> Option<Check> {
    let role = resolved.role;
    role.isolation.as_ref()?;
    let view = observe::role(&app.runtime, Some(fleet), &role.name).await;
    let live = matches!(view.observed.state, RoleState::Running | RoleState::Starting);
    let backend = view
        .status
        .as_ref()
        .and_then(|status| status.isolation.as_ref())
        .map(|isolation| isolation.backend)
        .filter(|backend| *backend != BackendName::None)?;
    let promised = app.backend(backend).zip(resolved.policy.as_ref());
    let promised = promised.map_or_else(Vec::new, |(backend, policy)| backend.promise(policy));
    live.then(|| judged(role, &view.enforcement, &promised))
}

/// Whether a row is what its backend promises, and that is not everything.
fn as_promised(row: &EnforcementRow, promised: &[EnforcementRow]) -> bool {
    row.level != EnforcementLevel::Enforced
        && promised.iter().any(|it| it.item == row.item && it.level == row.level)
}

fn judged(role: &Role, rows: &[EnforcementRow], promised: &[EnforcementRow]) -> Check {
    let name = &role.name;
    if rows.is_empty() {
        return row(role, "observed", Level::Warn, "nothing was observed of its running sandbox")
            .fix(format!("`ours-fleet restart {name}`"));
    }
    let weak: Vec<&EnforcementRow> =
        rows.iter().filter(|row| row.level != EnforcementLevel::Enforced).collect();
    let Some(worst) =
        weak.iter().find(|row| row.level == EnforcementLevel::Missing).or(weak.first())
    else {
        let detail = format!("all {} rows hold, seen from outside and from inside", rows.len());
        return row(role, "observed", Level::Pass, detail);
    };
    if weak.iter().all(|row| as_promised(row, promised) && !is_cap(row.item)) {
        let items: Vec<&str> = weak.iter().map(|row| row.item.as_str()).collect();
        let detail = format!(
            "all {} rows are as promised, but its backend does not promise everything: {}",
            rows.len(),
            items.join(", ")
        );
        return row(role, "observed", Level::Warn, detail).fix(format!(
            "`ours-fleet status {name}` says what; `backend: bubblewrap` holds more"
        ));
    }
    let fails = |row: &&EnforcementRow| {
        row.level == EnforcementLevel::Missing && !is_cap(row.item) && !as_promised(row, promised)
    };
    let worst = weak.iter().copied().find(fails).unwrap_or(worst);
    let level = if fails(&worst) { Level::Fail } else { Level::Warn };
    let detail = format!(
        "{} of {} rows do not fully hold; {}: {}",
        weak.len(),
        rows.len(),
        worst.item.as_str(),
        worst.evidence
    );
    row(role, "observed", level, detail).fix(format!(
        "`ours-fleet status {name}` shows each; `ours-fleet restart {name}` tries again"
    ))
}

/// A missing cap never costs the sandbox (01 §2.10).
fn is_cap(item: Item) -> bool {
    matches!(item, Item::Memory | Item::Pids | Item::Cpu)
}

/// Whether what types into a terminal is stopped, for the sandboxes that roles ask for.
pub(super) fn terminal(app: &App, promises: &[Vec<EnforcementRow>]) -> Option<Check> {
    const ID: &str = "isolation: terminal";
    if promises.is_empty() {
        return None;
    }
    let filtered = promises.iter().all(|rows| {
        rows.iter()
            .any(|row| row.item == Item::SystemCalls && row.level == EnforcementLevel::Enforced)
    });
    let kernel = LexicalPath::absolute("/proc/sys/dev/tty/legacy_tiocsti")
        .ok()
        .and_then(|path| app.probe().head(&path, 1).ok());
    let kernel = match kernel.as_deref() {
        Some(b"0") => "this kernel refuses it to everybody as well",
        _ => "this kernel alone would allow it",
    };
    Some(if filtered {
        let detail = format!("the system call filter refuses typing into the terminal; {kernel}");
        Check::new(ID, Level::Pass, detail)
    } else {
        Check::new(ID, Level::Fail, "nothing keeps a sandbox from typing into the terminal")
            .fix("write `backend: bubblewrap`")
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::fleet as fleet_of;
    use super::*;

    fn enforcement(item: Item, level: EnforcementLevel) -> EnforcementRow {
        EnforcementRow { item, asked: String::new(), level, evidence: "seen".to_owned() }
    }

    use EnforcementLevel::{Degraded, Enforced, Missing};

    #[rstest]
    #[case(&[], Level::Warn, "nothing was observed")]
    #[case(&[(Item::Ipc, Enforced), (Item::Network, Enforced)], Level::Pass, "all 2 rows hold")]
    #[case(&[(Item::Ipc, Degraded), (Item::Network, Missing)], Level::Fail, "2 of 2 rows do not fully hold; network: seen")]
    #[case(&[(Item::Ipc, Degraded), (Item::Network, Enforced)], Level::Warn, "1 of 2 rows do not fully hold; ipc: seen")]
    #[case(&[(Item::Memory, Missing), (Item::Network, Enforced)], Level::Warn, "memory: seen")]
    fn what_was_observed_is_judged_by_its_worst_row(
        #[case] rows: &[(Item, EnforcementLevel)],
        #[case] level: Level,
        #[case] part: &str,
    ) {
        let fleet = fleet_of("roles: {A: {isolation: {network: deny}}}");
        let role = fleet.roles.values().next().expect("one");
        let rows: Vec<_> = rows.iter().map(|(item, level)| enforcement(*item, *level)).collect();
        let check = judged(role, &rows, &[]);
        assert_eq!((check.name.as_str(), check.level), ("isolation: A observed", level));
        assert!(check.detail.contains(part), "{}", check.detail);
        assert_eq!(check.fix.is_some(), level != Level::Pass);
    }

    #[rstest]
    #[case(&[(Item::Hostname, Missing), (Item::Ipc, Enforced)], Level::Warn, "all 2 rows are as promised")]
    #[case(&[(Item::Hostname, Missing), (Item::Ipc, Missing)], Level::Fail, "ipc: seen")]
    #[case(&[(Item::Hostname, Missing), (Item::Ipc, Degraded)], Level::Warn, "hostname: seen")]
    #[case(&[(Item::Hostname, Enforced), (Item::Ipc, Enforced)], Level::Pass, "all 2 rows hold")]
    fn what_a_backend_does_not_promise_is_no_failure(
        #[case] rows: &[(Item, EnforcementLevel)],
        #[case] level: Level,
        #[case] part: &str,
    ) {
        let fleet = fleet_of("roles: {A: {isolation: {network: deny}}}");
        let role = fleet.roles.values().next().expect("one");
        let rows: Vec<_> = rows.iter().map(|(item, level)| enforcement(*item, *level)).collect();
        let promised = [enforcement(Item::Hostname, Missing), enforcement(Item::Ipc, Enforced)];
        let check = judged(role, &rows, &promised);
        assert_eq!(check.level, level, "{}", check.detail);
        assert!(check.detail.contains(part), "{}", check.detail);
    }

    #[test]
    fn what_is_left_open_is_named_with_who_shares_the_directory() {
        let fleet = fleet_of(
            "roles: {A: {cwd: /w, isolation: {network: deny}}, B: {cwd: /w}, C: {cwd: /v}, D: {}}",
        );
        let role = fleet.roles.values().next().expect("one");
        let cwd = LexicalPath::absolute("/w").expect("plain");
        let mut policy = IsolationPolicy::none(&cwd, &LexicalPath::root());
        assert_eq!(sharing(&fleet, role), ["B"]);
        assert!(overlays(role, &policy, &["B"]).is_none(), "it cannot write there");
        policy.mounts.push(fleet_core::isolation::Mount {
            source: cwd.clone(),
            identity: None,
            kind: None,
            destination: cwd,
            mode: MountMode::ReadWrite,
            origin: fleet_core::isolation::MountOrigin::Cwd,
        });
        assert!(overlays(role, &policy, &[]).is_none());
        policy.residual_risks.push(".envrc may be made".to_owned());
        let check = overlays(role, &policy, &["B"]).expect("a row");
        assert_eq!((check.name.as_str(), check.level), ("isolation: A overlays", Level::Warn));
        assert_eq!(check.detail, ".envrc may be made; writes to the same `cwd` as B");
    }

    #[rstest]
    #[case(NetworkMode::Deny, &[], "deny: nothing but its own loopback")]
    #[case(NetworkMode::Broker, &[], "broker: nothing")]
    #[case(NetworkMode::Allowlist, &["a.example:443"], "allowlist: a.example:443")]
    fn every_endpoint_is_listed(
        #[case] mode: NetworkMode,
        #[case] rules: &[&str],
        #[case] detail: &str,
    ) {
        let root = LexicalPath::root();
        let mut policy = IsolationPolicy::none(&root, &root);
        policy.network = mode;
        policy.reachable = rules.iter().map(|rule| rule.parse().expect("a rule")).collect();
        assert_eq!(endpoints(&policy, BackendName::Bubblewrap), detail);
    }
}
