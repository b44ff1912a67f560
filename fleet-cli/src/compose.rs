//! The composition root: the only file that names concrete adapters.

use std::sync::Arc;

use camino::Utf8PathBuf;
use fleet_adapters::runner::{Ports, Runtime};
use fleet_adapters::supervisor::{DetachedSettings, DetachedSupervisor};
use fleet_adapters::{
    CliTmuxServers, FileStore, InotifyWatches, ProcTable, ProcessExec, RandomIds, SystemClock,
    TmuxEnvironment,
};
use fleet_core::harness::Harnesses;
use fleet_core::port::{Clock, Exec, IsolationBackend, PathProbe, PathProbes, StateStore};
use fleet_core::world::World;
use fleet_sandbox::{
    BubblewrapIsolation, HostLimits, HostView, LandlockIsolation, NoIsolation, OpenatProbe,
    PodmanIsolation,
};

/// The two ports that reading the settings needs.
#[derive(Debug)]
pub struct Early {
    /// State files.
    pub store: Arc<dyn StateStore>,
    /// A look at paths.
    pub probe: Box<dyn PathProbe>,
}

/// Hands out a new probe a judgement.
#[derive(Debug)]
struct Probes;

impl PathProbes for Probes {
    fn fresh(&self) -> Box<dyn PathProbe> {
        Box::new(OpenatProbe::new())
    }
}

/// What reading the settings needs.
pub fn early() -> Early {
    Early { store: Arc::new(FileStore), probe: Box::new(OpenatProbe::new()) }
}

/// The adapters of this machine.
pub fn runtime(world: World, runtime_dir: Utf8PathBuf) -> Runtime {
    let exec: Arc<dyn Exec> = Arc::new(ProcessExec);
    let store: Arc<dyn StateStore> = Arc::new(FileStore);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let processes = Arc::new(ProcTable::new());
    let tmux = TmuxEnvironment { path: world.path(), home: world.homes.os.clone() };
    let supervisor = DetachedSupervisor::new(
        exec.clone(),
        store.clone(),
        processes.clone(),
        clock.clone(),
        DetachedSettings {
            binary: world.binary.clone(),
            env: world.env.0.clone().into_iter().collect(),
            layout: world.layout.clone(),
        },
    );
    let ports = Ports {
        tmux: Arc::new(CliTmuxServers::new(exec.clone(), tmux)),
        supervisor: Arc::new(supervisor),
        backends: backends(&exec, &world),
        paths: Arc::new(Probes),
        limits: Arc::new(HostLimits),
        ids: Arc::new(RandomIds),
        watches: Arc::new(InotifyWatches),
        store,
        exec,
        clock,
        processes,
    };
    Runtime { ports, harnesses: Harnesses::built_in(), world, runtime_dir }
}

/// Best first; `none` last.
fn backends(exec: &Arc<dyn Exec>, world: &World) -> Vec<Arc<dyn IsolationBackend>> {
    let directories: Vec<Utf8PathBuf> =
        world.path_dirs.iter().map(|dir| dir.as_path().to_owned()).collect();
    let host = HostView::gather(&world.user);
    let podman =
        PodmanIsolation::new(&directories, host.clone(), world.binary.clone(), exec.clone());
    vec![
        Arc::new(BubblewrapIsolation::new(&directories, host.clone(), exec.clone())),
        Arc::new(LandlockIsolation::new(world.binary.clone(), host, exec.clone())),
        Arc::new(podman),
        Arc::new(NoIsolation),
    ]
}
