use std::collections::BTreeMap;

use fleet_core::config::{Fleet, Session};
use fleet_core::diagnostic::Diagnostic;
use fleet_core::isolation::{IsolationBlock, IsolationPolicy, Mount, MountOrigin};
use fleet_core::permissions::{Translation, Unattended};
use fleet_core::redact::MARKER;
use serde_json::{Value, json};

use super::permissions::tree;
use super::{ResolvedRole, redacted};
use crate::ui::document;

/// The plan of a fleet as one document (02 §1.4, 01 §1.18): stable, sorted, free of secrets.
pub fn plan_json(fleet: &Fleet, roles: &[ResolvedRole<'_>], diagnostics: &[Diagnostic]) -> Value {
    let mut all: Vec<&Diagnostic> = diagnostics.iter().collect();
    all.extend(roles.iter().flat_map(|role| &role.problems));
    let mut sorted: Vec<&ResolvedRole<'_>> = roles.iter().collect();
    sorted.sort_by(|a, b| a.role.name.cmp(&b.role.name));
    document(json!({
        "sourceFiles": fleet.source_files,
        "startStaggerMs": fleet.start_stagger_ms,
        "policy": policy(fleet),
        "diagnostics": all,
        "unavailable": fleet.unavailable,
        "roles": sorted.into_iter().map(role_json).collect::<Vec<_>>(),
        "loops": [],
        "watchdogs": [],
    }))
}

/// The fleet-wide rules; each written one of `require` with its place.
fn policy(fleet: &Fleet) -> Value {
    let require = &fleet.policy.require;
    let rule = |key: &str, value: Value| {
        let path = format!("policy.require.{key}");
        let source = fleet.provenance.written(&path).map(|(_, place)| place);
        source.map_or(Value::Null, |source| json!({ "value": value, "source": source }))
    };
    json!({
        "forbidPaths": fleet.policy.forbid_paths,
        "require": {
            "isolation": rule("isolation", json!(require.isolation)),
            "network": rule("network", json!(require.network)),
            "approval": rule("approval", json!(require.approval)),
            "resources": rule("resources", json!(require.resources)),
        },
    })
}

fn role_json(resolved: &ResolvedRole<'_>) -> Value {
    let role = resolved.role;
    let env: BTreeMap<&str, &str> = role.env.keys().map(|name| (name.as_str(), MARKER)).collect();
    let mut env_pass = role.env_pass.clone();
    env_pass.sort();
    json!({
        "name": role.name,
        "sourceFile": role.source_file,
        "source": resolved.place,
        "identity": role.identity,
        "harness": role.harness,
        "session": role.session,
        "sessionOptions": session_options(role.session, role.boot_grace_ms),
        "model": role.model,
        "modelChain": role.model_chain,
        "cwd": resolved.cwd,
        "blockers": resolved.blockers,
        "coordinator": role.coordinator,
        "briefingFile": role.briefing_file,
        "maxTokens": role.max_tokens,
        "autocompactPct": role.autocompact_pct,
        "permissions": permissions(resolved),
        "harnessHome": resolved.home.as_ref().map(|home| json!({
            "variable": home.variable, "path": home.path, "shared": home.shared,
        })),
        "harnessFiles": resolved.files.iter().map(|(place, name)| json!({
            "place": tree(*place), "name": name,
        })).collect::<Vec<_>>(),
        "launchNotes": resolved.notes,
        "monitor": role.monitor,
        "ownerChannel": null,
        "loops": [],
        "isolation": role.isolation.as_ref().map(|block| isolation(block, resolved)),
        "sharedItems": resolved.shared,
        "worklog": role.worklog,
        "authProxy": null,
        "oversee": role.oversee,
        "managedCli": [],
        "harnessOptions": redacted(role.harness_options.expose()),
        "env": { "redacted": true, "keys": env.keys().collect::<Vec<_>>(), "values": env },
        "envPass": env_pass,
        "unavailable": role.unavailable,
    })
}

fn session_options(session: Session, boot_grace_ms: Option<u64>) -> Value {
    match session {
        Session::Tmux => json!({ "tmux": { "bootGraceMs": boot_grace_ms } }),
        Session::Acp => json!({}),
    }
}

fn permissions(resolved: &ResolvedRole<'_>) -> Value {
    let role = resolved.role;
    let mut value = json!({
        "common": role.permissions,
        "declared": role.permissions_declared,
        "outer": resolved.outer,
        "effectiveNative": null,
        "supported": false,
        "exact": false,
        "qualified": null,
        "mode": null,
        "capabilities": resolved.floor.iter().flat_map(|it| &it.granted).collect::<Vec<_>>(),
        "floor": resolved.floor,
        "severity": resolved.floor.as_ref().filter(|it| !it.is_met()).map(|it| {
            match it.unattended {
                Unattended::Deny => "fail",
                Unattended::Wait => "warn",
            }
        }),
        "conflicts": resolved.conflicts,
        "notes": [],
        "warnings": [],
        "refusals": [],
    });
    match &resolved.translation {
        Some(Translation::Supported(it)) => {
            value["effectiveNative"] = json!(it.native);
            value["supported"] = json!(true);
            value["exact"] = json!(it.exact);
            value["qualified"] = json!(it.measured);
            value["mode"] = json!(it.mode);
            value["notes"] = json!(it.notes);
            value["warnings"] = json!(it.warnings);
            value["refusals"] = json!(it.refusals);
        }
        Some(Translation::Unsupported { reason }) => value["warnings"] = json!([reason]),
        None => {}
    }
    value
}

fn isolation(block: &IsolationBlock, resolved: &ResolvedRole<'_>) -> Value {
    json!({
        "backend": block.backend,
        "onUnavailable": block.on_unavailable,
        "network": block.network(),
        "allowHosts": block.allow_hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "fs": {
            "read": block.fs_read.iter().map(|entry| &entry.path).collect::<Vec<_>>(),
            "write": block.fs_write.iter().map(|entry| &entry.path).collect::<Vec<_>>(),
        },
        "resources": {
            "cpuMillis": block.resources.cpu.map(|cpu| cpu.millis),
            "memBytes": block.resources.memory.map(|bytes| bytes.0),
            "pids": block.resources.pids,
        },
        "secrets": block.secrets.iter().map(|entry| &entry.to).collect::<Vec<_>>(),
        "protect": block.protect,
        "system": block.system,
        "nestedSandbox": block.nested_sandbox,
        "image": block.image,
        "promise": resolved.policy.as_ref().map(|policy| promise(policy, resolved)),
    })
}

/// What holds if the first candidate can be used. Inode numbers are left out: they would make two
/// equal plans differ.
fn promise(policy: &IsolationPolicy, resolved: &ResolvedRole<'_>) -> Value {
    json!({
        "backend": resolved.backend,
        "mounts": policy.mounts.iter().map(mount).collect::<Vec<_>>(),
        "tmpfs": policy.tmpfs,
        "endpoints": policy.reachable,
        "cwd": policy.cwd,
        "home": policy.home,
        "enforcement": resolved.promise,
        "residualRisks": policy.residual_risks,
        "blocklistVersion": policy.blocklist_version,
    })
}

fn mount(mount: &Mount) -> Value {
    let secret = matches!(mount.origin, MountOrigin::Secret { .. });
    json!({
        "source": if secret { MARKER } else { mount.source.as_str() },
        "destination": mount.destination,
        "mode": mount.mode,
        "kind": mount.kind,
        "origin": mount.origin,
        "missing": mount.identity.is_none(),
    })
}
