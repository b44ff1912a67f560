//! Keys whose runtime is not in this build (01 §1.3): recognised, checked, and then either a reason to
//! refuse the role or a note.

use super::model::Unavailable;
use crate::diagnostic::Place;

/// A key that was written, or a default that promises protection: `up` refuses the role.
pub(super) fn not_built(
    path: &str,
    what: &str,
    instead: &str,
    place: Option<Place>,
) -> Unavailable {
    Unavailable {
        path: path.to_owned(),
        reason: format!("{what} is not available in this build"),
        instead: instead.to_owned(),
        refuses: true,
        place,
    }
}

/// A default that promises no protection, or a key that concerns no role: said, but nothing is refused.
pub(super) fn note(path: &str, what: &str, instead: &str, place: Option<Place>) -> Unavailable {
    Unavailable { refuses: false, ..not_built(path, what, instead, place) }
}
