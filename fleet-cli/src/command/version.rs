//! `version`: which build this is, and which other ones are in reach.

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::path::LexicalPath;
use fleet_core::port::{CommandSpec, ExecOutput, FileKind};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::args::{self, PROGRAM};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::document;

/// What this build can do. A token is added together with the feature; code and people test tokens,
/// never version numbers.
pub const CAPABILITIES: &[&str] = &[
    "harness.command",
    "isolation.bubblewrap",
    "isolation.network.allow",
    "isolation.network.deny",
    "isolation.podman",
    "session.tmux",
    "supervisor.none",
];

/// No program that is looked at is larger.
const MAX_PROGRAM_BYTES: u64 = 512 * 1024 * 1024;

/// A program of our name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    /// Where it is, links followed.
    pub bin: Utf8PathBuf,
    /// Its version, if it could be told.
    pub version: Option<String>,
    /// 12 hex digits of the SHA-256 of its content.
    pub build_id: Option<String>,
    /// Whether it is the running one.
    pub running: bool,
}

/// Two programs of our name that are not the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skew {
    /// A stable word for it.
    pub kind: &'static str,
    /// Whether two different programs claim one version.
    pub fails: bool,
    /// What was seen and what to do.
    pub message: String,
}

/// The id of this build, or why it cannot be told.
///
/// # Errors
/// The running program cannot be found or read.
pub fn build_id(app: &App) -> Result<String, String> {
    let path = app.settings.executable.as_deref().ok_or("the running program is unknown")?;
    hash(app, path)
}

fn hash(app: &App, path: &Utf8Path) -> Result<String, String> {
    let bytes = app
        .runtime
        .ports
        .store
        .read(path, MAX_PROGRAM_BYTES)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| format!("{path} does not exist"))?;
    let digest = Sha256::digest(&bytes);
    let hex = digest.iter().take(6).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    Ok(hex)
}

/// Programs of our name on `PATH`, in its order, and the running one.
pub async fn installs(app: &App) -> Vec<Install> {
    let own_build = build_id(app).ok();
    let running = app.settings.executable.clone();
    let mut found: Vec<Install> = Vec::new();
    for dir in &app.runtime.world.path_dirs {
        let Some(bin) = candidate(app, dir) else { continue };
        if found.iter().any(|install| install.bin == bin) {
            continue;
        }
        let is_running = running.as_deref() == Some(&*bin);
        let build = if is_running { own_build.clone() } else { hash(app, &bin).ok() };
        let version = if build.is_some() && build == own_build {
            Some(env!("CARGO_PKG_VERSION").to_owned())
        } else {
            ask(app, &bin).await
        };
        found.push(Install { bin, version, build_id: build, running: is_running });
    }
    if let Some(bin) = running.filter(|_| !found.iter().any(|install| install.running)) {
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        found.push(Install { bin, version, build_id: own_build, running: true });
    }
    found
}

/// The program of our name in this directory: a regular file that somebody may execute.
fn candidate(app: &App, dir: &LexicalPath) -> Option<Utf8PathBuf> {
    let resolved = app.probe().resolve(&dir.child(PROGRAM).ok()?).ok()?;
    let facts = resolved.object?;
    (facts.kind == FileKind::File && facts.mode & 0o111 != 0)
        .then(|| resolved.path.as_path().to_owned())
}

async fn ask(app: &App, bin: &Utf8Path) -> Option<String> {
    let mut spec = CommandSpec::new(bin.as_str(), ["--version"]);
    spec.timeout = std::time::Duration::from_secs(2);
    let output = app.runtime.ports.exec.run(&spec).await.ok().filter(ExecOutput::success)?;
    let text = output.stdout_text().trim().to_owned();
    let plain = !text.is_empty()
        && text.len() <= 40
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".+-".contains(&b));
    plain.then_some(text)
}

/// Where the running program and those on `PATH` differ.
pub fn skews(installs: &[Install]) -> Vec<Skew> {
    let Some(own) = installs.iter().find(|install| install.running) else { return Vec::new() };
    let mut found = Vec::new();
    for (index, other) in installs.iter().enumerate().filter(|(_, other)| !other.running) {
        if other.build_id.is_some() && other.build_id == own.build_id {
            continue;
        }
        let same_version = other.version.is_some() && other.version == own.version;
        let first = index == 0;
        if same_version {
            found.push(Skew {
                kind: if first { "shadowed-runtime" } else { "version-build-conflict" },
                fails: true,
                message: format!(
                    "{} and {} both say version {} and differ: remove or replace one of them",
                    own.bin,
                    other.bin,
                    env!("CARGO_PKG_VERSION")
                ),
            });
        } else if first {
            found.push(Skew {
                kind: "shadowed-runtime",
                fails: false,
                message: format!(
                    "`{PROGRAM}` on PATH is {} ({}), not the running {}: put the directory of the one you want first",
                    other.bin,
                    other.version.as_deref().unwrap_or("version unknown"),
                    own.bin
                ),
            });
        }
    }
    found
}

fn install_json(install: &Install) -> Value {
    json!({
        "version": install.version,
        "buildId": install.build_id,
        "capabilities": install.running.then_some(CAPABILITIES),
        "bin": install.bin,
        "running": install.running,
    })
}

/// Prints version and build.
///
/// # Errors
/// None of its own.
pub async fn run(app: &App, args: &args::Version) -> Result<ExitStatus, CliError> {
    let version = env!("CARGO_PKG_VERSION");
    let build = build_id(app);
    if let Err(reason) = &build {
        app.printer.warn(format!("the id of this build is unknown: {reason}"));
    }
    let build = build.ok();
    let installs = installs(app).await;
    let skews = skews(&installs);
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let commit = option_env!("OURS_FLEET_COMMIT");
    let built_at = option_env!("OURS_FLEET_BUILT_AT");
    if args.json {
        app.printer.json(&document(json!({
            "version": version,
            "buildId": build,
            "commit": commit,
            "builtAt": built_at,
            "capabilities": CAPABILITIES,
            "executable": app.settings.executable,
            "platform": platform,
            "installs": installs.iter().map(install_json).collect::<Vec<_>>(),
            "skew": skews.iter().map(|skew| json!({
                "kind": skew.kind,
                "severity": if skew.fails { "error" } else { "warning" },
                "message": skew.message,
            })).collect::<Vec<_>>(),
        })));
    } else {
        let out = &app.printer;
        out.line(format!("ours-fleet {version}+{}", build.as_deref().unwrap_or("unknown")));
        for (name, value) in [("commit", commit), ("built", built_at)] {
            if let Some(value) = value {
                out.line(format!("{name}: {value}"));
            }
        }
        if let Some(executable) = &app.settings.executable {
            out.line(format!("executable: {executable}"));
        }
        out.line(format!("platform: {platform}"));
        out.line(format!("capabilities: {}", CAPABILITIES.join(", ")));
        for install in installs.iter().filter(|install| !install.running) {
            out.line(format!(
                "also on PATH: {} ({}+{})",
                install.bin,
                install.version.as_deref().unwrap_or("unknown"),
                install.build_id.as_deref().unwrap_or("unknown")
            ));
        }
    }
    for skew in &skews {
        app.printer.warn(&skew.message);
    }
    Ok(ExitStatus::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(bin: &str, version: &str, build: &str, running: bool) -> Install {
        Install {
            bin: bin.into(),
            version: Some(version.to_owned()),
            build_id: Some(build.to_owned()),
            running,
        }
    }

    #[test]
    fn equal_copies_are_no_skew_and_different_ones_are() {
        let own = install("/a/ours-fleet", "1", "aa", true);
        assert!(skews(&[install("/b/ours-fleet", "1", "aa", false), own.clone()]).is_empty());
        let conflict = skews(&[own.clone(), install("/b/ours-fleet", "1", "bb", false)]);
        assert_eq!((conflict[0].kind, conflict[0].fails), ("version-build-conflict", true));
        let shadowed = skews(&[install("/b/ours-fleet", "2", "bb", false), own.clone()]);
        assert_eq!((shadowed[0].kind, shadowed[0].fails), ("shadowed-runtime", false));
        assert!(skews(&[own, install("/b/ours-fleet", "2", "bb", false)]).is_empty());
    }
}
