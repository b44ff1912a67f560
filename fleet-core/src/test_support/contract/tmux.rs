//! The contract of [`Tmux`] and [`TmuxServers`].
#![expect(
    clippy::missing_panics_doc,
    reason = "a contract suite panics where the contract is broken"
)]
#![expect(clippy::expect_used, reason = "a contract suite panics where the contract is broken")]

use std::sync::Arc;

use async_trait::async_trait;

use crate::port::{
    Capture, ConsolePresence, KeyName, NewConsole, Tmux, TmuxAddress, TmuxError, TmuxServers,
};

/// What the suite needs besides the port.
#[async_trait]
pub trait TmuxSubject: Sync {
    /// The port under test.
    fn servers(&self) -> &dyn TmuxServers;

    /// The address of a role. The same name gives the same address.
    fn address(&self, role: &str) -> TmuxAddress;

    /// A console whose program shows what is typed and never ends by itself.
    fn console(&self) -> NewConsole;

    /// Ends the program with this pid, not by the port.
    fn end_program(&self, pid: u32);

    /// Lets a moment pass.
    async fn pause(&self);
}

const MANY: u32 = 500;

fn console_of(subject: &impl TmuxSubject, role: &str) -> Arc<dyn Tmux> {
    subject.servers().server(subject.address(role))
}

async fn opened(subject: &impl TmuxSubject, role: &str) -> (Arc<dyn Tmux>, u32) {
    let tmux = console_of(subject, role);
    let pid = tmux.open(&subject.console()).await.expect("it opens");
    (tmux, pid)
}

async fn become_absent(subject: &impl TmuxSubject, tmux: &dyn Tmux) {
    for _ in 0..MANY {
        if tmux.presence().await == ConsolePresence::Absent {
            return;
        }
        subject.pause().await;
    }
    panic!("the console of {} is still {:?}", tmux.address().session, tmux.presence().await);
}

/// Every operation that needs the console says that there is none.
async fn assert_no_console(tmux: &dyn Tmux) {
    assert_eq!(tmux.presence().await, ConsolePresence::Absent);
    let enter: KeyName = "Enter".parse().expect("a key");
    for (what, answer) in [
        ("capture", tmux.capture(Capture::default()).await.map(drop)),
        ("look", tmux.look().await.map(drop)),
        ("leave_mode", tmux.leave_mode().await),
        ("key_if_shown", tmux.key_if_shown(&enter, "a").await.map(drop)),
        ("pane_pid", tmux.pane_pid().await.map(drop)),
        ("paste", tmux.paste("text").await),
        ("key", tmux.key(&enter).await),
        ("clients", tmux.clients().await.map(drop)),
    ] {
        match answer {
            Err(TmuxError::NoConsole { session }) => assert_eq!(session, tmux.address().session),
            other => panic!("{what}: {other:?}"),
        }
    }
    assert!(!tmux.kill().await.expect("nothing to end"), "there was no server");
}

/// Before it is opened nothing is there, and every operation says so.
pub async fn begins_absent(subject: &impl TmuxSubject) {
    assert_no_console(&*console_of(subject, "Rev")).await;
}

/// Opening gives the pid of the program; the console is there until it is ended, once.
pub async fn opens_and_ends(subject: &impl TmuxSubject) {
    for _ in 0..3 {
        let (tmux, pid) = opened(subject, "Rev").await;
        assert_eq!(tmux.presence().await, ConsolePresence::Present);
        assert_eq!(tmux.pane_pid().await.expect("a pid"), pid);
        assert_eq!(tmux.clients().await.expect("a list"), Vec::<String>::new());
        assert!(tmux.kill().await.expect("it ends"), "there was a server");
        assert_no_console(&*tmux).await;
    }
}

/// A second console of the same name is refused and leaves the first one alone.
pub async fn opens_once(subject: &impl TmuxSubject) {
    let (tmux, pid) = opened(subject, "Rev").await;
    let again = tmux.open(&subject.console()).await;
    assert!(matches!(again, Err(TmuxError::Failed { .. })), "{again:?}");
    assert_eq!(tmux.pane_pid().await.expect("a pid"), pid);
    tmux.kill().await.expect("it ends");
}

/// A single word, which tmux would give to a shell, is refused; nothing is opened.
pub async fn refuses_what_a_shell_would_run(subject: &impl TmuxSubject) {
    let tmux = console_of(subject, "Rev");
    for argv in [vec![], vec!["exit".to_owned()]] {
        let console = NewConsole { argv, ..subject.console() };
        let answer = tmux.open(&console).await;
        assert!(matches!(answer, Err(TmuxError::Failed { .. })), "{answer:?}");
    }
    assert_no_console(&*tmux).await;
}

/// The console goes with its program.
pub async fn ends_with_its_program(subject: &impl TmuxSubject) {
    let (tmux, pid) = opened(subject, "Rev").await;
    subject.end_program(pid);
    become_absent(subject, &*tmux).await;
    assert_no_console(&*tmux).await;
}

/// A1: of two roles whose names begin the same, the end of one changes nothing for the other, and no
/// operation on the one that is gone reaches the other.
pub async fn names_are_exact(subject: &impl TmuxSubject) {
    let (short, _) = opened(subject, "Rev").await;
    let (long, pid) = opened(subject, "Reviewer").await;
    assert!(short.kill().await.expect("it ends"));
    assert_no_console(&*short).await;
    assert_eq!(long.pane_pid().await.expect("a pid"), pid);
    assert_eq!(long.presence().await, ConsolePresence::Present);
    let screen = long.capture(Capture::default()).await.expect("a screen");
    assert_eq!(screen.trim(), "", "nothing was typed there");
    long.kill().await.expect("it ends");
}

/// A1 on one server: exact names hold even where both sessions could be met by prefix.
pub async fn names_are_exact_on_one_server(subject: &impl TmuxSubject) {
    let (long, pid) = opened(subject, "Reviewer").await;
    let address = TmuxAddress {
        socket: long.address().socket.clone(),
        session: "Rev".parse().expect("a role name"),
    };
    let short = subject.servers().server(address);
    assert_eq!(short.presence().await, ConsolePresence::Absent);
    let enter: KeyName = "Enter".parse().expect("a key");
    for (what, answer) in [
        ("capture", short.capture(Capture::default()).await.map(drop)),
        ("look", short.look().await.map(drop)),
        ("leave_mode", short.leave_mode().await),
        ("key_if_shown", short.key_if_shown(&enter, "a").await.map(drop)),
        ("pane_pid", short.pane_pid().await.map(drop)),
        ("paste", short.paste("text").await),
        ("key", short.key(&enter).await),
        ("clients", short.clients().await.map(drop)),
    ] {
        assert!(matches!(answer, Err(TmuxError::NoConsole { .. })), "{what}: {answer:?}");
    }
    assert_eq!(long.pane_pid().await.expect("a pid"), pid);
    let screen = long.capture(Capture::default()).await.expect("a screen");
    assert_eq!(screen.trim(), "", "nothing was typed there");
    long.kill().await.expect("it ends");
}

/// Text that was pasted is on the screen.
pub async fn shows_what_was_pasted(subject: &impl TmuxSubject) {
    let (tmux, _) = opened(subject, "Rev").await;
    tmux.paste("fix it;").await.expect("it is typed");
    for _ in 0..MANY {
        let screen = tmux.capture(Capture { history: 10, joined: true }).await.expect("a screen");
        if screen.contains("fix it;") {
            tmux.kill().await.expect("it ends");
            return;
        }
        subject.pause().await;
    }
    panic!("the text never came");
}

/// A look has the screen, and a key that waits for a text is pressed only where that text shows.
pub async fn presses_a_key_only_on_what_shows(subject: &impl TmuxSubject) {
    let (tmux, _) = opened(subject, "Rev").await;
    let key: KeyName = "x".parse().expect("a key");
    tmux.paste("fix it7").await.expect("it is typed");
    let mut view = tmux.look().await.expect("a view");
    for _ in 0..MANY {
        if view.screen.contains("fix it7") {
            break;
        }
        subject.pause().await;
        view = tmux.look().await.expect("a view");
    }
    assert!(view.screen.contains("fix it7"), "{view:?}");
    assert!(!view.in_mode);
    for absent in ["fix7", "it8", "FIX"] {
        assert!(!tmux.key_if_shown(&key, absent).await.expect("an answer"), "{absent}");
    }
    assert!(tmux.key_if_shown(&key, "it7").await.expect("an answer"));
    for bad in ["", "a b", "#{x}", "*", "ä", "a'"] {
        let answer = tmux.key_if_shown(&key, bad).await;
        assert!(matches!(answer, Err(TmuxError::BadText { .. })), "{bad}: {answer:?}");
    }
    // Nothing to leave is no error.
    tmux.leave_mode().await.expect("no mode");
    tmux.kill().await.expect("it ends");
}

/// Text that could not arrive unchanged is refused, and nothing is typed.
pub async fn refuses_bad_text(subject: &impl TmuxSubject) {
    let (tmux, _) = opened(subject, "Rev").await;
    for text in ["", "a\rb", "\x1b[201~", "a\0", "\x7f", "\u{9b}0m", "\x03"] {
        let answer = tmux.paste(text).await;
        assert!(matches!(answer, Err(TmuxError::BadText { .. })), "{text:?}: {answer:?}");
    }
    let screen = tmux.capture(Capture::default()).await.expect("a screen");
    assert_eq!(screen.trim(), "");
    tmux.kill().await.expect("it ends");
}
