//! The bubblewrap backend: `backend` ties the parts together, `argv` is the line, `probe` the trial,
//! `gates` the system settings that can be in its way, `made` what a curated `/etc` makes up, `system` what is known of the host, `flags`
//! what each flag is good for.

pub(crate) mod argv;
mod backend;
pub mod flags;
mod fold;
mod gates;
pub(crate) mod made;
mod probe;
mod system;

pub use backend::BubblewrapIsolation;
pub use system::{HostView, SystemPath};
