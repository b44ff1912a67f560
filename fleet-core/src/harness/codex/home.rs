//! Where Codex keeps its own files, and how to find out whether it is there.

use super::table::QUALIFIED;
use crate::harness::{HomeSpec, Prerequisite, SharedItem, SharedKind};

const fn shared(name: &'static str, kind: SharedKind) -> SharedItem {
    SharedItem { name, kind, below_account: false, login: false }
}

/// Its config home (01 §2.5).
pub(super) static CODEX_HOME: HomeSpec = HomeSpec {
    variable: "CODEX_HOME",
    operator: ".codex",
    shared: &[
        SharedItem { login: true, ..shared("auth.json", SharedKind::File) },
        shared("AGENTS.md", SharedKind::File),
        shared("plugins", SharedKind::Directory),
        SharedItem { below_account: true, ..shared(".agents", SharedKind::Directory) },
        shared("prompts", SharedKind::Directory),
        shared("skills", SharedKind::Directory),
        shared("rules", SharedKind::EachFile),
    ],
    read: &[OPERATOR_CONFIG],
};

/// The file that the operator's models are read from, and that each role gets one of its own of.
pub(super) const OPERATOR_CONFIG: &str = "config.toml";

/// Its sandbox brings its own helper programs, so nothing is needed beside it.
pub(super) static PREREQUISITE: Prerequisite = Prerequisite {
    argv: &["codex", "--version"],
    version,
    hint: "install `@openai/codex` from npm and log in with `codex login`",
    qualified: QUALIFIED,
    sandbox_programs: &[],
    sandbox_trial: &["codex", "sandbox", "--", "true"],
};

/// The version in `codex-cli 0.171.0`.
fn version(printed: &str) -> Option<String> {
    let found = printed.lines().find_map(|line| line.trim().strip_prefix("codex-cli "))?.trim();
    let known = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    (found.len() <= 64
        && found.starts_with(|c: char| c.is_ascii_digit())
        && found.chars().all(known))
    .then(|| found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_what_follows_the_name() {
        assert_eq!(version("codex-cli 0.171.0\n").as_deref(), Some("0.171.0"));
        let warned = "WARNING: no PATH aliases\ncodex-cli 0.172.0-alpha.1\n";
        assert_eq!(version(warned).as_deref(), Some("0.172.0-alpha.1"));
        for strange in ["", "codex 0.171.0", "codex-cli ", "codex-cli \u{1b}[31m1", "codex-cli x1"]
        {
            assert_eq!(version(strange), None, "{strange:?}");
        }
        assert_eq!(version(&format!("codex-cli {}", "1".repeat(65))), None);
    }
}
