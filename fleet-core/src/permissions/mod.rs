//! What an agent may do through its harness, in neutral words (01 §3).

mod floor;
mod model;
mod translation;

pub use floor::{Floor, floor};
pub use model::{Approval, Filesystem, Permissions, Unattended};
pub use translation::{
    Capability, Conflict, DENIED_READS_KEY, DeniedRead, Outer, Supported, Translation,
    TranslationRequest, conflicts,
};
pub(crate) use translation::{READS_ALL, READS_DENIED};
