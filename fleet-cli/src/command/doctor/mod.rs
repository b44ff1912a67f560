//! `doctor`: checks this machine and the fleet, with a remedy for each problem.

mod caps;
mod harness;
mod host;
mod permissions;
mod roles;
mod sandbox;

use std::future::Future;
use std::time::Duration;

use fleet_adapters::runner::native_sandbox::NativeSandboxes;
use fleet_adapters::runner::version::HarnessVersions;
use fleet_core::config::Fleet;
use fleet_core::diagnostic::{Diagnostic, Severity};
use fleet_core::isolation::Backend;
use serde_json::{Value, json};

use super::version;
use crate::app::App;
use crate::args;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::fleet::FleetFiles;
use crate::resolved::Resolver;
use crate::ui::{Table, Tone, document};

/// No single check takes longer.
const LIMIT: Duration = Duration::from_secs(5);

/// The same for one that starts a container.
const SLOW: Duration = Duration::from_secs(40);

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Pass,
    /// Worth a look.
    Warn,
    /// Something will not work.
    Fail,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Pass => Tone::Good,
            Self::Warn => Tone::Attention,
            Self::Fail => Tone::Bad,
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    id: &'static str,
    name: String,
    level: Level,
    detail: String,
    fix: Option<String>,
    role: Option<String>,
}

impl Check {
    fn new(id: &'static str, level: Level, detail: impl Into<String>) -> Self {
        Self { id, name: id.to_owned(), level, detail: detail.into(), fix: None, role: None }
    }

    fn named(mut self, suffix: &str) -> Self {
        self.name = format!("{}: {suffix}", self.id);
        self
    }

    fn role(mut self, role: &str) -> Self {
        self.role = Some(role.to_owned());
        self.named(role)
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "id": self.id,
            "name": self.name,
            "level": self.level.as_str(),
            "detail": self.detail,
        });
        for (key, text) in [("fix", &self.fix), ("role", &self.role)] {
            if let Some(text) = text {
                value[key] = text.as_str().into();
            }
        }
        value
    }
}

/// Ends a check that hangs.
async fn limited(name: &'static str, check: impl Future<Output = Vec<Check>>) -> Vec<Check> {
    within(LIMIT, name, check).await
}

async fn within(
    limit: Duration,
    name: &'static str,
    check: impl Future<Output = Vec<Check>>,
) -> Vec<Check> {
    tokio::time::timeout(limit, check).await.unwrap_or_else(|_| {
        let detail = format!("no result within {} s", limit.as_secs());
        vec![
            Check::new(name, Level::Fail, detail).fix(
                "run `ours-fleet doctor` again; if it stays, look at the load of this machine",
            ),
        ]
    })
}

/// Prints the report. Host checks run also when the fleet does not load.
///
/// # Errors
/// `--harness` names none that exists. What cannot be read is a failed check.
pub async fn run(app: &App, args: &args::Doctor) -> Result<ExitStatus, CliError> {
    let files = FleetFiles::read(app, args.yaml_mode.into());
    let fleet = files.as_ref().ok().and_then(|files| files.fleet.as_ref());
    let isolated = fleet.is_none_or(|fleet| {
        fleet.roles.values().any(|role| {
            // One that names landlock does without.
            role.isolation.as_ref().is_some_and(|block| block.backend != Backend::Landlock)
        })
    });

    let harnesses = harness::chosen(app, fleet, args.harness.as_deref());
    if let Some(only) = args.harness.as_deref().filter(|_| harnesses.is_empty()) {
        let known: Vec<&str> = app.runtime.harnesses.ids().collect();
        let message = format!("there is no harness `{only}` (known: {})", known.join(", "));
        return Err(CliError::usage(message));
    }

    let facts = app.runtime.ports.limits.facts().await;
    let capped = fleet.is_some_and(|fleet| fleet.roles.values().any(caps::asks));
    let podman = fleet.is_some_and(|fleet| {
        let blocks = fleet.roles.values().filter_map(|role| role.isolation.as_ref());
        blocks.into_iter().any(|block| block.backend == Backend::Podman)
    });

    let (mut checks, tmux, bubblewrap, podman, (harness_checks, role_checks)) = tokio::join!(
        limited("install", install(app)),
        limited("tmux", host::tmux(app)),
        limited("isolation: bubblewrap", host::bubblewrap(app, isolated)),
        within(SLOW, host::PODMAN, host::podman(app, podman)),
        async {
            let (native, versions) = match fleet {
                Some(fleet) => tokio::join!(
                    NativeSandboxes::of_fleet(&app.runtime, fleet, false),
                    HarnessVersions::of_roles(&app.runtime, fleet.roles.values()),
                ),
                None => (NativeSandboxes::assumed(), HarnessVersions::default()),
            };
            let harness_checks = harness::checks(app, fleet, &harnesses, &native).await;
            let role_checks = match fleet {
                Some(fleet) => {
                    let resolver =
                        Resolver::new(app, fleet, native, versions).with_limits(facts.clone());
                    roles::checks(app, fleet, &resolver, caps::remedy(&facts)).await
                }
                None => Vec::new(),
            };
            (harness_checks, role_checks)
        },
    );
    checks.extend(config(&files));
    checks.extend(host::programs(app));
    checks.extend(tmux);
    checks.extend(supervisor(app).await);
    checks.extend(bubblewrap);
    checks.extend(podman);
    checks.push(caps::host(&facts, capped));
    checks.extend(caps::manager(&facts));
    checks.extend(harness_checks);
    checks.extend(role_checks);

    let ok = checks.iter().all(|check| check.level != Level::Fail);
    if args.json {
        app.printer.json(&document(json!({
            "ok": ok,
            "checks": checks.iter().map(Check::json).collect::<Vec<_>>(),
        })));
    } else {
        print(app, &checks);
    }
    Ok(if ok { ExitStatus::Done } else { ExitStatus::Failed })
}

fn print(app: &App, checks: &[Check]) {
    let mut table = Table::plain();
    for check in checks {
        let fix = check.fix.as_ref().map(|fix| format!(" → {fix}")).unwrap_or_default();
        table.toned([
            (check.level.as_str().to_owned(), check.level.tone()),
            (check.name.clone(), Tone::Plain),
            (format!("{}{fix}", check.detail), Tone::Plain),
        ]);
    }
    table.print(&app.printer, "");
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    app.printer.line(format!(
        "{} passed, {} to look at, {} failed",
        count(Level::Pass),
        count(Level::Warn),
        count(Level::Fail)
    ));
}

async fn install(app: &App) -> Vec<Check> {
    let build = version::build_id(app);
    let text = format!("ours-fleet {}", env!("CARGO_PKG_VERSION"));
    let mut checks = vec![match (&build, &app.settings.executable) {
        (Ok(build), Some(executable)) => {
            Check::new("install", Level::Pass, format!("{text}+{build}, {executable}"))
        }
        (Err(reason), _) => {
            Check::new("install", Level::Warn, format!("{text}, build unknown: {reason}"))
                .named("unknown-build-identity")
                .fix("install the binary as a readable file")
        }
        (Ok(build), None) => Check::new("install", Level::Pass, format!("{text}+{build}")),
    }];
    for skew in version::skews(&version::installs(app).await) {
        let level = if skew.fails { Level::Fail } else { Level::Warn };
        checks.push(
            Check::new("install", level, skew.message)
                .named(skew.kind)
                .fix("`ours-fleet version` lists every one"),
        );
    }
    checks
}

fn config(files: &Result<FleetFiles, CliError>) -> Vec<Check> {
    let files = match files {
        Ok(files) => files,
        Err(error) => {
            return vec![
                Check::new("config", Level::Fail, error.message())
                    .fix("name another file with `-c`, or make this one readable"),
                Check::new("roles", Level::Fail, "unknown: the configuration was not read")
                    .fix("see `config` above"),
            ];
        }
    };
    let mut checks: Vec<Check> = files
        .diagnostics
        .iter()
        .map(|diagnostic| match diagnostic.severity {
            Severity::Error => Check::new("config", Level::Fail, diagnostic.to_string())
                .fix("correct it, then `ours-fleet config`"),
            Severity::Warning => Check::new("yaml", Level::Warn, diagnostic.to_string())
                .named(&kind(diagnostic))
                .fix("write it without, then `ours-fleet config --yaml-mode strict`"),
        })
        .collect();
    if !files.has_errors() {
        let detail =
            if files.base_exists { files.base_path.to_string() } else { files.empty_advice() };
        checks.insert(0, Check::new("config", Level::Pass, detail));
    }
    checks.push(match &files.fleet {
        Some(fleet) => roles_line(fleet, files),
        None => Check::new("roles", Level::Fail, "unknown: the configuration does not load")
            .fix("see `config` above"),
    });
    if let Some(fleet) = &files.fleet {
        let written = fleet.unavailable.iter().filter(|key| key.refuses || key.place.is_some());
        checks.extend(written.map(|key| {
            let detail = format!("`{}`: {}", key.path, key.reason);
            let level = if key.refuses { Level::Fail } else { Level::Warn };
            Check::new("unavailable keys", level, detail).fix(&key.instead)
        }));
    }
    checks
}

fn kind(diagnostic: &Diagnostic) -> String {
    match serde_json::to_value(diagnostic.code) {
        Ok(Value::String(word)) => word,
        _ => "other".to_owned(),
    }
}

fn roles_line(fleet: &Fleet, files: &FleetFiles) -> Check {
    let detail = match fleet.roles.len() {
        0 => files.empty_advice(),
        1 => "1 role".to_owned(),
        n => format!("{n} roles"),
    };
    Check::new("roles", Level::Pass, detail)
}

async fn supervisor(app: &App) -> Vec<Check> {
    let it = &app.supervision;
    if let Err(error) = it.check() {
        return vec![
            Check::new("supervisor", Level::Fail, error.message()).fix(error.hints.join("; ")),
        ];
    }
    let mut checks = vec![match it.instead {
        Some(_) => Check::new("supervisor", Level::Warn, it.text())
            .fix("set OURS_FLEET_SUPERVISOR=none to choose it on purpose"),
        None => Check::new("supervisor", Level::Pass, it.text()),
    }];
    for short in app.runtime.ports.supervisor.inspect().await {
        checks.push(Check::new("supervisor", Level::Warn, short.what).fix(short.fix));
    }
    checks
}

#[cfg(test)]
mod tests {
    use fleet_core::config::{ConfigSources, Fleet, LoadOptions, Role, SourceText, YamlMode, load};
    use fleet_core::diagnostic::Place;
    use fleet_core::harness::shared::SharedItems;
    use fleet_core::path::LexicalPath;
    use fleet_core::permissions::Outer;
    use fleet_core::test_support::fakes::stub_harnesses;

    use crate::resolved::ResolvedRole;

    /// A fleet over the harnesses of the tests.
    pub(super) fn fleet(text: &str) -> Fleet {
        let sources = ConfigSources {
            base_path: "/f/fleet.yaml".into(),
            base: Some(SourceText { path: "/f/fleet.yaml".into(), bytes: text.into() }),
            drop_ins: Vec::new(),
        };
        let (home, harnesses) = (LexicalPath::root(), stub_harnesses());
        let options =
            LoadOptions { yaml_mode: YamlMode::Compat, home: &home, harnesses: &harnesses };
        let loaded = load(&sources, &options);
        loaded.fleet.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
    }

    /// A role of which nothing is known yet.
    pub(super) fn bare(role: &Role) -> ResolvedRole<'_> {
        ResolvedRole {
            role,
            place: Place::file("/f/fleet.yaml"),
            cwd: "/w".into(),
            outer: Outer::Off,
            home: None,
            files: Vec::new(),
            shared: SharedItems::default(),
            notes: Vec::new(),
            translation: None,
            conflicts: Vec::new(),
            floor: None,
            policy: None,
            backend: None,
            required: None,
            starts_unisolated: false,
            promise: Vec::new(),
            problems: Vec::new(),
            blockers: Vec::new(),
        }
    }
}
