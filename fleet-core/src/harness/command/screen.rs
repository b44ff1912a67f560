//! What the configured texts of a `command` role tell of its screen.

use crate::harness::screen::{
    AgentState, Composer, Evidence, EvidenceSource, Readiness, Sight, TerminalDriver, Typing,
};

/// Tells a state by literal texts on the visible screen. Knows of no composer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatternDriver {
    /// One of these means ready for input. Empty: ready unless busy or at a dialog.
    pub ready: Vec<String>,
    /// One of these means busy.
    pub busy: Vec<String>,
    /// One of these means that a dialog is open.
    pub modal: Vec<String>,
}

impl TerminalDriver for PatternDriver {
    /// A dialog beats busy, and busy beats ready: in doubt nobody types.
    fn state(&self, evidence: &Evidence<'_>) -> AgentState {
        if self.sight() == Sight::Nothing {
            return AgentState::unknown();
        }
        let shows = |texts: &[String]| texts.iter().any(|text| evidence.screen.contains(text));
        let readiness = if shows(&self.modal) {
            Readiness::Dialog
        } else if shows(&self.busy) {
            Readiness::Busy
        } else if self.ready.is_empty() || shows(&self.ready) {
            Readiness::Idle
        } else {
            Readiness::Unknown
        };
        AgentState::new(readiness, EvidenceSource::Patterns)
    }

    fn composer(&self, _screen: &str) -> Option<Composer> {
        None
    }

    fn clear_keys(&self) -> &'static [&'static str] {
        &[]
    }

    fn typing(&self) -> Typing {
        Typing::Steers
    }

    fn as_typed(&self, text: &str) -> Result<String, &'static str> {
        Ok(text.to_owned())
    }

    fn sight(&self) -> Sight {
        match (self.ready.is_empty() && self.modal.is_empty(), self.busy.is_empty()) {
            (true, true) => Sight::Nothing,
            (false, true) => Sight::Ready,
            (_, false) => Sight::Turns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(ready: &[&str], busy: &[&str], modal: &[&str]) -> PatternDriver {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        PatternDriver { ready: list(ready), busy: list(busy), modal: list(modal) }
    }

    fn seen(driver: &PatternDriver, screen: &str) -> (Readiness, EvidenceSource) {
        let state = driver.state(&Evidence { screen, title: None, record: None });
        (state.readiness, state.evidence)
    }

    #[test]
    fn a_dialog_beats_busy_and_busy_beats_ready() {
        let driver = driver(&["$ "], &["working"], &["[y/n]"]);
        for (screen, readiness) in [
            ("$ ", Readiness::Idle),
            ("$ working", Readiness::Busy),
            ("$ working [y/n]", Readiness::Dialog),
            ("booting", Readiness::Unknown),
        ] {
            assert_eq!(seen(&driver, screen), (readiness, EvidenceSource::Patterns), "{screen}");
        }
    }

    #[test]
    fn what_the_texts_can_tell() {
        assert_eq!(driver(&[], &[], &[]).sight(), Sight::Nothing);
        assert_eq!(driver(&["a"], &[], &[]).sight(), Sight::Ready);
        assert_eq!(driver(&[], &[], &["a"]).sight(), Sight::Ready);
        assert_eq!(driver(&[], &["a"], &[]).sight(), Sight::Turns);
        let blind = seen(&driver(&[], &[], &[]), "$ [y/n]");
        assert_eq!(blind, (Readiness::Unknown, EvidenceSource::None), "nothing is guessed");
    }
}
