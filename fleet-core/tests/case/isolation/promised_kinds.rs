//! The kinds of places that are promised to be out of reach, by examples that do not come from the table.

use rstest::rstest;

use super::*;

#[rstest]
#[case::keys("keys and credentials", &[".putty", ".Xauthority", ".config/rclone/rclone.conf"])]
#[case::cloud("cloud logins", &[
    ".oci", ".aliyun", ".s3cfg", ".boto", ".config/doctl", ".config/hcloud", ".fly", ".config/heroku",
    ".pulumi", ".terraformrc", ".cloudflared/cert.pem", ".config/openstack", ".databrickscfg",
])]
#[case::registries("registry logins", &[
    ".config/containers/auth.json", ".m2", ".m2/settings.xml", ".gradle", ".gradle/gradle.properties",
    ".nuget", ".nuget/NuGet/NuGet.Config", ".gem/credentials", ".composer/auth.json", ".yarnrc.yml",
    ".huggingface/token", ".cache/huggingface", ".kaggle",
])]
#[case::passwords("password stores", &[
    ".config/Bitwarden", ".config/keepassxc", ".config/1Password", ".local/share/kwalletd",
    ".local/share/gopass", ".lastpass",
])]
#[case::browsers("browser and mail profiles", &[
    ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".librewolf",
    ".waterfox", "snap/firefox/common/.mozilla", "snap/chromium", ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome/config",
])]
#[case::histories("history of commands", &[
    ".local/share/fish", ".local/share/fish/fish_history", ".local/share/atuin", ".config/nushell",
    ".local/share/powershell", ".lesshst", ".viminfo",
])]
#[case::wallets("wallets", &[".bitcoin", ".ethereum", ".electrum/wallets", ".config/solana"])]
#[case::others("logins of other agents and code hosts", &[
    ".config/glab-cli", ".gemini", ".config/github-copilot",
])]
fn what_is_promised_cannot_be_granted(#[case] what: &str, #[case] places: &[&str]) {
    for place in places {
        let at = format!("/home/u/{place}");
        // Whether or not it is there at the moment.
        for present in [true, false] {
            let read = |s: &mut Scene| {
                if present {
                    s.tree.dir(&at);
                }
                s.read(&at);
            };
            refused(read, "isolation.fs.read[0]", &[&format!("({what})")]);
        }
    }
    accepted(|s| no(s.tree.dir("/home/u/.plain")));
    accepted(|s| no(s.read("/home/u/.plain")));
}

#[test]
fn what_tools_outside_the_sandbox_obey_can_be_read_and_not_written() {
    for place in [
        ".vimrc",
        ".vim/plugin",
        ".gdbinit",
        ".config/nvim",
        ".config/direnv",
        ".cargo/config.toml",
        ".local/share/applications",
        ".emacs.d",
        ".screenrc",
        ".envrc",
        ".config/kitty",
    ] {
        let at = format!("/home/u/{place}");
        accepted(|s| no(s.read(&at)));
        refused(|s| no(s.write(&at)), "isolation.fs.write[0]", &["which no role may write"]);
    }
    accepted(|s| no(s.write("/home/u/.plain")));
}

/// A cache with a secret in it is refused as a whole, with the part that one wants.
#[rstest]
#[case(".m2", "repository")]
#[case(".gradle", "caches")]
#[case(".nuget", "packages")]
#[case(".cargo", "registry")]
#[case(".cache/huggingface", "hub")]
#[case(".pulumi", "plugins")]
fn a_cache_can_be_granted_without_the_secret_in_it(#[case] whole: &str, #[case] part: &str) {
    let (whole, part) = (format!("/home/u/{whole}"), format!("/home/u/{whole}/{part}"));
    for change in [Scene::read, Scene::write] {
        let problem = refusal(|s| no(change(s, &whole)));
        assert!(problem.message.contains("would expose the forbidden path"), "{problem}");
        let hint = format!("grant only what is needed of it, for example `{part}`");
        assert_eq!(problem.hint, Some(hint));
        accepted(|s| no(change(s, &part)));
    }
    // Elsewhere such a directory is nothing special, and what lies around it gets no such hint.
    let problem = refusal(|s| no(s.read("/home/u/.config")));
    let general = Some("mount only the subdirectories that are needed");
    assert_eq!(problem.hint.as_deref(), general);
    let problem = refusal(|s| {
        s.tree.dir("/home/u/x.m2/secret");
        s.forbid_paths.push(path("/home/u/x.m2/secret"));
        s.read("/home/u/x.m2");
    });
    assert_eq!(problem.hint.as_deref(), general, "its name only ends like a known one");
}
