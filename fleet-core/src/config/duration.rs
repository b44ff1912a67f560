//! Durations of a fleet file (01 §1.15).

use std::fmt;
use std::str::FromStr;

use super::decode::LARGEST;
use super::model::Duration;

/// Why a text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not digits and one unit.
    #[error("is not a duration")]
    Grammar,
    /// More than 2^53 - 1 milliseconds.
    #[error("is too large")]
    TooLarge,
}

impl Duration {
    /// The grammar in words, for error messages.
    pub const ALLOWED: &'static str = "digits and one of s, m, h, d, for example 10m";
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let unit = match text.bytes().last() {
            Some(b's') => 1000,
            Some(b'm') => 60_000,
            Some(b'h') => 3_600_000,
            Some(b'd') => 86_400_000,
            _ => return Err(DurationError::Grammar),
        };
        let digits = &text[..text.len() - 1];
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(DurationError::Grammar);
        }
        digits
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit))
            .filter(|millis| *millis <= LARGEST)
            .map(Self)
            .ok_or(DurationError::TooLarge)
    }
}

impl fmt::Display for Duration {
    /// The largest of days, hours and minutes that divides exactly, otherwise seconds, rounded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(86_400_000, 'd'), (3_600_000, 'h'), (60_000, 'm')];
        match units.iter().find(|(unit, _)| self.0 >= *unit && self.0.is_multiple_of(*unit)) {
            Some((unit, letter)) => write!(f, "{}{letter}", self.0 / unit),
            None => write!(f, "{}s", self.0 / 1000 + u64::from(self.0 % 1000 >= 500)),
        }
    }
}
