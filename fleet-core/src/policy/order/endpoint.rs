//! Endpoints as sets: `*.a` holds `x.a`, no port holds 80 and 443.

use std::fmt;

use crate::isolation::network::HostRule;

/// A set of endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Everything.
    Any,
    /// What a rule lets through.
    Rule(HostRule),
}

impl Endpoint {
    /// Whether every endpoint of `other` is one of this set.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Rule(mine), Self::Rule(theirs)) => mine.covers(theirs),
            (Self::Rule(_), Self::Any) => false,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("every host"),
            Self::Rule(rule) => rule.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_covers_a_rule_and_no_rule_covers_everything() {
        let rule = |text: &str| Endpoint::Rule(text.parse().expect(text));
        assert!(Endpoint::Any.covers(&rule("a.example")));
        assert!(Endpoint::Any.covers(&Endpoint::Any));
        assert!(rule("*.example").covers(&rule("a.example:443")));
        assert!(!rule("a.example").covers(&Endpoint::Any));
    }
}
