//! The hook socket as an agent may treat it: it serves two requests and survives everything else.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use fleet_adapters::runner::control::Server;
use fleet_adapters::runner::events::EventLog;
use fleet_adapters::runner::hook::{HookDesk, run_hook, serve};
use fleet_adapters::runner::log::RunnerLog;
use fleet_core::harness::hooks::HookEvent;
use fleet_core::id::Timestamp;
use fleet_core::port::{NewConsole, StateStore, TmuxAddress, TmuxServers};
use fleet_core::test_support::fakes::{
    ManualClock, MemoryProcesses, MemoryStore, MemoryTmuxServers,
};
use rstest::rstest;

use crate::support::{temp, utf8};

/// A desk over fakes behind a real socket, with one console.
struct Desk {
    servers: MemoryTmuxServers,
    address: TmuxAddress,
    store: Arc<MemoryStore>,
    hooks: Arc<HookDesk>,
    socket: Utf8PathBuf,
    _server: Server,
    _dir: tempfile::TempDir,
}

impl Desk {
    async fn below(directory: &str) -> Self {
        let dir = temp();
        let handout = utf8(&dir).join(directory);
        std::fs::create_dir_all(&handout).expect("a directory");
        let servers = MemoryTmuxServers::new(Arc::new(MemoryProcesses::default()));
        let address =
            TmuxAddress { socket: "/t.sock".into(), session: "A".parse().expect("a name") };
        let console = servers.server(address.clone());
        let new = NewConsole {
            argv: vec!["a".into(), "b".into()],
            cwd: "/".into(),
            columns: 80,
            rows: 24,
        };
        console.open(&new).await.expect("a console");
        let store = Arc::new(MemoryStore::default());
        store.ensure_dir("/c".into()).expect("a directory");
        let clock = Arc::new(ManualClock::new(Timestamp::default()));
        let events = EventLog::open(store.clone(), "/c/events".into());
        let log = RunnerLog::new(store.clone(), clock.clone(), "/c/log".into());
        let desk = Arc::new(HookDesk::new(console, clock, events, log));
        let socket = handout.join("hook.sock");
        let uid = rustix::process::geteuid().as_raw();
        let server = serve(&socket, uid, desk.clone()).expect("it listens");
        Self { servers, address, store, hooks: desk, socket, _server: server, _dir: dir }
    }

    /// Sends bytes and closes its side; all that comes back.
    async fn raw(&self, bytes: Vec<u8>) -> String {
        let socket = self.socket.clone();
        tokio::task::spawn_blocking(move || {
            let mut stream = UnixStream::connect(socket).expect("it connects");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
            // The other side may have closed already.
            let _sent = stream.write_all(&bytes);
            let _closed = stream.shutdown(std::net::Shutdown::Write);
            let mut text = String::new();
            let _reset = stream.read_to_string(&mut text);
            text
        })
        .await
        .expect("no panic")
    }

    /// Runs the hook as the agent program does.
    async fn hook(&self, event: HookEvent, input: &'static str) -> Option<String> {
        let socket = self.socket.clone();
        let work = move || run_hook(&socket, event, input.as_bytes());
        tokio::task::spawn_blocking(work).await.expect("no panic")
    }

    fn text(&self, path: &str) -> String {
        let bytes = self.store.content(path.into()).unwrap_or_default();
        String::from_utf8(bytes).expect("UTF-8")
    }
}

const REFUSED: &str = "{\"version\":1,\"ok\":false}\n";

#[rstest]
#[case::nothing("\n")]
#[case::no_json("hello\n")]
#[case::prompt(
    r#"{"version":1,"id":"1","token":"","command":"submit_prompt","text":"hi","timeoutMs":1}"#
)]
#[case::key(r#"{"version":1,"id":"1","token":"","command":"send_key","key":"Enter"}"#)]
#[case::status(r#"{"version":1,"id":"1","token":"","command":"status"}"#)]
#[case::peek(r#"{"version":1,"id":"1","token":"","command":"peek","lines":9}"#)]
#[case::release(r#"{"version":1,"id":"1","token":"","command":"release"}"#)]
#[case::allow(r#"{"version":1,"request":"allow","input":{}}"#)]
#[case::bare(r#"{"version":1,"request":"attended"}"#)]
#[case::other_version(r#"{"version":2,"request":"attended","input":{}}"#)]
#[case::unknown_event(r#"{"version":1,"request":"event","event":"PreToolUse","input":{}}"#)]
#[case::question_as_event(
    r#"{"version":1,"request":"event","event":"PermissionRequest","input":{}}"#
)]
#[case::bad_session(
    r#"{"version":1,"request":"event","event":"Stop","input":{"sessionId":"../x"}}"#
)]
#[tokio::test]
async fn everything_else_is_refused_and_has_no_effect(#[case] line: &str) {
    let desk = Desk::below("h").await;
    desk.servers.attach(&desk.address, &["/dev/pts/1"]);
    let mut bytes = line.trim_end().as_bytes().to_vec();
    bytes.push(b'\n');
    assert_eq!(desk.raw(bytes).await, REFUSED);
    assert_eq!(desk.servers.typed(&desk.address), []);
    assert_eq!(desk.hooks.last(), None);
    assert_eq!(desk.text("/c/events") + &desk.text("/c/log"), "", "nothing is recorded");
}

/// One request a connection, no more than 64 KiB, ended by a newline.
#[tokio::test]
async fn a_frame_is_bounded() {
    let desk = Desk::below("h").await;
    let stop = r#"{"version":1,"request":"event","event":"Stop","input":{}}"#;
    assert_eq!(desk.raw(stop.as_bytes().to_vec()).await, "", "not ended");
    assert_eq!(desk.hooks.last(), None);
    let mut long = vec![b' '; 64 * 1024];
    long.extend(stop.bytes());
    long.push(b'\n');
    assert_eq!(desk.raw(long).await, "", "too long");
    assert_eq!(desk.hooks.last(), None);
    let twice = format!("{stop}\n{}\n", stop.replace("Stop", "UserPromptSubmit"));
    assert_eq!(desk.raw(twice.into_bytes()).await, "{\"version\":1,\"ok\":true}\n");
    assert_eq!(desk.hooks.last().expect("seen").event, HookEvent::Stop, "only the first");
}

/// An agent that keeps every connection busy delays its own hook, no longer than one limit, and a
/// question is denied even then.
#[tokio::test]
async fn idle_connections_are_dropped() {
    let desk = Desk::below("h").await;
    let idle: Vec<UnixStream> =
        (0..40).map(|_| UnixStream::connect(&desk.socket).expect("it connects")).collect();
    let begun = Instant::now();
    let printed = desk.hook(HookEvent::PermissionRequest, "{}").await.expect("denied");
    assert!(printed.contains("\"behavior\":\"deny\""), "{printed}");
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    drop(idle);
    let printed = desk.hook(HookEvent::PermissionRequest, r#"{"tool_name":"T"}"#).await;
    assert!(printed.expect("denied").contains("nobody is at this console"));
}

/// A quoted path in a shell, and one too long for a socket address.
#[rstest]
#[case::quotes("it's \"$HOME\" `id` ${x} \\ %s")]
#[case::long(
    "a-long-directory-name-of-a-fleet-home/that-goes-on-and-on-and-on-and-on-and-on/until-no-address-holds-it"
)]
#[tokio::test]
async fn any_path_works(#[case] directory: &str) {
    let desk = Desk::below(directory).await;
    desk.servers.attach(&desk.address, &["/dev/pts/1"]);
    assert_eq!(desk.hook(HookEvent::PermissionRequest, "{}").await, None, "the dialog opens");
    desk.servers.attach(&desk.address, &[]);
    assert!(desk.hook(HookEvent::PermissionRequest, "{}").await.is_some());
    assert!(desk.text("/c/events").contains("denied") && desk.text("/c/log").contains("denied"));

    // What the shell makes of the command.
    let program = desk.socket.with_file_name("show");
    crate::support::script(&program, "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\"\n");
    let command = fleet_core::harness::hooks::HookCommand::new(&program, &desk.socket);
    let shell = command.expect("plain").shell(HookEvent::Stop);
    let output = std::process::Command::new("sh").arg("-c").arg(shell).output().expect("sh");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(shown, format!("3\n_hook\nStop\n{}\n", desk.socket));
}

#[tokio::test]
async fn without_a_runner_questions_are_denied_and_events_are_lost() {
    let dir = temp();
    let socket = utf8(&dir).join("hook.sock");
    let run = |socket: &Utf8PathBuf, event| run_hook(socket, event, "{}".as_bytes());
    let printed = run(&socket, HookEvent::PermissionRequest).expect("denied");
    assert!(printed.contains("could not be asked"), "{printed}");
    assert_eq!(run(&socket, HookEvent::Stop), None);

    // Somebody who accepts and says nothing, or nonsense, or more than an answer.
    for answer in [
        "",
        "yes\n",
        "{\"version\":1,\"ok\":true}\n",
        "{\"version\":9,\"ok\":true,\"decision\":\"ask\"}\n",
    ] {
        let _old = std::fs::remove_file(&socket);
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("it listens");
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a hook");
            let mut start = [0; 8];
            let _read = stream.read(&mut start);
            let _sent = stream.write_all(answer.as_bytes());
        });
        assert!(run(&socket, HookEvent::PermissionRequest).is_some(), "{answer:?}");
        served.join().expect("no panic");
    }
}
