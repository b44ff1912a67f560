//! Containers of podman whose parts are killed, and what trials of them leave.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{TestEnvironment, needs, wait_for};

fn fleet() -> TestEnvironment {
    TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n    isolation: { backend: \
         podman, network: deny, on_unavailable: strict }\n",
    )
}

/// The monitor of the container of this fleet.
fn conmon(env: &TestEnvironment) -> Option<String> {
    let home = env.home().to_str().expect("UTF-8");
    fs::read_dir("/proc").expect("/proc").flatten().find_map(|entry| {
        let pid = entry.file_name().into_string().ok()?;
        let text = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let ours = String::from_utf8_lossy(&text("cmdline")).contains(home);
        (text("comm").starts_with(b"conmon") && ours).then_some(pid)
    })
}

/// podman does not notice that the container is gone when its monitor is.
#[test]
fn a_role_comes_back_when_the_monitor_of_its_container_is_killed() {
    needs!("tmux", "podman", "runc");
    let env = fleet();
    env.run(["up"]).expect(0);
    let (runner, launcher) = env.pids("A");
    let monitor = conmon(&env).expect("a monitor");
    assert!(Command::new("kill").args(["-KILL", &monitor]).status().expect("kill").success());
    wait_for("another launch runs", || {
        let status = env.status("A");
        let now = status["status"]["console"]["launcher"]["pid"].as_u64();
        (status["state"] == "running" && now.is_some_and(|now| now != launcher)).then_some(())
    });
    assert_eq!(env.pids("A").0, runner);
    assert_ne!(conmon(&env).expect("a monitor"), monitor);
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

/// Directories of trials that nobody holds.
fn left() -> Vec<PathBuf> {
    let free =
        |path: &Path| File::open(path.join("held")).is_ok_and(|file| file.try_lock().is_ok());
    let found = fs::read_dir("/tmp").expect("/tmp").flatten().map(|entry| entry.path());
    found
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("of-trial-") && free(path)
        })
        .collect()
}

fn killed_trial() -> PathBuf {
    let at = tempfile::Builder::new().prefix("of-trial-").tempdir_in("/tmp").expect("made").keep();
    let launch = at.join("boxes/trial");
    fs::create_dir_all(launch.join("rootfs/run")).expect("made");
    fs::write(launch.join("lock"), "").expect("made");
    fs::write(at.join("held"), "").expect("made");
    at
}

#[test]
fn trials_leave_nothing_and_what_killed_ones_left_goes() {
    needs!("tmux", "podman", "runc");
    let before = left();
    let (old, living) = (killed_trial(), killed_trial());
    let lock = File::open(living.join("held")).expect("opened");
    lock.lock().expect("locked");
    let out = fleet().run(["doctor"]).stdout;
    assert!(out.contains("isolation: podman"), "{out}");
    assert!(!old.exists(), "nobody's");
    // The control: one that goes on.
    assert!(living.join("boxes/trial").exists());
    let more: Vec<PathBuf> = left().into_iter().filter(|path| !before.contains(path)).collect();
    assert_eq!(more, Vec::<PathBuf>::new());
    drop(lock);
    fs::remove_dir_all(living).expect("removed");
}
