//! Processes of a running role killed at random moments: nothing of it stays.
//!
//! `FLEET_KILLS` says how often, `FLEET_KILL_SEED` repeats a run.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{MountMode, MountOrigin, NetworkMode};
use rustix::process::{Pid, Signal, kill_process};

use super::terminal::console;
use crate::support::{Launch, need_bwrap, probe_program, running};

/// Who is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    /// The process of the console, which serves the network too.
    Launcher,
    /// The sandbox program outside.
    Outer,
    /// The first process inside.
    Init,
    /// What the sandbox was made for.
    Agent,
}

const VICTIMS: [Victim; 4] = [Victim::Launcher, Victim::Outer, Victim::Init, Victim::Agent];

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

/// Everything about each file below a directory: kind and mode, for files also time and content.
fn snapshot(root: &Utf8Path, except: &Utf8Path) -> BTreeMap<Utf8PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![root.to_owned()];
    while let Some(path) = ahead.pop() {
        let about = std::fs::symlink_metadata(&path).expect("listed");
        let mut text = format!("{:o}", about.permissions().mode());
        if about.is_dir() {
            let entries = path.read_dir_utf8().expect("a directory");
            ahead.extend(entries.map(|entry| entry.expect("entry").into_path()));
        } else if about.is_symlink() {
            text += path.read_link_utf8().expect("a link").as_str();
        } else if path != except {
            let content = std::fs::read(&path).expect("a file");
            let (seconds, nanos) = (about.mtime(), about.mtime_nsec());
            text = format!("{text} {seconds} {nanos} {content:?}");
        }
        found.insert(path, text);
    }
    found
}

/// Living processes that name the directory of a launch in their command line.
fn processes_of(base: &Utf8Path) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(base.as_str()).then_some((pid, line))
    })
    .collect()
}

/// What belongs to the session that a process led, by the sixth word of its `stat`.
fn session_of(leader: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(3) == Some(leader.to_string().as_str())
    })
    .collect()
}

fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The sandbox program: not the helper that makes the sockets, which has the launcher's program.
fn child_in_sandbox(pid: u32) -> Option<u32> {
    children(pid).into_iter().find(|child| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        !line.is_empty() && !String::from_utf8_lossy(&line).contains("_listen")
    })
}

fn find(victim: Victim, launcher: u32) -> Option<u32> {
    let outer = || child_in_sandbox(launcher);
    match victim {
        Victim::Launcher => Some(launcher),
        Victim::Outer => outer(),
        Victim::Init => child_in_sandbox(outer()?),
        Victim::Agent => child_in_sandbox(child_in_sandbox(outer()?)?),
    }
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // One that has just ended is no failure.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// One launch that ends by a kill. Returns what was found wrong.
fn round(victim: Victim, dice: &mut Dice) -> Vec<String> {
    let launch = Launch::new();
    let own = launch.cwd.join("own");
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
    let shown = launch.base.join("home/.rc");
    let sink = Sink::new();
    let address = format!("127.0.0.1:{}", sink.port);
    let policy = launch
        .policy()
        .read(&shown)
        .mount(&git, MountMode::ReadWrite, MountOrigin::SelfBind)
        .ephemeral(&git.join("hooks"))
        .mount(&git.join("config"), MountMode::ReadOnly, MountOrigin::SelfBind)
        .reachable(&[&address])
        .network(NetworkMode::Broker);
    let script = format!(
        "/usr/bin/setsid -f /usr/bin/tail -f {own} >/dev/null; exec {} work {own} {address}",
        probe_program(),
    );
    let argv = ["/bin/sh", "-c", &script];
    let trees = ["work", "home", "agents"].map(|name| launch.base.join(name));
    let look = || trees.iter().map(|tree| snapshot(tree, &own)).collect::<Vec<_>>();
    let before = look();
    let size = || std::fs::metadata(&own).map_or(0, |about| about.len());

    let launcher = launch.launcher(launch.plan(&policy, &argv), &argv);
    let started = Instant::now();
    let mut console = console(&launcher);
    let pid = console.child.id();
    // Half of them at any moment of the start, half while it works.
    if dice.below(2) == 0 {
        running(|| size() > 12);
    }
    std::thread::sleep(Duration::from_micros(dice.below(60_000)));
    let mut target = None;
    while target.is_none() && console.child.try_wait().expect("launcher").is_none() {
        target = find(victim, pid);
        assert!(started.elapsed() < Duration::from_secs(20), "{victim:?} did not appear");
    }
    let at = started.elapsed();
    if let Some(target) = target {
        kill(target);
    }
    let mut wrong = Vec::new();
    if !running(|| console.child.try_wait().expect("launcher").is_some()) {
        wrong.push("the launcher goes on".to_owned());
        kill(pid);
    }
    // As the server of consoles does when the process of a console is gone.
    drop(console);
    if matches!(victim, Victim::Launcher) {
        // A launcher that ends without a record was killed: its runner ends whatever is left of its
        // session. Needed where the sandbox program had not asked for its parent's death signal yet.
        std::thread::sleep(Duration::from_millis(20));
        for left in session_of(pid) {
            kill(left);
        }
    }
    if !running(|| processes_of(&launch.base).is_empty()) {
        wrong.push(format!("still runs: {:?}", processes_of(&launch.base)));
        for (pid, _) in processes_of(&launch.base) {
            kill(pid);
        }
    }
    if !running(|| sink.connected.load(Ordering::SeqCst) == 0) {
        wrong.push("still connected to the host".to_owned());
    }
    if matches!(victim, Victim::Launcher) {
        // The runner puts away what a killed launcher could not. Not if the agent filled it.
        let _ = std::fs::remove_dir(git.join("hooks"));
    }
    let after = look();
    if before != after {
        let differ = |(before, after): (&BTreeMap<_, _>, &BTreeMap<Utf8PathBuf, String>)| {
            let changed = |path: &&Utf8PathBuf| before.get(*path) != after.get(*path);
            before.keys().chain(after.keys()).filter(changed).cloned().collect::<Vec<_>>()
        };
        let paths: Vec<_> = before.iter().zip(&after).flat_map(differ).collect();
        wrong.push(format!("changed: {paths:?}"));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    if mounts.contains(launch.base.as_str()) {
        wrong.push("a mount is left".to_owned());
    }
    wrong.into_iter().map(|what| format!("{victim:?} killed after {at:?}: {what}")).collect()
}

#[test]
#[expect(clippy::print_stderr, reason = "the seed repeats a run")]
fn nothing_is_left_after_a_kill_at_any_moment() {
    need_bwrap!();
    let (kills, seed) = (number("FLEET_KILLS", 40), number("FLEET_KILL_SEED", 20_260_714));
    eprintln!("{kills} kills, FLEET_KILL_SEED={seed}");
    let mut dice = Dice(seed | 1);
    let mut wrong = Vec::new();
    for index in 0..kills {
        let victim = VICTIMS[usize::try_from(index % 4).expect("small")];
        wrong.extend(round(victim, &mut dice));
    }
    assert!(wrong.is_empty(), "seed {seed}, {} of {kills}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_snapshot_tells_content_mode_and_time() {
    let launch = Launch::new();
    let file = launch.cwd.join("file");
    std::fs::write(&file, "a").expect("write");
    let none = Utf8Path::new("/none");
    let before = snapshot(&launch.cwd, none);
    assert_eq!(before, snapshot(&launch.cwd, none));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("chmod");
    let mode = snapshot(&launch.cwd, none);
    assert_ne!(before, mode);
    std::fs::write(&file, "a").expect("write");
    assert_ne!(mode, snapshot(&launch.cwd, none), "the time of a file");
    std::fs::create_dir(launch.cwd.join("ghost")).expect("mkdir");
    assert_eq!(snapshot(&launch.cwd, none).len(), 3);
}
