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
            ".putty",
            ".Xauthority",
            ".config/rclone",
        ],
    },
    Group {
        tier: NoExposure,
        what: "cloud logins",
        paths: &[
            ".oci",
            ".aliyun",
            ".s3cfg",
            ".boto",
            ".config/doctl",
            ".config/hcloud",
            ".fly/config.yml",
            ".config/heroku",
            ".pulumi/credentials.json",
            ".terraformrc",
            ".tofurc",
            ".cloudflared",
            ".config/openstack",
            ".databrickscfg",
            ".config/scw",
            ".config/linode-cli",
            ".config/vercel",
            ".config/netlify",
            ".config/.wrangler",
            ".wrangler",
            ".bluemix",
            ".passwd-s3fs",
        ],
    },
    // Directories that are caches as well are listed by the file that is secret: what else is in them
    // can be granted, they themselves cannot.
    Group {
        tier: NoExposure,
        what: "registry logins",
        paths: &[
            ".config/containers/auth.json",
            ".m2/settings.xml",
            ".m2/settings-security.xml",
            ".gradle/gradle.properties",
            ".nuget/NuGet",
            ".config/NuGet",
            ".gem/credentials",
            ".local/share/gem/credentials",
            ".bundle/config",
            ".composer/auth.json",
            ".config/composer/auth.json",
            ".yarnrc",
            ".yarnrc.yml",
            ".config/pypoetry/auth.toml",
            ".hex/hex.config",
            ".huggingface/token",
            ".cache/huggingface/token",
            ".cache/huggingface/stored_tokens",
            ".kaggle",
            ".config/kaggle",
        ],
    },
    Group {
        tier: NoExposure,
        what: "password stores",
        paths: &[
            ".config/Bitwarden",
            ".config/Bitwarden CLI",
            ".config/rbw",
            ".config/keepassxc",
            ".config/1Password",
            ".local/share/kwalletd",
            ".local/share/gopass",
            ".config/gopass",
            ".lastpass",
            ".config/lpass",
            ".local/share/lpass",
            ".local/share/pass",
            ".var/app/com.bitwarden.desktop",
            ".var/app/org.keepassxc.KeePassXC",
            ".var/app/com.onepassword.OnePassword",
            "snap/bitwarden",
            "snap/keepassxc",
        ],
    },
    Group {
        tier: NoExposure,
        what: "wallets",
        paths: &[
            ".bitcoin",
            ".ethereum",
            ".electrum",
            ".monero",
            ".bitmonero",
            ".litecoin",
            ".dogecoin",
            ".zcash",
            ".config/solana",
            ".config/Exodus",
            ".config/Ledger Live",
        ],
    },
    Group {
        tier: NoExposure,
        what: "logins of other agents and code hosts",
        paths: &[
            ".config/glab-cli",
            ".config/tea",
            ".gemini",
            ".qwen",
            ".copilot",
            ".config/github-copilot",
            ".local/share/opencode/auth.json",
            ".config/goose",
        ],
    },
    Group { tier: NoExposure, what: "fleet configuration", paths: &["fleet.yaml", "fleet.d"] },
    Group { tier: NoExposure, what: "messaging state", paths: &[".ours"] },
    Group { tier: NoExposure, what: HARNESS, paths: &[".claude", ".claude.json", ".codex"] },
    Group {
        tier: NoExposure,
        what: "browser and mail profiles",
        paths: &[
            ".mozilla",
            ".config/mozilla",
            ".config/google-chrome",
            ".config/google-chrome-beta",
            ".config/google-chrome-unstable",
            ".config/chromium",
            ".thunderbird",
            ".config/BraveSoftware",
            ".config/microsoft-edge",
            ".config/vivaldi",
            ".config/opera",
            ".librewolf",
            ".waterfox",
            ".zen",
            ".tor-browser",
            ".local/share/torbrowser",
            ".config/epiphany",
            ".local/share/epiphany",
            ".config/falkon",
            ".local/share/qutebrowser",
            ".config/qutebrowser",
            ".config/evolution",
            ".local/share/evolution",
            "snap/firefox",
            "snap/chromium",
            "snap/brave",
            "snap/opera",
            "snap/thunderbird",
            ".var/app/org.mozilla.firefox",
            ".var/app/org.mozilla.Thunderbird",
            ".var/app/com.google.Chrome",
            ".var/app/org.chromium.Chromium",
            ".var/app/com.brave.Browser",
            ".var/app/com.microsoft.Edge",
            ".var/app/com.vivaldi.Vivaldi",
            ".var/app/com.opera.Opera",
            ".var/app/io.gitlab.librewolf-community",
        ],
    },
    // Those that are named `.*_history` are known by their pattern.
    Group {
        tier: NoExposure,
        what: "history of commands",
        paths: &[
            ".histfile",
            ".lesshst",
            ".viminfo",
            ".local/share/fish/fish_history",
            ".local/share/atuin",
            ".config/nushell/history.txt",
            ".config/nushell/history.sqlite3",
            ".local/share/powershell",
            ".local/share/xonsh",
            ".local/share/nvim/shada",
            ".local/state/nvim/shada",
            ".local/state/bash",
            ".local/state/zsh",
            ".ipython/profile_default/history.sqlite",
        ],
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
            ".xsession",
            ".xinitrc",
            ".envrc",
            ".oh-my-zsh",
            ".config/zsh",
            ".config/nushell",
            ".config/powershell",
            ".config/xonsh",
            ".xonshrc",
            ".config/starship.toml",
            ".config/i3",
            ".config/sway",
            ".config/hypr",
            ".config/plasma-workspace",
            ".local/share/applications",
            ".local/share/dbus-1",
            ".config/mimeapps.list",
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
            ".screenrc",
            ".vimrc",
            ".gvimrc",
            ".vim",
            ".exrc",
            ".config/vim",
            ".config/nvim",
            ".local/share/nvim",
            ".emacs",
            ".emacs.d",
            ".config/emacs",
            ".config/helix",
            ".config/zed",
            ".config/VSCodium",
            ".config/Cursor",
            ".config/sublime-text",
            ".config/JetBrains",
            ".gdbinit",
            ".config/gdb",
            ".lldbinit",
            ".config/direnv",
            ".direnvrc",
            ".local/share/direnv",
            ".config/mise",
            ".cargo/config",
            ".cargo/config.toml",
            ".cargo/bin",
            ".hgrc",
            ".config/hg",
            ".config/jj",
            ".jjconfig.toml",
            ".psqlrc",
            ".sqliterc",
            ".irbrc",
            ".pryrc",
            ".Rprofile",
            ".julia/config",
            ".ipython",
            ".jupyter",
            ".bazelrc",
            ".gradle/init.gradle",
            ".gradle/init.d",
            ".config/pip",
            ".pip",
            ".lesskey",
            ".mailcap",
            ".config/kitty",
            ".config/wezterm",
            ".wezterm.lua",
            ".config/alacritty",
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
pub(super) fn relocation(variable: &str) -> Relocation {
    match variable {
        "XDG_CONFIG_HOME" => Relocation::Replaces(".config/"),
        "XDG_DATA_HOME" => Relocation::Replaces(".local/share/"),
        "XDG_CACHE_HOME" => Relocation::Replaces(".cache/"),
        "XDG_STATE_HOME" => Relocation::Replaces(".local/state/"),
        "CARGO_HOME" => Relocation::Replaces(".cargo/"),
        "XDG_RUNTIME_DIR" => Relocation::Whole(System, "sockets of the desktop session"),
        "OURS_STATE_DIR" => Relocation::Whole(NoExposure, "messaging state"),
        "OURS_CONFIG" => Relocation::Whole(NoExposure, "fleet configuration"),
        "CLAUDE_CONFIG_DIR" | "CODEX_HOME" => Relocation::Whole(NoExposure, HARNESS),
        _ => Relocation::Whole(NoExposure, "keys and credentials"),
    }
}

/// What can be granted of a directory that only holds a secret: the directory, then what is in it.
pub(super) const GRANTABLE: &[(&str, &str)] = &[
    (".m2", "repository"),
    (".gradle", "caches"),
    (".nuget", "packages"),
    (".cargo", "registry"),
    (".cache/huggingface", "hub"),
    (".pulumi", "plugins"),
];

/// Destinations inside the sandbox that no role may cover, hold or enter.
pub(super) const PROTECTED_DESTINATIONS: &[&str] = &[
    "/proc", "/dev", "/sys", "/run", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32", "/etc", "/boot",
];

/// Directories of programs and libraries that every sandbox shows read-only.
pub(super) const PROGRAM_DIRECTORIES: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
