use fleet_core::isolation::{
    Backend, BackendName, IsolationPolicy, NetworkMode, Resources, SystemView,
};
use fleet_core::path::LexicalPath;
use fleet_core::port::{CommandSpec, Exit, ProbeFailure};
use fleet_core::programs::Distrust;

use super::{Check, Level};
use crate::app::App;
use crate::env_vars;

const TMUX_FIX: &str = "install tmux 3.0 or newer: `apt install tmux` or `brew install tmux`";

/// Directories of the `PATH` in which nothing is looked for, since an agent may have been there.
pub(super) fn programs(app: &App) -> Vec<Check> {
    let world = &app.runtime.world;
    let passed = world.passed_over.iter().filter(|it| it.why != Distrust::Unreadable);
    let checks: Vec<Check> = passed
        .map(|it| {
            let detail = format!("no program is taken from `{}`: {}", it.directory, it.why);
            Check::new("programs", Level::Warn, detail)
                .fix("start fleet with a PATH without it, or give the agent another directory")
        })
        .collect();
    if !checks.is_empty() {
        return checks;
    }
    let detail = "none is taken from where an agent of the fleet may write";
    vec![Check::new("programs", Level::Pass, detail)]
}

/// tmux of at least 3.0 on `PATH`.
pub(super) async fn tmux(app: &App) -> Vec<Check> {
    let mut spec = CommandSpec::new("tmux", ["-V"]);
    spec.env = vec![(env_vars::PATH.to_owned(), app.runtime.world.path())];
    let check = match app.runtime.ports.exec.run(&spec).await {
        Ok(output) if output.exit == Exit::Code(127) => {
            Check::new("tmux", Level::Fail, "tmux was not found on PATH").fix(TMUX_FIX)
        }
        Ok(output) => {
            let text = output.stdout_text();
            let text = text.trim();
            match tmux_major(text) {
                Some(major) if major >= 3 => Check::new("tmux", Level::Pass, text),
                Some(_) => {
                    Check::new("tmux", Level::Fail, format!("{text} is too old")).fix(TMUX_FIX)
                }
                None => Check::new("tmux", Level::Fail, format!("`tmux -V` says `{text}`"))
                    .fix(TMUX_FIX),
            }
        }
        Err(error) => Check::new("tmux", Level::Fail, error.to_string()).fix(TMUX_FIX),
    };
    vec![check]
}

/// The major number of `tmux 3.3a`, `tmux next-3.4` or `tmux master`.
fn tmux_major(text: &str) -> Option<u32> {
    let version = text.strip_prefix("tmux ")?;
    if version == "master" {
        return Some(3);
    }
    let version = version.strip_prefix("next-").unwrap_or(version);
    version.split('.').next()?.parse().ok()
}

/// A real sandbox with no mount but the system's. Fails only where a role needs one.
pub(super) async fn bubblewrap(app: &App, needed: bool) -> Vec<Check> {
    backend(app, BackendName::Bubblewrap, "isolation: bubblewrap", needed).await
}

/// A real container, where a role names it: nothing else uses it.
pub(super) async fn podman(app: &App, named: bool) -> Vec<Check> {
    if !named {
        return Vec::new();
    }
    backend(app, BackendName::Podman, PODMAN, true).await
}

/// The row of [`podman`].
pub(super) const PODMAN: &str = "isolation: podman";

async fn backend(app: &App, name: BackendName, id: &'static str, needed: bool) -> Vec<Check> {
    let Some(backend) = app.backend(name) else {
        return vec![Check::new(id, Level::Fail, "not in this build").fix("use another build")];
    };
    vec![match backend.probe(&bare_policy()).await {
        Ok(evidence) => {
            let detail = format!("{} ({})", evidence.version, evidence.program);
            if app.runtime.world.uid == 0 {
                Check::new(id, Level::Warn, format!("{detail}; fleet runs as root"))
                    .fix("run the fleet as an ordinary user where you can")
            } else {
                Check::new(id, Level::Pass, detail)
            }
        }
        Err(failure) => {
            let level = if needed { Level::Fail } else { Level::Warn };
            Check::new(id, level, failure.to_string()).fix(remedy(&failure))
        }
    }]
}

/// What to do about a failed probe.
pub(super) fn remedy(failure: &ProbeFailure) -> String {
    match failure {
        ProbeFailure::Missing { hint, .. } => (*hint).to_owned(),
        ProbeFailure::Trial { hint, .. } => hint.clone(),
        ProbeFailure::CannotEnforce { .. } => "ask for something else in the fleet file".to_owned(),
    }
}

fn bare_policy() -> IsolationPolicy {
    IsolationPolicy {
        backend: Backend::Bubblewrap,
        network: NetworkMode::Deny,
        reachable: Vec::new(),
        resources: Resources::default(),
        mounts: Vec::new(),
        tmpfs: Vec::new(),
        system: SystemView::Curated,
        nested_sandbox: false,
        cwd: LexicalPath::root(),
        home: LexicalPath::root(),
        ephemeral_dirs: Vec::new(),
        residual_risks: Vec::new(),
        blocklist_version: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_versions_are_read() {
        for (text, major) in [
            ("tmux 3.3a", Some(3)),
            ("tmux 2.9", Some(2)),
            ("tmux next-3.6", Some(3)),
            ("tmux master", Some(3)),
            ("screen 4", None),
            ("", None),
        ] {
            assert_eq!(tmux_major(text), major, "{text}");
        }
    }
}
