//! 08 A9: the sandbox leaves no mount points behind, killed or not.

use std::process::{Command, Stdio};

use camino::Utf8Path;
use fleet_core::isolation::{MountMode, MountOrigin};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Launch, need_bwrap, processes_with, running};

fn tree(root: &Utf8Path) -> Vec<String> {
    let output = Command::new("/usr/bin/find").arg(root).output().expect("find");
    let mut lines: Vec<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a9_three_killed_sandboxes_leave_the_tree_as_it_was() {
    need_bwrap!();
    let launch = Launch::new();
    let status = Command::new("git")
        .args(["init", "--quiet", "--template="])
        .arg(&launch.cwd)
        .env("HOME", &launch.home)
        .status()
        .expect("git");
    assert!(status.success());
    let git = launch.cwd.join(".git");
    let policy = launch
        .policy()
        .mount(&git, MountMode::ReadWrite, MountOrigin::SelfBind)
        .mount(
            &git.join("config"),
            MountMode::ReadOnly,
            MountOrigin::Overlay { path: ".git/config".to_owned() },
        )
        .ephemeral(&git.join("hooks"));
    let before = (tree(&launch.cwd), tree(&launch.home));
    for round in 0..3 {
        let marker = format!("90{round}.{}", std::process::id());
        let argv = ["/usr/bin/sleep", &marker];
        let mut launcher = launch.launcher(launch.plan(&policy, &argv), &argv);
        let launcher = launcher.stderr(Stdio::piped()).spawn().expect("launcher");
        let inside = || processes_with(&["/usr/bin/sleep", &marker]);
        // Seen to run, not only about to.
        assert!(running(|| launch.control.join("observed.json").exists()));
        assert!(git.join("hooks").exists(), "made for the launch");
        for pid in inside() {
            let pid = Pid::from_raw(i32::try_from(pid).expect("pid")).expect("not zero");
            // One of them takes the others along.
            let _ = kill_process(pid, Signal::KILL);
        }
        let outcome = launch.outcome(launcher);
        std::fs::remove_file(launch.control.join("observed.json")).expect("observed");
        assert_eq!(outcome.record().signal, Some(9));
        assert_eq!((tree(&launch.cwd), tree(&launch.home)), before, "round {round}");
    }
    let output = Command::new("git")
        .args(["-C", launch.cwd.as_str(), "status", "--porcelain", "--ignored"])
        .env("HOME", &launch.home)
        .output()
        .expect("git");
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}
