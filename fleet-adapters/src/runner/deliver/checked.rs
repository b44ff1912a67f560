//! The checked paste (02 §6.5, steps 1–7) into a program whose composer can be read.

use std::time::Duration;

use fleet_core::delivery::{
    After, Before, Hold, Interruption, Left, after_paste, before_paste, distinctive, turn_began,
};
use fleet_core::harness::screen::{Composer, Held, Readiness, holds};

use super::{Delivery, LOOK_AGAIN, LOOK_SOON, Observer, Refused, TURN_WAIT, named, press};
use crate::runner::agent::Seen;
use crate::runner::protocol::{Delivered, Receipt, RefusalReason};

/// How long a pasted text may take to show.
const SHOW_WAIT: Duration = Duration::from_secs(2);
/// How long a sent text may take to go.
const GONE_WAIT: Duration = Duration::from_secs(1);
/// How often Enter is pressed at most.
const ENTERS: u32 = 3;
/// An interrupted turn may take this long to end, whatever the sender's patience.
const INTERRUPT_WAIT: Duration = Duration::from_secs(5);
/// Most presses of the keys that clear a composer; each takes at least a part of a line.
const MOST_CLEARS: u32 = 100;

/// What came of a paste.
enum Outcome {
    /// It got this far.
    Got(Receipt),
    /// It was taken back: a turn began that it would have steered.
    TakenBack,
    /// An earlier text is out of the way.
    MadeRoom,
}

pub(super) async fn deliver(
    observer: &Observer,
    left: &mut Option<Left>,
    delivery: Delivery<'_>,
) -> Result<Delivered, Refused> {
    let text = observer
        .driver()
        .as_typed(delivery.text)
        .map_err(|why| Refused::because(RefusalReason::BadText, why))?;
    if text.trim().is_empty() {
        return Err(Refused::because(RefusalReason::BadText, "the text is blank"));
    }
    Paste { observer, left, text: &text }.deliver(delivery).await
}

struct Paste<'a> {
    observer: &'a Observer,
    left: &'a mut Option<Left>,
    text: &'a str,
}

impl Paste<'_> {
    /// Steps 1 and 2, then the rest: waits for an empty composer of a program that takes input.
    async fn deliver(&mut self, delivery: Delivery<'_>) -> Result<Delivered, Refused> {
        let clock = self.observer.clock();
        let (mut interruption, timeout) = if delivery.interrupt {
            (Interruption::Wanted, delivery.timeout.max(INTERRUPT_WAIT))
        } else {
            (Interruption::Unwanted, delivery.timeout)
        };
        let begun = clock.monotonic();
        let mut calm = false;
        loop {
            let seen = self.observer.look().await?;
            let typing = self.observer.driver().typing();
            let composer = seen.composer.as_ref();
            let step =
                before_paste(&seen.state, composer, typing, interruption, self.left.as_ref());
            let hold = match step {
                // The prompt may be put back a moment after the turn ended.
                Before::Paste if interruption == Interruption::Sent && !calm => {
                    calm = true;
                    Hold::Busy
                }
                Before::Paste => match self.paste(&seen).await? {
                    Outcome::Got(receipt) => return Ok(observed(receipt)),
                    Outcome::TakenBack | Outcome::MadeRoom => Hold::Busy,
                },
                Before::Interrupt => {
                    self.leave_mode(&seen).await?;
                    press(self.observer.tmux(), "Escape").await?;
                    interruption = Interruption::Sent;
                    Hold::Busy
                }
                Before::Complete => match self.complete(&seen).await? {
                    Outcome::Got(receipt) => return Ok(observed(receipt)),
                    // Each happens at most once, so they cost a sender none of his time.
                    Outcome::MadeRoom => continue,
                    Outcome::TakenBack => Hold::Busy,
                },
                Before::Clear => {
                    calm = false;
                    let ours = self.left.is_some();
                    if self.clear(&seen).await? && ours {
                        continue;
                    }
                    Hold::Draft
                }
                Before::Wait(hold) => hold,
            };
            if clock.monotonic().since(begun) >= timeout {
                return Err(hold.into());
            }
            clock.sleep(LOOK_AGAIN).await;
        }
    }

    /// Sends what an earlier paste left. If that is this very text, its receipt is the answer.
    async fn complete(&mut self, before: &Seen) -> Result<Outcome, Refused> {
        let Some(earlier) = self.left.clone() else { return Ok(Outcome::MadeRoom) };
        match self.send(before, &earlier.text).await? {
            Outcome::Got(receipt) if earlier.text == self.text => Ok(Outcome::Got(receipt)),
            Outcome::Got(Receipt::Typed) => Err(RefusalReason::Draft.into()),
            Outcome::Got(_) | Outcome::MadeRoom => Ok(Outcome::MadeRoom),
            Outcome::TakenBack => Ok(Outcome::TakenBack),
        }
    }

    /// Steps 3 and 4: pastes, and looks for the text.
    async fn paste(&mut self, before: &Seen) -> Result<Outcome, Refused> {
        let (observer, clock) = (self.observer, self.observer.clock());
        self.leave_mode(before).await?;
        // Known before it happens: a paste that is cut short may have arrived.
        *self.left = Some(Left { text: self.text.to_owned(), promised: false });
        observer.tmux().paste(self.text).await?;
        let pasted = clock.monotonic();
        loop {
            let seen = observer.look().await?;
            match after_paste(&seen.state, seen.composer.as_ref(), self.typing(), self.text) {
                After::Enter => {
                    let text = self.text.to_owned();
                    return self.send(before, &text).await;
                }
                After::TakeBack => return self.take_back(&seen).await,
                After::Mixed => return Ok(self.promise()),
                After::Modal => return Err(RefusalReason::Modal.into()),
                After::NotSeen if clock.monotonic().since(pasted) >= SHOW_WAIT => {
                    return Err(RefusalReason::NotSeen.into());
                }
                After::NotSeen => clock.sleep(LOOK_SOON).await,
            }
        }
    }

    /// Steps 5 to 7: looks once more, presses Enter, and sees the text go.
    async fn send(&mut self, before: &Seen, text: &str) -> Result<Outcome, Refused> {
        for attempt in 0..ENTERS {
            let seen = self.observer.look().await?;
            match after_paste(&seen.state, seen.composer.as_ref(), self.typing(), text) {
                After::Enter => {}
                After::TakeBack if attempt == 0 => return self.take_back(&seen).await,
                After::Modal if attempt == 0 => return Err(RefusalReason::Modal.into()),
                After::NotSeen if attempt == 0 => return Err(RefusalReason::NotSeen.into()),
                After::TakeBack | After::Mixed | After::Modal | After::NotSeen => {
                    return Ok(self.promise());
                }
            }
            self.leave_mode(&seen).await?;
            if self.enter(seen.composer.as_ref()).await?
                && let Some(receipt) = self.gone(before, text).await?
            {
                *self.left = None;
                return Ok(Outcome::Got(receipt));
            }
        }
        Ok(self.promise())
    }

    /// Enter, in one step of the server with a last look for a piece of the text where there is one.
    async fn enter(&self, composer: Option<&Composer>) -> Result<bool, Refused> {
        let (tmux, enter) = (self.observer.tmux(), named("Enter")?);
        if let Some(piece) = composer.and_then(distinctive) {
            return Ok(tmux.key_if_shown(&enter, piece).await?);
        }
        tmux.key(&enter).await?;
        Ok(true)
    }

    /// Steps 6 and 7; `None` if the text stays.
    async fn gone(&self, before: &Seen, text: &str) -> Result<Option<Receipt>, Refused> {
        let clock = self.observer.clock();
        let pressed = clock.monotonic();
        let mut gone = None;
        loop {
            let seen = self.observer.look().await?;
            let now = (&seen.state, seen.record.as_ref());
            let held = seen.composer.as_ref().map(|composer| holds(composer, text));
            let began = turn_began((&before.state, before.record.as_ref()), now);
            // Behind a question that the turn asks the composer is not seen; that it asks is enough.
            if began && matches!(held, None | Some(Held::Not)) {
                return Ok(Some(Receipt::TurnStarted));
            }
            if gone.is_none() && held == Some(Held::Not) {
                gone = Some(clock.monotonic());
            }
            let (since, limit) = gone.map_or((pressed, GONE_WAIT), |gone| (gone, TURN_WAIT));
            // Into a running turn: it waits there, and no turn of its own begins yet.
            let queued = gone.is_some() && before.state.readiness == Readiness::Busy;
            if queued || clock.monotonic().since(since) >= limit {
                return Ok(gone.map(|_| Receipt::Submitted));
            }
            clock.sleep(LOOK_SOON).await;
        }
    }

    async fn take_back(&mut self, seen: &Seen) -> Result<Outcome, Refused> {
        if self.clear(seen).await? {
            return Ok(Outcome::TakenBack);
        }
        Err(RefusalReason::Busy.into())
    }

    /// Empties the composer; tells whether it is empty now. What is in it is ours.
    async fn clear(&mut self, seen: &Seen) -> Result<bool, Refused> {
        self.leave_mode(seen).await?;
        for _ in 0..MOST_CLEARS {
            for key in self.observer.driver().clear_keys() {
                press(self.observer.tmux(), key).await?;
            }
            self.observer.clock().sleep(LOOK_SOON).await;
            match self.observer.look().await?.composer {
                Some(composer) if composer.is_empty() => {
                    *self.left = None;
                    return Ok(true);
                }
                Some(_) => {}
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    async fn leave_mode(&self, seen: &Seen) -> Result<(), Refused> {
        if seen.view.in_mode {
            self.observer.tmux().leave_mode().await?;
        }
        Ok(())
    }

    /// The sender is told that the text is there: it will be sent sooner or later.
    fn promise(&mut self) -> Outcome {
        if let Some(left) = self.left.as_mut() {
            left.promised = true;
        }
        Outcome::Got(Receipt::Typed)
    }

    fn typing(&self) -> fleet_core::harness::screen::Typing {
        self.observer.driver().typing()
    }
}

fn observed(receipt: Receipt) -> Delivered {
    Delivered { receipt, observable: true }
}
