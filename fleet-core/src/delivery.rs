//! The decisions of a checked paste (02 §6.5): what one look at a console allows.
//!
//! A text that is pasted while a dialog is open is thrown away, and the Enter after it answers the
//! dialog. Hence Enter follows only on a text that was seen in the composer.

use crate::harness::screen::{AgentState, Composer, Held, Readiness, SessionRecord, Typing, holds};

/// Why a text has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A dialog is open.
    Modal,
    /// Somebody's draft stands in the composer.
    Draft,
    /// A turn runs that the text would steer or that was just interrupted.
    Busy,
    /// The program is not up.
    Starting,
    /// No composer was seen.
    NotSeen,
}

/// A text that an earlier paste of ours left in the composer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The text.
    pub text: String,
    /// Whether its sender was told that it was typed: then it is sent; one that was refused is not.
    pub promised: bool,
}

/// What a look before the paste allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Paste.
    Paste,
    /// Interrupt the turn.
    Interrupt,
    /// Send what an earlier paste left, then look again.
    Complete,
    /// Delete what stands in the composer, which is ours, then look again.
    Clear,
    /// Nothing yet.
    Wait(Hold),
}

/// How far an interruption has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// None is wanted.
    Unwanted,
    /// A running turn is to be interrupted.
    Wanted,
    /// It was, while the composer was empty: what appears in it is a prompt that was put back.
    Sent,
}

/// Judges a look before the paste.
pub fn before_paste(
    state: &AgentState,
    composer: Option<&Composer>,
    typing: Typing,
    interruption: Interruption,
    left: Option<&Left>,
) -> Before {
    let busy = match state.readiness {
        Readiness::Waiting | Readiness::Dialog => return Before::Wait(Hold::Modal),
        Readiness::Starting => return Before::Wait(Hold::Starting),
        Readiness::Busy => true,
        // A draft can hide what the screen tells: the composer decides.
        Readiness::Idle | Readiness::Unknown => false,
    };
    let Some(composer) = composer else { return Before::Wait(Hold::NotSeen) };
    if !composer.is_empty() {
        let ours = left.filter(|left| holds(composer, &left.text) == Held::Exactly);
        return match ours {
            Some(left) if left.promised && !(busy && typing == Typing::Steers) => Before::Complete,
            Some(left) if left.promised => Before::Wait(Hold::Busy),
            Some(_) => Before::Clear,
            None if interruption == Interruption::Sent && !busy => Before::Clear,
            None => Before::Wait(Hold::Draft),
        };
    }
    match (busy, interruption, typing) {
        (true, Interruption::Wanted, _) => Before::Interrupt,
        (true, Interruption::Sent, _) | (true, _, Typing::Steers) => Before::Wait(Hold::Busy),
        _ => Before::Paste,
    }
}

/// What a look after the paste allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The composer holds exactly the text: Enter.
    Enter,
    /// The text is there and a turn runs that it would steer: take it back.
    TakeBack,
    /// Somebody typed as well: hands off.
    Mixed,
    /// A dialog is open: hands off.
    Modal,
    /// The text is not there, so far.
    NotSeen,
}

/// Judges a look after the paste.
pub fn after_paste(
    state: &AgentState,
    composer: Option<&Composer>,
    typing: Typing,
    text: &str,
) -> After {
    if matches!(state.readiness, Readiness::Waiting | Readiness::Dialog) {
        return After::Modal;
    }
    match composer.map(|composer| holds(composer, text)) {
        Some(Held::Exactly) if state.readiness == Readiness::Busy && typing == Typing::Steers => {
            After::TakeBack
        }
        Some(Held::Exactly) => After::Enter,
        Some(Held::MoreThan) => After::Mixed,
        Some(Held::Not) | None => After::NotSeen,
    }
}

/// Whether a turn began between two looks. Never told of one that ran already.
pub fn turn_began(
    before: (&AgentState, Option<&SessionRecord>),
    now: (&AgentState, Option<&SessionRecord>),
) -> bool {
    if before.0.readiness == Readiness::Busy {
        return false;
    }
    let changed =
        |record: Option<&SessionRecord>| record.and_then(|record| record.status_updated_at);
    matches!(now.0.readiness, Readiness::Busy | Readiness::Waiting)
        // A short turn may be over already.
        || changed(before.1).zip(changed(now.1)).is_some_and(|(before, now)| now > before)
}

/// The longest piece of a composer's text that a server can be told to look for; `None` if no piece
/// is distinctive.
pub fn distinctive(composer: &Composer) -> Option<&str> {
    const SHORTEST: usize = 4;
    const LONGEST: usize = 40;
    let pieces = composer.text.split(|c: char| !c.is_ascii_alphanumeric());
    let longest = pieces.max_by_key(|piece| piece.len()).filter(|piece| piece.len() >= SHORTEST)?;
    Some(&longest[..longest.len().min(LONGEST)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::screen::EvidenceSource;

    fn state(readiness: Readiness) -> AgentState {
        AgentState::new(readiness, EvidenceSource::Screen)
    }

    fn composer(text: &str) -> Composer {
        Composer::message(text.to_owned())
    }

    #[test]
    fn before_the_paste() {
        use Interruption::{Sent, Unwanted, Wanted};
        use Readiness::{Busy, Dialog, Idle, Starting, Unknown, Waiting};
        let left = |promised| Left { text: "left".to_owned(), promised };
        for (readiness, text, typing, interruption, promised, expected) in [
            (Idle, Some(""), Typing::Queues, Unwanted, None, Before::Paste),
            (Unknown, Some(""), Typing::Queues, Unwanted, None, Before::Paste),
            (Busy, Some(""), Typing::Queues, Unwanted, None, Before::Paste),
            (Busy, Some(""), Typing::Steers, Unwanted, None, Before::Wait(Hold::Busy)),
            (Busy, Some(""), Typing::Steers, Wanted, None, Before::Interrupt),
            (Busy, Some(""), Typing::Queues, Wanted, None, Before::Interrupt),
            (Busy, Some(""), Typing::Queues, Sent, None, Before::Wait(Hold::Busy)),
            (Idle, Some(""), Typing::Queues, Wanted, None, Before::Paste),
            (Idle, None, Typing::Queues, Wanted, None, Before::Wait(Hold::NotSeen)),
            (Unknown, None, Typing::Queues, Unwanted, None, Before::Wait(Hold::NotSeen)),
            (Waiting, Some(""), Typing::Queues, Unwanted, None, Before::Wait(Hold::Modal)),
            (Dialog, Some(""), Typing::Queues, Unwanted, None, Before::Wait(Hold::Modal)),
            (Starting, Some(""), Typing::Queues, Unwanted, None, Before::Wait(Hold::Starting)),
            (Idle, Some("mine"), Typing::Queues, Unwanted, None, Before::Wait(Hold::Draft)),
            (Busy, Some("mine"), Typing::Queues, Wanted, None, Before::Wait(Hold::Draft)),
            (Idle, Some("back"), Typing::Queues, Sent, None, Before::Clear),
            (Idle, Some("left"), Typing::Queues, Unwanted, Some(true), Before::Complete),
            (Busy, Some("left"), Typing::Steers, Unwanted, Some(true), Before::Wait(Hold::Busy)),
            (Idle, Some("left"), Typing::Queues, Unwanted, Some(false), Before::Clear),
            (Idle, Some("left!"), Typing::Queues, Unwanted, Some(true), Before::Wait(Hold::Draft)),
        ] {
            let (seen, left) = (text.map(composer), promised.map(left));
            let found =
                before_paste(&state(readiness), seen.as_ref(), typing, interruption, left.as_ref());
            assert_eq!(found, expected, "{readiness:?} {text:?} {typing:?} {interruption:?}");
        }
    }

    #[test]
    fn after_the_paste() {
        use Readiness::{Busy, Dialog, Idle, Unknown, Waiting};
        for (readiness, text, typing, expected) in [
            (Idle, Some("t"), Typing::Steers, After::Enter),
            (Unknown, Some("t"), Typing::Queues, After::Enter),
            (Busy, Some("t"), Typing::Queues, After::Enter),
            (Busy, Some("t"), Typing::Steers, After::TakeBack),
            (Idle, Some("tu"), Typing::Queues, After::Mixed),
            (Idle, Some(""), Typing::Queues, After::NotSeen),
            (Idle, None, Typing::Queues, After::NotSeen),
            (Waiting, Some("t"), Typing::Queues, After::Modal),
            (Dialog, None, Typing::Queues, After::Modal),
        ] {
            let seen = text.map(composer);
            let found = after_paste(&state(readiness), seen.as_ref(), typing, "t");
            assert_eq!(found, expected, "{readiness:?} {text:?} {typing:?}");
        }
    }

    #[test]
    fn a_turn_begins_once() {
        use Readiness::{Busy, Idle, Waiting};
        let at = |at| SessionRecord { status_updated_at: Some(at), ..SessionRecord::default() };
        let began = |before, old, now, new| {
            turn_began((&state(before), Some(&at(old))), (&state(now), Some(&at(new))))
        };
        assert!(began(Idle, 1, Busy, 2) && began(Idle, 1, Waiting, 2) && began(Idle, 1, Idle, 2));
        assert!(!began(Idle, 1, Idle, 1) && !began(Busy, 1, Busy, 2) && !began(Busy, 1, Idle, 2));
        assert!(!turn_began((&state(Idle), None), (&state(Idle), Some(&at(2)))));
    }

    #[test]
    fn a_piece_to_look_for_is_plain_and_long() {
        assert_eq!(distinctive(&composer("[fleet] mail: #{x}*")), Some("fleet"));
        assert_eq!(distinctive(&composer("a bc ä日本語 -- 'x'")), None);
        let long = "x".repeat(90);
        assert_eq!(distinctive(&composer(&long)).map(str::len), Some(40));
    }
}
