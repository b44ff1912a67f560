//! Names and identifiers. Each type validates in `FromStr` and cannot hold anything else.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{found}` is not valid: {allowed}")]
pub struct NameError {
    /// What kind of name was expected, for example "role name".
    pub what: &'static str,
    /// The rejected text, shortened and with control characters escaped.
    pub found: String,
    /// The grammar in words.
    pub allowed: &'static str,
}

fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if text.chars().count() > 80 {
        short.push('…');
    }
    short.escape_debug().to_string()
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $allowed:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The grammar in words, for error messages.
            pub const ALLOWED: &'static str = $allowed;

            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(NameError { what: $what, found: shown(text), allowed: $allowed })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

/// Role names that would read as a verb or a selection on the command line.
pub const RESERVED_ROLE_NAMES: &[&str] = &[
    "all",
    "none",
    "init",
    "up",
    "down",
    "restart",
    "force-restart",
    "ls",
    "status",
    "peek",
    "attach",
    "send",
    "logs",
    "config",
    "doctor",
    "version",
    "completions",
    "check",
    "explain",
    "schema",
    "plan",
    "spawn",
    "rm",
    "events",
    "net",
    "mail",
    "mcp",
    "audit",
    "managed-cli",
    "task",
    "room",
    "template",
    "docs",
    "man",
    "help",
];

fn is_role_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 64
        && bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        && !RESERVED_ROLE_NAMES.contains(&text)
}

fn is_identity(text: &str) -> bool {
    const TAKEN: &[&str] = &[".", "..", "contact-book", "root.json", "bindings.json"];
    (1..=64).contains(&text.len())
        && text.trim() == text
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b" _.@-".contains(&b))
        && !TAKEN.contains(&text)
}

fn is_token(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_harness_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 32
        && bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

text_id! {
    /// The name of a role: also its directory, its tmux session and its part of socket paths.
    RoleName, "role name",
    "1 to 64 characters [A-Za-z0-9_-], the first a letter or digit, not a command of ours-fleet",
    is_role_name
}
text_id! {
    /// The messaging name of a role; defaults to the role name.
    IdentityName, "identity",
    "1 to 64 characters [A-Za-z0-9 _.@-], no space at either end",
    is_identity
}
text_id! {
    /// The id of a harness, for example `command`.
    HarnessId, "harness",
    "1 to 32 characters [a-z0-9-], the first a letter",
    is_harness_id
}
text_id! {
    /// The id of a harness conversation.
    SessionId, "session id", "1 to 64 characters [A-Za-z0-9-]", is_token
}
text_id! {
    /// The id of one launch of a role, new for every attempt.
    LaunchId, "launch id", "1 to 64 characters [A-Za-z0-9-]", is_token
}

/// Milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A moment given in milliseconds since the Unix epoch.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment `millis` milliseconds later.
    #[must_use]
    pub fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this moment, 0 if `earlier` is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Days since 1970-01-01 to (year, month, day), proleptic Gregorian calendar.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// (year, month, day) to days since 1970-01-01; the inverse of `civil_from_days`.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let era = year / 400;
    let year_of_era = year % 400;
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

impl fmt::Display for Timestamp {
    /// ISO 8601 in UTC with milliseconds: `2026-11-29T17:30:00.123Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0 / 1000, self.0 % 1000);
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl FromStr for Timestamp {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let error = || NameError {
            what: "timestamp",
            found: shown(text),
            allowed: "ISO 8601 in UTC with milliseconds, for example 2026-11-29T17:30:00.123Z",
        };
        let bytes = text.as_bytes();
        let shape = b"dddd-dd-ddTdd:dd:dd.dddZ";
        let fits = bytes.len() == shape.len()
            && bytes.iter().zip(shape).all(|(b, s)| match s {
                b'd' => b.is_ascii_digit(),
                other => b == other,
            });
        if !fits {
            return Err(error());
        }
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().fold(0u64, |sum, b| sum * 10 + u64::from(b - b'0'))
        };
        let days = days_from_civil(number(0..4), number(5..7), number(8..10)).ok_or_else(error)?;
        let seconds = days * 86_400 + number(11..13) * 3600 + number(14..16) * 60 + number(17..19);
        let stamp = Self(seconds * 1000 + number(20..23));
        // Month 13 or 30 February would come back as another text.
        if stamp.to_string() == text { Ok(stamp) } else { Err(error()) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_names_follow_the_grammar() {
        for good in ["A", "a-b", "Rev", "9", "tmp", &"a".repeat(64)] {
            assert!(good.parse::<RoleName>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "a.b",
            "a:b",
            "-q",
            "=x",
            "$1",
            "日本",
            "a ",
            " a",
            "..",
            "up",
            "all",
            &"a".repeat(65),
        ] {
            let error = bad.parse::<RoleName>().expect_err(bad);
            assert!(error.to_string().contains("[A-Za-z0-9_-]"));
        }
    }

    #[test]
    fn timestamps_print_and_parse() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_973_400_123, "2026-11-29T17:30:00.123Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_string(), text);
            assert_eq!(text.parse::<Timestamp>().expect("valid"), Timestamp::from_millis(millis));
        }
        for bad in
            ["", "2026-13-01T00:00:00.000Z", "2026-02-30T00:00:00.000Z", "2026-02-28 00:00:00.000Z"]
        {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
    }
}
