use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::wait_for;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// Fails the test unless the command ended like this.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The one JSON document on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout));
        assert_eq!(value["schemaVersion"], 1, "{value}");
        value
    }

    /// Both streams.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// A home with a short path, an empty environment, and no process left behind.
#[derive(Debug)]
pub(crate) struct TestEnvironment {
    home: TempDir,
    vars: Vec<(String, String)>,
}

impl TestEnvironment {
    pub(crate) fn new() -> Self {
        Self::new_in("/tmp")
    }

    /// A home below another directory.
    pub(crate) fn new_in(parent: &str) -> Self {
        let home = tempfile::Builder::new()
            .prefix("of-")
            .rand_bytes(6)
            .tempdir_in(parent)
            .expect("a temporary directory");
        let path = std::env::var("PATH").expect("PATH");
        let vars = vec![
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), home.path().to_str().expect("UTF-8").to_owned()),
            // Whatever manager the person at this machine has: its units are not ours to make.
            ("OURS_FLEET_SUPERVISOR".to_owned(), "none".to_owned()),
        ];
        Self { home, vars }
    }

    /// An environment with this `fleet.yaml`.
    pub(crate) fn with_fleet(yaml: &str) -> Self {
        let env = Self::new();
        env.write("fleet.yaml", yaml);
        env
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.home().join(relative)
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.vars.retain(|(other, _)| other != name);
        self.vars.push((name.to_owned(), value.to_owned()));
    }

    /// Writes a file below the home, with its directories.
    pub(crate) fn write(&self, relative: &str, content: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }

    /// Writes an executable script below the home.
    pub(crate) fn script(&self, relative: &str, content: &str) -> PathBuf {
        let path = self.write(relative, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
        path
    }

    pub(crate) fn read(&self, relative: &str) -> Option<Vec<u8>> {
        fs::read(self.path(relative)).ok()
    }

    /// A file of a role's STATE.
    pub(crate) fn state_file(&self, role: &str, name: &str) -> Option<Vec<u8>> {
        self.read(&format!(".ours-fleet/agents/{role}/{name}"))
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ours-fleet"));
        command
            .env_clear()
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run<I, S>(&self, args: I) -> Output
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let output = self.command().args(args).output().expect("the binary runs");
        Output {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// What `status ROLE --json` says.
    #[track_caller]
    pub(crate) fn status(&self, role: &str) -> Value {
        self.run(["status", role, "--json"]).expect(0).json()
    }

    /// Pids of runner and launcher of a running role.
    #[track_caller]
    pub(crate) fn pids(&self, role: &str) -> (u64, u64) {
        let status = self.status(role);
        let pid = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no pid in {status}"));
        (
            pid(&status["status"]["runner"]["pid"]),
            pid(&status["status"]["console"]["launcher"]["pid"]),
        )
    }

    /// Ends the console of a role behind fleet's back.
    pub(crate) fn kill_console(&self, role: &str) {
        let socket = self.path(&format!(".ours-fleet/control/{role}/tmux.sock"));
        let status = Command::new("tmux").arg("-S").arg(socket).arg("kill-server").status();
        assert!(status.expect("tmux").success());
    }

    /// Every living process that was started under this home.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let wanted = format!("HOME={}", self.home().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("/proc").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A zombie has no environment any more.
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environ.split(|byte| *byte == 0).any(|var| var == wanted.as_bytes()) {
                found.push(pid);
            }
        }
        found
    }

    /// Waits until no process of this home lives.
    #[track_caller]
    pub(crate) fn expect_no_process(&self) {
        wait_for("no process is left", || self.processes().is_empty().then_some(()));
    }
}

impl Drop for TestEnvironment {
    fn drop(&mut self) {
        if self.path(".ours-fleet/control").exists() {
            // A fleet file that a test broke keeps nobody from stopping what runs.
            let names: Vec<OsString> = fs::read_dir(self.path(".ours-fleet/control"))
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name())
                .collect();
            let mut command = self.command();
            command.arg("down").args(names).stdout(Stdio::null()).stderr(Stdio::null());
            drop(command.status());
        }
        // Whatever is left was started by this test and carries its home.
        for pid in self.processes() {
            drop(Command::new("kill").args(["-KILL", &pid.to_string()]).status());
        }
    }
}
