//! The trial: the very rules of a policy, by this program on itself, with a harmless command.

use camino::Utf8Path;
use fleet_core::isolation::{IsolationPolicy, MountMode};
use fleet_core::port::{CommandSpec, Exec, Exit, ProbeEvidence, ProbeFailure};

use super::confine::{COMMAND, READ, TRIAL, WRITE};
use super::rules::Rules;
use crate::bubblewrap::HostView;

pub(super) async fn run(
    exec: &dyn Exec,
    binary: &Utf8Path,
    host: &HostView,
    abi: u32,
    policy: &IsolationPolicy,
) -> Result<ProbeEvidence, ProbeFailure> {
    if host.uid == 0 {
        return Err(failed(
            "it does not run as root: what belongs to root is open to root without any capability",
            "run the fleet as an ordinary user, or write `backend: bubblewrap`",
        ));
    }
    if abi == 0 {
        return Err(failed(
            "this kernel has no Landlock, or it is switched off",
            "it needs Linux 5.13 or newer, with `landlock` in the kernel's list of security modules \
             (`lsm=`)",
        ));
    }
    let mut rules = Rules::of(host, abi, policy);
    // Nothing is left behind by a trial, and it runs nowhere in particular.
    rules.make.clear();
    "/usr".clone_into(&mut rules.cwd);
    let input = serde_json::to_vec(&rules)
        .map_err(|error| failed(error.to_string(), "report this as a fault of ours-fleet"))?;
    let mut words = vec![COMMAND.to_owned(), TRIAL.to_owned()];
    for mount in policy.mounts.iter().filter(|mount| mount.identity.is_some()) {
        words.push(match mount.mode {
            MountMode::ReadOnly => READ.to_owned(),
            MountMode::ReadWrite => WRITE.to_owned(),
        });
        words.push(mount.source.to_string());
    }
    words.extend(["--".to_owned(), "/usr/bin/true".to_owned()]);
    let mut spec = CommandSpec::new(binary.as_str(), words);
    spec.stdin = Some(input);
    let output = exec.run(&spec).await.map_err(|error| failed(error.to_string(), SEE))?;
    match output.exit {
        Exit::Code(0) => Ok(ProbeEvidence {
            version: format!("landlock {abi}"),
            program: binary.to_string(),
            features: Vec::new(),
        }),
        Exit::Code(code) => Err(failed(
            match output.stderr_text() {
                text if text.is_empty() => format!("exit code {code} without a message"),
                text => text.lines().last().unwrap_or_default().chars().take(300).collect(),
            },
            SEE,
        )),
        Exit::Signal(signal) => Err(failed(format!("killed by signal {signal}"), SEE)),
    }
}

const SEE: &str = "`ours-fleet doctor` tries it again";

fn failed(detail: impl Into<String>, hint: &str) -> ProbeFailure {
    ProbeFailure::Trial { detail: detail.into(), hint: hint.to_owned() }
}
