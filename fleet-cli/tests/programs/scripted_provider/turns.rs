//! A conversation without its protocol, and which step of which script comes next in it.

use super::script::{Step, find_script};

/// One turn of a conversation, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn {
    /// What a person, or whoever types for one, said.
    User(String),
    /// An answer of the model: text or a tool call.
    Model,
    /// What a tool answered. Never an instruction, but see [`Rules::follow_briefing`].
    Tool(String),
}

/// What is answered when no script is in sight.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// Starts again at each user text. "ack" when empty.
    pub(crate) fallback: Vec<Step>,
    /// A user text without a script that names a `briefing.md` makes the model read that file and
    /// follow the script found in it.
    pub(crate) follow_briefing: bool,
}

struct Active {
    script: Vec<Step>,
    used: usize,
}

struct Briefing {
    path: String,
    asked: bool,
}

/// The step that the next model answer follows.
pub(crate) fn pick(turns: &[Turn], rules: &Rules) -> Step {
    let mut active: Option<Active> = None;
    let mut briefing: Option<Briefing> = None;
    let mut since_user = 0;
    for turn in turns {
        match turn {
            Turn::User(text) => {
                since_user = 0;
                if let Some(script) = find_script(text) {
                    active = Some(Active { script, used: 0 });
                    briefing = None;
                } else if let Some(path) = briefing_path(text).filter(|_| rules.follow_briefing) {
                    briefing = Some(Briefing { path, asked: false });
                }
            }
            Turn::Model => match (&mut briefing, &mut active) {
                (Some(briefing), _) => briefing.asked = true,
                (None, Some(active)) => active.used += 1,
                (None, None) => since_user += 1,
            },
            Turn::Tool(text) => {
                if briefing.take_if(|briefing| briefing.asked).is_none() {
                    continue;
                }
                // Read once more after a restart, the same script goes on where it was.
                if let Some(script) = find_script(text)
                    && active.as_ref().is_none_or(|active| active.script != script)
                {
                    active = Some(Active { script, used: 0 });
                }
            }
        }
    }
    if let Some(briefing) = briefing {
        return Step::read(&briefing.path);
    }
    let (script, used) = match active {
        Some(active) => (active.script, active.used),
        None if rules.fallback.is_empty() => (vec![Step::say("ack")], since_user),
        None => (rules.fallback.clone(), since_user),
    };
    script.get(used).cloned().unwrap_or_else(|| Step::say("(script end)"))
}

/// The absolute path of a `briefing.md` that a text names, in quotes or as a word.
pub(crate) fn briefing_path(text: &str) -> Option<String> {
    const NAME: &str = "/briefing.md";
    let mut from = 0;
    while let Some(at) = text[from..].find(NAME) {
        let end = from + at + NAME.len();
        let before = &text[..end];
        let quote = text[end..].chars().next().filter(|next| matches!(next, '"' | '\'' | '`'));
        let start = match quote {
            Some(quote) => before.rfind(quote).map(|at| at + 1),
            None => before
                .rfind(|letter: char| letter.is_whitespace() || "\"'`(<[".contains(letter))
                .map(|at| at + before[at..].chars().next().map_or(1, char::len_utf8)),
        };
        let path = &before[start.unwrap_or(0)..];
        if path.starts_with('/') {
            return Some(path.to_owned());
        }
        from = end;
    }
    None
}
