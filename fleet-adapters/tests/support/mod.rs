//! What the tests share.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_adapters::{CliTmuxServers, ProcessExec, TmuxEnvironment};
use fleet_core::port::{NewConsole, Tmux, TmuxAddress, TmuxServers};
use tempfile::TempDir;

/// Ends a test that cannot run here. With `REQUIRE_ALL=1` that is a failure.
macro_rules! skip {
    ($reason:expr) => {{
        assert!(
            std::env::var("REQUIRE_ALL").as_deref() != Ok("1"),
            "skipped although everything is required: {}",
            $reason
        );
        // The test report reads it.
        eprintln!("skipped: {}", $reason);
        return;
    }};
}

/// The machine's own `PATH`.
pub(crate) fn path_variable() -> String {
    std::env::var("PATH").expect("PATH is set")
}

/// An empty directory with a short path, removed at the end.
pub(crate) fn temp() -> TempDir {
    tempfile::Builder::new().prefix("of-").tempdir().expect("a temporary directory")
}

/// The path of a temporary directory as text.
pub(crate) fn utf8(dir: &TempDir) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(dir.path().canonicalize().expect("it exists")).expect("UTF-8")
}

/// Children that are ended with the test.
#[derive(Default)]
pub(crate) struct Children {
    running: Mutex<Vec<Child>>,
}

impl Children {
    /// A process that sleeps.
    pub(crate) fn sleeper(&self) -> u32 {
        let child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("sleep starts");
        let pid = child.id();
        self.running.lock().expect("not poisoned").push(child);
        pid
    }

    /// Ends one and reaps it.
    pub(crate) fn end(&self, pid: u32) {
        let mut running = self.running.lock().expect("not poisoned");
        for child in running.iter_mut().filter(|child| child.id() == pid) {
            child.kill().expect("it can be killed");
            child.wait().expect("it can be reaped");
        }
    }

    /// Whether one still runs.
    pub(crate) fn runs(&self, pid: u32) -> bool {
        let mut running = self.running.lock().expect("not poisoned");
        let child = running.iter_mut().find(|child| child.id() == pid).expect("our child");
        child.try_wait().expect("an answer").is_none()
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let mut running = self.running.lock().expect("not poisoned");
        for child in running.iter_mut() {
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// Whether a pid belongs to a process that is no zombie.
pub(crate) fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let (_, rest) = stat.rsplit_once(") ").expect("a stat line");
    !rest.starts_with('Z')
}

/// Waits until something is so, for at most ten seconds.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

/// Private tmux servers in a directory of their own, ended with the test.
pub(crate) struct Servers {
    pub(crate) servers: CliTmuxServers,
    dir: TempDir,
}

impl Servers {
    pub(crate) fn new() -> Self {
        let dir = temp();
        let environment = TmuxEnvironment { path: path_variable(), home: utf8(&dir) };
        Self { servers: CliTmuxServers::new(Arc::new(ProcessExec), environment), dir }
    }

    pub(crate) fn dir(&self) -> Utf8PathBuf {
        utf8(&self.dir)
    }

    /// The address of a role, its socket in a private directory.
    pub(crate) fn address(&self, role: &str) -> TmuxAddress {
        let control = self.dir().join(role);
        if !control.exists() {
            std::fs::create_dir(&control).expect("it is made");
            set_mode(&control, 0o700);
        }
        let session = role.parse().expect("a role name");
        TmuxAddress { socket: control.join("tmux.sock"), session }
    }

    pub(crate) fn console(&self, role: &str) -> Arc<dyn Tmux> {
        self.servers.server(self.address(role))
    }

    /// A console that runs this.
    pub(crate) fn running(&self, argv: &[&str]) -> NewConsole {
        let argv = argv.iter().map(|&word| word.to_owned()).collect();
        NewConsole { argv, cwd: self.dir(), columns: 200, rows: 50 }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for entry in std::fs::read_dir(self.dir.path()).into_iter().flatten().flatten() {
            let socket: PathBuf = entry.path().join("tmux.sock");
            let _ended = Command::new("tmux")
                .arg("-S")
                .arg(socket)
                .arg("kill-server")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// Sets permission bits.
pub(crate) fn set_mode(path: &Utf8Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;

    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).expect("the mode is set");
}

/// Writes a script that can be run.
pub(crate) fn script(path: &Utf8Path, text: &str) {
    std::fs::write(path, text).expect("it is written");
    set_mode(path, 0o755);
}
