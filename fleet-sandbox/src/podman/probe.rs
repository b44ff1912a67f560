//! The trial: a real launch with the very flags of a role and a harmless command, in a throw-away
//! directory, judged by what the launcher records.
//!
//! A version text proves nothing (08 A12).

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use camino::Utf8Path;
use fleet_core::isolation::{BackendName, IsolationPolicy};
use fleet_core::launch::{Environment, ExitRecord, LaunchCommand, LaunchFile, LaunchPlan};
use fleet_core::path::LexicalPath;
use fleet_core::port::{CommandSpec, Exec, PlanError, ProbeEvidence, ProbeFailure};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use super::host::PodmanHost;
use super::sweep;
use crate::bubblewrap::HostView;

/// A container takes a second, and several on a machine that has something else to do.
const PATIENCE: Duration = Duration::from_secs(45);

/// What is missing beside podman itself.
pub(super) fn needs(own: &PodmanHost, host: &HostView) -> Result<(), ProbeFailure> {
    if let Some((program, hint)) = own.missing.first() {
        return Err(ProbeFailure::Missing { program: (*program).to_owned(), hint });
    }
    if let Some(file) = own.ungranted {
        let kind = if file.ends_with("uid") { "uids" } else { "gids" };
        let user = &host.user;
        return Err(ProbeFailure::Trial {
            detail: format!("{file} grants `{user}` no subordinate ids"),
            hint: format!("grant them, as root: usermod --add-sub{kind} 100000-165535 {user}"),
        });
    }
    Ok(())
}

pub(super) async fn evidence(
    exec: &dyn Exec,
    program: &Utf8Path,
) -> Result<ProbeEvidence, ProbeFailure> {
    let spec = CommandSpec::new(program.as_str(), ["--version"]);
    let output = exec.run(&spec).await.map_err(|error| failed(error.to_string()))?;
    if !output.success() {
        return Err(failed(format!("`{program} --version` failed: {}", output.stderr_text())));
    }
    let version = output.stdout_text().trim().to_owned();
    Ok(ProbeEvidence { version, program: program.to_string(), features: Vec::new() })
}

/// Runs `/usr/bin/true` in a container of the policy, without its mounts and without what is served.
pub(super) async fn trial(
    exec: &dyn Exec,
    launcher: &Utf8Path,
    policy: &IsolationPolicy,
    plan: impl Fn(&IsolationPolicy, &LaunchCommand) -> Result<LaunchPlan, PlanError>,
) -> Result<(), ProbeFailure> {
    let mut policy = policy.clone();
    policy.mounts.clear();
    policy.ephemeral_dirs.clear();
    policy.reachable.clear();
    policy.cwd = LexicalPath::root();
    let command = LaunchCommand { argv: vec!["/usr/bin/true".to_owned()], cwd: "/".into() };
    let plan = plan(&policy, &command).map_err(|error| match error {
        PlanError::Unsupported { what, .. } => {
            ProbeFailure::CannotEnforce { backend: BackendName::Podman, what }
        }
        error @ PlanError::MissingSource { .. } => failed(error.to_string()),
    })?;
    let prepared = Prepared::new(plan, command).map_err(|error| failed(error.to_string()))?;
    let mut spec = CommandSpec::new(launcher.as_str(), ["_pane", prepared.file.as_str()]);
    spec.timeout = PATIENCE;
    let output = exec.run(&spec).await.map_err(|error| failed(error.to_string()))?;
    match prepared.record() {
        Some(ExitRecord { started: true, code: Some(0), .. }) => Ok(()),
        Some(ExitRecord { error: Some(reason), .. }) => Err(failed(reason)),
        _ => Err(failed(match output.stderr_text() {
            text if text.is_empty() => "the trial ended without a record".to_owned(),
            text => text.chars().take(300).collect(),
        })),
    }
}

/// Names of the directories of trials begin so.
const PREFIX: &str = "of-trial-";
const LOCK: &str = "held";

/// A directory with a launch file; gone with it.
struct Prepared {
    _directory: tempfile::TempDir,
    /// Held for as long as the trial is somebody's.
    _lock: File,
    file: String,
    record: std::path::PathBuf,
}

impl Prepared {
    fn new(plan: LaunchPlan, command: LaunchCommand) -> std::io::Result<Self> {
        sweep_trials();
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in("/tmp")?;
        let at = Utf8Path::from_path(directory.path())
            .ok_or_else(|| std::io::Error::other("the temporary directory is no text"))?
            .to_owned();
        let lock = File::create_new(at.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let id = |error: String| std::io::Error::other(error);
        let launch = LaunchFile {
            version: LaunchFile::VERSION,
            launch_id: "trial".parse().map_err(|error| id(format!("{error}")))?,
            role: "trial".parse().map_err(|error| id(format!("{error}")))?,
            command,
            env: Environment::default(),
            plan,
            exit_record: at.join("exit.json"),
            observed: at.join("observed.json"),
            sandbox_process: None,
            connections: None,
            limits: None,
        };
        let file = at.join("launch.json");
        let text = serde_json::to_vec(&launch)?;
        // Made 0600, as the launcher asks.
        let mut named = tempfile::NamedTempFile::new_in(&at)?;
        std::io::Write::write_all(&mut named, &text)?;
        named.persist(&file).map_err(|error| error.error)?;
        Ok(Self {
            record: launch.exit_record.into(),
            file: file.into_string(),
            _directory: directory,
            _lock: lock,
        })
    }

    fn record(&self) -> Option<ExitRecord> {
        serde_json::from_slice(&std::fs::read(&self.record).ok()?).ok()
    }
}

/// Removes the directories of trials that were killed: of this user, and nobody holds them.
fn sweep_trials() {
    let own = rustix::process::getuid().as_raw();
    for entry in Utf8Path::new("/tmp").read_dir_utf8().into_iter().flatten().flatten() {
        let at = entry.path();
        let ours = at.file_name().is_some_and(|name| name.starts_with(PREFIX))
            && std::fs::symlink_metadata(at).is_ok_and(|it| it.is_dir() && it.uid() == own);
        if ours && free(&at.join(LOCK)) {
            let boxes = at.join("boxes");
            for launch in boxes.read_dir_utf8().into_iter().flatten().flatten() {
                // Its launcher may live on for a moment, and clears it away itself.
                if free(&launch.path().join("lock")) {
                    sweep::clear(launch.path());
                }
            }
            if boxes.read_dir_utf8().is_ok_and(|mut left| left.next().is_none()) || !boxes.exists()
            {
                let _ = std::fs::remove_dir_all(at);
            }
        }
    }
}

/// Whether a lock file is there that nobody holds.
fn free(path: &Utf8Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open(path.as_std_path(), flags, Mode::empty())
        .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// What is behind words of podman and its helpers.
struct Remedy {
    words: &'static [&'static str],
    hint: &'static str,
}

/// The first that matches counts.
const REMEDIES: &[Remedy] = &[
    Remedy {
        words: &["newuidmap", "newgidmap", "subuid", "subgid", "insufficient UIDs"],
        hint: "install uidmap and grant this user ids in /etc/subuid and /etc/subgid (usermod \
               --add-subuids 100000-165535 --add-subgids 100000-165535 USER)",
    },
    Remedy {
        words: &["catatonit", "container-init", "init binary"],
        hint: "install it: apt install catatonit",
    },
    Remedy { words: &["runc"], hint: "runc 1.1 or newer is needed: apt install runc" },
    Remedy {
        words: &["unknown flag", "invalid option", "invalid argument"],
        hint: "podman 4.3 or newer is needed",
    },
    Remedy {
        words: &["user namespace", "clone: Operation not permitted", "cannot clone"],
        hint: "this system blocks unprivileged user namespaces: see what `ours-fleet doctor` says of \
               bubblewrap",
    },
];

fn failed(detail: String) -> ProbeFailure {
    let known = |remedy: &&Remedy| remedy.words.iter().any(|word| detail.contains(word));
    let hint = REMEDIES.iter().find(known).map_or(
        "run `podman run --rm --rootfs /` by hand to see whether it works for this user at all",
        |remedy| remedy.hint,
    );
    ProbeFailure::Trial { hint: hint.to_owned(), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_get_their_remedy() {
        for (words, remedy) in [
            ("exec: \"newuidmap\": executable file not found in $PATH", "uidmap"),
            ("runc: runc create failed: unable to start", "1.1"),
            ("Error: unknown flag: --unsetenv-all", "4.3"),
            ("cannot clone: Operation not permitted", "bubblewrap"),
            ("something else", "by hand"),
        ] {
            let ProbeFailure::Trial { hint, .. } = failed(words.to_owned()) else {
                panic!("a trial");
            };
            assert!(hint.contains(remedy), "{words}: {hint}");
        }
    }
}
