//! The console: no typing into it from inside, resizes reach the command, typed signals do not end
//! the launcher.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rstest::rstest;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{By, Launch, need, need_bwrap, probe_program, running, skip, within};

pub(super) struct Console {
    master: std::fs::File,
    pub(super) child: Child,
}

/// Starts a launcher as tmux would: as the leader of a session with a terminal of its own.
pub(super) fn console(launcher: &Command) -> Console {
    let master: OwnedFd =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("pty");
    grantpt(&master).expect("grant");
    unlockpt(&master).expect("unlock");
    let name = ptsname(&master, Vec::new()).expect("name").into_string().expect("utf-8");
    let slave = || {
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&name)
            .map(Stdio::from)
            .expect("slave")
    };
    let child = Command::new("/usr/bin/setsid")
        .args(["--ctty", "--wait"])
        .arg(launcher.get_program())
        .args(launcher.get_args())
        .envs(launcher.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(slave())
        .stdout(slave())
        .stderr(slave())
        .spawn()
        .expect("setsid");
    Console { master: master.into(), child }
}

impl Console {
    pub(super) fn resize(&self, rows: u16, columns: u16) {
        let size =
            rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.master, size).expect("resize");
    }

    /// All output up to the end.
    pub(super) fn finish(mut self) -> String {
        let mut shown = Vec::new();
        let mut chunk = [0; 1024];
        // A terminal without users answers EIO.
        while let Ok(count) = self.master.read(&mut chunk) {
            if count == 0 {
                break;
            }
            shown.extend_from_slice(&chunk[..count]);
        }
        self.child.wait().expect("launcher");
        String::from_utf8_lossy(&shown).into_owned()
    }
}

/// A container has a terminal of its own, which is no way to that of the launcher either.
#[rstest]
#[case::bubblewrap(By::Bubblewrap)]
#[case::landlock_as_user(By::Landlock)]
#[case::podman(By::Podman)]
fn w4_typing_into_the_console_is_refused(#[case] by: By) {
    need!(by);
    let argv = [probe_program().as_str(), "tiocsti", "X", "::", "tiocsti-high", "Y"];
    let launch = Launch::new();
    let shown =
        console(&launch.launcher(by.plan(&launch, &launch.policy(), &argv), &argv)).finish();
    assert_eq!(shown.matches("error 1 ").count(), 2, "{shown}");
    assert!(!shown.contains('X'), "nothing came into its queue: {shown}");
    let launch = Launch::new();
    let shown = console(&launch.launcher(launch.bare_plan(&argv), &argv)).finish();
    if shown.contains("error 5") {
        skip!("this kernel has no TIOCSTI (dev.tty.legacy_tiocsti)");
    }
    assert_eq!(shown.matches("ok 0").count(), 2, "the probe proves nothing: {shown}");
    assert!(shown.contains('X'), "what was typed is echoed: {shown}");
}

#[rstest]
#[case::bubblewrap(By::Bubblewrap)]
#[case::landlock_as_user(By::Landlock)]
#[case::podman(By::Podman)]
fn a_resize_reaches_the_command(#[case] by: By) {
    need!(by);
    let launch = Launch::new();
    let (ready, seen) = (launch.cwd.join("ready"), launch.cwd.join("seen"));
    let script = format!(
        "trap 'touch {seen}; exit 0' WINCH; touch {ready}; i=0; \
         while [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done"
    );
    let argv = ["/bin/sh", "-c", &script];
    let console = console(&launch.launcher(by.plan(&launch, &launch.policy(), &argv), &argv));
    assert!(within(30, || ready.exists()));
    console.resize(30, 90);
    assert!(within(30, || seen.exists()));
    console.finish();
}

#[test]
fn typed_signals_reach_the_command_and_not_the_launcher() {
    for (key, name) in [(b"\x03", "INT"), (b"\x1c", "QUIT")] {
        let launch = Launch::new();
        let ready = launch.cwd.join("ready");
        let script = format!(
            "trap 'exit 9' {name}; touch {ready}; i=0; \
             while [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done"
        );
        let argv = ["/bin/sh", "-c", &script];
        let mut console = console(&launch.launcher(launch.bare_plan(&argv), &argv));
        assert!(running(|| ready.exists()));
        console.master.write_all(key).expect("type");
        console.finish();
        let record = std::fs::read_to_string(launch.control.join("exit.json")).expect("a record");
        assert!(record.contains("\"code\": 9"), "{name}: {record}");
    }
}

#[test]
fn an_interrupt_that_nobody_caught_is_recorded_as_one() {
    need_bwrap!();
    let launch = Launch::new();
    let ready = launch.cwd.join("ready");
    let script = format!("touch {ready}; exec sleep 20");
    let argv = ["/bin/sh", "-c", &script];
    let mut console = console(&launch.launcher(launch.plan(&launch.policy(), &argv), &argv));
    assert!(running(|| ready.exists()));
    // Seen to run by the launcher as well: an earlier end counts as "not started".
    assert!(running(|| launch.control.join("observed.json").exists()));
    console.master.write_all(b"\x03").expect("type");
    console.finish();
    let record = std::fs::read_to_string(launch.control.join("exit.json")).expect("a record");
    assert!(record.contains("\"signal\": 2") && record.contains("\"started\": true"), "{record}");
}
