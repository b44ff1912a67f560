//! The written block and the resolved policy, as types.

use std::fmt;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::network::HostRule;
use crate::path::LexicalPath;
use crate::port::{FileIdentity, FileKind};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// Every value, as written in a fleet file.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The value as written in a fleet file.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The value that a word stands for.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// `isolation.backend` as written.
    Backend {
        /// The best usable one.
        Auto = "auto",
        /// bubblewrap.
        Bubblewrap = "bubblewrap",
        /// podman.
        Podman = "podman",
        /// landlock and seccomp without namespaces.
        Landlock = "landlock",
        /// No isolation, on purpose.
        None = "none",
    }
}
words! {
    /// A backend that can be chosen.
    BackendName {
        /// bubblewrap.
        Bubblewrap = "bubblewrap",
        /// podman.
        Podman = "podman",
        /// landlock and seccomp without namespaces.
        Landlock = "landlock",
        /// No isolation.
        None = "none",
    }
}
words! {
    /// `isolation.on_unavailable`.
    OnUnavailable {
        /// Start un-isolated and say so.
        Warn = "warn",
        /// Refuse the launch.
        Strict = "strict",
    }
}
words! {
    /// `isolation.network`.
    NetworkMode {
        /// Messaging and the model endpoints of the harness.
        Broker = "broker",
        /// Nothing.
        Deny = "deny",
        /// The host's network.
        Allow = "allow",
        /// The listed hosts.
        Allowlist = "allowlist",
    }
}
words! {
    /// `isolation.system`.
    SystemView {
        /// A short list of `/etc`.
        Curated = "curated",
        /// The whole of `/etc`, read-only.
        Full = "full",
    }
}
words! {
    /// Whether a mount can be written.
    MountMode {
        /// Read only.
        ReadOnly = "ro",
        /// Read and write.
        ReadWrite = "rw",
    }
}

impl NetworkMode {
    /// Whether what can be reached is a list of hosts.
    pub fn lists_hosts(self) -> bool {
        matches!(self, Self::Broker | Self::Allowlist)
    }
}

/// A number of processors, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Thousandths of a processor, at least 1.
    pub millis: u64,
}

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemoryBytes(pub u64);

/// `isolation.resources`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Processor cap.
    pub cpu: Option<Cpu>,
    /// Memory cap.
    pub memory: Option<MemoryBytes>,
    /// Process count cap.
    pub pids: Option<u32>,
}

/// A path of `fs.read`, `fs.write` or `protect` as written, past the lexical gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsPath {
    /// As written.
    pub written: String,
    /// Absolute form.
    pub path: LexicalPath,
}

/// An entry of `isolation.secrets`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretEntry {
    /// Host side.
    pub from: LexicalPath,
    /// Sandbox side.
    pub to: LexicalPath,
    /// Whether the map form was used, which allows a directory.
    pub map_form: bool,
}

/// The `isolation:` block of a role or of the defaults, validated on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationBlock {
    /// `backend`.
    pub backend: Backend,
    /// `on_unavailable`; `None` if not written, which is not the same as `warn` (01 §2.10).
    pub on_unavailable: Option<OnUnavailable>,
    /// `network`; `None` if not written: then `broker`, whose default promises protection.
    pub network: Option<NetworkMode>,
    /// `allow_hosts`.
    pub allow_hosts: Vec<HostRule>,
    /// `fs.read`.
    pub fs_read: Vec<FsPath>,
    /// `fs.write`.
    pub fs_write: Vec<FsPath>,
    /// `resources`.
    pub resources: Resources,
    /// `secrets`.
    pub secrets: Vec<SecretEntry>,
    /// `protect`: paths below the cwd, beside the default overlays; an empty list ends those too.
    pub protect: Option<Vec<String>>,
    /// `system`.
    pub system: SystemView,
    /// `nested_sandbox`.
    pub nested_sandbox: bool,
    /// `image`.
    pub image: Option<String>,
}

impl Default for IsolationBlock {
    fn default() -> Self {
        Self {
            backend: Backend::Auto,
            on_unavailable: None,
            network: None,
            allow_hosts: Vec::new(),
            fs_read: Vec::new(),
            fs_write: Vec::new(),
            resources: Resources::default(),
            secrets: Vec::new(),
            protect: None,
            system: SystemView::Curated,
            nested_sandbox: false,
            image: None,
        }
    }
}

impl IsolationBlock {
    /// The network mode in force.
    pub fn network(&self) -> NetworkMode {
        self.network.unwrap_or(NetworkMode::Broker)
    }
}

/// Why a mount is in the policy, most fundamental first: the order breaks ties of emission.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum MountOrigin {
    /// The role's own directory.
    State,
    /// The working directory.
    Cwd,
    /// The harness's config home.
    HarnessHome,
    /// What fleet hands to the agent.
    Handout,
    /// An item of the operator's harness home.
    SharedItem {
        /// Its name there.
        name: String,
    },
    /// Where git keeps what belongs to a linked worktree or submodule.
    Repository {
        /// Which part.
        part: String,
    },
    /// A directory the harness was told to work in as well.
    AddDir {
        /// Position in the list.
        index: usize,
    },
    /// Needed to run the harness program.
    LaunchClosure,
    /// `isolation.fs.write`.
    FsWrite {
        /// Position in the list.
        index: usize,
    },
    /// `isolation.fs.read`.
    FsRead {
        /// Position in the list.
        index: usize,
    },
    /// `isolation.secrets`.
    Secret {
        /// Position in the list.
        index: usize,
    },
    /// A protected path of the project (`isolation.protect`).
    Overlay {
        /// Its path below the cwd.
        path: String,
    },
    /// A directory bound onto itself so that it cannot be renamed away from under an overlay.
    SelfBind,
}

/// One mount of a resolved policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// What is mounted, links followed.
    pub source: LexicalPath,
    /// Device and inode of the source; `None` if it did not exist at resolution, which makes the
    /// launch fail (the mount is hard) but not the check.
    pub identity: Option<FileIdentity>,
    /// What the source is.
    pub kind: Option<FileKind>,
    /// Where it appears.
    pub destination: LexicalPath,
    /// Whether it can be written.
    pub mode: MountMode,
    /// Why it is there.
    pub origin: MountOrigin,
}

/// An empty in-memory directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tmpfs {
    /// Where it appears.
    pub destination: LexicalPath,
    /// Its cap in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
}

/// Everything a sandbox shows and allows. What is not listed is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IsolationPolicy {
    /// The backend as written.
    pub backend: Backend,
    /// Network mode.
    pub network: NetworkMode,
    /// What can be reached in the modes `broker` and `allowlist`; empty in the others, where the mode
    /// says it all.
    pub reachable: Vec<HostRule>,
    /// Resource caps.
    pub resources: Resources,
    /// Mounts in the order in which they are made: ancestors first.
    pub mounts: Vec<Mount>,
    /// In-memory directories, made before the mounts; ancestors first.
    pub tmpfs: Vec<Tmpfs>,
    /// How much of `/etc` is visible.
    pub system: SystemView,
    /// Whether the harness may make a sandbox of its own.
    pub nested_sandbox: bool,
    /// Where the command starts.
    pub cwd: LexicalPath,
    /// `HOME` inside.
    pub home: LexicalPath,
    /// Directories to make on the host before the launch and to remove, while empty, after it.
    pub ephemeral_dirs: Vec<Utf8PathBuf>,
    /// Project files that an agent could create and that would act outside the sandbox later.
    pub residual_risks: Vec<String>,
    /// Version of the list of forbidden paths that this policy was judged against.
    pub blocklist_version: u32,
}

impl IsolationPolicy {
    /// The policy of a role without isolation: nothing is confined.
    pub fn none(cwd: &LexicalPath, home: &LexicalPath) -> Self {
        Self {
            backend: Backend::None,
            network: NetworkMode::Allow,
            reachable: Vec::new(),
            resources: Resources::default(),
            mounts: Vec::new(),
            tmpfs: Vec::new(),
            system: SystemView::Full,
            nested_sandbox: true,
            cwd: cwd.clone(),
            home: home.clone(),
            ephemeral_dirs: Vec::new(),
            residual_risks: Vec::new(),
            blocklist_version: 0,
        }
    }

    /// Hard mounts whose source did not exist at resolution: the launch refuses while there is one.
    /// Directories that the launch makes itself (`ephemeral_dirs`) are not counted; the launch makes
    /// them and resolves again, because a mount without an identity is never carried out.
    pub fn missing_sources(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().filter(|mount| {
            mount.identity.is_none()
                && !self.ephemeral_dirs.iter().any(|dir| *dir == *mount.source.as_path())
        })
    }

    /// The deepest mount that covers a path inside the sandbox; `None` if it is in no mount.
    pub fn covering(&self, path: &LexicalPath) -> Option<&Mount> {
        self.mounts
            .iter()
            .filter(|mount| path.is_within(&mount.destination))
            .max_by_key(|mount| mount.destination.depth())
    }
}

impl MountOrigin {
    /// The dotted path of the key below the role that asks for the mount.
    pub fn key(&self) -> String {
        match self {
            Self::Cwd | Self::Repository { .. } => "cwd".to_owned(),
            Self::AddDir { index } => format!("harness_options.add_dirs[{index}]"),
            Self::FsWrite { index } => format!("isolation.fs.write[{index}]"),
            Self::FsRead { index } => format!("isolation.fs.read[{index}]"),
            Self::Secret { index } => format!("isolation.secrets[{index}]"),
            Self::Overlay { .. } | Self::SelfBind => "isolation.protect".to_owned(),
            Self::State
            | Self::HarnessHome
            | Self::Handout
            | Self::SharedItem { .. }
            | Self::LaunchClosure => "isolation".to_owned(),
        }
    }

    /// Whether the role asks for the mount, as opposed to fleet.
    pub fn is_by_user(&self) -> bool {
        matches!(
            self,
            Self::Cwd
                | Self::Repository { .. }
                | Self::AddDir { .. }
                | Self::FsWrite { .. }
                | Self::FsRead { .. }
                | Self::Secret { .. }
        )
    }
}

impl fmt::Display for MountOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State => f.write_str("the role's own directory"),
            Self::HarnessHome => f.write_str("the home of the harness"),
            Self::Handout => f.write_str("the handout of the role"),
            Self::SharedItem { name } => write!(f, "the shared item `{name}`"),
            Self::Repository { part } => write!(f, "the {part} of the repository of `cwd`"),
            Self::LaunchClosure => f.write_str("the program of the harness"),
            Self::Overlay { path } => write!(f, "the protected path `{path}`"),
            Self::SelfBind => f.write_str("a directory above a protected path"),
            _ => write!(f, "`{}`", self.key()),
        }
    }
}
