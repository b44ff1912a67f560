//! `config`: what the fleet file means, before anything is started.

use fleet_adapters::runner::native_sandbox::NativeSandboxes;
use fleet_adapters::runner::version::HarnessVersions;
use fleet_core::config::{Fleet, FleetPolicy, Role, Session};
use fleet_core::id::HarnessId;
use fleet_core::isolation::{Backend, EnforcementLevel, MountMode, MountOrigin, NetworkMode};
use fleet_core::permissions::{Outer, Translation};
use fleet_core::plan::unavailable_line;
use fleet_core::policy::explain::not_held;
use fleet_core::redact::MARKER;

use crate::app::App;
use crate::args;
use crate::error::{CliError, ErrorKind};
use crate::exit::ExitStatus;
use crate::fleet::{FleetFiles, has_errors};
use crate::resolved::{ResolvedRole, Resolver, permissions as words, plan_json, redacted};
use crate::ui::{Printer, Table, Tone, print_diagnostic};

/// Loads, checks and prints; touches nothing. The only programs that it runs are those of the
/// harnesses that the fleet uses, once each, for their version: the permissions of a version that was
/// not measured must not be shown as qualified.
///
/// # Errors
/// The fleet does not load. A role that this machine cannot run is printed and ends in `Failed`.
pub async fn run(app: &App, args: &args::Config) -> Result<ExitStatus, CliError> {
    let files = FleetFiles::read(app, args.yaml_mode.into())?;
    let Some(fleet) = &files.fleet else {
        return Err(ErrorKind::Config { diagnostics: files.diagnostics }.into());
    };
    let versions = HarnessVersions::of_roles(&app.runtime, fleet.roles.values()).await;
    // The sandbox that a harness has of its own is taken to work, and `doctor` tries it.
    let roles = Resolver::new(app, fleet, NativeSandboxes::assumed(), versions).all();
    let bad = files.has_errors() || roles.iter().any(|role| has_errors(&role.problems));
    if args.json {
        app.printer.json(&plan_json(fleet, &roles, &files.diagnostics));
    } else {
        print_fleet(app, &files, fleet, &roles);
    }
    for diagnostic in files.diagnostics.iter().chain(roles.iter().flat_map(|role| &role.problems)) {
        print_diagnostic(&app.printer, diagnostic);
    }
    Ok(if bad { ExitStatus::Failed } else { ExitStatus::Done })
}

fn print_fleet(app: &App, files: &FleetFiles, fleet: &Fleet, roles: &[ResolvedRole<'_>]) {
    let out = &app.printer;
    out.line(format!("ours-fleet {}", env!("CARGO_PKG_VERSION")));
    let absent = if files.base_exists { "" } else { " (does not exist)" };
    for (index, path) in fleet.source_files.iter().enumerate() {
        out.line(format!("source: {path}{}", if index == 0 { absent } else { "" }));
    }
    if fleet.start_stagger_ms > 0 {
        out.line(format!("launches at least {} ms apart", fleet.start_stagger_ms));
    }
    print_policy(out, fleet);
    let mut notes = Table::plain();
    // Defaults that nobody wrote are in the JSON form only.
    for key in fleet.unavailable.iter().filter(|key| key.place.is_some()) {
        notes.row(["note: ".to_owned() + &unavailable_line(key)]);
    }
    notes.print(out, "");
    if roles.is_empty() {
        out.line(files.empty_advice());
    }
    for role in roles {
        out.line("");
        print_role(out, role);
    }
}

/// The fleet-wide rules.
fn print_policy(out: &Printer, fleet: &Fleet) {
    let FleetPolicy { forbid_paths, require } = &fleet.policy;
    let mut rules = Table::plain();
    let mut add = |key: &str, value: Option<String>| {
        let written = fleet.provenance.written(&format!("policy.{key}"));
        if let (Some(value), Some((_, place))) = (value, written) {
            rules.row([format!("policy: {key}"), value, place.to_string()]);
        }
    };
    let paths: Vec<String> = forbid_paths.iter().map(ToString::to_string).collect();
    add("forbid_paths", (!paths.is_empty()).then(|| paths.join(", ")));
    add("require.isolation", require.isolation.map(|it| it.as_str().to_owned()));
    let modes = |modes: &Vec<NetworkMode>| modes.iter().map(|it| it.as_str()).collect::<Vec<_>>();
    add("require.network", require.network.as_ref().map(|it| modes(it).join(", ")));
    add("require.approval", require.approval.map(|it| it.as_str().to_owned()));
    let caps: Vec<&str> = require.resources.iter().map(|cap| cap.as_str()).collect();
    add("require.resources", (!caps.is_empty()).then(|| caps.join(", ")));
    rules.print(out, "");
}

fn print_role(out: &Printer, resolved: &ResolvedRole<'_>) {
    let role = resolved.role;
    out.heading(role.name.as_str());
    let mut table = Table::plain();
    for (key, value) in facts(resolved) {
        table.row([key.to_owned(), value]);
    }
    for key in role.unavailable.iter().filter(|key| !key.refuses) {
        table.row(["note".to_owned(), unavailable_line(key)]);
    }
    for blocker in &resolved.blockers {
        table.toned([("refused", Tone::Bad), (blocker.as_str(), Tone::Plain)]);
    }
    table.print(out, "  ");
    print_isolation(out, resolved);
}

fn facts(resolved: &ResolvedRole<'_>) -> Vec<(&'static str, String)> {
    let role = resolved.role;
    let mut rows = vec![
        ("harness", harness(&role.harness, role.session)),
        ("identity", role.identity.to_string()),
        ("source", resolved.place.to_string()),
        ("cwd", cwd(resolved)),
    ];
    rows.extend(permissions(resolved));
    let mut add = |key, value: Option<String>| {
        if let Some(value) = value {
            rows.push((key, value));
        }
    };
    add("model", role.model.clone());
    add("models", (!role.model_chain.is_empty()).then(|| role.model_chain.join(", ")));
    add("max tokens", role.max_tokens.map(|tokens| tokens.to_string()));
    add("autocompact", role.autocompact_pct.map(|percent| format!("{percent} %")));
    add("coordinator", role.coordinator.clone());
    add("mission", role.mission.as_deref().and_then(first_line));
    add("briefing", role.briefing_file.as_ref().map(ToString::to_string));
    add("oversees", oversees(role));
    add("monitor", Some(monitor(role)));
    add("options", options(role));
    add("env", env(role));
    rows.extend(words::home(resolved));
    rows.extend(resolved.notes.iter().map(|line| ("note", line.clone())));
    rows
}

fn harness(id: &HarnessId, session: Session) -> String {
    match session {
        Session::Tmux => format!("{id} in a console (tmux)"),
        Session::Acp => format!("{id} over the Agent Client Protocol"),
    }
}

fn cwd(resolved: &ResolvedRole<'_>) -> String {
    let note = if resolved.role.cwd.is_none() { " (the role's own directory)" } else { "" };
    format!("{}{note}", resolved.cwd)
}

/// What the harness makes of the permissions, in several rows.
fn permissions(resolved: &ResolvedRole<'_>) -> Vec<(&'static str, String)> {
    let asked = words::asked(resolved.role);
    let supported = match &resolved.translation {
        Some(Translation::Supported(supported)) => supported,
        Some(Translation::Unsupported { reason }) => {
            return vec![("permissions", format!("{asked} → none: {reason}"))];
        }
        None => return vec![("permissions", asked)],
    };
    let native = words::native(supported);
    let mut rows = vec![
        ("permissions", format!("{asked} → {native} ({})", words::exactness(supported))),
        ("boundary", boundary(resolved.outer)),
    ];
    rows.extend(supported.warnings.iter().map(|line| ("warning", line.clone())));
    rows.extend(supported.notes.iter().map(|line| ("note", line.clone())));
    rows.extend(resolved.conflicts.iter().map(|it| ("conflict", words::conflict(it))));
    rows.extend(resolved.floor.iter().map(|it| ("unattended", words::floor(it))));
    rows
}

fn boundary(outer: Outer) -> String {
    let tried = if outer.is_on() { "" } else { " (`doctor` tries it)" };
    format!("{}{tried}", words::boundary(outer))
}

fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(ToOwned::to_owned)
}

fn oversees(role: &Role) -> Option<String> {
    let wards: Vec<String> = role
        .oversee
        .iter()
        .map(|ward| format!("{} every {} s", ward.role, ward.interval.0 / 1000))
        .collect();
    (!wards.is_empty()).then(|| wards.join(", "))
}

fn monitor(role: &Role) -> String {
    let mode = if role.monitor.fleet { "fleet" } else { "native" };
    format!("{mode}, interrupt {}", role.monitor.interrupt)
}

fn options(role: &Role) -> Option<String> {
    let options = role.harness_options.expose();
    (!options.is_empty()).then(|| redacted(options).to_string())
}

fn env(role: &Role) -> Option<String> {
    let mut names: Vec<String> = role.env.keys().map(|name| format!("{name}={MARKER}")).collect();
    names.extend(role.env_pass.iter().map(|name| format!("{name} (passed on)")));
    names.sort();
    (!names.is_empty()).then(|| names.join(", "))
}

fn print_isolation(out: &Printer, resolved: &ResolvedRole<'_>) {
    let Some(block) = &resolved.role.isolation else {
        out.line("  isolation    none declared: the role runs with your own rights");
        return;
    };
    let written = block.on_unavailable.map_or("not written", |word| word.as_str());
    let mut line = Table::plain();
    let mut text =
        format!("{}, network {}, on_unavailable {written}", block.backend, block.network());
    if block.backend != Backend::None {
        text.push_str(if resolved.starts_unisolated {
            ": starts UN-ISOLATED if no sandbox can be had"
        } else {
            ": no sandbox, no start"
        });
        if let Some(rule) = &resolved.required {
            text = format!("{text}, by {rule}");
        }
    }
    line.row(["isolation  ".to_owned(), text]);
    let policy = resolved.policy.as_ref();
    if let Some(policy) = policy.filter(|it| it.network.lists_hosts()) {
        let rules: Vec<String> = policy.reachable.iter().map(ToString::to_string).collect();
        let rules = if rules.is_empty() { "nothing".to_owned() } else { rules.join(", ") };
        line.row(["reachable  ".to_owned(), rules]);
    }
    line.print(out, "  ");
    let Some(policy) = policy else { return };
    let mut mounts = Table::plain();
    for mount in &policy.mounts {
        let source = match mount.origin {
            MountOrigin::Secret { .. } => MARKER.to_owned(),
            _ if mount.source == mount.destination => String::new(),
            _ => format!("from {}", mount.source),
        };
        let made = matches!(
            mount.origin,
            MountOrigin::State | MountOrigin::HarnessHome | MountOrigin::Handout
        );
        let missing = match mount.identity {
            None if !made
                && !policy.ephemeral_dirs.iter().any(|dir| *dir == *mount.source.as_path()) =>
            {
                "missing"
            }
            _ => "",
        };
        let (access, remark) = match not_held(policy, mount) {
            Some(why) => (MountMode::ReadWrite, why),
            None => (mount.mode, missing),
        };
        mounts.toned([
            (access.as_str().to_owned(), Tone::Plain),
            (mount.destination.to_string(), Tone::Plain),
            (origin(&mount.origin), Tone::Plain),
            (source, Tone::Plain),
            (remark.to_owned(), Tone::Attention),
        ]);
    }
    mounts.print(out, "    ");
    if !resolved.promise.is_empty() {
        let backend = resolved.backend.map_or("", |backend| backend.as_str());
        out.line(format!("  promised by {backend}, if it can be used here (`doctor` tries it):"));
        let mut rows = Table::plain();
        for row in &resolved.promise {
            rows.toned([
                (row.item.as_str(), Tone::Plain),
                (row.level.as_str(), level_tone(row.level)),
                (&row.asked, Tone::Plain),
                (&row.evidence, Tone::Plain),
            ]);
        }
        rows.print(out, "    ");
    }
    let mut risks = Table::plain();
    for risk in &policy.residual_risks {
        risks.row(["risk       ".to_owned(), risk.clone()]);
    }
    risks.print(out, "  ");
    out.line(format!("  forbidden paths: list version {}", policy.blocklist_version));
}

/// The tone of a row of the enforcement report.
pub fn level_tone(level: EnforcementLevel) -> Tone {
    match level {
        EnforcementLevel::Enforced => Tone::Good,
        EnforcementLevel::Degraded => Tone::Attention,
        EnforcementLevel::Missing => Tone::Bad,
    }
}

fn origin(origin: &MountOrigin) -> String {
    match origin {
        MountOrigin::State => "state".to_owned(),
        MountOrigin::Cwd => "cwd".to_owned(),
        MountOrigin::HarnessHome => "harness home".to_owned(),
        MountOrigin::Handout => "handout".to_owned(),
        MountOrigin::SharedItem { name } => format!("shared {name}"),
        MountOrigin::AddDir { index } => format!("add_dirs[{index}]"),
        MountOrigin::LaunchClosure => "program".to_owned(),
        MountOrigin::FsWrite { index } => format!("fs.write[{index}]"),
        MountOrigin::FsRead { index } => format!("fs.read[{index}]"),
        MountOrigin::Secret { index } => format!("secrets[{index}]"),
        MountOrigin::Overlay { path } => format!("protected {path}"),
        MountOrigin::Repository { part } => format!("{part} of the repository of `cwd`"),
        MountOrigin::SelfBind => "holds a protected path".to_owned(),
    }
}
