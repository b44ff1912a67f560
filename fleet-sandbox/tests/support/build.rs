use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{
    Backend, IsolationPolicy, Mount, MountMode, MountOrigin, NetworkMode, Resources, SystemView,
    Tmpfs,
};
use fleet_core::path::LexicalPath;
use fleet_core::port::{
    CommandSpec, Exec, ExecError, ExecOutput, Exit, FileIdentity, FileKind, ProbeEvidence,
};
use fleet_sandbox::{BubblewrapIsolation, HostView, LandlockIsolation, PodmanIsolation};

/// The port, as simple as it can be: blocking, without a limit.
#[derive(Debug)]
pub(crate) struct TestExec;

#[async_trait::async_trait]
impl Exec for TestExec {
    async fn run(&self, spec: &CommandSpec) -> Result<ExecOutput, ExecError> {
        use std::io::Write as _;
        let fail = |source| ExecError::Io { program: spec.program.clone(), source };
        let mut child = Command::new(&spec.program)
            .args(&spec.args)
            .env_clear()
            .envs(spec.env.iter().cloned())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), &spec.stdin) {
            // A program that does not read its input is no failure of the test.
            let _ = pipe.write_all(bytes);
        }
        let output = child.wait_with_output().map_err(fail)?;
        let exit = match output.status.code() {
            Some(code) => Exit::Code(code),
            None => Exit::Signal(output.status.signal().unwrap_or_default()),
        };
        Ok(ExecOutput { exit, stdout: output.stdout, stderr: output.stderr })
    }
}

pub(crate) fn lexical(path: &Utf8Path) -> LexicalPath {
    LexicalPath::absolute(path.as_str()).expect("a plain path")
}

pub(crate) fn identity_of(path: &Utf8Path) -> (FileIdentity, FileKind) {
    let found = std::fs::metadata(path).expect("exists");
    let kind = if found.is_dir() { FileKind::Directory } else { FileKind::File };
    (FileIdentity { dev: found.dev(), ino: found.ino() }, kind)
}

/// What the machine has.
pub(crate) struct Host;

impl Host {
    pub(crate) fn path_directories() -> Vec<Utf8PathBuf> {
        vec!["/usr/bin".into(), "/bin".into(), "/usr/local/bin".into()]
    }

    pub(crate) fn bwrap() -> Option<Utf8PathBuf> {
        HostView::find_program(&Self::path_directories(), "bwrap")
    }

    /// The podman backend; `None` where it is not installed or this user may not
    /// use it.
    pub(crate) fn podman() -> Option<PodmanIsolation> {
        let directories = Self::path_directories();
        HostView::find_program(&directories, "podman")?;
        let user = user_name();
        let backend = PodmanIsolation::new(
            &directories,
            HostView::gather(&user),
            super::probe_program().to_owned(),
            Arc::new(TestExec),
        );
        backend.needs().ok().map(|()| backend)
    }

    pub(crate) fn is_root() -> bool {
        rustix::process::getuid().is_root()
    }

    pub(crate) fn backend() -> BubblewrapIsolation {
        Self::backend_with(&Self::path_directories())
    }

    pub(crate) fn backend_with(directories: &[Utf8PathBuf]) -> BubblewrapIsolation {
        BubblewrapIsolation::new(directories, HostView::gather("fleet"), Arc::new(TestExec))
    }
}

impl Host {
    /// The backend of Landlock, whether it can be used or not.
    pub(crate) fn landlock() -> LandlockIsolation {
        let host = HostView::gather("fleet");
        LandlockIsolation::new(super::probe_program().to_owned(), host, Arc::new(TestExec))
    }

    /// Why Landlock cannot be used here.
    pub(crate) fn no_landlock() -> Option<&'static str> {
        if Self::is_root() {
            Some("landlock refuses root")
        } else if Self::landlock().abi() == 0 {
            Some("the kernel has no Landlock")
        } else {
            None
        }
    }
}

/// The name of this user, as the user database has it.
fn user_name() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").expect("the user database");
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&*uid));
    line.and_then(|line| line.split(':').next()).unwrap_or("nobody").to_owned()
}

/// Evidence of a podman.
pub(crate) fn podman_evidence() -> ProbeEvidence {
    ProbeEvidence {
        version: "podman version 4.3.1".to_owned(),
        program: "/usr/bin/podman".to_owned(),
        features: Vec::new(),
    }
}

/// Evidence of a `bwrap`, with or without mounts by descriptor.
pub(crate) fn evidence(program: &Utf8Path, by_descriptor: bool) -> ProbeEvidence {
    let features: &[&str] = if by_descriptor { &["--bind-fd", "--ro-bind-fd"] } else { &[] };
    ProbeEvidence {
        version: "bubblewrap 0.8.0".to_owned(),
        program: program.to_string(),
        features: features.iter().map(|feature| (*feature).to_owned()).collect(),
    }
}

/// A policy made by hand, as the resolver would emit it.
#[derive(Debug, Clone)]
pub(crate) struct PolicyBuilder {
    pub(crate) policy: IsolationPolicy,
}

const MIB: u64 = 1024 * 1024;

impl PolicyBuilder {
    pub(crate) fn new(cwd: &Utf8Path, home: &Utf8Path) -> Self {
        let tmpfs = |destination: &str, size, mode| Tmpfs {
            destination: LexicalPath::absolute(destination).expect("plain"),
            size,
            mode,
        };
        let policy = IsolationPolicy {
            backend: Backend::Bubblewrap,
            network: NetworkMode::Deny,
            reachable: Vec::new(),
            resources: Resources::default(),
            mounts: Vec::new(),
            tmpfs: vec![
                tmpfs("/tmp", 512 * MIB, 0o1777),
                tmpfs("/dev/shm", 64 * MIB, 0o1777),
                tmpfs("/run", 16 * MIB, 0o755),
                tmpfs("/var/tmp", 64 * MIB, 0o1777),
                tmpfs(home.as_str(), 256 * MIB, 0o700),
            ],
            system: SystemView::Curated,
            nested_sandbox: false,
            cwd: lexical(cwd),
            home: lexical(home),
            ephemeral_dirs: Vec::new(),
            residual_risks: Vec::new(),
            blocklist_version: 1,
        };
        Self { policy }
    }

    pub(crate) fn mount(mut self, path: &Utf8Path, mode: MountMode, origin: MountOrigin) -> Self {
        let (identity, kind) = identity_of(path);
        self.policy.mounts.push(Mount {
            source: lexical(path),
            identity: Some(identity),
            kind: Some(kind),
            destination: lexical(path),
            mode,
            origin,
        });
        self
    }

    pub(crate) fn write(self, path: &Utf8Path) -> Self {
        self.mount(path, MountMode::ReadWrite, MountOrigin::FsWrite { index: 0 })
    }

    pub(crate) fn read(self, path: &Utf8Path) -> Self {
        self.mount(path, MountMode::ReadOnly, MountOrigin::FsRead { index: 0 })
    }

    /// A directory that does not exist yet and is made for the launch.
    pub(crate) fn ephemeral(mut self, path: &Utf8Path) -> Self {
        self.policy.ephemeral_dirs.push(path.to_owned());
        self.policy.mounts.push(Mount {
            source: lexical(path),
            identity: None,
            kind: None,
            destination: lexical(path),
            mode: MountMode::ReadOnly,
            origin: MountOrigin::Overlay { path: path.to_string() },
        });
        self
    }

    /// `network: allowlist` with these hosts.
    pub(crate) fn reachable(mut self, hosts: &[&str]) -> Self {
        self.policy.network = NetworkMode::Allowlist;
        self.policy.reachable = hosts.iter().map(|host| host.parse().expect(host)).collect();
        self
    }

    pub(crate) fn network(mut self, mode: NetworkMode) -> Self {
        self.policy.network = mode;
        self
    }
}
