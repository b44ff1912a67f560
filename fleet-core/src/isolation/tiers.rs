//! The entries of the list of forbidden paths, as tables (01 §2.6.3).

/// How strictly a path is forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// A: no exposure in any mode, by any mount.
    NoExposure,
    /// B: a role may ask to read it, never to write it.
    NoWrite,
    /// C: part of the system, never the source of a mount that a role asks for.
    System,
}

impl Tier {
    /// The letter used in plans.
    pub fn letter(self) -> char {
        match self {
            Self::NoExposure => 'A',
            Self::NoWrite => 'B',
            Self::System => 'C',
        }
    }
}

/// Paths of one kind.
pub(super) struct Group {
    pub(super) tier: Tier,
    pub(super) what: &'static str,
    pub(super) paths: &'static [&'static str],
}

use Tier::{NoExposure, NoWrite, System};

/// What is said of the home of a harness.
pub(super) const HARNESS: &str = "login and sessions of a harness";

/// Below every home of the account.
pub(super) const BELOW_HOME: &[Group] = &[
    Group {
        tier: NoExposure,
        what: "keys and credentials",
        paths: &[
            ".ssh",
            ".aws",
            ".docker",
            ".gnupg",
            ".kube",
            ".azure",
            ".config/gcloud",
            ".netrc",
            ".git-credentials",
            ".config/git/credentials",
            ".npmrc",
            ".pypirc",
            ".cargo/credentials",
            ".cargo/credentials.toml",
            ".config/gh",
            ".config/hub",
            ".config/op",
            ".password-store",
            ".local/share/keyrings",
            ".config/sops",
            ".age",
            ".terraform.d",
            ".vault-token",
            ".pgpass",
            ".my.cnf",
            "Library/Keychains",
        ],
    },
    Group { tier: NoExposure, what: "fleet configuration", paths: &["fleet.yaml", "fleet.d"] },
    Group { tier: NoExposure, what: "messaging state", paths: &[".ours"] },
    Group { tier: NoExposure, what: HARNESS, paths: &[".claude", ".claude.json", ".codex"] },
    Group {
        tier: NoExposure,
        what: "browser and mail profiles",
        paths: &[".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird"],
    },
    Group {
        tier: NoWrite,
        what: "files that a login runs",
        paths: &[
            ".profile",
            ".bashrc",
            ".bash_profile",
            ".bash_login",
            ".bash_logout",
            ".bash_aliases",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".kshrc",
            ".cshrc",
            ".tcshrc",
            ".login",
            ".inputrc",
            ".pam_environment",
            ".xprofile",
            ".xsessionrc",
            ".config/fish",
            ".config/systemd",
            ".local/share/systemd",
            ".config/autostart",
            ".config/environment.d",
            "Library/LaunchAgents",
        ],
    },
    Group {
        tier: NoWrite,
        what: "programs and tool settings used outside the sandbox",
        paths: &[
            ".gitconfig",
            ".config/git",
            ".local/bin",
            "bin",
            ".config/Code",
            ".tmux.conf",
            ".config/tmux",
            ".agents",
        ],
    },
];

/// Well-known key files: listed so that a hard link to one of them is known by its identity.
pub(super) const KEY_FILES: &[&str] = &[
    ".ssh/id_rsa",
    ".ssh/id_dsa",
    ".ssh/id_ecdsa",
    ".ssh/id_ed25519",
    ".ssh/authorized_keys",
    ".ssh/config",
    ".aws/credentials",
    ".aws/config",
    ".docker/config.json",
    ".kube/config",
];

/// The key files in the home of a harness.
pub(super) const HARNESS_KEY_FILES: &[&str] = &[".claude/.credentials.json", ".codex/auth.json"];

/// Names that are only known by their beginning or end.
#[derive(Debug)]
pub(super) struct NamePattern {
    pub(super) tier: Tier,
    pub(super) what: &'static str,
    /// Directory below the home; empty for the home itself.
    pub(super) directory: &'static str,
    pub(super) prefix: &'static str,
    pub(super) suffix: &'static str,
}

impl NamePattern {
    /// Whether a name is meant.
    pub(super) fn fits(&self, name: &str) -> bool {
        name.strip_prefix(self.prefix).is_some_and(|rest| rest.ends_with(self.suffix))
    }
}

/// Name patterns below every home.
pub(super) const PATTERNS: &[NamePattern] = &[
    NamePattern {
        tier: NoExposure,
        what: "history of commands",
        directory: "",
        prefix: ".",
        suffix: "_history",
    },
    NamePattern {
        tier: NoExposure,
        what: "keys and credentials",
        directory: ".cargo",
        prefix: "credentials",
        suffix: "",
    },
    NamePattern {
        tier: NoWrite,
        what: "files that a login runs",
        directory: "",
        prefix: ".zsh",
        suffix: "",
    },
    NamePattern {
        tier: NoWrite,
        what: "programs and tool settings used outside the sandbox",
        directory: "",
        prefix: ".vscode",
        suffix: "",
    },
];

/// Of the system. `/root` is left out where it is, or holds, a home of the account.
pub(super) const SYSTEM: &[Group] = &[
    Group {
        tier: System,
        what: "sockets of container engines",
        paths: &[
            "/run/docker.sock",
            "/run/podman/podman.sock",
            "/run/containerd/containerd.sock",
            "/run/crio/crio.sock",
        ],
    },
    Group {
        tier: System,
        what: "part of the system",
        paths: &[
            "/proc",
            "/sys",
            "/dev",
            "/run",
            "/var/run",
            "/boot",
            "/root",
            "/var/lib/docker",
            "/var/lib/containers",
            "/var/spool",
            "/etc",
        ],
    },
    Group {
        tier: System,
        what: "sockets of the desktop session",
        paths: &["/tmp/.X11-unix", "/tmp/.ICE-unix"],
    },
];

/// What a relocating environment variable names.
pub(super) enum Relocation {
    /// The path itself.
    Whole(Tier, &'static str),
    /// Every entry of [`BELOW_HOME`] under this directory, at its new place.
    Replaces(&'static str),
}

/// The meaning of `variable`. An unknown one is taken for credentials: too strict is the safe error.
pub(super) fn relocation(variable: &str) -> Option<Relocation> {
    Some(match variable {
        "XDG_CONFIG_HOME" => Relocation::Replaces(".config/"),
        "XDG_DATA_HOME" => Relocation::Replaces(".local/share/"),
        "CARGO_HOME" => Relocation::Replaces(".cargo/"),
        // Nothing of the table lives there.
        "XDG_CACHE_HOME" | "XDG_STATE_HOME" => return None,
        "XDG_RUNTIME_DIR" => Relocation::Whole(System, "sockets of the desktop session"),
        "OURS_STATE_DIR" => Relocation::Whole(NoExposure, "messaging state"),
        "OURS_CONFIG" => Relocation::Whole(NoExposure, "fleet configuration"),
        "CLAUDE_CONFIG_DIR" | "CODEX_HOME" => Relocation::Whole(NoExposure, HARNESS),
        _ => Relocation::Whole(NoExposure, "keys and credentials"),
    })
}

/// Destinations inside the sandbox that no role may cover, hold or enter.
pub(super) const PROTECTED_DESTINATIONS: &[&str] = &[
    "/proc", "/dev", "/sys", "/run", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32", "/etc", "/boot",
];

/// Directories of programs and libraries that every sandbox shows read-only.
pub(super) const PROGRAM_DIRECTORIES: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
