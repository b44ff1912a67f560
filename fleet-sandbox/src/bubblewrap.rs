//! The bubblewrap backend: `backend` ties the parts together, `argv` is the line, `probe` the trial,
//! `gates` the system settings that can be in its way, `system` what is known of the host, `flags`
//! what each flag is good for.

mod argv;
mod backend;
pub mod flags;
mod fold;
mod gates;
mod probe;
mod system;

pub use backend::BubblewrapIsolation;
pub use system::{HostView, SystemPath};
