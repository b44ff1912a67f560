//! A text typed into a console and sent (02 §6.5).
//!
//! A text never answers a dialog and never takes a person's draft along: where the harness's driver
//! can read the composer, Enter follows only on a text that was seen in it.

mod checked;
mod plain;

use std::time::Duration;

use fleet_core::delivery::{Hold, Left};
use fleet_core::harness::screen::Sight;
use fleet_core::port::{KeyName, Tmux, TmuxError};

use super::agent::Observer;
use super::protocol::{Delivered, RefusalReason};

/// Between two looks while something is awaited that may take long.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Between two looks while the program is expected to draw.
const LOOK_SOON: Duration = Duration::from_millis(50);
/// How long to look for a turn to start.
const TURN_WAIT: Duration = Duration::from_secs(2);

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

/// Why a text was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The reason.
    pub reason: RefusalReason,
    /// More about it.
    pub detail: Option<String>,
}

impl Refused {
    fn because(reason: RefusalReason, detail: &str) -> Self {
        Self { reason, detail: Some(detail.to_owned()) }
    }

    /// For people.
    pub fn words(&self) -> &str {
        self.detail.as_deref().unwrap_or_else(|| self.reason.words())
    }
}

impl From<RefusalReason> for Refused {
    fn from(reason: RefusalReason) -> Self {
        Self { reason, detail: None }
    }
}

impl From<Hold> for Refused {
    fn from(hold: Hold) -> Self {
        match hold {
            Hold::Modal => RefusalReason::Modal,
            Hold::Draft => RefusalReason::Draft,
            Hold::Busy => RefusalReason::Busy,
            Hold::Starting => RefusalReason::Starting,
            Hold::NotSeen => RefusalReason::NotSeen,
        }
        .into()
    }
}

impl From<TmuxError> for Refused {
    fn from(error: TmuxError) -> Self {
        match error {
            TmuxError::NoConsole { .. } => RefusalReason::Offline,
            TmuxError::BadText { .. } => RefusalReason::BadText,
            TmuxError::Failed { .. } => RefusalReason::CaptureFailed,
        }
        .into()
    }
}

/// Types a text and Enter, or refuses with the reason and sends nothing. One at a time for a console:
/// `left` is what earlier ones left in its composer.
///
/// # Cancel safety
/// Not cancel safe: whether the text arrived is then unknown.
pub async fn deliver(
    observer: &Observer,
    left: &mut Option<Left>,
    delivery: Delivery<'_>,
) -> Result<Delivered, Refused> {
    let allowed = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if delivery.text.is_empty() || !delivery.text.chars().all(allowed) {
        return Err(RefusalReason::BadText.into());
    }
    match observer.driver().sight() {
        Sight::Composer => checked::deliver(observer, left, delivery).await,
        Sight::Nothing | Sight::Ready | Sight::Turns => plain::deliver(observer, delivery).await,
    }
}

async fn press(tmux: &dyn Tmux, key: &str) -> Result<(), Refused> {
    Ok(tmux.key(&named(key)?).await?)
}

fn named(key: &str) -> Result<KeyName, Refused> {
    key.parse().map_err(|_| RefusalReason::BadText.into())
}
