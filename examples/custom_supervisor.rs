//! A supervisor of one's own: whoever embeds the fleet may keep runners alive with a container
//! engine, a job scheduler or, as here, a table in memory.
//!
//! The port asks for honesty more than for features: a start is `Ok` only when the runner was seen
//! running, and what can't be told is `Unknown`, never `Stopped`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use fleet_core::id::RoleName;
use fleet_core::port::{Liveness, RunState, Service, Supervisor, SupervisorError, SupervisorKind};

/// Pretends to run services in a cluster that can lose its connection.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    jobs: Mutex<BTreeMap<RoleName, u32>>,
    away: Mutex<bool>,
}

impl Cluster {
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<RoleName, u32>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_away(&self) -> bool {
        *self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts or mends the connection.
    pub(crate) fn set_away(&self, away: bool) {
        *self.away.lock().unwrap_or_else(PoisonError::into_inner) = away;
    }

    fn failed(action: &'static str, role: &RoleName) -> SupervisorError {
        SupervisorError::Failed {
            action,
            role: role.clone(),
            detail: "the cluster does not answer".to_owned(),
        }
    }
}

#[async_trait]
impl Supervisor for Cluster {
    fn kind(&self) -> SupervisorKind {
        SupervisorKind::None
    }

    fn survives_reboot(&self) -> bool {
        true
    }

    async fn start(&self, service: &Service) -> Result<(), SupervisorError> {
        if self.is_away() {
            return Err(Self::failed("start", &service.role));
        }
        let mut jobs = self.jobs();
        let next = 100 + u32::try_from(jobs.len()).unwrap_or(0);
        jobs.entry(service.role.clone()).or_insert(next);
        Ok(())
    }

    async fn stop(&self, service: &Service) -> Result<(), SupervisorError> {
        if self.is_away() {
            return Err(Self::failed("stop", &service.role));
        }
        self.jobs().remove(&service.role);
        Ok(())
    }

    async fn liveness(&self, service: &Service) -> Liveness {
        let pid = self.jobs().get(&service.role).copied();
        let (state, detail) = match (self.is_away(), pid) {
            (true, _) => (RunState::Unknown, "the cluster does not answer"),
            (false, Some(_)) => (RunState::Running, "listed by the cluster"),
            (false, None) => (RunState::Stopped, "not listed by the cluster"),
        };
        Liveness { state, detail: detail.to_owned(), pid }
    }
}

/// The lines this program prints: what the supervisor says as things happen.
pub(crate) async fn run() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let cluster = Cluster::default();
    let supervisor: &dyn Supervisor = &cluster;
    let service = Service { role: "writer".parse()?, config: None };
    let mut lines = Vec::new();
    let mut look = async |event: &str| {
        let seen = supervisor.liveness(&service).await;
        lines.push(format!("{event}: {:?}, {}", seen.state, seen.detail));
    };

    look("before").await;
    supervisor.start(&service).await?;
    look("started").await;
    cluster.set_away(true);
    look("connection lost").await;
    let stop = supervisor.stop(&service).await;
    cluster.set_away(false);
    look("connection back").await;
    supervisor.stop(&service).await?;
    look("stopped").await;
    if let Err(error) = stop {
        lines.push(format!("the stop in between: {error}"));
    }
    Ok(lines)
}

#[expect(clippy::print_stdout, reason = "a program for the terminal")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in run().await? {
        println!("{line}");
    }
    Ok(())
}
