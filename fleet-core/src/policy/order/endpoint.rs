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
    /// What fleet itself lets through for the harness of this name: its model and the messaging.
    Broker(String),
}

impl Endpoint {
    /// Whether every endpoint of `other` is one of this set.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Rule(mine), Self::Rule(theirs)) => mine.covers(theirs),
            (mine, theirs) => mine == theirs,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("every host"),
            Self::Rule(rule) => rule.fmt(f),
            Self::Broker(harness) => write!(f, "messaging and the model of `{harness}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_covers_a_rule_and_a_broker_covers_itself() {
        let rule = |text: &str| Endpoint::Rule(text.parse().expect(text));
        let broker = |harness: &str| Endpoint::Broker(harness.to_owned());
        assert!(Endpoint::Any.covers(&rule("a.example")));
        assert!(Endpoint::Any.covers(&broker("x")));
        assert!(rule("*.example").covers(&rule("a.example:443")));
        assert!(!rule("a.example").covers(&Endpoint::Any));
        assert!(!rule("a.example").covers(&broker("x")));
        assert!(broker("x").covers(&broker("x")) && !broker("x").covers(&broker("y")));
    }
}
