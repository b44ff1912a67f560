use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use crate::test_support::sync::lock;

/// A program in a console of [`super::MemoryTmuxServers`].
pub trait ConsoleProgram: Send + Debug {
    /// Text that was pasted.
    fn paste(&mut self, text: &str);

    /// A key that was pressed, by its tmux name.
    fn key(&mut self, key: &str);

    /// Screen and title at this look.
    fn draw(&mut self) -> (String, String);
}

/// Whose screens a [`ComposerProgram`] draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Claude Code: keeps a message for after the turn, puts an interrupted prompt back.
    Claude,
    /// Codex: gives a message to the running turn.
    Codex,
}

/// What happens between a paste and the next look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Surprise {
    /// A permission question opens and swallows the paste.
    Question,
    /// A permission question opens over the composer, which keeps the paste.
    QuestionAfterwards,
    /// A person types this behind it.
    Typing(String),
    /// The paste is lost.
    Loss,
    /// A turn begins by itself.
    Turn,
}

/// An agent program with a composer, as the real ones were measured: a question swallows a paste and
/// takes Enter for yes, a draft is sent along, long pastes show as a marker, and drawing takes time.
/// Copies share everything.
#[derive(Debug, Clone)]
pub struct ComposerProgram {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    look: Look,
    /// What Enter would send, and what is drawn of it.
    draft: String,
    shown: String,
    pastes: u32,
    question: bool,
    starting: bool,
    /// Looks that the running turn still lasts.
    busy: Option<u32>,
    turn_length: u32,
    puts_back: bool,
    deaf_to_enter: u32,
    queued: VecDeque<String>,
    messages: Vec<String>,
    steered: Vec<String>,
    approved: u32,
    surprise: Option<Surprise>,
    delay: usize,
    drawn: Vec<(String, String)>,
}

impl ComposerProgram {
    /// An idle program with an empty composer, whose turns last four looks.
    pub fn new(look: Look) -> Self {
        let state = State {
            look,
            draft: String::new(),
            shown: String::new(),
            pastes: 0,
            question: false,
            starting: false,
            busy: None,
            turn_length: 4,
            puts_back: false,
            deaf_to_enter: 0,
            queued: VecDeque::new(),
            messages: Vec::new(),
            steered: Vec::new(),
            approved: 0,
            surprise: None,
            delay: 0,
            drawn: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Opens or closes a permission question.
    pub fn ask(&self, open: bool) {
        lock(&self.state).question = open;
    }

    /// Opens or closes a dialog of the start.
    pub fn stop_at_start(&self, open: bool) {
        lock(&self.state).starting = open;
    }

    /// Puts a person's draft into the composer.
    pub fn type_draft(&self, text: &str) {
        lock(&self.state).type_in(text);
    }

    /// Begins a turn that lasts so many looks.
    pub fn work(&self, looks: u32) {
        lock(&self.state).busy = Some(looks);
    }

    /// How many looks a turn lasts; with none it ends unseen.
    pub fn set_turn_length(&self, looks: u32) {
        lock(&self.state).turn_length = looks;
    }

    /// What happens at the next paste.
    pub fn surprise(&self, what: Surprise) {
        lock(&self.state).surprise = Some(what);
    }

    /// Draws everything so many looks late.
    pub fn set_delay(&self, looks: usize) {
        lock(&self.state).delay = looks;
    }

    /// Puts the last message back into the composer when its turn is interrupted.
    pub fn put_back(&self) {
        lock(&self.state).puts_back = true;
    }

    /// Takes no notice of so many Enters.
    pub fn ignore_enter(&self, times: u32) {
        lock(&self.state).deaf_to_enter = times;
    }

    /// The messages that the model got, in order; those that still wait are not among them.
    pub fn messages(&self) -> Vec<String> {
        lock(&self.state).messages.clone()
    }

    /// The messages that wait for the end of the turn.
    pub fn queued(&self) -> Vec<String> {
        lock(&self.state).queued.iter().cloned().collect()
    }

    /// The messages that went into a running turn.
    pub fn steered(&self) -> Vec<String> {
        lock(&self.state).steered.clone()
    }

    /// How many questions and dialogs were answered with yes.
    pub fn approved(&self) -> u32 {
        lock(&self.state).approved
    }

    /// What Enter would send now.
    pub fn draft(&self) -> String {
        lock(&self.state).draft.clone()
    }
}

impl State {
    fn type_in(&mut self, text: &str) {
        self.draft.push_str(text);
        self.shown.push_str(text);
    }

    fn take(&mut self, text: &str) {
        self.pastes += 1;
        self.draft.push_str(text);
        let (lines, chars) = (text.matches('\n').count(), text.chars().count());
        if lines < 5 && chars < 800 {
            self.shown.push_str(text);
            return;
        }
        let marker = match (self.look, lines) {
            (Look::Codex, _) => format!("[Pasted Content {chars} chars]"),
            (Look::Claude, 0) => format!("[Pasted text #{}]", self.pastes),
            (Look::Claude, lines) => format!("[Pasted text #{} +{lines} lines]", self.pastes),
        };
        self.shown.push_str(&marker);
    }

    fn send(&mut self) {
        if self.deaf_to_enter > 0 {
            self.deaf_to_enter -= 1;
            return;
        }
        if self.draft.is_empty() {
            return;
        }
        let message = std::mem::take(&mut self.draft);
        self.shown.clear();
        match (self.busy, self.look) {
            (None, _) => self.begin(message),
            (Some(_), Look::Claude) => self.queued.push_back(message),
            (Some(_), Look::Codex) => self.steered.push(message),
        }
    }

    fn begin(&mut self, message: String) {
        self.messages.push(message);
        self.busy = Some(self.turn_length).filter(|looks| *looks > 0);
    }

    fn pass(&mut self) {
        match self.busy {
            Some(0) => {
                self.busy = None;
                if let Some(next) = self.queued.pop_front() {
                    self.begin(next);
                }
            }
            Some(looks) if !self.question => self.busy = Some(looks.saturating_sub(1)),
            _ => {}
        }
    }

    /// Deletes the last line, or the end of the line before it.
    fn delete_line(&mut self) {
        if self.draft != self.shown {
            self.draft.clear();
            self.shown.clear();
            return;
        }
        let start = self.draft.rfind('\n').map_or(0, |at| at + 1);
        if start == self.draft.len() {
            self.draft.pop();
        } else {
            self.draft.truncate(start);
        }
        self.shown.clone_from(&self.draft);
    }

    fn rows(&self) -> Vec<String> {
        let mut rows: Vec<String> = self
            .messages
            .iter()
            .rev()
            .take(3)
            .rev()
            .map(|message| {
                let prompt = if self.look == Look::Claude { '❯' } else { '›' };
                format!("{prompt} {}", message.lines().next().unwrap_or_default())
            })
            .collect();
        rows.push(String::new());
        let text: &[&str] = match (self.look, self.starting, self.question) {
            (Look::Claude, true, _) => &[
                " Accessing workspace:",
                " Quick safety check: is this yours?",
                "",
                " ❯ 1. Yes, I trust this folder",
                "   2. No, exit",
                "",
                " Enter to confirm · Esc to cancel",
            ],
            (Look::Claude, false, true) => &[
                " Bash command",
                " Do you want to proceed?",
                " ❯ 1. Yes",
                "   2. No",
                "",
                " Esc to cancel · Tab to amend",
            ],
            (Look::Codex, true, _) => &[
                "  Trust this folder?",
                "",
                "› 1. Yes, continue",
                "  2. No, quit",
                "",
                "  enter continue",
            ],
            (Look::Codex, false, true) => &[
                "  Would you like to run the following command?",
                "",
                "  $ touch x",
                "",
                "› 1. Yes, proceed (y)",
                "  2. No (esc)",
                "",
                "  Press enter to confirm or esc to cancel",
            ],
            (Look::Claude | Look::Codex, false, false) => &[],
        };
        if !text.is_empty() {
            rows.extend(text.iter().map(|row| (*row).to_owned()));
            return rows;
        }
        let mut draft = self.shown.split('\n');
        let first = draft.next().unwrap_or_default();
        match self.look {
            Look::Claude => {
                let rule = "─".repeat(80);
                rows.push(rule.clone());
                rows.push(format!("❯\u{a0}{first}"));
                rows.extend(draft.map(|row| format!("  {row}")));
                rows.push(rule);
                let busy = self.busy.is_some() && self.shown.is_empty();
                rows.push(if busy { "  esc to interrupt" } else { "  ? for shortcuts" }.to_owned());
            }
            Look::Codex => {
                if self.busy.is_some() {
                    rows.push("• Working (1s • esc to interrupt)".to_owned());
                    rows.push(String::new());
                }
                let empty = self.shown.is_empty();
                rows.push(format!("› {}", if empty { "Ask Codex to do anything" } else { first }));
                rows.extend(draft.map(|row| format!("  {row}")));
                rows.push(String::new());
                rows.push("  model default · /work".to_owned());
            }
        }
        rows
    }

    fn title(&self) -> String {
        let title = match (self.look, self.busy.is_some(), self.question) {
            (Look::Claude, true, false) => "◐ Claude Code",
            (Look::Claude, _, _) => "✳ Claude Code",
            (Look::Codex, _, true) => "[ ! ] Action Required | work",
            (Look::Codex, true, false) => "⠋ work",
            (Look::Codex, false, false) => "work",
        };
        title.to_owned()
    }
}

impl ConsoleProgram for ComposerProgram {
    fn paste(&mut self, text: &str) {
        let mut state = lock(&self.state);
        let surprise = state.surprise.take();
        if surprise == Some(Surprise::Question) {
            state.question = true;
        }
        if state.question || state.starting || surprise == Some(Surprise::Loss) {
            return;
        }
        state.take(text);
        match surprise {
            Some(Surprise::Typing(more)) => state.type_in(&more),
            Some(Surprise::QuestionAfterwards) => state.question = true,
            Some(Surprise::Turn) => state.busy = Some(state.turn_length),
            Some(Surprise::Question | Surprise::Loss) | None => {}
        }
    }

    fn key(&mut self, key: &str) {
        let mut state = lock(&self.state);
        let asked = state.question || state.starting;
        match key {
            "Enter" if asked => {
                state.approved += 1;
                state.question = false;
                state.starting = false;
            }
            "Escape" if asked => state.question = false,
            "Enter" => state.send(),
            "Escape" if state.busy.is_some() => {
                state.busy = None;
                if state.puts_back
                    && let Some(last) = state.messages.last().cloned()
                {
                    state.type_in(&last);
                }
            }
            "C-u" if !asked => state.delete_line(),
            _ => {}
        }
    }

    fn draw(&mut self) -> (String, String) {
        let mut state = lock(&self.state);
        state.pass();
        let now = (state.rows().join("\n") + "\n", state.title());
        state.drawn.push(now);
        let at = state.drawn.len().saturating_sub(1 + state.delay);
        state.drawn[at].clone()
    }
}
