//! The unattended capability floor (01 §3.6): what must work when nobody is at the keyboard.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Capability, Translation, Unattended};

/// What is required in this build: mail and its monitor come with the messaging.
const REQUIRED: &[Capability] = &[
    Capability::ReadState,
    Capability::WriteState,
    Capability::WorkspaceEdit,
    Capability::StatusCommands,
];

/// The verdict on one role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Floor {
    /// What works without a person.
    pub granted: BTreeSet<Capability>,
    /// What is required and does not.
    pub missing: BTreeSet<Capability>,
    /// What happens to the question that the agent then asks.
    pub unattended: Unattended,
}

impl Floor {
    /// Whether everything required works.
    pub fn is_met(&self) -> bool {
        self.missing.is_empty()
    }
}

/// The floor of a role with this translation in force; `None` where the harness has no permissions.
pub fn floor(effective: &Translation, unattended: Unattended) -> Option<Floor> {
    let Translation::Supported(effective) = effective else { return None };
    let missing =
        REQUIRED.iter().copied().filter(|need| !effective.granted.contains(need)).collect();
    Some(Floor { granted: effective.granted.clone(), missing, unattended })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::permissions::{Approval, Supported};

    #[test]
    fn p35_missing_and_granted_have_nothing_in_common() {
        for bits in 0_u32..64 {
            let granted: BTreeSet<Capability> = Capability::ALL
                .into_iter()
                .enumerate()
                .filter(|(bit, _)| bits & (1 << bit) != 0)
                .map(|(_, capability)| capability)
                .collect();
            let effective = Translation::Supported(Supported {
                native: BTreeMap::new(),
                exact: true,
                measured: true,
                notes: Vec::new(),
                warnings: Vec::new(),
                refusals: Vec::new(),
                granted: granted.clone(),
                mode: Approval::Ask,
                covered: true,
            });
            let floor = floor(&effective, Unattended::Deny).unwrap();
            assert!(floor.missing.is_disjoint(&granted));
            assert_eq!(floor.is_met(), floor.missing.is_empty());
            let needed: BTreeSet<_> = REQUIRED.iter().copied().collect();
            assert!(
                floor
                    .missing
                    .union(&granted)
                    .copied()
                    .collect::<BTreeSet<_>>()
                    .is_superset(&needed)
            );
        }
    }
}
