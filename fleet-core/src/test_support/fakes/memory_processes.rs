use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use async_trait::async_trait;

use crate::port::{Descendant, ProcessError, ProcessIdentity, ProcessTable, Signal, Signalled};
use crate::test_support::sync::{Changes, lock};

/// A process table without processes behind it.
#[derive(Debug)]
pub struct MemoryProcesses {
    state: Mutex<State>,
    changes: Changes,
}

#[derive(Debug)]
struct State {
    boot: u64,
    ticks: u64,
    next_pid: u32,
    living: BTreeMap<u32, Process>,
    signals: Vec<(ProcessIdentity, Signal)>,
    broken: Option<String>,
}

#[derive(Debug)]
struct Process {
    start_time: u64,
    heeds_term: bool,
    parent: Option<u32>,
    /// Pid inside its namespace, and the namespace.
    inner: Option<(u32, u64)>,
}

/// Inode of the namespace in which processes are unless they are put elsewhere.
const HOST_NAMESPACE: u64 = 4_026_531_836;

impl State {
    fn boot_id(&self) -> String {
        format!("boot-{}", self.boot)
    }

    fn add(&mut self, pid: u32, heeds_term: bool) -> ProcessIdentity {
        self.ticks += 1;
        let start_time = self.ticks;
        let process = Process { start_time, heeds_term, parent: None, inner: None };
        self.living.insert(pid, process);
        ProcessIdentity { pid, start_time, boot_id: self.boot_id() }
    }

    fn find(&self, pid: u32) -> Option<ProcessIdentity> {
        let start_time = self.living.get(&pid)?.start_time;
        Some(ProcessIdentity { pid, start_time, boot_id: self.boot_id() })
    }

    fn check(&self, action: &'static str, pid: u32) -> Result<(), ProcessError> {
        match &self.broken {
            Some(why) => Err(ProcessError { action, pid, source: io::Error::other(why.clone()) }),
            None => Ok(()),
        }
    }
}

/// Pid of the process that asks.
const OWN: u32 = 1000;

impl Default for MemoryProcesses {
    fn default() -> Self {
        let mut state = State {
            boot: 1,
            ticks: 0,
            next_pid: OWN + 1,
            living: BTreeMap::new(),
            signals: Vec::new(),
            broken: None,
        };
        state.add(1, false);
        state.add(OWN, false);
        Self { state: Mutex::new(state), changes: Changes::default() }
    }
}

impl MemoryProcesses {
    /// A new process that ends when asked to.
    pub fn spawn(&self) -> ProcessIdentity {
        self.add(true)
    }

    /// A new process that only a kill ends.
    pub fn spawn_stubborn(&self) -> ProcessIdentity {
        self.add(false)
    }

    /// A new process below another one, in a pid namespace of its own if one is given: its pid there
    /// and the namespace.
    pub fn spawn_below(&self, parent: u32, inner: Option<(u32, u64)>) -> ProcessIdentity {
        let child = self.add(true);
        if let Some(process) = lock(&self.state).living.get_mut(&child.pid) {
            process.parent = Some(parent);
            process.inner = inner;
        }
        child
    }

    fn add(&self, heeds_term: bool) -> ProcessIdentity {
        let mut state = lock(&self.state);
        let pid = state.next_pid;
        state.next_pid += 1;
        state.add(pid, heeds_term)
    }

    /// Ends the process with this pid, if there is one.
    pub fn end(&self, pid: u32) {
        lock(&self.state).living.remove(&pid);
        self.changes.announce();
    }

    /// Gives the pid to a new process; the one that had it is gone.
    pub fn reuse(&self, pid: u32) -> ProcessIdentity {
        let identity = lock(&self.state).add(pid, true);
        self.changes.announce();
        identity
    }

    /// Restarts the host: every process is gone but the one that asks, which is a new one.
    pub fn reboot(&self) {
        {
            let mut state = lock(&self.state);
            state.boot += 1;
            state.living.clear();
            state.add(1, false);
            state.add(OWN, false);
        }
        self.changes.announce();
    }

    /// Every signal that was delivered, in order.
    pub fn signals(&self) -> Vec<(ProcessIdentity, Signal)> {
        lock(&self.state).signals.clone()
    }

    /// Lets every question fail with this reason, or answers again.
    pub fn set_broken(&self, why: Option<&str>) {
        lock(&self.state).broken = why.map(str::to_owned);
        self.changes.announce();
    }
}

#[async_trait]
impl ProcessTable for MemoryProcesses {
    fn own(&self) -> Result<ProcessIdentity, ProcessError> {
        let found = self.identity(OWN)?;
        found.ok_or_else(|| ProcessError {
            action: "identify",
            pid: OWN,
            source: io::ErrorKind::NotFound.into(),
        })
    }

    fn identity(&self, pid: u32) -> Result<Option<ProcessIdentity>, ProcessError> {
        let state = lock(&self.state);
        state.check("identify", pid)?;
        Ok(state.find(pid))
    }

    fn descendants(&self, ancestor: &ProcessIdentity) -> Result<Vec<Descendant>, ProcessError> {
        let state = lock(&self.state);
        state.check("look below", ancestor.pid)?;
        if state.find(ancestor.pid).as_ref() != Some(ancestor) {
            return Ok(Vec::new());
        }
        let below = |pid: &u32| {
            let mut at = Some(*pid);
            while let Some(pid) = at.filter(|pid| *pid != ancestor.pid) {
                at = state.living.get(&pid).and_then(|process| process.parent);
            }
            at.is_some()
        };
        let found =
            state.living.iter().filter(|(pid, _)| below(pid)).filter_map(|(pid, process)| {
                let (inner_pid, namespace) = process.inner.unwrap_or((*pid, HOST_NAMESPACE));
                let process = state.find(*pid)?;
                Some(Descendant { process, inner_pid, pid_namespace: Some(namespace) })
            });
        Ok(found.collect())
    }

    fn signal(&self, process: &ProcessIdentity, signal: Signal) -> Result<Signalled, ProcessError> {
        {
            let mut state = lock(&self.state);
            state.check("signal", process.pid)?;
            if state.find(process.pid).as_ref() != Some(process) {
                return Ok(Signalled::Gone);
            }
            state.signals.push((process.clone(), signal));
            let heeds_term = state.living.get(&process.pid).is_some_and(|found| found.heeds_term);
            if signal == Signal::Kill || heeds_term {
                state.living.remove(&process.pid);
            }
        }
        self.changes.announce();
        Ok(Signalled::Delivered)
    }

    fn kill_session(&self, leader: &ProcessIdentity) -> Result<usize, ProcessError> {
        // These processes have no sessions; only that the question can be asked is kept.
        self.identity(leader.pid).map(|_| 0)
    }

    async fn wait_exit(&self, process: &ProcessIdentity) -> Result<(), ProcessError> {
        let look = || {
            let state = lock(&self.state);
            match state.check("wait for", process.pid) {
                Err(error) => Some(Err(error)),
                Ok(()) => (state.find(process.pid).as_ref() != Some(process)).then_some(Ok(())),
            }
        };
        self.changes.wait(look).await
    }
}
