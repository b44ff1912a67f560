use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use fleet_core::port::{Capture, ConsolePresence, NewConsole, TmuxAddress, TmuxError, TmuxServers};

use crate::support::{Servers, lives, set_mode, until};

/// Records its input byte for byte: raw terminal, bracketed paste asked for.
const RECORDER: &str = "stty raw -echo; printf '\\033[?2004h'; echo ready; exec cat -u > \"$1\"";

/// What has to arrive unchanged (A3).
const TEXTS: &[&str] = &[
    "fix it;",
    ";",
    "a;;",
    "a\\;",
    "\\",
    "-n foo",
    "--",
    "-",
    "$(id)",
    "`id`",
    "#{pane_pid}",
    "#(id)",
    "%h",
    "Enter",
    "C-c",
    "one\ntwo\n\nthree\n",
    "\n",
    "a\tb",
    " leading and trailing ",
    "'\"",
    "日本 é 🚀 \u{202e}",
];

#[tokio::test]
async fn a3_text_arrives_byte_for_byte() {
    let servers = Servers::new();
    let tmux = servers.console("Rev");
    let record = servers.dir().join("record");
    let recorder = servers.running(&["sh", "-c", RECORDER, "recorder", record.as_str()]);
    tmux.open(&recorder).await.expect("it opens");
    wait_for_text(&*tmux, "ready").await;
    let mut expected = Vec::new();
    let long = "x".repeat(20_000);
    for text in TEXTS.iter().copied().chain([long.as_str()]) {
        tmux.paste(text).await.expect("it is typed");
        expected.extend_from_slice(b"\x1b[200~");
        expected.extend_from_slice(text.as_bytes());
        expected.extend_from_slice(b"\x1b[201~");
        let read = || std::fs::read(&record).unwrap_or_default();
        until("as many bytes arrived", || read().len() >= expected.len()).await;
        assert!(read() == expected, "{text:?}: {:?}", String::from_utf8_lossy(&read()));
    }
    tmux.key(&"Enter".parse().expect("a key")).await.expect("it is pressed");
    expected.push(b'\r');
    until("the key arrived", || std::fs::read(&record).expect("it exists") == expected).await;
    tmux.kill().await.expect("it ends");
}

#[tokio::test]
async fn a3_words_of_the_program_arrive_unchanged() {
    let servers = Servers::new();
    let tmux = servers.console("Rev");
    let record = servers.dir().join("argv");
    let text = "printf '%s\\n' \"$@\" > \"$0\"; exec sleep 600";
    let mut argv = vec!["sh", "-c", text, record.as_str()];
    let words: Vec<&str> = TEXTS.iter().copied().filter(|text| !text.contains('\n')).collect();
    argv.extend(&words);
    tmux.open(&servers.running(&argv)).await.expect("it opens");
    let expected = words.join("\n") + "\n";
    let read = || std::fs::read_to_string(&record).unwrap_or_default();
    until("the words arrived", || read().len() >= expected.len()).await;
    assert_eq!(read(), expected);
    tmux.kill().await.expect("it ends");
}

async fn wait_for_text(tmux: &dyn fleet_core::port::Tmux, text: &str) {
    for _ in 0..1000 {
        let screen = tmux.capture(Capture::default()).await.expect("a screen");
        if screen.contains(text) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never shown: {text}");
}

#[tokio::test]
async fn the_program_starts_directly_in_its_directory_with_a_clean_environment() {
    let servers = Servers::new();
    let tmux = servers.console("Rev");
    // A path that tmux would expand or split, were it an option.
    let cwd = servers.dir().join("#{pane_pid} %H;");
    std::fs::create_dir(&cwd).expect("it is made");
    let console = NewConsole { cwd: cwd.clone(), ..servers.running(&["sleep", "600"]) };
    let pid = tmux.open(&console).await.expect("it opens");
    let proc_path = |what: &str| format!("/proc/{pid}/{what}");
    until("the program was executed", || {
        std::fs::read(proc_path("cmdline")).expect("it lives") == b"sleep\x00600\x00"
    })
    .await;
    assert_eq!(std::fs::read_link(proc_path("cwd")).expect("a link"), cwd);
    let environment = std::fs::read(proc_path("environ")).expect("it lives");
    let mut names: Vec<&str> = std::str::from_utf8(&environment)
        .expect("text")
        .split_terminator('\0')
        .filter_map(|variable| variable.split('=').next())
        .collect();
    names.sort_unstable();
    let known = [
        "HOME",
        "LANG",
        "LC_ALL",
        "PATH",
        "TERM",
        "TERM_PROGRAM",
        "TERM_PROGRAM_VERSION",
        "TMUX",
        "TMUX_PANE",
    ];
    // SHELL and PWD are tmux's own doing.
    names.retain(|name| !["SHELL", "PWD", "COLORTERM"].contains(name));
    assert_eq!(names, known);
    tmux.kill().await.expect("it ends");
    until("the program goes with its console", || !lives(pid)).await;
}

#[tokio::test]
async fn the_server_has_the_options_of_the_fleet() {
    let servers = Servers::new();
    let tmux = servers.console("Rev");
    // More lines than the default history of 2000, with a wrapped one at the end.
    let text = "seq 1 5000; printf '%0300d\\n' 7; echo end; exec sleep 600";
    tmux.open(&servers.running(&["sh", "-c", text])).await.expect("it opens");
    wait_for_text(&*tmux, "end").await;
    let history = Capture { history: 20_000, joined: false };
    let all = tmux.capture(history).await.expect("a text");
    assert!(all.starts_with("1\n2\n"), "the history reaches back to the first line");
    let long = format!("{:0300}", 7);
    assert!(!all.contains(&long), "200 columns");
    let joined = Capture { joined: true, ..history };
    assert!(tmux.capture(joined).await.expect("a text").contains(&long));
    let screen = tmux.capture(Capture::default()).await.expect("a text");
    assert_eq!(screen.lines().count(), 50, "50 rows and no status line");
    tmux.kill().await.expect("it ends");
}

#[tokio::test]
async fn a1_a_server_killed_from_outside_is_absent_and_the_other_role_goes_on() {
    let servers = Servers::new();
    let (short, long) = (servers.console("Rev"), servers.console("Reviewer"));
    let cat = servers.running(&["cat", "-u"]);
    short.open(&cat).await.expect("it opens");
    let pid = long.open(&cat).await.expect("it opens");
    let status = std::process::Command::new("tmux")
        .args(["-S", short.address().socket.as_str(), "kill-server"])
        .status();
    assert!(status.expect("it runs").success());
    for _ in 0..1000 {
        if short.presence().await == ConsolePresence::Absent {
            break;
        }
    }
    assert_eq!(short.presence().await, ConsolePresence::Absent);
    let peek = short.capture(Capture::default()).await;
    assert!(matches!(peek, Err(TmuxError::NoConsole { .. })), "{peek:?}");
    let send = short.paste("hi").await;
    assert!(matches!(send, Err(TmuxError::NoConsole { .. })), "{send:?}");
    assert!(!short.kill().await.expect("nothing to end"));
    assert_eq!(long.pane_pid().await.expect("a pid"), pid);
    assert_eq!(long.capture(Capture::default()).await.expect("a screen").trim(), "");
    long.kill().await.expect("it ends");
}

#[tokio::test]
async fn a6_nothing_but_the_short_command_shows_in_the_process_list() {
    let servers = Servers::new();
    let tmux = servers.console("Rev");
    tmux.open(&servers.running(&["cat", "-u"])).await.expect("it opens");
    let secret = "s3cr3t-marker-of-this-test";
    // The server's command line stays for days; the one of the paste is looked for while it runs.
    let watch = tokio::task::spawn_blocking(move || {
        let mut seen = Vec::new();
        for _ in 0..20 {
            for entry in std::fs::read_dir("/proc").expect("a list").flatten() {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                if line.contains(secret) {
                    seen.push(line);
                }
            }
        }
        seen
    });
    for _ in 0..20 {
        tmux.paste(secret).await.expect("it is typed");
    }
    assert_eq!(watch.await.expect("it ends"), Vec::<String>::new());
    wait_for_text(&*tmux, secret).await;
    tmux.kill().await.expect("it ends");
}

#[tokio::test]
async fn unclear_answers_are_unknown_never_absent() {
    let servers = Servers::new();
    let address = servers.address("Rev");
    // f17: tmux is missing, or the socket is a path that no server can have.
    let environment =
        fleet_adapters::TmuxEnvironment { path: "/nonexistent".to_owned(), home: servers.dir() };
    let exec = std::sync::Arc::new(fleet_adapters::ProcessExec);
    let without = fleet_adapters::CliTmuxServers::new(exec, environment).server(address.clone());
    let ConsolePresence::Unknown(detail) = without.presence().await else {
        panic!("there is no tmux")
    };
    assert!(detail.contains("tmux"), "{detail}");
    assert!(without.kill().await.is_err());
    let socket = address.socket.with_file_name("x".repeat(120));
    let long = servers.servers.server(TmuxAddress { socket, ..address.clone() });
    let ConsolePresence::Unknown(detail) = long.presence().await else { panic!("too long") };
    assert!(detail.contains("at most 100"), "{detail}");
    std::fs::write(&address.socket, "not a socket").expect("it is written");
    let plain = servers.servers.server(address);
    // Connecting to a plain file is refused, so nobody can be behind it.
    assert_eq!(plain.presence().await, ConsolePresence::Absent);
}

#[tokio::test]
async fn a_socket_directory_open_to_others_is_refused() {
    let servers = Servers::new();
    let address = servers.address("Rev");
    let control = address.socket.parent().expect("a directory").to_owned();
    let tmux = servers.servers.server(address);
    for mode in [0o755, 0o710, 0o701] {
        set_mode(&control, mode);
        let error = tmux.open(&servers.running(&["cat", "-u"])).await.expect_err("open to others");
        assert!(error.to_string().contains("0700"), "{error}");
    }
    set_mode(&control, 0o700);
    assert_eq!(tmux.presence().await, ConsolePresence::Absent, "no server was started");
    tmux.open(&servers.running(&["cat", "-u"])).await.expect("it opens");
    assert_eq!(control.metadata().expect("it exists").mode() & 0o777, 0o700);
    let clash = tmux.attach_argv();
    assert!(clash.ends_with(&["attach-session".into(), "-t".into(), "=Rev".into()]), "{clash:?}");
    tmux.kill().await.expect("it ends");
}

#[tokio::test]
async fn a_missing_program_or_directory_does_not_count_as_open() {
    let servers = Servers::new();
    let tmux = servers.console("Rev");
    let missing = servers.dir().join("missing");
    let console = NewConsole { cwd: missing, ..servers.running(&["cat", "-u"]) };
    let error = tmux.open(&console).await.expect_err("no directory");
    assert!(error.to_string().contains("missing"), "{error}");
    // tmux answers before the program is executed: its absence shows as a console that is gone.
    let gone = servers.running(&["/no/such/program", "x"]);
    tmux.open(&gone).await.expect("tmux says it opened");
    for _ in 0..1000 {
        if tmux.presence().await == ConsolePresence::Absent {
            return;
        }
    }
    panic!("the console is still there");
}

/// A person scrolls: keys would go to the history, a paste would not, and leaving is one call.
#[tokio::test]
async fn a_console_in_copy_mode_is_seen_and_left() {
    let servers = Servers::new();
    let tmux = servers.console("Rev");
    let title = "printf '\\033]2;a %%H #{pane_pid} title\\033\\\\'; exec cat -u";
    tmux.open(&servers.running(&["sh", "-c", title])).await.expect("it opens");
    let socket = servers.address("Rev").socket;
    let status = std::process::Command::new("tmux")
        .args(["-S", socket.as_str(), "copy-mode", "-t", "=Rev:"])
        .status()
        .expect("tmux runs");
    assert!(status.success());
    assert!(tmux.look().await.expect("a view").in_mode);
    tmux.leave_mode().await.expect("left");
    tmux.paste("after all").await.expect("pasted");
    let enter = "Enter".parse().expect("a key");
    for _ in 0..200 {
        if tmux.key_if_shown(&enter, "after").await.expect("an answer") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    wait_for_text(&*tmux, "after all\nafter all").await;
    let view = tmux.look().await.expect("a view");
    assert!(!view.in_mode);
    assert_eq!(view.title, "a %H #{pane_pid} title");
    tmux.kill().await.expect("it ends");
}
