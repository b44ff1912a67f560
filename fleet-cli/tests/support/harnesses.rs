//! The real agent programs, at the versions of `.config/harnesses.toml`.

use std::env;
use std::path::PathBuf;

/// The native program of a harness; skips the test where it is absent.
macro_rules! needs_harness {
    ($name:ident) => {
        match $crate::support::harnesses::$name() {
            Some(program) => program,
            None => skip!(concat!(stringify!($name), " is absent: run scripts/harnesses.sh")),
        }
    };
}

pub(crate) use needs_harness;

/// Claude Code.
pub(crate) fn claude() -> Option<PathBuf> {
    find("claude", "OURS_FLEET_TEST_CLAUDE")
}

/// Codex.
pub(crate) fn codex() -> Option<PathBuf> {
    find("codex", "OURS_FLEET_TEST_CODEX")
}

/// The program that the variable names, or the one in the cache of `scripts/harnesses.sh`.
fn find(name: &str, variable: &str) -> Option<PathBuf> {
    if let Some(path) = env::var_os(variable).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        assert!(path.is_absolute() && path.is_file(), "{variable}: no program: {}", path.display());
        return Some(path);
    }
    let version = pinned(name);
    caches().into_iter().find_map(|cache| {
        let link = cache.join(format!("{name}-{version}/bin/{name}"));
        link.canonicalize().ok().filter(|program| program.is_file())
    })
}

/// Where `scripts/harnesses.sh` installs, as root and as a plain user.
fn caches() -> Vec<PathBuf> {
    let directory =
        |name: &str| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(cache) = directory("OURS_FLEET_HARNESS_CACHE") {
        return vec![cache];
    }
    let own = directory("XDG_CACHE_HOME").or_else(|| Some(directory("HOME")?.join(".cache")));
    let own = own.map(|cache| cache.join("ours-fleet-harnesses"));
    own.into_iter().chain([PathBuf::from("/var/cache/ours-fleet-harnesses")]).collect()
}

/// The version of a harness that the tests are written for.
pub(crate) fn pinned(name: &str) -> &'static str {
    let table = include_str!("../../../.config/harnesses.toml");
    let section = table.split_once(&format!("\n[{name}]\n")).map(|(_, rest)| rest);
    section
        .and_then(|rest| rest.split_once("version = \"")?.1.split('"').next())
        .unwrap_or_else(|| panic!("no version of {name} in .config/harnesses.toml"))
}
