//! What an agent may do through its harness, in neutral words (01 §3).

mod model;

pub use model::{Approval, Filesystem, Permissions, Translation, Unattended};
