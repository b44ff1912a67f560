use std::time::Duration;

use fleet_core::config::{Fleet, Role};
use fleet_core::isolation::select::{Fallback, candidates, fallback, is_lesser, strict};
use fleet_core::isolation::{Backend, BackendName, IsolationBlock, IsolationPolicy};
use fleet_core::path::LexicalPath;
use fleet_core::plan;
use fleet_core::port::{IsolationBackend, ProbeFailure};
use tokio::time::timeout;

use super::{Check, LIMIT, Level, caps, harness, host, permissions, sandbox};
use crate::app::App;
use crate::resolved::{ResolvedRole, Resolver};

/// Every check of every role, in file order.
pub(super) async fn checks(
    app: &App,
    fleet: &Fleet,
    resolver: &Resolver<'_>,
    remedy: &'static str,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut promises = Vec::new();
    let deadline = tokio::time::Instant::now() + LIMIT * 6;
    for resolved in resolver.all() {
        let role = resolved.role;
        checks.extend(unavailable(fleet, role));
        let left = deadline.saturating_duration_since(tokio::time::Instant::now()).min(LIMIT);
        checks.push(isolation(app, &resolved, left).await);
        checks.extend(sandbox::checks(app, fleet, &resolved).await);
        checks.extend(caps::role(fleet, &resolved, remedy));
        checks.extend(nested(app, &resolved));
        if !resolved.promise.is_empty() && resolved.backend != Some(BackendName::None) {
            promises.push(resolved.promise.clone());
        }
        checks.extend(harness::role_checks(app, role));
        checks.extend(permissions::checks(&resolved));
        checks.extend(cwd(fleet, &resolved));
        checks.extend(state(app, role));
        checks.extend(socket_path(app, role));
    }
    checks.extend(sandbox::terminal(app, &promises));
    checks
}

fn unavailable(fleet: &Fleet, role: &Role) -> Vec<Check> {
    plan::refusals(fleet, role)
        .into_iter()
        .map(|line| {
            Check::new("unavailable keys", Level::Fail, line)
                .role(role.name.as_str())
                .fix("until then `up` refuses the role")
        })
        .collect()
}

async fn isolation(app: &App, resolved: &ResolvedRole<'_>, limit: Duration) -> Check {
    let role = resolved.role;
    let check =
        |level, detail: String| Check::new("isolation", level, detail).role(role.name.as_str());
    // What fleet would read for the role is judged without isolation too.
    if !resolved.problems.is_empty() {
        let lines: Vec<String> = resolved.problems.iter().map(ToString::to_string).collect();
        return check(Level::Fail, lines.join(" | ")).fix("correct the fleet file");
    }
    let Some(block) = &role.isolation else {
        return check(Level::Pass, "none declared".to_owned());
    };
    if block.backend == Backend::None {
        return check(Level::Pass, "`none`, on purpose".to_owned());
    }
    let Some(backend) = resolved.backend.and_then(|name| app.backend(name)) else {
        return check(Level::Fail, format!("backend `{}` is not in this build", block.backend))
            .fix("write `backend: bubblewrap`");
    };
    let Some(policy) = &resolved.policy else {
        return check(Level::Fail, "the sandbox cannot be resolved".to_owned())
            .fix("see `ours-fleet config`");
    };
    let limit = if backend.name() == BackendName::Podman { super::SLOW } else { limit };
    match timeout(limit, backend.probe(policy)).await {
        Ok(Ok(_)) => usable(app, resolved, block, &**backend, policy),
        Ok(Err(failure)) => match lesser(app, resolved, block, policy, limit).await {
            Some(name) => {
                let detail = format!("{failure}; it starts in {name}, which is less");
                check(Level::Warn, detail).fix(host::remedy(&failure))
            }
            None => unusable(app, resolved, block, backend.name(), failure),
        },
        Err(_) => check(Level::Fail, "the trial did not end in time".to_owned())
            .fix("run `ours-fleet doctor` again"),
    }
}

/// A backend that works, and what of the role it does not hold.
fn usable(
    app: &App,
    resolved: &ResolvedRole<'_>,
    block: &IsolationBlock,
    backend: &dyn IsolationBackend,
    policy: &IsolationPolicy,
) -> Check {
    let role = resolved.role;
    let detail = format!("{}, network {}, caps {}", backend.name(), policy.network, caps_of(block));
    let short = backend.shortfalls(policy);
    let check = |level, detail| Check::new("isolation", level, detail).role(role.name.as_str());
    if short.is_empty() {
        return check(Level::Pass, detail);
    }
    let detail = format!("{detail}; it does not hold: {}", short.join("; "));
    match rule(app, resolved, block) {
        Some(why) => check(Level::Fail, format!("{detail}; not started: {why}"))
            .fix("write `backend: bubblewrap`, or ask for less"),
        None => check(Level::Warn, detail).fix("write `backend: bubblewrap` where it can be had"),
    }
}

/// The rule by which a role must not start with less than it asks for.
fn rule(app: &App, resolved: &ResolvedRole<'_>, block: &IsolationBlock) -> Option<String> {
    let (role, required) = (resolved.role, resolved.required.as_deref());
    strict(block, role.permissions, app.runtime.world.uid, required)
}

/// A backend that a launch takes instead of one that cannot be had.
async fn lesser(
    app: &App,
    resolved: &ResolvedRole<'_>,
    block: &IsolationBlock,
    policy: &IsolationPolicy,
    limit: Duration,
) -> Option<BackendName> {
    if rule(app, resolved, block).is_some() {
        return None;
    }
    for name in candidates(block).into_iter().filter(|name| is_lesser(block, *name)) {
        let Some(backend) = app.backend(name) else { continue };
        if matches!(timeout(limit, backend.probe(policy)).await, Ok(Ok(_))) {
            return Some(name);
        }
    }
    None
}

/// What a launch will make of an unusable backend.
fn unusable(
    app: &App,
    resolved: &ResolvedRole<'_>,
    block: &IsolationBlock,
    backend: BackendName,
    failure: ProbeFailure,
) -> Check {
    let fix = host::remedy(&failure);
    let uid = app.runtime.world.uid;
    let (role, required) = (resolved.role, resolved.required.as_deref());
    let failures = [(backend, failure)];
    let (level, detail) = match fallback(block, role.permissions, uid, required, &failures) {
        Fallback::Refuse { message } => (Level::Fail, message),
        Fallback::Unisolated { message } => (Level::Warn, message),
    };
    Check::new("isolation", level, detail).role(role.name.as_str()).fix(fix)
}

/// What a sandbox inside the sandbox costs, and that root cannot have one.
fn nested(app: &App, resolved: &ResolvedRole<'_>) -> Option<Check> {
    let role = resolved.role;
    let block = role.isolation.as_ref().filter(|block| block.nested_sandbox)?;
    if block.backend == Backend::None {
        return None;
    }
    let check = |level, detail: &str| {
        let name = format!("{} nested", role.name);
        Check::new("isolation", level, detail).role(role.name.as_str()).named(&name)
    };
    Some(if app.runtime.world.uid == 0 {
        check(
            Level::Warn,
            "`nested_sandbox` opens namespaces, and still root without capabilities \
             cannot make a sandbox in its sandbox",
        )
        .fix("run the fleet as an ordinary user, or leave `nested_sandbox` out")
    } else {
        check(
            Level::Warn,
            "`nested_sandbox`: namespaces and mounts are open to its programs, `/proc` \
             is not covered, and the system call filter is the smaller one",
        )
        .fix("leave `nested_sandbox` out if nothing in it makes a sandbox")
    })
}

fn caps_of(block: &IsolationBlock) -> String {
    let resources = &block.resources;
    let caps: Vec<String> = [
        resources.memory.map(|bytes| format!("mem={}", bytes.0)),
        resources.cpu.map(|cpu| format!("cpu={}m", cpu.millis)),
        resources.pids.map(|pids| format!("pids={pids}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if caps.is_empty() { "none".to_owned() } else { caps.join(",") }
}

/// A missing directory or program, and who else works there.
fn cwd(fleet: &Fleet, resolved: &ResolvedRole<'_>) -> Vec<Check> {
    let role = resolved.role;
    let check = |level, detail: String| Check::new("cwd", level, detail).role(role.name.as_str());
    let refusals = plan::refusals(fleet, role);
    let about_cwd = format!("role '{}': cwd: ", role.name);
    let (missing, others): (Vec<&String>, Vec<&String>) = resolved
        .blockers
        .iter()
        .filter(|blocker| !refusals.contains(blocker))
        .partition(|blocker| blocker.contains(&about_cwd));
    let mut checks: Vec<Check> = others
        .into_iter()
        .map(|blocker| {
            let fix = format!("then `ours-fleet up {}`", role.name);
            Check::new("start", Level::Fail, blocker).role(role.name.as_str()).fix(fix)
        })
        .collect();
    let shared = sandbox::sharing(fleet, role);
    checks.push(match (missing.first(), shared.is_empty()) {
        (Some(blocker), _) => check(Level::Fail, (*blocker).clone())
            .fix(format!("`mkdir -p {}`, or name another `cwd`", resolved.cwd)),
        (None, true) => check(Level::Pass, resolved.cwd.clone()),
        (None, false) => {
            check(Level::Pass, format!("{} (shared with {})", resolved.cwd, shared.join(", ")))
        }
    });
    checks
}

/// What an earlier run left in the control directory.
fn state(app: &App, role: &Role) -> Vec<Check> {
    let trees = app.runtime.trees(&role.name);
    let name = role.name.as_str();
    let check = |level, detail: String| Check::new("state", level, detail).role(name);
    let mut checks = Vec::new();
    for dir in trees.all() {
        let Ok(path) = LexicalPath::absolute(dir.as_str()) else { continue };
        let Ok(resolved) = app.probe().resolve(&path) else {
            checks.push(
                check(Level::Fail, format!("{dir} cannot be looked at"))
                    .fix("make the state directory your own"),
            );
            continue;
        };
        let Some(facts) = resolved.object else { continue };
        if facts.uid != app.runtime.world.uid {
            checks.push(
                check(Level::Fail, format!("{dir} belongs to uid {}", facts.uid))
                    .fix(format!("`chown {} {dir}`", app.runtime.world.uid)),
            );
        }
        if facts.mode & 0o077 != 0 {
            checks.push(
                check(Level::Warn, format!("{dir} is open to others (mode {:04o})", facts.mode))
                    .fix(format!("`chmod 700 {dir}`")),
            );
        }
    }
    let text = |path: camino::Utf8PathBuf| {
        let bytes = app.runtime.ports.store.read(&path, 1024 * 1024).ok().flatten();
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    if let Some(reason) = text(trees.isolation_degraded()) {
        checks.push(check(Level::Warn, format!("runs UN-ISOLATED since {reason}")).fix(format!(
            "make the sandbox usable (see `isolation: {name}`), then `ours-fleet restart {name}`"
        )));
    }
    let ledger = text(trees.restart_ledger())
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    if let Some(ledger) = ledger.filter(|ledger| ledger["circuit"] == "open") {
        let reason = ledger["lastReason"].as_str().unwrap_or("reason unknown");
        checks.push(
            check(Level::Fail, format!("held down: {reason}"))
                .fix(format!("`ours-fleet logs {name}`, then `ours-fleet up {name}` releases it")),
        );
    }
    if checks.is_empty() {
        checks.push(check(Level::Pass, "nothing to note".to_owned()));
    }
    checks
}

fn socket_path(app: &App, role: &Role) -> Option<Check> {
    let nominal = app.runtime.trees(&role.name).tmux_socket();
    let used = app.runtime.console_address(&role.name).socket;
    (nominal != used).then(|| {
        let detail = format!("{nominal} is too long for a socket: {used} is used");
        Check::new("socket path", Level::Warn, detail)
            .role(role.name.as_str())
            .fix("nothing needs to be done; a shorter OURS_FLEET_HOME avoids it")
    })
}
