//! Properties of the screen drivers: what the agent writes is never taken for the composer.

use fleet_core::harness::claude_code::ClaudeDriver;
use fleet_core::harness::codex::CodexDriver;
use fleet_core::harness::screen::{
    Composer, Evidence, Held, Readiness, SessionRecord, TerminalDriver, holds,
};
use proptest::prelude::*;

use super::{check, holds as must_hold};

/// The columns of the measured screens.
const COLUMNS: usize = 200;

/// How one program draws, as measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chrome {
    prompt: &'static str,
    ruled: bool,
    footer: &'static str,
    dialog: &'static str,
}

pub(crate) const CLAUDE: Chrome = Chrome {
    prompt: "❯\u{a0}",
    ruled: true,
    footer: "  ⏸ manual mode on\n",
    dialog: " Bash command\n\n   touch x\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend\n",
};

pub(crate) const CODEX: Chrome = Chrome {
    prompt: "› ",
    ruled: false,
    footer: "                    \n  gpt-9 default · /tmp/ws-a/app · a thread\n",
    dialog: "  Would you like to run the following command?\n\n  $ touch x\n\n› 1. Yes, proceed (y)\n  2. No (esc)\n\n  Press enter to confirm or esc to cancel\n",
};

impl Chrome {
    fn rule(self) -> String {
        if self.ruled { "─".repeat(COLUMNS) + "\n" } else { String::new() }
    }

    /// A composer with this draft, wrapped as the programs do.
    fn composer(self, draft: &str) -> String {
        let width = COLUMNS - 4;
        let mut rows = Vec::new();
        for line in draft.split('\n') {
            let chars: Vec<char> = line.chars().collect();
            if chars.is_empty() {
                rows.push(String::new());
            }
            rows.extend(chars.chunks(width).map(|part| part.iter().collect::<String>()));
        }
        let rows: Vec<String> = rows
            .iter()
            .enumerate()
            .map(
                |(n, row)| {
                    if n == 0 { format!("{}{row}", self.prompt) } else { format!("  {row}") }
                },
            )
            .collect();
        format!("{0}{1}\n{0}{2}", self.rule(), rows.join("\n"), self.footer)
    }

    fn dialog(self) -> String {
        format!("{}{}", self.rule(), self.dialog)
    }
}

/// Pieces of which screens are made, and what an agent could write to imitate them.
fn piece() -> impl Strategy<Value = String> {
    let texts = [
        "❯\u{a0}",
        "❯ ",
        "› ",
        "! ",
        "!\u{a0}",
        "─",
        "  ",
        " · /tmp/ws-a/app",
        "esc to interrupt)",
        "  gpt-9 default · /tmp/ws-a/app",
        "  ⏸ manual mode on · ? for shortcuts",
        "❯ 1. Yes",
        "› 1. Yes, proceed (y)",
        "2. No",
        "Do you want to proceed?",
        "Esc to cancel",
        "Would you like to run the following command?",
        "Waiting for permission…",
        "● API Error: 529",
        "■ broken",
        "[Pasted text #1 +7 lines]",
        "[Pasted Content 1100 chars]",
        "[Pasted ",
        "]",
        "• Working (1s • esc to interrupt)",
        "  Worked for 1s",
        "\u{1b}[2J",
        "日本",
        "🎉",
    ];
    prop_oneof![
        4 => prop::sample::select(texts.map(str::to_owned).to_vec()),
        1 => Just("─".repeat(COLUMNS)),
        1 => "[ -~]{0,30}",
        1 => any::<char>().prop_map(String::from),
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..5)
        .prop_map(|pieces| pieces.concat().replace(['\n', '\r'], " "))
}

fn screen() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..25).prop_map(|lines| lines.join("\n"))
}

/// What an agent can put on the screen: the programs draw it behind a margin.
fn transcript() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..20)
        .prop_map(|lines| lines.iter().flat_map(|line| ["  ", line, "\n"]).collect::<String>())
}

/// A draft as a person or a paste leaves it: no control characters, no blanks at its ends.
fn draft() -> impl Strategy<Value = String> {
    let visible = |text: String| {
        let plain: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
        plain.trim().to_owned()
    };
    prop::collection::vec(line(), 1..5)
        .prop_map(move |lines| visible(lines.join("\n")))
        .prop_filter("something is typed", |text| !text.is_empty())
}

/// The function under test; `broken/` gives wrong ones to the same properties.
pub(crate) type FindComposer = fn(&str) -> Option<Composer>;

/// A draft is found below any transcript, whole and nothing else.
pub(crate) fn drafts_are_found(chrome: Chrome, find: FindComposer) -> Result<(), String> {
    check(&(transcript(), draft()), |(above, draft)| {
        let screen = format!("● hello\n{above}\n{}", chrome.composer(&draft));
        let composer = find(&screen);
        prop_assert!(composer.is_some(), "no composer in {screen}");
        let composer = composer.unwrap_or_default();
        prop_assert_eq!(holds(&composer, &draft), Held::Exactly, "{:?} for {:?}", composer, draft);
        Ok(())
    })
}

/// What the agent wrote is not in an empty composer, nor in a dialog's place.
pub(crate) fn transcripts_are_not_composers(
    chrome: Chrome,
    find: FindComposer,
) -> Result<(), String> {
    check(&transcript(), |above| {
        let composer = find(&format!("● hello\n{above}\n{}", chrome.composer("")));
        prop_assert!(
            composer.as_ref().is_some_and(Composer::is_empty),
            "{composer:?} after {above}"
        );
        let composer = find(&format!("● hello\n{above}\n{}", chrome.dialog()));
        prop_assert_eq!(composer, None, "a dialog after {}", above);
        Ok(())
    })
}

pub(crate) fn claude(screen: &str) -> Option<Composer> {
    ClaudeDriver.composer(screen)
}

pub(crate) fn codex(screen: &str) -> Option<Composer> {
    CodexDriver.composer(screen)
}

#[test]
fn drafts_of_claude_are_found() {
    must_hold(drafts_are_found(CLAUDE, claude));
}

#[test]
fn drafts_of_codex_are_found() {
    must_hold(drafts_are_found(CODEX, codex));
}

#[test]
fn what_an_agent_writes_is_not_in_claudes_composer() {
    must_hold(transcripts_are_not_composers(CLAUDE, claude));
}

#[test]
fn what_an_agent_writes_is_not_in_codexs_composer() {
    must_hold(transcripts_are_not_composers(CODEX, codex));
}

/// Whatever the agent wrote, an open dialog at the bottom is seen.
#[test]
fn a_dialog_below_any_transcript_is_seen() {
    let drivers: [(&dyn TerminalDriver, Chrome); 2] =
        [(&ClaudeDriver, CLAUDE), (&CodexDriver, CODEX)];
    let status = prop_oneof![Just("idle"), Just("busy"), Just("shell"), Just("other")];
    let title =
        prop_oneof![Just(None), Just(Some("✳ x")), Just(Some("⠋ x | app")), Just(Some("app"))];
    must_hold(check(&(transcript(), status, title), |(above, status, title)| {
        for (driver, chrome) in drivers {
            let screen = format!("● hello\n{above}\n{}", chrome.dialog());
            let record = SessionRecord {
                pid: 1,
                status: Some(status.to_owned()),
                ..SessionRecord::default()
            };
            for record in [None, Some(&record)] {
                let state = driver.state(&Evidence { screen: &screen, title, record });
                let open = matches!(state.readiness, Readiness::Waiting | Readiness::Dialog);
                prop_assert!(open, "{state:?} for {screen}");
            }
        }
        Ok(())
    }));
}

/// No text makes a driver panic, and what it shows is short and plain.
#[test]
fn any_screen_is_survived() {
    let text = prop_oneof![screen(), any::<String>()];
    let any_record = any::<Vec<u8>>();
    must_hold(check(&(text, any::<String>(), any_record), |(screen, title, bytes)| {
        let _ = SessionRecord::parse(&bytes);
        let record = SessionRecord {
            pid: 1,
            status: Some("waiting".to_owned()),
            waiting_for: Some(screen.clone()),
            ..SessionRecord::default()
        };
        let drivers: [&dyn TerminalDriver; 2] = [&ClaudeDriver, &CodexDriver];
        for driver in drivers {
            let evidence = Evidence { screen: &screen, title: Some(&title), record: Some(&record) };
            let state = driver.state(&evidence);
            for shown in [state.error, state.waiting_for].into_iter().flatten() {
                prop_assert!(shown.chars().count() <= 120 && !shown.contains(char::is_control));
            }
            if let Some(composer) = driver.composer(&screen) {
                let _ = holds(&composer, &title);
            }
        }
        Ok(())
    }));
}
