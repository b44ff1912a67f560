//! The composition root: the only file that names concrete adapters.

use std::sync::Arc;

use camino::Utf8PathBuf;
use fleet_adapters::runner::{Ports, Runtime};
use fleet_adapters::supervisor::{
    DetachedSettings, DetachedSupervisor, RecordedSupervisor, SystemdSettings, SystemdSupervisor,
    user_manager,
};
use fleet_adapters::{
    CliTmuxServers, FileStore, InotifyWatches, ProcTable, ProcessExec, RandomIds, SystemClock,
    TmuxEnvironment, TrustedExec,
};
use fleet_core::harness::Harnesses;
use fleet_core::port::{
    Clock, Exec, IsolationBackend, PathProbe, PathProbes, ProcessTable, StateStore, Supervisor,
    SupervisorKind,
};
use fleet_core::units::systemd::{UnitFacts, UnitNames};
use fleet_core::world::World;
use fleet_sandbox::{
    BubblewrapIsolation, HostLimits, HostView, LandlockIsolation, NoIsolation, OpenatProbe,
    PodmanIsolation,
};

use crate::env_vars;
use crate::settings::SupervisorChoice;
use crate::supervision::Supervision;

/// What is needed before the adapters are chosen.
#[derive(Debug)]
pub struct Early {
    /// State files.
    pub store: Arc<dyn StateStore>,
    /// A look at paths.
    pub probe: Box<dyn PathProbe>,
    /// The harnesses, by which fleet files are read.
    pub harnesses: Harnesses,
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
    let harnesses = Harnesses::built_in();
    Early { store: Arc::new(FileStore), probe: Box::new(OpenatProbe::new()), harnesses }
}

/// The adapters of this machine.
pub fn runtime(world: World, runtime_dir: Utf8PathBuf, supervisor: SupervisorKind) -> Runtime {
    let paths: Arc<dyn PathProbes> = Arc::new(Probes);
    let exec: Arc<dyn Exec> = Arc::new(TrustedExec::new(
        Arc::new(ProcessExec),
        paths.clone(),
        world.trust.clone(),
        world.binary.clone(),
    ));
    let store: Arc<dyn StateStore> = Arc::new(FileStore);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let processes: Arc<dyn ProcessTable> = Arc::new(ProcTable::new());
    let tmux = TmuxEnvironment { path: world.path(), home: world.homes.os.clone() };
    let supervisor = Supervisors {
        world: &world,
        exec: &exec,
        store: &store,
        clock: &clock,
        processes: &processes,
    }
    .of(supervisor);
    let ports = Ports {
        tmux: Arc::new(CliTmuxServers::new(exec.clone(), tmux)),
        supervisor: Arc::new(supervisor),
        backends: backends(&exec, &world),
        paths,
        // As the launcher is told it; none is invented.
        limits: Arc::new(HostLimits::new(
            world.env.0.get(env_vars::XDG_RUNTIME_DIR).map(Into::into),
        )),
        ids: Arc::new(RandomIds),
        watches: Arc::new(InotifyWatches),
        store,
        exec,
        clock,
        processes,
    };
    Runtime { ports, harnesses: Harnesses::built_in(), world, runtime_dir }
}

/// Which supervisor starts roles here.
pub fn supervision(choice: SupervisorChoice, world: &World) -> Supervision {
    Supervision::decide(choice, cfg!(target_os = "linux"), || user_manager(&manager_dir(world)))
}

/// Where the account's systemd listens: never where everybody may write.
fn manager_dir(world: &World) -> Utf8PathBuf {
    let set = world.env.0.get(env_vars::XDG_RUNTIME_DIR).map(Utf8PathBuf::from);
    set.unwrap_or_else(|| format!("/run/user/{}", world.uid).into())
}

/// What the supervisors are made of.
struct Supervisors<'a> {
    world: &'a World,
    exec: &'a Arc<dyn Exec>,
    store: &'a Arc<dyn StateStore>,
    clock: &'a Arc<dyn Clock>,
    processes: &'a Arc<dyn ProcessTable>,
}

impl Supervisors<'_> {
    /// The chosen one, beside those that may run roles since an earlier choice.
    fn of(&self, chosen: SupervisorKind) -> RecordedSupervisor {
        let (detached, systemd) = (self.detached(), self.systemd());
        let (chosen, other) = match chosen {
            SupervisorKind::Systemd => (systemd, detached),
            SupervisorKind::Launchd | SupervisorKind::None => (detached, systemd),
        };
        RecordedSupervisor::new(chosen, vec![other], self.store.clone(), self.world.layout.clone())
    }

    fn detached(&self) -> Arc<dyn Supervisor> {
        let mut env = self.world.env.0.clone();
        // What it was started by, not what it would choose.
        env.insert(env_vars::FLEET_SUPERVISOR.to_owned(), "none".to_owned());
        let settings = DetachedSettings {
            binary: self.world.binary.clone(),
            env: env.into_iter().collect(),
            layout: self.world.layout.clone(),
        };
        Arc::new(DetachedSupervisor::new(
            self.exec.clone(),
            self.store.clone(),
            self.processes.clone(),
            self.clock.clone(),
            settings,
        ))
    }

    fn systemd(&self) -> Arc<dyn Supervisor> {
        let world = self.world;
        let config = world.env.0.get(env_vars::XDG_CONFIG_HOME).filter(|dir| dir.starts_with('/'));
        let config = config.map_or_else(|| world.homes.os.join(".config"), Utf8PathBuf::from);
        let settings = SystemdSettings {
            facts: UnitFacts {
                binary: world.binary.clone(),
                home: world.homes.fleet.clone(),
                path: world.path_dirs.iter().map(|dir| dir.as_path().to_owned()).collect(),
            },
            names: UnitNames::of(&world.homes),
            units: config.join("systemd/user"),
            runtime_dir: manager_dir(world),
            path: world.path(),
            user: world.user.clone(),
            layout: world.layout.clone(),
        };
        Arc::new(SystemdSupervisor::new(
            self.exec.clone(),
            self.store.clone(),
            self.processes.clone(),
            self.clock.clone(),
            settings,
        ))
    }
}

/// Best first; `none` last.
fn backends(exec: &Arc<dyn Exec>, world: &World) -> Vec<Arc<dyn IsolationBackend>> {
    let probe = OpenatProbe::new();
    let directories = |program: &str| -> Vec<Utf8PathBuf> {
        let found = world.dirs_for(program, &probe);
        found.iter().map(|dir| dir.as_path().to_owned()).collect()
    };
    let host = HostView::gather(&world.user);
    let podman = PodmanIsolation::new(
        &directories("podman"),
        host.clone(),
        world.binary.clone(),
        exec.clone(),
    );
    vec![
        Arc::new(BubblewrapIsolation::new(&directories("bwrap"), host.clone(), exec.clone())),
        Arc::new(LandlockIsolation::new(world.binary.clone(), host, exec.clone())),
        Arc::new(podman),
        Arc::new(NoIsolation),
    ]
}
