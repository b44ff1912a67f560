use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{EnforcementLevel, Item};
use fleet_core::launch::{
    Environment, ExitRecord, LaunchCommand, LaunchFile, LaunchPlan, Observation,
};
use fleet_core::limits::LimitRequest;
use fleet_core::port::IsolationBackend;
use fleet_sandbox::NoIsolation;

use super::build::{Host, PolicyBuilder, evidence, podman_evidence};

/// A backend, for tests that ask several the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Bubblewrap,
    Landlock,
    Podman,
    /// The control.
    Nothing,
}

impl By {
    /// Why it cannot be used here.
    pub(crate) fn lack(self) -> Option<&'static str> {
        match self {
            Self::Bubblewrap => Host::bwrap().is_none().then_some("bubblewrap is not installed"),
            Self::Landlock => Host::no_landlock(),
            Self::Podman => Host::podman().is_none().then_some("podman cannot be used"),
            Self::Nothing => None,
        }
    }

    /// Its plan; of podman only where it can be used.
    pub(crate) fn plan<T: AsRef<str>>(
        self,
        launch: &Launch,
        policy: &PolicyBuilder,
        argv: &[T],
    ) -> LaunchPlan {
        match self {
            Self::Bubblewrap => launch.plan(policy, argv),
            Self::Landlock => launch.confined_plan(policy, argv),
            Self::Podman => Host::podman()
                .expect("asked before")
                .plan(&policy.policy, &podman_evidence(), &launch.command(argv))
                .expect("a plan"),
            Self::Nothing => launch.bare_plan(argv),
        }
    }
}

/// The test program.
pub(crate) fn probe_program() -> &'static Utf8Path {
    Utf8Path::new(env!("CARGO_BIN_EXE_sandbox-probe"))
}

/// A fleet in a throw-away directory, and one role to launch.
pub(crate) struct Launch {
    pub(crate) _dir: tempfile::TempDir,
    pub(crate) base: Utf8PathBuf,
    pub(crate) home: Utf8PathBuf,
    pub(crate) cwd: Utf8PathBuf,
    pub(crate) control: Utf8PathBuf,
    pub(crate) env: Vec<(String, String)>,
    /// Set for the launcher, not for the role.
    pub(crate) host_env: Vec<(String, String)>,
    pub(crate) by_descriptor: bool,
    pub(crate) bwrap: Utf8PathBuf,
    /// Caps, for every launch.
    pub(crate) limits: Option<LimitRequest>,
}

impl Launch {
    pub(crate) fn new() -> Self {
        // Not below /tmp: that is another one inside.
        let root = Utf8Path::new(env!("CARGO_TARGET_TMPDIR"));
        let dir = tempfile::Builder::new().prefix("fleet-").tempdir_in(root).expect("tempdir");
        let base = Utf8Path::from_path(dir.path()).expect("utf-8").to_owned();
        for name in ["home", "home/.ssh", "control", "agents", "agents/me", "agents/other", "work"]
        {
            std::fs::create_dir(base.join(name)).expect("mkdir");
        }
        Self {
            home: base.join("home"),
            cwd: base.join("work"),
            control: base.join("control"),
            env: vec![
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
                ("HOME".to_owned(), base.join("home").to_string()),
                ("API_TOKEN".to_owned(), "of-the-role".to_owned()),
            ],
            host_env: Vec::new(),
            by_descriptor: true,
            bwrap: Host::bwrap().unwrap_or_else(|| "/usr/bin/bwrap".into()),
            limits: None,
            base,
            _dir: dir,
        }
    }

    /// The usual policy: own state, the cwd, the test program.
    pub(crate) fn policy(&self) -> PolicyBuilder {
        PolicyBuilder::new(&self.cwd, &self.home)
            .write(&self.base.join("agents/me"))
            .write(&self.cwd)
            .read(probe_program())
    }

    pub(crate) fn command<T: AsRef<str>>(&self, argv: &[T]) -> LaunchCommand {
        let argv = argv.iter().map(|word| word.as_ref().to_owned()).collect();
        LaunchCommand { argv, cwd: self.cwd.clone() }
    }

    pub(crate) fn plan<T: AsRef<str>>(&self, policy: &PolicyBuilder, argv: &[T]) -> LaunchPlan {
        Host::backend()
            .plan(&policy.policy, &evidence(&self.bwrap, self.by_descriptor), &self.command(argv))
            .expect("a plan")
    }

    /// A plan of Landlock, and the variables that it needs put into the environment.
    pub(crate) fn confined_plan<T: AsRef<str>>(
        &self,
        policy: &PolicyBuilder,
        argv: &[T],
    ) -> LaunchPlan {
        Host::landlock()
            .plan(&policy.policy, &evidence("".into(), true), &self.command(argv))
            .expect("a plan")
    }

    /// Makes attempts under Landlock: one answer each.
    pub(crate) fn confined_attempts(
        &self,
        policy: &PolicyBuilder,
        attempts: &[&[&str]],
    ) -> Vec<String> {
        let argv = attempt_argv(attempts);
        let outcome = self.run_plan(self.confined_plan(policy, &argv), &argv);
        answers(&outcome.stdout, attempts.len(), &outcome.stderr)
    }

    pub(crate) fn bare_plan<T: AsRef<str>>(&self, argv: &[T]) -> LaunchPlan {
        NoIsolation
            .plan(&self.policy().policy, &evidence(&self.bwrap, true), &self.command(argv))
            .expect("a plan")
    }

    fn file<T: AsRef<str>>(&self, plan: LaunchPlan, argv: &[T]) -> LaunchFile {
        LaunchFile {
            version: LaunchFile::VERSION,
            launch_id: "launch-1".parse().expect("valid"),
            role: "Me".parse().expect("valid"),
            command: self.command(argv),
            env: Environment(self.env.iter().cloned().collect()),
            plan,
            exit_record: self.control.join("exit.json"),
            observed: self.control.join("observed.json"),
            sandbox_process: Some(self.control.join("sandbox-process.json")),
            connections: Some(self.control.join("connections.jsonl")),
            limits: self.limits.clone(),
        }
    }

    /// Writes the launch file and returns the launcher's command, not started yet.
    pub(crate) fn launcher<T: AsRef<str>>(&self, plan: LaunchPlan, argv: &[T]) -> Command {
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = self.control.join("launch.json");
        let text = serde_json::to_vec(&self.file(plan, argv)).expect("serialises");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        std::io::Write::write_all(&mut options.open(&path).expect("new"), &text).expect("write");
        let mut command = Command::new(probe_program());
        command.args(["pane", path.as_str()]).stdin(Stdio::null());
        command.envs(self.host_env.iter().cloned());
        command
    }

    /// Runs a plan to its end.
    pub(crate) fn run_plan<T: AsRef<str>>(&self, plan: LaunchPlan, argv: &[T]) -> Outcome {
        let mut launcher = self.launcher(plan, argv);
        launcher.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.outcome(launcher.spawn().expect("launcher"))
    }

    /// Runs a command in a sandbox to its end.
    pub(crate) fn run<T: AsRef<str>>(&self, policy: &PolicyBuilder, argv: &[T]) -> Outcome {
        self.run_plan(self.plan(policy, argv), argv)
    }

    /// Makes attempts in a sandbox: one answer each.
    pub(crate) fn attempts(&self, policy: &PolicyBuilder, attempts: &[&[&str]]) -> Vec<String> {
        let argv = attempt_argv(attempts);
        let outcome = self.run(policy, &argv);
        answers(&outcome.stdout, attempts.len(), &outcome.stderr)
    }

    /// The control: the same attempts by the same launcher, without a sandbox.
    pub(crate) fn bare_attempts(&self, attempts: &[&[&str]]) -> Vec<String> {
        let argv = attempt_argv(attempts);
        let outcome = self.run_plan(self.bare_plan(&argv), &argv);
        answers(&outcome.stdout, attempts.len(), &outcome.stderr)
    }

    /// Waits for a launcher and collects what it left.
    pub(crate) fn outcome(&self, mut child: Child) -> Outcome {
        let read = |pipe: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            if let Some(pipe) = pipe {
                pipe.read_to_string(&mut text).expect("output");
            }
            text
        };
        let stdout = read(child.stdout.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
        let stderr = read(child.stderr.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
        let code = child.wait().expect("launcher").code();
        let record = |name: &str| std::fs::read(self.control.join(name)).ok();
        Outcome {
            code,
            stdout,
            stderr,
            record: record("exit.json").map(|text| serde_json::from_slice(&text).expect("record")),
            observed: record("observed.json")
                .map(|text| serde_json::from_slice(&text).expect("observation")),
        }
    }
}

fn attempt_argv(attempts: &[&[&str]]) -> Vec<String> {
    let mut argv = vec![probe_program().to_string()];
    for (index, attempt) in attempts.iter().enumerate() {
        if index > 0 {
            argv.push("::".to_owned());
        }
        argv.extend(attempt.iter().map(|word| (*word).to_owned()));
    }
    argv
}

fn answers(stdout: &str, count: usize, stderr: &str) -> Vec<String> {
    let lines: Vec<String> = stdout.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), count, "every attempt answers: {stdout}\n{stderr}");
    lines
}

/// What a launch left.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) record: Option<ExitRecord>,
    pub(crate) observed: Option<Observation>,
}

impl Outcome {
    pub(crate) fn record(&self) -> &ExitRecord {
        self.record.as_ref().unwrap_or_else(|| panic!("no exit record: {}", self.stderr))
    }

    /// Level and evidence of each observed row.
    pub(crate) fn rows(&self) -> Vec<(Item, EnforcementLevel, String)> {
        let observed = self.observed.as_ref().unwrap_or_else(|| panic!("none: {}", self.stderr));
        observed.rows.iter().map(|row| (row.item, row.level, row.evidence.clone())).collect()
    }
}

/// Waits until a condition holds; `false` if it does not within ten seconds.
pub(crate) fn running(condition: impl FnMut() -> bool) -> bool {
    within(10, condition)
}

/// The same with another limit: a container takes seconds on a busy machine.
pub(crate) fn within(seconds: u64, mut condition: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Living processes whose command line holds all of these words.
pub(crate) fn processes_with(words: &[&str]) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            // A zombie has an empty command line.
            words.iter().all(|word| line.split('\0').any(|part| part == *word))
        })
        .collect()
}

/// Every record of connections, allowed or not.
pub(crate) fn records(control: &Utf8Path) -> String {
    ["connections.jsonl", "refusals.jsonl"]
        .map(|name| std::fs::read_to_string(control.join(name)).unwrap_or_default())
        .concat()
}
