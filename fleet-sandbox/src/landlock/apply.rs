//! What the kernel is told: the one place that speaks to Landlock.

use std::os::fd::{AsFd, OwnedFd};

use ::landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::rules::Rules;
use super::since;

/// Why a process could not be confined. Nothing that was to be confined has run.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotConfined {
    #[error("the kernel's Landlock: {0}")]
    Ruleset(#[from] RulesetError),
    #[error("the kernel's Landlock is older than what was promised, version {abi}")]
    Older { abi: u32 },
    #[error("a granted path cannot be looked at: {0}")]
    Granted(Errno),
    #[error("{path}: {errno}")]
    System { path: String, errno: Errno },
    #[error("the kernel took the rules and does not keep them all")]
    Partly,
}

/// A right to a path that somebody else has opened and checked.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) path: OwnedFd,
    pub(super) writable: bool,
}

/// Confines this process for good, and everything that it starts.
///
/// # Security
/// On `Ok` every right that version `rules.abi` knows is denied but where it was granted. A kernel
/// with less is an error, never a silent loss.
pub(super) fn restrict(rules: &Rules, grants: &[Grant]) -> Result<(), NotConfined> {
    let abi = version(rules.abi)?;
    let all = AccessFs::from_all(abi);
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(all)?;
    if rules.abi >= since::TCP && !rules.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if rules.abi >= since::SCOPES {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    let mut created = ruleset.create()?;
    let read = AccessFs::from_read(abi);
    for grant in grants {
        // Making devices is refused by the filter as well, and needs a capability.
        let rights =
            if grant.writable { all & !(AccessFs::MakeChar | AccessFs::MakeBlock) } else { read };
        created = grant_to(created, &grant.path, rights, abi)?;
    }
    for path in &rules.system {
        created = grant_system(created, path, read, abi)?;
    }
    let device = BitFlags::from(AccessFs::ReadFile) | AccessFs::WriteFile;
    let device = if rules.abi >= since::DEVICES { device | AccessFs::IoctlDev } else { device };
    for path in rules.devices.iter().chain(&own_terminal()) {
        created = grant_system(created, path, device, abi)?;
    }
    let status = created.restrict_self()?;
    if status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs {
        Ok(())
    } else {
        Err(NotConfined::Partly)
    }
}

/// Puts this process, and everything that it starts, into a domain with no other rule than that signals
/// stay inside. Moving files between directories, which every domain refuses by itself, is granted
/// everywhere: what is inside may refuse it. Needs [`since::SCOPES`].
///
/// # Security
/// On `Ok` the kernel keeps it: nothing outside can be signalled.
pub(super) fn enclose() -> Result<(), NotConfined> {
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)?
        .scope(Scope::Signal)?
        .create()?;
    let root = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| NotConfined::System { path: "/".to_owned(), errno })?;
    let created = created.add_rule(PathBeneath::new(root, AccessFs::Refer))?;
    let status = created.restrict_self()?;
    if status.ruleset == RulesetStatus::FullyEnforced { Ok(()) } else { Err(NotConfined::Partly) }
}

fn version(abi: u32) -> Result<ABI, NotConfined> {
    let older = NotConfined::Older { abi };
    if abi == 0 || abi > super::TESTED_ABI || crate::sys::landlock_abi().is_none_or(|it| it < abi) {
        return Err(older);
    }
    i32::try_from(abi).map(ABI::from).map_err(|_| older)
}

/// Rights that make no sense for a file are left out for one: the kernel would refuse the rule.
fn grant_to(
    created: RulesetCreated,
    path: impl AsFd,
    rights: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, NotConfined> {
    let about = fstat(path.as_fd()).map_err(NotConfined::Granted)?;
    let rights = if FileType::from_raw_mode(about.st_mode).is_dir() {
        rights
    } else {
        rights & AccessFs::from_file(abi)
    };
    Ok(created.add_rule(PathBeneath::new(path, rights))?)
}

/// Paths of the system belong to root, so links in them are root's word. What is not there is left out.
fn grant_system(
    created: RulesetCreated,
    path: &str,
    rights: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, NotConfined> {
    match openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(opened) => grant_to(created, &opened, rights, abi),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(created),
        Err(errno) => Err(NotConfined::System { path: path.to_owned(), errno }),
    }
}

/// The terminal that this process has already, by its name: programs open it once more.
fn own_terminal() -> Option<String> {
    let name = rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok()?;
    name.into_string().ok().filter(|name| name.starts_with("/dev/pts/"))
}
