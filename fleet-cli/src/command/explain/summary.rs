//! Everything that a role can reach, each with the line that says so.

use fleet_core::isolation::{
    Backend, EnforcementLevel, IsolationPolicy, Mount, MountMode, MountOrigin, Tmpfs,
};
use fleet_core::permissions::Translation;
use fleet_core::plan::unavailable_line;
use fleet_core::policy::explain::{
    ExplainRequest, Explanation, NO_MOUNTS, Subject, explain, not_held,
};
use fleet_core::redact::MARKER;
use serde_json::{Value, json};

use super::place;
use crate::app::App;
use crate::resolved::{ResolvedRole, permissions as words};
use crate::ui::{Printer, Table, Tone, document};

/// A host that stands for every host: a name that means nothing.
const ANY_HOST: &str = "any-host.invalid";

/// Prints it.
pub(super) fn show(
    app: &App,
    request: &ExplainRequest<'_>,
    resolved: &ResolvedRole<'_>,
    json: bool,
) {
    let network = network(app, request);
    if json {
        app.printer.json(&document(value(request, resolved, network.as_ref())));
        return;
    }
    let out = &app.printer;
    out.heading(request.role.name.as_str());
    for line in &refusals(resolved) {
        let mut row = Table::plain();
        row.toned([("refused", Tone::Bad), (line.as_str(), Tone::Plain)]);
        row.print(out, "  ");
    }
    files(out, request, resolved);
    if let Some(network) = &network {
        out.line("");
        out.line("network");
        let mut rows = Table::plain();
        for (_, words, at) in request.reachable() {
            rows.row(["reachable", &words, &place(at.as_ref())]);
        }
        rows.row([network.verdict.as_str(), &network.rule.words, &place(network.place.as_ref())]);
        rows.print(out, "  ");
    }
    variables(out, request);
    permissions(out, request, resolved);
    let open = not_enforced(resolved);
    out.line("");
    out.line("not enforced, or not known");
    let mut rows = Table::plain();
    for line in &open {
        rows.row([line.as_str()]);
    }
    if open.is_empty() {
        rows.row(["nothing of what the file asks for"]);
    }
    rows.print(out, "  ");
}

fn network(app: &App, request: &ExplainRequest<'_>) -> Option<Explanation> {
    let endpoint = ANY_HOST.parse().ok()?;
    Some(explain(request, &Subject::Endpoint(endpoint), &*app.probe()))
}

fn refusals(resolved: &ResolvedRole<'_>) -> Vec<String> {
    let problems = resolved.problems.iter().map(ToString::to_string);
    problems.chain(resolved.blockers.iter().cloned()).collect()
}

/// Mounts by where they come from: what the role asks for first.
fn mounts<'r>(resolved: &'r ResolvedRole<'_>) -> Vec<&'r Mount> {
    let mounts = resolved.policy.iter().flat_map(|policy| &policy.mounts);
    let mut mounts: Vec<&Mount> = mounts.collect();
    mounts.sort_by_key(|mount| (!mount.origin.is_by_user(), mount.origin.clone()));
    mounts
}

/// Secrets are named by where the role sees them, never by where they lie.
fn source(mount: &Mount) -> Option<String> {
    match mount.origin {
        MountOrigin::Secret { .. } => Some(MARKER.to_owned()),
        _ if mount.source == mount.destination => None,
        _ => Some(mount.source.to_string()),
    }
}

fn files(out: &Printer, request: &ExplainRequest<'_>, resolved: &ResolvedRole<'_>) {
    out.line("");
    out.line("files");
    let mut rows = Table::plain();
    let Some(policy) = &resolved.policy else {
        let text = if refusals(resolved).is_empty() {
            "no sandbox: whatever your account can read and write, but for the rules of its program"
        } else {
            "none: the role is not started as it is written"
        };
        rows.row([text]);
        rows.print(out, "  ");
        return;
    };
    for mount in mounts(resolved) {
        let from = source(mount).map(|source| format!(" from {source}")).unwrap_or_default();
        let (mode, words) = match not_held(policy, mount) {
            Some(why) => (MountMode::ReadWrite, format!("{}, {why}", mount.origin)),
            None => (mount.mode, mount.origin.to_string()),
        };
        rows.row([
            mode.as_str().to_owned(),
            format!("{}{from}", mount.destination),
            words,
            place(request.mount_place(&mount.origin).as_ref()),
        ]);
    }
    for tmpfs in memory(policy) {
        rows.row([
            "own".to_owned(),
            tmpfs.destination.to_string(),
            format!("in memory, at most {} MiB, vanishes", tmpfs.size / (1024 * 1024)),
            place(None),
        ]);
    }
    rows.row([
        "ro".to_owned(),
        "/usr, /bin, /lib…, part of /etc".to_owned(),
        format!("the system, `system: {}`", policy.system),
        place(request.written("isolation.system").map(|(_, place)| place).as_ref()),
    ]);
    if policy.backend == Backend::Landlock {
        for (mode, path, words) in NO_MOUNTS {
            rows.row([mode, path, words, &*place(None)]);
        }
    } else {
        rows.row(["-", "everything else", "not listed, so not there", &place(None)]);
    }
    rows.print(out, "  ");
}

/// In-memory directories of the sandbox; one by rules has none.
fn memory(policy: &IsolationPolicy) -> &[Tmpfs] {
    if policy.backend == Backend::Landlock { &[] } else { &policy.tmpfs }
}

fn variables(out: &Printer, request: &ExplainRequest<'_>) {
    out.line("");
    out.line("environment");
    let mut rows = Table::plain();
    for (name, origin) in request.variables() {
        let (words, at) = request.variable_words(&name, origin);
        rows.row([name, words, place(at.as_ref())]);
    }
    rows.print(out, "  ");
}

fn permissions(out: &Printer, request: &ExplainRequest<'_>, resolved: &ResolvedRole<'_>) {
    out.line("");
    out.line("permissions");
    let mut rows = Table::plain();
    for source in request.neutral_words() {
        let at = source.place.as_ref().map_or("default".to_owned(), ToString::to_string);
        rows.row([source.key, source.value, at]);
    }
    rows.print(out, "  ");
    let mut rows = Table::plain();
    match &request.assessment.effective {
        Translation::Supported(supported) => {
            for (key, value) in &supported.native {
                rows.row([key.as_str(), value]);
            }
            rows.row(["together", words::exactness(supported)]);
        }
        Translation::Unsupported { reason } => rows.row(["none", reason]),
    }
    if let Some(floor) = &resolved.floor {
        rows.row(["unattended", &words::floor(floor)]);
    }
    rows.row(["boundary", words::boundary(request.outer)]);
    rows.print(out, "  ");
}

/// What the file asks for and nobody enforces, and what is left open.
fn not_enforced(resolved: &ResolvedRole<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if resolved.starts_unisolated {
        lines.push(
            "the sandbox: where none can be had the role starts UN-ISOLATED (`on_unavailable`)"
                .to_owned(),
        );
    }
    if let Some(Translation::Supported(supported)) = &resolved.translation {
        lines.extend(supported.warnings.iter().cloned());
    }
    let block = resolved.role.isolation.as_ref();
    if block.is_some_and(|block| block.nested_sandbox && block.backend != Backend::None) {
        lines.push(
            "`nested_sandbox`: its programs may make namespaces and mount in them, so more of the \
             kernel is in reach; `/proc` is not covered"
                .to_owned(),
        );
    }
    for row in resolved.promise.iter().filter(|row| row.level != EnforcementLevel::Enforced) {
        lines.push(format!(
            "{}: {}: {} ({})",
            row.item.as_str(),
            row.asked,
            row.level.as_str(),
            row.evidence
        ));
    }
    if let Some(policy) = &resolved.policy {
        let risk = |risk: &String| format!("left open: {risk}");
        lines.extend(policy.residual_risks.iter().map(risk));
    }
    lines.extend(resolved.role.unavailable.iter().map(unavailable_line));
    lines
}

fn value(
    request: &ExplainRequest<'_>,
    resolved: &ResolvedRole<'_>,
    network: Option<&Explanation>,
) -> Value {
    let policy = resolved.policy.as_ref();
    let variables: Vec<Value> = request
        .variables()
        .into_iter()
        .map(|(name, origin)| {
            let (words, place) = request.variable_words(&name, origin);
            json!({ "name": name, "words": words, "place": place })
        })
        .collect();
    let native = match &request.assessment.effective {
        Translation::Supported(supported) => json!(supported.native),
        Translation::Unsupported { .. } => Value::Null,
    };
    json!({
        "role": request.role.name,
        "isolated": request.outer.is_on(),
        "refusals": refusals(resolved),
        "mounts": mounts(resolved).into_iter().map(|mount| json!({
            "destination": mount.destination,
            "source": source(mount),
            "mode": mount.mode,
            "notHeld": policy.and_then(|policy| not_held(policy, mount)),
            "words": mount.origin.to_string(),
            "key": mount.origin.key(),
            "place": request.mount_place(&mount.origin),
        })).collect::<Vec<_>>(),
        "memory": policy.map(memory),
        "system": policy.map(|policy| policy.system),
        "network": network.map(|it| json!({
            "verdict": it.verdict, "rule": it.rule, "place": it.place,
            "reachable": request.reachable().into_iter().map(|(rule, words, place)| json!({
                "rule": rule, "words": words, "place": place,
            })).collect::<Vec<_>>(),
        })),
        "variables": variables,
        "permissions": { "sources": request.neutral_words(), "native": native, "floor": resolved.floor },
        "notEnforced": not_enforced(resolved),
    })
}
