//! The checked paste against programs that behave as the real ones were measured (02 §6.5): nothing is
//! approved, nothing is lost or glued, and each answer is true.

use std::sync::Arc;
use std::time::Duration;

use fleet_adapters::runner::Observer;
use fleet_adapters::runner::deliver::{Delivery, Refused, deliver};
use fleet_adapters::runner::protocol::{Receipt, RefusalReason};
use fleet_core::delivery::Left;
use fleet_core::harness::claude_code::ClaudeDriver;
use fleet_core::harness::codex::CodexDriver;
use fleet_core::harness::screen::TerminalDriver;
use fleet_core::id::Timestamp;
use fleet_core::port::{NewConsole, Tmux, TmuxAddress, TmuxServers};
use fleet_core::test_support::fakes::{
    ComposerProgram, Look, ManualClock, MemoryProcesses, MemoryTmuxServers, Surprise,
};
use tokio::sync::Mutex;

/// A program in a console, and what earlier texts left in it.
struct Desk {
    program: ComposerProgram,
    servers: MemoryTmuxServers,
    address: TmuxAddress,
    tmux: Arc<dyn Tmux>,
    observer: Observer,
    left: Mutex<Option<Left>>,
}

impl Desk {
    async fn new(look: Look) -> Self {
        let servers = MemoryTmuxServers::new(Arc::new(MemoryProcesses::default()));
        let address =
            TmuxAddress { socket: "/c/tmux.sock".into(), session: "A".parse().expect("a name") };
        let tmux = servers.server(address.clone());
        let argv = vec!["agent".to_owned(), "x".to_owned()];
        tmux.open(&NewConsole { argv, cwd: "/".into(), columns: 80, rows: 24 })
            .await
            .expect("it opens");
        let program = ComposerProgram::new(look);
        servers.set_program(&address, program.clone());
        let driver: Arc<dyn TerminalDriver> = match look {
            Look::Claude => Arc::new(ClaudeDriver),
            Look::Codex => Arc::new(CodexDriver),
        };
        let clock = Arc::new(ManualClock::hurried(Timestamp::from_millis(1_000)));
        let observer = Observer::new(tmux.clone(), clock, driver);
        Self { program, servers, address, tmux, observer, left: Mutex::default() }
    }

    async fn send(&self, text: &str) -> Result<Receipt, RefusalReason> {
        self.send_with(text, false, 1_000).await
    }

    async fn send_with(
        &self,
        text: &str,
        interrupt: bool,
        millis: u64,
    ) -> Result<Receipt, RefusalReason> {
        let mut left = self.left.lock().await;
        let delivery = Delivery { text, interrupt, timeout: Duration::from_millis(millis) };
        let answer = deliver(&self.observer, &mut left, delivery).await;
        answer.map(|delivered| delivered.receipt).map_err(|Refused { reason, .. }| reason)
    }
}

const BOTH: [Look; 2] = [Look::Claude, Look::Codex];

/// The control of all of these: typing without looking approves what nobody read.
#[tokio::test]
async fn broken_paste_and_enter_without_a_look_approve_a_question() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.ask(true);
        desk.tmux.paste("mail for you").await.expect("pasted");
        desk.tmux.key(&"Enter".parse().expect("a key")).await.expect("pressed");
        assert_eq!(desk.program.approved(), 1);
        assert!(desk.program.messages().is_empty(), "and the text is lost");
    }
}

#[tokio::test]
async fn an_idle_program_gets_exactly_the_text() {
    let eight = "line\n".repeat(8) + "end";
    let long = "word ".repeat(200);
    for look in BOTH {
        for text in ["go on", "two\nlines", "[fleet] mail: `fleet mail`", "日本", &eight, &long] {
            let desk = Desk::new(look).await;
            assert_eq!(desk.send(text).await, Ok(Receipt::TurnStarted), "{look:?} {text:?}");
            let got = desk.program.messages();
            assert_eq!(got.len(), 1);
            assert_eq!(got[0].trim(), text.trim());
            assert_eq!(desk.program.draft(), "");
        }
    }
}

#[tokio::test]
async fn a_turn_that_nobody_saw_is_only_submitted() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.set_turn_length(0);
        assert_eq!(desk.send("quick").await, Ok(Receipt::Submitted));
        assert_eq!(desk.program.messages(), ["quick"]);
    }
}

#[tokio::test]
async fn nothing_is_ever_typed_into_a_dialog() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.ask(true);
        assert_eq!(desk.send("hello").await, Err(RefusalReason::Modal));
        desk.program.ask(false);
        desk.program.stop_at_start(true);
        assert_eq!(desk.send("hello").await, Err(RefusalReason::Modal));
        assert_eq!(desk.program.approved(), 0);
        assert!(desk.servers.typed(&desk.address).is_empty(), "{look:?}");
    }
}

#[tokio::test]
async fn a_question_that_swallows_the_paste_is_not_answered() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.surprise(Surprise::Question);
        assert_eq!(desk.send("hello").await, Err(RefusalReason::Modal));
        assert_eq!((desk.program.approved(), desk.program.messages().len()), (0, 0));
        desk.program.ask(false);
        assert_eq!(desk.send("hello").await, Ok(Receipt::TurnStarted));
        assert_eq!(desk.program.messages(), ["hello"]);
    }
}

/// The text was refused, so it must not go out later with another one's Enter.
#[tokio::test]
async fn a_refused_text_that_stayed_behind_a_question_is_deleted_before_the_next() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.surprise(Surprise::QuestionAfterwards);
        assert_eq!(desk.send("refused\ntext").await, Err(RefusalReason::Modal));
        assert_eq!(desk.program.draft(), "refused\ntext");
        desk.program.ask(false);
        assert_eq!(desk.send("next").await, Ok(Receipt::TurnStarted));
        assert_eq!(desk.program.messages(), ["next"], "{look:?}");
        assert_eq!(desk.program.approved(), 0);
    }
}

#[tokio::test]
async fn a_draft_of_a_person_is_never_sent_along() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.type_draft("half a thought");
        assert_eq!(desk.send("hello").await, Err(RefusalReason::Draft));
        assert_eq!(desk.send_with("hello", true, 0).await, Err(RefusalReason::Draft));
        assert!(desk.servers.typed(&desk.address).is_empty());
        assert_eq!(desk.program.draft(), "half a thought");

        let desk = Desk::new(look).await;
        desk.program.surprise(Surprise::Typing(" and more".to_owned()));
        assert_eq!(desk.send("hello").await, Ok(Receipt::Typed), "there, but not sent");
        assert_eq!(desk.program.draft(), "hello and more");
        assert!(desk.program.messages().is_empty());
        assert_eq!(desk.send("next").await, Err(RefusalReason::Draft));
    }
}

#[tokio::test]
async fn a_lost_paste_is_not_seen_and_nothing_is_pressed() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.surprise(Surprise::Loss);
        assert_eq!(desk.send("hello").await, Err(RefusalReason::NotSeen));
        assert!(desk.program.messages().is_empty());
        assert_eq!(desk.send("again").await, Ok(Receipt::TurnStarted));
        assert_eq!(desk.program.messages(), ["again"]);
    }
}

#[tokio::test]
async fn late_drawing_is_waited_for() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.set_delay(8);
        assert_eq!(desk.send("slow screen").await, Ok(Receipt::TurnStarted), "{look:?}");
        assert_eq!(desk.program.messages(), ["slow screen"]);
    }
}

#[tokio::test]
async fn an_enter_that_does_nothing_is_repeated_and_in_the_end_admitted() {
    let desk = Desk::new(Look::Claude).await;
    desk.program.ignore_enter(2);
    assert_eq!(desk.send("hello").await, Ok(Receipt::TurnStarted));
    assert_eq!(desk.program.messages(), ["hello"]);

    let desk = Desk::new(Look::Claude).await;
    desk.program.ignore_enter(3);
    assert_eq!(desk.send("first").await, Ok(Receipt::Typed));
    // It was said to be there: it goes out before the next one, each by itself.
    desk.program.set_turn_length(0);
    assert!(desk.send("second").await.is_ok());
    assert_eq!(desk.program.messages(), ["first", "second"]);

    // Sent again by a sender who was told "typed", it goes out once.
    let desk = Desk::new(Look::Claude).await;
    desk.program.ignore_enter(3);
    assert_eq!(desk.send("once").await, Ok(Receipt::Typed));
    assert_eq!(desk.send("once").await, Ok(Receipt::TurnStarted));
    assert_eq!(desk.program.messages(), ["once"]);
}

#[tokio::test]
async fn a_busy_program_queues_or_is_waited_for() {
    let claude = Desk::new(Look::Claude).await;
    claude.program.work(1_000);
    assert_eq!(claude.send("later").await, Ok(Receipt::Submitted));
    assert_eq!(claude.program.queued(), ["later"]);

    let codex = Desk::new(Look::Codex).await;
    codex.program.work(1_000);
    assert_eq!(codex.send("later").await, Err(RefusalReason::Busy));
    assert!(codex.servers.typed(&codex.address).is_empty());
    codex.program.work(5);
    assert_eq!(codex.send_with("later", false, 10_000).await, Ok(Receipt::TurnStarted));
    assert_eq!(
        (codex.program.messages(), codex.program.steered().len()),
        (vec!["later".to_owned()], 0)
    );
}

#[tokio::test]
async fn a_text_that_would_steer_a_turn_is_taken_back() {
    let desk = Desk::new(Look::Codex).await;
    desk.program.surprise(Surprise::Turn);
    assert_eq!(desk.send_with("not\nnow", false, 10_000).await, Ok(Receipt::TurnStarted));
    assert_eq!(desk.program.messages(), ["not\nnow"]);
    assert!(desk.program.steered().is_empty());
}

#[tokio::test]
async fn an_interruption_ends_a_turn_and_clears_what_it_puts_back() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.program.set_turn_length(1_000);
        desk.program.put_back();
        assert_eq!(desk.send("old\nprompt").await, Ok(Receipt::TurnStarted));
        assert_eq!(desk.send_with("new", true, 0).await, Ok(Receipt::TurnStarted), "{look:?}");
        assert_eq!(desk.program.messages(), ["old\nprompt", "new"]);
    }
    // Without a turn nothing is interrupted.
    let desk = Desk::new(Look::Codex).await;
    assert_eq!(desk.send_with("hello", true, 0).await, Ok(Receipt::TurnStarted));
    let typed = format!("{:?}", desk.servers.typed(&desk.address));
    assert!(!typed.contains("Escape"), "{typed}");
}

/// A person who reads the history is taken out of it: what was asked for is that the text arrives.
#[tokio::test]
async fn the_text_arrives_in_copy_mode_too() {
    for look in BOTH {
        let desk = Desk::new(look).await;
        desk.servers.enter_mode(&desk.address);
        assert_eq!(desk.send("hello").await, Ok(Receipt::TurnStarted), "{look:?}");
        assert_eq!(desk.program.messages(), ["hello"]);
    }
}

#[tokio::test]
async fn a_text_that_the_program_would_run_is_refused() {
    let desk = Desk::new(Look::Claude).await;
    for text in ["!rm -rf x", " !id", "/exit", "a\tb", "  \n", "a\u{1b}b", ""] {
        assert_eq!(desk.send(text).await, Err(RefusalReason::BadText), "{text:?}");
    }
    assert!(desk.servers.typed(&desk.address).is_empty());
}

#[tokio::test]
async fn fifty_texts_of_four_senders_arrive_whole_and_once() {
    for look in BOTH {
        let desk = Arc::new(Desk::new(look).await);
        desk.program.set_turn_length(2);
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let desk = desk.clone();
                tokio::spawn(async move {
                    for number in 0..50 {
                        let text = format!("sender {sender} text {number}");
                        let receipt = desk.send_with(&text, false, 60_000).await.expect("sent");
                        assert!(receipt >= Receipt::Submitted, "{receipt:?}");
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.await.expect("no panic");
        }
        let mut got = desk.program.messages();
        got.extend(desk.program.queued());
        for sender in 0..4 {
            let own: Vec<&String> =
                got.iter().filter(|text| text.starts_with(&format!("sender {sender} "))).collect();
            let expected: Vec<String> =
                (0..50).map(|number| format!("sender {sender} text {number}")).collect();
            assert!(own.iter().copied().eq(expected.iter()), "{look:?}: {own:?}");
        }
        assert_eq!((got.len(), desk.program.approved()), (200, 0));
    }
}
