//! Measured screens of the real programs (02 §6.5, §7.3). Each fixture holds what was seen from
//! outside and what the driver must say of it.

use std::path::{Path, PathBuf};

use fleet_core::harness::claude_code::ClaudeDriver;
use fleet_core::harness::codex::CodexDriver;
use fleet_core::harness::screen::{
    AgentState, Composer, ComposerMode, Evidence, EvidenceSource, Held, Readiness, SessionRecord,
    TerminalDriver, Typing, holds,
};

/// What a fixture expects.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expected {
    state: Readiness,
    #[serde(default)]
    waiting_for: Option<String>,
    #[serde(default)]
    dialog: Option<String>,
    #[serde(default)]
    error: Option<String>,
    composer: Option<String>,
    #[serde(default)]
    mode: Option<String>,
}

struct Fixture {
    name: String,
    title: String,
    record: Option<SessionRecord>,
    expected: Expected,
    screen: String,
}

impl Fixture {
    fn read(path: &Path) -> Self {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let text = std::fs::read_to_string(path).expect("a fixture");
        let (head, screen) = text.split_once("\n---\n").expect("a header");
        let field =
            |key: &str| head.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        let record = field("record").map(|json| {
            SessionRecord::parse(json.as_bytes()).unwrap_or_else(|| panic!("{name}: record"))
        });
        let expected = field("expect").unwrap_or_else(|| panic!("{name}: expect"));
        let expected =
            serde_json::from_str(expected).unwrap_or_else(|error| panic!("{name}: {error}"));
        let title = field("title").unwrap_or_default().to_owned();
        Self { name, title, record, expected, screen: screen.to_owned() }
    }

    fn evidence(&self) -> Evidence<'_> {
        Evidence { screen: &self.screen, title: Some(&self.title), record: self.record.as_ref() }
    }
}

fn fixtures(program: &str, at_least: usize) -> Vec<Fixture> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/screens/");
    let folder = PathBuf::from(format!("{root}{program}"));
    let mut paths: Vec<PathBuf> =
        folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= at_least, "only {} fixtures of {program}", paths.len());
    paths.iter().map(|path| Fixture::read(path)).collect()
}

fn claude() -> (&'static dyn TerminalDriver, Vec<Fixture>) {
    (&ClaudeDriver, fixtures("claude-code/2.1.332", 75))
}

fn codex() -> (&'static dyn TerminalDriver, Vec<Fixture>) {
    (&CodexDriver, fixtures("codex/0.171.0", 58))
}

fn squashed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Wrapping cannot be undone, so texts are compared without whitespace.
fn composer_as_expected(composer: Option<&Composer>, expected: &Expected) -> bool {
    match (composer, expected.composer.as_deref()) {
        (None, None) => true,
        (Some(composer), Some(text)) => {
            let shell = expected.mode.as_deref() == Some("shell");
            squashed(&composer.text) == squashed(text)
                && (composer.mode == ComposerMode::Shell) == shell
                && composer.is_empty() == (text.is_empty() && !shell)
        }
        _ => false,
    }
}

fn check_table((driver, fixtures): (&dyn TerminalDriver, Vec<Fixture>)) {
    let mut wrong = Vec::new();
    for fixture in &fixtures {
        let expected = &fixture.expected;
        let state = driver.state(&fixture.evidence());
        let composer = driver.composer(&fixture.screen);
        let seen = (&state.readiness, &state.waiting_for, &state.dialog, &state.error);
        let wanted = (&expected.state, &expected.waiting_for, &expected.dialog, &expected.error);
        if seen != wanted || !composer_as_expected(composer.as_ref(), expected) {
            wrong.push(format!("{}: {state:?} {composer:?}", fixture.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn claude_screens_are_told_apart() {
    check_table(claude());
}

#[test]
fn codex_screens_are_told_apart() {
    check_table(codex());
}

/// With less evidence a driver may know less, but never takes a program that is not idle for idle.
fn check_degraded((driver, fixtures): (&dyn TerminalDriver, Vec<Fixture>)) {
    for fixture in &fixtures {
        let full = fixture.evidence();
        let fewer = [
            Evidence { record: None, ..full },
            Evidence { record: None, title: None, ..full },
            Evidence { title: None, ..full },
        ];
        for evidence in fewer {
            let state = driver.state(&evidence);
            let allowed = [fixture.expected.state, Readiness::Unknown];
            let dialog = |readiness| matches!(readiness, Readiness::Waiting | Readiness::Dialog);
            let both_dialogs = dialog(state.readiness) && dialog(fixture.expected.state);
            assert!(
                allowed.contains(&state.readiness) || both_dialogs,
                "{}: {state:?} for {:?}",
                fixture.name,
                fixture.expected.state
            );
        }
    }
}

#[test]
fn less_evidence_never_makes_claude_idle() {
    check_degraded(claude());
}

#[test]
fn less_evidence_never_makes_codex_idle() {
    check_degraded(codex());
}

/// What stood on the screen before is above: it changes nothing of what stands at the bottom.
fn check_above((driver, fixtures): (&dyn TerminalDriver, Vec<Fixture>)) {
    for above in fixtures.iter().step_by(5) {
        for below in fixtures.iter().filter(|below| below.expected.state != Readiness::Starting) {
            let screen = format!("{}\n{}", above.screen, below.screen);
            let same = if below.name.contains("draft-tall") {
                // Without its prompt a draft continues whatever stands above it.
                true
            } else {
                driver.composer(&screen) == driver.composer(&below.screen)
            };
            assert!(same, "{} above {}", above.name, below.name);
        }
    }
}

#[test]
fn an_old_claude_screen_above_is_no_composer() {
    check_above(claude());
}

#[test]
fn an_old_codex_screen_above_is_no_composer() {
    check_above(codex());
}

#[test]
fn the_other_program_is_never_taken_for_idle() {
    for (driver, fixtures) in [(claude().0, codex().1), (codex().0, claude().1)] {
        for fixture in fixtures {
            let evidence = Evidence { record: None, title: None, screen: &fixture.screen };
            assert_eq!(driver.composer(&fixture.screen), None, "{}", fixture.name);
            assert_ne!(driver.state(&evidence).readiness, Readiness::Idle, "{}", fixture.name);
        }
    }
}

fn find(fixtures: &[Fixture], name: &str) -> String {
    let found = fixtures.iter().find(|fixture| fixture.name == name);
    found.unwrap_or_else(|| panic!("no fixture {name}")).screen.clone()
}

#[test]
fn pasted_texts_are_held_exactly() {
    let lines = |word: &str, count: usize| {
        (0..count).map(|n| format!("{word} {n}")).collect::<Vec<_>>().join("\n")
    };
    let long = (0..60).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
    let tall = |word: &str, count: usize| {
        let line = |n| format!("{word} {n} and some more text here");
        (0..count).map(line).collect::<Vec<_>>().join("\n")
    };
    let mail = "[fleet] mail for you: 2 new, run `fleet mail`".to_owned();
    let ((claude, of_claude), (codex, of_codex)) = (claude(), codex());
    let table: Vec<(&dyn TerminalDriver, &[Fixture], _, String, _)> = vec![
        (claude, &of_claude, "paste-1-line", mail.clone(), Held::Exactly),
        (claude, &of_claude, "paste-8-lines", lines("line", 8), Held::Exactly),
        (claude, &of_claude, "paste-second", lines("line", 8), Held::MoreThan),
        (claude, &of_claude, "draft-long", long.clone(), Held::Exactly),
        (claude, &of_claude, "draft-long", "word3 word4".to_owned(), Held::MoreThan),
        (claude, &of_claude, "idle-after-turn", "say hi".to_owned(), Held::Not),
        (codex, &of_codex, "paste-1-line", mail, Held::Exactly),
        (codex, &of_codex, "paste-120-lines", tall("line", 120), Held::Exactly),
        (codex, &of_codex, "paste-second", tall("again", 90), Held::MoreThan),
        (codex, &of_codex, "idle-after-turn", "say hi".to_owned(), Held::Not),
    ];
    for (driver, fixtures, name, text, wanted) in table {
        let composer = driver.composer(&find(fixtures, name)).expect("a composer");
        assert_eq!(holds(&composer, &text), wanted, "{name}: {composer:?}");
    }
}

#[test]
fn newlines_of_a_short_draft_are_kept() {
    for (driver, fixtures) in [claude(), codex()] {
        for (name, text) in [
            ("draft-multiline", "first line\nsecond line\nthird"),
            ("draft-blank-lines", "one\n\nthree"),
        ] {
            let composer = driver.composer(&find(&fixtures, name)).expect("a composer");
            assert_eq!(composer.text, text, "{name}");
        }
    }
}

fn record(status: &str, waiting_for: Option<&str>) -> SessionRecord {
    SessionRecord {
        pid: 2,
        status: Some(status.to_owned()),
        waiting_for: waiting_for.map(str::to_owned),
        ..SessionRecord::default()
    }
}

#[test]
fn the_record_comes_first_but_a_dialog_on_the_screen_wins() {
    let (driver, fixtures) = claude();
    let state = |screen: &str, record: &SessionRecord| {
        driver.state(&Evidence { screen, title: Some("◐ x"), record: Some(record) })
    };
    let (idle, dialog) = (find(&fixtures, "idle-empty"), find(&fixtures, "permission-bash"));
    let seen = state(&idle, &record("idle", None));
    assert_eq!((seen.readiness, seen.evidence), (Readiness::Idle, EvidenceSource::Record));
    let seen = state(&dialog, &record("idle", None));
    assert_eq!((seen.readiness, seen.evidence), (Readiness::Waiting, EvidenceSource::Screen));
    assert_eq!(seen.waiting_for.as_deref(), Some("permission prompt"));
    let seen = state(&idle, &record("waiting", Some("sandbox\u{1b}[31m request")));
    assert_eq!(seen.readiness, Readiness::Waiting);
    assert_eq!(seen.waiting_for.as_deref(), Some("sandbox [31m request"));
    assert_eq!(state(&idle, &record("waiting", None)).readiness, Readiness::Dialog);
    let seen = state(&idle, &record("new word", None));
    assert_eq!((seen.readiness, seen.evidence), (Readiness::Busy, EvidenceSource::Title));
}

#[test]
fn an_unknown_dialog_is_still_a_dialog() {
    let claude_dialog = "Something new\n\n ❯ 1. Yes\n   2. No\n";
    let hint = "Something new\n\n   Yes\n\n Enter to confirm · Esc to cancel\n";
    let codex_dialog = "  Something new\n\n› 1. Yes\n  2. No\n";
    let table: [(&dyn TerminalDriver, &str); 3] =
        [(&ClaudeDriver, claude_dialog), (&ClaudeDriver, hint), (&CodexDriver, codex_dialog)];
    for (driver, screen) in table {
        let state = driver.state(&Evidence { screen, ..Evidence::default() });
        assert_eq!((state.readiness, state.dialog), (Readiness::Dialog, None), "{screen}");
    }
}

#[test]
fn a_question_or_a_pointer_or_a_list_alone_is_no_dialog() {
    for screen in [
        "Do you want to proceed?\n",
        "❯ go on\n› go on\n",
        "1. Yes\n2. No\n3. Maybe\n",
        "Would you like to run the following command?\n",
        "Trust this folder?\n",
    ] {
        let drivers: [&dyn TerminalDriver; 2] = [&ClaudeDriver, &CodexDriver];
        for driver in drivers {
            let state = driver.state(&Evidence { screen, ..Evidence::default() });
            assert_eq!(state, AgentState { error: None, ..unknown() }, "{screen}");
        }
    }
}

fn unknown() -> AgentState {
    AgentState::unknown()
}

#[test]
fn text_that_enter_would_not_send_is_changed_or_refused() {
    for text in ["!touch x", " !touch x", "/exit", "\n /exit", "a\tb", "cafe\u{301}", "5 \u{212b}"]
    {
        assert!(ClaudeDriver.as_typed(text).is_err(), "{text}");
    }
    for (driver, text, typed) in [
        (&ClaudeDriver as &dyn TerminalDriver, "see /etc, now!", "see /etc, now!"),
        (&ClaudeDriver, "ends with \\", "ends with \\ "),
        (&ClaudeDriver, "café हिन्दी 한국어", "café हिन्दी 한국어"),
        (&CodexDriver, "cafe\u{301}", "cafe\u{301}"),
        (&CodexDriver, "!touch x", " !touch x"),
        (&CodexDriver, "/exit", " /exit"),
        (&CodexDriver, "look at @no", "look at @no "),
        (&CodexDriver, "run\n$skill", "run\n$skill "),
        (&CodexDriver, "look at @no now", "look at @no now"),
    ] {
        assert_eq!(driver.as_typed(text).as_deref(), Ok(typed), "{text}");
        let shown = Composer::message(typed.trim().to_owned());
        assert_eq!(holds(&shown, text), Held::Exactly, "{text}");
    }
    assert_eq!((ClaudeDriver.typing(), CodexDriver.typing()), (Typing::Queues, Typing::Steers));
}
