//! A line in the making: its words, what it needs made, and the tree of mount points below it.

use std::collections::BTreeMap;

use fleet_core::attest::AttestRequest;
use fleet_core::isolation::{
    BackendName, IsolationPolicy, Mount, MountMode, MountOrigin, SystemView,
};
use fleet_core::launch::{
    Cleanup, DescriptorRequest, PlanWord, Preparation, ScratchEntry, SourceCheck,
};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PlanError};

use super::KEEP;
use super::argv::proc_masks;
use super::host::PodmanHost;
use crate::bubblewrap::argv::missing_source;
use crate::bubblewrap::{HostView, SystemPath};

/// The rest of what a bind is mounted with. Submounts come along.
pub(super) const BIND: &str = "nosuid,nodev,rbind,rprivate";
/// Empty there, where podman shows devices and control groups of the host.
const NOTHING: &[&str] = &["/sys", "/sys/fs/cgroup"];

/// See the module.
pub(super) struct Line<'a> {
    pub(super) policy: &'a IsolationPolicy,
    pub(super) words: Vec<PlanWord>,
    pub(super) descriptors: Vec<DescriptorRequest>,
    pub(super) checks: Vec<SourceCheck>,
    pub(super) prepare: Vec<Preparation>,
    pub(super) cleanup: Vec<Cleanup>,
    /// Mount points, with what is mounted there.
    points: BTreeMap<String, Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    Directory { mode: u32 },
    File,
}

impl<'a> Line<'a> {
    pub(super) fn of(policy: &'a IsolationPolicy) -> Self {
        Self {
            policy,
            words: Vec::new(),
            descriptors: Vec::new(),
            checks: Vec::new(),
            prepare: Vec::new(),
            cleanup: Vec::new(),
            points: BTreeMap::new(),
        }
    }

    pub(super) fn literals(&mut self, words: impl IntoIterator<Item = &'static str>) {
        self.words.extend(words.into_iter().map(PlanWord::literal));
    }

    pub(super) fn text(&mut self, word: impl Into<String>) {
        self.words.push(PlanWord::text(word));
    }

    pub(super) fn request(&mut self, request: DescriptorRequest) -> usize {
        self.descriptors.push(request);
        self.descriptors.len() - 1
    }

    pub(super) fn scratch(&mut self, path: &str, entry: ScratchEntry) {
        self.prepare.push(Preparation::Scratch { path: path.into(), entry });
    }

    pub(super) fn point(&mut self, at: &str, kind: FileKind) {
        let point = match kind {
            FileKind::Directory => Point::Directory { mode: 0o755 },
            _ => Point::File,
        };
        self.points.insert(at.to_owned(), point);
    }

    /// The keeper with its descriptors, and those that it passes on.
    pub(super) fn keeper(&mut self, request: AttestRequest) {
        let program = self.request(DescriptorRequest::OwnProgram);
        self.words.push(PlanWord::DescriptorPath(program));
        self.literals([KEEP]);
        self.words.push(PlanWord::scratch("", ""));
        for request in [
            DescriptorRequest::StatusPipe,
            DescriptorRequest::LifeLine,
            DescriptorRequest::AttestPipe,
        ] {
            let index = self.request(request);
            self.words.push(PlanWord::Descriptor(index));
        }
        // In the order of `INSIDE`, whose last one is the keeper's.
        self.words.push(PlanWord::Descriptor(program));
        for request in [
            DescriptorRequest::Environment,
            DescriptorRequest::AttestRequest { request },
            DescriptorRequest::ReleasePipe,
        ] {
            let index = self.request(request);
            self.words.push(PlanWord::Descriptor(index));
        }
    }

    /// A file of fleet's, read-only.
    pub(super) fn data(&mut self, path: &'static str, content: String) {
        let own = path.trim_start_matches('/');
        self.scratch(own, ScratchEntry::File { content });
        self.words.push(PlanWord::scratch("--volume=", format!("{path}:{path}:ro,{BIND}")));
        self.point(path, FileKind::File);
    }

    /// A bind. podman splits one of its two notations at colons, the other at commas.
    pub(super) fn bind(
        &mut self,
        source: &str,
        destination: &str,
        mode: MountMode,
        kind: FileKind,
    ) -> Result<(), PlanError> {
        let mode = mode.as_str();
        let has = |c| source.contains(c) || destination.contains(c);
        if !has(':') {
            self.text(format!("--volume={source}:{destination}:{mode},{BIND}"));
        } else if !has(',') && !has('"') {
            let read_only = mode == MountMode::ReadOnly.as_str();
            self.text(format!(
                "--mount=type=bind,src={source},dst={destination},ro={read_only},nosuid,nodev,\
                 bind-propagation=rprivate"
            ));
        } else {
            return Err(unsupported("a mount with both a colon and a comma or quote in its path"));
        }
        self.point(destination, kind);
        Ok(())
    }

    pub(super) fn mount(&mut self, mount: &Mount) -> Result<(), PlanError> {
        let source = mount.source.as_path();
        let kind = if let Some((identity, file)) = mount.identity.zip(mount.kind) {
            self.checks.push(SourceCheck { path: source.to_owned(), identity, file });
            file
        } else if self.policy.ephemeral_dirs.iter().any(|made| made == source) {
            FileKind::Directory
        } else if matches!(mount.origin, MountOrigin::SharedItem { .. }) {
            return Ok(());
        } else {
            return Err(missing_source(mount));
        };
        self.bind(source.as_str(), mount.destination.as_str(), mount.mode, kind)
    }

    pub(super) fn in_memory(
        &mut self,
        at: &str,
        size: u64,
        mode: u32,
        writable: bool,
    ) -> Result<(), PlanError> {
        if at.contains([':', ',', '"']) {
            return Err(unsupported(
                "an in-memory directory with a colon, comma or quote in its path",
            ));
        }
        let access = if writable { "rw,exec" } else { "ro,noexec" };
        self.text(format!(
            "--tmpfs={at}:{access},nosuid,nodev,notmpcopyup,size={size},mode={mode:04o}"
        ));
        self.points.insert(at.to_owned(), Point::Directory { mode });
        Ok(())
    }

    pub(super) fn system_view(
        &mut self,
        host: &HostView,
        own: &PodmanHost,
    ) -> Result<(), PlanError> {
        self.bind("/usr", "/usr", MountMode::ReadOnly, FileKind::Directory)?;
        for (path, kind) in &host.system_paths {
            match kind {
                SystemPath::Link(target) => {
                    let at = format!("rootfs{path}");
                    self.scratch(&at, ScratchEntry::Link { target: target.clone() });
                }
                SystemPath::Directory => {
                    self.bind(path, path, MountMode::ReadOnly, FileKind::Directory)?;
                }
            }
        }
        if self.policy.system == SystemView::Full {
            self.bind("/etc", "/etc", MountMode::ReadOnly, FileKind::Directory)?;
        } else {
            for (path, source, kind) in &own.etc {
                self.bind(source.as_str(), path, MountMode::ReadOnly, *kind)?;
            }
        }
        // podman shows the devices and control groups of the host there, read-only.
        NOTHING.iter().try_for_each(|at| self.in_memory(at, 4096, 0o755, false))
    }

    /// What podman makes unreadable: part of `/proc`, and of `/etc` where all of it is shown.
    pub(super) fn masks(&mut self, host: &HostView) {
        let secrets = host.etc_secrets.iter().map(|(path, _)| *path);
        let secrets = secrets.filter(|_| self.policy.system == SystemView::Full);
        let masks: Vec<&str> =
            proc_masks(host, self.policy).iter().copied().chain(secrets).collect();
        if !masks.is_empty() {
            self.text(format!("--security-opt=mask={}", masks.join(":")));
        }
    }

    /// The empty tree: a mount point for everything that is not below another mount, where the runtime
    /// or the source has it.
    pub(super) fn tree(&mut self) {
        let points = std::mem::take(&mut self.points);
        for (at, point) in &points {
            let covered = LexicalPath::absolute(at).is_ok_and(|path| {
                path.self_and_ancestors().skip(1).any(|above| points.contains_key(above))
            });
            if covered {
                continue;
            }
            let entry = match point {
                Point::Directory { mode } => ScratchEntry::Directory { mode: *mode },
                Point::File => ScratchEntry::File { content: String::new() },
            };
            self.scratch(&format!("rootfs{at}"), entry);
        }
        if !points.contains_key("/run") {
            // podman puts files there. Made by it, the directory belongs to another user of the
            // container, and what is in it could not be removed afterwards.
            self.scratch("rootfs/run", ScratchEntry::Directory { mode: 0o755 });
        }
        for at in ["rootfs/proc", "rootfs/dev"] {
            self.scratch(at, ScratchEntry::Directory { mode: 0o755 });
        }
    }
}

pub(super) fn unsupported(what: &str) -> PlanError {
    PlanError::Unsupported { backend: BackendName::Podman, what: what.to_owned() }
}
