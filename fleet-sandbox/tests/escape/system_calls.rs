//! The seccomp filters. A call is denied if it answers otherwise than without a sandbox.

use crate::support::{Launch, need_bwrap, skip};

const EPERM: &str = "error 1 ";

#[test]
fn dangerous_calls_are_refused() {
    need_bwrap!();
    if cfg!(not(target_arch = "x86_64")) {
        skip!("the numbers below are those of x86-64");
    }
    let launch = Launch::new();
    let attempts: &[&[&str]] = &[
        &["syscall", "425", "1", "0"],                       // io_uring_setup
        &["syscall", "321", "0", "0", "0"],                  // bpf
        &["syscall", "298", "0", "0", "-1", "-1", "0"],      // perf_event_open
        &["syscall", "323", "-1"],                           // userfaultfd
        &["syscall", "250", "0", "-3", "0"],                 // keyctl
        &["syscall", "248", "0", "0", "0", "0", "0"],        // add_key
        &["syscall", "304", "-1", "0", "0"],                 // open_by_handle_at
        &["syscall", "165", "0", "0", "0", "0", "0"],        // mount
        &["syscall", "428", "-1", "0", "99999"],             // open_tree
        &["syscall", "272", "1"],                            // unshare, an unused flag
        &["syscall", "308", "-1", "0"],                      // setns
        &["syscall", "56", "268435968", "0", "0", "0", "0"], // clone, NEWUSER with FS: never valid
        &["syscall", "135", "4294967295"],                   // personality, a question
        &["syscall", "312", "0", "0", "99", "0", "0"],       // kcmp
        &["syscall", "259", "-100", "0", "24576", "0"],      // mknodat, a block device
        &["syscall", "41", "40", "1", "0"],                  // socket: vsock
        &["syscall", "41", "38", "5", "0"],                  // socket: alg
        &["syscall", "41", "17", "3", "0"],                  // socket: packet
        &["syscall", "41", "16", "3", "12"],                 // socket: netlink, netfilter
    ];
    let inside = launch.attempts(&launch.policy(), attempts);
    let bare = launch.bare_attempts(attempts);
    for ((attempt, inside), bare) in attempts.iter().zip(&inside).zip(&bare) {
        if attempt.get(2) == Some(&"17") && !crate::support::Host::is_root() {
            continue; // Only root may make a packet socket at all.
        }
        assert!(inside.starts_with(EPERM), "{attempt:?}: {inside}");
        assert!(!bare.starts_with(EPERM), "{attempt:?} proves nothing: {bare}");
    }
}

/// Outside, a program with this bit runs with the rights of whoever owns it.
#[test]
fn no_set_user_id_file_can_be_made() {
    use std::os::unix::fs::PermissionsExt as _;
    need_bwrap!();
    if cfg!(not(target_arch = "x86_64")) {
        skip!("the numbers below are those of x86-64");
    }
    let launch = Launch::new();
    let at = |name: &str| launch.cwd.join(name).into_string();
    let names = ["chmod", "fchmodat", "fchmodat2", "fchmod", "creat", "open", "openat", "tmpfile"];
    let plain: Vec<String> = names.iter().map(|name| at(&format!("plain-{name}"))).collect();
    let fresh: Vec<String> =
        ["creat", "open", "openat", "mknod", "mknodat", "openat2"].map(at).into();
    let (cwd, mode) = (launch.cwd.as_str(), "2541"); // 04755
    let attempts: &[&[&str]] = &[
        &["syscall-path", "90", &plain[0], mode],
        &["syscall-path", "268", "-100", &plain[1], mode],
        &["syscall-path", "452", "-100", &plain[2], mode, "0"],
        &["fchmod", &plain[3], "4755"],
        &["syscall-path", "85", &fresh[0], mode],
        &["syscall-path", "2", &fresh[1], "65", mode],
        &["syscall-path", "257", "-100", &fresh[2], "65", mode],
        &["syscall-path", "257", "-100", cwd, "4259841", mode], // O_TMPFILE | O_WRONLY
        &["syscall-path", "133", &fresh[3], "35309", "0"],      // S_IFREG | 04755
        &["syscall-path", "259", "-100", &fresh[4], "35309", "0"],
        // The kernel takes 16 bits of a mode; a filter must not be led astray by what is above.
        &["syscall-path", "90", &plain[0], "4294969837"],
        &["openat2", &fresh[5], "4755"],
    ];
    let set = || -> Vec<String> {
        let entries = std::fs::read_dir(&launch.cwd).expect("read").map(|entry| entry.expect("it"));
        let has = |it: &std::fs::DirEntry| {
            it.metadata().expect("metadata").permissions().mode() & 0o4000 != 0
        };
        entries.filter(has).map(|it| it.file_name().to_string_lossy().into_owned()).collect()
    };
    let prepare = || {
        for path in &fresh {
            let _ = std::fs::remove_file(path);
        }
        for path in &plain {
            let _ = std::fs::remove_file(path);
            std::fs::write(path, "x").expect("write");
        }
    };
    for nested in [false, true] {
        prepare();
        let mut policy = launch.policy();
        policy.policy.nested_sandbox = nested;
        let inside = launch.attempts(&policy, attempts);
        for (attempt, answer) in attempts.iter().zip(&inside) {
            let wanted = if attempt[0] == "openat2" { "error 38 " } else { EPERM };
            assert!(answer.starts_with(wanted), "{nested} {attempt:?}: {answer}");
        }
        assert_eq!(set(), Vec::<String>::new(), "nested: {nested}");
    }
    prepare();
    let bare = launch.bare_attempts(attempts);
    for (attempt, answer) in attempts.iter().zip(&bare) {
        // A kernel or a file system may lack a call.
        let lacking = answer.starts_with("error 38") || answer.starts_with("error 95");
        assert!(answer.starts_with("ok") || lacking, "{attempt:?} proves nothing: {answer}");
    }
    assert!(set().len() >= 8, "the attempts prove nothing: {:?}", set());
}

#[test]
fn other_modes_stay_possible() {
    need_bwrap!();
    if cfg!(not(target_arch = "x86_64")) {
        skip!("the numbers below are those of x86-64");
    }
    let launch = Launch::new();
    let (shared, script) = (launch.cwd.join("shared"), launch.cwd.join("script"));
    std::fs::create_dir(&shared).expect("mkdir");
    std::fs::write(&script, "x").expect("write");
    let attempts: &[&[&str]] = &[
        &["syscall-path", "90", shared.as_str(), "1533"], // 02775
        &["syscall-path", "90", shared.as_str(), "1023"], // 01777
        &["syscall-path", "268", "-100", script.as_str(), "493"],
        // Without a flag that makes a file, what stands in the place of the mode is not read.
        &["syscall-path", "257", "-100", script.as_str(), "0", "2541"],
        &["syscall-path", "257", "-100", script.as_str(), "65536", "2541"],
    ];
    let inside = launch.attempts(&launch.policy(), attempts);
    for (attempt, answer) in attempts.iter().zip(&inside).take(4) {
        assert!(answer.starts_with("ok"), "{attempt:?}: {answer}");
    }
    assert!(inside[4].starts_with("error 20 "), "O_DIRECTORY of a file: {inside:?}");
}

#[test]
fn clone3_looks_absent_so_that_libc_falls_back() {
    need_bwrap!();
    let launch = Launch::new();
    let attempt: &[&[&str]] = &[&["syscall", "435", "0", "0"], &["run", "/usr/bin/true"]];
    let inside = launch.attempts(&launch.policy(), attempt);
    assert!(inside[0].starts_with("error 38"), "{inside:?}");
    assert_eq!(inside[1], "ok ");
    assert!(!launch.bare_attempts(attempt)[0].starts_with("error 38"));
}

#[test]
fn a_foreign_architecture_kills() {
    need_bwrap!();
    if cfg!(not(target_arch = "x86_64")) {
        skip!("there is no int 0x80 here");
    }
    let launch = Launch::new();
    let argv = [crate::support::probe_program().as_str(), "int80"];
    let outcome = launch.run(&launch.policy(), &argv);
    assert_eq!(outcome.record().signal, Some(31), "{outcome:?}");
    assert!(launch.bare_attempts(&[&["int80"]])[0].starts_with("ok"));
}

#[test]
fn ordinary_work_still_works() {
    need_bwrap!();
    let launch = Launch::new();
    let fifo = launch.cwd.join("fifo");
    let attempts: &[&[&str]] = &[
        &["run", "/usr/bin/mkfifo", fifo.as_str()],
        &["run", "/bin/sh", "-c", "echo x | grep -q x && (sleep 0 & wait)"],
        &["syscall", "41", "1", "1", "0"],
        &["syscall", "41", "2", "1", "0"],
        &["syscall", "41", "16", "3", "0"],
    ];
    for (attempt, answer) in attempts.iter().zip(launch.attempts(&launch.policy(), attempts)) {
        assert!(answer.starts_with("ok"), "{attempt:?}: {answer}");
    }
}

#[test]
fn no_further_namespace_unless_asked_for() {
    need_bwrap!();
    let launch = Launch::new();
    let attempt: &[&[&str]] = &[&["run", "/usr/bin/unshare", "-U", "/usr/bin/true"]];
    assert!(launch.attempts(&launch.policy(), attempt)[0].starts_with("error"));
    assert_eq!(launch.bare_attempts(attempt), ["ok "]);
    let mut nested = launch.policy();
    nested.policy.nested_sandbox = true;
    assert_eq!(launch.attempts(&nested, attempt), ["ok "]);
}

#[test]
fn a_nested_sandbox_works_where_it_is_allowed_and_the_terminal_stays_guarded() {
    need_bwrap!();
    let launch = Launch::new();
    let nested: &[&str] = &[
        "run",
        "/usr/bin/bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "/usr/bin/true",
    ];
    let guarded: &[&str] = &["tiocsti", "X"];
    let mut policy = launch.policy();
    assert!(launch.attempts(&policy, &[nested])[0].starts_with("error"), "the control");
    policy.policy.nested_sandbox = true;
    let answers = launch.attempts(&policy, &[nested, guarded]);
    // Root without capabilities may not map itself into a further namespace (CAP_SETFCAP).
    let works = answers[0] == "ok ";
    assert_eq!(works, !crate::support::Host::is_root(), "{answers:?}");
    assert!(answers[1].starts_with(EPERM), "{answers:?}");
}

#[test]
fn nothing_can_be_mounted() {
    need_bwrap!();
    let launch = Launch::new();
    let attempt: &[&[&str]] = &[&["run", "/usr/bin/mount", "-t", "tmpfs", "none", "/tmp"]];
    assert!(launch.attempts(&launch.policy(), attempt)[0].starts_with("error"));
    // The control: a sandbox that keeps its capabilities.
    let output = std::process::Command::new("bwrap")
        .args(["--unshare-user", "--uid", "0", "--cap-add", "ALL", "--dev-bind", "/", "/"])
        .args(["/usr/bin/mount", "-t", "tmpfs", "none", "/tmp"])
        .output()
        .expect("bwrap");
    assert!(output.status.success(), "{output:?}");
}
