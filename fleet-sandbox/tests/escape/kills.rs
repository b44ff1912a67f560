//! Processes of a running role killed at random moments: nothing of it stays.
//!
//! `FLEET_KILLS` says how often, `FLEET_KILL_SEED` repeats a run.

mod look;
mod sandboxes;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use fleet_core::isolation::{MountMode, MountOrigin};
use fleet_core::port::IsolationBackend as _;
use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};

use self::look::{left_on_the_host, processes_of, session_of, snapshot};
use self::sandboxes::{BUBBLEWRAP, LANDLOCK, PODMAN, Sandbox, Victim};
use super::terminal::{Console, console};
use crate::support::{By, Host, Launch, caps::block_on, need, probe_program, within};

/// A small generator (xorshift): the same seed, the same run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A host port that counts who is connected.
struct Sink {
    port: u16,
    connected: Arc<AtomicUsize>,
}

impl Sink {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("address").port();
        let connected = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&connected);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
                    count.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, connected }
    }
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // One that has just ended is no failure.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// A role that works: it writes a file, keeps a connection busy, and has left a process behind that
/// is in a session of its own.
struct Round {
    launch: Launch,
    own: Utf8PathBuf,
    hooks: Utf8PathBuf,
    sink: Sink,
    before: Vec<BTreeMap<Utf8PathBuf, String>>,
}

impl Round {
    fn new() -> Self {
        let mut launch = Launch::new();
        // Control groups are named for it, and may not be those of another test.
        launch.control = launch.base.join(launch.base.file_name().expect("a name"));
        std::fs::create_dir(&launch.control).expect("mkdir");
        for (path, mode) in
            [("work/a", 0o644), ("work/b", 0o600), ("work/own", 0o644), ("home/.rc", 0o640)]
        {
            let path = launch.base.join(path);
            std::fs::write(&path, "as it was").expect("write");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
        }
        let git = launch.cwd.join(".git");
        std::fs::create_dir(&git).expect("mkdir");
        std::fs::write(git.join("config"), "as it was").expect("write");
        // Landlock's stand for `HOME` and `TMPDIR` are made in what belongs to the role.
        for made in ["", "/home", "/tmp"] {
            let path = launch.base.join(format!("agents/me/.sandbox{made}"));
            std::fs::create_dir(&path).expect("mkdir");
        }
        let (own, hooks) = (launch.cwd.join("own"), git.join("hooks"));
        let mut round = Self { launch, own, hooks, sink: Sink::new(), before: Vec::new() };
        round.before = round.look();
        round
    }

    fn look(&self) -> Vec<BTreeMap<Utf8PathBuf, String>> {
        let trees = ["work", "home", "agents"].map(|name| self.launch.base.join(name));
        trees.iter().map(|tree| snapshot(tree, &self.own)).collect()
    }

    fn start(&self, sandbox: &Sandbox) -> Console {
        let Self { launch, own, .. } = self;
        let git = launch.cwd.join(".git");
        let address = format!("127.0.0.1:{}", self.sink.port);
        let policy = launch
            .policy()
            .read(&launch.base.join("home/.rc"))
            .mount(&git, MountMode::ReadWrite, MountOrigin::SelfBind)
            .ephemeral(&self.hooks)
            .mount(&git.join("config"), MountMode::ReadOnly, MountOrigin::SelfBind)
            .reachable(&[&address])
            .network(sandbox.network);
        let script = format!(
            "/usr/bin/setsid -f /usr/bin/tail -f {own} >/dev/null; exec {} work {own} {address}",
            probe_program(),
        );
        let argv = ["/bin/sh", "-c", &script];
        console(&launch.launcher(sandbox.by.plan(launch, &policy, &argv), &argv))
    }

    fn works(&self) -> bool {
        std::fs::metadata(&self.own).map_or(0, |about| about.len()) > 12
    }

    /// What was left that has to be gone by now. Ends it.
    fn remains(&self, sandbox: &Sandbox, victim: Victim) -> Option<String> {
        let base = &self.launch.base;
        let expected = |line: &str| {
            sandbox.outlives && victim == Victim::Launcher && line.starts_with("/usr/bin/tail -f")
        };
        let found = || {
            let mut found = processes_of(base);
            found.retain(|(_, line)| !expected(line));
            found
        };
        let wrong = !within(sandbox.limit, || found().is_empty());
        let wrong = wrong.then(|| format!("still runs: {:?}", found()));
        for (pid, _) in processes_of(base) {
            // It is as confined as it was.
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            if wrong.is_none() && !status.is_empty() && !status.contains("Seccomp:\t2") {
                return Some(format!("it goes on without its filter: {status}"));
            }
            kill(pid);
        }
        wrong
    }

    fn changes(&self) -> Option<String> {
        let after = self.look();
        let differ = |(before, after): (&BTreeMap<_, _>, &BTreeMap<Utf8PathBuf, String>)| {
            let changed = |path: &&Utf8PathBuf| before.get(*path) != after.get(*path);
            before.keys().chain(after.keys()).filter(changed).cloned().collect::<Vec<_>>()
        };
        let paths: Vec<_> = self.before.iter().zip(&after).flat_map(differ).collect();
        (self.before != after).then(|| format!("changed: {paths:?}"))
    }
}

/// One launch that ends by a kill. Returns what was found wrong.
fn round(sandbox: &Sandbox, victim: Victim, dice: &mut Dice) -> Vec<String> {
    let round = Round::new();
    let launch = &round.launch;
    let started = Instant::now();
    let mut console = round.start(sandbox);
    let pid = console.child.id();
    // Half of them at any moment of the start, half while it works.
    let working = dice.below(2) == 0;
    if working {
        within(sandbox.limit, || round.works());
    }
    let most = if working { 60 } else { sandbox.start };
    std::thread::sleep(Duration::from_micros(dice.below(most * 1000)));
    let mut targets = Vec::new();
    while targets.is_empty() && console.child.try_wait().expect("launcher").is_none() {
        targets = sandbox.find(victim, pid, launch);
        assert!(started.elapsed() < Duration::from_mins(1), "{victim:?} did not appear");
    }
    // Without one the next start, or whoever clears, does what it would have done.
    let kept = victim != Victim::LauncherAndKeeper && sandbox.has_keeper(pid, launch);
    let at = started.elapsed();
    if victim == Victim::LauncherAndKeeper && dice.below(2) == 0 {
        targets.reverse();
    }
    targets.iter().copied().for_each(kill);
    let mut wrong = Vec::new();
    let killed = targets.contains(&pid);
    if !within(sandbox.limit, || console.child.try_wait().expect("launcher").is_some()) {
        wrong.push("the launcher goes on".to_owned());
        kill(pid);
    }
    // As the server of consoles does when the process of a console is gone.
    drop(console);
    if killed {
        // What the runner does where a launcher ended without a record: needed where the sandbox
        // program had not asked for its parent's death signal yet.
        std::thread::sleep(Duration::from_millis(20));
        session_of(pid).into_iter().for_each(kill);
        if kept && !within(sandbox.limit, || left_on_the_host(launch).is_empty()) {
            wrong.push(format!("the keeper left {:?}", left_on_the_host(launch)));
        }
        if let Some(backend) = Host::podman().filter(|_| sandbox.by == By::Podman) {
            block_on(backend.clear(&launch.control));
        }
    }
    wrong.extend(round.remains(sandbox, victim));
    if !within(sandbox.limit, || round.sink.connected.load(Ordering::SeqCst) == 0) {
        wrong.push("still connected to the host".to_owned());
    }
    if killed {
        // The runner puts away what a killed launcher could not. Not if the agent filled it.
        let _ = std::fs::remove_dir(&round.hooks);
    }
    wrong.extend(round.changes());
    let left = left_on_the_host(launch);
    if !left.is_empty() {
        wrong.push(format!("left: {left:?}"));
    }
    wrong.into_iter().map(|what| format!("{victim:?} killed after {at:?}: {what}")).collect()
}

#[expect(clippy::print_stderr, reason = "the seed repeats a run")]
fn say(line: &str) {
    eprintln!("{line}");
}

#[rstest]
#[case::bubblewrap(&BUBBLEWRAP)]
#[case::landlock_as_user(&LANDLOCK)]
#[case::podman(&PODMAN)]
fn nothing_is_left_after_a_kill_at_any_moment(#[case] sandbox: &Sandbox) {
    need!(sandbox.by);
    let (kills, seed) =
        (number("FLEET_KILLS", sandbox.kills), number("FLEET_KILL_SEED", 20_260_714));
    say(&format!("{:?}: {kills} kills, FLEET_KILL_SEED={seed}", sandbox.by));
    let mut dice = Dice(seed | 1);
    let mut wrong = Vec::new();
    for victim in sandbox.victims.iter().cycle().take(usize::try_from(kills).expect("small")) {
        wrong.extend(round(sandbox, *victim, &mut dice));
    }
    assert!(wrong.is_empty(), "seed {seed}, {} of {kills}:\n{}", wrong.len(), wrong.join("\n"));
}
