//! Caps are read back before the command is started, by the process that becomes it.

use fleet_core::isolation::EnforcementRow;

/// The rows of an observation, with what was read back of the caps in place of what was promised of
/// them. A promised cap that nobody read back stays as it was judged, which is never `enforced`.
pub(crate) fn with_caps(
    mut rows: Vec<EnforcementRow>,
    held: &[EnforcementRow],
) -> Vec<EnforcementRow> {
    for cap in held {
        match rows.iter_mut().find(|row| row.item == cap.item) {
            Some(row) => row.clone_from(cap),
            None => rows.push(cap.clone()),
        }
    }
    rows
}
