//! Typing into a program whose composer cannot be read: a `command` role. With `ready`, `busy` or
//! `modal` texts configured, nothing is typed unless the screen shows that the program waits for input.

use fleet_core::harness::screen::{Readiness, Sight};

use super::{Delivery, LOOK_AGAIN, Observer, Refused, TURN_WAIT, press};
use crate::runner::protocol::{Delivered, Receipt, RefusalReason};

pub(super) async fn deliver(
    observer: &Observer,
    delivery: Delivery<'_>,
) -> Result<Delivered, Refused> {
    let (tmux, sight) = (observer.tmux(), observer.driver().sight());
    if sight > Sight::Nothing {
        wait_until_ready(observer, delivery).await?;
    }
    // A person who reads the history would get the Enter.
    tmux.leave_mode().await?;
    tmux.paste(delivery.text).await?;
    press(tmux, "Enter").await?;
    if sight < Sight::Turns {
        return Ok(Delivered { receipt: Receipt::Typed, observable: false });
    }
    let begun = observer.clock().monotonic();
    loop {
        if observer.look().await?.state.readiness == Readiness::Busy {
            return Ok(Delivered { receipt: Receipt::TurnStarted, observable: true });
        }
        if observer.clock().monotonic().since(begun) >= TURN_WAIT {
            return Ok(Delivered { receipt: Receipt::Typed, observable: true });
        }
        observer.clock().sleep(LOOK_AGAIN).await;
    }
}

async fn wait_until_ready(observer: &Observer, delivery: Delivery<'_>) -> Result<(), Refused> {
    let begun = observer.clock().monotonic();
    let mut interrupted = false;
    loop {
        let reason = match observer.look().await?.state.readiness {
            Readiness::Idle => return Ok(()),
            Readiness::Busy => RefusalReason::Busy,
            Readiness::Dialog | Readiness::Waiting => RefusalReason::Modal,
            Readiness::Starting | Readiness::Unknown => RefusalReason::Starting,
        };
        if reason == RefusalReason::Busy && delivery.interrupt && !interrupted {
            interrupted = true;
            observer.tmux().leave_mode().await?;
            press(observer.tmux(), "Escape").await?;
        }
        if observer.clock().monotonic().since(begun) >= delivery.timeout {
            return Err(reason.into());
        }
        observer.clock().sleep(LOOK_AGAIN).await;
    }
}
