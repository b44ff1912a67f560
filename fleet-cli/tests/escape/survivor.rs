//! A sandbox whose agent cut what ties it to its launcher: runner and launcher can be killed, and it
//! lives on. It is seen and ended all the same.

use std::process::Command;

use rstest::rstest;

use crate::support::{TestEnvironment, needs, wait_for};

/// Takes the parent-death signal of the sandbox's first process away, then writes on and on.
///
/// The first process waits in a system call, its instruction pointer behind it: it is made to do
/// `prctl(PR_SET_PDEATHSIG, 0)` and then its own call again.
const ATTACK: &str = r#"
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
ATTACH, DETACH, GETREGS, SETREGS, STEP = 16, 17, 12, 13, 9
RAX, RSI, RDI, ORIG_RAX, RIP = 10, 13, 14, 15, 16
PRCTL, SET_PDEATHSIG = 157, 1
out = os.environ["OURS_FLEET_STATE"]

def trace(request, data=None):
    if libc.ptrace(request, 1, None, data) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")

def untie():
    trace(ATTACH)
    os.waitpid(1, 0x40000000)
    saved = (ctypes.c_ulonglong * 27)()
    trace(GETREGS, saved)
    changed = (ctypes.c_ulonglong * 27)(*saved)
    changed[RIP] -= 2
    changed[RAX], changed[RDI], changed[RSI] = PRCTL, SET_PDEATHSIG, 0
    trace(SETREGS, changed)
    trace(STEP)
    os.waitpid(1, 0x40000000)
    saved[RIP] -= 2
    saved[RAX] = saved[ORIG_RAX]
    trace(SETREGS, saved)
    trace(DETACH)

if sys.argv[1] == "untie":
    untie()
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    count = 0
    while True:
        count += 1
        with open(out + "/count.new", "w") as file:
            file.write(str(count))
        os.rename(out + "/count.new", out + "/count")
        time.sleep(0.02)
while True:
    signal.pause()
"#;

/// The one of the system: what else is called so may be a script that a sandbox does not show.
macro_rules! needs_python {
    () => {
        if !std::path::Path::new("/usr/bin/python3").exists() {
            skip!("/usr/bin/python3 is not installed");
        }
    };
}

fn fleet(what: &str) -> TestEnvironment {
    let env = TestEnvironment::new();
    let script = env.script("attack.py", ATTACK);
    env.write(
        "fleet.yaml",
        &format!(
            "roles:\n  A:\n    harness: command\n    harness_options: {{ argv: [/usr/bin/python3, '{script}', {what}] \
             }}\n    isolation:\n      backend: bubblewrap\n      network: deny\n      on_unavailable: \
             strict\n      fs: {{ read: ['{script}'] }}\n",
            script = script.display()
        ),
    );
    env.run(["up"]).expect(0);
    wait_for("the agent writes", || count(&env));
    env
}

fn count(env: &TestEnvironment) -> Option<u64> {
    String::from_utf8(env.state_file("A", "count")?).ok()?.parse().ok()
}

/// As the out-of-memory killer or a crash might: whoever guards the sandbox is gone at once.
fn kill_guards(env: &TestEnvironment) {
    let (runner, launcher) = env.pids("A");
    let pids = [runner.to_string(), launcher.to_string()];
    assert!(Command::new("kill").arg("-KILL").args(&pids).status().expect("kill").success());
    for pid in [runner, launcher] {
        let pid = u32::try_from(pid).expect("a pid");
        wait_for("the guards are gone", || (!env.processes().contains(&pid)).then_some(()));
    }
}

/// The sandbox's first process, by the record of its launcher.
fn first_process(env: &TestEnvironment) -> Option<u32> {
    let bytes = env.read(".ours-fleet/control/A/sandbox-process.json")?;
    let record: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    Some(u32::try_from(record["process"]["pid"].as_u64().expect("a pid")).expect("a pid"))
}

fn lives(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|stat| !stat.contains(") Z "))
}

#[rstest]
fn a_sandbox_that_outlives_its_guards_is_seen_and_ended(#[values("down", "up")] verb: &str) {
    needs!("tmux", "bwrap");
    needs_python!();
    if std::env::consts::ARCH != "x86_64" {
        skip!("the attack is written for x86_64");
    }
    let env = fleet("untie");
    let first = first_process(&env).expect("a record");
    kill_guards(&env);
    let before = count(&env);
    wait_for("it goes on", || (count(&env) > before).then_some(()));
    assert!(lives(first), "it is the recorded one");

    assert_eq!(env.status("A")["state"], "unknown");
    let text = env.run(["status", "A"]).expect(0).stdout;
    assert!(text.contains("sandbox running") && text.contains("`ours-fleet down A`"), "{text}");
    for args in [&["peek", "A"][..], &["send", "A", "hi"], &["attach", "A"]] {
        env.run(args).expect(1);
    }

    env.run([verb]).expect(0);
    wait_for("it is gone", || (!lives(first)).then_some(()));
    if verb == "up" {
        assert_eq!(env.status("A")["state"], "running");
        assert_ne!(first_process(&env), Some(first), "a sandbox of its own");
        env.run(["down"]).expect(0);
    }
    assert_eq!(env.status("A")["state"], "stopped");
    assert_eq!(first_process(&env), None, "nothing is left to be found");
    env.expect_no_process();
}

/// The control: without the attack the sandbox ends with its launcher, and its record says nothing.
#[test]
fn a_sandbox_that_is_left_as_it_is_ends_with_its_launcher() {
    needs!("tmux", "bwrap");
    needs_python!();
    let env = fleet("stay");
    let first = first_process(&env).expect("a record");
    kill_guards(&env);
    wait_for("it is gone", || (!lives(first)).then_some(()));
    wait_for("it is seen", || (env.status("A")["state"] == "stopped").then_some(()));
    env.run(["down"]).expect(0);
    env.expect_no_process();
}

/// What a launcher could not end stands in its record: the next stop ends it.
#[test]
fn what_a_launcher_could_not_end_is_ended_by_the_next_stop() {
    needs!("tmux", "sleep");
    let env = TestEnvironment::with_fleet(
        "roles:\n  A:\n    harness: command\n    harness_options: { argv: [cat] }\n",
    );
    env.run(["up"]).expect(0);
    env.run(["down"]).expect(0);
    // The control: nothing is recorded, nothing is ended.
    let told = env.run(["down"]).expect(0).all();
    assert!(!told.contains("earlier launch"), "{told}");
    let mut left = Command::new("sleep").arg("1000").spawn().expect("sleep");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", left.id())).expect("stat");
    let after_name = stat.rsplit(')').next().expect("fields");
    let begun: u64 = after_name.split_whitespace().nth(19).expect("a field").parse().expect("time");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("boot id");
    let record = serde_json::json!({
        "version": 1, "backend": "tmux", "launchId": "launch-1", "started": true,
        "startedAt": "2026-01-01T00:00:00.000Z", "endedAt": "2026-01-01T00:00:00.000Z",
        "left": [{ "pid": left.id(), "startTime": begun, "bootId": boot.trim() }],
    });
    env.write(".ours-fleet/control/A/exit-status", &record.to_string());
    let told = env.run(["down"]).expect(0).all();
    assert!(told.contains("1 processes of an earlier launch"), "{told}");
    let end = std::os::unix::process::ExitStatusExt::signal(&left.wait().expect("ended"));
    assert_eq!(end, Some(9));
}
