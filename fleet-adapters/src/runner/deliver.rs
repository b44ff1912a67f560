//! Typing a text into the console of a `command` role (02 §6.5).
//!
//! A text never answers a dialog: with `ready`, `busy` or `modal` texts configured, nothing is typed
//! unless the screen shows that the program waits for input.

use std::time::Duration;

use fleet_core::harness::ScreenTexts;
use fleet_core::port::{Capture, Clock, KeyName, Tmux, TmuxError};

use super::protocol::{Delivered, Receipt, RefusalReason};

/// Between two looks at the screen.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How long to look for a turn to start.
const TURN_WAIT_MS: u128 = 2_000;

/// What the screen says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenState {
    /// Waiting for input.
    Ready,
    /// Not waiting for input, for this reason.
    Not(RefusalReason),
}

/// Reads the state of a program from its screen. Without any texts configured, alive is ready.
pub fn screen_state(texts: &ScreenTexts, screen: &str) -> ScreenState {
    let shows = |list: &[String]| list.iter().any(|text| screen.contains(text.as_str()));
    if shows(&texts.modal) {
        ScreenState::Not(RefusalReason::Modal)
    } else if shows(&texts.busy) {
        ScreenState::Not(RefusalReason::Busy)
    } else if texts.ready.is_empty() || shows(&texts.ready) {
        ScreenState::Ready
    } else {
        ScreenState::Not(RefusalReason::Starting)
    }
}

/// What is to be typed.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The text.
    pub text: &'a str,
    /// Whether a running turn is interrupted first.
    pub interrupt: bool,
    /// How long to wait until typing is allowed.
    pub timeout: Duration,
}

/// Types a text and Enter, or refuses with the reason and presses nothing.
///
/// # Cancel safety
/// Not cancel safe: whether the text arrived is then unknown.
pub async fn deliver(
    tmux: &dyn Tmux,
    clock: &dyn Clock,
    texts: &ScreenTexts,
    delivery: Delivery<'_>,
) -> Result<Delivered, RefusalReason> {
    let allowed = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if delivery.text.is_empty() || !delivery.text.chars().all(allowed) {
        return Err(RefusalReason::BadText);
    }
    let has_patterns = !(texts.ready.is_empty() && texts.busy.is_empty() && texts.modal.is_empty());
    if has_patterns {
        wait_until_ready(tmux, clock, texts, delivery).await?;
    }
    tmux.paste(delivery.text).await.map_err(|error| refusal(&error))?;
    press(tmux, "Enter").await?;
    if texts.busy.is_empty() {
        return Ok(Delivered { receipt: Receipt::Typed, observable: false });
    }
    let begun = clock.monotonic();
    loop {
        if look(tmux, texts).await? == ScreenState::Not(RefusalReason::Busy) {
            return Ok(Delivered { receipt: Receipt::TurnStarted, observable: true });
        }
        if clock.monotonic().since(begun).as_millis() >= TURN_WAIT_MS {
            return Ok(Delivered { receipt: Receipt::Typed, observable: true });
        }
        clock.sleep(LOOK_AGAIN).await;
    }
}

async fn wait_until_ready(
    tmux: &dyn Tmux,
    clock: &dyn Clock,
    texts: &ScreenTexts,
    delivery: Delivery<'_>,
) -> Result<(), RefusalReason> {
    let begun = clock.monotonic();
    let mut interrupted = false;
    loop {
        let reason = match look(tmux, texts).await? {
            ScreenState::Ready => return Ok(()),
            ScreenState::Not(reason) => reason,
        };
        if reason == RefusalReason::Busy && delivery.interrupt && !interrupted {
            interrupted = true;
            press(tmux, "Escape").await?;
        }
        if clock.monotonic().since(begun) >= delivery.timeout {
            return Err(reason);
        }
        clock.sleep(LOOK_AGAIN).await;
    }
}

async fn look(tmux: &dyn Tmux, texts: &ScreenTexts) -> Result<ScreenState, RefusalReason> {
    let screen = tmux
        .capture(Capture { history: 0, joined: true })
        .await
        .map_err(|error| refusal(&error))?;
    Ok(screen_state(texts, &screen))
}

async fn press(tmux: &dyn Tmux, key: &str) -> Result<(), RefusalReason> {
    let key: KeyName = key.parse().map_err(|_| RefusalReason::BadText)?;
    tmux.key(&key).await.map_err(|error| refusal(&error))
}

fn refusal(error: &TmuxError) -> RefusalReason {
    match error {
        TmuxError::NoConsole { .. } => RefusalReason::Offline,
        TmuxError::BadText { .. } => RefusalReason::BadText,
        TmuxError::Failed { .. } => RefusalReason::CaptureFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ready: &[&str], busy: &[&str], modal: &[&str]) -> ScreenTexts {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ScreenTexts { ready: list(ready), busy: list(busy), modal: list(modal) }
    }

    #[test]
    fn a_dialog_beats_busy_and_busy_beats_ready() {
        let texts = texts(&["$ "], &["working"], &["[y/n]"]);
        assert_eq!(screen_state(&texts, "$ "), ScreenState::Ready);
        assert_eq!(screen_state(&texts, "$ working"), ScreenState::Not(RefusalReason::Busy));
        assert_eq!(screen_state(&texts, "$ working [y/n]"), ScreenState::Not(RefusalReason::Modal));
        assert_eq!(screen_state(&texts, "booting"), ScreenState::Not(RefusalReason::Starting));
    }

    #[test]
    fn without_texts_alive_is_ready() {
        assert_eq!(screen_state(&ScreenTexts::default(), ""), ScreenState::Ready);
    }
}
