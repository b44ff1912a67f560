//! Which backend, and what happens when none is usable (01 §2.10).

use super::policy::{BackendName, IsolationBlock};
use crate::permissions::Permissions;
use crate::port::ProbeFailure;

/// What happens when no backend is usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The launch is refused.
    Refuse {
        /// Why, and what to do.
        message: String,
    },
    /// The role starts without isolation.
    Unisolated {
        /// Why.
        message: String,
    },
}

/// The backends to try, in order.
pub fn candidates(_block: &IsolationBlock) -> Vec<BackendName> {
    Vec::new()
}

/// Decides when every candidate failed. Refuses until the rules are built.
pub fn fallback(
    _block: &IsolationBlock,
    _permissions: &Permissions,
    _uid: u32,
    _failures: &[(BackendName, ProbeFailure)],
) -> Fallback {
    Fallback::Refuse { message: "backend selection is not built yet".to_owned() }
}
