//! The command line of `bwrap`, from a policy. Pure: opens nothing, asks nothing.
//!
//! Order: namespaces, the system view, in-memory directories, the policy's mounts, the lock on the
//! root, filters, the program that asks the sandbox about itself, the command. The environment is not
//! in it: `bwrap` is started with the built one.
//! Tests: `golden/argv.rs` (whole lines), `property/plan.rs` (nothing added, command unchanged).

use std::borrow::Cow;

use fleet_core::isolation::network::{Listener, NetworkLayout};
use fleet_core::isolation::system::ETC_SHOWN;
use fleet_core::isolation::{
    BackendName, EnforcementRow, IsolationPolicy, Mount, MountMode, MountOrigin, NetworkMode,
    SystemView,
};
use fleet_core::launch::{
    Cleanup, DescriptorRequest, LaunchCommand, LaunchPlan, NetworkPlan, PlanWord, Preparation,
    SourceCheck,
};
use fleet_core::port::{FileKind, PlanError, ProbeEvidence};

use super::fold::Folded;
use super::made;
use super::system::{HostView, SystemPath};
use crate::attest;
use crate::seccomp;

/// The name of every sandbox.
pub(crate) const HOSTNAME: &str = "sandbox";

/// Words and descriptors of a usual line beside its mounts: a guess that saves moving them about.
const FIXED_WORDS: usize = 256;
const FIXED_DESCRIPTORS: usize = 16;

type Word = Cow<'static, str>;

/// The namespace flags of a policy.
pub(super) fn namespaces(policy: &IsolationPolicy) -> Vec<&'static str> {
    let mut flags = vec![
        "--die-with-parent",
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-pid",
        "--unshare-cgroup-try",
    ];
    if policy.network != NetworkMode::Allow {
        flags.push("--unshare-net");
    }
    flags.extend(["--cap-drop", "ALL"]);
    if !policy.nested_sandbox {
        flags.push("--disable-userns");
    }
    flags.extend(["--hostname", HOSTNAME]);
    flags
}

/// `/usr` and what leads there, the listed part of `/etc`, `/proc` with its masks, `/dev`.
pub(super) fn system_view(host: &HostView, policy: &IsolationPolicy) -> Vec<Word> {
    let mut words = Vec::new();
    let mut add = |flags: &[&'static str], paths: &[&str]| {
        words.extend(flags.iter().map(|flag| Word::Borrowed(*flag)));
        words.extend(paths.iter().map(|path| Word::Owned((*path).to_owned())));
    };
    add(&["--ro-bind", "/usr", "/usr"], &[]);
    for (path, kind) in &host.system_paths {
        match kind {
            SystemPath::Link(target) => add(&["--symlink"], &[target, path]),
            SystemPath::Directory => add(&["--ro-bind"], &[path, path]),
        }
    }
    match policy.system {
        SystemView::Curated => {
            for name in ETC_SHOWN {
                add(&["--ro-bind-try", name, name], &[]);
            }
        }
        SystemView::Full => {
            add(&["--ro-bind", "/etc", "/etc"], &[]);
            // Readable inside when the fleet user is root, and of no use to anybody else.
            for (path, kind) in &host.etc_secrets {
                if *kind == FileKind::Directory {
                    add(&["--size", "4096", "--perms", "0700", "--tmpfs"], &[path]);
                } else {
                    add(&["--ro-bind", "/dev/null"], &[path]);
                }
            }
        }
    }
    add(&["--proc", "/proc", "--dev", "/dev"], &[]);
    if masks_proc(host, policy) {
        for path in &host.proc_masks {
            add(&["--ro-bind", "/dev/null"], &[path]);
        }
        add(&["--ro-bind", "/proc/sys", "/proc/sys"], &[]);
    }
    words
}

/// A sandbox inside the sandbox can mount its own `/proc` only if nothing covers ours. The host's
/// root writes `/proc/sys` even without capabilities, so for root the covers stay.
pub(crate) fn masks_proc(host: &HostView, policy: &IsolationPolicy) -> bool {
    !policy.nested_sandbox || host.uid == 0
}

/// The in-memory directories of a policy.
pub(super) fn in_memory(policy: &IsolationPolicy) -> Vec<Word> {
    let words = |tmpfs: &fleet_core::isolation::Tmpfs| {
        [
            Word::Borrowed("--size"),
            Word::Owned(tmpfs.size.to_string()),
            Word::Borrowed("--perms"),
            Word::Owned(format!("{:04o}", tmpfs.mode)),
            Word::Borrowed("--tmpfs"),
            Word::Owned(tmpfs.destination.to_string()),
        ]
    };
    policy.tmpfs.iter().flat_map(words).collect()
}

#[derive(Default)]
struct Line {
    words: Vec<PlanWord>,
    descriptors: Vec<DescriptorRequest>,
    checks: Vec<SourceCheck>,
    prepare: Vec<Preparation>,
    cleanup: Vec<Cleanup>,
}

impl Line {
    fn literals(&mut self, words: impl IntoIterator<Item = &'static str>) {
        self.words.extend(words.into_iter().map(PlanWord::literal));
    }

    fn text(&mut self, word: &str) {
        self.words.push(PlanWord::text(word));
    }

    fn descriptor(&mut self, flag: &'static str, request: DescriptorRequest) {
        self.words.push(PlanWord::literal(flag));
        self.words.push(PlanWord::Descriptor(self.descriptors.len()));
        self.descriptors.push(request);
    }

    fn data(&mut self, path: &str, content: String) {
        self.literals(["--perms", "0644"]);
        let label = path.to_owned();
        self.descriptor("--ro-bind-data", DescriptorRequest::Data { label, content });
        self.text(path);
    }

    /// A mount without a bind of its own: only its source is looked at again.
    fn checked(&mut self, mount: &Mount) -> Result<(), PlanError> {
        let (identity, file) =
            mount.identity.zip(mount.kind).ok_or_else(|| missing_source(mount))?;
        let path = mount.source.as_path().to_owned();
        self.checks.push(SourceCheck { path, identity, file });
        Ok(())
    }

    /// The first program inside asks what holds, and becomes the command.
    fn attest(&mut self, host: &HostView, policy: &IsolationPolicy, listeners: &[Listener]) {
        let masks = if masks_proc(host, policy) { host.proc_masks.as_slice() } else { &[] };
        let secrets: Vec<&str> = host.etc_secrets.iter().map(|(path, _)| *path).collect();
        let request = attest::request::bubblewrap(policy, listeners, HOSTNAME, masks, &secrets);
        self.words.push(PlanWord::DescriptorPath(self.descriptors.len()));
        self.descriptors.push(DescriptorRequest::OwnProgram);
        self.descriptor(attest::COMMAND, DescriptorRequest::AttestRequest { request });
        self.words.push(PlanWord::Descriptor(self.descriptors.len()));
        self.descriptors.push(DescriptorRequest::AttestPipe);
    }

    fn mount(&mut self, mount: &Mount, by_descriptor: bool) -> Result<(), PlanError> {
        let source = mount.source.as_path();
        let request = if let Some((identity, file)) = mount.identity.zip(mount.kind) {
            DescriptorRequest::Source { path: source.to_owned(), identity, file }
        } else {
            let made =
                |made: &Preparation| *made == Preparation::MakeDir { path: source.to_owned() };
            match self.prepare.iter().position(made) {
                Some(index) => DescriptorRequest::Prepared { index },
                None if matches!(mount.origin, MountOrigin::SharedItem { .. }) => return Ok(()),
                None => return Err(missing_source(mount)),
            }
        };
        let writable = mount.mode == MountMode::ReadWrite;
        if by_descriptor {
            self.descriptor(if writable { "--bind-fd" } else { "--ro-bind-fd" }, request);
        } else {
            self.literals([if writable { "--bind" } else { "--ro-bind" }]);
            self.text(source.as_str());
            if let DescriptorRequest::Source { path, identity, file } = request {
                self.checks.push(SourceCheck { path, identity, file });
            }
        }
        self.text(mount.destination.as_str());
        Ok(())
    }
}

pub(super) fn plan(
    host: &HostView,
    policy: &IsolationPolicy,
    evidence: &ProbeEvidence,
    command: &LaunchCommand,
    promise: Vec<EnforcementRow>,
) -> Result<LaunchPlan, PlanError> {
    let by_descriptor = ["--bind-fd", "--ro-bind-fd"]
        .iter()
        .all(|flag| evidence.features.iter().any(|feature| feature == flag));
    let mut line = Line::default();
    let mounts = policy.mounts.len();
    line.words.reserve(FIXED_WORDS + 3 * mounts + command.argv.len());
    line.descriptors.reserve(FIXED_DESCRIPTORS + if by_descriptor { mounts } else { 0 });
    for path in &policy.ephemeral_dirs {
        line.prepare.push(Preparation::MakeDir { path: path.clone() });
        line.cleanup.push(Cleanup::RemoveEmptyDir { path: path.clone() });
    }

    line.text(&evidence.program);
    line.literals(namespaces(policy));
    line.descriptor("--json-status-fd", DescriptorRequest::StatusPipe);
    let layout = NetworkLayout::of(&policy.reachable);
    let served = policy.network != NetworkMode::Allow && !layout.listeners.is_empty();
    if served {
        line.descriptor("--block-fd", DescriptorRequest::ReleasePipe);
    }
    line.words.extend(system_view(host, policy).into_iter().map(PlanWord::Text));
    if policy.system == SystemView::Curated {
        for (path, content) in made::etc(host, policy, &layout) {
            line.data(path, content);
        }
    }
    line.words.extend(in_memory(policy).into_iter().map(PlanWord::Text));
    if policy.system == SystemView::Full
        && policy.network == NetworkMode::Allow
        && let (Some(target), Some(content)) = (&host.resolv_conf_target, &host.resolv_conf)
    {
        line.data(target.as_str(), content.clone());
    }
    let mut folded = Folded::default();
    for mount in &policy.mounts {
        if folded.is_shown_by_another(mount) {
            line.checked(mount)?;
        } else {
            line.mount(mount, by_descriptor)?;
        }
    }
    line.literals(["--remount-ro", "/", "--chdir"]);
    line.text(command.cwd.as_str());
    for profile in seccomp::profiles(policy.nested_sandbox) {
        let profile = (*profile).to_owned();
        line.descriptor("--add-seccomp-fd", DescriptorRequest::SeccompFilter { profile });
    }
    line.literals(["--"]);
    let listeners = if served { layout.listeners.as_slice() } else { &[] };
    line.attest(host, policy, listeners);
    line.words.extend(command.argv.iter().map(PlanWord::text));

    Ok(LaunchPlan {
        backend: BackendName::Bubblewrap,
        argv: line.words,
        descriptors: line.descriptors,
        checks: line.checks,
        prepare: line.prepare,
        cleanup: line.cleanup,
        network: served
            .then(|| NetworkPlan { rules: policy.reachable.clone(), listeners: layout.listeners }),
        promise,
    })
}

pub(crate) fn missing_source(mount: &Mount) -> PlanError {
    PlanError::MissingSource {
        source_path: mount.source.to_string(),
        origin: origin_text(&mount.origin),
    }
}

/// A mount's origin in the words of the configuration.
fn origin_text(origin: &MountOrigin) -> String {
    match origin {
        MountOrigin::State => "the role's state directory".to_owned(),
        MountOrigin::Cwd => "cwd".to_owned(),
        MountOrigin::HarnessHome => "the harness home".to_owned(),
        MountOrigin::Handout => "the handout directory".to_owned(),
        MountOrigin::SharedItem { name } => format!("shared harness item `{name}`"),
        MountOrigin::Repository { part } => format!("{part} of the repository of cwd"),
        MountOrigin::AddDir { index } => format!("add_dirs[{index}]"),
        MountOrigin::LaunchClosure => "needed to run the harness".to_owned(),
        MountOrigin::FsWrite { index } => format!("isolation.fs.write[{index}]"),
        MountOrigin::FsRead { index } => format!("isolation.fs.read[{index}]"),
        MountOrigin::Secret { index } => format!("isolation.secrets[{index}]"),
        MountOrigin::Overlay { path } => format!("isolation.protect: {path}"),
        MountOrigin::SelfBind => "above a protected path".to_owned(),
    }
}
