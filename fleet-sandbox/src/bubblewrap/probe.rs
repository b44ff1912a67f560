//! The trial: a real sandbox with the very flags of a role and a harmless command.
//!
//! A version text proves nothing (08 A12). Tests: `shim/probe.rs`.

use camino::Utf8Path;
use fleet_core::isolation::IsolationPolicy;
use fleet_core::port::{CommandSpec, Exec, Exit, ProbeEvidence, ProbeFailure};
use std::borrow::Cow;

use super::argv;
use super::gates::Gates;
use super::system::HostView;
use crate::seccomp;

/// Flags without which no plan can be made, as the help names them.
const NEEDED: &[&str] = &[
    "--add-seccomp-fd",
    "--block-fd",
    "--cap-drop",
    "--die-with-parent",
    "--disable-userns",
    "--hostname",
    "--json-status-fd",
    "--perms",
    "--remount-ro",
    "--ro-bind-data",
    "--size",
    "--unshare-cgroup-try",
];
/// Flags that make a plan better where they exist.
const WELCOME: &[&str] = &["--bind-fd", "--ro-bind-fd"];

const OLD: &str = "bubblewrap 0.8 or newer is needed";

pub(super) async fn run(
    exec: &dyn Exec,
    program: &Utf8Path,
    host: &HostView,
    policy: &IsolationPolicy,
) -> Result<ProbeEvidence, ProbeFailure> {
    let help = ask(exec, program, "--help").await?;
    let listed = |flag: &&&str| help.split_whitespace().any(|word| word == **flag);
    if let Some(lacking) = NEEDED.iter().find(|flag| !listed(flag)) {
        return Err(ProbeFailure::Trial {
            detail: format!("`{program} --help` does not list {lacking}"),
            hint: OLD.to_owned(),
        });
    }
    let features = WELCOME.iter().filter(listed).map(|flag| (*flag).to_owned()).collect();
    let version = ask(exec, program, "--version").await?.trim().to_owned();
    trial(exec, program, host, policy).await?;
    Ok(ProbeEvidence { version, program: program.to_string(), features })
}

async fn ask(exec: &dyn Exec, program: &Utf8Path, flag: &str) -> Result<String, ProbeFailure> {
    let output = exec
        .run(&CommandSpec::new(program.as_str(), [flag]))
        .await
        .map_err(|error| failed(error.to_string()))?;
    if !output.success() {
        return Err(failed(format!("`{program} {flag}` failed: {}", output.stderr_text())));
    }
    Ok(output.stdout_text())
}

async fn trial(
    exec: &dyn Exec,
    program: &Utf8Path,
    host: &HostView,
    policy: &IsolationPolicy,
) -> Result<(), ProbeFailure> {
    let mut args: Vec<String> = argv::namespaces(policy).into_iter().map(str::to_owned).collect();
    args.extend(argv::system_view(host, policy).into_iter().map(Cow::into_owned));
    args.extend(argv::in_memory(policy).into_iter().map(Cow::into_owned));
    args.extend(["--remount-ro", "/"].map(str::to_owned));
    // The filter that matters most, through standard input: no other descriptor can be passed here.
    let filter = seccomp::profiles(policy.nested_sandbox)
        .last()
        .ok_or(seccomp::FilterError::Architecture)
        .and_then(|profile| seccomp::filter(profile))
        .map_err(|error| failed(error.to_string()))?;
    args.extend(["--add-seccomp-fd", "0", "--", "/usr/bin/true"].map(str::to_owned));
    let mut spec = CommandSpec::new(program.as_str(), args);
    spec.stdin = Some(filter);
    let output = exec.run(&spec).await.map_err(|error| failed(error.to_string()))?;
    match output.exit {
        Exit::Code(0) => Ok(()),
        Exit::Code(127) if output.stderr.is_empty() => Err(ProbeFailure::Missing {
            program: program.to_string(),
            hint: "it was there a moment ago; install it again: apt install bubblewrap",
        }),
        Exit::Code(code) => Err(failed(match output.stderr_text() {
            text if text.is_empty() => format!("exit code {code} without a message"),
            text => last_line(&text),
        })),
        Exit::Signal(signal) => Err(failed(format!("killed by signal {signal}"))),
    }
}

/// What the program said last: the reason comes after any warnings.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().chars().take(300).collect()
}

/// What is behind words of `bwrap`.
struct Remedy {
    words: &'static [&'static str],
    /// Whether no namespace could be made, or no full one: then a setting of the system may be in the way.
    blocked: bool,
    /// What to do where no setting explains it.
    hint: &'static str,
}

/// The first that matches counts.
const REMEDIES: &[Remedy] = &[
    Remedy {
        words: &["No space left on device", "nesting depth"],
        blocked: true,
        hint: "no further user namespace is allowed: raise the sysctl user.max_user_namespaces, or do \
               not run ours-fleet inside another sandbox",
    },
    Remedy {
        words: &[
            "setting up uid map: Permission denied",
            "No permissions to create",
            "Creating new namespace failed: Operation not permitted",
            "Creating new namespace failed: Permission denied",
            "Failed RTM_NEWADDR: Operation not permitted",
            "capset failed",
        ],
        blocked: true,
        hint: "this system blocks unprivileged user namespaces: on Ubuntu 24.04 and later install an \
               AppArmor profile that lets bwrap use `userns`, or set the sysctl \
               kernel.apparmor_restrict_unprivileged_userns=0; on Debian set \
               kernel.unprivileged_userns_clone=1",
    },
    Remedy {
        words: &["Can't mount proc"],
        blocked: false,
        hint: "the outer /proc is covered in part: do not run ours-fleet inside a container that masks \
               it",
    },
    Remedy { words: &["Unknown option"], blocked: false, hint: OLD },
];

fn failed(detail: String) -> ProbeFailure {
    let hint = hint(&detail, || Gates::read("/proc/sys".into())).to_owned();
    ProbeFailure::Trial { hint, detail }
}

fn hint(detail: &str, gates: impl FnOnce() -> Gates) -> &'static str {
    let known = |remedy: &&Remedy| remedy.words.iter().any(|word| detail.contains(word));
    match REMEDIES.iter().find(known) {
        Some(remedy) if remedy.blocked => gates().remedy().unwrap_or(remedy.hint),
        Some(remedy) => remedy.hint,
        None => "run `bwrap --unshare-user --ro-bind / / true` to see more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_get_their_remedy() {
        for (words, remedy) in [
            ("bwrap: setting up uid map: Permission denied", "AppArmor"),
            ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"),
            (
                "bwrap: Creating new namespace failed: No space left on device",
                "max_user_namespaces",
            ),
            ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "container"),
            ("bwrap: Unknown option --disable-userns", "0.8"),
            ("something else", "to see more"),
        ] {
            let hint = hint(words, Gates::default);
            assert!(hint.contains(remedy), "{words}: {hint}");
        }
    }

    #[test]
    fn a_setting_explains_only_what_it_can_have_caused() {
        let gates = Gates { apparmor: Some(1), ..Gates::default() };
        let blocked = "bwrap: setting up uid map: Permission denied";
        assert!(hint(blocked, || gates).contains("bwrap-userns-restrict"));
        let gates = Gates { most: Some(0), ..Gates::default() };
        let blocked = "bwrap: Creating new namespace failed: No space left on device";
        assert!(hint(blocked, || gates).contains("max_user_namespaces=15000"));
        assert!(hint("bwrap: Unknown option --size", || gates).contains("0.8"));
    }
}
