//! The one table of exit codes (02 §1.1). Help, README and tests take it from here.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done.
    Done,
    /// An error or a refusal; every target failed.
    Failed,
    /// The control plane gave no answer. Says nothing about the agent.
    NoAnswer,
    /// Busy: nothing was started or submitted.
    Busy,
    /// At least one target done, at least one failed.
    Partial,
    /// Accepted for good, still on its way.
    Converging,
    /// The command line was wrong; nothing was touched.
    Usage,
}

/// Every exit code with its meaning, in ascending order.
pub const TABLE: &[(ExitStatus, &str)] = &[
    (ExitStatus::Done, "done, or nothing to do"),
    (ExitStatus::Failed, "error or refusal; every target failed"),
    (ExitStatus::NoAnswer, "no answer from the runner; proves nothing about the agent"),
    (ExitStatus::Busy, "busy: nothing was submitted"),
    (ExitStatus::Partial, "partial: some targets done, some failed"),
    (ExitStatus::Converging, "accepted, still on its way"),
    (ExitStatus::Usage, "usage: the command line was wrong, nothing was touched"),
];

impl ExitStatus {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::NoAnswer => 2,
            Self::Busy => 3,
            Self::Partial => 4,
            Self::Converging => 5,
            Self::Usage => 64,
        }
    }

    /// The status of an action on several targets.
    pub fn of_targets(done: usize, failed: usize, pending: usize) -> Self {
        match (done + pending, failed, pending) {
            (_, 0, 0) => Self::Done,
            (_, 0, _) => Self::Converging,
            (0, _, _) => Self::Failed,
            _ => Self::Partial,
        }
    }

    /// The table as lines of help text.
    pub fn help() -> String {
        TABLE
            .iter()
            .map(|(status, meaning)| format!("  {:>2}  {meaning}", status.code()))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_of_the_manual() {
        let codes: Vec<u8> = TABLE.iter().map(|(status, _)| status.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 64]);
    }

    #[test]
    fn many_targets_give_one_status() {
        for (done, failed, pending, status) in [
            (0, 0, 0, ExitStatus::Done),
            (2, 0, 0, ExitStatus::Done),
            (1, 0, 1, ExitStatus::Converging),
            (0, 2, 0, ExitStatus::Failed),
            (1, 1, 0, ExitStatus::Partial),
            (0, 1, 1, ExitStatus::Partial),
        ] {
            assert_eq!(ExitStatus::of_targets(done, failed, pending), status);
        }
    }
}
