//! Reading and writing outside of what the policy lists. Each attempt is made twice: the control, by
//! the same launcher without a sandbox, must get through, else the probe proves nothing.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use camino::Utf8PathBuf;
use fleet_core::isolation::{MountMode, MountOrigin};

use crate::support::{Launch, need_bwrap, need_root};

const ENOENT: &str = "error 2 entity not found";

fn canary(launch: &Launch, path: &str) -> Utf8PathBuf {
    let path = launch.base.join(path);
    std::fs::write(&path, "canary").expect("write");
    path
}

#[test]
fn keys_of_the_user_a_siblings_state_and_control_are_not_there() {
    need_bwrap!();
    let launch = Launch::new();
    let paths = ["home/.ssh/id_ed25519", "agents/other/notes", "control/secret"]
        .map(|path| canary(&launch, path));
    for path in &paths {
        let attempt: &[&[&str]] = &[&["read", path.as_str()]];
        assert_eq!(launch.attempts(&launch.policy(), attempt), [ENOENT], "{path}");
        assert_eq!(
            launch.bare_attempts(attempt),
            ["ok canary"],
            "{path}: the probe proves nothing"
        );
    }
}

#[test]
fn only_the_own_entry_of_the_agents_directory_shows() {
    need_bwrap!();
    let launch = Launch::new();
    let agents = launch.base.join("agents");
    let attempt: &[&[&str]] = &[&["list", agents.as_str()]];
    assert_eq!(launch.attempts(&launch.policy(), attempt), ["ok me"]);
    assert_eq!(launch.bare_attempts(attempt), ["ok me other"]);
}

#[test]
fn the_console_server_cannot_be_reached() {
    need_bwrap!();
    let launch = Launch::new();
    let socket = launch.control.join("tmux.sock");
    let _listener = UnixListener::bind(&socket).expect("bind");
    let attempt: &[&[&str]] = &[&["connect-unix", socket.as_str()]];
    assert_eq!(launch.attempts(&launch.policy(), attempt), [ENOENT]);
    assert_eq!(launch.bare_attempts(attempt), ["ok "]);
}

#[test]
fn an_inherited_descriptor_is_closed() {
    need_bwrap!();
    let launch = Launch::new();
    let secret = canary(&launch, "home/.ssh/id");
    let argv = [crate::support::probe_program().as_str(), "fds", "::", "read", "/proc/self/fd/9"];
    let launcher = launch.launcher(launch.plan(&launch.policy(), &argv), &argv);
    let file = launch.control.join("launch.json");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "exec 9<\"$1\"; shift; exec \"$@\"", "sh", secret.as_str()]);
    shell.arg(launcher.get_program()).args(["pane", file.as_str()]);
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let outcome = launch.outcome(shell.spawn().expect("shell"));
    assert_eq!(outcome.stdout, format!("ok \n{ENOENT}\n"), "{}", outcome.stderr);

    // The control: bubblewrap alone passes inherited descriptors on.
    let script = "exec 9<\"$1\"; exec bwrap --dev-bind / / /bin/cat /proc/self/fd/9";
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", script, "sh", secret.as_str()])
        .output()
        .expect("shell");
    assert_eq!(output.stdout, b"canary");
}

#[test]
fn private_files_of_the_system_are_not_there_as_root() {
    need_bwrap!();
    need_root!();
    let launch = Launch::new();
    let attempt: &[&[&str]] = &[&["open-write", "/etc/shadow"], &["list", "/sys/kernel"]];
    assert_eq!(launch.attempts(&launch.policy(), attempt), [ENOENT, ENOENT]);
    for answer in launch.bare_attempts(attempt) {
        assert!(answer.starts_with("ok"), "{answer}");
    }
    let mut full = launch.policy();
    full.policy.system = fleet_core::isolation::SystemView::Full;
    let answer = launch.attempts(&full, &[&["read", "/etc/shadow"], &["list", "/etc"]]);
    assert!(!answer[0].contains("root:"), "masked even when the whole of /etc shows: {answer:?}");
    assert!(answer[1].contains("shadow"), "{answer:?}");
}

#[test]
fn kernel_settings_cannot_be_written_as_root() {
    need_bwrap!();
    need_root!();
    let launch = Launch::new();
    let attempt: &[&[&str]] = &[&["open-write", "/proc/sys/kernel/core_pattern"]];
    let answer = launch.attempts(&launch.policy(), attempt);
    assert!(answer[0].starts_with("error 30") || answer[0].starts_with("error 13"), "{answer:?}");
    assert_eq!(launch.bare_attempts(attempt), ["ok "]);
}

#[test]
fn the_kernels_own_lists_read_empty_as_root() {
    need_bwrap!();
    need_root!();
    let launch = Launch::new();
    let attempt: &[&[&str]] = &[&["read", "/proc/cmdline"], &["read", "/proc/kallsyms"]];
    for answer in launch.attempts(&launch.policy(), attempt) {
        assert!(answer == "ok " || answer.starts_with("error 13"), "{answer}");
    }
    for answer in launch.bare_attempts(attempt) {
        assert!(answer.len() > 3, "{answer}");
    }
}

#[test]
fn nothing_can_be_added_to_the_system_as_root() {
    need_bwrap!();
    need_root!();
    let launch = Launch::new();
    let name = format!("ours-fleet-probe-{}", std::process::id());
    for directory in ["/usr", "/etc", "/"] {
        let path = Utf8PathBuf::from(directory).join(&name);
        let attempt: &[&[&str]] = &[&["write", path.as_str()]];
        let answer = launch.attempts(&launch.policy(), attempt);
        assert!(answer[0].starts_with("error 30"), "{path}: {answer:?}");
        assert!(!path.exists());
        assert_eq!(launch.bare_attempts(attempt), ["ok "], "{path}");
        std::fs::remove_file(&path).expect("the control wrote it");
    }
}

#[test]
fn a_read_only_mount_cannot_be_written_and_a_writable_one_can() {
    need_bwrap!();
    let launch = Launch::new();
    let (shown, own) = (launch.base.join("shown"), launch.cwd.join("new"));
    std::fs::create_dir(&shown).expect("mkdir");
    let inside = shown.join("x");
    let policy = launch.policy().read(&shown);
    let attempts: &[&[&str]] = &[&["write", inside.as_str()], &["write", own.as_str()]];
    let answers = launch.attempts(&policy, attempts);
    assert!(answers[0].starts_with("error 30"), "{answers:?}");
    assert_eq!(answers[1], "ok ");
    assert!(own.exists() && !inside.exists());
    let control = launch.attempts(&launch.policy().write(&shown), attempts);
    assert_eq!(control, ["ok ", "ok "]);
}

#[test]
fn hooks_cannot_be_planted_even_where_there_are_none() {
    need_bwrap!();
    for by_descriptor in [true, false] {
        let launch = Launch { by_descriptor, ..Launch::new() };
        let git = launch.cwd.join(".git");
        std::fs::create_dir(&git).expect("mkdir");
        let (hooks, moved) = (git.join("hooks"), launch.cwd.join(".git2"));
        let hook = hooks.join("pre-commit");
        let object = git.join("object");
        let attempts: &[&[&str]] = &[
            &["mkdir", hooks.as_str()],
            &["write", hook.as_str()],
            &["rename", git.as_str(), moved.as_str()],
            &["write", object.as_str()],
        ];
        let policy = launch
            .policy()
            .mount(&git, MountMode::ReadWrite, MountOrigin::SelfBind)
            .ephemeral(&hooks);
        let answers = launch.attempts(&policy, attempts);
        assert!(answers[0].starts_with("error 17"), "{answers:?}");
        assert!(answers[1].starts_with("error 30"), "{answers:?}");
        assert!(answers[2].starts_with("error 16"), "{answers:?}");
        assert_eq!(answers[3], "ok ");
        assert!(!hooks.exists(), "what was made for the launch is gone after it");
        // The control: without the overlay all of it works.
        assert_eq!(
            launch.attempts(&launch.policy(), attempts),
            ["ok ", "ok ", "ok ", "error 2 entity not found"]
        );
    }
}

#[test]
fn c12_w7_a_source_that_was_swapped_after_planning_is_refused() {
    need_bwrap!();
    for by_descriptor in [true, false] {
        for (name, words) in [
            ("link", "symbolic link"),
            ("parent", "symbolic link"),
            ("other", "another object"),
            ("gone", "gone"),
        ] {
            let launch = Launch { by_descriptor, ..Launch::new() };
            canary(&launch, "home/.ssh/id");
            let above = launch.cwd.join("above");
            let data = above.join("data");
            std::fs::create_dir_all(&data).expect("mkdir");
            let policy = launch.policy().read(&data);
            let inside = data.join("id");
            let argv = [crate::support::probe_program().as_str(), "read", inside.as_str()];
            let plan = launch.plan(&policy, &argv);
            let keys = launch.base.join("home/.ssh");
            match name {
                "link" => {
                    std::fs::remove_dir(&data).expect("rmdir");
                    symlink(&keys, &data).expect("link");
                }
                "parent" => {
                    std::fs::rename(&above, launch.cwd.join("aside")).expect("rename");
                    symlink(launch.cwd.join("aside"), &above).expect("link");
                }
                "other" => {
                    std::fs::rename(&data, launch.cwd.join("aside")).expect("rename");
                    std::fs::create_dir(&data).expect("mkdir");
                }
                _ => std::fs::remove_dir(&data).expect("rmdir"),
            }
            let outcome = launch.run_plan(plan, &argv);
            let record = outcome.record();
            assert!(!record.started && outcome.stdout.is_empty(), "{name}: {record:?}");
            let error = record.error.as_deref().expect("a reason");
            assert!(error.contains(words) && error.contains(data.as_str()), "{name}: {error}");
            assert_eq!(outcome.code, Some(125));
            assert!(outcome.observed.is_none(), "nothing ran, so nothing was observed");
        }
    }
}

#[test]
fn c12_control_an_unswapped_source_is_shown() {
    // The control of the test above.
    need_bwrap!();
    let launch = Launch::new();
    let data = launch.cwd.join("data");
    std::fs::create_dir(&data).expect("mkdir");
    std::fs::write(data.join("id"), "shown").expect("write");
    let inside = data.join("id");
    let answers = launch.attempts(&launch.policy().read(&data), &[&["read", inside.as_str()]]);
    assert_eq!(answers, ["ok shown"]);
}

#[test]
fn a_directory_for_the_launch_is_not_made_through_a_link() {
    need_bwrap!();
    let launch = Launch::new();
    let (git, keys) = (launch.cwd.join(".git"), launch.base.join("home/.ssh"));
    std::fs::create_dir(&git).expect("mkdir");
    let policy = launch.policy().ephemeral(&git.join("hooks"));
    let argv = ["/usr/bin/true"];
    let plan = launch.plan(&policy, &argv);
    std::fs::remove_dir(&git).expect("rmdir");
    symlink(&keys, &git).expect("link");
    let outcome = launch.run_plan(plan, &argv);
    let error = outcome.record().error.clone().expect("a reason");
    assert!(error.contains("a link is on the way"), "{error}");
    assert!(!outcome.record().started && !keys.join("hooks").exists());
}

#[test]
fn a_directory_that_appeared_meanwhile_is_used_and_kept() {
    need_bwrap!();
    let launch = Launch::new();
    let hooks = launch.cwd.join("hooks");
    let policy = launch.policy().ephemeral(&hooks);
    let inside = hooks.join("x");
    let argv = [crate::support::probe_program().as_str(), "write", inside.as_str()];
    let plan = launch.plan(&policy, &argv);
    std::fs::create_dir(&hooks).expect("mkdir");
    let outcome = launch.run_plan(plan, &argv);
    assert!(outcome.stdout.starts_with("error 30"), "{outcome:?}");
    assert!(hooks.exists(), "made by somebody else");
    // A link in its place is refused.
    let launch = Launch::new();
    let hooks = launch.cwd.join("hooks");
    let plan = launch.plan(&launch.policy().ephemeral(&hooks), &argv);
    symlink(launch.base.join("home/.ssh"), &hooks).expect("link");
    let outcome = launch.run_plan(plan, &argv);
    assert!(!outcome.record().started, "{outcome:?}");
}
