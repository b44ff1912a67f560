//! What a launch left that nobody guards: its sandbox, and the groups of its caps.
//!
//! A launcher ends its sandbox and removes what it made. One that was killed, and its runner with it,
//! does neither; then the records beside the role's other ones tell what to look for.

use std::time::Duration;

use fleet_core::id::RoleName;
use fleet_core::launch::{ExitRecord, SandboxProcess};
use fleet_core::layout::RoleTrees;
use fleet_core::port::{ProcessIdentity, RunState, Signal, StateStore};

use super::{Runtime, caps};
use fleet_core::error_chain::chain;

/// For the kernel to take down a killed pid namespace.
const END_WAIT: Duration = Duration::from_secs(5);

/// Records of an end are not larger.
const MAX_RECORD: u64 = 64 * 1024;

fn recorded(store: &dyn StateStore, trees: &RoleTrees) -> Option<ProcessIdentity> {
    let bytes = store.read(&trees.sandbox_process(), SandboxProcess::MAX_BYTES).ok()??;
    serde_json::from_slice::<SandboxProcess>(&bytes).ok().map(|record| record.process)
}

/// What the last launcher of a role could not end; `None` if it ended all.
pub(super) fn unended(store: &dyn StateStore, trees: &RoleTrees) -> Option<Vec<ProcessIdentity>> {
    let bytes = store.read(&trees.exit_record(), MAX_RECORD).ok()??;
    serde_json::from_slice::<ExitRecord>(&bytes).ok()?.left
}

/// The same in words, of a role that was just stopped.
pub(super) fn unended_line(store: &dyn StateStore, trees: &RoleTrees) -> Option<String> {
    let left = unended(store, trees)?;
    let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
    let named = if pids.is_empty() { String::new() } else { format!(" (pid {})", pids.join(", ")) };
    Some(format!(
        "its program was stopped, but processes that it started would not end, even killed{named}: look \
         for them with `ps`, and run `ours-fleet down` again"
    ))
}

/// Whether the recorded sandbox of a role runs.
pub(super) fn sandbox(runtime: &Runtime, trees: &RoleTrees) -> RunState {
    let Some(process) = recorded(&*runtime.ports.store, trees) else { return RunState::Stopped };
    match runtime.ports.processes.is_alive(&process) {
        Ok(true) => RunState::Running,
        Ok(false) => RunState::Stopped,
        Err(_) => RunState::Unknown,
    }
}

/// Ends the recorded sandbox of a role and removes the groups of its caps; says what there was. To be
/// called when neither a launcher nor a runner is left that would.
///
/// # Errors
/// In words: something stays, and its record does too.
///
/// # Cancel safety
/// May be repeated at any time.
pub(super) async fn remove(runtime: &Runtime, role: &RoleName) -> Result<Vec<String>, String> {
    let trees = runtime.trees(role);
    let mut removed = Vec::new();
    let mut found = end_sandbox(runtime, &trees).await?;
    for backend in &runtime.ports.backends {
        found |= backend.clear(&trees.control).await;
    }
    if found {
        removed.push("the sandbox of an earlier launch".to_owned());
    }
    let mut ended = 0_usize;
    for process in unended(&*runtime.ports.store, &trees).unwrap_or_default() {
        ended += usize::from(end(runtime, &process).await?);
    }
    if ended > 0 {
        removed.push(format!("{ended} processes of an earlier launch"));
    }
    removed.extend(caps::sweep(runtime, role).await.map_err(|error| error.to_string())?);
    Ok(removed)
}

async fn end_sandbox(runtime: &Runtime, trees: &RoleTrees) -> Result<bool, String> {
    let store = &runtime.ports.store;
    let Some(process) = recorded(&**store, trees) else { return Ok(false) };
    let lives = end(runtime, &process).await?;
    store.remove(&trees.sandbox_process()).map_err(|error| chain(&error))?;
    Ok(lives)
}

/// Kills one process and waits for its end; tells whether it lived.
async fn end(runtime: &Runtime, process: &ProcessIdentity) -> Result<bool, String> {
    let processes = &runtime.ports.processes;
    let lives = processes.is_alive(process).map_err(|error| chain(&error))?;
    if lives {
        processes.signal(process, Signal::Kill).map_err(|error| chain(&error))?;
        tokio::select! {
            biased;
            gone = processes.wait_exit(process) => gone.map_err(|error| chain(&error))?,
            () = runtime.ports.clock.sleep(END_WAIT) => {
                return Err(format!("its process {} did not end, even killed", process.pid));
            }
        }
    }
    Ok(lives)
}
