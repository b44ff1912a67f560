//! A scope of the user's systemd for one launch.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::Resources;
use fleet_core::limits::{GroupName, scope_properties};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::groups::Groups;
use super::manager::{Manager, Value};

/// Whose scopes they are, for everybody who wants to cap all of them.
const SLICE: &str = "ours-fleet.slice";
/// A property that older managers do not have: what the kernel kills is not to end the others too.
const ON_OOM: (&str, &str) = ("OOMPolicy", "continue");

/// A process that does nothing but be in a scope: a scope without one is gone at once, and with it the
/// kernel's word on why the last one ended. It ends when this process does, however that ends.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    /// By which it is ended: the launcher takes in whatever child has ended, so that the number may be
    /// somebody else's by then.
    handle: OwnedFd,
    /// Its end is the keeper's.
    _life: Option<ChildStdin>,
}

impl Keeper {
    /// Starts one. It gets every descriptor that is not closed on exec, so it is started before any
    /// is passed on.
    pub(crate) fn start() -> Result<Self, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "read -r _"]).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // What the terminal sends to the agent is not for it.
        let child = command.process_group(0).spawn();
        let mut child = child.map_err(|error| format!("/bin/sh: {error}"))?;
        let life = child.stdin.take();
        // Its number is its own as long as nobody has waited for it.
        let handle = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(Errno::SRCH)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
            .map_err(|errno| format!("the process to keep it: {errno}"))?;
        Ok(Self { child, handle, _life: life })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The scope of one launch. Dropping it ends and removes it.
#[derive(Debug)]
pub(super) struct Scope {
    unit: String,
    runtime_dir: Utf8PathBuf,
    keeper: Option<Keeper>,
    groups: Groups,
    gone: bool,
}

impl Scope {
    /// Makes a scope of this name with a keeper in it, and with this process too if there is one. That
    /// it was made says nothing of what it holds.
    pub(super) fn make(
        name: &GroupName,
        runtime_dir: Option<&Utf8Path>,
        resources: Resources,
        keeper: Keeper,
        process: Option<u32>,
    ) -> Result<Self, String> {
        let mut manager = Manager::connect(runtime_dir)?;
        let unit = name.scope();
        let pids = process.into_iter().chain([keeper.child.id()]).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        let mut properties = vec![
            ("Description", text("what a role of ours-fleet runs")),
            ("Slice", text(SLICE)),
            ("CollectMode", text("inactive-or-failed")),
            // It is ours to make groups in it.
            ("Delegate", Value::Bool(true)),
            ("PIDs", Value::Pids(pids)),
        ];
        let numbers = scope_properties(resources);
        properties.extend(numbers.into_iter().map(|(name, number)| (name, Value::Number(number))));
        properties.push((ON_OOM.0, text(ON_OOM.1)));
        let made = manager.start(&unit, &properties).or_else(|why| {
            if !why.contains(ON_OOM.0) {
                return Err(why);
            }
            properties.pop();
            manager.start(&unit, &properties)
        });
        let keeper_id = keeper.child.id();
        let mut scope = Self {
            unit,
            runtime_dir: runtime_dir.map_or_else(Utf8PathBuf::new, Utf8Path::to_owned),
            keeper: Some(keeper),
            groups: Groups::default(),
            gone: false,
        };
        // Dropped on an error, the scope is stopped: it may be there all the same.
        made?;
        scope.groups = Groups::around(keeper_id, &scope.unit)?;
        if let Some(process) = process {
            scope.groups.move_below(process)?;
        }
        Ok(scope)
    }

    /// The process that keeps it.
    pub(super) fn keeper(&self) -> Option<u32> {
        self.keeper.as_ref().map(|keeper| keeper.child.id())
    }

    /// Its groups.
    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Ends what runs in it, and removes it.
    pub(super) fn remove(&mut self) -> Result<(), String> {
        if self.gone {
            return Ok(());
        }
        self.keeper = None;
        // The manager first: of groups that are taken away under it it does not learn that they are empty.
        let stopped = Manager::connect(Some(&self.runtime_dir))
            .and_then(|mut manager| manager.stop(&self.unit));
        let removed = self.groups.remove();
        let result = removed.or_else(|why| stopped.map(drop).map_err(|_| why));
        self.gone = result.is_ok();
        result
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // Whatever stays is removed by name before the next launch of the role.
        let _ = self.remove();
    }
}
