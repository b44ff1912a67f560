//! Policies of a given size, and the backend that turns them into a command line.

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use fleet_core::isolation::{
    Backend, IsolationPolicy, Mount, MountMode, MountOrigin, NetworkMode, Resources, SystemView,
    Tmpfs,
};
use fleet_core::path::{LexicalPath, LexicalPathError};
use fleet_core::port::{
    CommandSpec, Exec, ExecError, ExecOutput, Exit, FileIdentity, FileKind, ProbeEvidence,
};
use fleet_sandbox::{BubblewrapIsolation, HostView};

/// A policy with `mounts` mounts of directories below `root`, every second one writable.
///
/// `identify` tells the device and inode of each directory.
pub fn policy_of(
    root: &LexicalPath,
    mounts: usize,
    identify: impl Fn(&LexicalPath) -> FileIdentity,
) -> Result<IsolationPolicy, LexicalPathError> {
    let mut list = Vec::with_capacity(mounts);
    for index in 0..mounts {
        let path = root.child(&format!("m{index}"))?;
        let (mode, origin) = if index % 2 == 0 {
            (MountMode::ReadOnly, MountOrigin::FsRead { index })
        } else {
            (MountMode::ReadWrite, MountOrigin::FsWrite { index })
        };
        list.push(Mount {
            identity: Some(identify(&path)),
            source: path.clone(),
            kind: Some(FileKind::Directory),
            destination: path,
            mode,
            origin,
        });
    }
    let tmpfs = [("/tmp", 512), ("/run", 16)];
    let tmpfs = tmpfs.map(|(path, mib)| {
        LexicalPath::absolute(path).map(|destination| Tmpfs {
            destination,
            size: mib * 1024 * 1024,
            mode: 0o755,
        })
    });
    Ok(IsolationPolicy {
        backend: Backend::Bubblewrap,
        network: NetworkMode::Deny,
        reachable: Vec::new(),
        resources: Resources::default(),
        mounts: list,
        tmpfs: tmpfs.into_iter().collect::<Result<_, _>>()?,
        system: SystemView::Curated,
        nested_sandbox: false,
        cwd: root.child("m1")?,
        home: root.child("m1")?,
        ephemeral_dirs: Vec::new(),
        residual_risks: Vec::new(),
        blocklist_version: 1,
    })
}

/// The bubblewrap backend as on this host. It is asked for plans only, so it can run nothing.
pub fn host_backend() -> BubblewrapIsolation {
    let directories = ["/usr/local/bin", "/usr/bin", "/bin"].map(Utf8PathBuf::from);
    BubblewrapIsolation::new(&directories, HostView::gather("bench"), Arc::new(NoExec))
}

/// What a passed trial of the host's `bwrap` finds, read from its help text.
pub fn evidence(program: &str, help: &str) -> ProbeEvidence {
    let features = ["--bind-fd", "--ro-bind-fd", "--json-status-fd", "--size", "--perms"];
    ProbeEvidence {
        version: "bench".to_owned(),
        program: program.to_owned(),
        features: features
            .into_iter()
            .filter(|feature| help.contains(*feature))
            .map(str::to_owned)
            .collect(),
    }
}

#[derive(Debug)]
struct NoExec;

#[async_trait]
impl Exec for NoExec {
    async fn run(&self, _spec: &CommandSpec) -> Result<ExecOutput, ExecError> {
        Ok(ExecOutput { exit: Exit::Code(127), stdout: Vec::new(), stderr: Vec::new() })
    }
}
