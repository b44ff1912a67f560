//! Who and where the command believes to be.

use crate::support::{Launch, need_bwrap, need_root};

#[test]
fn the_environment_of_the_host_is_out_of_reach() {
    need_bwrap!();
    let mut launch = Launch::new();
    launch.host_env = vec![
        ("HOST_SECRET".to_owned(), "canary".to_owned()),
        ("TMUX".to_owned(), "/x,1,0".to_owned()),
    ];
    let attempts: &[&[&str]] =
        &[&["env", "HOST_SECRET"], &["env", "TMUX"], &["read", "/proc/1/environ"]];
    let answers = launch.attempts(&launch.policy(), attempts);
    assert!(answers[0].starts_with("error") && answers[1].starts_with("error"), "{answers:?}");
    assert!(!answers[2].contains("canary"), "{answers:?}");
    assert!(answers[2].contains("API_TOKEN"), "the first process has the built one: {answers:?}");
    // The control: bubblewrap's own --clearenv leaves it in the first process.
    let output = std::process::Command::new("bwrap")
        .args(["--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc", "--clearenv"])
        .args(["/bin/cat", "/proc/1/environ"])
        .env("HOST_SECRET", "canary")
        .output()
        .expect("bwrap");
    assert!(String::from_utf8_lossy(&output.stdout).contains("canary"), "{output:?}");
}

#[test]
fn w22_capabilities_are_gone_as_root_too() {
    need_bwrap!();
    need_root!();
    let launch = Launch::new();
    let attempts: &[&[&str]] = &[
        &["status", "CapEff"],
        &["status", "CapBnd"],
        &["status", "NoNewPrivs"],
        &["status", "Seccomp"],
    ];
    let zero = "ok 0000000000000000";
    assert_eq!(launch.attempts(&launch.policy(), attempts), [zero, zero, "ok 1", "ok 2"]);
    let bare = launch.bare_attempts(attempts);
    assert!(bare[0] != zero && bare[1] != zero && bare[2] == "ok 0", "{bare:?}");
}

#[test]
fn the_name_of_the_machine_is_hidden() {
    need_bwrap!();
    let launch = Launch::new();
    let attempts: &[&[&str]] = &[&["hostname"], &["read", "/etc/machine-id"]];
    let inside = launch.attempts(&launch.policy(), attempts);
    assert_eq!(inside[0], "ok sandbox");
    let bare = launch.bare_attempts(attempts);
    assert_ne!(bare[0], inside[0]);
    assert_ne!(bare[1], inside[1]);
}

#[test]
fn processes_of_the_host_cannot_be_seen_or_signalled() {
    need_bwrap!();
    let launch = Launch::new();
    let own = std::process::id().to_string();
    let attempts: &[&[&str]] = &[&["kill", &own], &["list", "/proc/1/root"]];
    let answers = launch.attempts(&launch.policy(), attempts);
    assert!(answers[0].starts_with("error 3"), "{answers:?}");
    assert!(!answers[1].split(' ').any(|name| name == "boot" || name == "mnt"), "{answers:?}");
    assert_eq!(launch.bare_attempts(attempts)[0], "ok 0");
}

#[test]
fn the_account_files_name_only_the_fleet_user() {
    need_bwrap!();
    let launch = Launch::new();
    let answers = launch
        .attempts(&launch.policy(), &[&["read", "/etc/passwd"], &["run", "/usr/bin/id", "-un"]]);
    assert!(answers[0].starts_with("ok") && answers[0].contains("fleet:x:"), "{answers:?}");
    assert!(!answers[0].contains("daemon"), "{answers:?}");
    assert_eq!(answers[1], "ok ");
}
